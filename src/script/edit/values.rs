//! What a value can do, and how it is described, as far as the text tells.

use crate::script::check::layers::{Layer, Stepped};
use crate::script::check::value::Value;
use crate::script::manual;
use crate::script::manual::members;

/// The type of a value, of a tensor with dtype and shape where they are known; `None` if nothing is known.
pub fn describe(value: &Value) -> Option<String> {
    Some(match value {
        Value::Unknown => return None,
        Value::Tensor(Some(tensor)) => format!("tensor {} {:?}", tensor.dtype(), tensor.shape().as_slice()),
        Value::Tensor(None) => "tensor".into(),
        Value::Unit => "()".into(),
        Value::Bool(_) => "bool".into(),
        Value::Int(_) => "int".into(),
        Value::Float(_) => "float".into(),
        Value::Number => "number".into(),
        Value::Str(_) => "string".into(),
        Value::Char => "char".into(),
        Value::Range(Some((from, to))) => format!("range {from}..{to}"),
        Value::Range(None) => "range".into(),
        Value::Array(Some(items)) => format!("array of {}", items.len()),
        Value::Array(None) => "array".into(),
        Value::Map(Some(map)) => format!("map with {}", map.keys().cloned().collect::<Vec<_>>().join(", ")),
        Value::Map(None) => "map".into(),
        Value::DType(Some(dtype)) => format!("dtype {dtype}"),
        Value::DType(None) => "dtype".into(),
        Value::Device => "device".into(),
        Value::Object(name) => (*name).into(),
        Value::Closure(Some(count)) => format!("function of {count}"),
        Value::Closure(None) => "function".into(),
        Value::Layer(_) => "value of the library".into(),
    })
}

/// Dtype and shape of a tensor, if they are known: `f32 [2, 3]`.
pub fn shape(value: &Value) -> Option<String> {
    match value {
        Value::Tensor(Some(tensor)) => Some(format!("{} {:?}", tensor.dtype(), tensor.shape().as_slice())),
        _ => None,
    }
}

/// Whether it is certainly a tensor.
pub fn is_tensor(value: &Value) -> bool {
    matches!(value, Value::Tensor(_))
}

/// What the library's values have. Not: the entries that its own functions keep there.
fn of_library(layer: &Layer) -> Vec<String> {
    let names: &[&str] = match layer {
        Layer::Stepped(Stepped::Optimizer) => OPTIMIZER,
        Layer::Stepped(Stepped::Schedule) => SCHEDULE,
        Layer::Loader => LOADER,
        _ => return members::of_module(),
    };
    names.iter().map(|name| name.to_string()).collect()
}

const OPTIMIZER: &[&str] = &[
    "add_param_group(",
    "defaults",
    "get(",
    "load_state_dict(",
    "lr(",
    "name",
    "param_groups",
    "register_load_state_dict_post_hook(",
    "register_load_state_dict_pre_hook(",
    "register_state_dict_post_hook(",
    "register_state_dict_pre_hook(",
    "register_step_post_hook(",
    "register_step_pre_hook(",
    "set(",
    "set_lr(",
    "state",
    "state_dict(",
    "step(",
    "zero_grad(",
];
const SCHEDULE: &[&str] = &[
    "base_lrs",
    "get_last_lr(",
    "last_epoch",
    "last_lr(",
    "load_state_dict(",
    "name",
    "optimizer",
    "state_dict(",
    "step(",
];
const LOADER: &[&str] = &["batch_size", "dataset", "drop_last", "len(", "load_state_dict(", "sampler", "state_dict("];

const RANGE: &[&str] = &["contains", "filter", "is_empty", "len", "map", "to_array"];

/// What `catch (e)` gives of an error.
pub const ERROR: &[&str] = &["code", "column", "file", "help", "line", "message", "notes"];

/// What a batch of most datasets has.
pub const BATCH: &[&str] = &["x", "y"];

/// The names after a dot; those of methods end with a parenthesis. Of an unknown value, those of all usual types.
pub fn members(value: &Value) -> Vec<String> {
    let calls = |names: &[&str]| names.iter().map(|name| format!("{name}(")).collect::<Vec<String>>();
    let mut names = match value {
        Value::Tensor(_) => members::of_tensor(),
        Value::Str(_) => members::of_text(),
        Value::Array(_) => calls(members::ARRAY),
        Value::Map(Some(map)) => map.keys().cloned().chain(calls(members::MAP)).collect(),
        Value::Map(None) => calls(members::MAP),
        Value::Int(_) => calls(members::INT),
        Value::Float(_) => calls(members::FLOAT),
        Value::Number => calls(&[members::INT, members::FLOAT].concat()),
        Value::Closure(_) => calls(members::CLOSURE),
        Value::Device => manual::members_of("d"),
        Value::Object("stream") => members::of_stream(),
        Value::Object("event") => members::of_event(),
        Value::Object("set") => members::of_set(),
        Value::Object(name) => manual::members_of(super::guess::owner(value).unwrap_or(name)),
        Value::Layer(layer) => of_library(layer),
        Value::Unknown => {
            let mut all = members::of_tensor();
            all.extend(calls(&[members::ARRAY, members::MAP].concat()));
            all.extend(members::of_text());
            all.extend(members::of_module());
            all
        }
        Value::Range(_) => calls(RANGE),
        Value::Unit | Value::Bool(_) | Value::Char | Value::DType(_) => Vec::new(),
    };
    names.retain(|name| !name.starts_with('_') && !name.contains("::"));
    names.sort_unstable();
    names.dedup();
    names
}
