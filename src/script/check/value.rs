//! What is known of a value without running anything: its type, and the values of literals.

use super::layers::Layer;
use crate::base::dtype::DType;
use crate::base::signature::Gives;
use crate::op::tensor::Tensor;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum Value {
    Unknown,
    Unit,
    Bool(Option<bool>),
    Int(Option<i64>),
    Float(Option<f64>),
    /// An integer, a float or a bool.
    Number,
    Str(Option<Rc<str>>),
    Char,
    /// From its first integer to before its last.
    Range(Option<(i64, i64)>),
    Array(Option<Rc<Vec<Value>>>),
    Map(Option<Rc<BTreeMap<String, Value>>>),
    /// With shape and dtype where they are known.
    Tensor(Option<Tensor>),
    DType(Option<DType>),
    Device,
    /// Of a type that the program registers: `stream`, `timestamp`.
    Object(&'static str),
    /// With its number of parameters.
    Closure(Option<usize>),
    /// Created by the library: a layer, an optimizer, a tensor; not a map of keywords.
    Layer(Rc<Layer>),
}

impl Value {
    pub fn is_known(&self) -> bool {
        !matches!(self, Value::Unknown | Value::Layer(_))
    }

    /// What a signature says that a function gives.
    pub fn given_as(result: Gives) -> Value {
        match result {
            Gives::Int => Value::Int(None),
            Gives::Float => Value::Float(None),
            Gives::Number => Value::Number,
            Gives::Bool => Value::Bool(None),
            Gives::String => Value::Str(None),
            Gives::Array => Value::Array(None),
            Gives::Map => Value::Map(None),
            Gives::Tensor => Value::Tensor(None),
            Gives::Device => Value::Device,
            Gives::DType => Value::DType(None),
            Gives::Stream => Value::Object("stream"),
            Gives::Event => Value::Object("event"),
        }
    }

    /// Whether it may be a closure or a module.
    pub fn may_be_called(&self) -> bool {
        match self {
            Value::Map(Some(map)) => {
                map.get("forward").is_some_and(|forward| !forward.is_known() || forward.may_be_called())
            }
            Value::Closure(_) | Value::Layer(_) | Value::Map(None) | Value::Unknown | Value::Object(_) => true,
            _ => false,
        }
    }

    /// What is known of whatever a loop over this gives.
    pub fn item(&self) -> Value {
        let all = |items: &[Value], is: fn(&Value) -> bool| !items.is_empty() && items.iter().all(is);
        match self {
            Value::Range(_) => Value::Int(None),
            Value::Array(Some(items)) if all(items, |item| matches!(item, Value::Array(_))) => Value::Array(None),
            Value::Array(Some(items)) if all(items, |item| matches!(item, Value::Map(_))) => Value::Map(None),
            _ => Value::Unknown,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Str(Some(text)) => Some(text),
            _ => None,
        }
    }

    /// How messages name it.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(Some(tensor)) => format!("a tensor of shape {:?}", tensor.shape().as_slice()),
            _ => self.kind().to_string(),
        }
    }

    /// The same without what is known beyond the type.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Unknown | Value::Layer(_) => "a value",
            Value::Unit => "`()`",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Number => "a number",
            Value::Str(_) => "a string",
            Value::Char => "a character",
            Value::Range(_) => "a range",
            Value::Array(_) => "an array",
            Value::Map(_) => "a map",
            Value::Tensor(_) => "a tensor",
            Value::DType(_) => "a dtype",
            Value::Device => "a device",
            Value::Object(_) => "an object",
            Value::Closure(_) => "a function",
        }
    }

    /// The name of the type in the interpreter's signatures; none if unknown.
    pub fn type_name(&self) -> Option<&'static str> {
        Some(match self {
            Value::Unit => "()",
            Value::Bool(_) => "bool",
            Value::Int(_) => "i64",
            Value::Float(_) => "f64",
            Value::Str(_) => "string",
            Value::Char => "char",
            Value::Array(_) => "array",
            Value::Map(_) => "map",
            Value::Closure(_) => "Fn",
            Value::Object(name) => name,
            _ => return None,
        })
    }

    /// The type alone: what remains after a change of the value.
    pub fn widened(&self) -> Value {
        match self {
            Value::Bool(_) => Value::Bool(None),
            Value::Int(_) => Value::Int(None),
            Value::Str(_) => Value::Str(None),
            Value::Array(_) => Value::Array(None),
            Value::Map(_) => Value::Map(None),
            other => other.clone(),
        }
    }

    /// What is left where some tensor has got another shape in place.
    pub fn relaid(&self) -> Value {
        match self {
            Value::Tensor(_) => Value::Tensor(None),
            other => other.inside(Value::relaid),
        }
    }

    /// What is left where some module has got other parts.
    pub fn rebuilt(&self) -> Value {
        match self {
            Value::Layer(layer) if !matches!(**layer, Layer::Stepped(_)) => Value::Layer(Rc::new(Layer::Opaque)),
            other => other.inside(Value::rebuilt),
        }
    }

    /// With something else in the place of each part.
    fn inside(&self, part: fn(&Value) -> Value) -> Value {
        match self {
            Value::Array(Some(items)) => Value::Array(Some(Rc::new(items.iter().map(part).collect()))),
            Value::Map(Some(map)) => {
                let parts = map.iter().map(|(key, value)| (key.clone(), part(value)));
                Value::Map(Some(Rc::new(parts.collect())))
            }
            other => other.clone(),
        }
    }

    /// What holds for both of two values.
    pub fn join(&self, other: &Value) -> Value {
        match (self, other) {
            (Value::Unit, Value::Unit) => Value::Unit,
            (Value::Bool(a), Value::Bool(b)) => Value::Bool(a.filter(|_| a == b)),
            (Value::Int(a), Value::Int(b)) => Value::Int(a.filter(|_| a == b)),
            (Value::Float(a), Value::Float(b)) => Value::Float(a.filter(|_| a == b)),
            (Value::Str(a), Value::Str(b)) => Value::Str(a.clone().filter(|_| a == b)),
            (Value::Char, Value::Char) => Value::Char,
            (Value::Range(a), Value::Range(b)) => Value::Range(a.filter(|_| a == b)),
            (Value::Array(a), Value::Array(b)) => Value::Array(match (a, b) {
                (Some(a), Some(b)) if Rc::ptr_eq(a, b) => Some(a.clone()),
                _ => None,
            }),
            (Value::Map(a), Value::Map(b)) => Value::Map(match (a, b) {
                (Some(a), Some(b)) if Rc::ptr_eq(a, b) => Some(a.clone()),
                _ => None,
            }),
            (Value::Tensor(a), Value::Tensor(b)) => Value::Tensor(match (a, b) {
                (Some(a), Some(b)) if a.shape() == b.shape() && a.dtype() == b.dtype() => Some(a.clone()),
                _ => None,
            }),
            (Value::DType(a), Value::DType(b)) => Value::DType(a.filter(|_| a == b)),
            (Value::Device, Value::Device) => Value::Device,
            (Value::Object(a), Value::Object(b)) if a == b => Value::Object(a),
            (Value::Layer(a), Value::Layer(b)) if Rc::ptr_eq(a, b) => Value::Layer(a.clone()),
            (Value::Closure(a), Value::Closure(b)) => Value::Closure(a.filter(|_| a == b)),
            (a, b) if a.is_number() && b.is_number() => Value::Number,
            _ => Value::Unknown,
        }
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Float(_) | Value::Number | Value::Bool(_))
    }

    /// Integers of an array, if all of them are known.
    pub fn ints(&self) -> Option<Vec<i64>> {
        let Value::Array(Some(items)) = self else { return None };
        items.iter().map(|item| if let Value::Int(n) = item { *n } else { None }).collect()
    }
}

/// Shape and dtype of nested arrays of numbers, as `tensor` reads them; `Err` is the position of an irregular
/// element.
pub fn nested(value: &Value) -> Option<Result<(Vec<usize>, DType), String>> {
    match value {
        Value::Bool(_) => Some(Ok((Vec::new(), DType::Bool))),
        Value::Int(_) => Some(Ok((Vec::new(), DType::I64))),
        Value::Float(_) => Some(Ok((Vec::new(), DType::F32))),
        Value::Array(Some(items)) => {
            let mut found: Option<(Vec<usize>, DType)> = None;
            for (at, item) in items.iter().enumerate() {
                let (shape, dtype) = match nested(item)? {
                    Ok(inner) => inner,
                    Err(text) => return Some(Err(text)),
                };
                found = Some(match found {
                    None => (shape, dtype),
                    Some((first, before)) if first == shape => (first, before.promote(dtype)),
                    Some((first, _)) => {
                        let size = |shape: &[usize]| shape.first().map_or("no".into(), |n: &usize| n.to_string());
                        let (here, there) = (size(&shape), size(&first));
                        return Some(Err(format!(
                            "the array at [{at}] has {here} elements, the first one of its level {there}"
                        )));
                    }
                });
            }
            let (inner, dtype) = found.unwrap_or((Vec::new(), DType::F32));
            Some(Ok(([vec![items.len()], inner].concat(), dtype)))
        }
        _ => None,
    }
}
