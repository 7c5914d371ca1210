//! From Rhai's values to arguments of a row: positions, keywords, numbers, names.

use crate::base::arithmetic::whole;
use crate::base::attr::{Attr, Ints, Text};
use crate::base::code;
use crate::base::device_id::{DeviceId, DeviceSpec};
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::params::{self, Look};
use crate::op::row::{Default, Kind, Op};
use crate::script::host::Host;
use crate::script::values::generator::GeneratorValue;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::{DTypeValue, DeviceValue, Tensor};
use rhai::{Array, Dynamic, EvalAltResult, Map, NativeCallContext};
use std::sync::Arc;

/// Binds the values of a call to the row's parameters: fills `args`, which are empty, as far as something is given.
/// Not: arguments as the result, which would be copied at each return.
pub fn bind(host: &Host, op: &'static Op, values: &mut [&mut Dynamic], args: &mut Args) -> Result<()> {
    let keywords = keywords(op, values);
    let positional = values.len() - keywords.is_some() as usize;
    let spread = params::spread(op, positional, |at| kind_of(values[at]));
    let several = params::several(op, positional, |at| kind_of(values[at]));
    // The count is checked before the values: `check` knows the count alone.
    let too_many = positional > 0 && params::at(op, positional - 1).is_none();
    if too_many && spread.is_none() && several.is_none() {
        return Err(params::too_many(op, positional));
    }
    for at in 0..positional {
        if several == Some(at) {
            let list = values[at..positional].iter().filter_map(|v| v.read_lock::<Tensor>().map(|t| t.clone()));
            args.0.push(Arg::Tensors(list.collect()));
            break;
        }
        if spread == Some(at) {
            args.0.push(collect_sizes(op, at, &values[at..positional])?);
            break;
        }
        let Some(param) = params::at(op, at) else {
            return Err(params::too_many(op, positional));
        };
        match argument(host, param.kind, values[at]) {
            Ok(arg) => args.0.push(arg),
            Err(diag) => return Err(name_argument(diag, param.name)),
        }
    }
    if let Some(map) = keywords {
        args.0.resize(op.params.len(), Arg::None);
        bind_keywords(host, op, positional, map, args)?;
    }
    for (at, param) in op.params.iter().enumerate() {
        if matches!(param.default, Default::Required) && matches!(args.get(at), Arg::None) {
            return Err(missing(op, at, positional));
        }
    }
    Ok(())
}

/// The error of a call without a required argument.
#[cold]
fn missing(op: &Op, at: usize, positional: usize) -> Box<Diag> {
    let param = &op.params[at];
    // `x.grad.zero_()` before the first `backward`.
    if at == 0 && positional > 0 && param.kind.takes_tensor() {
        return Diag::error(code::ARGUMENT_TYPE, "a tensor is expected, not `()`")
            .help("a gradient is `()` until `backward()` has made one: `if x.grad != () { .. }`");
    }
    params::missing(op, param)
}

/// Takes `pin_memory` out of the keywords of a call that creates a tensor: the other values, and whether it was true.
/// These rows have no such parameter: the engine decides where their results are.
pub fn without_pinned(op: &Op, values: &[&mut Dynamic]) -> Result<Option<(Vec<Dynamic>, bool)>> {
    let Some((last, before)) = values.split_last().filter(|(last, _)| last.is_map() && params::makes(op)) else {
        return Ok(None);
    };
    let mut keywords = last.read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
    let Some(value) = keywords.remove("pin_memory") else { return Ok(None) };
    let mut rest: Vec<Dynamic> = before.iter().map(|value| value.flatten_clone()).collect();
    rest.push(keywords.into());
    Ok(Some((rest, pins(&value)?)))
}

/// The generator that a call of a row names, for rows that draw.
pub fn generator(op: &Op, values: &[&mut Dynamic]) -> Option<GeneratorValue> {
    let last = values.last().filter(|last| last.is_map() && params::takes_generator(op))?;
    let keywords = last.read_lock::<Map>()?;
    keywords.get("generator")?.read_lock::<GeneratorValue>().map(|generator| generator.clone())
}

/// The value of `pin_memory`.
pub fn pins(value: &Dynamic) -> Result<bool> {
    let not = |_| {
        Diag::error(code::ARGUMENT_TYPE, format!("`pin_memory` is true or false, not {}", type_names::of_value(value)))
    };
    value.as_bool().map_err(not)
}

fn kind_of(value: &Dynamic) -> Look {
    match value {
        _ if value.is_int() => Look::Int,
        _ if value.is_float() && integer(value).is_some() => Look::Whole,
        _ if value.read_lock::<Tensor>().is_some() => Look::Tensor,
        _ => Look::Other,
    }
}

#[cold]
fn name_argument(diag: Box<Diag>, name: &str) -> Box<Diag> {
    params::of_parameter(diag, name)
}

/// The trailing map, when it holds keywords.
fn keywords(op: &Op, values: &mut [&mut Dynamic]) -> Option<Map> {
    let last = values.last()?;
    // A first argument that is a map is a mistake in the call, unless the row takes nothing by position.
    let first = op.params.first().filter(|_| values.len() == 1 && last.is_map());
    let is_receiver = first.is_some_and(|param| {
        let names = |map: &Map| map.keys().any(|key| params::place(op, key) == Some(0));
        let named = last.read_lock::<Map>().is_some_and(|map| names(&map));
        matches!(param.kind, Kind::Tensor) && !named
    });
    if !last.is_map() || is_receiver {
        return None;
    }
    // Rhai passes the first argument by reference when it is a variable: only later ones may be moved out.
    let by_reference = values.len() == 1;
    values.last_mut().map(|value| if by_reference { value.clone() } else { std::mem::take(*value) }.cast::<Map>())
}

fn bind_keywords(host: &Host, op: &'static Op, positional: usize, map: Map, args: &mut Args) -> Result<()> {
    for (name, value) in map {
        let Some(at) = params::place(op, &name) else { return Err(params::unknown_keyword(op, &name)) };
        if at < positional && !matches!(args.0[at], Arg::None) {
            return Err(params::given_twice(&name));
        }
        let param = &op.params[at];
        if param.kind == Kind::Ignored {
            if value.is::<GeneratorValue>() && param.name == "generator" {
                continue;
            }
            let truth = value.is_bool().then(|| value.as_bool().unwrap_or_default());
            params::taken(param.name, value.is_unit(), truth)?;
            if param.name == "inplace" && truth == Some(true) {
                args.0[at] = Arg::Attr(Attr::Bool(true));
            }
            continue;
        }
        args.0[at] = argument(host, param.kind, &value).map_err(|diag| name_argument(diag, param.name))?;
    }
    Ok(())
}

fn collect_sizes(op: &Op, at: usize, values: &[&mut Dynamic]) -> Result<Arg> {
    let sizes: Ints = values.iter().filter_map(|value| integer(value)).collect();
    debug_assert_eq!(op.params[at].kind, Kind::Sizes);
    Ok(Arg::Attr(Attr::Ints(sizes)))
}

#[cold]
fn expected(what: &str, value: &Dynamic) -> Box<Diag> {
    let given = type_names::of_value(value);
    let diag = Diag::error(code::ARGUMENT_TYPE, format!("{what} is expected, not {given}"));
    match params::made_a_tensor(what, &given) {
        _ if value.is::<Sparse>() => diag.help("`s.to_dense()` is a tensor that every operation takes"),
        Some(help) => diag.help(help),
        None => diag,
    }
}

fn argument(host: &Host, kind: Kind, value: &Dynamic) -> Result<Arg> {
    if value.is_unit() && !matches!(kind, Kind::Tensor | Kind::Operand) {
        return Ok(Arg::None);
    }
    let attr = match kind {
        Kind::Tensor => {
            return match value.read_lock::<Tensor>() {
                Some(tensor) => Ok(Arg::Tensor(tensor.clone())),
                None if value.is_unit() => Ok(Arg::None),
                None => Err(expected("a tensor", value)),
            };
        }
        Kind::Operand => {
            if let Some(tensor) = value.read_lock::<Tensor>() {
                return Ok(Arg::Tensor(tensor.clone()));
            }
            if value.is_unit() {
                return Ok(Arg::None);
            }
            Attr::Scalar(scalar(value).ok_or_else(|| expected("a tensor or a number", value))?)
        }
        Kind::Number => {
            if let Some(tensor) = value.read_lock::<Tensor>()
                && tensor.dtype().is_complex()
                && tensor.numel() == 1
            {
                // A complex number is a tensor; the rows that take one as a number have a rule for it.
                return Ok(Arg::Tensor(tensor.clone()));
            }
            Attr::Scalar(number(host, value)?)
        }
        Kind::Tensors => return tensors(value),
        Kind::OptTensors => return opt_tensors(value),
        Kind::Int => Attr::Int(int(host, value)?),
        Kind::Dim => Attr::Int(integer(value).ok_or_else(|| expected("a dimension (an integer)", value))?),
        Kind::Float => Attr::Float(number(host, value)?.to_f64()),
        Kind::Bool => match value.as_bool() {
            Ok(b) => Attr::Bool(b),
            Err(_) => return Err(expected("true or false", value)),
        },
        Kind::DimsOrFlag if value.is_bool() => Attr::Bool(value.as_bool().unwrap_or_default()),
        Kind::Dims | Kind::DimsOrFlag | Kind::Sizes | Kind::Ints => Attr::Ints(ints(host, value)?),
        Kind::IntsOr(words) => match value.is_string() {
            true => choice(value, words)?,
            false => Attr::Ints(ints(host, value)?),
        },
        Kind::OptInts => Attr::Ints(opt_ints(host, value)?),
        Kind::IntOrInts => int_or_ints(host, value)?,
        Kind::Axes => axes(host, value)?,
        Kind::NumberOrText => match value.read_lock::<rhai::ImmutableString>() {
            Some(text) => Attr::Str(Text::Given(Arc::from(text.as_str()))),
            None => Attr::Scalar(number(host, value)?),
        },
        Kind::Floats => Attr::Floats(floats(host, value)?),
        Kind::FloatsOrTensors | Kind::IntsOrTensors if holds_tensors(value) => return tensors(value),
        Kind::FloatsOrTensors if value.is_array() => Attr::Floats(floats(host, value)?),
        Kind::FloatsOrTensors => Attr::Float(number(host, value)?.to_f64()),
        Kind::IntsOrTensors => Attr::Ints(ints(host, value)?),
        Kind::Str(choices) => choice(value, choices)?,
        Kind::Text => match value.read_lock::<rhai::ImmutableString>() {
            Some(text) => Attr::Str(Text::Given(Arc::from(text.as_str()))),
            None => return Err(expected("a string", value)),
        },
        Kind::DType => Attr::DType(dtype(value)?),
        Kind::Device => Attr::Device(device(host, value)?),
        Kind::Ignored => Attr::None,
    };
    Ok(Arg::Attr(attr))
}

/// A plain number.
pub fn scalar(value: &Dynamic) -> Option<Scalar> {
    // Asked before it is read: what is of another type makes Rhai look up its name.
    if value.is_int() {
        return value.as_int().ok().map(Scalar::Int);
    }
    if value.is_float() {
        return value.as_float().ok().map(Scalar::Float);
    }
    value.as_bool().ok().map(Scalar::Bool)
}

/// A number, or a tensor of one element (reading it waits).
fn number(host: &Host, value: &Dynamic) -> Result<Scalar> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return crate::tensor::observe::item(&host.rt, &tensor);
    }
    scalar(value).ok_or_else(|| expected("a number", value))
}

pub fn int(host: &Host, value: &Dynamic) -> Result<i64> {
    if value.is_int()
        && let Ok(i) = value.as_int()
    {
        return Ok(i);
    }
    match number(host, value)? {
        Scalar::Int(i) => Ok(i),
        Scalar::Float(x) => whole(x).ok_or_else(|| no_integer(x)),
        _ => Err(expected("an integer", value)),
    }
}

/// The integer that a value is or, as a float that is a whole number, stands for.
pub fn integer(value: &Dynamic) -> Option<i64> {
    value.as_int().ok().or_else(|| whole(value.as_float().ok()?))
}

/// How often `*` repeats an array or a string: a float that is a whole number stands for the integer. `types`: the operands,
/// as Rhai names them, between which the operator does not work with another float.
pub fn times(context: &NativeCallContext, types: &str, times: f64) -> std::result::Result<i64, Box<EvalAltResult>> {
    let no_function = || EvalAltResult::ErrorFunctionNotFound(format!("* ({types})"), context.call_position());
    whole(times).ok_or_else(|| Box::new(no_function()))
}

/// The error of a float where an integer is needed.
#[cold]
pub fn no_integer(x: f64) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, format!("an integer is expected, not {x}, which is no whole number"))
        .help("`a.floor_divide(b)` divides integers without a remainder, `x.to_int()` cuts a float off")
}

pub fn ints(host: &Host, value: &Dynamic) -> Result<Ints> {
    if let Some(array) = value.read_lock::<Array>() {
        // Not: `collect` of results, at several times the cost.
        let mut ints = Ints::with_capacity(array.len());
        for item in array.iter() {
            ints.push(int(host, item)?);
        }
        return Ok(ints);
    }
    Ok(Ints::from_slice(&[int(host, value).map_err(|_| expected("an integer or an array of integers", value))?]))
}

/// An integer stays one; an array or a tensor of one dimension becomes a list.
fn int_or_ints(host: &Host, value: &Dynamic) -> Result<Attr> {
    if value.is_array() {
        return Ok(Attr::Ints(ints(host, value)?));
    }
    if let Some(tensor) = value.read_lock::<Tensor>().filter(|tensor| tensor.ndim() == 1 && !tensor.dtype().is_float())
    {
        let values = crate::tensor::observe::scalars(&host.rt, &tensor)?;
        return Ok(Attr::Ints(values.into_iter().map(Scalar::to_i64).collect()));
    }
    int(host, value).map(Attr::Int).map_err(|_| expected("an integer or an array of integers", value))
}

/// `2`, `[1, 0]` or `[[1, 2], [0, 1]]`: dims of the left and of the right operand.
fn axes(host: &Host, value: &Dynamic) -> Result<Attr> {
    let Some(array) = value.read_lock::<Array>() else {
        return int(host, value).map(Attr::Int).map_err(|_| expected("an integer or two arrays of dims", value));
    };
    let [left, right] = &array[..] else {
        return Err(expected("an integer or two arrays of dims", value));
    };
    let (mut left, right) = (ints(host, left)?, ints(host, right)?);
    if left.len() != right.len() {
        fail!(VALUE, "{} dims of the left operand are paired with {} of the right", left.len(), right.len());
    }
    left.extend(right);
    Ok(Attr::Ints(left))
}

/// Integers of which some may be `()`.
fn opt_ints(host: &Host, value: &Dynamic) -> Result<Ints> {
    let Some(array) = value.read_lock::<Array>() else { return ints(host, value) };
    array.iter().map(|item| if item.is_unit() { Ok(crate::op::args::ABSENT) } else { int(host, item) }).collect()
}

fn floats(host: &Host, value: &Dynamic) -> Result<Arc<[f64]>> {
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(|item| number(host, item).map(Scalar::to_f64)).collect();
    }
    Ok(Arc::from([number(host, value)?.to_f64()]))
}

/// An array that begins with a tensor of one or more dimensions.
fn holds_tensors(value: &Dynamic) -> bool {
    let Some(array) = value.read_lock::<Array>() else { return false };
    array.first().is_some_and(|first| first.read_lock::<Tensor>().is_some_and(|tensor| tensor.ndim() > 0))
}

fn tensors(value: &Dynamic) -> Result<Arg> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(Arg::Tensors(vec![tensor.clone()]));
    }
    let Some(array) = value.read_lock::<Array>() else {
        return Err(expected("an array of tensors", value));
    };
    let list: Result<Vec<Tensor>> = array
        .iter()
        .map(|item| item.read_lock::<Tensor>().map(|t| t.clone()).ok_or_else(|| expected("an array of tensors", item)))
        .collect();
    Ok(Arg::Tensors(list?))
}

fn opt_tensors(value: &Dynamic) -> Result<Arg> {
    let Some(array) = value.read_lock::<Array>() else {
        return Err(expected("an array of tensors and `()`", value));
    };
    let one = |item: &Dynamic| match item.read_lock::<Tensor>() {
        Some(tensor) => Ok(Some(tensor.clone())),
        None if item.is_unit() => Ok(None),
        None => Err(expected("an array of tensors and `()`", item)),
    };
    Ok(Arg::OptTensors(array.iter().map(one).collect::<Result<_>>()?))
}

fn choice(value: &Dynamic, choices: &'static [&'static str]) -> Result<Attr> {
    let Some(text) = value.read_lock::<rhai::ImmutableString>() else {
        return Err(expected("a string", value));
    };
    params::word(&text, choices).map(|choice| Attr::Str(choice.into()))
}

pub fn dtype(value: &Dynamic) -> Result<DType> {
    if let Some(dtype) = value.read_lock::<DTypeValue>() {
        return Ok(dtype.0);
    }
    let Some(text) = value.read_lock::<rhai::ImmutableString>() else {
        let diag = expected("a dtype such as \"f32\"", value);
        // `zeros(2, 3, "f32")`.
        return Err(if value.is_int() {
            diag.help("several sizes stand in an array: `zeros([2, 3], \"f32\")`")
        } else {
            diag
        });
    };
    params::dtype(&text)
}

pub fn device(host: &Host, value: &Dynamic) -> Result<DeviceId> {
    match spec(value)? {
        DeviceSpec::Cpu => Ok(DeviceId::Cpu),
        DeviceSpec::CurrentCuda => host.rt.current_cuda(),
        DeviceSpec::Cuda(index) => host.rt.cuda_device(index as i64),
    }
}

/// The device that a script wrote; does not check that it exists.
pub fn spec(value: &Dynamic) -> Result<DeviceSpec> {
    if let Some(device) = value.read_lock::<DeviceValue>() {
        return Ok(device.0);
    }
    if let Some(index) = integer(value) {
        let index = u16::try_from(index).map_err(|_| {
            Diag::error(code::UNKNOWN_DEVICE, format!("there is no CUDA device with index {index}"))
                .help("indices count from 0; `cuda::device_count()` tells how many there are")
        });
        return index.map(DeviceSpec::Cuda);
    }
    let Some(text) = value.read_lock::<rhai::ImmutableString>() else {
        return Err(expected("a device such as \"cpu\" or \"cuda:0\"", value));
    };
    params::device(&text)
}
