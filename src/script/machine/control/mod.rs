//! Runs what decides where to go on: blocks, branches, loops, `switch`, `try` and the block words.

mod pairs;

use super::bytecode::Bytecode;
use super::environment::Before;
use super::native::placed;
use super::quick::Number;
use super::run::{Frame, Jump, Machine, R, put};
use super::tree::{Block, Candidates, CaseKey, For, If, Node, Switch, Try, While, Within};
use super::value::Value;
use crate::base::arithmetic;
use crate::script::values::panics;
use crate::script::values::steps::Steps;
use crate::script::values::types::{DTypeValue, DeviceValue};
use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Position};
use smallvec::SmallVec;
use std::ops::Range;

/// What a loop goes over without an iterator of its type.
enum Plain {
    Array(Array),
    Text(ImmutableString),
    Integers(Steps),
}

/// The elements of an array or string; of anything else, the value.
fn walked(values: Value) -> Result<Plain, Value> {
    match values {
        Value::Other(value) if value.is_array() && !value.is_shared() => match value.try_cast_result::<Array>() {
            Ok(items) => Ok(Plain::Array(items)),
            Err(value) => Err(Value::Other(value)),
        },
        Value::Other(value) if value.is_string() && !value.is_shared() => {
            value.try_cast_result::<ImmutableString>().map(Plain::Text).map_err(Value::Other)
        }
        Value::Other(value) => match integers(&value) {
            Some(steps) => Ok(Plain::Integers(steps)),
            None => Err(Value::Other(value)),
        },
        values => Err(values),
    }
}

/// The integers of a range.
fn integers(value: &Dynamic) -> Option<Steps> {
    if value.is_shared() || !value.is_variant() {
        return None;
    }
    if let Some(range) = value.read_lock::<Range<i64>>() {
        return Steps::new(range.start, range.end.max(range.start), 1);
    }
    value.read_lock::<Steps>().map(|steps| *steps)
}

/// The body of a loop that is run round by round.
#[derive(Clone, Copy)]
pub enum Rounds<'b> {
    Node(&'b Node),
    /// Instructions that begin there.
    Code(&'b Bytecode, usize),
}

/// A value of another type that equals a value.
fn equal_values(value: &Dynamic) -> SmallVec<[Dynamic; 2]> {
    if let Some(dtype) = value.read_lock::<DTypeValue>() {
        return dtype.0.spellings().map(Dynamic::from).collect();
    }
    if let Some(device) = value.read_lock::<DeviceValue>() {
        return [device.0.to_string().into()].into_iter().collect();
    }
    equal_value(value).into_iter().collect()
}

fn equal_value(value: &Dynamic) -> Option<Dynamic> {
    if value.is_int() {
        return value.as_int().ok().map(|int| (int as f64).into());
    }
    if value.is_float() {
        return value.as_float().ok().and_then(arithmetic::whole).map(Dynamic::from_int);
    }
    if value.is_char() {
        return value.as_char().ok().map(|character| character.to_string().into());
    }
    let text = value.read_lock::<ImmutableString>()?;
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none()).map(Dynamic::from)
}

impl Machine<'_> {
    #[inline]
    pub fn block(&mut self, frame: &mut Frame, block: &Block) -> R {
        let imports = if block.imports { self.global.num_imports() } else { usize::MAX };
        let result = self.statements(frame, &block.statements);
        self.close(frame, block, imports);
        result
    }

    #[inline]
    fn statements(&mut self, frame: &mut Frame, statements: &[Node]) -> R {
        let Some((last, before)) = statements.split_last() else { return Ok(Value::Unit) };
        for statement in before {
            self.exec(frame, statement)?;
        }
        self.eval(frame, last)
    }

    /// A block whose value nobody reads.
    #[inline]
    pub fn run_block(&mut self, frame: &mut Frame, block: &Block) -> R<()> {
        let imports = if block.imports { self.global.num_imports() } else { usize::MAX };
        let result = block.statements.iter().try_for_each(|statement| self.exec(frame, statement));
        self.close(frame, block, imports);
        result
    }

    /// What a block has declared ends with it.
    #[inline]
    fn close(&mut self, frame: &mut Frame, block: &Block, imports: usize) {
        if block.imports {
            self.global.truncate_imports(imports);
        }
        for slot in block.declares.clone() {
            frame.slots[slot as usize] = Value::Unit;
        }
    }

    #[inline]
    pub fn branch(&mut self, frame: &mut Frame, branch: &If) -> R {
        let chosen = self.chosen(frame, branch)?;
        self.eval(frame, chosen)
    }

    #[inline]
    pub fn chosen<'b>(&mut self, frame: &mut Frame, branch: &'b If) -> R<&'b Node> {
        Ok(if self.test(frame, &branch.condition, branch.at)? { &branch.yes } else { &branch.no })
    }

    /// What a round's end means: `Some` ends the loop.
    #[inline]
    fn round(&mut self, result: R<()>) -> Option<R> {
        match result {
            Ok(()) => None,
            Err(None) => match self.jump.take() {
                Some(Jump::Continue) => None,
                Some(Jump::Break(value)) => Some(Ok(value)),
                jump => {
                    self.jump = jump;
                    Some(Err(None))
                }
            },
            Err(error) => Some(Err(error)),
        }
    }

    pub fn repeat(&mut self, frame: &mut Frame, repeat: &While) -> R {
        loop {
            self.next_round(repeat.weight, repeat.depth, repeat.at)?;
            if !repeat.is_do && self.ends(frame, repeat)? {
                return Ok(Value::Unit);
            }
            let result = self.exec(frame, &repeat.body);
            let continued = matches!((&result, &self.jump), (Err(None), Some(Jump::Continue)));
            if let Some(end) = self.round(result) {
                return end;
            }
            // Rhai's `continue` in a `do` passes over its condition.
            if repeat.is_do && !continued && self.ends(frame, repeat)? {
                return Ok(Value::Unit);
            }
        }
    }

    #[inline]
    fn ends(&mut self, frame: &mut Frame, repeat: &While) -> R<bool> {
        match &repeat.condition {
            Some((condition, at)) => Ok(self.test(frame, condition, *at)? == repeat.ends_at),
            None => Ok(false),
        }
    }

    /// One round of a loop's body.
    #[inline]
    fn round_of(&mut self, frame: &mut Frame, body: Rounds) -> R<()> {
        match body {
            Rounds::Node(node) => self.exec(frame, node),
            Rounds::Code(bytecode, start) => self.follow_code(frame, bytecode, start, true).map(drop),
        }
    }

    pub fn each(&mut self, frame: &mut Frame, each: &For, body: Rounds) -> R {
        if let Some(pairs) = &each.pairs
            && !self.looks
            && let Some(value) = self.over_pairs(frame, each, pairs, body)?
        {
            return Ok(value);
        }
        if let Some(slot) = each.lent
            && let Value::Other(value) = &frame.slots[slot as usize]
            && value.is_array()
            && !value.is_shared()
            && !value.is_read_only()
        {
            if self.looks {
                self.hooks.look(value)?;
            }
            return self.elements(frame, each, slot, body);
        }
        let values = match &each.values {
            Node::Binary(range) if matches!(&*range.native.name, ".." | "..=") => {
                let from = self.eval(frame, &range.left)?;
                let to = self.eval(frame, &range.right)?;
                // A range of integers is counted, without a value for it.
                match (from, to) {
                    (Value::Int(from), Value::Int(to)) if range.native.name == ".." => {
                        return self.rounds(frame, each, body, (from..to).map(|value| Ok(Value::Int(value))));
                    }
                    (Value::Int(from), Value::Int(to)) => {
                        return self.rounds(frame, each, body, (from..=to).map(|value| Ok(Value::Int(value))));
                    }
                    (from, to) => self.operator(&range.native, from, to)?,
                }
            }
            values => self.eval(frame, values)?,
        };
        self.over(frame, each, values, body)
    }

    /// The rounds over the elements of a value.
    pub fn over(&mut self, frame: &mut Frame, each: &For, values: Value, body: Rounds) -> R {
        let values = match walked(values) {
            Ok(Plain::Array(items)) => {
                return self.rounds(frame, each, body, items.into_iter().map(|item| Ok(Value::of(item))));
            }
            Ok(Plain::Text(text)) => {
                return self.rounds(frame, each, body, text.chars().map(|c| Ok(Value::Other(c.into()))));
            }
            Ok(Plain::Integers(steps)) => {
                return self.rounds(frame, each, body, steps.iter().map(|int| Ok(Value::Int(int))));
            }
            Err(values) => values,
        };
        match self.hooks.items(values.boxed()) {
            Some(items) => self.rounds(frame, each, body, items.map(|item| item.map(Value::of))),
            None => Err(Some(Box::new(EvalAltResult::ErrorFor(each.values_at)))),
        }
    }

    /// The rounds of a `for` over the elements of a variable that the body does not name: each is lent to the loop's
    /// variable, which the body leaves alone.
    fn elements(&mut self, frame: &mut Frame, each: &For, slot: super::tree::Slot, body: Rounds) -> R {
        let Ok(mut array) = frame.slots[slot as usize].take().boxed().into_array() else { unreachable!("it is one") };
        let mut result = Ok(Value::Unit);
        for (number, element) in array.iter_mut().enumerate() {
            if let Err(fault) = self.next_round(each.weight, each.depth, each.at) {
                result = Err(fault);
                break;
            }
            if each.is_empty {
                continue;
            }
            let plain = Number::of_dynamic(element).value();
            let is_own = plain.is_none() && !element.is_shared() && !element.is_read_only();
            let item = match plain {
                Some(plain) => plain,
                None if is_own => Value::unboxed(element.take()),
                None => Value::copied(element),
            };
            if let Some(counter) = each.counter {
                put(&mut frame.slots[counter as usize], Value::Int(number as i64));
            }
            frame.slots[each.variable as usize] = item;
            let done = self.round_of(frame, body);
            if is_own {
                *element = frame.slots[each.variable as usize].take().boxed();
            }
            if let Some(end) = self.round(done) {
                result = end;
                break;
            }
        }
        frame.slots[slot as usize] = Value::Other(Dynamic::from_array(array));
        frame.slots[each.variable as usize] = Value::Unit;
        if let Some(counter) = each.counter {
            frame.slots[counter as usize] = Value::Unit;
        }
        result
    }

    /// The rounds of a `for`, at whose end its variables end, too.
    fn rounds(
        &mut self,
        frame: &mut Frame,
        each: &For,
        body: Rounds,
        items: impl Iterator<Item = Result<Value, Box<EvalAltResult>>>,
    ) -> R {
        let result = self.rounds_until(frame, each, body, items);
        frame.slots[each.variable as usize] = Value::Unit;
        if let Some(counter) = each.counter {
            frame.slots[counter as usize] = Value::Unit;
        }
        result
    }

    #[inline]
    fn rounds_until(
        &mut self,
        frame: &mut Frame,
        each: &For,
        body: Rounds,
        items: impl Iterator<Item = Result<Value, Box<EvalAltResult>>>,
    ) -> R {
        for (number, item) in items.enumerate() {
            self.next_round(each.weight, each.depth, each.at)?;
            if each.is_empty {
                continue;
            }
            let item = item.map_err(|error| placed(error, each.values_at))?;
            if let Some(counter) = each.counter {
                put(&mut frame.slots[counter as usize], Value::Int(number as i64));
            }
            put(&mut frame.slots[each.variable as usize], item);
            let done = self.round_of(frame, body);
            if let Some(end) = self.round(done) {
                return end;
            }
        }
        Ok(Value::Unit)
    }

    pub fn switch(&mut self, frame: &mut Frame, switch: &Switch) -> R {
        let value = self.eval(frame, &switch.value)?;
        match self.arm(frame, switch, value)? {
            Some(arm) => self.eval(frame, &switch.arms[arm as usize].body),
            None => Ok(Value::Unit),
        }
    }

    /// The arm for a value.
    pub(super) fn arm(&mut self, frame: &mut Frame, switch: &Switch, value: Value) -> R<Option<u32>> {
        let value = match (value, &switch.case) {
            (Value::Other(mut value), Some(case)) if !value.is_string() && !value.is_char() => {
                self.call_native(case, &mut [&mut value], false)?
            }
            (value, _) => value,
        };
        if let Some(arm) = switch.recent.find(&value) {
            return Ok(Some(arm));
        }
        let key = match &value {
            Value::Int(int) => Some(CaseKey::Int(*int)),
            Value::Bool(truth) => Some(CaseKey::Bool(*truth)),
            Value::Unit => Some(CaseKey::Unit),
            Value::Other(value) => match value.as_char() {
                Ok(c) => Some(CaseKey::Character(c)),
                Err(_) => value.read_lock::<ImmutableString>().map(|text| CaseKey::Text(text.clone())),
            },
            Value::Float(float) => Some(CaseKey::Float(float.to_bits())),
        };
        let known = key.as_ref().and_then(|key| switch.known.read().get(key).cloned());
        let candidates = match known {
            Some(candidates) => {
                if let ([arm, ..], Some(key)) = (&*candidates, &key)
                    && switch.arms[*arm as usize].guard.is_none()
                {
                    switch.recent.keep(key, *arm);
                }
                candidates
            }
            None => {
                let candidates = self.equal_candidates(switch, value.boxed())?;
                if let Some(key) = key {
                    let mut known = switch.known.write();
                    // Bound: values that a place remembers.
                    if known.len() < 1024 {
                        known.insert(key, candidates.clone());
                    }
                }
                candidates
            }
        };
        for candidate in candidates {
            if match &switch.arms[candidate as usize].guard {
                Some((guard, at)) => self.test(frame, guard, *at)?,
                None => true,
            } {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The arms for a value and for what equals it: 4 is 4.0, and a character is the string of it. What is written exactly
    /// so comes first, and the arm for all other values last.
    fn equal_candidates(&mut self, switch: &Switch, value: Dynamic) -> R<Candidates> {
        let mut found = self.candidates(switch, &value)?;
        let mut others = Candidates::new();
        for other in equal_values(&value) {
            let more = self.candidates(switch, &other)?;
            others.extend(more.into_iter().filter(|arm| !others.contains(arm)).collect::<Candidates>());
        }
        let default = |arm: &u32| Some(*arm) == switch.default;
        if others.iter().all(default) {
            return Ok(found);
        }
        let last = found.last().copied().filter(default);
        found.retain(|arm| !default(arm));
        // An arm without a condition ends the search.
        if found.last().is_none_or(|arm| switch.arms[*arm as usize].guard.is_some()) {
            let new: Candidates = others.into_iter().filter(|arm| !default(arm) && !found.contains(arm)).collect();
            found.extend(new);
            found.extend(last);
        }
        Ok(found)
    }

    /// The arms that are meant for a value, in the order in which their conditions are asked: Rhai is asked which comes
    /// first, which comes after it if its condition does not hold, and so on.
    fn candidates(&mut self, switch: &Switch, value: &Dynamic) -> R<Candidates> {
        let guarded: SmallVec<[u32; 8]> =
            (0..).zip(&switch.arms).filter(|(_, arm)| arm.guard.is_some()).map(|(number, _)| number).collect();
        let mut found = Candidates::new();
        loop {
            let mut operands: SmallVec<[Dynamic; 6]> = SmallVec::new();
            operands.push(value.clone());
            operands.extend(guarded.iter().map(|number| Dynamic::from(!found.contains(number))));
            let Ok(arm) = u32::try_from(self.operate_on(&switch.operands, &mut operands)?.as_int().unwrap_or(-1))
            else {
                return Ok(found);
            };
            found.push(arm);
            if switch.arms[arm as usize].guard.is_none() {
                return Ok(found);
            }
        }
    }

    pub fn attempt(&mut self, frame: &mut Frame, block: &Try) -> R {
        let mut error = match self.eval(frame, &block.body) {
            Err(Some(error)) if !error.is_pseudo_error() && error.unwrap_inner().is_catchable() => error,
            other => return other,
        };
        let thrown = match error.unwrap_inner() {
            EvalAltResult::ErrorRuntime(value, _) => value.clone(),
            _ => {
                let at = error.take_position();
                let mut map = rhai::Map::new();
                map.insert("message".into(), error.to_string().into());
                if !at.is_none() {
                    map.insert("line".into(), (at.line().unwrap_or(0) as i64).into());
                    map.insert("position".into(), (at.position().unwrap_or(0) as i64).into());
                }
                map.into()
            }
        };
        if let Some(slot) = block.variable {
            frame.slots[slot as usize] = Value::unboxed(thrown);
        }
        let handled = self.eval(frame, &block.handler);
        if let Some(slot) = block.variable {
            frame.slots[slot as usize] = Value::Unit;
        }
        match handled {
            Ok(_) => Ok(Value::Unit),
            Err(Some(thrown)) => Err(Some(match *thrown {
                EvalAltResult::ErrorRuntime(value, at) if value.is_unit() => {
                    error.set_position(at);
                    error
                }
                other => Box::new(other),
            })),
            Err(None) => Err(None),
        }
    }

    /// A block in which the device, the stream or the mode of gradients is another.
    pub fn within(&mut self, frame: &mut Frame, within: &Within) -> R {
        let value = match &within.value {
            Some(value) => Some(self.eval(frame, value)?.boxed()),
            None => None,
        };
        let _restore = self.hooks.within(within.word, value.as_ref(), within.at)?;
        match self.eval(frame, &within.body) {
            Err(None) if within.is_closure => match self.jump.take() {
                Some(Jump::Return(value)) => Ok(value),
                jump => {
                    self.jump = jump;
                    Err(None)
                }
            },
            other => other,
        }
    }

    /// The body of a `try` block, and the wait at its end, on whatever way it is left. A panic is an error of the body.
    pub fn wait(&mut self, frame: &mut Frame, body: &Node, at: Position) -> R {
        let (entered, level, before) = (self.hooks.try_enter(), self.global.level, Before::now(self));
        let result = panics::caught(at, || {
            let result = self.eval(frame, body);
            self.as_rhai_has_it(result)
        });
        self.global.level = level;
        before.restore(self);
        match self.hooks.try_leave(entered, result) {
            Ok(value) => Ok(Value::of(value)),
            Err(error) => Err(self.jump_of(error)),
        }
    }

    /// A jump as the error that Rhai makes of it: what `jump_of` takes back.
    pub(super) fn as_rhai_has_it(&mut self, result: R) -> Result<Dynamic, Box<EvalAltResult>> {
        match result {
            Ok(value) => Ok(value.boxed()),
            Err(Some(error)) => Err(error),
            Err(None) => Err(Box::new(match self.jump.take() {
                Some(Jump::Break(value)) => EvalAltResult::LoopBreak(true, value.boxed(), Position::NONE),
                Some(Jump::Return(value)) => EvalAltResult::Return(value.boxed(), Position::NONE),
                _ => EvalAltResult::LoopBreak(false, Dynamic::UNIT, Position::NONE),
            })),
        }
    }
}
