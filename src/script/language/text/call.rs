//! Methods of strings by their entries of the manual: a string or a character before the dot, keywords, defaults.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::convert;
use crate::script::bind::native::{binder_of, counts};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::growing::Growing;
use crate::script::manual;
use crate::script::values::ascii::text_of;
use crate::script::values::panics::GuardedCall;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use rhai::{Array, Dynamic, ImmutableString, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// A string of a script; a character is a string of one.
pub fn string(value: &Dynamic) -> Option<ImmutableString> {
    match value.as_char() {
        Ok(c) => Some(text_of(c)),
        Err(_) => value.read_lock::<ImmutableString>().map(|text| text.clone()),
    }
}

/// An error of a function, with its name before it.
pub fn of_function(name: &str, mut diag: Box<Diag>) -> Box<Diag> {
    if !diag.message.starts_with(&format!("`{name}`")) {
        diag.message = format!("`{name}`: {}", diag.message);
    }
    diag
}

/// The value of a parameter that is a string.
pub fn text(name: &str, value: &Dynamic) -> Result<ImmutableString> {
    string(value).ok_or_else(|| of_type(name, "a string", value))
}

/// The value of a parameter that is an integer, or a float that stands for one.
pub fn integer(name: &str, value: &Dynamic) -> Result<i64> {
    convert::integer(value).ok_or_else(|| of_type(name, "an integer", value))
}

/// The character that a string consists of.
pub fn character(name: &str, value: &Dynamic) -> Result<char> {
    let text = text(name, value)?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => {
            let count = text.chars().count();
            Err(Diag::error(code::VALUE, format!("`{name}` is one character, not a string of {count}")))
        }
    }
}

#[cold]
fn of_type(name: &str, expected: &str, value: &Dynamic) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, format!("`{name}` is {expected}, not {}", type_names::of_value(value)))
}

/// Registers the method that the manual describes among those of strings. It receives the string, and a value for each
/// parameter: the argument, or the default.
pub fn method<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    body: impl Fn(&Host, &ImmutableString, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let binder = binder_of(manual::Form::Of("text"), name, N);
    let counts = counts(&binder, 1);
    let host = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let keywords = binder.keywords(&values[1..]);
        let done = string(values[0]).map(|text| body(&host, &text, binder.borrow(&values[1..], keywords.as_ref())?));
        let done = done.unwrap_or(Ok(Dynamic::UNIT));
        done.map_err(|diag| host.raise(&context, of_function(name, diag), ""))
    });
    natives.note(name);
    for receiver in [TypeId::of::<ImmutableString>(), TypeId::of::<char>()] {
        natives.place_on(receiver, name, counts.clone(), &call);
    }
}

/// Pieces of a string as an array.
pub fn pieces<'a>(host: &Host, pieces: impl Iterator<Item = &'a str>) -> Result<Dynamic> {
    let mut all = Array::new();
    for piece in pieces {
        all.push(ImmutableString::from(piece).into());
        if all.len().is_power_of_two() {
            host.watch.array_fits(all.len())?;
        }
    }
    host.watch.array_fits(all.len())?;
    Ok(all.into())
}

/// A string, limited as the session says.
pub fn written(host: &Host, text: &str) -> Result<Dynamic> {
    let mut out = Growing::new(host);
    out.push(text)?;
    out.finish().map(Dynamic::from)
}
