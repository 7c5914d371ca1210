//! What the library creates, as far as a text shows: layers whose results have known shapes, and other objects of
//! which only the origin is known.

use super::flow::Flow;
use super::value::Value;
use crate::base::dtype::DType;
use crate::op::dry_run;
use crate::op::table;
use crate::script::manual;
use std::rc::Rc;

#[derive(Debug)]
pub enum Layer {
    /// `nn::linear(inputs, outputs)`.
    Linear(usize, usize),
    /// `nn::conv2d(inputs, outputs, kernel)`, with its number of dims.
    Convolution {
        dims: usize,
        weight: Vec<usize>,
    },
    /// `nn::embedding(rows, columns)`.
    Embedding(usize, usize),
    /// Keeps the shape.
    Pointwise,
    Chain(Vec<Rc<Layer>>),
    /// An optimizer or a schedule: its entries cannot be assigned.
    Stepped(Stepped),
    Loader,
    /// Not known.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    Optimizer,
    Schedule,
    /// Something else of the module.
    Other,
}

impl Stepped {
    /// What a function of `optim` makes, by its first parameter.
    fn by(name: &str) -> Stepped {
        let signature = manual::signature(&format!("optim::{name}"), false);
        let first = signature.as_ref().and_then(|signature| signature.params.first());
        match first.map_or("", |param| param.name.as_str()) {
            "params" => Stepped::Optimizer,
            "optimizer" | "opt" if name.ends_with("_lr") || name.starts_with("cosine") => Stepped::Schedule,
            _ => Stepped::Other,
        }
    }
}

/// Functions of `nn` whose layers keep shape and dtype of their input.
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

/// What a function of a library module creates from these arguments.
pub fn made(space: &str, name: &str, values: &[Value]) -> Layer {
    match (name, values) {
        _ if space == "optim" => Layer::Stepped(Stepped::by(name)),
        ("loader", _) if space == "data" => Layer::Loader,
        ("linear", [Value::Int(Some(inputs)), Value::Int(Some(outputs)), ..]) if *inputs >= 0 && *outputs >= 0 => {
            Layer::Linear(*inputs as usize, *outputs as usize)
        }
        (
            "conv1d" | "conv2d" | "conv3d",
            [Value::Int(Some(inputs)), Value::Int(Some(outputs)), Value::Int(Some(kernel))],
        ) if [inputs, outputs, kernel].into_iter().all(|&n| n > 0) => {
            let dims = (name.as_bytes()[4] - b'0') as usize;
            let mut weight = vec![*outputs as usize, *inputs as usize];
            weight.resize(2 + dims, *kernel as usize);
            Layer::Convolution { dims, weight }
        }
        ("embedding", [Value::Int(Some(rows)), Value::Int(Some(columns))]) if *rows > 0 && *columns > 0 => {
            Layer::Embedding(*rows as usize, *columns as usize)
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
    /// The result of a layer for a tensor.
    pub(super) fn forward(&mut self, token: u32, layer: &Layer, x: Value) -> Value {
        match (layer, &x) {
            (Layer::Pointwise, _) => x,
            (Layer::Chain(layers), _) => layers.iter().fold(x, |x, layer| self.forward(token, layer, x)),
            (Layer::Linear(inputs, outputs), Value::Tensor(Some(_))) => {
                self.with_weight(token, "linear", x, &[*outputs, *inputs])
            }
            (Layer::Convolution { dims, weight }, Value::Tensor(Some(_))) => {
                self.with_weight(token, ["conv1d", "conv2d", "conv3d"][dims - 1], x, weight)
            }
            (Layer::Embedding(rows, columns), Value::Tensor(Some(_))) => {
                self.with_weight(token, "embedding", x, &[*rows, *columns])
            }
            _ => Value::Unknown,
        }
    }

    /// An operation of a tensor and a weight of this shape.
    fn with_weight(&mut self, token: u32, name: &str, x: Value, shape: &[usize]) -> Value {
        // Layers can be moved to other dtypes in place: any float dtype may be right.
        let dtype = match &x {
            Value::Tensor(Some(tensor)) if tensor.dtype().is_float() => tensor.dtype(),
            _ => DType::F32,
        };
        let weight = dry_run::tensor(shape, dtype).ok();
        match table::called(name) {
            Some((row, _)) => self.row(token, row, false, &[x, Value::Tensor(weight)]),
            None => Value::Unknown,
        }
    }
}
