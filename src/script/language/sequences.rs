//! Arrays, ranges and maps as in Python: `xs * 3`, `x in xs`, `xs.count(1)`, `range(n)`, `m.items()`; and conversions of
//! plain values. What works on everything that can be walked is in `walk.rs`, the functions of tensors in the op table.

use crate::base::arithmetic::whole;
use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::compare::values_equal;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::language::arguments;
use crate::script::language::arrays;
use crate::script::language::growth;
use crate::script::language::growth::SizeCheck;
use crate::script::language::printing::plain_text;
use crate::script::language::show;
use crate::script::language::text::numerals;
use crate::script::language::walk;
use crate::script::machine::ENTRIES;
use crate::script::machine::callback::Callback;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::raise::Outcome;
use crate::script::values::raise::raise;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::observe;
use rhai::{
    Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc, Variant,
};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    totals(module, host);
    contained(module, host);
    compared(module, host);
    cases(module, host);
    growing(module, host);
    maps(module);
    conversions(module, host);
    asserted(module, host);
}

/// An error where an array of `held` values plus `more` plain ones would exceed the session's limits.
pub fn elements_fit(host: &Host, context: &NativeCallContext, held: usize, more: usize) -> Outcome<()> {
    SizeCheck { host, context }.array(held.saturating_add(more), more.saturating_mul(size_of::<Dynamic>()))
}

fn of(module: &mut Natives, name: &'static str) -> FuncRegistration {
    module.note(name);
    FuncRegistration::new(name).in_global_namespace()
}

/// Changes the value that it is called on: refused for constants.
fn changing(module: &mut Natives, name: &'static str) -> FuncRegistration {
    of(module, name).with_purity(false)
}

/// A function that may call script code: not listed as a native, so that the call stack shows it.
fn calling(name: &'static str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

fn wrong(context: &NativeCallContext, code: code::Code, text: String) -> Box<EvalAltResult> {
    raise(Diag::error(code, text), context.call_position())
}

/// `sum`, `any` and `all` of an array, without a copy. The others are in `walk.rs`.
fn totals(module: &mut Natives, host: &Arc<Host>) {
    let add = |context: NativeCallContext, values: &mut Array| total(&context, values, Dynamic::from_int(0));
    of(module, "sum").place_in(&mut module.module, add);
    for (name, stops_at) in [("any", true), ("all", false)] {
        let shared = host.clone();
        let found = move |context: NativeCallContext, values: &mut Array| -> Outcome<bool> {
            for value in values.iter() {
                if arrays::truth(&shared, &context, value)? == stops_at {
                    return Ok(stops_at);
                }
            }
            Ok(!stops_at)
        };
        of(module, name).place_in(&mut module.module, found);
    }
}

/// Values added up, as `+` adds them. Texts are added to a text only, never to the number that a sum begins with.
pub fn total(context: &NativeCallContext, values: &Array, start: Dynamic) -> Native {
    let mut sum = start;
    for value in values {
        sum = match (Plain::of(&sum), Plain::of(value)) {
            (Plain::Int(a), Plain::Int(b)) => {
                let overflow =
                    || wrong(context, code::ARITHMETIC, format!("`sum`: {a} and {b} give no integer of 64 bits"));
                Dynamic::from_int(a.checked_add(b).ok_or_else(overflow)?)
            }
            (Plain::Float(a), Plain::Float(b)) => Dynamic::from_float(a + b),
            (Plain::Int(a), Plain::Float(b)) | (Plain::Float(b), Plain::Int(a)) => Dynamic::from_float(a as f64 + b),
            _ if (sum.is_int() || sum.is_float()) && (value.is_string() || value.is_char()) => {
                let text = format!("`sum`: {} cannot be added to a number", type_names::of_value(value));
                let diag = Diag::error(code::TYPE, text).help("`xs.join(\"\")` joins strings");
                return Err(raise(diag, context.call_position()));
            }
            _ => context.call_fn_raw("+", true, false, &mut [&mut sum, &mut value.clone()])?,
        };
    }
    Ok(sum)
}

/// A number; a truth counts as one, as in sums of tensors.
enum Plain {
    Int(i64),
    Float(f64),
    Other,
}

impl Plain {
    // Rhai's `as_int` and its kin look for the name of the type where they fail.
    fn of(value: &Dynamic) -> Plain {
        if value.is_int() {
            value.as_int().map_or(Plain::Other, Plain::Int)
        } else if value.is_float() {
            value.as_float().map_or(Plain::Other, Plain::Float)
        } else if value.is_bool() {
            value.as_bool().map_or(Plain::Other, |truth| Plain::Int(truth.into()))
        } else {
            Plain::Other
        }
    }
}

/// `==` and `!=` of arrays and of maps, and the functions that use them: `in`, `index_of`, `dedup`. Rhai's own treat
/// the tensor that `==` of a tensor returns as "no".
fn compared(module: &mut Natives, host: &Arc<Host>) {
    for (symbol, expected) in [("==", true), ("!=", false)] {
        for kind in [TypeId::of::<Array>(), TypeId::of::<Map>()] {
            let shared = host.clone();
            let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
                let context = context.expect("registered with a context");
                Ok((values_equal(&shared, &context, values[0], values[1])? == expected).into())
            };
            let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
            FuncRegistration::new(symbol).in_global_namespace().place_raw_in(&mut module.module, [kind, kind], func);
        }
    }
    let shared = host.clone();
    let contains = move |context: NativeCallContext, values: &mut Array, value: Dynamic| -> Outcome<bool> {
        Ok(place(&shared, &context, values, &value, 0)?.is_some())
    };
    of(module, "contains").with_purity(true).place_in(&mut module.module, contains);
    let shared = host.clone();
    let index = move |context: NativeCallContext, values: &mut Array, value: Dynamic| -> Outcome<i64> {
        Ok(place(&shared, &context, values, &value, 0)?.map_or(-1, |at| at as i64))
    };
    calling("index_of").with_purity(true).place_in(&mut module.module, index);
    let shared = host.clone();
    let index = move |context: NativeCallContext, values: &mut Array, value: Dynamic, from: i64| -> Outcome<i64> {
        let from = if from < 0 { from.saturating_add(values.len() as i64) } else { from };
        let from = usize::try_from(from).unwrap_or(0);
        Ok(place(&shared, &context, values, &value, from)?.map_or(-1, |at| at as i64))
    };
    calling("index_of").with_purity(true).place_in(&mut module.module, index);
    let shared = host.clone();
    let count = move |context: NativeCallContext, values: &mut Array, value: Dynamic| -> Outcome<i64> {
        let mut count = 0;
        if let Some(closure) = value.read_lock::<FnPtr>().map(|closure| closure.clone())
            && !values.iter().any(|value| value.is::<FnPtr>())
        {
            let mut closure = Callback::new(&context, &closure);
            for other in values.iter() {
                let answer = closure.call([other.clone()])?;
                count += arrays::truth(&shared, &context, &answer)? as i64;
            }
            return Ok(count);
        }
        for other in values.iter() {
            count += values_equal(&shared, &context, other, &value)? as i64;
        }
        Ok(count)
    };
    calling("count").with_purity(true).place_in(&mut module.module, count);
    let shared = host.clone();
    let index = move |context: NativeCallContext, values: &mut Array, value: Dynamic| -> Outcome<i64> {
        place(&shared, &context, values, &value, 0)?.map(|at| at as i64).ok_or_else(|| {
            let diag = Diag::error(code::VALUE, "`index`: the value is not in the array");
            shared.raise(&context, diag.help("`xs.index_of(value)` gives -1 where there is none"), "")
        })
    };
    of(module, "index").with_purity(true).place_in(&mut module.module, index);
    let shared = host.clone();
    let dedup = move |context: NativeCallContext, values: &mut Array| -> Outcome<()> {
        let mut kept: Array = Vec::with_capacity(values.len());
        for value in values.iter() {
            let again = kept.last().map_or(Ok(false), |last| values_equal(&shared, &context, last, value))?;
            if !again {
                kept.push(value.clone());
            }
        }
        *values = kept;
        Ok(())
    };
    calling("dedup").with_purity(false).place_in(&mut module.module, dedup);
}

/// The first index of a value, from an index on.
fn place(
    host: &Host,
    context: &NativeCallContext,
    values: &Array,
    value: &Dynamic,
    from: usize,
) -> Outcome<Option<usize>> {
    for (at, other) in values.iter().enumerate().skip(from) {
        if values_equal(host, context, other, value)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The value that a `switch` compares: for a tensor with one element, that element, also inside arrays and maps.
fn cases(module: &mut Natives, host: &Arc<Host>) {
    fn case(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Native {
        if let Some(values) = value.read_lock::<Array>() {
            return values
                .iter()
                .map(|value| case(host, context, value))
                .collect::<Outcome<Array>>()
                .map(Dynamic::from);
        }
        if let Some(entries) = value.read_lock::<Map>() {
            let entry = |(name, value): (&_, &_)| Ok((Clone::clone(name), case(host, context, value)?));
            return entries.iter().map(entry).collect::<Outcome<Map>>().map(Dynamic::from);
        }
        plain(host, context, value)
    }
    let shared = host.clone();
    raw(module, "__args", 0, move |_, _| -> Native { Ok(arguments::words(&shared).into()) });
    // Where Rhai evaluates it: elsewhere the compiler has made one literal of it.
    raw(module, ENTRIES, 1, |_, values| -> Native {
        let parts = values[0].read_lock::<Array>();
        let parts = parts.iter().flat_map(|parts| parts.iter()).filter_map(Dynamic::read_lock::<Map>);
        Ok(parts.flat_map(|part| part.clone()).collect::<Map>().into())
    });
    let shared = host.clone();
    raw(module, "__case", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        // As `==` does: `switch model.training { true => .. }`.
        match values[0].read_lock::<Cell>().map(|cell| cell.get()) {
            Some(inside) => case(&shared, &context, &inside),
            None => case(&shared, &context, values[0]),
        }
    });
}

/// `value in tensor`.
fn contained(module: &mut Natives, host: &Arc<Host>) {
    let host = host.clone();
    let contains = move |context: NativeCallContext, tensor: Tensor, mut value: Dynamic| -> Outcome<bool> {
        if !value.is::<Tensor>() && !value.is::<Cell>() && convert::scalar(&value).is_none() {
            let what = type_names::of_value(&value);
            let text = format!("`contains`: a number or a tensor is looked for in a tensor, not {what}");
            return Err(raise(Diag::error(code::ARGUMENT_TYPE, text), context.call_position()));
        }
        let mut same = context.call_fn_raw("eq", true, false, &mut [&mut Dynamic::from(tensor), &mut value])?;
        let found = context.call_fn_raw("any", true, false, &mut [&mut same])?;
        arrays::truth(&host, &context, &found)
    };
    of(module, "contains").place_in(&mut module.module, contains);
}

/// The value to compare: for a tensor with one element, that element.
pub fn plain(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Native {
    match value.read_lock::<Tensor>() {
        Some(tensor) => {
            let item = observe::item(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""))?;
            Ok(crate::script::bind::properties::number(item))
        }
        None => Ok(value.clone()),
    }
}

/// Functions that make an array longer.
fn growing(module: &mut Natives, host: &Arc<Host>) {
    fn repeat(host: &Host, context: &NativeCallContext, values: &Array, times: i64) -> Outcome<Array> {
        let times = usize::try_from(times).unwrap_or(0);
        let (elements, bytes) = values.iter().map(growth::size).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        SizeCheck { host, context }.array(elements.saturating_mul(times), bytes.saturating_mul(times))?;
        // Not: `repeat_n` of nothing, which goes through all the times.
        let times = if values.is_empty() { 0 } else { times };
        if let [one] = &**values
            && let Some(copies) = copies(one, times)
        {
            return Ok(copies);
        }
        let mut all = Array::with_capacity(values.len() * times);
        for _ in 0..times {
            all.extend_from_slice(values);
        }
        Ok(all)
    }
    let own = || FuncRegistration::new("*").in_global_namespace();
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, values: Array, times: i64| {
        repeat(&shared, &context, &values, times)
    });
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, times: i64, values: Array| {
        repeat(&shared, &context, &values, times)
    });
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, values: Array, times: f64| {
        repeat(&shared, &context, &values, convert::times(&context, "array, f64", times)?)
    });
    let shared = host.clone();
    own().place_in(&mut module.module, move |context: NativeCallContext, times: f64, values: Array| {
        repeat(&shared, &context, &values, convert::times(&context, "f64, array", times)?)
    });
    // Rhai's own joins two arrays and stays registered for that.
    let shared = host.clone();
    let push = move |context: NativeCallContext, values: &mut Array, item: Dynamic| -> Outcome<()> {
        SizeCheck { host: &shared, context: &context }.one_more(values, &item)?;
        values.push(item);
        Ok(())
    };
    changing(module, "append").place_in(&mut module.module, push);
    let shared = host.clone();
    let extend = move |context: NativeCallContext, values: &mut Array, more: Dynamic| -> Outcome<()> {
        let more = walk::elements(&shared, &context, &more)?;
        elements_fit(&shared, &context, values.len(), more.len())?;
        values.extend(more);
        Ok(())
    };
    changing(module, "extend").place_in(&mut module.module, extend);
    let pop = |context: NativeCallContext, values: &mut Array, at: i64| -> Native {
        let index = if at < 0 { at + values.len() as i64 } else { at };
        match usize::try_from(index) {
            Ok(index) if index < values.len() => Ok(values.remove(index)),
            _ => Err(Box::new(EvalAltResult::ErrorArrayBounds(values.len(), at, context.call_position()))),
        }
    };
    changing(module, "pop").place_in(&mut module.module, pop);
}

/// Methods that Rhai's maps lack.
fn maps(module: &mut Natives) {
    let items = |map: &mut Map| -> Array {
        map.iter().map(|(key, value)| Dynamic::from(vec![key.as_str().into(), value.clone()] as Array)).collect()
    };
    calling("items").place_in(&mut module.module, items);
    calling("update").with_purity(false).place_in(&mut module.module, |map: &mut Map, other: Map| map.extend(other));
    keyed(module, |key: &ImmutableString, _| key.as_str());
    keyed(module, |key: &char, buffer| key.encode_utf8(buffer));
    // Those that Rhai has with strings as keys.
    let key = |c: char| c.to_string();
    of(module, "get").place_in(&mut module.module, move |map: &mut Map, c: char| -> Dynamic {
        map.get(&*key(c)).cloned().unwrap_or(Dynamic::UNIT)
    });
    calling("contains").place_in(&mut module.module, move |map: &mut Map, c: char| map.contains_key(&*key(c)));
    calling("remove").with_purity(false).place_in(&mut module.module, move |map: &mut Map, c: char| -> Dynamic {
        map.remove(&*key(c)).unwrap_or(Dynamic::UNIT)
    });
    calling("set").with_purity(false).place_in(&mut module.module, move |map: &mut Map, c: char, value: Dynamic| {
        map.insert(key(c).into(), value);
    });
}

/// The forms of `get` and `pop` that take a string or a character.
fn keyed<K: Variant + Clone>(module: &mut Natives, name: for<'k> fn(&'k K, &'k mut [u8; 4]) -> &'k str) {
    let get =
        move |map: &mut Map, key: K, default: Dynamic| map.get(name(&key, &mut [0; 4])).cloned().unwrap_or(default);
    of(module, "get").place_in(&mut module.module, get);
    let pop = move |map: &mut Map, key: K, default: Dynamic| map.remove(name(&key, &mut [0; 4])).unwrap_or(default);
    changing(module, "pop").place_in(&mut module.module, pop);
    let pop = move |context: NativeCallContext, map: &mut Map, key: K| -> Native {
        let (mut buffer, missing) = ([0; 4], |key: &str| format!("the map has no entry `{key}`"));
        let key = name(&key, &mut buffer);
        map.remove(key).ok_or_else(|| wrong(&context, code::INDEX, missing(key)))
    };
    changing(module, "pop").place_in(&mut module.module, pop);
}

/// `int("5")`, `float("2.5")`, `str(x)`, `bool(x)`, `list(x)`, `round(x, 2)`.
fn conversions(module: &mut Natives, host: &Arc<Host>) {
    module.note("int");
    let shared = host.clone();
    let parse = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let ten = Dynamic::from_int(10);
        let base = values.get(1).map_or(&ten, |base| &**base);
        numerals::parsed(values[0], base).map(Dynamic::from_int).map_err(|mut diag| {
            diag.message = format!("`int`: {}", diag.message);
            shared.raise(&context, diag, "")
        })
    };
    let parse = GuardedCall::new(parse);
    for text in [TypeId::of::<ImmutableString>(), TypeId::of::<char>()] {
        module.place_on(text, "int", 1..=2, &parse);
    }
    fn float(context: &NativeCallContext, text: &str) -> Outcome<f64> {
        numerals::float(text).ok_or_else(|| wrong(context, code::VALUE, format!("`float`: {text:?} is no number")))
    }
    of(module, "float").place_in(&mut module.module, |context: NativeCallContext, text: &str| float(&context, text));
    of(module, "float").place_in(&mut module.module, |context: NativeCallContext, letter: char| {
        float(&context, letter.encode_utf8(&mut [0; 4]))
    });
    of(module, "int").place_in(&mut module.module, |on: bool| on as i64);
    of(module, "float").place_in(&mut module.module, |on: bool| on as i64 as f64);
    of(module, "bool").place_in(&mut module.module, |on: bool| on);
    of(module, "bool").place_in(&mut module.module, |x: i64| x != 0);
    of(module, "bool").place_in(&mut module.module, |x: f64| x != 0.0);
    of(module, "bool").place_in(&mut module.module, |text: &str| !text.is_empty());
    of(module, "bool").place_in(&mut module.module, |values: &mut Array| !values.is_empty());
    of(module, "bool").place_in(&mut module.module, |map: &mut Map| !map.is_empty());
    of(module, "bool").place_in(&mut module.module, |_: ()| false);
    of(module, "bool").place_in(&mut module.module, |_: char| true);
    of(module, "bool").place_in(&mut module.module, |_: FnPtr| true);
    let shared = host.clone();
    raw(module, "str", 1, move |context, values| -> Native {
        if let Some(text) = plain_text(values[0]) {
            return Ok(text.into());
        }
        let context = context.expect("registered with a context");
        show::value(&shared, values[0]).map(Dynamic::from).map_err(|diag| shared.raise(&context, diag, ""))
    });
    // As in Python: by the decimal digits, halves to the even one.
    of(module, "round").place_in(&mut module.module, round_to);
    // A float that is a whole number stands for the integer.
    let shared = host.clone();
    let round = move |context: NativeCallContext, x: f64, digits: f64| match whole(digits) {
        Some(digits) => Ok(round_to(x, digits)),
        None => {
            let text = format!("`round`: `ndigits` is an integer, not {digits}");
            Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""))
        }
    };
    of(module, "round").place_in(&mut module.module, round);
}

/// `x` with so many decimal digits, halves to the even one.
fn round_to(x: f64, digits: i64) -> f64 {
    match usize::try_from(digits) {
        Ok(digits) => format!("{x:.*}", digits.min(400)).parse().unwrap_or(x),
        Err(_) => numerals::rounded_to_tens(x, digits.unsigned_abs()),
    }
}

/// `assert(x == y)`, `assert(x == y, "they differ")`.
fn asserted(module: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=2 {
        let shared = host.clone();
        raw(module, "assert", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            if arrays::truth(&shared, &context, values[0])? {
                return Ok(Dynamic::UNIT);
            }
            let text = match values.get(1) {
                Some(message) => show::value(&shared, message).map_err(|diag| shared.raise(&context, diag, ""))?,
                None => "an assertion does not hold".to_string(),
            };
            Err(shared.raise(&context, Diag::error(code::ASSERTION, text), "this does not hold"))
        });
    }
}

/// An array of one number or truth, many times, without a call for each copy.
fn copies(one: &Dynamic, times: usize) -> Option<Array> {
    let mut all = Array::new();
    if let Some(int) = one.read_lock::<i64>() {
        all.resize_with(times, || Dynamic::from_int(*int));
    } else if let Some(float) = one.read_lock::<f64>() {
        all.resize_with(times, || Dynamic::from_float(*float));
    } else {
        let truth = one.read_lock::<bool>()?;
        all.resize_with(times, || Dynamic::from_bool(*truth));
    }
    Some(all)
}
