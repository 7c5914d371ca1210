//! Strings in strings: `find`, `rfind`, `index`, `count`, `startswith`. Places are counted in characters.

use super::call::{integer, method, text};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
pub use crate::script::values::ascii::is_ascii;
use crate::script::values::ascii::{byte_of, length};
use crate::script::values::type_names;
use rhai::{Array, Dynamic, ImmutableString};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, from_end, must) in
        [("find", false, false), ("rfind", true, false), ("index", false, true), ("rindex", true, true)]
    {
        method(natives, host, name, move |_, whole, [part, start, end]| {
            let part = text("sub", part)?;
            let within = Part::of(whole, start, end)?;
            let found =
                within.text().and_then(|text| if from_end { text.rfind(&part[..]) } else { text.find(&part[..]) });
            match found {
                Some(at) => Ok((within.first + count(&within.whole[within.bytes.0..within.bytes.0 + at])).into()),
                None if must => Err(Diag::error(code::VALUE, format!("{part:?} is not in the string"))
                    .help("`text.find(part)` gives -1 where there is none")),
                None => Ok((-1i64).into()),
            }
        });
    }
    method(natives, host, "count", |_, whole, [part, start, end]| {
        let part = text("sub", part)?;
        let within = Part::of(whole, start, end)?;
        Ok(within.text().map_or(0, |text| text.matches(&part[..]).count() as i64).into())
    });
    for (name, at_end) in [("startswith", false), ("endswith", true)] {
        method(natives, host, name, move |_, whole, [affix, start, end]| {
            let within = Part::of(whole, start, end)?;
            let has = |affix: &str| {
                within.text().is_some_and(|text| if at_end { text.ends_with(affix) } else { text.starts_with(affix) })
            };
            Ok(affixes(affix)?.iter().any(|affix| has(affix)).into())
        });
    }
}

/// One string, or several.
fn affixes(value: &Dynamic) -> Result<Vec<ImmutableString>> {
    match value.read_lock::<Array>() {
        Some(all) => all.iter().map(|affix| text("an element", affix)).collect(),
        None if super::call::string(value).is_none() => {
            fail!(ARGUMENT_TYPE, "a string or an array of strings is expected, not {}", type_names::of_value(value))
        }
        None => Ok(vec![text("text", value)?]),
    }
}

/// So many characters.
pub fn count(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

/// A part of a string from one character to before another, both counted from the end where they are negative.
struct Part<'a> {
    whole: &'a ImmutableString,
    first: i64,
    /// Where it starts and ends; the start may be behind the end, as in Python: then nothing is in it.
    bytes: (usize, usize),
}

impl<'a> Part<'a> {
    fn of(whole: &'a ImmutableString, start: &Dynamic, end: &Dynamic) -> Result<Part<'a>> {
        if start.is_unit() && end.is_unit() {
            return Ok(Part { whole, first: 0, bytes: (0, whole.len()) });
        }
        let length = length(whole) as i64;
        let place = |name: &str, value: &Dynamic, default: i64| -> Result<i64> {
            let at = if value.is_unit() { default } else { integer(name, value)? };
            Ok(if at < 0 { at.saturating_add(length).max(0) } else { at })
        };
        let (start, end) = (place("start", start, 0)?, place("end", end, length)?.min(length));
        let byte = |character: i64| usize::try_from(character).map_or(whole.len(), |at| byte_of(whole, at));
        let bytes = if start > end { (1, 0) } else { (byte(start), byte(end)) };
        Ok(Part { whole, first: start, bytes })
    }

    fn text(&self) -> Option<&'a str> {
        self.whole.get(self.bytes.0..self.bytes.1)
    }
}
