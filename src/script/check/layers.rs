//! What the library makes, as far as a text tells: layers whose results have known shapes, and things of which no more
//! is known than that the library made them.

use super::flow::Flow;
use super::value::Value;
use crate::base::dtype::DType;
use crate::op::shapes;
use crate::op::table;
use std::rc::Rc;

#[derive(Debug)]
pub enum Layer {
    /// `nn::linear(inputs, outputs)`.
    Linear(usize, usize),
    /// Keeps the shape.
    Pointwise,
    Chain(Vec<Rc<Layer>>),
    /// An optimizer or a schedule: nothing of it is assigned.
    Stepped,
    /// Not known.
    Opaque,
}

/// Functions of `nn` whose layers keep shape and dtype of what they are given.
const POINTWISE: &[&str] = &[
    "relu",
    "relu6",
    "gelu",
    "silu",
    "mish",
    "selu",
    "elu",
    "celu",
    "leaky_relu",
    "hardswish",
    "hardsigmoid",
    "softplus",
    "hardtanh",
    "sigmoid",
    "tanh",
    "dropout",
    "identity",
];

/// What a function of a module of the library makes of these values.
pub fn made(space: &str, name: &str, values: &[Value]) -> Layer {
    match (name, values) {
        _ if space == "optim" => Layer::Stepped,
        ("linear", [Value::Int(Some(inputs)), Value::Int(Some(outputs)), ..]) if *inputs >= 0 && *outputs >= 0 => {
            Layer::Linear(*inputs as usize, *outputs as usize)
        }
        ("sequential", [Value::Array(Some(items))]) => chain(items),
        ("sequential", items) if !items.is_empty() => chain(items),
        _ if POINTWISE.contains(&name) => Layer::Pointwise,
        _ => Layer::Opaque,
    }
}

fn chain(items: &[Value]) -> Layer {
    let layer = |item: &Value| match item {
        Value::Layer(layer) => layer.clone(),
        _ => Rc::new(Layer::Opaque),
    };
    Layer::Chain(items.iter().map(layer).collect())
}

impl Flow<'_> {
    /// What a layer gives for a tensor.
    pub(super) fn forward(&mut self, token: u32, layer: &Layer, x: Value) -> Value {
        match (layer, &x) {
            (Layer::Pointwise, _) => x,
            (Layer::Chain(layers), _) => layers.iter().fold(x, |x, layer| self.forward(token, layer, x)),
            (Layer::Linear(inputs, outputs), Value::Tensor(Some(tensor))) => {
                // Layers are moved to other dtypes in place: of floats any may be right.
                let dtype = if tensor.dtype().is_float() { tensor.dtype() } else { DType::F32 };
                let weight = shapes::tensor(&[*outputs, *inputs], dtype).ok();
                match table::called("linear") {
                    Some((row, _)) => self.row(token, row, false, &[x, Value::Tensor(weight)]),
                    None => Value::Unknown,
                }
            }
            _ => Value::Unknown,
        }
    }
}
