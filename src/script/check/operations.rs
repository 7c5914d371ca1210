//! Calls of operations: binds what is known of the arguments to the row's parameters by the same rules as a run, and
//! lets the row compute shapes and dtypes.

use super::flow::Flow;
use super::value::Value;
use crate::base::arithmetic;
use crate::base::attr::{Attr, Ints, Text};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::op::args::{Arg, Args};
use crate::op::dry_run::{self, Outcome};
use crate::op::params::{self, Look};
use crate::op::row::{Default, Kind, Lower, Op, Returns};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// An argument, as far as it is known.
enum Known {
    Is(Arg),
    /// A value of the right kind, or of a kind that only a run can determine.
    Open,
}

/// The keywords of a call: names with values, or an unknown map.
enum Keywords {
    None,
    Are(Rc<BTreeMap<String, Value>>),
    Open,
}

impl<'a> Flow<'a> {
    /// A call of a row with these arguments, the receiver of a method first.
    pub(super) fn row(&mut self, token: u32, op: &'static Op, inplace: bool, values: &[Value]) -> Value {
        let underscore = if inplace { "_" } else { "" };
        let plain = |value: &Value| if value.is_known() { value.clone() } else { Value::Unknown };
        let values: Vec<Value> = values.iter().map(plain).collect();
        match bind(op, &values) {
            Err(mut diag) => {
                if !diag.message.starts_with('`') {
                    diag.message = format!("`{}{underscore}`: {}", op.name, diag.message);
                }
                self.report_at(token, diag, "in this call");
                Value::Unknown
            }
            Ok(None) => unknown_result(op, inplace),
            Ok(Some(args)) => {
                let outcome = match inplace {
                    true => dry_run::inplace(op, args),
                    false => dry_run::results(op, args),
                };
                match outcome {
                    Outcome::Unknown => unknown_result(op, inplace),
                    Outcome::Refused(mut diag) => {
                        // The default float dtype may be another one.
                        if diag.code == code::DTYPE && self.world.dtypes_change {
                            return unknown_result(op, inplace);
                        }
                        if !diag.message.starts_with('`') {
                            diag.message = format!("`{}{underscore}`: {}", op.name, diag.message);
                        }
                        self.report_at(token, diag, "in this call");
                        unknown_result(op, inplace)
                    }
                    Outcome::Results(_) if inplace => values[0].clone(),
                    Outcome::Results(results) => known_result(op, results),
                }
            }
        }
    }
}

/// The script's result, if shapes and dtypes are known.
fn known_result(op: &'static Op, mut results: Vec<crate::op::tensor::Tensor>) -> Value {
    if op.truth {
        return Value::Bool(None);
    }
    let tensor = |tensor| Value::Tensor(Some(tensor));
    match op.results {
        Returns::Named(names) if results.len() == names.len() => {
            let named = names.iter().map(|name| name.to_string()).zip(results.into_iter().map(tensor));
            Value::Map(Some(Rc::new(named.collect())))
        }
        Returns::One | Returns::Named(_) if results.len() == 1 => tensor(results.swap_remove(0)),
        _ => Value::Unknown,
    }
}

/// The script's result, if they are not.
fn unknown_result(op: &'static Op, inplace: bool) -> Value {
    match op.results {
        _ if inplace => Value::Tensor(None),
        _ if op.truth => Value::Bool(None),
        Returns::One => Value::Tensor(None),
        _ => Value::Unknown,
    }
}

/// The arguments of a call: none if some are unknown, an error if one of them is certainly wrong.
fn bind(op: &'static Op, values: &[Value]) -> Result<Option<Args>> {
    let keywords = keywords(op, values);
    let positional = values.len() - !matches!(keywords, Keywords::None) as usize;
    let values = &values[..positional];
    let mut args = Args::default();
    args.0.resize(op.params.len(), Arg::None);
    let mut open = vec![false; op.params.len()];
    let mut all = true;
    let look = |at: usize| match values[at] {
        Value::Tensor(_) => Look::Tensor,
        Value::Int(_) => Look::Int,
        Value::Float(Some(x)) if x.fract() == 0.0 => Look::Whole,
        _ => Look::Other,
    };
    let spread = params::spread(op, positional, look);
    let several = params::several(op, positional, look);
    let loose = op.params.iter().position(|param| matches!(param.kind, Kind::Sizes | Kind::Tensors));
    // Perhaps sizes or tensors one by one.
    let unclear = loose.is_some_and(|at| {
        let list = values.get(at..).unwrap_or(&[]);
        list.len() > 1
            && list.iter().any(|value| matches!(value, Value::Unknown | Value::Number | Value::Float(None)))
            && !matches!(list[0], Value::Array(_))
    });
    if unclear {
        return match keywords {
            Keywords::Are(map) => map
                .keys()
                .find(|name| params::place(op, name).is_none() && !(*name == "pin_memory" && params::makes(op)))
                .map_or(Ok(None), |name| Err(params::unknown_keyword(op, name))),
            _ => Ok(None),
        };
    }
    // As in a run, the count is checked before the values.
    if spread.is_none() && several.is_none() && positional > params::positional(op) {
        return Err(params::too_many(op, positional));
    }
    for (at, value) in values.iter().enumerate() {
        if spread == Some(at) || several == Some(at) {
            args.0[at] = match listed(op.params[at].kind, &values[at..]) {
                Some(arg) => arg,
                None => {
                    (open[at], all) = (true, false);
                    Arg::None
                }
            };
            break;
        }
        let Some(param) = params::at(op, at) else {
            return Err(params::too_many(op, positional));
        };
        match argument(op, param.kind, value).map_err(|diag| named(diag, param.name))? {
            Known::Is(arg) => args.0[at] = arg,
            Known::Open => (open[at], all) = (true, false),
        }
    }
    let mut hidden = false;
    match keywords {
        Keywords::None => {}
        Keywords::Open => (hidden, all) = (true, false),
        Keywords::Are(map) => {
            for (name, value) in map.iter() {
                if name == "pin_memory" && params::makes(op) {
                    continue;
                }
                let Some(at) = params::place(op, name) else { return Err(params::unknown_keyword(op, name)) };
                if at < positional
                    && (open[at] || !matches!(args.0[at], Arg::None))
                    && !matches!(values[at], Value::Unknown)
                {
                    return Err(params::given_twice(name));
                }
                let param = &op.params[at];
                if param.kind == Kind::Ignored {
                    if value.is_known() {
                        let truth = match value {
                            Value::Bool(truth) => Some(truth.unwrap_or(false)),
                            _ => None,
                        };
                        params::taken(param.name, matches!(value, Value::Unit), truth)?;
                    }
                    continue;
                }
                match argument(op, param.kind, value).map_err(|diag| named(diag, param.name))? {
                    Known::Is(arg) => args.0[at] = arg,
                    Known::Open => (open[at], all) = (true, false),
                }
            }
        }
    }
    // The last argument may be a map of keywords.
    let may_end_in_keywords = matches!(values.last(), Some(Value::Unknown | Value::Map(None)));
    for (at, param) in op.params.iter().enumerate() {
        let is_missing = param.default == Default::Required && matches!(args.0[at], Arg::None) && !open[at];
        if is_missing && !hidden && !may_end_in_keywords {
            return Err(params::missing(op, param));
        }
        all &= !is_missing;
    }
    let first = op.params.first().is_some_and(|p| p.kind == Kind::Operand && p.default == Default::Required);
    if all && first && args.tensors().is_empty() {
        // Numbers only: a run decides which rows accept them.
        return Ok(None);
    }
    Ok(all.then_some(args))
}

fn named(diag: Box<Diag>, name: &str) -> Box<Diag> {
    params::of_parameter(diag, name)
}

/// The trailing map, if it holds keywords.
fn keywords(op: &Op, values: &[Value]) -> Keywords {
    let Some(Value::Map(map)) = values.last() else { return Keywords::None };
    let receiver = op.params.first().is_some_and(|param| {
        let named = map.as_ref().is_some_and(|map| map.keys().any(|key| params::place(op, key) == Some(0)));
        values.len() == 1 && matches!(param.kind, Kind::Tensor) && !named
    });
    match map {
        _ if receiver => Keywords::None,
        Some(map) => Keywords::Are(map.clone()),
        None => Keywords::Open,
    }
}

/// Sizes or tensors that are passed one by one.
fn listed(kind: Kind, values: &[Value]) -> Option<Arg> {
    if kind == Kind::Tensors {
        let tensors = values.iter().map(|value| match value {
            Value::Tensor(tensor) => tensor.clone(),
            _ => None,
        });
        return tensors.collect::<Option<Vec<_>>>().map(Arg::Tensors);
    }
    let sizes = values.iter().map(|value| if let Value::Int(n) = value { *n } else { None });
    sizes.collect::<Option<Ints>>().map(|sizes| Arg::Attr(Attr::Ints(sizes)))
}

fn expected(what: &str, value: &Value) -> Box<Diag> {
    let actual = value.describe();
    let diag = Diag::error(code::ARGUMENT_TYPE, format!("{what} is expected, not {actual}"));
    match params::made_a_tensor(what, &actual) {
        Some(help) => diag.help(help),
        None => diag,
    }
}

/// Whether a value is certainly neither a number nor a tensor of one element, which is accepted as a number.
fn no_number(value: &Value) -> bool {
    use Value::{Array, Char, Closure, Map, Str, Unit};
    matches!(value, Str(_) | Array(_) | Map(_) | Closure(_) | Char | Unit)
}

/// Whether a value is certainly no integer.
fn no_integer(value: &Value) -> bool {
    no_number(value) || matches!(value, Value::Float(_) | Value::Bool(_) | Value::Range(_)) || is_many(value)
}

/// Whether a value is a tensor that does not have one element, and so is no number.
fn is_many(value: &Value) -> bool {
    matches!(value, Value::Tensor(Some(tensor)) if tensor.numel() != 1)
}

fn not_one(value: &Value) -> Box<Diag> {
    let n = if let Value::Tensor(Some(tensor)) = value { tensor.numel() } else { 0 };
    Diag::error(code::SHAPE, format!("a tensor of {n} elements is not one number"))
}

/// Integers of an array; whatever is refused here is refused in a run.
fn integers(value: &Value) -> Result<Known> {
    let Value::Array(Some(items)) = value else { return Ok(Known::Open) };
    if let Some(wrong) = items.iter().find(|item| no_integer(item)) {
        return Err(expected("an integer", wrong));
    }
    Ok(match value.ints() {
        Some(list) => Known::Is(Arg::Attr(Attr::Ints(list.into_iter().collect()))),
        None => Known::Open,
    })
}

/// A value as an argument of some kind. Whatever is refused here is refused in a run.
/// A value in which floats stand for the integers that they are.
fn wholes(value: &Value) -> Value {
    match value {
        Value::Float(None) => Value::Number,
        Value::Float(Some(x)) => arithmetic::whole(*x).map_or(value.clone(), |whole| Value::Int(Some(whole))),
        Value::Array(Some(items)) => Value::Array(Some(Rc::new(items.iter().map(wholes).collect()))),
        value => value.clone(),
    }
}

fn argument(op: &Op, kind: Kind, value: &Value) -> Result<Known> {
    let open = Ok(Known::Open);
    let is = |attr: Attr| Ok(Known::Is(Arg::Attr(attr)));
    let as_integers = !matches!(kind, Kind::Operand | Kind::Number | Kind::Float | Kind::Floats | Kind::NumberOrText);
    let as_integers = as_integers && !matches!(kind, Kind::FloatsOrTensors);
    let value = &if as_integers { wholes(value) } else { value.clone() };
    match (kind, value) {
        (_, Value::Unknown) => return open,
        (Kind::Tensor | Kind::Operand, Value::Unit) => return Ok(Known::Is(Arg::None)),
        (Kind::Tensor | Kind::Operand, Value::Tensor(tensor)) => {
            return Ok(tensor.clone().map_or(Known::Open, |tensor| Known::Is(Arg::Tensor(tensor))));
        }
        (Kind::Tensor, value) => return Err(expected("a tensor", value)),
        (Kind::Operand, value) if no_number(value) => return Err(expected("a tensor or a number", value)),
        (_, Value::Unit) => return Ok(Known::Is(Arg::None)),
        _ => {}
    }
    match kind {
        Kind::Operand | Kind::Number => match value {
            Value::Int(Some(n)) => is(Attr::Scalar(Scalar::Int(*n))),
            Value::Float(Some(x)) => is(Attr::Scalar(Scalar::Float(*x))),
            // An element-wise row only needs the category of a number.
            Value::Int(None) if matches!(op.lower, Lower::Map { .. }) => is(Attr::Scalar(Scalar::Int(1))),
            Value::Float(None) if matches!(op.lower, Lower::Map { .. }) => is(Attr::Scalar(Scalar::Float(1.5))),
            value if no_number(value) => Err(expected("a number", value)),
            value if is_many(value) && matches!(kind, Kind::Number) => Err(not_one(value)),
            _ => open,
        },
        Kind::Int | Kind::Dim => match value {
            Value::Int(Some(n)) => is(Attr::Int(*n)),
            value if is_many(value) && kind == Kind::Int => Err(not_one(value)),
            value if no_integer(value) && kind == Kind::Dim => Err(expected("a dimension (an integer)", value)),
            value if no_integer(value) => Err(expected("an integer", value)),
            _ => open,
        },
        Kind::Float => match value {
            Value::Int(Some(n)) => is(Attr::Float(*n as f64)),
            Value::Float(Some(x)) => is(Attr::Float(*x)),
            value if no_number(value) => Err(expected("a number", value)),
            value if is_many(value) => Err(not_one(value)),
            _ => open,
        },
        Kind::Bool => match value {
            Value::Bool(Some(flag)) => is(Attr::Bool(*flag)),
            Value::Bool(None) | Value::Number | Value::Tensor(_) => open,
            value => Err(expected("true or false", value)),
        },
        Kind::Dims | Kind::Sizes | Kind::Ints | Kind::OptInts | Kind::DimsOrFlag => match value {
            Value::Int(Some(n)) => is(Attr::Ints(Ints::from_slice(&[*n]))),
            Value::Array(_) if kind == Kind::OptInts => match value.ints() {
                Some(list) => is(Attr::Ints(list.into_iter().collect())),
                None => open,
            },
            Value::Array(_) => integers(value),
            Value::Bool(_) if kind == Kind::DimsOrFlag => open,
            // `x.view(dtype)`
            Value::Str(text)
                if kind == Kind::Sizes && text.as_ref().is_none_or(|text| DType::parse(text).is_some()) =>
            {
                open
            }
            value if no_integer(value) => Err(expected("an integer or an array of integers", value)),
            _ => open,
        },
        Kind::IntOrInts => match value {
            Value::Int(Some(n)) => is(Attr::Int(*n)),
            Value::Array(_) => integers(value),
            value if no_integer(value) => Err(expected("an integer or an array of integers", value)),
            _ => open,
        },
        Kind::IntsOr(words) => match value {
            Value::Str(Some(text)) => is(Attr::Str(params::word(text, words)?.into())),
            Value::Int(Some(n)) => is(Attr::Ints(Ints::from_slice(&[*n]))),
            Value::Array(_) => integers(value),
            _ => open,
        },
        Kind::Str(words) => match value {
            Value::Str(Some(text)) => is(Attr::Str(params::word(text, words)?.into())),
            Value::Str(None) => open,
            value => Err(expected("a string", value)),
        },
        Kind::Text => match value {
            Value::Str(Some(text)) => is(Attr::Str(Text::Given(Arc::from(&**text)))),
            Value::Str(None) => open,
            value => Err(expected("a string", value)),
        },
        Kind::DType => match value {
            Value::DType(Some(dtype)) => is(Attr::DType(*dtype)),
            Value::Str(Some(text)) => is(Attr::DType(params::dtype(text)?)),
            Value::DType(None) | Value::Str(None) => open,
            value => Err(expected("a dtype such as \"f32\"", value)),
        },
        Kind::Device => match value {
            Value::Str(Some(text)) => params::device(text).and_then(|_| is(Attr::Device(DeviceId::Cpu))),
            Value::Str(None) | Value::Device => is(Attr::Device(DeviceId::Cpu)),
            Value::Int(_) => is(Attr::Device(DeviceId::Cpu)),
            value => Err(expected("a device such as \"cpu\" or \"cuda:0\"", value)),
        },
        Kind::Tensors => tensors(value),
        _ => open,
    }
}

fn tensors(value: &Value) -> Result<Known> {
    match value {
        Value::Tensor(Some(tensor)) => Ok(Known::Is(Arg::Tensors(vec![tensor.clone()]))),
        Value::Array(Some(items)) => {
            let mut list = Vec::new();
            for item in items.iter() {
                match item {
                    Value::Tensor(Some(tensor)) => list.push(tensor.clone()),
                    Value::Tensor(None) | Value::Unknown => return Ok(Known::Open),
                    other => return Err(expected("an array of tensors", other)),
                }
            }
            Ok(Known::Is(Arg::Tensors(list)))
        }
        Value::Tensor(None) | Value::Array(None) => Ok(Known::Open),
        value => Err(expected("an array of tensors", value)),
    }
}
