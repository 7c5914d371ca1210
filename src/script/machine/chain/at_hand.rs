//! Elements and methods of what stands in a variable, whose operands are at hand: nothing is moved for them.

use super::Goal;
use super::cells::{calls_nothing, may_call_back};
use crate::script::machine::intrinsics::Intrinsic;
use crate::script::machine::places::exchange::{moved_part, root_of, root_read};
use crate::script::machine::places::slices;
use crate::script::machine::places::{Values, reach_mut, read, text};
use crate::script::machine::quick;
use crate::script::machine::run::{Frame, Machine, R};
use crate::script::machine::tree::{Chain, Node, Op, Root, Step, StepKind};
use crate::script::machine::value::Value;
use crate::script::values::module::{ModuleValue, may_hold_modules};
use crate::script::values::set::Set;
use crate::script::values::types::{Cell, Tensor};
use rhai::{Dynamic, ImmutableString, Map};
use smallvec::SmallVec;

impl Machine<'_> {
    /// The same of what is no number.
    #[inline]
    pub(super) fn other_element(&mut self, frame: &mut Frame, chain: &Chain) -> R<Option<Value>> {
        if self.looks {
            return Ok(None);
        }
        if chain.is_path {
            let moved = if chain.moves { moved_part(frame, chain) } else { None };
            return Ok(moved.or_else(|| self.part_at_hand(frame, chain)));
        }
        let [step] = &*chain.steps else { return self.asked_in_part(frame, chain) };
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
        let StepKind::Method { function, is_word: false, .. } = &step.kind else { return Ok(None) };
        // Maps and modules may have a closure with this name.
        let is_plain = |value: &Dynamic| !value.is_variant() || value.is::<Tensor>() || value.is::<Set>();
        if frame.slots[slot as usize].is_shared() {
            return self.shared_method_at_hand(frame, chain, slot, step);
        }
        let may_be_other = |value: &Dynamic| value.is_map() || !is_plain(value);
        if matches!(&frame.slots[slot as usize], Value::Other(value) if value.is_map()) && chain.lost.is_none() {
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
        let Some(mut operands) = operands_at_hand(frame, chain) else { return Ok(None) };
        let place = &mut frame.slots[slot as usize];
        // A number is boxed where it stands, and unboxed again below.
        let mut target = place.take().boxed();
        let result = self.remembered(step, &mut target, &mut operands);
        *place = Value::unboxed(target);
        result
    }

    /// The same of what closures share, which is held for the time of the call: it runs no code of the script. Tensors are
    /// handles and not held.
    fn shared_method_at_hand(&mut self, frame: &mut Frame, chain: &Chain, slot: u16, step: &Step) -> R<Option<Value>> {
        let StepKind::Method { name, function, .. } = &step.kind else { return Ok(None) };
        if step.or_unit || chain.lost.is_some() || function.strong_count() > 0 {
            return Ok(None);
        }
        let Some(mut operands) = operands_at_hand(frame, chain) else { return Ok(None) };
        let Value::Other(shared) = &mut frame.slots[slot as usize] else { return Ok(None) };
        if operands.iter().any(may_call_back) {
            return Ok(None);
        }
        let tensor = shared.read_lock::<Tensor>().map(|tensor| Dynamic::from(tensor.clone()));
        if let Some(mut tensor) = tensor {
            return self.remembered(step, &mut tensor, &mut operands);
        }
        let Some(mut inside) = shared.write_lock::<Dynamic>() else { return Ok(None) };
        if !calls_nothing(&inside, name) {
            return Ok(None);
        }
        self.held += 1;
        let result = self.remembered(step, &mut inside, &mut operands);
        self.held -= 1;
        result
    }

    /// Calls the native that the place of a method remembers for such values; none where it knows none.
    pub(super) fn remembered(&mut self, step: &Step, target: &mut Dynamic, operands: &mut [Value]) -> R<Option<Value>> {
        let StepKind::Method { name, site, .. } = &step.kind else { return Ok(None) };
        let called = in_a_row(target, operands, |list| {
            site.find(list).map(|entry| self.invoke(entry, name, list, true, step.at))
        });
        called.transpose().map(|value| value.map(Value::of))
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
        if !intrinsic.is_of(value) || step.or_unit {
            return Ok(None);
        }
        let Some(mut arguments) = operands_at_hand(frame, chain) else { return Ok(None) };
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

    /// `this.items.push(x)`, `groups[key].len()`: a method that needs no call of what a path leads to, where its arguments are at
    /// hand.
    fn asked_in_part(&mut self, frame: &mut Frame, chain: &Chain) -> R<Option<Value>> {
        let Some((step, path)) = chain.steps.split_last() else { return Ok(None) };
        let StepKind::Method { intrinsic: Some(intrinsic), function, first, is_word: false, .. } = &step.kind else {
            return Ok(None);
        };
        let is_plain = |step: &Step| !step.or_unit && !matches!(step.kind, StepKind::Method { .. });
        if chain.lost.is_some() || function.strong_count() > 0 || step.or_unit || !path.iter().all(is_plain) {
            return Ok(None);
        }
        let Some(mut operands) = operands_at_hand(frame, chain) else { return Ok(None) };
        let (indices, arguments) = operands.split_at_mut(*first);
        let mut handle;
        let root = match &chain.root {
            // What closures share: handles are asked apart from the variable.
            Root::Local(slot) if frame.slots[*slot as usize].is_shared() => {
                let Value::Other(shared) = &frame.slots[*slot as usize] else { return Ok(None) };
                let Some(inside) = handle_in(shared) else { return Ok(None) };
                handle = inside;
                &mut handle
            }
            _ => match root_of(frame, chain) {
                Some(root) => root,
                None => return Ok(None),
            },
        };
        // What a module takes could be the module itself.
        let is_simple = |value: &Value| !matches!(value, Value::Other(value) if may_hold_modules(value));
        let keeps_nothing = *intrinsic != Intrinsic::Push || arguments.iter().all(is_simple);
        let ask = |part: &mut Dynamic| match intrinsic.is_of(part) {
            true => intrinsic.run(part, arguments),
            false => None,
        };
        match reach_mut(root, path, indices, keeps_nothing, ask).flatten() {
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
    pub(super) fn call_entry(
        &mut self,
        frame: &mut Frame,
        slot: usize,
        step: &Step,
        operands: &mut Values,
    ) -> R<Option<Value>> {
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
}

/// The cell or module that closures share.
fn handle_in(shared: &Dynamic) -> Option<Dynamic> {
    if shared.is_locked() {
        return None;
    }
    let cell = shared.read_lock::<Cell>().map(|cell| Dynamic::from(cell.clone()));
    cell.or_else(|| shared.read_lock::<ModuleValue>().map(|module| Dynamic::from(module.clone())))
}

/// Gives a value with operands behind it to a call. They come back where it does not take place.
pub(super) fn in_a_row<T>(
    target: &mut Dynamic,
    operands: &mut [Value],
    call: impl FnOnce(&mut [&mut Dynamic]) -> Option<T>,
) -> Option<T> {
    match operands {
        [] => call(&mut [target]),
        [one] => {
            let mut first = one.take().boxed();
            let result = call(&mut [target, &mut first]);
            if result.is_none() {
                *one = Value::unboxed(first);
            }
            result
        }
        [one, two] => {
            let (mut first, mut second) = (one.take().boxed(), two.take().boxed());
            let result = call(&mut [target, &mut first, &mut second]);
            if result.is_none() {
                (*one, *two) = (Value::unboxed(first), Value::unboxed(second));
            }
            result
        }
        all => {
            let mut values: SmallVec<[Dynamic; 6]> = all.iter_mut().map(|value| value.take().boxed()).collect();
            let mut list: SmallVec<[&mut Dynamic; 7]> = SmallVec::new();
            list.push(target);
            list.extend(values.iter_mut());
            let result = call(&mut list);
            drop(list);
            if result.is_none() {
                for (operand, value) in all.iter_mut().zip(values) {
                    *operand = Value::unboxed(value);
                }
            }
            result
        }
    }
}

/// The operands of a chain that are in variables or literals, or computed from such numbers; none where another is among
/// them.
fn operands_at_hand(frame: &Frame, chain: &Chain) -> Option<Values> {
    let mut operands = Values::new();
    for operand in &chain.operands {
        operands.push(match Machine::peek(frame, operand) {
            Some(Value::Other(shared)) if shared.is_shared() => Value::copied(&*shared.read_lock::<Dynamic>()?),
            Some(value) => value.clone(),
            None => quick::number(frame, operand).value()?,
        });
    }
    Some(operands)
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
        let mut letter = [0; 4];
        return with_text(key, &mut letter, |key| {
            inside(value, |value| value.read_lock::<Map>()?.get(key).map(Value::copied))
        });
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

/// Reads a string, or a character as one.
fn with_text<T>(value: &Dynamic, letter: &mut [u8; 4], read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    if value.is_char() {
        return read(value.as_char().ok()?.encode_utf8(letter));
    }
    let text = value.read_lock::<ImmutableString>()?;
    read(text.as_str())
}

/// Asks a value, or what closures share, unless that is held by something else.
fn inside(value: &Dynamic, ask: impl FnOnce(&Dynamic) -> Option<Value>) -> Option<Value> {
    match value.is_shared() {
        true => ask(&*value.read_lock::<Dynamic>()?),
        false => ask(value),
    }
}

/// The indices and keys of a chain, if all are at hand.
#[inline]
pub fn indices_at_hand(frame: &Frame, chain: &Chain) -> Option<Values> {
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
    let value = root_read(frame, chain)?;
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
