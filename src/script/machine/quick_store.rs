//! Numbers written where they belong: to variables, elements of arrays and entries of maps. Nothing is changed where
//! anything else is met, so that the statement is begun again in the general way.

use super::places::place;
use super::quick::{self, Number};
use super::run::{Frame, R};
use super::tree::{Assign, AssignChain, Node, Root, Step, StepKind};
use super::value::Value;
use rhai::{Array, Dynamic, Map};
use smallvec::SmallVec;

/// Whether an assignment to a variable may be done here.
pub fn may_assign(value: &Node, is_constant: bool) -> bool {
    !is_constant && quick::is_quick(value)
}

/// Whether an assignment to an element may be done here.
pub fn may_store(assign: &AssignChain) -> bool {
    let has_operator = assign.op.is_some() == assign.info.is_op_assignment();
    has_operator && assign.chain.lost.is_none() && assign.chain.is_quick && quick::is_quick(&assign.value)
}

/// `n = v` and `n += v` of a variable that holds a number.
#[inline]
pub fn assign(frame: &mut Frame, assign: &Assign) -> Option<()> {
    let value = quick::number(frame, &assign.value);
    let slot = &mut frame.slots[assign.slot as usize];
    let new = match assign.op {
        None => value,
        Some(op) => quick::combine(op, Number::of(slot), value),
    };
    new.put(slot)
}

/// `xs[i] = v` and `m.name += v`, of a variable or `this`.
#[inline]
pub fn store(frame: &mut Frame, assign: &AssignChain) -> Option<()> {
    let chain = &assign.chain;
    let mut indices: SmallVec<[i64; 4]> = SmallVec::new();
    for operand in &chain.operands {
        indices.push(quick::number(frame, operand).as_int()?);
    }
    let value = quick::number(frame, &assign.value);
    let root = match &chain.root {
        Root::Local(slot) => match &mut frame.slots[*slot as usize] {
            Value::Other(root) => root,
            _ => return None,
        },
        Root::This(_) => frame.this.as_deref_mut()?,
        _ => return None,
    };
    within(root, &chain.steps, &indices, assign, value)
}

fn within(target: &mut Dynamic, steps: &[Step], indices: &[i64], assign: &AssignChain, value: Number) -> Option<()> {
    if target.is_shared() || target.is_read_only() {
        return None;
    }
    let Some((step, rest)) = steps.split_first() else {
        let new = match assign.op {
            None => value,
            Some(op) => quick::combine(op, Number::of_dynamic(target), value),
        };
        *target = new.value()?.boxed();
        return Some(());
    };
    match &step.kind {
        StepKind::Index { operand, .. } => {
            let mut array = target.write_lock::<Array>()?;
            let at = place(indices[*operand], array.len())?;
            within(&mut array[at], rest, indices, assign, value)
        }
        StepKind::Property { name, .. } => {
            let mut map = target.write_lock::<Map>()?;
            within(map.get_mut(name.as_str())?, rest, indices, assign, value)
        }
        StepKind::Method { .. } => None,
    }
}

/// Gives a variable what a node came to. A number is written in parts: what was returned in parts and is read as a whole
/// waits until the parts have left the processor's store buffer.
#[inline]
pub fn settle(slot: &mut Value, result: R) -> R<()> {
    match result {
        Ok(Value::Int(int)) => *slot = Value::Int(int),
        Ok(Value::Float(float)) => *slot = Value::Float(float),
        Ok(other) => *slot = other,
        Err(fault) => return Err(fault),
    }
    Ok(())
}
