//! The bookkeeping of `std/optim`: which parameters have a gradient, how many steps each has done, and the state that
//! belongs to it. Knows no optimizer; the arithmetic is in rows of the table.

use super::bind::{Natives, raw};
use super::convert;
use super::host::{Host, Native};
use super::value::{Cell, Tensor};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Kind, Param, Source};
use crate::op::table;
use crate::tensor::engine::Engine;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_advance", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let row = values[0].clone().into_immutable_string().unwrap_or_default();
        let fixed = values[1].read_lock::<Map>().map(|fixed| fixed.clone()).unwrap_or_default();
        let groups = values[2].read_lock::<Cell>().map(|cell| cell.get()).unwrap_or_default();
        shared.call(&context, |engine| advance(engine, &row, &fixed, &groups))
    });
    let shared = host.clone();
    raw(module, "_check_params", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = values[0].clone().into_string().unwrap_or_default();
        shared.call(&context, |_| check_params(&name, values[1]))
    });
    let shared = host.clone();
    raw(module, "_clear_grads", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            for p in tensors(values[0])? {
                p.0.auto.lock().grad = None;
            }
            Ok(Dynamic::UNIT)
        })
    });
    let shared = host.clone();
    raw(module, "_grads", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let all = tensors(values[0])?;
            Ok(all.iter().filter_map(|p| p.0.auto.lock().grad.clone()).map(Dynamic::from).collect::<Array>().into())
        })
    });
}

fn tensors(value: &Dynamic) -> Result<Vec<Tensor>> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(vec![tensor.clone()]);
    }
    let Some(array) = value.read_lock::<Array>() else {
        fail!(ARGUMENT_TYPE, "an array of tensors is wanted, not {}", convert::type_name(value));
    };
    let one = |item: &Dynamic| match item.read_lock::<Tensor>() {
        Some(tensor) => Ok(tensor.clone()),
        None => Err(Diag::error(
            code::ARGUMENT_TYPE,
            format!("an array of tensors is wanted; it holds {}", convert::type_name(item)),
        )),
    };
    array.iter().map(one).collect()
}

/// `_check_params(name, params)`: leaves that require gradients, each once.
fn check_params(name: &str, value: &Dynamic) -> Result<Dynamic> {
    if value.read_lock::<Map>().is_some_and(|map| map.contains_key("training")) {
        let text = format!("`{name}`: the parameters are an array, and this is a module");
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help("write `model.parameters()`"));
    }
    let all = tensors(value).map_err(|mut diag| {
        diag.message = format!("`{name}`: {}", diag.message);
        diag
    })?;
    if all.is_empty() {
        fail!(VALUE, "`{name}`: there are no parameters");
    }
    for (at, p) in all.iter().enumerate() {
        if !crate::tensor::history::is_leaf(p) {
            let text = format!("`{name}`: parameter {at} is the result of an operation");
            return Err(Diag::error(code::GRAD_LEAF, text).help("only leaves are optimised: use `.detach()` first"));
        }
        if !p.requires_grad() && !p.dtype().is_float() {
            fail!(DTYPE, "`{name}`: parameter {at} is {}, and only floating-point tensors are optimised", p.dtype());
        }
        if all[..at].iter().any(|other| other.same(p)) {
            fail!(VALUE, "`{name}`: parameter {at} stands in the list twice");
        }
    }
    Ok(all.into_iter().map(Dynamic::from).collect::<Array>().into())
}

/// Parameters of a group that have done equally many steps, with their gradients and their states by key.
struct Part {
    step: i64,
    params: Vec<Tensor>,
    grads: Vec<Tensor>,
    states: Vec<Vec<Tensor>>,
}

/// `_advance(row, fixed, groups)`: one step of every group by the named row, whose parameters are found by their names:
/// `params`, `grads`, `step`, `first`, the state, `fixed` and the settings, with `beta1` and `beta2` out of `betas`,
/// and so on.
fn advance(engine: &mut Engine, row: &str, fixed: &Map, groups: &Dynamic) -> Result<Dynamic> {
    let Some(op) = table::find(row) else { fail!(INTERNAL, "there is no row `{row}`") };
    let Some(groups) = groups.read_lock::<Array>() else { fail!(INTERNAL, "groups are an array") };
    for group in groups.iter() {
        let Some(group) = group.read_lock::<Map>() else { fail!(INTERNAL, "a group is a map") };
        let cell = |name: &str| group.get(name).and_then(|cell| cell.read_lock::<Cell>().map(|cell| cell.clone()));
        let (Some(params), Some(settings), Some(keys), Some(state), Some(steps)) =
            (group.get("params"), cell("settings"), cell("keys"), cell("state"), cell("steps"))
        else {
            fail!(INTERNAL, "a group has parameters, settings and a state")
        };
        let (settings, keys) = (settings.get(), keys.get());
        let settings = settings.read_lock::<Map>();
        let settings = |name: &str| fixed.get(name).or_else(|| settings.as_ref().and_then(|map| map.get(name)));
        let keys = keys.read_lock::<Array>();
        let keys: Vec<ImmutableString> = keys
            .iter()
            .flat_map(|keys| keys.iter())
            .filter_map(|key| key.clone().into_immutable_string().ok())
            .collect();
        let params = tensors(params)?;
        let parts = steps.with(|steps| state.with(|state| due(engine, &params, steps, state, &keys)))?;
        for part in parts {
            let args = Args(op.params.iter().map(|param| argument(param, &part, &keys, &settings)).collect());
            engine.apply(op, args)?;
        }
    }
    Ok(Dynamic::UNIT)
}

/// What a parameter of a row is given.
fn argument<'a>(
    param: &Param,
    part: &Part,
    keys: &[ImmutableString],
    settings: &dyn Fn(&str) -> Option<&'a Dynamic>,
) -> Arg {
    let of_pair = |name: &str, at: usize| {
        let pair = settings(name)?.read_lock::<Array>()?;
        let item = pair.get(at)?;
        item.as_float().or_else(|_| item.as_int().map(|n| n as f64)).ok().map(Arg::from)
    };
    let given = match (param.name, param.kind) {
        ("params", _) => Some(Arg::Tensors(part.params.clone())),
        ("grads", _) => Some(Arg::Tensors(part.grads.clone())),
        ("step", _) => Some(Arg::from(part.step as f64)),
        ("first", _) => Some(Arg::from(part.step == 1)),
        (name, Kind::Tensors) => {
            keys.iter().position(|key| key == name).map(|at| Arg::Tensors(part.states[at].clone()))
        }
        ("beta1", _) => of_pair("betas", 0),
        ("beta2", _) => of_pair("betas", 1),
        ("eta_minus", _) => of_pair("etas", 0),
        ("eta_plus", _) => of_pair("etas", 1),
        ("step_size_min", _) => of_pair("step_sizes", 0),
        ("step_size_max", _) => of_pair("step_sizes", 1),
        (name, _) => settings(name).and_then(|value| {
            let number = value.as_float().map(Arg::from).or_else(|_| value.as_int().map(|n| Arg::from(n as f64)));
            number.or_else(|_| value.as_bool().map(Arg::from)).ok()
        }),
    };
    given.unwrap_or_default()
}

/// The parts of a group that step now. `steps` counts them, state that is missing becomes zeros; parameters without a
/// gradient are left out and keep their count.
fn due(
    engine: &mut Engine,
    params: &[Tensor],
    steps: &mut Dynamic,
    state: &mut Dynamic,
    keys: &[ImmutableString],
) -> Result<Vec<Part>> {
    let (Some(mut steps), Some(mut state)) = (steps.write_lock::<Array>(), state.write_lock::<Map>()) else {
        fail!(INTERNAL, "steps are an array, and a state is a map")
    };
    steps.resize(params.len(), Dynamic::from_int(0));
    let mut parts: Vec<Part> = Vec::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (at, p) in params.iter().enumerate() {
        let Some(grad) = p.0.auto.lock().grad.clone() else { continue };
        let step = steps[at].as_int().unwrap_or(0).saturating_add(1);
        steps[at] = Dynamic::from_int(step);
        let place = parts.iter().position(|part| part.step == step).unwrap_or_else(|| {
            parts.push(Part { step, params: Vec::new(), grads: Vec::new(), states: Vec::new() });
            members.push(Vec::new());
            parts.len() - 1
        });
        parts[place].params.push(p.clone());
        parts[place].grads.push(grad);
        members[place].push(at);
    }
    for key in keys {
        let slot = state.entry(key.as_str().into()).or_insert_with(|| Array::new().into());
        let Some(mut slot) = slot.write_lock::<Array>() else { fail!(INTERNAL, "a state is a map of arrays") };
        slot.resize(params.len(), Dynamic::UNIT);
        for (part, members) in parts.iter_mut().zip(&members) {
            let mut states = Vec::with_capacity(members.len());
            for &at in members {
                let known = slot[at].read_lock::<Tensor>().map(|tensor| tensor.clone());
                states.push(match known {
                    Some(tensor) => tensor,
                    None => {
                        let (p, zero) = (&params[at], Source::Fill(Scalar::Float(0.0)));
                        let made = engine.quietly(|e| e.source(zero, &p.shape(), p.dtype(), p.device()))?;
                        slot[at] = Dynamic::from(made.clone());
                        made
                    }
                });
            }
            part.states.push(states);
        }
    }
    Ok(parts)
}
