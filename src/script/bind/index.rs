//! `x[...]` and `x[...] = y`: from Rhai's index values (numbers, ranges, masks, index tensors) to index items. What these
//! mean is in `tensor/index.rs`.
//!
//! Rhai passes what `x[i]` returned back to the setter after `x[i].method()` and `x[i][j] = v` too. The setter then
//! writes nothing: a view has already written into `x`, and a copy must not. The source text tells the two cases
//! apart (`Host::assignment`).

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::args::Arg;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::source::{Assignment, INDEX_MARK};
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::site;
use crate::script::values::type_names;
use crate::script::values::types::{SliceValue, Tensor};
use crate::tensor::index::{self, Item};
use rhai::plugin::RhaiResult;
use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, NativeCallContext};
use std::any::TypeId;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// One item from one value.
fn item(value: &Dynamic) -> Result<Item> {
    if let Some(i) = convert::integer(value) {
        return Ok(Item::Int(i));
    }
    if value.is_unit() {
        return Ok(Item::NewAxis);
    }
    if let Ok(b) = value.as_bool() {
        return Ok(Item::Bool(b));
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(Item::Tensor(tensor.clone()));
    }
    if let Some(range) = value.read_lock::<Range<i64>>() {
        return Ok(range_item(range.start, range.end, false));
    }
    if let Some(range) = value.read_lock::<RangeInclusive<i64>>() {
        return Ok(range_item(*range.start(), *range.end(), true));
    }
    if let Some(slice) = value.read_lock::<SliceValue>() {
        return Ok(Item::Slice { start: slice.start, stop: slice.stop, step: slice.step });
    }
    if let Some(text) = value.read_lock::<rhai::ImmutableString>()
        && text.as_str() == "..."
    {
        return Ok(Item::Ellipsis);
    }
    if let Some(array) = value.read_lock::<Array>()
        && array.iter().all(|item| item.is_int() || item.is_bool() || item.is_array())
        && !array.is_empty()
    {
        return Err(ambiguous(&array));
    }
    fail!(
        ARGUMENT_TYPE,
        "an index is an integer, a range, a tensor, `()` or \"...\", not {}",
        type_names::of_value(value)
    )
}

/// Open ends arrive as 0 and `i64::MAX`.
fn range_item(start: i64, end: i64, inclusive: bool) -> Item {
    let stop = match (end, inclusive) {
        (i64::MAX, _) => None,
        (-1, true) => None,
        (end, true) => Some(end + 1),
        (end, false) => Some(end),
    };
    Item::Slice { start: Some(start), stop, step: 1 }
}

#[cold]
fn ambiguous(array: &Array) -> Box<Diag> {
    let list = array.iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    Diag::error(code::AMBIGUOUS_INDEX, format!("an array of integers as an index has two meanings: `[{list}]`"))
        .help(format!("write `x[{list}]` for one element, `x[tensor([{list}])]` for rows"))
}

/// All items of an index value.
fn items(value: &Dynamic) -> Result<Vec<Item>> {
    if let Some(array) = value.read_lock::<Array>() {
        // The comma form `x[a, b]`, marked by the source pass.
        if array.first().is_some_and(|first| first.as_char() == Ok(INDEX_MARK)) {
            return array[1..].iter().map(item).collect();
        }
        let plain = |item: &Dynamic| item.is_int() || item.is_bool() || item.is_array();
        if array.iter().all(plain) {
            return Err(ambiguous(&array));
        }
        return array.iter().map(item).collect();
    }
    Ok(vec![item(value)?])
}

fn get(host: &Host, context: &NativeCallContext, x: &Tensor, at: &Dynamic) -> RhaiResult {
    let found = host.call(context, |engine| match convert::integer(at) {
        Some(at) => index::element(engine, x, at),
        None => index::get(engine, x, items(at)?),
    });
    found.map(Dynamic::from).map_err(|error| keep_read_error(host, context, error))
}

/// In `x[i] += v` Rhai ignores an error of reading `x[i]` and would assign `v` alone.
#[cold]
fn keep_read_error(host: &Host, context: &NativeCallContext, error: Box<EvalAltResult>) -> Box<EvalAltResult> {
    if host.assignment(context) != Some(Assignment::Compound) {
        return error;
    }
    *host.read_error.lock() = Some((site(context), error));
    "kept for the setter".into()
}

/// What is written: a tensor or a number.
pub(super) fn assigned(value: &Dynamic) -> Result<Arg> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(Arg::Tensor(tensor.clone()));
    }
    match convert::scalar(value) {
        Some(scalar) => Ok(scalar.into()),
        None => fail!(ARGUMENT_TYPE, "a tensor or a number is expected, not {}", type_names::of_value(value)),
    }
}

fn set(host: &Host, context: &NativeCallContext, x: &Tensor, at: &Dynamic, value: &Dynamic) -> RhaiResult {
    let Some(how) = host.assignment(context) else { return Ok(Dynamic::UNIT) };
    if how == Assignment::Compound
        && let Some((_, error)) = host.read_error.lock().take_if(|(place, _)| *place == site(context))
    {
        return Err(error);
    }
    host.call(context, |engine| {
        let value = assigned(value)?;
        index::set(engine, x, items(at)?, value)
    })
    .map(|()| Dynamic::UNIT)
}

/// The target of `f(x)[0] = v`: a handle, since a change of an array or map that no variable holds would be lost.
fn target(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "__target", 1, move |context, values| -> RhaiResult {
        let context = context.expect("registered with a context");
        if !(values[0].is_array() || values[0].is_map()) {
            return Ok(values[0].clone());
        }
        let kind = type_names::of_value(values[0]);
        let diag = Diag::error(code::SYNTAX, format!("{kind} that a call gives cannot be assigned to"));
        Err(shared.raise(&context, diag.help("give it a name first: `let a = ..; a[0] = ..`"), "nobody holds this"))
    });
}

/// The tensor that is indexed: its type is in the registration.
fn receiver(values: &[&mut Dynamic]) -> Tensor {
    values[0].read_lock::<Tensor>().expect("registered for tensors").clone()
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    target(module, host);
    let shared = host.clone();
    let get = GuardedCall::new(move |context, values| {
        let context = context.expect("registered with a context");
        let x = receiver(values);
        get(&shared, &context, &x, values[1])
    });
    let shared = host.clone();
    let set = GuardedCall::new(move |context, values| {
        let context = context.expect("registered with a context");
        let x = receiver(values);
        set(&shared, &context, &x, values[1], values[2])
    });
    let set = set.changing();
    let tensor = TypeId::of::<Tensor>();
    let mut indexers = |at: TypeId| {
        FuncRegistration::new_index_getter().place_shared_in(&mut module.module, [tensor, at], &get);
        let types = [tensor, at, TypeId::of::<Dynamic>()];
        FuncRegistration::new_index_setter().place_shared_in(&mut module.module, types, &set);
    };
    // Not: an indexer that takes a string or any value. Rhai would call it for every unknown property.
    indexers(TypeId::of::<i64>());
    indexers(TypeId::of::<bool>());
    indexers(TypeId::of::<()>());
    indexers(TypeId::of::<Range<i64>>());
    indexers(TypeId::of::<RangeInclusive<i64>>());
    indexers(TypeId::of::<Array>());
    indexers(tensor);
    indexers(TypeId::of::<SliceValue>());
}
