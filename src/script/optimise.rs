//! The bookkeeping of `std/optim`: which parameters have a gradient, how many steps each has done, and the state that
//! belongs to it. Knows no optimizer; the arithmetic is in rows of the table or in the library itself.

use super::bind::{Natives, raw};
use super::convert;
use super::host::{Host, Native};
use super::value::Tensor;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::emit::Emit;
use crate::op::row::Source;
use crate::tensor::engine::Engine;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_due", 4, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| due(engine, values[0], values[1], values[2], values[3]))
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
        if !p.is_leaf() {
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

/// Parameters that have done equally many steps.
struct Part {
    step: i64,
    params: Array,
    grads: Array,
    lists: Vec<Array>,
}

/// `_due(params, steps, state, keys)`: `parts`, an array of `#{step, params, grads, lists}` with one entry for each
/// number of steps (counting the one to come), and the `steps` and `state` from now on. State that is missing becomes
/// zeros; parameters without a gradient are left out and keep their count.
fn due(engine: &mut Engine, params: &Dynamic, steps: &Dynamic, state: &Dynamic, keys: &Dynamic) -> Result<Dynamic> {
    let params = tensors(params)?;
    let mut steps = steps.read_lock::<Array>().map(|steps| steps.clone()).unwrap_or_default();
    let mut state = state.read_lock::<Map>().map(|state| state.clone()).unwrap_or_default();
    let keys: Vec<ImmutableString> = match keys.read_lock::<Array>() {
        Some(keys) => keys.iter().filter_map(|key| key.read_lock::<ImmutableString>().map(|k| k.clone())).collect(),
        None => Vec::new(),
    };
    steps.resize(params.len(), Dynamic::from_int(0));
    let mut slots: Vec<Array> = Vec::with_capacity(keys.len());
    for key in &keys {
        let slot = state.remove(key.as_str()).and_then(|slot| slot.try_cast::<Array>());
        let mut slot = slot.unwrap_or_default();
        slot.resize(params.len(), Dynamic::UNIT);
        slots.push(slot);
    }
    let mut parts: Vec<Part> = Vec::new();
    for (at, p) in params.iter().enumerate() {
        let Some(grad) = p.0.auto.lock().grad.clone() else { continue };
        let step = steps[at].as_int().unwrap_or(0).saturating_add(1);
        steps[at] = Dynamic::from_int(step);
        let place = parts.iter().position(|part| part.step == step).unwrap_or_else(|| {
            let lists = keys.iter().map(|_| Array::new()).collect();
            parts.push(Part { step, params: Array::new(), grads: Array::new(), lists });
            parts.len() - 1
        });
        let part = &mut parts[place];
        part.params.push(Dynamic::from(p.clone()));
        part.grads.push(Dynamic::from(grad));
        for (slot, list) in slots.iter_mut().zip(&mut part.lists) {
            if slot[at].is_unit() {
                let zero = crate::base::dtype::Scalar::Float(0.0);
                let source = Source::Fill(zero);
                let made = engine.quietly(|e| e.source(source, &p.shape(), p.dtype(), p.device()))?;
                slot[at] = Dynamic::from(made);
            }
            list.push(slot[at].clone());
        }
    }
    for (key, slot) in keys.iter().zip(slots) {
        state.insert(key.as_str().into(), slot.into());
    }
    let shown = |part: Part| {
        let lists: Map = keys.iter().zip(part.lists).map(|(key, list)| (key.as_str().into(), list.into())).collect();
        Dynamic::from(Map::from_iter([
            ("step".into(), part.step.into()),
            ("params".into(), part.params.into()),
            ("grads".into(), part.grads.into()),
            ("lists".into(), lists.into()),
        ]))
    };
    let parts: Array = parts.into_iter().map(shown).collect();
    let entries = [("parts".into(), parts.into()), ("steps".into(), steps.into()), ("state".into(), state.into())];
    Ok(Map::from_iter(entries).into())
}
