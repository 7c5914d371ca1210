//! `xs += [x]`, `text += "more"`, `m += #{k: v}`: what grows, grows in its place.

use crate::script::machine::value::Value;
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Whether a value grows by `+=`.
pub fn can_grow(target: &Dynamic) -> bool {
    !target.is_shared() && !target.is_read_only() && (target.is_array() || target.is_string() || target.is_map())
}

/// Adds a value to an array, string or map; the value again where it is left to Rhai.
pub fn grow(target: &mut Dynamic, value: Value) -> Result<(), Value> {
    if target.is_shared() || target.is_read_only() {
        return Err(value);
    }
    if target.is_string() {
        return grow_text(target, &value).ok_or(value);
    }
    if let Some(mut array) = target.write_lock::<Array>() {
        match value {
            Value::Other(more) if more.is_shared() => return Err(Value::Other(more)),
            Value::Other(more) if more.is_array() => {
                let more = more.try_cast_result::<Array>().map_err(Value::Other)?;
                array.extend(more);
            }
            value => array.push(value.boxed()),
        }
        return Ok(());
    }
    match (target.write_lock::<Map>(), value) {
        (Some(mut map), Value::Other(more)) if more.is_map() && !more.is_shared() => {
            map.extend(more.try_cast_result::<Map>().map_err(Value::Other)?);
            Ok(())
        }
        (_, value) => Err(value),
    }
}

fn grow_text(target: &mut Dynamic, value: &Value) -> Option<()> {
    let Value::Other(value) = value else { return None };
    let mut text = target.write_lock::<ImmutableString>()?;
    if let Ok(character) = value.as_char() {
        text.make_mut().push(character);
        return Some(());
    }
    *text += value.read_lock::<ImmutableString>()?.as_str();
    Some(())
}
