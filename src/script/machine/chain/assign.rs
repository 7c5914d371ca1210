//! `x = v`, `xs[i] = v` and `m.a += v`.

use super::Goal;
use super::at_hand::indices_at_hand;
use crate::script::machine::numbers;
use crate::script::machine::places::grow::{can_grow, grow};
use crate::script::machine::places::{Values, write};
use crate::script::machine::quick::{self, Number};
use crate::script::machine::quick_store;
use crate::script::machine::run::{Fault, Frame, Machine, R, put};
use crate::script::machine::tree::{Assign, AssignChain, Chain, Node, Op, Root, StepKind};
use crate::script::machine::value::Value;
use rhai::{Caches, Dynamic, EvalAltResult};

impl Machine<'_> {
    pub fn assign_chain(&mut self, frame: &mut Frame, assign: &AssignChain) -> R<()> {
        if assign.is_quick && assign.luck.is_good() && !self.looks {
            match quick_store::store(frame, assign) {
                Some(()) => return Ok(()),
                None => assign.luck.miss(),
            }
        }
        let value = self.eval(frame, &assign.value)?;
        self.assign_chain_value(frame, assign, value)
    }

    /// The same of a value that is known.
    pub fn assign_chain_value(&mut self, frame: &mut Frame, assign: &AssignChain, mut value: Value) -> R<()> {
        if self.store(frame, assign, &mut value).is_some() {
            return Ok(());
        }
        self.follow(frame, &assign.chain, Goal::Write(assign, value)).map(drop)
    }

    /// `xs[i] = v`, `m[k] = v` and `m.name = v` of a variable: nothing is moved for it.
    #[inline]
    fn store(&self, frame: &mut Frame, assign: &AssignChain, value: &mut Value) -> Option<()> {
        let Chain { root: Root::Local(slot), steps, lost: None, .. } = &assign.chain else { return None };
        let [step] = &**steps else { return None };
        if self.looks {
            return None;
        }
        let mut indices = Values::new();
        match &step.kind {
            StepKind::Property { .. } => {}
            StepKind::Index { .. } => {
                indices = indices_at_hand(frame, &assign.chain)?;
            }
            StepKind::Method { .. } => return None,
        }
        let Value::Other(target) = &mut frame.slots[*slot as usize] else { return None };
        if !target.is_shared() {
            return write(target, steps, &indices, assign, value);
        }
        if target.is_locked() {
            return None;
        }
        write(&mut *target.write_lock::<Dynamic>()?, steps, &indices, assign, value)
    }

    pub fn assign(&mut self, frame: &mut Frame, assign: &Assign) -> R<()> {
        if assign.is_quick && assign.luck.is_good() && !self.looks {
            match quick_store::assign(frame, assign) {
                Some(()) => return Ok(()),
                None => assign.luck.miss(),
            }
        }
        let value = match &assign.value {
            Node::Chain(chain) if assign.is_part_of_itself => match self.part_of_itself(frame, assign.slot, chain)? {
                Some(value) => value,
                None => self.eval(frame, &assign.value)?,
            },
            value => self.eval(frame, value)?,
        };
        self.assign_value(frame, assign, value)
    }

    /// Gives a variable a value that is known.
    pub fn assign_value(&mut self, frame: &mut Frame, assign: &Assign, value: Value) -> R<()> {
        let slot = &mut frame.slots[assign.slot as usize];
        if assign.is_constant {
            return Err(constant(assign));
        }
        if let Value::Other(value) = slot {
            // A constant that a closure has taken along.
            if value.is_read_only() {
                return Err(constant(assign));
            }
            if self.looks {
                self.hooks.look(value)?;
            }
            if assign.is_lost && (value.is_array() || value.is_map()) && !value.is_shared() {
                self.hooks.lost(assign.at);
            }
        }
        let Some(op) = assign.op else {
            put(slot, value);
            return Ok(());
        };
        if let Value::Other(place) = slot
            && place.is_shared()
            && let Some(mut inside) = place.write_lock::<Dynamic>()
            && let Some(new) = quick::combine(op, Number::of_dynamic(&inside), Number::of(&value)).value()
        {
            *inside = new.boxed();
            return Ok(());
        }
        let value = match slot {
            Value::Other(target) if op == Op::Add && !self.looks && can_grow(target) => match grow(target, value) {
                Ok(()) => return Ok(()),
                Err(value) => value,
            },
            _ => value,
        };
        let old = self.load(&frame.slots[assign.slot as usize])?;
        let new = match numbers::apply(op, &old, &value) {
            Some(new) => new,
            None => {
                drop(old);
                return self.assign_by_rhai(&mut frame.slots[assign.slot as usize], assign, value);
            }
        };
        put(&mut frame.slots[assign.slot as usize], new);
        Ok(())
    }

    #[inline(never)]
    fn assign_by_rhai(&mut self, slot: &mut Value, assign: &Assign, value: Value) -> R<()> {
        let (mut target, mut value) = (slot.take().boxed(), value.boxed());
        let result = self.operate(&assign.operands.expr, &mut [&mut target, &mut value], &mut Caches::new());
        *slot = Value::unboxed(target);
        result.map(drop).map_err(Some)
    }

    pub fn assign_this(&mut self, frame: &mut Frame, assign: &Assign) -> R {
        if frame.this.is_none() {
            return Err(Some(Box::new(EvalAltResult::ErrorUnboundThis(assign.at))));
        }
        if frame.this.as_deref().is_some_and(Dynamic::is_read_only) {
            return Err(constant(assign));
        }
        let mut value = self.eval(frame, &assign.value)?.boxed();
        let Some(this) = frame.this.as_deref_mut() else { unreachable!("looked at above") };
        let result = self.operate(&assign.operands.expr, &mut [this, &mut value], &mut Caches::new());
        result.map(|_| Value::Unit).map_err(Some)
    }
}

fn constant(assign: &Assign) -> Fault {
    Some(Box::new(EvalAltResult::ErrorAssignmentToConstant(assign.name.to_string(), assign.at)))
}
