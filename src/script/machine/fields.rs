//! Chains through a module. Its fields are behind a lock, which nothing holds while script code runs: what a handle leads
//! to is gone on with as it is, an array or map is out of its field for as long as a native works on it, and where
//! closures may look at the field meanwhile, the rest of the chain works on a copy that is put back.

use super::chain::Goal;
use super::places::slices;
use super::places::{Values, reach, read, refused, text, write_field, write_outside};
use super::run::{Machine, R};
use super::tree::{Chain, Step, StepKind};
use super::value::Value;
use crate::script::bind::apply::{Callee, callee};
use crate::script::values::module::{ModuleValue, holds_itself, is_computed, is_handle, may_hold_modules, mode};
use crate::script::values::raise::raise;
use rhai::{Dynamic, ImmutableString, Map};
use std::mem::take;

impl Machine<'_> {
    /// Goes on from a step by name or index whose target is a module.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn through_module(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        module: &ModuleValue,
        target: &mut Dynamic,
        operands: &mut Values,
        mut goal: Goal,
    ) -> R {
        // All holders of the module see what is changed in it.
        self.losing = None;
        let step = &chain.steps[at];
        if let (StepKind::Index { operand, .. }, Goal::Read | Goal::Ask) = (&step.kind, &goal)
            && let Value::Other(range) = &operands[*operand]
            && let Some(mut part) = slices::layers(module, range)
        {
            return match at + 1 == chain.steps.len() {
                true => Ok(Value::of(part)),
                false => self.walk(stack, chain, at + 1, &mut part, operands, goal),
            };
        }
        let Some((name, next)) = named(module, step, at, operands) else {
            return self.hand_over(chain, at, target, operands, goal);
        };
        let rest = &chain.steps[next..];
        if let Some(closure) = module.computed(&name) {
            if let Goal::Write(assign, value) = goal {
                let is_plain = rest.is_empty() && !assign.info.is_op_assignment();
                let Some(setter) = module.setter(&name).filter(|_| is_plain) else {
                    return Err(Some(raise(is_computed(&name), step.at)));
                };
                return self.pointer(stack, &setter, Some(target), &mut [value], step.at).map(|_| Value::Unit);
            }
            let value = self.pointer(stack, &closure, Some(target), &mut [], step.at)?;
            if rest.is_empty() {
                return Ok(value);
            }
            return self.walk(stack, chain, next, &mut value.boxed(), operands, goal);
        }
        if let Goal::Write(assign, value) = &goal
            && let Some(refused) = refused(module, &name, rest, operands, assign, value)
        {
            return Err(Some(raise(refused, step.at)));
        }
        let in_place = match &mut goal {
            Goal::Read | Goal::Ask => module.read().get(name.as_str()).and_then(|field| {
                let mode = if rest.is_empty() { mode(&name, field) } else { None };
                mode.map(Value::of).or_else(|| read(field, rest, operands, false))
            }),
            Goal::Write(assign, value) => {
                write_field(module, &name, rest, operands, assign, value).map(|()| Value::Unit)
            }
        };
        if let Some(found) = in_place {
            return Ok(found);
        }
        let found = module.read().get(name.as_str()).map(|field| plan(field, rest, operands));
        let Some(plan) = found else {
            return match goal {
                Goal::Ask if rest.is_empty() => Ok(Value::Unit),
                Goal::Write(assign, _) if rest.is_empty() && !assign.info.is_op_assignment() => {
                    self.hand_over(chain, at, target, operands, goal)
                }
                _ => Err(Some(module.missing(&name, step.at))),
            };
        };
        let given = match &goal {
            Goal::Write(_, value) => Some(value),
            _ => None,
        };
        let is_write = given.is_some();
        let closes_a_ring =
            |value: &Value| matches!(value, Value::Other(value) if may_hold_modules(value) && module.is_within(value));
        match plan {
            Plan::Hand => return self.hand_over(chain, at, target, operands, goal),
            Plan::Handle(ahead, mut value) => {
                return self.walk(stack, chain, next + ahead, &mut value, operands, goal);
            }
            _ if operands.iter().chain(given).any(closes_a_ring) => {
                return Err(Some(raise(holds_itself(), step.at)));
            }
            Plan::Copy => {
                if let Goal::Write(assign, value) = &mut goal
                    && write_outside(module, &name, rest, operands, assign, value).is_some()
                {
                    return Ok(Value::Unit);
                }
                let changes = is_write || rest.iter().any(Step::may_change);
                let mut field = module.get(&name).unwrap_or(Dynamic::UNIT);
                let result = self.walk(stack, chain, next, &mut field, operands, goal)?;
                if changes {
                    module.set(&name, field);
                }
                return Ok(result);
            }
            Plan::Take => {}
        }
        let taken = module.change(|fields| fields.get_mut(name.as_str()).map(take)).flatten();
        let mut field = taken.unwrap_or(Dynamic::UNIT);
        let result = self.walk(stack, chain, next, &mut field, operands, goal);
        module.set(&name, field);
        result
    }

    /// Calls what a field of a module holds as a method of the module; none where it holds nothing that is called.
    pub(super) fn call_field(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        module: &ModuleValue,
        target: &mut Dynamic,
        arguments: &mut [Value],
    ) -> R<Option<Value>> {
        let step = &chain.steps[at];
        let StepKind::Method { name, .. } = &step.kind else { return Ok(None) };
        let held = match module.read().get(name.as_str()) {
            Some(field) => self.held(stack, field, arguments),
            None => return Ok(None),
        };
        if let Some(placed) = held {
            return self.run_placed(stack, placed, Some(target), step.at).map(Some);
        }
        let found = module.read().get(name.as_str()).and_then(callee);
        match found {
            Some(Callee::Closure(pointer)) => self.pointer(stack, &pointer, Some(target), arguments, step.at).map(Some),
            // A module in a field, or a map with a `forward`.
            Some(Callee::Forward(_)) => {
                let mut value = module.get(name).unwrap_or(Dynamic::UNIT);
                let result = self.applied(stack, &mut value, arguments, step.at);
                if !is_handle(&value) {
                    module.set(name, value);
                }
                result
            }
            None => match module.computed(name) {
                // `t.inv(y)`: what is computed is called.
                Some(closure) => {
                    let value = self.pointer(stack, &closure, Some(target), &mut [], step.at)?;
                    self.applied(stack, &mut value.boxed(), arguments, step.at)
                }
                None => Ok(None),
            },
        }
    }
}

/// The field that a step means, and from which step the chain goes on in it: `m[0]` is `m.layers[0]`.
fn named(module: &ModuleValue, step: &Step, at: usize, operands: &Values) -> Option<(ImmutableString, usize)> {
    match &step.kind {
        StepKind::Property { name, .. } => Some((name.clone(), at + 1)),
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => match module.step(*index) {
                Some(name) => Some((name, at + 1)),
                None => module.layers().map(|layers| (layers, at)),
            },
            key => Some((text(key)?, at + 1)),
        },
        StepKind::Method { .. } => None,
    }
}

/// How a chain goes on in a field.
enum Plan {
    /// It ends there, in a way that Rhai knows.
    Hand,
    /// From the step with this number, with the value that stands before it.
    Handle(usize, Dynamic),
    /// In a copy that is put back: closures may look at the field meanwhile.
    Copy,
    /// In the field's own value, which is out of the module for so long.
    Take,
}

/// Cost: nothing is copied but handles.
fn plan(field: &Dynamic, rest: &[Step], operands: &Values) -> Plan {
    if rest.is_empty() {
        return Plan::Hand;
    }
    if is_handle(field) {
        return Plan::Handle(0, field.flatten_clone());
    }
    // The value before the first method; none where there is no method, or where something else than arrays and maps is
    // on the way.
    let ahead = rest.iter().position(|step| matches!(step.kind, StepKind::Method { .. }));
    // A map may have a closure of the method's name.
    let has = |value: &Dynamic, step: &Step| match &step.kind {
        StepKind::Method { name, .. } => value.read_lock::<Map>().is_some_and(|map| map.contains_key(name.as_str())),
        _ => false,
    };
    let ask = |value: &Dynamic, step| (has(value, step), is_handle(value).then(|| value.flatten_clone()));
    let receiver = ahead.and_then(|ahead| {
        Some((ahead, reach(field, &rest[..ahead], operands, false, |value| ask(value, &rest[ahead]))?))
    });
    match receiver {
        Some((ahead, (_, Some(value)))) => Plan::Handle(ahead, value),
        Some((_, (false, None))) if !calls_script(rest, operands) => Plan::Take,
        _ => Plan::Copy,
    }
}

/// Whether the rest of a chain may run code of the script.
fn calls_script(rest: &[Step], operands: &Values) -> bool {
    let is_closure = |value: &Value| matches!(value, Value::Other(value) if value.is_fnptr());
    let is_function = |step: &Step| match &step.kind {
        StepKind::Method { function, .. } => step.is_applied() || function.strong_count() > 0,
        _ => false,
    };
    operands.iter().any(is_closure) || rest.iter().any(is_function)
}
