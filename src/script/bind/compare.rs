//! Comparisons of plain values. Rhai's own compare floats within an epsilon (`1e-300 == 0.0`); here they are
//! IEEE comparisons, and values of different types are unequal.
//!
//! The symbols, and those of division and shifts, are disabled in Rhai and registered again as custom operators, so that it calls our functions and
//! not its built-in ones. Not: `set_fast_operators(false)`, which makes every operator slow, not only these.
//! Cost: 60 to 80 ns a comparison of numbers instead of 20.

use crate::base::arithmetic;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::table;
use crate::script::bind::convert;
use crate::script::host::Host;
use crate::script::values::module::module;
use crate::script::values::raise::{ErrorValue, Outcome};
use crate::script::values::set::Set;
use crate::script::values::steps::Steps;
use crate::script::values::types::{Cell, DTypeValue, DeviceValue, SliceValue, Tensor};
use crate::script::values::types::{EventValue, StreamValue};
use crate::tensor::observe;
use rhai::{Array, Blob, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The symbols with Rhai's precedences; those of division and shifts are in `language/scalars.rs`.
const SYMBOLS: [(&str, u8); 10] = [
    ("==", 90),
    ("!=", 90),
    ("<", 130),
    ("<=", 130),
    (">", 130),
    (">=", 130),
    ("/", 180),
    ("%", 180),
    ("<<", 210),
    (">>", 210),
];

/// Makes the symbols call functions.
pub fn install(engine: &mut Engine) {
    for (symbol, precedence) in SYMBOLS {
        engine.disable_symbol(symbol);
        let registered = engine.register_custom_operator(symbol, precedence).map(drop);
        debug_assert!(registered.is_ok());
    }
}

/// The value of `a < b`, `a <= b`, `a > b` or `a >= b`; `None` when the two have no order, or the symbol is another.
pub fn compare(symbol: &str, a: &Dynamic, b: &Dynamic) -> Option<bool> {
    if !matches!(symbol, "<" | "<=" | ">" | ">=") {
        return None;
    }
    let test = |order: Option<Ordering>| {
        order.is_some_and(|order| match symbol {
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        })
    };
    if let Some(order) = numbers(a, b) {
        return Some(test(order));
    }
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return Some(test(Some(a.cmp(&b))));
    }
    if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
        return Some(test(Some(a.cmp(&b))));
    }
    None
}

/// The order of two numbers, exact (none with NaN).
fn numbers(a: &Dynamic, b: &Dynamic) -> Option<Option<Ordering>> {
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return Some(Some(a.cmp(&b)));
    }
    Some(match (a.as_int(), a.as_float(), b.as_int(), b.as_float()) {
        (_, Ok(a), _, Ok(b)) => a.partial_cmp(&b),
        (Ok(a), _, _, Ok(b)) => arithmetic::compare(a, b),
        (_, Ok(a), Ok(b), _) => arithmetic::compare(b, a).map(Ordering::reverse),
        _ => return None,
    })
}

/// A string or a character.
fn text(value: &Dynamic) -> Option<String> {
    match value.as_char() {
        Ok(c) => Some(c.to_string()),
        Err(_) => value.read_lock::<ImmutableString>().map(|text| text.to_string()),
    }
}

/// Equality of two values of a type of ours, or of such a value and the string that names it.
fn equal_by_name(a: &Dynamic, b: &Dynamic) -> Option<bool> {
    if let (Some(a), Some(b)) = (a.read_lock::<DTypeValue>(), b.read_lock::<DTypeValue>()) {
        return Some(*a == *b);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<DeviceValue>(), b.read_lock::<DeviceValue>()) {
        return Some(*a == *b);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<StreamValue>(), b.read_lock::<StreamValue>()) {
        return Some(Arc::ptr_eq(&a.0, &b.0) || (a.0.name == b.0.name && a.0.slot == b.0.slot));
    }
    if let (Some(a), Some(b)) = (a.read_lock::<EventValue>(), b.read_lock::<EventValue>()) {
        return Some(Arc::ptr_eq(&a.0, &b.0));
    }
    if let (Some(dtype), Some(name)) = (a.read_lock::<DTypeValue>(), text(b)) {
        return Some(crate::base::dtype::DType::parse(&name) == Some(dtype.0));
    }
    if let (Some(device), Some(name)) = (a.read_lock::<DeviceValue>(), text(b)) {
        return Some(device.0.to_string() == name);
    }
    None
}

/// Whether two values are equal, as Python compares the elements of a list: a tensor equals itself; with another
/// tensor or a number, the result is the truth value of `==`, which waits, and is an error unless it has one element.
pub fn values_equal(host: &Host, context: &NativeCallContext, a: &Dynamic, b: &Dynamic) -> Outcome<bool> {
    equal(a, b, &mut |x, other| {
        let other = match (other.read_lock::<Tensor>(), convert::scalar(other)) {
            (Some(y), _) if x.same(&y) => return Ok(true),
            (Some(y), _) => Arg::Tensor(y.clone()),
            (None, Some(number)) => number.into(),
            (None, None) => return Ok(false),
        };
        host.call(context, |engine| {
            let Some(op) = table::find("eq") else { fail!(INTERNAL, "there is no operation `eq`") };
            let same = engine.call_row(op, Args(smallvec::smallvec![Arg::Tensor(x.clone()), other]))?;
            observe::truth(&engine.rt, &same)
        })
    })
}

/// Compares a tensor with any value.
type CompareTensor<'a> = &'a mut dyn FnMut(&Tensor, &Dynamic) -> Outcome<bool>;

fn equal(a: &Dynamic, b: &Dynamic, tensors: CompareTensor) -> Outcome<bool> {
    if let Some(order) = numbers(a, b) {
        return Ok(order == Some(Ordering::Equal));
    }
    for (cell, other) in [(a, b), (b, a)] {
        // `model.training == true`: compared with anything but another cell, a cell is its value.
        let inside = cell.read_lock::<Cell>().map(|cell| cell.get());
        if let Some(inside) = inside.filter(|inside| !other.is::<Cell>() && !inside.is::<Cell>()) {
            return equal(&inside, other, tensors);
        }
    }
    if let Some(x) = a.read_lock::<Tensor>() {
        return tensors(&x, b);
    }
    if let Some(x) = b.read_lock::<Tensor>() {
        return tensors(&x, a);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) {
        for (a, b) in a.iter().zip(b.iter()).filter(|_| a.len() == b.len()) {
            if !equal(a, b, &mut *tensors)? {
                return Ok(false);
            }
        }
        return Ok(a.len() == b.len());
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Map>(), b.read_lock::<Map>()) {
        for (name, a) in a.iter().filter(|_| a.len() == b.len()) {
            match b.get(name) {
                Some(b) if equal(a, b, &mut *tensors)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(a.len() == b.len());
    }
    if let (Some(f), Some(g)) = (a.read_lock::<FnPtr>(), b.read_lock::<FnPtr>()) {
        let are_alike = f.fn_name() == g.fn_name() && f.curry().len() == g.curry().len();
        for (a, b) in f.curry().iter().zip(g.curry()).filter(|_| are_alike) {
            if !same_variable(a, b).map_or_else(|| equal(a, b, &mut *tensors), Ok)? {
                return Ok(false);
            }
        }
        return Ok(are_alike);
    }
    Ok(plain(a, b))
}

/// Whether what two closures have taken along is one variable; none where it is no variable.
fn same_variable(a: &Dynamic, b: &Dynamic) -> Option<bool> {
    if !a.is_shared() || !b.is_shared() {
        return None;
    }
    let mut a = a.clone();
    if a.is_locked() || b.is_locked() {
        return Some(false);
    }
    let held = a.write_lock::<Dynamic>();
    Some(held.is_some() && b.is_locked())
}

/// `a == b` of values that are neither numbers nor containers.
fn plain(a: &Dynamic, b: &Dynamic) -> bool {
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return a == b;
    }
    if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
        return a == b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Range<i64>>(), b.read_lock::<Range<i64>>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<RangeInclusive<i64>>(), b.read_lock::<RangeInclusive<i64>>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Steps>(), b.read_lock::<Steps>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (module(a), module(b)) {
        return a.same(&b);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Cell>(), b.read_lock::<Cell>()) {
        return a.same(&b);
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Set>(), b.read_lock::<Set>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Blob>(), b.read_lock::<Blob>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<SliceValue>(), b.read_lock::<SliceValue>()) {
        return *a == *b;
    }
    if let (Some(a), Some(b)) = (a.read_lock::<ErrorValue>(), b.read_lock::<ErrorValue>()) {
        return a.0 == b.0;
    }
    if let Some(same) = equal_by_name(a, b).or_else(|| equal_by_name(b, a)) {
        return same;
    }
    a.is_unit() && b.is_unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: impl Into<Dynamic>, b: impl Into<Dynamic>) -> bool {
        equal(&a.into(), &b.into(), &mut |_, _| unreachable!("no tensor is there")).unwrap()
    }

    #[test]
    fn floats_compare_as_ieee_says() {
        assert!(!same(1e-300, 0.0));
        assert!(same(f64::INFINITY, f64::INFINITY));
        assert!(!same(f64::NAN, f64::NAN));
        assert_eq!(compare(">", &Dynamic::from_float(f64::INFINITY), &Dynamic::from_float(1.0)), Some(true));
        assert_eq!(compare("<", &Dynamic::from_int(1), &Dynamic::from_float(1.5)), Some(true));
    }

    #[test]
    fn different_types_are_unequal() {
        assert!(!same(1i64, "1"));
        assert!(!same((), 0i64));
        assert!(same((), ()));
        assert_eq!(compare("<", &Dynamic::UNIT, &Dynamic::from_int(0)), None);
    }
}
