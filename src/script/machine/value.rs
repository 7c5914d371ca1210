//! Values in slots: numbers, truths and `()` unboxed, everything else as Rhai has it.

use rhai::Dynamic;

/// What a slot holds and an expression gives. 16 bytes, as a `Dynamic` is.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Unit,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Never one of the above, unless it is shared, a constant or tagged.
    Other(Dynamic),
}

impl Value {
    /// A value that no variable shares, and that is no constant any more.
    #[inline]
    pub fn of(value: Dynamic) -> Value {
        let value = if value.is_shared() { value.flatten() } else { value };
        // Only a copy can be changed again.
        Value::unboxed(if value.is_read_only() { value.clone() } else { value })
    }

    /// As it is: a shared value stays shared.
    #[inline]
    pub fn unboxed(value: Dynamic) -> Value {
        if value.is_shared() || value.is_read_only() || value.tag() != 0 {
            return Value::Other(value);
        }
        if let Ok(int) = value.as_int() {
            Value::Int(int)
        } else if let Ok(float) = value.as_float() {
            Value::Float(float)
        } else if let Ok(truth) = value.as_bool() {
            Value::Bool(truth)
        } else if value.is_unit() {
            Value::Unit
        } else {
            Value::Other(value)
        }
    }

    /// A copy of a value behind a reference, shared by no variable.
    #[inline]
    pub fn copied(value: &Dynamic) -> Value {
        match value.as_int() {
            Ok(int) => Value::Int(int),
            Err(_) => Value::copied_other(value),
        }
    }

    fn copied_other(value: &Dynamic) -> Value {
        if let Ok(float) = value.as_float() {
            return Value::Float(float);
        }
        if let Ok(truth) = value.as_bool() {
            return Value::Bool(truth);
        }
        Value::of(value.flatten_clone())
    }

    #[inline]
    pub fn boxed(self) -> Dynamic {
        match self {
            Value::Unit => Dynamic::UNIT,
            Value::Bool(truth) => Dynamic::from_bool(truth),
            Value::Int(int) => Dynamic::from_int(int),
            Value::Float(float) => Dynamic::from_float(float),
            Value::Other(value) => value,
        }
    }

    /// Takes the value out and leaves `()`.
    #[inline]
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    pub fn is_shared(&self) -> bool {
        matches!(self, Value::Other(value) if value.is_shared())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_no_more_room_than_rhais() {
        assert_eq!(size_of::<Value>(), size_of::<Dynamic>());
        assert_eq!(size_of::<Result<Value, Option<Box<rhai::EvalAltResult>>>>(), size_of::<Dynamic>());
    }

    #[test]
    fn what_a_constant_gives_can_be_changed() {
        let constant = Dynamic::from_float(3.0).into_read_only();
        assert!(matches!(Value::of(constant), Value::Float(3.0)));
        let constant = Dynamic::from_array(vec![]).into_read_only();
        assert!(matches!(Value::of(constant), Value::Other(array) if !array.is_read_only()));
    }

    #[test]
    fn shared_values_stay_shared_in_slots() {
        let shared = Dynamic::from_int(3).into_shared();
        assert!(Value::unboxed(shared.clone()).is_shared());
        assert!(matches!(Value::of(shared), Value::Int(3)));
    }
}
