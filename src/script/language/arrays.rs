//! Array methods with a closure that compares or decides: `sort`, `sort_by`, `dedup`, `filter` and others. Rhai's own
//! treat an error of the closure, or a result that is no integer, as "equal", and a result that is no `bool` (a
//! tensor, for example) as "no", so that an array would silently stay unsorted or become empty.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::Natives;
use crate::script::host::{Host, each_counted};
use crate::script::machine::callback::Callback;
use crate::script::values::panics::Place;
use crate::script::values::raise::Outcome;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, NativeCallContext};
use std::cmp::Ordering;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    predicate_methods(module, host);
    reading_methods(module);
    placing_methods(module);
    mapping_methods(module);
    for_each(module, host);
    let shared = host.clone();
    let dedup = move |context: NativeCallContext, array: &mut Array, same: FnPtr| -> Outcome<()> {
        let mut kept: Array = Vec::with_capacity(array.len());
        let mut same = Callback::new(&context, &same);
        for value in array.iter() {
            let again = match kept.last() {
                Some(last) => {
                    let answer = same.call([last.clone(), value.clone()])?;
                    let wrong =
                        || format!("whether two values are the same is a bool, not {}", type_names::of_value(&answer));
                    answer
                        .as_bool()
                        .map_err(|_| shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, wrong()), ""))?
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

/// `map` and `reduce`: as Rhai's, with the closures run directly.
fn mapping_methods(module: &mut Natives) {
    let of = |name: &str| FuncRegistration::new(name).in_global_namespace().with_purity(true);
    let map = |context: NativeCallContext, array: &mut Array, each: FnPtr| -> Outcome<Array> {
        let mut each = Callback::new(&context, &each);
        array.iter_mut().enumerate().map(|(at, value)| of_element(&mut each, value, at)).collect()
    };
    of("map").place_in(&mut module.module, map);
    fn reduced(context: &NativeCallContext, array: &Array, reducer: &FnPtr, initial: Dynamic) -> Outcome<Dynamic> {
        let mut reducer = Callback::new(context, reducer);
        let mut result = initial;
        for (at, value) in array.iter().enumerate() {
            result = one_more(&mut reducer, result, value, at)?;
        }
        Ok(result)
    }
    let reduce = |context: NativeCallContext, array: &mut Array, reducer: FnPtr| {
        reduced(&context, array, &reducer, Dynamic::UNIT)
    };
    of("reduce").place_in(&mut module.module, reduce);
    let reduce = |context: NativeCallContext, array: &mut Array, reducer: FnPtr, initial: Dynamic| {
        reduced(&context, array, &reducer, initial)
    };
    of("reduce").place_in(&mut module.module, reduce);
}

/// What a closure makes of a result and an element; it may also take the element's index, or see the element as `this`.
fn one_more(reducer: &mut Callback, result: Dynamic, value: &Dynamic, at: usize) -> Outcome<Dynamic> {
    let number = || Dynamic::from_int(at as i64);
    if reducer.takes(2) {
        return reducer.call([result, value.clone()]);
    }
    if reducer.takes(3) {
        return reducer.call([result, value.clone(), number()]);
    }
    let answer = reducer.call([result.clone(), value.clone()]);
    if !answer.as_ref().is_err_and(|error| reducer.is_other_arity(error)) {
        return answer;
    }
    match reducer.call([result.clone(), value.clone(), number()]) {
        Err(error) if reducer.is_other_arity(&error) => {
            let as_this = reducer.call_on(Some(&mut value.clone()), [result]);
            if as_this.as_ref().is_err_and(|error| reducer.is_other_arity(error)) { answer } else { as_this }
        }
        other => other,
    }
}

/// `get` and `extract`, which Rhai registers as if they changed the array and therefore refuses for constants.
fn reading_methods(module: &mut Natives) {
    let module = &mut module.module;
    let own = |name: &str| FuncRegistration::new(name).in_global_namespace().with_purity(true);
    own("get").place_in(module, |array: &mut Array, at: i64| {
        let at = if at < 0 { at.checked_add(array.len() as i64) } else { Some(at) };
        let at = at.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| array.get(at)).map_or(Dynamic::UNIT, Dynamic::clone)
    });
    own("extract").place_in(module, |array: &mut Array, start: i64| part(array, start, i64::MAX));
    own("extract").place_in(module, |array: &mut Array, start: i64, len: i64| part(array, start, len));
}

/// `remove` and `set`, which Rhai lets do nothing where there is no such element.
fn placing_methods(module: &mut Natives) {
    fn place(context: &NativeCallContext, len: usize, at: i64) -> Outcome<usize> {
        let index = if at < 0 { at.saturating_add(len as i64) } else { at };
        let index = usize::try_from(index).ok().filter(|index| *index < len);
        index.ok_or_else(|| Box::new(EvalAltResult::ErrorArrayBounds(len, at, context.call_position())))
    }
    let own = |name: &str| FuncRegistration::new(name).in_global_namespace().with_purity(false);
    let remove = |context: NativeCallContext, array: &mut Array, at: i64| -> Outcome<Dynamic> {
        Ok(array.remove(place(&context, array.len(), at)?))
    };
    own("remove").place_in(&mut module.module, remove);
    let set = |context: NativeCallContext, array: &mut Array, at: i64, value: Dynamic| -> Outcome<()> {
        let at = place(&context, array.len(), at)?;
        array[at] = value;
        Ok(())
    };
    own("set").place_in(&mut module.module, set);
    let copy = |array: &mut Array| array.clone();
    FuncRegistration::new("copy").in_global_namespace().with_purity(true).place_in(&mut module.module, copy);
}

/// `for_each`, as in Rhai: the closure has the element as `this`, and gets its number.
fn for_each(module: &mut Natives, host: &Arc<Host>) {
    let host = host.clone();
    let each = move |context: NativeCallContext, array: &mut Array, closure: FnPtr| -> Outcome<()> {
        if !array.is_empty() {
            each_counted::warn(&host, &context);
        }
        let mut closure = Callback::new(&context, &closure);
        for (at, value) in array.iter_mut().enumerate() {
            let answer = closure.call_on(Some(&mut *value), [Dynamic::from_int(at as i64)]);
            match answer {
                Err(error) if closure.is_other_arity(&error) => closure.call_on(Some(value), []).map(drop)?,
                answer => answer.map(drop)?,
            }
        }
        Ok(())
    };
    FuncRegistration::new("for_each").in_global_namespace().with_purity(false).place_in(&mut module.module, each);
}

/// `len` elements from `start` on; a negative `start` counts from the end.
fn part(array: &Array, start: i64, len: i64) -> Array {
    let n = array.len() as i64;
    let start = if start < 0 { start.saturating_add(n).max(0) } else { start.min(n) };
    let len = len.clamp(0, n - start);
    array[start as usize..(start + len) as usize].to_vec()
}

/// The truth value of a condition: a `bool`, or a tensor with one element.
pub fn truth(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Outcome<bool> {
    if let Ok(answer) = value.as_bool() {
        return Ok(answer);
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return observe::truth(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""));
    }
    let text = format!("a condition must be true or false, and this is {}", type_names::of_value(value));
    Err(host.raise(context, Diag::error(code::TYPE, text), ""))
}

/// What a closure makes of an element; the closure may also take the element's index, or see the element as `this`.
fn of_element(closure: &mut Callback, value: &mut Dynamic, at: usize) -> Outcome<Dynamic> {
    let number = || Dynamic::from_int(at as i64);
    if closure.takes(1) {
        return closure.lend([value]);
    }
    if closure.takes(2) {
        return closure.lend([value, &mut number()]);
    }
    let answer = closure.call([value.clone()]);
    if !answer.as_ref().is_err_and(|error| closure.is_other_arity(error)) {
        return answer;
    }
    let with_number = closure.call([value.clone(), number()]);
    match with_number {
        Err(error) if closure.is_other_arity(&error) => {
            let as_this = closure.call_on(Some(&mut value.clone()), []);
            if as_this.as_ref().is_err_and(|error| closure.is_other_arity(error)) { answer } else { as_this }
        }
        other => other,
    }
}

/// The closure's decision about an element.
fn decision(
    host: &Host,
    context: &NativeCallContext,
    closure: &mut Callback,
    value: &mut Dynamic,
    at: usize,
) -> Outcome<bool> {
    let answer = of_element(closure, value, at)?;
    truth(host, context, &answer)
}

/// `filter`, `retain`, `drain`, `some`, `any`, `all`, `find` and `index_of` with a closure.
fn predicate_methods(module: &mut Natives, host: &Arc<Host>) {
    let module = &mut module.module;
    // Not listed as natives: they call script code, and the call stack shows it.
    let mut add = |name: &'static str, kind: Predicate| {
        let host = host.clone();
        let call = move |context: NativeCallContext, array: &mut Array, closure: FnPtr| -> Outcome<Dynamic> {
            let mut closure = Callback::new(&context, &closure);
            kind.apply(array, |value, at| decision(&host, &context, &mut closure, value, at))
        };
        // Methods that change the array are refused for constants.
        let is_pure = !matches!(kind, Predicate::Retain | Predicate::Drain);
        FuncRegistration::new(name).in_global_namespace().with_purity(is_pure).place_in(module, call);
    };
    for (name, kind) in [
        ("filter", Predicate::Filter),
        ("retain", Predicate::Retain),
        ("drain", Predicate::Drain),
        ("some", Predicate::Some),
        ("any", Predicate::Some),
        ("all", Predicate::All),
        ("find", Predicate::Find),
        ("index_of", Predicate::IndexOf),
    ] {
        add(name, kind);
    }
}

#[derive(Clone, Copy)]
enum Predicate {
    /// The elements for which the closure is true.
    Filter,
    /// Keeps the elements for which the closure is true; returns the others.
    Retain,
    /// Removes the elements for which the closure is true, and returns them.
    Drain,
    Some,
    All,
    Find,
    IndexOf,
}

impl Predicate {
    fn apply(
        self,
        array: &mut Array,
        mut decide: impl FnMut(&mut Dynamic, usize) -> Outcome<bool>,
    ) -> Outcome<Dynamic> {
        let mut first = |expected: bool| -> Outcome<Option<usize>> {
            for (at, value) in array.iter_mut().enumerate() {
                if decide(value, at)? == expected {
                    return Ok(Some(at));
                }
            }
            Ok(None)
        };
        match self {
            Predicate::Some => return Ok(first(true)?.is_some().into()),
            Predicate::All => return Ok(first(false)?.is_none().into()),
            Predicate::Find => return Ok(first(true)?.map_or(Dynamic::UNIT, |at| array[at].clone())),
            Predicate::IndexOf => return Ok(Dynamic::from_int(first(true)?.map_or(-1, |at| at as i64))),
            Predicate::Filter | Predicate::Retain | Predicate::Drain => {}
        }
        let (mut chosen, mut others) = (Array::new(), Array::new());
        for (at, value) in array.iter_mut().enumerate() {
            if decide(value, at)? { &mut chosen } else { &mut others }.push(value.clone());
        }
        match self {
            Predicate::Retain => {
                *array = chosen;
                Ok(others.into())
            }
            Predicate::Drain => {
                *array = others;
                Ok(chosen.into())
            }
            _ => Ok(chosen.into()),
        }
    }
}

/// The order that a closure returns for two values: the sign of a number, or true for "the first comes first".
pub fn order(
    host: &Host,
    context: &NativeCallContext,
    compare: &mut Callback,
    x: &mut Dynamic,
    y: &mut Dynamic,
) -> Outcome<Ordering> {
    let mut answer = compare.lend([x, y])?;
    if let Some(tensor) = answer.clone().try_cast::<Tensor>() {
        let value = observe::item(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""))?;
        answer = crate::script::bind::properties::number(value);
    }
    if let Ok(first) = answer.as_bool() {
        return Ok(if first { Ordering::Less } else { Ordering::Greater });
    }
    let number = answer.as_int().map(|number| number as f64).or_else(|_| answer.as_float()).ok();
    number.and_then(|number| number.partial_cmp(&0.0)).ok_or_else(|| {
        let what = number.map_or_else(|| type_names::of_value(&answer).to_string(), |number| number.to_string());
        let text = format!("the order of two values is a number or a bool, not {what}");
        host.raise(context, Diag::error(code::ARGUMENT_TYPE, text).help("for example `|a, b| a - b`"), "")
    })
}

/// The values in order, taken out of their array once it is known. A stable merge sort; not the standard library's, which
/// panics if the order contradicts itself.
pub fn sorted(
    values: &mut Array,
    order: &mut dyn FnMut(&mut Dynamic, &mut Dynamic) -> Outcome<Ordering>,
) -> Outcome<Array> {
    // Sorts indices, so that nested values are copied once.
    let mut from: Vec<usize> = (0..values.len()).collect();
    let mut width = 1;
    while width < from.len() {
        let mut to = Vec::with_capacity(from.len());
        for part in from.chunks(2 * width) {
            let (left, right) = part.split_at(width.min(part.len()));
            let (mut i, mut j) = (0, 0);
            while i < left.len() && j < right.len() {
                let Ok([x, y]) = values.get_disjoint_mut([left[i], right[j]]) else { unreachable!("two places") };
                let second = order(x, y)? == Ordering::Greater;
                to.push(if second { right[j] } else { left[i] });
                (i, j) = (i + !second as usize, j + second as usize);
            }
            to.extend_from_slice(&left[i..]);
            to.extend_from_slice(&right[j..]);
        }
        from = to;
        width *= 2;
    }
    Ok(from.into_iter().map(|at| values[at].take()).collect())
}
