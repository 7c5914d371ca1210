//! What is written into a blob is a byte: Rhai keeps the lowest eight bits of an integer.

use super::super::numbers::apply;
use super::super::run::R;
use super::super::tree::AssignChain;
use super::super::value::Value;
use crate::script::values::bytes::not_a_byte;
use crate::script::values::raise::raise;
use rhai::{Blob, Dynamic, Position};

/// An error where `blob[i] = value`, or `+=` and its kin, would give no byte. Other mistakes are Rhai's to tell.
pub fn check(target: &Dynamic, index: &Value, assign: &AssignChain, value: &Value, at: Position) -> R<()> {
    let (Value::Int(index), Value::Int(value)) = (index, value) else { return Ok(()) };
    let new = match assign.op {
        None if !assign.info.is_op_assignment() => Some(*value),
        Some(op) => byte(target, *index).and_then(|old| match apply(op, &Value::Int(old), &Value::Int(*value)) {
            Some(Value::Int(new)) => Some(new),
            _ => None,
        }),
        None => None,
    };
    match new {
        Some(new) if u8::try_from(new).is_err() => Err(Some(raise(not_a_byte(new), at))),
        _ => Ok(()),
    }
}

fn byte(target: &Dynamic, index: i64) -> Option<i64> {
    let blob = target.read_lock::<Blob>()?;
    super::place(index, blob.len()).map(|at| blob[at].into())
}
