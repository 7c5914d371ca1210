//! What `std/` cannot express in the language itself: options with defaults, checked sizes and numbers, errors with a
//! code. Independent of modules and layers.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::base::suggest::keyword;
use crate::fail;
use crate::script::bind::convert::integer;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    // `_options(name, defaults, given)`; a fourth argument lists the options that may have any type.
    for arity in 3..=4 {
        checked(module, host, "_options", arity, |values| {
            let any = values.get(3).and_then(|list| list.read_lock::<Array>().map(|list| list.clone()));
            options(&text(values[0]), values[1], values[2], &any.unwrap_or_default())
        });
    }
    checked(module, host, "_fail", 2, |values| {
        let code = code::Code::parse(&text(values[0]));
        Err(Diag::error(code.unwrap_or(code::ASSERTION), text(values[1])))
    });
    // `_kind(value)`: how a message names it.
    checked(module, host, "_kind", 1, |values| Ok(type_names::of_value(values[0]).into()));
    // `_size(name, parameter, value, least)`.
    checked(module, host, "_size", 4, |values| {
        let least = values[3].as_int().unwrap_or(0);
        size(&text(values[0]), &text(values[1]), values[2], least).map(Dynamic::from_int)
    });
    // `_sizes(name, parameter, value, count, least)`; a count of `()` takes any.
    checked(module, host, "_sizes", 5, |values| {
        let (count, least) = (values[3].as_int().ok(), values[4].as_int().unwrap_or(0));
        let found = sizes(&text(values[0]), &text(values[1]), values[2], count, least)?;
        Ok(found.into_iter().map(Dynamic::from_int).collect::<Array>().into())
    });
    // `_number(name, parameter, value)`: a float.
    checked(module, host, "_number", 3, |values| match (values[2].as_float(), values[2].as_int()) {
        (Ok(x), _) => Ok(Dynamic::from_float(x)),
        (_, Ok(i)) => Ok(Dynamic::from_float(i as f64)),
        _ => Err(unfit(&text(values[0]), &text(values[1]), "a number", values[2])),
    });
}

/// Registers a function that needs only its arguments.
fn checked(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arity: usize,
    run: impl Fn(&[&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let shared = host.clone();
    raw(module, name, arity, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        run(values).map_err(|diag| shared.raise(&context, diag, ""))
    });
}

fn text(value: &Dynamic) -> String {
    value.read_lock::<ImmutableString>().map(|text| text.to_string()).unwrap_or_default()
}

fn unfit(name: &str, parameter: &str, what: &str, value: &Dynamic) -> Box<Diag> {
    let text = format!("`{name}`: `{parameter}` is {what}, not {}", type_names::of_value(value));
    Diag::error(code::ARGUMENT_TYPE, text)
}

fn size(name: &str, parameter: &str, value: &Dynamic, least: i64) -> Result<i64> {
    let Some(n) = integer(value) else { return Err(unfit(name, parameter, "an integer", value)) };
    if n < least {
        fail!(VALUE, "`{name}`: `{parameter}` must be at least {least}, not {n}");
    }
    Ok(n)
}

/// One size for all dimensions, or an array of them.
fn sizes(name: &str, parameter: &str, value: &Dynamic, count: Option<i64>, least: i64) -> Result<Vec<i64>> {
    let Some(array) = value.read_lock::<Array>().map(|array| array.clone()) else {
        if integer(value).is_none() {
            return Err(unfit(name, parameter, "an integer or an array of integers", value));
        }
        let one = size(name, parameter, value, least)?;
        return Ok(vec![one; count.unwrap_or(1).max(0) as usize]);
    };
    if let Some(count) = count.filter(|count| *count != array.len() as i64) {
        let dims = if count == 1 { "one dimension" } else { &format!("{count} dimensions") };
        fail!(VALUE, "`{name}`: `{parameter}` has {} sizes for {dims}", array.len());
    }
    array.iter().map(|item| size(name, parameter, item, least)).collect()
}

/// The defaults, overridden by the given options; an unknown name is an error with a suggestion.
fn options(name: &str, defaults: &Dynamic, given: &Dynamic, any: &Array) -> Result<Dynamic> {
    let mut merged = defaults.read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
    if given.is_unit() {
        return Ok(merged.into());
    }
    let Some(given) = given.read_lock::<Map>().map(|map| map.clone()) else {
        let text = format!("`{name}`: options are a map, as in `#{{...}}`, not {}", type_names::of_value(given));
        return Err(Diag::error(code::ARGUMENT_TYPE, text));
    };
    for (key, value) in given {
        let Some(default) = merged.get(&key) else {
            let diag = Diag::error(code::UNKNOWN_KEYWORD, format!("`{name}`: unknown keyword `{key}`")).keyword(
                Origin::NONE,
                &key,
                "not a keyword here",
            );
            let known = || merged.keys().map(|key| key.as_str());
            return Err(match keyword(&key, known()) {
                Some(found) => diag.help(format!("did you mean `{found}`?")),
                None if merged.is_empty() => diag.help("there are no keywords here"),
                None => diag.help(format!("the keywords are: {}", known().collect::<Vec<_>>().join(", "))),
            });
        };
        let free = any.iter().any(|item| item.read_lock::<ImmutableString>().is_some_and(|item| *item == key.as_str()));
        let expected = if free { None } else { misfit(default, &value) };
        if let Some(expected) = expected {
            return Err(unfit(name, &key, expected, &value).keyword(Origin::NONE, &key, "this one"));
        }
        // An integer is accepted for a float, and a float that is a whole number for an integer.
        let value = match (default.is_float(), value.as_int(), default.is_int(), integer(&value)) {
            (true, Ok(i), ..) => Dynamic::from_float(i as f64),
            (.., true, Some(whole)) => whole.into(),
            _ => value,
        };
        merged.insert(key, value);
    }
    Ok(merged.into())
}

/// The expected type of a value, judged by the default.
fn misfit(default: &Dynamic, value: &Dynamic) -> Option<&'static str> {
    let (fits, expected) = if default.is_bool() {
        (value.is_bool(), "true or false")
    } else if default.is_float() {
        (value.is_float() || value.is_int(), "a number")
    } else if default.is_int() {
        (integer(value).is_some() || value.is_array() || value.is_string(), "an integer")
    } else if default.is_array() {
        (value.is_array(), "an array")
    } else {
        (!default.is_string() || value.is_string(), "a string")
    };
    (!fits).then_some(expected)
}
