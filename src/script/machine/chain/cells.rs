//! What stands in cells: `c.value.push(x)`.

use super::Goal;
use crate::script::machine::intrinsics::Intrinsic;
use crate::script::machine::places::{Values, reach, reach_mut, read, slices, text, write};
use crate::script::machine::run::{Machine, R};
use crate::script::machine::tree::{Chain, Step, StepKind};
use crate::script::machine::value::Value;
use crate::script::values::set::Set;
use crate::script::values::types::{Cell, Tensor};
use rhai::{Dynamic, Map};

impl Machine<'_> {
    /// `c.value.a[0]`: the value of a cell, where it stands; a copy of it goes back where code of the script runs meanwhile.
    pub(super) fn through_cell(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        (cell, target): (&Cell, &mut Dynamic),
        operands: &mut Values,
        mut goal: Goal,
    ) -> R {
        // All holders of the cell see what is changed in it.
        self.losing = None;
        let rest = &chain.steps[at..];
        let in_place = match &mut goal {
            Goal::Read | Goal::Ask => read(target, rest, operands, false),
            Goal::Write(assign, value) => write(target, rest, operands, assign, value).map(|()| Value::Unit),
        };
        if let Some(found) = in_place {
            return Ok(found);
        }
        if rest.len() == 1 {
            return self.hand_over(chain, at, target, operands, goal);
        }
        if let Goal::Read | Goal::Ask = goal {
            if let Some(found) = part_in_cell(rest, target, operands, matches!(goal, Goal::Ask)) {
                return Ok(found);
            }
            if let Some(result) = self.asked_in_cell(chain, at, target, operands)? {
                return Ok(result);
            }
        }
        let changes = matches!(goal, Goal::Write(..)) || rest.iter().any(Step::may_change);
        let mut inside = cell.get();
        let result = self.walk(stack, chain, at + 1, &mut inside, operands, goal);
        if changes {
            cell.set(inside);
        }
        result
    }

    /// A method that runs no code of the script, of an array, a string or a set that a cell leads to: the value is out of the
    /// cell for the time of the call, so that the call costs the same however large it is.
    fn asked_in_cell(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
    ) -> R<Option<Value>> {
        let Some((step, path)) = chain.steps[at..].split_last() else { return Ok(None) };
        let StepKind::Method { name, first, count, function, is_word: false, intrinsic, .. } = &step.kind else {
            return Ok(None);
        };
        let is_plain = |step: &Step| !step.or_unit && !matches!(step.kind, StepKind::Method { .. });
        // What is put there, or looked for, is not called.
        let is_kept = intrinsic.is_some() || matches!(name.as_str(), "insert" | "append" | "extend" | "index_of");
        let may_call = |value: &Value| if is_kept { is_closure(value) } else { may_call_back(value) };
        let calls = operands[*first..*first + *count].iter().any(may_call) && *intrinsic != Some(Intrinsic::Push);
        if self.looks || step.or_unit || function.strong_count() > 0 || !path.iter().all(is_plain) || calls {
            return Ok(None);
        }
        let (indices, rest) = operands.split_at_mut(*first);
        let Some(mut part) =
            reach_mut(target, path, indices, true, |part| calls_nothing(part, name).then(|| part.take())).flatten()
        else {
            return Ok(None);
        };
        let arguments = &mut rest[..*count];
        let result = match intrinsic.filter(|of| of.is_of(&part)).and_then(|of| of.run(&mut part, arguments)) {
            Some(result) => self.step(step.at).map(|()| Some(result)),
            None => self.remembered(step, &mut part, arguments),
        };
        reach_mut(target, path, indices, true, |place| *place = part);
        result
    }
}

fn is_closure(value: &Value) -> bool {
    matches!(value, Value::Other(value) if value.is_fnptr())
}

/// Whether natives that get this value may run code of the script.
pub(super) fn may_call_back(value: &Value) -> bool {
    let Value::Other(value) = value else { return false };
    value.is_shared()
        || value.is_fnptr()
        || value.is_map()
        || (value.is_variant() && !value.is::<Tensor>() && !value.is::<Set>())
}

/// Whether this method of a value runs no code of the script that is not among its arguments.
pub(super) fn calls_nothing(value: &Dynamic, method: &str) -> bool {
    let is_plain = value.is_array() || value.is_string() || value.is_blob() || value.is::<Set>();
    // A map may have a closure with the method's name.
    let has_none = || value.read_lock::<Map>().is_some_and(|map| !map.contains_key(method));
    !value.is_read_only() && (is_plain || has_none())
}

/// A slice of what a cell leads to, and `()` where it has no such entry and that is asked.
fn part_in_cell(steps: &[Step], target: &Dynamic, operands: &Values, asks: bool) -> Option<Value> {
    let (step, path) = steps.split_last()?;
    let StepKind::Index { operand, .. } = &step.kind else { return None };
    let find = |value: &Dynamic| {
        if let Value::Other(range) = &operands[*operand]
            && let Some(part) = slices::part(value, range)
        {
            return Some(Value::of(part));
        }
        let is_missing = |map: &Map| text(&operands[*operand]).is_some_and(|key| !map.contains_key(key.as_str()));
        (asks && value.read_lock::<Map>().is_some_and(|map| is_missing(&map))).then_some(Value::Unit)
    };
    reach(target, path, operands, true, find).flatten()
}
