//! Methods of values that closures share. What a method reads while it calls closures is a copy, so that they may name the
//! variable; other values are held while one of their methods runs, and no longer.

use super::chain::Goal;
use super::places::{Values, put_back, reach, read};
use super::run::{Fault, Machine, R};
use super::tree::{Chain, Step, StepKind};
use super::unit::closure;
use super::value::Value;
use crate::script::bind::callable::is_library_method;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, Position};
use std::ops::Range;

/// Methods that read an array and call closures for its elements.
const CALLS_BACK: [&str; 16] = [
    "map",
    "filter",
    "reduce",
    "reduce_rev",
    "for_each",
    "some",
    "all",
    "any",
    "find",
    "find_map",
    "index_of",
    "sorted",
    "sum",
    "min",
    "max",
    "count",
];

impl Machine<'_> {
    /// Runs a chain from a method on with a copy of the value before the method, and puts back what it changes there.
    /// `steps`: those from the shared value to the method.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn on_copy(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        steps: Range<usize>,
        target: &mut Dynamic,
        mut value: Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        let method = steps.end;
        if !self.changes_elements(&chain.steps[method], operands) {
            return self.walk(stack, chain, method, &mut value, operands, goal);
        }
        let (path, count) = (operands.clone(), length(&value));
        let result = self.walk(stack, chain, method, &mut value, operands, goal)?;
        let steps = &chain.steps[steps];
        if reach(target, steps, &path, true, length).is_some_and(|now| now != count) {
            return Err(in_use());
        }
        put_back(target, steps, &path, value);
        Ok(result)
    }

    /// Whether a method gives the elements to a closure that may change them: as its `this`.
    fn changes_elements(&self, step: &Step, operands: &Values) -> bool {
        let StepKind::Method { name, first, count, .. } = &step.kind else { return false };
        let uses_this = |value: &Value| {
            let Value::Other(value) = value else { return false };
            let Some(pointer) = value.read_lock::<FnPtr>() else { return false };
            closure(self.hooks, pointer.fn_name()).is_none_or(|function| function.uses_this())
        };
        &**name == "for_each" && operands[*first..*first + *count].iter().any(uses_this)
    }

    /// The value of a method that reads it and calls a closure, if that comes next, and which step it is. Methods of the
    /// library's objects read them, too: what changes there is in cells.
    pub(super) fn before_callbacks(
        &self,
        chain: &Chain,
        at: usize,
        target: &Dynamic,
        operands: &Values,
    ) -> Option<(usize, Dynamic)> {
        let is_method = |step: &Step| matches!(step.kind, StepKind::Method { .. });
        let ahead = chain.steps[at..].iter().position(is_method)?;
        let StepKind::Method { name, first, count, .. } = &chain.steps[at + ahead].kind else { return None };
        let steps = &chain.steps[at..at + ahead];
        let is_object = |value: &Dynamic| {
            value.read_lock::<Map>().is_some_and(|map| map.get(name.as_str()).is_some_and(is_library_method))
        };
        let is_closure = |value: &Value| matches!(value, Value::Other(value) if value.is_fnptr());
        let calls_back = CALLS_BACK.contains(&&**name) && operands[*first..*first + *count].iter().any(is_closure);
        if !calls_back && !reach(target, steps, operands, true, is_object)? {
            return None;
        }
        read(target, steps, operands, true).map(|value| (at + ahead, value.boxed()))
    }

    /// Goes on with a value of its own: where the chain holds values that are shared, after it has let go of them, so that closures
    /// may name their variables.
    pub(super) fn go_on(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        mut value: Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        if self.held > 0 {
            self.resume = Some((at, value));
            return Ok(Value::Unit);
        }
        self.walk(stack, chain, at, &mut value, operands, goal)
    }

    /// Goes on from a value that closures share, which is held as far as the chain goes through it.
    pub(super) fn while_held(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        let then = match goal {
            Goal::Read => Goal::Read,
            Goal::Ask => Goal::Ask,
            Goal::Write(..) => {
                let Some(mut inside) = target.write_lock::<Dynamic>() else { return Err(in_use()) };
                return self.walk(stack, chain, at, &mut inside, operands, goal);
            }
        };
        let result = {
            let Some(mut inside) = target.write_lock::<Dynamic>() else { return Err(in_use()) };
            self.held += 1;
            let result = self.walk(stack, chain, at, &mut inside, operands, goal);
            self.held -= 1;
            result.inspect_err(|_| self.resume = None)?
        };
        match self.resume.take_if(|_| self.held == 0) {
            Some((at, mut value)) => self.walk(stack, chain, at, &mut value, operands, then),
            None => Ok(result),
        }
    }

    /// Runs another chain, which holds nothing yet.
    pub(super) fn holding_nothing(&mut self, run: impl FnOnce(&mut Self) -> R) -> R {
        let held = std::mem::take(&mut self.held);
        let result = run(self);
        self.held = held;
        result
    }
}

/// A value that is changed while a method of it is at work.
pub fn in_use() -> Fault {
    Some(Box::new(EvalAltResult::ErrorDataRace(String::new(), Position::NONE)))
}

fn length(value: &Dynamic) -> Option<usize> {
    value.read_lock::<Array>().map(|array| array.len())
}
