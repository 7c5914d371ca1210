//! Methods of arrays, maps and strings that are run without a call: their natives are registered for these types, so that no
//! function of a host program takes their place.

use super::places::text;
use super::value::Value;
use crate::script::values::ascii::{self, length};
use crate::script::values::set::{Key, Set};
use rhai::{Array, Dynamic, ImmutableString, Map};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Intrinsic {
    Len,
    IsEmpty,
    Push,
    Pop,
    /// Puts an element into a set.
    Add,
    /// Whether a set has an element.
    Contains,
    /// An entry of a map, or what is given instead.
    Get,
    /// The names of a map's entries.
    Keys,
    /// The values of a map's entries.
    Values,
    IsDigit,
    IsAlpha,
    IsAlnum,
    IsSpace,
}

impl Intrinsic {
    pub fn of(name: &str, count: usize) -> Option<Intrinsic> {
        match (name, count) {
            ("len", 0) => Some(Intrinsic::Len),
            ("is_empty", 0) => Some(Intrinsic::IsEmpty),
            ("push", 1) => Some(Intrinsic::Push),
            ("pop", 0) => Some(Intrinsic::Pop),
            ("add", 1) => Some(Intrinsic::Add),
            ("contains", 1) => Some(Intrinsic::Contains),
            ("get", 1 | 2) => Some(Intrinsic::Get),
            ("keys", 0) => Some(Intrinsic::Keys),
            ("values", 0) => Some(Intrinsic::Values),
            ("isdigit", 0) => Some(Intrinsic::IsDigit),
            ("isalpha", 0) => Some(Intrinsic::IsAlpha),
            ("isalnum", 0) => Some(Intrinsic::IsAlnum),
            ("isspace", 0) => Some(Intrinsic::IsSpace),
            _ => None,
        }
    }

    /// Whether it is one of such values, which closures may share.
    pub fn is_of(self, target: &Dynamic) -> bool {
        match self {
            Intrinsic::Get | Intrinsic::Keys | Intrinsic::Values => target.is_map(),
            Intrinsic::Push => target.is_array(),
            Intrinsic::Pop => target.is_array() || target.is_string(),
            Intrinsic::Add | Intrinsic::Contains => target.is::<Set>(),
            Intrinsic::Len | Intrinsic::IsEmpty => target.is_array() || target.is_string() || target.is::<Set>(),
            _ => target.is_string() || target.is_char(),
        }
    }

    /// Runs it on a value with its arguments; none where the native must.
    #[inline]
    pub fn run(self, target: &mut Dynamic, arguments: &mut [Value]) -> Option<Value> {
        match self {
            Intrinsic::Push => {
                if target.is_read_only() {
                    return None;
                }
                target.write_lock::<Array>()?.push(arguments.first_mut()?.take().boxed());
                Some(Value::Unit)
            }
            Intrinsic::Get => {
                let map = target.read_lock::<Map>()?;
                let (key, default) = arguments.split_first_mut()?;
                let name = text(key)?;
                // The map's own `get`.
                if map.contains_key("get") {
                    return None;
                }
                Some(match (map.get(name.as_str()), default) {
                    (Some(entry), _) => Value::copied(entry),
                    (None, [default]) => default.take(),
                    (None, _) => Value::Unit,
                })
            }
            Intrinsic::Keys => {
                let map = target.read_lock::<Map>().filter(|map| !map.contains_key("keys"))?;
                let keys = map.keys().map(|key| ImmutableString::from(key.as_str()).into());
                Some(Value::Other(keys.collect::<Array>().into()))
            }
            Intrinsic::Values => {
                let map = target.read_lock::<Map>().filter(|map| !map.contains_key("values"))?;
                Some(Value::Other(map.values().cloned().collect::<Array>().into()))
            }
            Intrinsic::Add => {
                if target.is_read_only() {
                    return None;
                }
                let element = arguments.first_mut()?;
                let key = key_of(element)?;
                target.write_lock::<Set>()?.put(key, element.take().boxed());
                Some(Value::Unit)
            }
            Intrinsic::Contains => {
                let key = key_of(arguments.first()?)?;
                Some(Value::Bool(target.read_lock::<Set>()?.has(&key)))
            }
            Intrinsic::Pop if target.is_read_only() => None,
            Intrinsic::Pop if target.is_string() => {
                let letter = ascii::pop(&mut *target.write_lock::<ImmutableString>()?);
                Some(letter.map_or(Value::Unit, |letter| Value::Other(letter.into())))
            }
            Intrinsic::Pop => Some(target.write_lock::<Array>()?.pop().map_or(Value::Unit, Value::of)),
            Intrinsic::Len => count(target).map(|count| Value::Int(count as i64)),
            Intrinsic::IsEmpty => count(target).map(|count| Value::Bool(count == 0)),
            _ => self.holds(target).map(Value::Bool),
        }
    }

    /// Whether all characters of a text are such; none where there are others than those of ASCII.
    fn holds(self, target: &Dynamic) -> Option<bool> {
        let text = target.read_lock::<ImmutableString>();
        let mut letter = [0; 4];
        let bytes = match &text {
            Some(text) => text.as_bytes(),
            None => target.as_char().ok()?.encode_utf8(&mut letter).as_bytes(),
        };
        // Of the control characters some are blanks.
        if bytes.is_empty() || !bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')) {
            return None;
        }
        Some(bytes.iter().all(|byte| match self {
            Intrinsic::IsDigit => byte.is_ascii_digit(),
            Intrinsic::IsAlpha => byte.is_ascii_alphabetic(),
            Intrinsic::IsAlnum => byte.is_ascii_alphanumeric(),
            _ => !byte.is_ascii_graphic(),
        }))
    }
}

/// The number of an array's elements or a string's characters.
fn count(target: &Dynamic) -> Option<usize> {
    if let Some(array) = target.read_lock::<Array>() {
        return Some(array.len());
    }
    match target.read_lock::<ImmutableString>() {
        Some(text) => Some(length(&text)),
        None => target.read_lock::<Set>().map(|set| set.len()),
    }
}

/// What a set knows a number or text by; the native says why anything else is refused.
fn key_of(element: &Value) -> Option<Key> {
    match element {
        Value::Other(element) => Key::of(element).ok(),
        plain => Key::of(&plain.clone().boxed()).ok(),
    }
}
