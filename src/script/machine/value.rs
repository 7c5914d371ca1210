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
        if value.is_shared() {
            return Value::of(value.flatten());
        }
        // Only a copy can be changed again.
        if value.is_read_only() { Value::own(value.clone()) } else { Value::own(value) }
    }

    /// Of what is neither shared nor a constant.
    #[inline]
    fn own(value: Dynamic) -> Value {
        match Value::plain(&value) {
            Some(plain) if value.tag() == 0 => plain,
            _ => Value::Other(value),
        }
    }

    /// As it is: a shared value stays shared.
    #[inline]
    pub fn unboxed(value: Dynamic) -> Value {
        if value.is_shared() || value.is_read_only() { Value::Other(value) } else { Value::own(value) }
    }

    /// A number, a truth or `()`.
    ///
    /// What is generic is inlined here; Rhai's `as_int` and its kin are calls.
    #[inline]
    fn plain(value: &Dynamic) -> Option<Value> {
        if let Some(int) = value.read_lock::<i64>() {
            Some(Value::Int(*int))
        } else if let Some(float) = value.read_lock::<f64>() {
            Some(Value::Float(*float))
        } else if let Some(truth) = value.read_lock::<bool>() {
            Some(Value::Bool(*truth))
        } else {
            value.is::<()>().then_some(Value::Unit)
        }
    }

    /// A copy of a value behind a reference, shared by no variable.
    #[inline]
    pub fn copied(value: &Dynamic) -> Value {
        if value.is_shared() {
            return Value::of(value.flatten_clone());
        }
        match Value::plain(value) {
            Some(plain) => plain,
            None if value.is_read_only() => Value::of(value.clone()),
            None => Value::Other(value.clone()),
        }
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

    /// Variables end: what holds more than a number becomes `()`.
    #[inline]
    pub fn end(slots: &mut [Value]) {
        for slot in slots {
            if matches!(slot, Value::Other(_)) {
                *slot = Value::Unit;
            }
        }
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
