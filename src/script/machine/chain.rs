//! Runs `a.b[c].d(e)`: arrays and maps are walked by reference, methods are called on what is found there, and the first
//! step that is anything else gives the rest of the chain to Rhai.

use super::intrinsics::Intrinsic;
use super::native::again_with_integers;
use super::numbers;
use super::places::bytes;
use super::places::exchange::{exchange, moved_part, only_asks};
use super::places::grow::{can_grow, grow};
use super::places::slices;
use super::places::{Values, place, read, replace, text, write};
use super::quick::{self, Number};
use super::quick_store;
use super::run::{Fault, Frame, Machine, R, put};
use super::tree::{Assign, AssignChain, Chain, Node, Op, Root, Step, StepKind};
use super::value::Value;
use crate::base::arithmetic;
use crate::script::bind::apply::{Callee, callee};
use crate::script::source::scope::CONSTANTS;
use crate::script::values::module::{ModuleValue, is_handle, module};
use crate::script::values::set::Set;
use crate::script::values::types::{Cell, Tensor};
use rhai::{ASTFlags, Array, BinaryExpr, Caches, Dynamic, EvalAltResult, Expr, ImmutableString, Map, Stmt, StmtBlock};
use smallvec::SmallVec;

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

    /// The same of what is no number.
    #[inline]
    fn other_element(&mut self, frame: &mut Frame, chain: &Chain) -> R<Option<Value>> {
        if self.looks {
            return Ok(None);
        }
        if chain.is_path {
            let moved = if chain.moves { moved_part(frame, chain) } else { None };
            return Ok(moved.or_else(|| self.part_at_hand(frame, chain)));
        }
        let [step] = &*chain.steps else { return Ok(None) };
        let Root::Local(slot) = &chain.root else { return Ok(None) };
        match &step.kind {
            StepKind::Method { is_word: true, name, first: 0, .. } if &**name == "call" => {
                self.call_variable(frame, chain, *slot, step)
            }
            StepKind::Method { intrinsic: Some(intrinsic), function, is_word: false, .. }
                if chain.lost.is_none() && function.strong_count() == 0 =>
            {
                match self.intrinsic(frame, chain, *slot, step, *intrinsic)? {
                    Some(found) => Ok(Some(found)),
                    None => self.method_at_hand(frame, chain, *slot, step),
                }
            }
            StepKind::Method { .. } => self.method_at_hand(frame, chain, *slot, step),
            _ => Ok(None),
        }
    }

    /// A method of a variable's value that its place remembers, where the arguments are at hand: the value stays where it is.
    fn method_at_hand(&mut self, frame: &mut Frame, chain: &Chain, slot: u16, step: &Step) -> R<Option<Value>> {
        let StepKind::Method { name, function, site, is_word: false, .. } = &step.kind else { return Ok(None) };
        // Maps and modules may have a closure with this name.
        let is_plain = |value: &Dynamic| !value.is_variant() || value.is::<Tensor>() || value.is::<Set>();
        let may_be_other = |value: &Dynamic| value.is_shared() || value.is_map() || !is_plain(value);
        if matches!(&frame.slots[slot as usize], Value::Other(value) if value.is_map()) {
            return self.entry_at_hand(frame, chain, slot, step);
        }
        let is_known = match &frame.slots[slot as usize] {
            Value::Other(value) => !may_be_other(value),
            Value::Unit => false,
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
        };
        if step.or_unit || chain.lost.is_some() || function.strong_count() > 0 || !is_known {
            return Ok(None);
        }
        let Some(operands) = operands_at_hand(frame, chain) else { return Ok(None) };
        let mut values: SmallVec<[Dynamic; 4]> = operands.into_iter().map(Value::boxed).collect();
        let place = &mut frame.slots[slot as usize];
        // A number is boxed where it stands, and unboxed again below.
        let mut target = place.take().boxed();
        let mut list: SmallVec<[&mut Dynamic; 5]> = SmallVec::new();
        list.push(&mut target);
        list.extend(values.iter_mut());
        let result = site.find(&list).map(|entry| self.invoke(entry, name, &mut list, true, step.at));
        drop(list);
        *place = Value::unboxed(target);
        result.transpose().map(|value| value.map(Value::of))
    }

    /// A method of a variable's value that needs no call, where its arguments are at hand.
    fn intrinsic(
        &mut self,
        frame: &mut Frame,
        chain: &Chain,
        slot: u16,
        step: &Step,
        intrinsic: Intrinsic,
    ) -> R<Option<Value>> {
        let Value::Other(value) = &frame.slots[slot as usize] else { return Ok(None) };
        if (value.is_shared() && value.is_locked()) || !intrinsic.is_of(value) || step.or_unit {
            return Ok(None);
        }
        let mut arguments = Values::new();
        for operand in &chain.operands {
            arguments.push(match operand {
                Node::Local(_) | Node::Literal(_) => self.eval(frame, operand)?,
                Node::Binary(binary) if binary.is_quick => self.eval(frame, operand)?,
                _ => return Ok(None),
            });
        }
        let Value::Other(value) = &mut frame.slots[slot as usize] else { return Ok(None) };
        let result = match value.is_shared() {
            true => value.write_lock::<Dynamic>().and_then(|mut inside| intrinsic.run(&mut inside, &mut arguments)),
            false => intrinsic.run(value, &mut arguments),
        };
        match result {
            Some(result) => self.step(step.at).map(|()| Some(result)),
            None => Ok(None),
        }
    }

    /// `m.f(x)` of a closure in a map in a variable, where the arguments are at hand.
    fn entry_at_hand(&mut self, frame: &mut Frame, chain: &Chain, slot: u16, step: &Step) -> R<Option<Value>> {
        let Some(mut operands) = operands_at_hand(frame, chain) else { return Ok(None) };
        self.call_entry(frame, slot as usize, step, &mut operands)
    }

    /// What indices and names that are at hand lead to, of which nothing else is copied; none where something else is met.
    fn part_at_hand(&self, frame: &Frame, chain: &Chain) -> Option<Value> {
        match &chain.root {
            Root::Local(slot) | Root::Constant(slot, _) => match &frame.slots[*slot as usize] {
                Value::Other(value) => part_of(frame, chain, value),
                _ => None,
            },
            Root::This(_) => part_of(frame, chain, frame.this.as_deref()?),
            Root::Value(Node::Constant(constant)) => part_of(frame, chain, constant.value.get()?),
            Root::Value(Node::Global(global)) => {
                let constants = self.global.constants.as_ref()?.read().ok()?;
                part_of(frame, chain, constants.get(&*global.name)?)
            }
            Root::Value(_) => None,
        }
    }

    /// `f.call(x)` of a closure in a variable, whether other closures share it or not.
    fn call_variable(&mut self, frame: &mut Frame, chain: &Chain, slot: u16, step: &Step) -> R<Option<Value>> {
        let is_closure = |value: &Value| matches!(value, Value::Other(value) if value.is_fnptr());
        if !is_closure(&frame.slots[slot as usize]) {
            return Ok(None);
        }
        let mut operands = Values::new();
        for operand in &chain.operands {
            operands.push(self.eval(frame, operand)?);
        }
        if let Value::Other(target) = &frame.slots[slot as usize]
            && let Some(placed) = self.held(frame.rest, target, &mut operands)
        {
            return self.run_placed(frame.rest, placed, None, step.at).map(Some);
        }
        // It is a function with a name, or the arguments have changed the variable.
        let mut root = frame.slots[slot as usize].clone().boxed();
        self.holding_nothing(|machine| machine.walk(frame.rest, chain, 0, &mut root, &mut operands, Goal::Read))
            .map(Some)
    }

    /// `m.f(x)` of a map in a variable that has a closure with this name: the map stays where it is.
    fn call_entry(&mut self, frame: &mut Frame, slot: usize, step: &Step, operands: &mut Values) -> R<Option<Value>> {
        let StepKind::Method { name, is_word: false, .. } = &step.kind else { return Ok(None) };
        let Value::Other(target) = &mut frame.slots[slot] else { return Ok(None) };
        if self.looks || target.is_shared() || step.or_unit {
            return Ok(None);
        }
        let placed = match target.read_lock::<Map>().as_ref().and_then(|map| map.get(name.as_str())) {
            Some(field) => self.held(frame.rest, field, operands),
            None => None,
        };
        let Some(placed) = placed else { return Ok(None) };
        let result = self.run_placed(frame.rest, placed, Some(target), step.at);
        // The closure may have given `this` another value.
        if !target.is_map() {
            frame.slots[slot] = Value::unboxed(target.take());
        }
        result.map(Some)
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
                    && !chain.lost_by_call
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
        mut goal: Goal,
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
        let is_last = at + 1 == chain.steps.len();
        if is_last
            && chain.lost_by_call
            && let Some(name) = self.losing.take()
            && (target.is_array() || target.is_map() || target.is::<Set>())
            && self.hooks.loses_by_call(name)
        {
            let before = target.clone();
            let result = self.walk(stack, chain, at, target, operands, goal);
            if differ(&before, target) {
                self.hooks.lost(name);
            }
            return result;
        }
        if is_last
            && let Some(name) = if chain.loses_result { chain.lost } else { self.losing.take() }
            && !chain.lost_by_call
            && (target.is_array() || target.is_map() || target.is::<Set>())
            && !is_own_closure(target, &step.kind)
            && !changes_tensor(target, &step.kind, operands, &goal)
        {
            self.hooks.lost(name);
        }
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
            return Err(Some(Box::new(EvalAltResult::ErrorPropertyNotFound(name.to_string(), at))));
        }
        drop(map);
        self.hand_over(chain, at, target, operands, goal)
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
        let mut values: SmallVec<[Dynamic; 6]> =
            operands[arguments.clone()].iter_mut().map(|operand| operand.take().boxed()).collect();
        let mut list: SmallVec<[&mut Dynamic; 6]> = SmallVec::new();
        list.push(target);
        list.extend(values.iter_mut());
        match site.find(&list) {
            Some(entry) => self.invoke(entry, name, &mut list, true, step.at).map(|value| Some(Value::of(value))),
            None => {
                drop(list);
                for (operand, value) in operands[arguments].iter_mut().zip(values) {
                    *operand = Value::unboxed(value);
                }
                match chain.steps.len() == at + 1 {
                    true => self.hand_over_noting(chain, at, target, operands, Some((site, count + 1))).map(Some),
                    false => self.one_step(chain, at, target, operands, (site, count + 1)).map(Some),
                }
            }
        }
    }

    /// Gives the chain from a step on to Rhai.
    pub(super) fn hand_over(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        self.losing = None;
        match goal {
            Goal::Read | Goal::Ask => self.hand_over_noting(chain, at, target, operands, None),
            Goal::Write(assign, value) => {
                let rests =
                    assign.rests.get_or_init(|| chain.rests().iter().map(|rest| assigned(rest, assign)).collect());
                let mut values: SmallVec<[Dynamic; 6]> =
                    operands.iter_mut().map(|value| value.take().boxed()).collect();
                values.push(value.boxed());
                let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
                list.push(target);
                let result = self.operate(&rests[at], &mut list, &mut Caches::new());
                result.map(Value::of).map_err(Some)
            }
        }
    }

    /// Gives one step of a chain that goes on to Rhai, and the place keeps the native function that Rhai finds.
    fn one_step(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: (&super::native::Site, usize),
    ) -> R {
        let own = match &chain.steps[at].kind {
            StepKind::Method { first, count, .. } => *first..*first + *count,
            _ => 0..0,
        };
        // What later steps need stays.
        let take = |(at, value): (usize, &mut Value)| if own.contains(&at) { value.take() } else { Value::Unit };
        let mut operands: Values = operands.iter_mut().enumerate().map(take).collect();
        self.hand_over_expr(chain, &chain.singles()[at], at, target, &mut operands, Some(site))
    }

    /// As `hand_over`; a place keeps the native function that Rhai finds.
    fn hand_over_noting(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: Option<(&super::native::Site, usize)>,
    ) -> R {
        self.hand_over_expr(chain, &chain.rests()[at], at, target, operands, site)
    }

    fn hand_over_expr(
        &mut self,
        chain: &Chain,
        expr: &Expr,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: Option<(&super::native::Site, usize)>,
    ) -> R {
        let mut values: SmallVec<[Dynamic; 6]> = operands.iter_mut().map(|value| value.take().boxed()).collect();
        // The expression counts operands from the end, with a place for what is assigned.
        values.push(Dynamic::UNIT);
        let mut types: SmallVec<[std::any::TypeId; 4]> = SmallVec::new();
        let step = &chain.steps[at];
        if site.is_some() {
            types.push((*target).type_id());
            match &step.kind {
                StepKind::Index { operand, .. } => types.push(values[*operand].type_id()),
                StepKind::Method { first, count, .. } => {
                    types.extend(values[*first..*first + *count].iter().map(Dynamic::type_id));
                }
                StepKind::Property { .. } => {}
            }
        }
        let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
        list.push(target);
        match site {
            Some((site, count)) if types.len() == count => {
                let mut caches = super::native::keeping();
                let result = self.operate(expr, &mut list, &mut caches);
                if result.is_ok() {
                    site.remember(types, &mut caches, matches!(step.kind, StepKind::Property { .. }));
                }
                match &step.kind {
                    StepKind::Method { name, first, count, .. } => {
                        let call = |list: &mut [&mut Dynamic]| self.operate(expr, list, &mut Caches::new());
                        again_with_integers(result, name, &mut list, *first..*first + *count, call)
                    }
                    _ => result,
                }
            }
            _ => self.operate(expr, &mut list, &mut Caches::new()),
        }
        .map(Value::of)
        .map_err(Some)
    }

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

impl Chain {
    /// Each step alone, with the value before it as its root.
    fn singles(&self) -> &[Expr] {
        self.singles.get_or_init(|| self.rests().iter().map(alone).collect())
    }

    /// The chain from each step on, with the value before it as its root.
    fn rests(&self) -> &[Expr] {
        self.rests.get_or_init(|| {
            let mut rests = Vec::with_capacity(self.steps.len());
            let mut rest = self.expr.clone();
            for _ in 0..self.steps.len() {
                rests.push(rest.clone());
                rest = match shorter(&rest) {
                    Some(rest) => rest,
                    None => break,
                };
            }
            rests.into()
        })
    }
}

/// The chain without its first step: that of `$.b.c` is `$.c`.
fn shorter(expr: &Expr) -> Option<Expr> {
    let (Expr::Dot(pair, ..) | Expr::Index(pair, ..)) = expr else { return None };
    let root = pair.lhs.clone();
    Some(match pair.rhs.clone() {
        Expr::Dot(rest, flags, at) => Expr::Dot(Box::new(BinaryExpr { lhs: root, rhs: rest.rhs }), flags, at),
        Expr::Index(rest, flags, at) => Expr::Index(Box::new(BinaryExpr { lhs: root, rhs: rest.rhs }), flags, at),
        _ => return None,
    })
}

/// The first step of a chain: that of `$.b.c` is `$.b`.
fn alone(rest: &Expr) -> Expr {
    let mut first = rest.clone();
    let is_index = matches!(first, Expr::Index(..));
    if let Expr::Dot(pair, flags, _) | Expr::Index(pair, flags, _) = &mut first
        && let Expr::Dot(next, ..) | Expr::Index(next, ..) = &pair.rhs
        && !(is_index && flags.contains(ASTFlags::BREAK))
    {
        pair.rhs = next.lhs.clone();
    }
    first
}

/// `rest = value` as an expression.
fn assigned(rest: &Expr, assign: &AssignChain) -> Expr {
    let value = super::compile::operand(2, assign.value_at);
    let pair = BinaryExpr { lhs: rest.clone(), rhs: value };
    let at = rest.position();
    Expr::Stmt(Box::new(StmtBlock::new([Stmt::Assignment(Box::new((assign.info.clone(), pair)))], at, at)))
}

/// The operands of a chain that are in variables or literals, or computed from such numbers; none where another is among
/// them.
fn operands_at_hand(frame: &Frame, chain: &Chain) -> Option<Values> {
    let at_hand = |operand| match Machine::peek(frame, operand) {
        Some(value) => (!value.is_shared()).then(|| value.clone()),
        None => quick::number(frame, operand).value(),
    };
    chain.operands.iter().map(at_hand).collect()
}

fn part_of(frame: &Frame, chain: &Chain, value: &Dynamic) -> Option<Value> {
    let single = match (&*chain.steps, &*chain.operands) {
        ([_], [index]) => Some(index),
        _ => None,
    };
    // A key that stands in a variable or a literal is not copied.
    if let Some(Value::Other(key)) = single.and_then(|index| Machine::peek(frame, index))
        && !key.is_shared()
    {
        let key = key.read_lock::<ImmutableString>()?;
        return inside(value, |value| value.read_lock::<Map>()?.get(key.as_str()).map(Value::copied));
    }
    if let Some(Node::Binary(range)) = single
        && matches!(range.op, Op::Range | Op::RangeInclusive)
    {
        let bound = |node: &Node| quick::number(frame, node).as_int();
        let (start, end) = (bound(&range.left)?, bound(&range.right)?);
        let ends_within = range.op == Op::RangeInclusive;
        return inside(value, |value| slices::between(value, start, end, ends_within).map(Value::of));
    }
    let operands = indices_at_hand(frame, chain)?;
    inside(value, |value| match (&*operands, &*chain.steps) {
        ([Value::Int(number)], [_]) if value.is_string() => slices::letter(value, *number).map(Value::of),
        _ => read(value, &chain.steps, &operands, false),
    })
}

/// Asks a value, or what closures share, unless that is held by something else.
fn inside(value: &Dynamic, ask: impl FnOnce(&Dynamic) -> Option<Value>) -> Option<Value> {
    match value.is_shared() {
        true if value.is_locked() => None,
        true => ask(&*value.read_lock::<Dynamic>()?),
        false => ask(value),
    }
}

/// The indices and keys of a chain, if all are at hand.
#[inline]
pub(super) fn indices_at_hand(frame: &Frame, chain: &Chain) -> Option<Values> {
    let mut operands = Values::new();
    for operand in &chain.operands {
        let index = || quick::number(frame, operand).as_int().map(Value::Int);
        operands.push(index_at_hand(frame, operand).or_else(index).or_else(|| key_in_element(frame, operand))?);
    }
    Some(operands)
}

/// The key `xs[i]` or `m.name` that stands in what a variable holds.
fn key_in_element(frame: &Frame, node: &Node) -> Option<Value> {
    let Node::Chain(chain) = node else { return None };
    let value = match &chain.root {
        Root::Local(slot) => match &frame.slots[*slot as usize] {
            Value::Other(value) => value,
            _ => return None,
        },
        Root::This(_) => frame.this.as_deref()?,
        _ => return None,
    };
    let part = if chain.is_path { part_of(frame, chain, value) } else { None };
    text(&part?).map(|key| Value::Other(key.into()))
}

/// An index or key that is in a variable or a literal.
#[inline]
fn index_at_hand(frame: &Frame, node: &Node) -> Option<Value> {
    match Machine::peek(frame, node)? {
        Value::Int(index) => Some(Value::Int(*index)),
        key => Some(Value::Other(text(key)?.into())),
    }
}

/// The name of a constant or variable that the code does not hold itself: of a module, or of the text around a function.
fn outer_name(node: &Node) -> Option<String> {
    let expr = match node {
        Node::Global(global) => return Some(global.name.to_string()),
        Node::Constant(constant) => &constant.fragment.expr,
        Node::Fragment(fragment) => &fragment.expr,
        _ => return None,
    };
    let Expr::Variable(variable, ..) = expr else { return None };
    let spaces = variable.2.path.iter().map(|space| space.name.as_str()).filter(|space| *space != CONSTANTS);
    Some(spaces.chain([variable.1.as_str()]).collect::<Vec<_>>().join("::"))
}

/// Refuses a change of an array, map, set or string in what is a constant, or a copy of what another text holds: nobody
/// would see it. What handles lead to can be changed.
fn keep(chain: &Chain, root: &mut Dynamic, operands: &Values, goal: &Goal, name: &str) -> R<()> {
    let Some((last, before)) = chain.steps.split_last() else { return Ok(()) };
    let writes = matches!(goal, Goal::Write(..));
    let may_change = match &last.kind {
        StepKind::Method { name, .. } => !only_asks(name),
        _ => writes,
    };
    let was_constant = root.is_read_only();
    if !may_change || (was_constant && !writes) {
        return Ok(());
    }
    if was_constant {
        *root = std::mem::take(root).clone();
    }
    let mut holder = Dynamic::UNIT;
    let found = exchange(root, before, operands, &mut holder, false);
    let is_plain = holder.is_array() || holder.is_map() || holder.is_string() || holder.is::<Set>();
    if is_plain && writes && (was_constant || !changes_tensor(&holder, &last.kind, operands, goal)) {
        let at = chain.rests().first().map_or(last.at, Expr::start_position);
        return Err(Some(Box::new(EvalAltResult::ErrorAssignmentToConstant(name.to_string(), at))));
    }
    if found.is_some() {
        let mut holder = if is_plain && !writes { holder.into_read_only() } else { holder };
        exchange(root, before, operands, &mut holder, false);
    }
    if was_constant {
        *root = std::mem::take(root).into_read_only();
    }
    Ok(())
}

fn constant(assign: &Assign) -> Fault {
    Some(Box::new(EvalAltResult::ErrorAssignmentToConstant(assign.name.to_string(), assign.at)))
}

/// A method of the map itself, such as `update` of an object that the library made: what it changes lies behind cells.
/// `m.w *= 2` of a tensor changes what all its names see.
fn changes_tensor(target: &Dynamic, step: &StepKind, operands: &Values, goal: &Goal) -> bool {
    let Goal::Write(AssignChain { op: Some(_), .. }, _) = goal else { return false };
    let entry = |key: &str| target.read_lock::<Map>().is_some_and(|map| map.get(key).is_some_and(|x| x.is::<Tensor>()));
    match step {
        StepKind::Property { name, .. } => entry(name),
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => target
                .read_lock::<Array>()
                .is_some_and(|array| place(*index, array.len()).is_some_and(|index| array[index].is::<Tensor>())),
            key => text(key).is_some_and(|key| entry(&key)),
        },
        _ => false,
    }
}

/// Whether plain values, also those inside, are others than before.
fn differ(before: &Dynamic, now: &Dynamic) -> bool {
    if let (Some(a), Some(b)) = (before.read_lock::<Map>(), now.read_lock::<Map>()) {
        return a.len() != b.len() || a.iter().zip(b.iter()).any(|(x, y)| x.0 != y.0 || differ(x.1, y.1));
    }
    if let (Some(a), Some(b)) = (before.read_lock::<Array>(), now.read_lock::<Array>()) {
        return a.len() != b.len() || a.iter().zip(b.iter()).any(|(x, y)| differ(x, y));
    }
    if let (Some(a), Some(b)) = (text_of(before), text_of(now)) {
        return a != b;
    }
    let number = |value: &Dynamic| (value.as_int().ok(), value.as_float().ok(), value.as_bool().ok());
    before.type_id() != now.type_id() || number(before) != number(now)
}

fn text_of(value: &Dynamic) -> Option<ImmutableString> {
    value.read_lock::<ImmutableString>().map(|text| text.clone())
}

fn is_own_closure(target: &Dynamic, step: &StepKind) -> bool {
    let StepKind::Method { name, .. } = step else { return false };
    target.read_lock::<Map>().is_some_and(|map| map.get(&**name).is_some_and(Dynamic::is_fnptr))
}
