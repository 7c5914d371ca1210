//! What can be walked: arrays, ranges, strings, the keys of maps, tensors, sets, loaders, and whatever else a `for` loop
//! takes; and Python's functions of all these: `sorted`, `reversed`, `zip`, `enumerate`, `list`, `sum`, `min`, `max`,
//! `any`, `all`. The functions of tensors with these names are in the op table.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::compare;
use crate::script::bind::convert;
use crate::script::bind::iterate;
use crate::script::bind::rows::{Natives, WIDE_ARITY, by_keywords, raw};
use crate::script::host::Host;
use crate::script::language::arrays::{self, truth};
use crate::script::language::order;
use crate::script::language::ranges::{integers, steps};
use crate::script::language::sequences::{elements_fit, plain, total};
use crate::script::machine::callback::Callback;
use crate::script::values::ascii::text_of;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::{Native, Outcome};
use crate::script::values::set::Set;
use crate::script::values::steps::Steps;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Blob, Dynamic, EvalAltResult, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext};
use std::any::TypeId;
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Bound: elements that are taken between two checks whether the script must end.
const CHECK_ELEMENTS: usize = 1 << 12;
/// Bound: nesting of arrays that are compared, and so the depth of the recursion.
const DEPTH: usize = 100;
/// Values that the rows `min` and `max` take.
const ROW_ARITY: usize = 6;
/// Bound: parallel sequences of one `zip`.
const MAX_ZIPPED: usize = WIDE_ARITY;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    ordered(natives, host);
    together(natives, host);
    extremes(natives, host);
    for name in REDUCTIONS {
        let shared = host.clone();
        let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| {
            let context = context.expect("registered with a context");
            by_keywords(&shared, &context, name, values).unwrap_or_else(|| reduce(&shared, &context, name, values))
        });
        for kind in walked_types() {
            // Those of arrays that need no copy are in `sequences.rs` and `arrays.rs`.
            let counts = match name {
                "any" | "all" if kind == TypeId::of::<Array>() => continue,
                "sum" if kind == TypeId::of::<Array>() => 2..=2,
                _ => 1..=2,
            };
            natives.place_on(kind, name, counts, &call);
        }
    }
}

/// `max(a, b, ..)` of more numbers than the row of the name takes arguments.
fn extremes(natives: &mut Natives, host: &Arc<Host>) {
    for name in ["min", "max"] {
        let host = host.clone();
        let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| {
            let context = context.expect("registered with a context");
            reduce_other(&host, &context, name, values).unwrap_or_else(|| {
                let text = format!("`{name}`: of several values each is a number");
                Err(wrong(&host, &context, code::ARGUMENT_TYPE, text))
            })
        });
        natives.place(name, ROW_ARITY + 1..=WIDE_ARITY, &call);
    }
}

/// Rows that have a plain function of the same name.
const REDUCTIONS: [&str; 5] = ["sum", "min", "max", "any", "all"];

/// Types that these functions are registered for; others come through `reduce_other`.
fn walked_types() -> [TypeId; 9] {
    [
        TypeId::of::<char>(),
        TypeId::of::<Array>(),
        TypeId::of::<Range<i64>>(),
        TypeId::of::<RangeInclusive<i64>>(),
        TypeId::of::<Steps>(),
        TypeId::of::<ImmutableString>(),
        TypeId::of::<Map>(),
        TypeId::of::<Set>(),
        TypeId::of::<Blob>(),
    ]
}

/// The same functions of what else can be walked, and `max(a, b, c)`: asked by the rows of these names before they take
/// their values for tensors. None where the row is meant.
pub fn reduce_other(
    host: &Arc<Host>,
    context: &NativeCallContext,
    name: &str,
    values: &[&mut Dynamic],
) -> Option<Native> {
    let name = REDUCTIONS.into_iter().find(|known| *known == name)?;
    let first = values.first()?;
    let number = |value: &Dynamic| value.is_int() || value.is_float();
    if matches!(name, "min" | "max") && values.len() > 2 && values.iter().all(|value| number(value)) {
        let all: Array = values.iter().map(|value| (**value).clone()).collect();
        return Some(best(host, context, name, all, None));
    }
    if values.len() > 2
        || first.is::<Tensor>()
        || number(first)
        || first.is_map()
        || iterate::items(host, first.flatten_clone()).is_none()
    {
        return None;
    }
    Some(reduce(host, context, name, values))
}

fn wrong(host: &Host, context: &NativeCallContext, code: code::Code, text: String) -> Box<EvalAltResult> {
    host.raise(context, Diag::error(code, text), "")
}

/// The elements of whatever can be walked.
pub fn elements(host: &Arc<Host>, context: &NativeCallContext, value: &Dynamic) -> Outcome<Array> {
    if let Some(values) = value.read_lock::<Array>() {
        return Ok(values.clone());
    }
    if let Some(set) = value.read_lock::<Set>() {
        return Ok(set.iter().cloned().collect());
    }
    if let Some(steps) = steps(value) {
        return integers(host, context, steps);
    }
    if let Some(text) = value.read_lock::<ImmutableString>() {
        elements_fit(host, context, 0, text.chars().count())?;
        return Ok(text.chars().map(|c| text_of(c).into()).collect());
    }
    if let Some(map) = value.read_lock::<Map>() {
        return Ok(map.keys().map(|key| key.as_str().into()).collect());
    }
    if let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) {
        return iterate::rows(host, tensor).collect();
    }
    let Some(items) = iterate::items(host, value.flatten_clone()) else {
        let text = format!(
            "arrays, tensors, ranges, strings, maps and whatever else a loop takes have elements, {} has none",
            type_names::of_value(value)
        );
        return Err(wrong(host, context, code::ARGUMENT_TYPE, text));
    };
    let mut all = Array::new();
    for item in items {
        if all.len().is_multiple_of(CHECK_ELEMENTS) {
            host.rt.heed().map_err(|diag| host.raise(context, diag, ""))?;
            elements_fit(host, context, all.len(), CHECK_ELEMENTS)?;
        }
        all.push(item?);
    }
    Ok(all)
}

/// Python's order of two values: numbers, strings, bools, and arrays by their elements. None where they have no order.
fn order(host: &Host, context: &NativeCallContext, a: &Dynamic, b: &Dynamic) -> Outcome<Option<Ordering>> {
    order_within(host, context, a, b, 0)
}

fn order_within(
    host: &Host,
    context: &NativeCallContext,
    a: &Dynamic,
    b: &Dynamic,
    depth: usize,
) -> Outcome<Option<Ordering>> {
    // Rhai's `as_int` and its kin look for the name of the type where they fail.
    if a.is_int()
        && b.is_int()
        && let (Ok(a), Ok(b)) = (a.as_int(), b.as_int())
    {
        return Ok(Some(a.cmp(&b)));
    }
    if a.is_float()
        && b.is_float()
        && let (Ok(a), Ok(b)) = (a.as_float(), b.as_float())
        && let Some(order) = a.partial_cmp(&b)
    {
        return Ok(Some(order));
    }
    if let (Some(a), Some(b)) = (a.read_lock::<Array>(), b.read_lock::<Array>()) {
        if depth == DEPTH {
            let text = format!("arrays that are nested more than {DEPTH} deep have no order");
            return Err(wrong(host, context, code::VALUE, text));
        }
        for (a, b) in a.iter().zip(b.iter()) {
            match order_within(host, context, a, b, depth + 1)? {
                Some(Ordering::Equal) => {}
                other => return Ok(other),
            }
        }
        return Ok(Some(a.len().cmp(&b.len())));
    }
    let (a, b) = (plain(host, context, a)?, plain(host, context, b)?);
    Ok(match (compare::compare("<", &a, &b), compare::compare(">", &a, &b)) {
        (Some(true), _) => Some(Ordering::Less),
        (_, Some(true)) => Some(Ordering::Greater),
        (Some(false), _) => Some(Ordering::Equal),
        _ => None,
    })
}

#[cold]
fn no_order(host: &Host, context: &NativeCallContext, a: &Dynamic, b: &Dynamic) -> Box<EvalAltResult> {
    let (a, b) = (type_names::of_value(a), type_names::of_value(b));
    let diag = Diag::error(code::ARGUMENT_TYPE, format!("{a} and {b} have no order"));
    host.raise(context, diag.help("a closure gives what to order by: `sorted(xs, |x| x.len())`"), "")
}

/// An ordered copy; equal ones keep their order.
pub fn in_order(host: &Host, context: &NativeCallContext, values: &mut Array) -> Outcome<Array> {
    if let Some(places) = order::places(values) {
        return Ok(places.into_iter().map(|at| values[at].take()).collect());
    }
    arrays::sorted(values, &mut |a, b| {
        host.rt.heed().map_err(|diag| host.raise(context, diag, ""))?;
        order(host, context, a, b)?.ok_or_else(|| no_order(host, context, a, b))
    })
}

/// `sorted`, `reversed`, and `sort` without a closure, which Rhai has for values of one type only.
fn ordered(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    let sort = move |context: NativeCallContext, values: &mut Array| -> Outcome<()> {
        *values = in_order(&shared, &context, values)?;
        Ok(())
    };
    natives.note("sort");
    let own = FuncRegistration::new("sort").in_global_namespace().with_purity(false);
    own.place_in(&mut natives.module, sort);
    for name in ["sort", "sort_by"] {
        let shared = host.clone();
        let sort = move |context: NativeCallContext, values: &mut Array, by: FnPtr| -> Outcome<()> {
            *values = by_closure(&shared, &context, values, &by, false)?;
            Ok(())
        };
        FuncRegistration::new(name).in_global_namespace().with_purity(false).place_in(&mut natives.module, sort);
    }
    let shared = host.clone();
    let sort = move |context: NativeCallContext, values: &mut Array, options: Map| -> Outcome<()> {
        let mut options = Dynamic::from_map(options);
        let keywords = Keywords::read(&shared, &context, "sort", &["key", "reverse"], &[&mut options])?;
        *values = sorted_by(&shared, &context, &keywords, values)?;
        Ok(())
    };
    FuncRegistration::new("sort").in_global_namespace().with_purity(false).place_in(&mut natives.module, sort);
    // Not noted: it may call script code, and the call stack shows it.
    for count in 1..=3 {
        let shared = host.clone();
        let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| {
            sorted(&shared, &context.expect("registered with a context"), values)
        });
        natives.place("sorted", count..=count, &call);
    }
    let shared = host.clone();
    raw(natives, "reversed", 1, move |context, values| {
        let context = context.expect("registered with a context");
        let mut all = elements(&shared, &context, values[0])?;
        all.reverse();
        Ok(all.into())
    });
}

/// `sorted(xs)`, `sorted(xs, key)`, `sorted(xs, compare)`, `sorted(xs, #{key: .., reverse: true})`.
fn sorted(host: &Arc<Host>, context: &NativeCallContext, values: &[&mut Dynamic]) -> Native {
    let mut all = elements(host, context, values[0])?;
    let keywords = Keywords::read(host, context, "sorted", &["key", "reverse"], &values[1..])?;
    Ok(sorted_by(host, context, &keywords, &mut all)?.into())
}

/// The values in the order that the keywords say. They are moved once it is known: an error leaves them as they were.
fn sorted_by(host: &Host, context: &NativeCallContext, keywords: &Keywords, all: &mut Array) -> Outcome<Array> {
    let reverse = match keywords.get("reverse") {
        None => false,
        Some(reverse) => reverse.as_bool().map_err(|_| {
            let kind = type_names::of_value(&reverse);
            let text = format!("`{}`: `reverse` is true or false, not {kind}", keywords.name);
            wrong(host, context, code::ARGUMENT_TYPE, text)
        })?,
    };
    match keywords.closure("key")? {
        None if reverse => reversed_in_order(host, context, all.clone()),
        None => in_order(host, context, all),
        Some(by) => by_closure(host, context, all, &by, reverse),
    }
}

/// From the largest to the smallest; equal ones keep their order, as in Python.
fn reversed_in_order(host: &Host, context: &NativeCallContext, mut all: Array) -> Outcome<Array> {
    all.reverse();
    let mut done = in_order(host, context, &mut all)?;
    done.reverse();
    Ok(done)
}

/// Ordered by what a closure of one value gives, or by a closure that compares two.
fn by_closure(host: &Host, context: &NativeCallContext, all: &mut Array, by: &FnPtr, reverse: bool) -> Outcome<Array> {
    if !reverse {
        return ordered_by(host, context, all, by);
    }
    // Equal ones keep their order, as in Python.
    all.reverse();
    let mut done = ordered_by(host, context, all, by);
    match &mut done {
        Ok(done) => done.reverse(),
        Err(_) => all.reverse(),
    }
    done
}

fn ordered_by(host: &Host, context: &NativeCallContext, all: &mut Array, by: &FnPtr) -> Outcome<Array> {
    let mut by = Callback::new(context, by);
    Ok(match keys(all, &mut by)? {
        Some(keys) if let Some(places) = order::places(&keys) => {
            places.into_iter().map(|at| std::mem::take(&mut all[at])).collect()
        }
        Some(keys) => {
            let mut places: Array = (0..all.len() as i64).map(Dynamic::from_int).collect();
            places = arrays::sorted(&mut places, &mut |a, b| {
                host.rt.heed().map_err(|diag| host.raise(context, diag, ""))?;
                let key = |at: &Dynamic| &keys[at.as_int().unwrap_or(0) as usize];
                order(host, context, key(a), key(b))?.ok_or_else(|| no_order(host, context, key(a), key(b)))
            })?;
            places.iter().map(|at| std::mem::take(&mut all[at.as_int().unwrap_or(0) as usize])).collect()
        }
        None => arrays::sorted(all, &mut |a, b| arrays::order(host, context, &mut by, a, b))?,
    })
}

/// What a closure gives for each value; none if it takes two.
fn keys(all: &mut Array, by: &mut Callback) -> Outcome<Option<Array>> {
    if !by.takes(1) && by.takes(2) {
        return Ok(None);
    }
    let mut keys = Array::with_capacity(all.len());
    for value in all {
        match by.lend([value]) {
            Ok(key) => keys.push(key),
            Err(error) if keys.is_empty() && by.is_other_arity(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(keys))
}

/// Keywords of a call behind its first value, or a closure in the place of `key`.
struct Keywords<'a> {
    host: &'a Host,
    context: &'a NativeCallContext<'a>,
    name: &'a str,
    given: Map,
}

impl<'a> Keywords<'a> {
    fn read(
        host: &'a Host,
        context: &'a NativeCallContext<'a>,
        name: &'a str,
        known: &[&'static str],
        values: &[&mut Dynamic],
    ) -> Outcome<Keywords<'a>> {
        let mut given = Map::new();
        for (at, value) in values.iter().enumerate() {
            if let Some(map) = value.read_lock::<Map>().filter(|_| at + 1 == values.len()) {
                if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
                    let mut diag = crate::base::suggest::unknown_keyword(key, known);
                    diag.message = format!("`{name}`: {}", diag.message);
                    return Err(host.raise(context, diag, ""));
                }
                given.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
                continue;
            }
            // The first is given by position too, the others by name alone.
            let Some(key) = known.get(at).filter(|_| at == 0) else {
                let text =
                    format!("`{name}`: {} arguments given, at most {} are taken", values.len() + 1, known.len() + 1);
                return Err(wrong(host, context, code::EXTRA_ARGUMENT, text));
            };
            given.insert((*key).into(), (**value).clone());
        }
        Ok(Keywords { host, context, name, given })
    }

    fn get(&self, key: &str) -> Option<Dynamic> {
        self.given.get(key).filter(|value| !value.is_unit()).cloned()
    }

    fn closure(&self, key: &str) -> Outcome<Option<FnPtr>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let kind = type_names::of_value(&value);
        value.try_cast::<FnPtr>().map(Some).ok_or_else(|| {
            let text = format!("`{}`: `{key}` is a closure, not {kind}", self.name);
            wrong(self.host, self.context, code::ARGUMENT_TYPE, text)
        })
    }
}

/// `sum`, `min`, `max`, `any`, `all` of what can be walked.
fn reduce(host: &Arc<Host>, context: &NativeCallContext, name: &'static str, values: &[&mut Dynamic]) -> Native {
    if let ([range], "sum" | "min" | "max") = (values, name)
        && let Some(found) = of_range(range, name)
    {
        return Ok(found.into());
    }
    if let ([values], "min" | "max") = (values, name)
        && let Some(found) = values.read_lock::<Array>().and_then(|values| of_integers(&values, name))
    {
        return Ok(found.into());
    }
    let all = elements(host, context, values[0])?;
    match name {
        "sum" => {
            let start = values.get(1).map_or(Dynamic::from_int(0), |start| (**start).clone());
            total(context, &all, start)
        }
        "min" | "max" if values.get(1).is_some_and(|second| !second.is_map() && !second.is_fnptr()) => {
            let both = values.iter().map(|value| (**value).clone()).collect();
            best(host, context, name, both, None)
        }
        "min" | "max" => {
            let keywords = Keywords::read(host, context, name, &["key", "default"], &values[1..])?;
            if all.is_empty() && keywords.given.contains_key("default") {
                return Ok(keywords.given["default"].clone());
            }
            let by = keywords.closure("key")?;
            best(host, context, name, all, by.as_ref())
        }
        _ => {
            let stops_at = name == "any";
            let closure = values.get(1).and_then(|closure| closure.read_lock::<FnPtr>().map(|closure| closure.clone()));
            let mut closure = closure.as_ref().map(|closure| Callback::new(context, closure));
            for value in &all {
                let answer = match &mut closure {
                    Some(closure) => closure.call([value.clone()])?,
                    None => value.clone(),
                };
                if truth(host, context, &answer)? == stops_at {
                    return Ok(stops_at.into());
                }
            }
            Ok((!stops_at).into())
        }
    }
}

/// The largest or smallest of an array's integers, which are not copied for it; none where something else is among them.
fn of_integers(values: &Array, name: &str) -> Option<i64> {
    let mut integers = values.iter().map(|value| value.is_int().then(|| value.as_int().ok()).flatten());
    let first = integers.next()??;
    integers.try_fold(first, |best, next| Some(if name == "max" { best.max(next?) } else { best.min(next?) }))
}

/// The sum or an end of the integers of a range, none of which is made for it; none where there is no such integer.
fn of_range(value: &Dynamic, name: &str) -> Option<i64> {
    let range = match value.read_lock::<RangeInclusive<i64>>() {
        Some(range) if range.is_empty() => 0..0,
        Some(range) => i128::from(*range.start())..i128::from(*range.end()) + 1,
        None => value.read_lock::<Range<i64>>().map(|range| i128::from(range.start)..i128::from(range.end))?,
    };
    match name {
        "sum" if range.is_empty() => Some(0),
        // Bound: a product of two numbers of 65 bits overflows.
        "sum" => i64::try_from((range.start + range.end - 1).checked_mul(range.end - range.start)? / 2).ok(),
        _ if range.is_empty() => None,
        "min" => i64::try_from(range.start).ok(),
        _ => i64::try_from(range.end - 1).ok(),
    }
}

/// The first of the largest or smallest values, by themselves or by what a closure gives for each.
fn best(host: &Host, context: &NativeCallContext, name: &str, mut all: Array, by: Option<&FnPtr>) -> Native {
    let keys = match by {
        Some(by) => {
            let mut by = Callback::new(context, by);
            Some(all.iter_mut().map(|value| by.lend([value])).collect::<Outcome<Array>>()?)
        }
        None => None,
    };
    let keys = keys.as_ref().unwrap_or(&all);
    let wanted = if name == "max" { Ordering::Greater } else { Ordering::Less };
    let mut best = 0;
    for (at, key) in keys.iter().enumerate() {
        // As for tensors: a value that is not a number has no order with others.
        if !key.is_int() && plain(host, context, key)?.as_float().is_ok_and(f64::is_nan) {
            best = at;
            break;
        }
        match order(host, context, key, &keys[best])? {
            Some(order) if order == wanted => best = at,
            Some(_) => {}
            None => {
                let (a, b) = (type_names::of_value(key), type_names::of_value(&keys[best]));
                return Err(wrong(host, context, code::ARGUMENT_TYPE, format!("`{name}`: {a} and {b} have no order")));
            }
        }
    }
    match all.get_mut(best) {
        Some(value) => Ok(std::mem::take(value)),
        None => {
            let diag = Diag::error(code::VALUE, format!("`{name}`: there are no values"));
            Err(host.raise(context, diag.help(format!("`{name}(xs, #{{default: 0}})` says what to give then")), ""))
        }
    }
}

/// `enumerate(xs, start)`, `zip(xs, ys)`, `list(xs)`.
fn together(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(natives, "list", 1, move |context, values| {
        elements(&shared, &context.expect("registered with a context"), values[0]).map(Dynamic::from)
    });
    // In the head of a loop, which counts itself.
    // Not: `take`. Rhai passes the first argument by reference where it is a variable.
    raw(natives, "__enumerate", 1, |_, values| Ok(values[0].clone()));
    for arity in 1..=2 {
        let shared = host.clone();
        raw(natives, "enumerate", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            // Also `#{start: 1}`.
            let named = |map: &Map| if map.len() == 1 { map.get("start").and_then(convert::integer) } else { None };
            let start = |value: &&mut Dynamic| match value.read_lock::<Map>() {
                Some(map) => named(&map),
                None => convert::integer(value),
            };
            let start = match values.get(1).map(start) {
                None => 0,
                Some(Some(start)) => start,
                Some(None) => {
                    let text = "`enumerate`: `start` is an integer".to_string();
                    return Err(wrong(&shared, &context, code::ARGUMENT_TYPE, text));
                }
            };
            let inside = elements(&shared, &context, values[0])?;
            elements_fit(&shared, &context, inside.len(), inside.len().saturating_mul(2))?;
            let counted = inside.into_iter().zip(start..).map(|(x, i)| vec![Dynamic::from_int(i), x]);
            Ok(counted.map(Dynamic::from_array).collect::<Array>().into())
        });
    }
    for arity in 1..=MAX_ZIPPED {
        let shared = host.clone();
        raw(natives, "zip", arity, move |context, values| {
            zipped(&shared, &context.expect("registered with a context"), values)
        });
    }
}

/// Rows of the first elements, the second ones, and so on; a last map `#{strict: true}` wants all of one length.
fn zipped(host: &Arc<Host>, context: &NativeCallContext, values: &[&mut Dynamic]) -> Native {
    let options = values.last().filter(|_| values.len() > 1).and_then(|last| {
        let map = last.read_lock::<Map>()?;
        (map.len() == 1).then(|| map.get("strict").cloned()).flatten()
    });
    let columns = &values[..values.len() - options.is_some() as usize];
    let columns = columns.iter().map(|value| elements(host, context, value)).collect::<Outcome<Vec<_>>>()?;
    let count = columns.iter().map(Vec::len).min().unwrap_or(0);
    let is_strict = options.is_some_and(|strict| strict.as_bool().unwrap_or(true));
    if let Some(longer) = columns.iter().map(Vec::len).find(|&len| is_strict && len != count) {
        let text = format!("`zip`: one has {count} elements, another {longer}");
        return Err(wrong(host, context, code::VALUE, text));
    }
    elements_fit(host, context, count, count.saturating_mul(columns.len()))?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let rows = (0..count).map(|_| columns.iter_mut().filter_map(Iterator::next).collect::<Array>());
    Ok(rows.map(Dynamic::from_array).collect::<Array>().into())
}
