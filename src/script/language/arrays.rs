//! What arrays do with a closure that compares or decides: `sort`, `sort_by`, `dedup`, `filter` and its kin. Rhai's own
//! take an error of the closure, or a value that is no integer, for "equal", and a value that is no `bool`, a tensor
//! among them, for "no", so that an array would stay unsorted or become empty without a word.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::Place;
use crate::script::values::raise::Outcome;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, NativeCallContext};
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    deciding(module, host);
    looking(module);
    for name in ["sort", "sort_by"] {
        let shared = host.clone();
        let sort = move |context: NativeCallContext, array: &mut Array, compare: FnPtr| -> Outcome<()> {
            let mut order = |x: &Dynamic, y: &Dynamic| order(&shared, &context, &compare, x, y);
            *array = sorted(array, &mut order)?;
            Ok(())
        };
        FuncRegistration::new(name).in_global_namespace().with_purity(false).place_in(&mut module.module, sort);
    }
    let shared = host.clone();
    let dedup = move |context: NativeCallContext, array: &mut Array, same: FnPtr| -> Outcome<()> {
        let mut kept: Array = Vec::with_capacity(array.len());
        for value in array.iter() {
            let again = match kept.last() {
                Some(last) => {
                    let told = same.call_raw(&context, None, [last.clone(), value.clone()])?;
                    let wrong =
                        || format!("whether two values are the same is a bool, not {}", type_names::of_value(&told));
                    told.as_bool().map_err(|_| shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, wrong()), ""))?
                }
                None => false,
            };
            if !again {
                kept.push(value.clone());
            }
        }
        *array = kept;
        Ok(())
    };
    let changing = FuncRegistration::new("dedup").in_global_namespace().with_purity(false);
    changing.place_in(&mut module.module, dedup);
}

/// `get` and `extract`, which Rhai registers as if they changed the array: it refuses them for constants.
fn looking(module: &mut Natives) {
    let module = &mut module.module;
    let own = |name: &str| FuncRegistration::new(name).in_global_namespace().with_purity(true);
    own("get").place_in(module, |array: &mut Array, at: i64| {
        let at = if at < 0 { at.checked_add(array.len() as i64) } else { Some(at) };
        let at = at.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| array.get(at)).map_or(Dynamic::UNIT, Dynamic::clone)
    });
    own("extract").place_in(module, |array: &mut Array, range: Range<i64>| {
        part(array, range.start.max(0), range.end.saturating_sub(range.start.max(0)))
    });
    own("extract").place_in(module, |array: &mut Array, range: RangeInclusive<i64>| {
        let start = (*range.start()).max(0);
        part(array, start, range.end().saturating_sub(start).saturating_add(1))
    });
    own("extract").place_in(module, |array: &mut Array, start: i64| part(array, start, i64::MAX));
    own("extract").place_in(module, |array: &mut Array, start: i64, len: i64| part(array, start, len));
}

/// So many elements from `start` on, which counts from the end where it is negative.
fn part(array: &Array, start: i64, len: i64) -> Array {
    let n = array.len() as i64;
    let start = if start < 0 { start.saturating_add(n).max(0) } else { start.min(n) };
    let len = len.clamp(0, n - start);
    array[start as usize..(start + len) as usize].to_vec()
}

/// A condition's value: a `bool`, or a tensor with one element.
pub fn truth(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Outcome<bool> {
    if let Ok(told) = value.as_bool() {
        return Ok(told);
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return observe::truth(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""));
    }
    let text = format!("a condition must be true or false, and this is {}", type_names::of_value(value));
    Err(host.raise(context, Diag::error(code::TYPE, text), ""))
}

/// What a closure decides about an element; it may take the element's number too, or see the element as `this`.
fn decided(host: &Host, context: &NativeCallContext, closure: &FnPtr, value: &Dynamic, at: usize) -> Outcome<bool> {
    let is_other_arity = |error: &EvalAltResult| matches!(error, EvalAltResult::ErrorFunctionNotFound(signature, _) if signature.starts_with(closure.fn_name()));
    let mut told = closure.call_raw(context, None, [value.clone()]);
    if told.as_ref().is_err_and(|error| is_other_arity(error)) {
        let number = Dynamic::from_int(at as i64);
        let with_number = closure.call_raw(context, None, [value.clone(), number]);
        told = match with_number {
            Err(error) if is_other_arity(&error) => {
                let as_this = closure.call_raw(context, Some(&mut value.clone()), []);
                if as_this.as_ref().is_err_and(|error| is_other_arity(error)) { told } else { as_this }
            }
            other => other,
        };
    }
    truth(host, context, &told?)
}

/// `filter`, `retain`, `drain`, `some`, `any`, `all`, `find` and `index_of` with a closure.
fn deciding(module: &mut Natives, host: &Arc<Host>) {
    let module = &mut module.module;
    // Not among the names of natives: what they call is script code, and the stack shows it.
    let mut add = |name: &'static str, kind: Deciding| {
        let host = host.clone();
        let call = move |context: NativeCallContext, array: &mut Array, closure: FnPtr| -> Outcome<Dynamic> {
            let decide = |value: &Dynamic, at: usize| decided(&host, &context, &closure, value, at);
            kind.done(array, decide)
        };
        // Those that change the array are refused for constants.
        let only_looks = !matches!(kind, Deciding::Retain | Deciding::Drain);
        FuncRegistration::new(name).in_global_namespace().with_purity(only_looks).place_in(module, call);
    };
    for (name, kind) in [
        ("filter", Deciding::Filter),
        ("retain", Deciding::Retain),
        ("drain", Deciding::Drain),
        ("some", Deciding::Some),
        ("any", Deciding::Some),
        ("all", Deciding::All),
        ("find", Deciding::Find),
        ("index_of", Deciding::IndexOf),
    ] {
        add(name, kind);
    }
}

#[derive(Clone, Copy)]
enum Deciding {
    /// The elements that are meant.
    Filter,
    /// Keeps those that are meant; gives the others.
    Retain,
    /// Takes out those that are meant, and gives them.
    Drain,
    Some,
    All,
    Find,
    IndexOf,
}

impl Deciding {
    fn done(self, array: &mut Array, decide: impl Fn(&Dynamic, usize) -> Outcome<bool>) -> Outcome<Dynamic> {
        let first = |wanted: bool| -> Outcome<Option<usize>> {
            for (at, value) in array.iter().enumerate() {
                if decide(value, at)? == wanted {
                    return Ok(Some(at));
                }
            }
            Ok(None)
        };
        match self {
            Deciding::Some => return Ok(first(true)?.is_some().into()),
            Deciding::All => return Ok(first(false)?.is_none().into()),
            Deciding::Find => return Ok(first(true)?.map_or(Dynamic::UNIT, |at| array[at].clone())),
            Deciding::IndexOf => return Ok(Dynamic::from_int(first(true)?.map_or(-1, |at| at as i64))),
            Deciding::Filter | Deciding::Retain | Deciding::Drain => {}
        }
        let (mut meant, mut others) = (Array::new(), Array::new());
        for (at, value) in array.iter().enumerate() {
            if decide(value, at)? { &mut meant } else { &mut others }.push(value.clone());
        }
        match self {
            Deciding::Retain => {
                *array = meant;
                Ok(others.into())
            }
            Deciding::Drain => {
                *array = others;
                Ok(meant.into())
            }
            _ => Ok(meant.into()),
        }
    }
}

/// What a closure says of two values: a number's sign, or true for "the first comes first".
pub fn order(host: &Host, context: &NativeCallContext, compare: &FnPtr, x: &Dynamic, y: &Dynamic) -> Outcome<Ordering> {
    let mut told = compare.call_raw(context, None, [x.clone(), y.clone()])?;
    if let Some(tensor) = told.clone().try_cast::<Tensor>() {
        let value = observe::item(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""))?;
        told = crate::script::bind::properties::number(value);
    }
    if let Ok(first) = told.as_bool() {
        return Ok(if first { Ordering::Less } else { Ordering::Greater });
    }
    let number = told.as_int().map(|number| number as f64).or_else(|_| told.as_float()).ok();
    number.and_then(|number| number.partial_cmp(&0.0)).ok_or_else(|| {
        let what = number.map_or_else(|| type_names::of_value(&told).to_string(), |number| number.to_string());
        let text = format!("the order of two values is a number or a bool, not {what}");
        host.raise(context, Diag::error(code::ARGUMENT_TYPE, text).help("for example `|a, b| a - b`"), "")
    })
}

/// A stable merge sort; not the standard library's, which panics at an order that contradicts itself.
pub fn sorted(values: &Array, order: &mut dyn FnMut(&Dynamic, &Dynamic) -> Outcome<Ordering>) -> Outcome<Array> {
    // By their places: what lies in nested values is copied once.
    let mut from: Vec<usize> = (0..values.len()).collect();
    let mut width = 1;
    while width < from.len() {
        let mut to = Vec::with_capacity(from.len());
        for part in from.chunks(2 * width) {
            let (left, right) = part.split_at(width.min(part.len()));
            let (mut i, mut j) = (0, 0);
            while i < left.len() && j < right.len() {
                let second = order(&values[left[i]], &values[right[j]])? == Ordering::Greater;
                to.push(if second { right[j] } else { left[i] });
                (i, j) = (i + !second as usize, j + second as usize);
            }
            to.extend_from_slice(&left[i..]);
            to.extend_from_slice(&right[j..]);
        }
        from = to;
        width *= 2;
    }
    Ok(from.into_iter().map(|at| values[at].clone()).collect())
}
