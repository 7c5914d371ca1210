//! Methods of arrays and strings that are run without a call: their natives are registered for these types, so that no
//! function of a host program takes their place.

use super::value::Value;
use rhai::{Array, Dynamic, ImmutableString};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Intrinsic {
    Len,
    IsEmpty,
    Push,
}

impl Intrinsic {
    pub fn of(name: &str, count: usize) -> Option<Intrinsic> {
        match (name, count) {
            ("len", 0) => Some(Intrinsic::Len),
            ("is_empty", 0) => Some(Intrinsic::IsEmpty),
            ("push", 1) => Some(Intrinsic::Push),
            _ => None,
        }
    }

    /// Runs it on a value with its argument; none where the native must.
    #[inline]
    pub fn run(self, target: &mut Dynamic, arguments: &mut [Value]) -> Option<Value> {
        if self == Intrinsic::Push {
            if target.is_read_only() {
                return None;
            }
            target.write_lock::<Array>()?.push(arguments.first_mut()?.take().boxed());
            return Some(Value::Unit);
        }
        let count = match target.read_lock::<Array>() {
            Some(array) => array.len(),
            None => {
                let text = target.read_lock::<ImmutableString>()?;
                if text.is_ascii() { text.len() } else { text.chars().count() }
            }
        };
        Some(if self == Intrinsic::Len { Value::Int(count as i64) } else { Value::Bool(count == 0) })
    }
}
