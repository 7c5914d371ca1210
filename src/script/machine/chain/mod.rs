//! Runs `a.b[c].d(e)`: arrays and maps are walked by reference, methods are called on what is found there, and the first
//! step that is anything else gives the rest of the chain to Rhai.

mod assign;
mod at_hand;
mod by_rhai;
mod cells;
mod lost;

pub use at_hand::indices_at_hand;

use super::places::{Values, bytes, cell_of, place, read, replace, slices, text, write, write_letter};
use super::quick::{self, Number};
use super::run::{Frame, Machine, R};
use super::tree::{AssignChain, Chain, Node, Root, Step, StepKind};
use super::value::Value;
use crate::base::arithmetic;
use crate::script::bind::apply::{Callee, callee};
use crate::script::values::module::{Missing, ModuleValue, is_handle, missing_key, module};
use crate::script::values::set::Set;
use crate::script::values::types::{Cell, Tensor};
use lost::{changes_tensor, differ, is_own_closure, keep, outer_name};
use rhai::{Dynamic, EvalAltResult, Expr, ImmutableString, Map};

/// What the end of a chain is for.
pub(super) enum Goal<'a> {
    Read,
    /// The same; `()` where a map has no such entry at the end.
    Ask,
    Write(&'a AssignChain, Value),
}

impl Machine<'_> {
    pub fn chain(&mut self, frame: &mut Frame, chain: &Chain) -> R {
        if let Some(found) = self.element(frame, chain)? {
            return Ok(found);
        }
        self.follow(frame, chain, Goal::Read)
    }

    /// A chain that leads to no number at hand.
    pub fn other_chain(&mut self, frame: &mut Frame, chain: &Chain) -> R {
        match self.other_element(frame, chain)? {
            Some(found) => Ok(found),
            None => self.follow(frame, chain, Goal::Read),
        }
    }

    /// `m[k] ?? 0`: `()` where there is no such entry.
    pub fn ask(&mut self, frame: &mut Frame, chain: &Chain) -> R {
        if let Some(found) = self.element(frame, chain)? {
            return Ok(found);
        }
        self.follow(frame, chain, Goal::Ask)
    }

    /// `xs[i]`, `m.name`, `xs.len()` and `xs.push(x)` of a variable: nothing is moved for it.
    #[inline]
    fn element(&mut self, frame: &mut Frame, chain: &Chain) -> R<Option<Value>> {
        if chain.is_quick && chain.luck.is_good() && !self.looks {
            match quick::element(frame, chain).value() {
                Some(value) => return Ok(Some(value)),
                None => chain.luck.miss(),
            }
        }
        self.other_element(frame, chain)
    }

    fn follow(&mut self, frame: &mut Frame, chain: &Chain, goal: Goal) -> R {
        self.holding_nothing(|machine| machine.follow_anywhere(frame, chain, goal)).map_err(|mut fault| {
            // Rhai knows the constant by its place among the operands.
            let name = match &chain.root {
                Root::Constant(_, name) => Some(name.to_string()),
                Root::This(_) => Some("this".to_string()),
                _ => None,
            };
            if let (Some(error), Some(name)) = (&mut fault, name)
                && let EvalAltResult::ErrorAssignmentToConstant(named, _) = &mut **error
                && named.starts_with('$')
            {
                *named = name;
            }
            // Rhai does not say where a value is that something else holds.
            if let (Some(error), Some(step)) = (&mut fault, chain.steps.last())
                && matches!(**error, EvalAltResult::ErrorDataRace(_, at) if at.is_none())
            {
                error.set_position(step.at);
            }
            fault
        })
    }

    fn follow_anywhere(&mut self, frame: &mut Frame, chain: &Chain, mut goal: Goal) -> R {
        let mut operands = Values::new();
        for operand in &chain.operands {
            let value = match operand {
                Node::Local(slot) if let Value::Int(index) = frame.slots[*slot as usize] => Value::Int(index),
                operand => self.eval(frame, operand)?,
            };
            operands.push(value);
        }
        match &chain.root {
            Root::Local(slot) => {
                let slot = *slot as usize;
                if let (Goal::Read, [step]) = (&goal, &*chain.steps)
                    && chain.lost.is_none()
                    && let Some(result) = self.call_entry(frame, slot, step, &mut operands)?
                {
                    return Ok(result);
                }
                if let Value::Other(value) = &frame.slots[slot] {
                    if self.looks {
                        self.hooks.look(value)?;
                    }
                    if matches!(goal, Goal::Read)
                        && let Some(found) = read(value, &chain.steps, &operands, false)
                    {
                        return Ok(found);
                    }
                }
                if let (Goal::Write(assign, new), None, Value::Other(value)) =
                    (&mut goal, chain.lost, &mut frame.slots[slot])
                    && write(value, &chain.steps, &operands, assign, new).is_some()
                {
                    return Ok(Value::Unit);
                }
                // What closures share is seen by them.
                self.losing = chain.lost.filter(|_| !chain.loses_result && !frame.slots[slot].is_shared());
                // Nobody else can name the variable until the chain has ended.
                let mut root = frame.slots[slot].take().boxed();
                let result = self.walk(frame.rest, chain, 0, &mut root, &mut operands, goal);
                frame.slots[slot] = Value::unboxed(root);
                result
            }
            Root::Constant(slot, _) => {
                let mut value = frame.slots[*slot as usize].clone().boxed();
                let is_method = |step: &Step| matches!(step.kind, StepKind::Method { .. });
                let reads = !matches!(goal, Goal::Write(..));
                if reads && (value.is::<ModuleValue>() || !chain.steps.iter().any(is_method)) {
                    return self.walk(frame.rest, chain, 0, &mut value, &mut operands, goal);
                }
                let mut root = if value.is_read_only() { value } else { value.into_read_only() };
                // Rhai knows strings alone as keys.
                for key in operands.iter_mut().filter(|key| matches!(key, Value::Other(c) if c.is_char())) {
                    if root.is_map()
                        && let Some(name) = text(key)
                    {
                        *key = Value::Other(name.into());
                    }
                }
                if let Root::Constant(_, name) = &chain.root {
                    keep(chain, &mut root, &operands, &goal, name)?;
                }
                self.hand_over(chain, 0, &mut root, &mut operands, goal)
            }
            Root::This(at) => {
                let Some(this) = frame.this.as_deref_mut() else {
                    return Err(Some(Box::new(EvalAltResult::ErrorUnboundThis(*at))));
                };
                match &mut goal {
                    Goal::Read => {
                        if let Some(found) = read(this, &chain.steps, &operands, false) {
                            return Ok(found);
                        }
                    }
                    Goal::Write(assign, new) => {
                        if write(this, &chain.steps, &operands, assign, new).is_some() {
                            return Ok(Value::Unit);
                        }
                    }
                    Goal::Ask => {}
                }
                self.walk(frame.rest, chain, 0, this, &mut operands, goal)
            }
            Root::Value(node) => {
                let mut root = self.eval(frame, node)?.boxed();
                if let Some(name) = outer_name(node) {
                    keep(chain, &mut root, &operands, &goal, &name)?;
                }
                self.walk(frame.rest, chain, 0, &mut root, &mut operands, goal)
            }
        }
    }

    /// What the last step of a chain gives for the value before it.
    pub(super) fn last_step(&mut self, stack: &mut [Value], chain: &Chain, value: &mut Dynamic) -> R {
        let at = chain.steps.len() - 1;
        self.holding_nothing(|machine| machine.walk(stack, chain, at, value, &mut Values::new(), Goal::Read))
    }

    /// Goes on from the value before a step.
    pub(super) fn walk(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        let step = &chain.steps[at];
        if target.is_shared() && !step.is_applied() {
            // Modules and cells are handles: the variable is not held while their methods run.
            let module = target.read_lock::<ModuleValue>().map(|module| Dynamic::from(module.clone()));
            let handle = module.or_else(|| target.read_lock::<Cell>().map(|cell| Dynamic::from(cell.clone())));
            // A tensor's methods change what it stands for, and not the variable.
            let tensor = || target.read_lock::<Tensor>().map(|tensor| Dynamic::from(tensor.clone()));
            let handle = handle.or_else(|| if matches!(goal, Goal::Write(..)) { None } else { tensor() });
            if let Some(mut handle) = handle {
                return self.walk(stack, chain, at, &mut handle, operands, goal);
            }
            // A method that calls closures works on a copy: they may name the variable.
            if let Some((method, value)) = self.before_callbacks(chain, at, target, operands) {
                return self.on_copy(stack, chain, at..method, target, value, operands, goal);
            }
            return self.while_held(stack, chain, at, target, operands, goal);
        }
        if step.or_unit && target.is_unit() {
            return Ok(Value::Unit);
        }
        // What a tensor's method calls may name the array or map that holds the tensor.
        if self.held > 0 && target.is::<Tensor>() && !matches!(goal, Goal::Write(..)) {
            self.resume = Some((at, target.clone()));
            return Ok(Value::Unit);
        }
        if !(target.is_array() || target.is_map() || matches!(step.kind, StepKind::Method { .. }))
            && let Some(module) = module(target)
        {
            return self.through_module(stack, chain, at, &module, target, operands, goal);
        }
        if let StepKind::Property { name, .. } = &step.kind
            && let Some(cell) = cell_of(target, name)
        {
            return self.through_cell(stack, chain, at, (&cell, target), operands, goal);
        }
        let is_last = at + 1 == chain.steps.len();
        if is_last
            && let Some(name) = if chain.loses_result { chain.lost } else { self.losing.take() }
            && (target.is_array() || target.is_map() || target.is::<Set>())
        {
            let is_own = is_own_closure(target, &step.kind);
            let by_call = match chain.lost_by_call {
                true => self.hooks.loses_by_call(name),
                false => is_own,
            };
            if by_call {
                let before = target.clone();
                let result = self.take_step(stack, chain, at, target, operands, goal);
                if differ(&before, target) {
                    self.hooks.lost(name);
                }
                return result;
            }
            if !chain.lost_by_call && !is_own && !changes_tensor(target, &step.kind, operands, &goal) {
                self.hooks.lost(name);
            }
        }
        self.take_step(stack, chain, at, target, operands, goal)
    }

    /// The step itself, and those behind it.
    fn take_step(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        mut goal: Goal,
    ) -> R {
        let (step, is_last) = (&chain.steps[at], at + 1 == chain.steps.len());
        match &step.kind {
            StepKind::Index { operand, site } => {
                if let Value::Float(x) = operands[*operand]
                    && let Some(index) = arithmetic::whole(x)
                    && !target.is_map()
                {
                    operands[*operand] = Value::Int(index);
                }
                if let Value::Other(index) = &operands[*operand]
                    && (target.is_array() || target.is_string())
                    && let Some(index) = self.hooks.index(index, step.at)?
                {
                    operands[*operand] = Value::Int(index);
                }
                if let Goal::Write(assign, value) = &goal
                    && is_last
                    && target.is_blob()
                {
                    bytes::check(target, &operands[*operand], assign, value, step.at)?;
                }
                if let (Goal::Write(assign, value), Value::Int(index)) = (&goal, &operands[*operand])
                    && is_last
                    && write_letter(target, *index, assign, value).is_some()
                {
                    return Ok(Value::Unit);
                }
                if target.is_array()
                    && let Value::Int(index) = operands[*operand]
                {
                    let Ok(mut array) = target.as_array_mut() else { unreachable!("it is one") };
                    if let Some(index) = place(index, array.len()) {
                        let element = &mut array[index];
                        if !is_last {
                            return self.walk(stack, chain, at + 1, element, operands, goal);
                        }
                        if let Some(result) = self.arrive(element, &mut goal)? {
                            return Ok(result);
                        }
                    }
                    drop(array);
                    return self.hand_over(chain, at, target, operands, goal);
                }
                if target.is_map()
                    && let Some(key) = text(&operands[*operand])
                {
                    return self.entry(stack, chain, at, target, &key, operands, goal);
                }
                if matches!(goal, Goal::Read | Goal::Ask)
                    && let Value::Int(number) = operands[*operand]
                    && target.is_string()
                    && let Some(letter) = slices::letter(target, number)
                {
                    return match is_last {
                        true => Ok(Value::of(letter)),
                        false => self.go_on(stack, chain, at + 1, letter, operands, goal),
                    };
                }
                if matches!(goal, Goal::Read | Goal::Ask)
                    && let Value::Other(range) = &operands[*operand]
                    && let Some(part) = slices::part(target, range)
                {
                    return match is_last {
                        true => Ok(Value::of(part)),
                        false => self.go_on(stack, chain, at + 1, part, operands, goal),
                    };
                }
                if is_last && matches!(goal, Goal::Read | Goal::Ask) {
                    let mut index = operands[*operand].clone().boxed();
                    if let Some(entry) = site.find(&[&mut *target, &mut index]) {
                        let values = &mut [&mut *target, &mut index];
                        return self.invoke(entry, "index$get$", values, true, step.at).map(Value::of);
                    }
                    return self.hand_over_noting(chain, at, target, operands, Some((site, 2)));
                }
                self.hand_over(chain, at, target, operands, goal)
            }
            StepKind::Property { name, getter, site } => {
                if target.is_map() {
                    return self.entry(stack, chain, at, target, name, operands, goal);
                }
                let changes = chain.steps[at + 1..].iter().any(Step::may_change);
                if !matches!(goal, Goal::Read | Goal::Ask) || (changes && !target.is::<Tensor>()) {
                    return self.hand_over(chain, at, target, operands, goal);
                }
                if changes {
                    // What a tensor gives is read again by Rhai where it is no handle: its change would be lost.
                    let value = match site.find(&[&mut *target]) {
                        Some(entry) => self.invoke(entry, getter, &mut [&mut *target], true, step.at)?,
                        None => self.one_step(chain, at, target, operands, (site, 1))?.boxed(),
                    };
                    return match is_handle(&value) {
                        true => self.go_on(stack, chain, at + 1, value, operands, goal),
                        false => self.hand_over(chain, at, target, operands, goal),
                    };
                }
                if let Some(entry) = site.find(&[&mut *target]) {
                    let value = self.invoke(entry, getter, &mut [&mut *target], true, step.at)?;
                    return match is_last {
                        true => Ok(Value::of(value)),
                        false => self.go_on(stack, chain, at + 1, value, operands, goal),
                    };
                }
                if is_last {
                    return self.hand_over_noting(chain, at, target, operands, Some((site, 1)));
                }
                let value = self.one_step(chain, at, target, operands, (site, 1))?.boxed();
                self.go_on(stack, chain, at + 1, value, operands, goal)
            }
            StepKind::Method { .. } => {
                let result = match self.method(stack, chain, at, target, operands)? {
                    Some(result) => result,
                    None => return self.hand_over(chain, at, target, operands, goal),
                };
                match is_last {
                    true => Ok(result),
                    false => self.go_on(stack, chain, at + 1, result.boxed(), operands, goal),
                }
            }
        }
    }

    /// An entry of a map.
    #[allow(clippy::too_many_arguments)]
    fn entry(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        name: &ImmutableString,
        operands: &mut Values,
        mut goal: Goal,
    ) -> R {
        let is_last = at + 1 == chain.steps.len();
        let Ok(mut map) = target.as_map_mut() else { unreachable!("it is one") };
        if let Some(element) = map.get_mut(name.as_str()) {
            if !is_last {
                return self.walk(stack, chain, at + 1, element, operands, goal);
            }
            if let Some(result) = self.arrive(element, &mut goal)? {
                return Ok(result);
            }
        } else if let Goal::Write(assign, value) = &mut goal
            && is_last
            && assign.op.is_none()
            && !assign.info.is_op_assignment()
        {
            map.insert(name.as_str().into(), value.take().boxed());
            return Ok(Value::Unit);
        } else if matches!(goal, Goal::Ask) && is_last {
            return Ok(Value::Unit);
        } else if chain.steps[at].or_unit && matches!(goal, Goal::Read | Goal::Ask) {
            // `m?.name` asks.
            return match is_last {
                true => Ok(Value::Unit),
                false => self.walk(stack, chain, at + 1, &mut Dynamic::from(()), operands, goal),
            };
        } else if matches!(goal, Goal::Write(..)) && is_last {
            // The name or key, as of what is read.
            let at = match &chain.rests()[at] {
                Expr::Dot(pair, ..) | Expr::Index(pair, ..) => pair.rhs.start_position(),
                rest => rest.position(),
            };
            return Err(Some(missing_key(&map, name, Missing::ChangedInMap, at)));
        }
        drop(map);
        let result = self.hand_over(chain, at, target, operands, goal);
        match result {
            Err(Some(error)) => Err(Some(with_keys(error, name, target))),
            result => result,
        }
    }

    /// The end of a chain: reads or writes; `None` where Rhai must do it.
    #[inline]
    fn arrive(&mut self, element: &mut Dynamic, goal: &mut Goal) -> R<Option<Value>> {
        Ok(match goal {
            Goal::Read | Goal::Ask => Some(Value::copied(element)),
            Goal::Write(assign, value) => replace(element, assign, value).map(|()| Value::Unit),
        })
    }

    /// Calls a method; `None` where Rhai must do it.
    fn method(
        &mut self,
        stack: &mut [Value],
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
    ) -> R<Option<Value>> {
        let step = &chain.steps[at];
        let StepKind::Method { name, first, count, function, site, is_word, intrinsic } = &step.kind else {
            unreachable!("the caller has looked")
        };
        let arguments = *first..*first + *count;
        if step.is_applied() {
            return self.applied(stack, target, &mut operands[arguments], step.at);
        }
        if *is_word {
            if &**name != "call" || !target.is_fnptr() {
                return Ok(None);
            }
            if let Some(placed) = self.held(stack, target, &mut operands[arguments.clone()]) {
                return self.run_placed(stack, placed, None, step.at).map(Some);
            }
            let Some(pointer) = target.read_lock::<rhai::FnPtr>().map(|pointer| pointer.clone()) else {
                return Ok(None);
            };
            return self.closure(stack, &pointer, None, &mut operands[arguments], step.at);
        }
        if target.is_map() {
            let held = match target.read_lock::<Map>().as_ref().and_then(|map| map.get(name.as_str())) {
                Some(field) => self.held(stack, field, &mut operands[arguments.clone()]),
                None => None,
            };
            if let Some(placed) = held {
                return self.run_placed(stack, placed, Some(target), step.at).map(Some);
            }
            let field = {
                let Ok(map) = target.as_map_ref() else { unreachable!("it is one") };
                map.get(name.as_str()).and_then(callee)
            };
            match field {
                Some(Callee::Closure(pointer)) => {
                    let arguments = &mut operands[arguments];
                    return self.closure(stack, &pointer, Some(target), arguments, step.at);
                }
                // A module in a field.
                Some(Callee::Forward(_)) => {
                    let Ok(mut map) = target.as_map_mut() else { unreachable!("it is one") };
                    let Some(module) = map.get_mut(name.as_str()) else { unreachable!("it is there") };
                    return self.applied(stack, module, &mut operands[arguments], step.at);
                }
                None => {}
            }
        } else if !target.is_array()
            && let Some(module) = module(target)
            && let Some(result) =
                self.call_field(stack, chain, at, &module, target, &mut operands[arguments.clone()])?
        {
            return Ok(Some(result));
        }
        if let Some(function) = function.upgrade() {
            if !function.is_compiled() {
                return Ok(None);
            }
            return self.run(stack, &function, &mut operands[arguments], Some(target), step.at).map(Some);
        }
        if let Some(intrinsic) = intrinsic
            && !self.looks
            && let Some(result) = intrinsic.run(target, &mut operands[arguments.clone()])
        {
            self.step(step.at)?;
            return Ok(Some(result));
        }
        if let Some(numeric) = chain.numeric.filter(|_| at + 1 == chain.steps.len() && !self.looks)
            && let Some(number) = numeric.of_values(Number::of_dynamic(target), &operands[arguments.clone()]).value()
        {
            self.step(step.at)?;
            return Ok(Some(number));
        }
        match self.remembered(step, target, &mut operands[arguments])? {
            Some(result) => Ok(Some(result)),
            None if chain.steps.len() == at + 1 => {
                self.hand_over_noting(chain, at, target, operands, Some((site, count + 1))).map(Some)
            }
            None => self.one_step(chain, at, target, operands, (site, count + 1)).map(Some),
        }
    }
}

impl Step {
    /// A call of the value before it.
    pub(super) fn is_applied(&self) -> bool {
        matches!(&self.kind, StepKind::Method { name, .. } if &**name == "__apply")
    }

    /// Whether the step may change the value before it, so that a property gets it back.
    pub(super) fn may_change(&self) -> bool {
        matches!(self.kind, StepKind::Method { .. })
    }
}

/// The error of a missing entry with the keys of its map.
#[cold]
fn with_keys(error: Box<EvalAltResult>, name: &str, target: &Dynamic) -> Box<EvalAltResult> {
    match (&*error, target.read_lock::<Map>()) {
        (EvalAltResult::ErrorPropertyNotFound(missing, at), Some(map)) if missing == name => {
            missing_key(&map, name, Missing::InMap, *at)
        }
        _ => error,
    }
}
