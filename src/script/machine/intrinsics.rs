//! Methods of arrays, maps and strings that are run without a call: their natives are registered for these types, so that no
//! function of a host program takes their place.

use super::places::text;
use super::value::Value;
use rhai::{Array, Dynamic, ImmutableString, Map};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Intrinsic {
    Len,
    IsEmpty,
    Push,
    /// An entry of a map, or what is given instead.
    Get,
}

impl Intrinsic {
    pub fn of(name: &str, count: usize) -> Option<Intrinsic> {
        match (name, count) {
            ("len", 0) => Some(Intrinsic::Len),
            ("is_empty", 0) => Some(Intrinsic::IsEmpty),
            ("push", 1) => Some(Intrinsic::Push),
            ("get", 1 | 2) => Some(Intrinsic::Get),
            _ => None,
        }
    }

    /// Whether it is one of such values.
    pub fn is_of(self, target: &Dynamic) -> bool {
        if self == Intrinsic::Get { target.is_map() } else { target.is_array() }
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
            Intrinsic::Len => count(target).map(|count| Value::Int(count as i64)),
            Intrinsic::IsEmpty => count(target).map(|count| Value::Bool(count == 0)),
        }
    }
}

/// The number of an array's elements or a string's characters.
fn count(target: &Dynamic) -> Option<usize> {
    match target.read_lock::<Array>() {
        Some(array) => Some(array.len()),
        None => {
            let text = target.read_lock::<ImmutableString>()?;
            Some(if text.is_ascii() { text.len() } else { text.chars().count() })
        }
    }
}
