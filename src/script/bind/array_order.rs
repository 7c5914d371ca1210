//! `<`, `<=`, `>` and `>=` of arrays, as of Python's lists: the first elements that differ decide.

use super::compare::{compare, values_equal};
use super::properties::number;
use crate::script::host::Host;
use crate::script::values::raise::Outcome;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, NativeCallContext};

/// What decides between two arrays.
pub enum Difference {
    /// Their lengths, which give this.
    Lengths(bool),
    /// Two elements; a tensor with one element is that element.
    Elements(Dynamic, Dynamic),
}

/// What decides between two values; none if they are no arrays, or the symbol asks for no order.
pub fn first_difference(
    host: &Host,
    context: &NativeCallContext,
    symbol: &str,
    a: &Dynamic,
    b: &Dynamic,
) -> Outcome<Option<Difference>> {
    if !matches!(symbol, "<" | "<=" | ">" | ">=") {
        return Ok(None);
    }
    let Some(mut found) = of_arrays(host, context, symbol, a, b)? else { return Ok(None) };
    while let Difference::Elements(a, b) = &found
        && let Some(inner) = of_arrays(host, context, symbol, a, b)?
    {
        found = inner;
    }
    Ok(Some(match found {
        Difference::Elements(a, b) => Difference::Elements(plain(host, context, &a)?, plain(host, context, &b)?),
        lengths => lengths,
    }))
}

/// The same of one level.
fn of_arrays(
    host: &Host,
    context: &NativeCallContext,
    symbol: &str,
    a: &Dynamic,
    b: &Dynamic,
) -> Outcome<Option<Difference>> {
    let (Some(xs), Some(ys)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) else { return Ok(None) };
    for (x, y) in xs.iter().zip(ys.iter()) {
        if !values_equal(host, context, x, y)? {
            return Ok(Some(Difference::Elements(x.flatten_clone(), y.flatten_clone())));
        }
    }
    let length = |values: &Array| Dynamic::from_int(values.len() as i64);
    Ok(compare(symbol, &length(&xs), &length(&ys)).map(Difference::Lengths))
}

/// The value to compare.
fn plain(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Outcome<Dynamic> {
    let Some(tensor) = value.read_lock::<Tensor>() else { return Ok(value.clone()) };
    observe::item(&host.rt, &tensor).map(number).map_err(|diag| host.raise(context, diag, ""))
}
