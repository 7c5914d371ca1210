//! What instructions do with what is no plain number in a register: values that closures share, tensors, texts and errors.
//! Nothing is computed twice: operands are in registers already.

use super::run::Target;
use super::{Bytecode, NONE, Side};
use crate::script::machine::calls::is_lent;
use crate::script::machine::control::Rounds;
use crate::script::machine::numbers;
use crate::script::machine::places::grow::{can_grow, grow};
use crate::script::machine::places::place;
use crate::script::machine::quick::{self, Number};
use crate::script::machine::run::{Fault, Frame, Jump, Machine, R, put};
use crate::script::machine::tree::{Assign, Node, Op};
use crate::script::machine::value::Value;
use crate::script::values::ascii::character;
use rhai::{Array, Dynamic, ImmutableString};

impl Machine<'_> {
    /// The value of a register: variables are copied, what was computed on the way moves out.
    pub(super) fn operand(&mut self, frame: &mut Frame, bytecode: &Bytecode, register: u16) -> R {
        let at = register as usize;
        if at < bytecode.variables {
            return self.load(&frame.slots[at]);
        }
        Ok(if at < bytecode.changing { frame.slots[at].take() } else { frame.slots[at].clone() })
    }

    /// Writes the register of an instruction: as its assignment says, if it is one.
    #[inline(never)]
    pub(super) fn write_away(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        pc: usize,
        to: u16,
        value: Value,
    ) -> R<()> {
        match bytecode.sides[pc].assign {
            NONE => {
                frame.slots[to as usize] = value;
                Ok(())
            }
            assign => self.assign_value(frame, &bytecode.assigns[assign as usize], value),
        }
    }

    /// `to = a op b`, and `to op= b`.
    #[inline(never)]
    pub(super) fn operate_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<()> {
        let (i, side) = (bytecode.code[pc], bytecode.sides[pc]);
        if side.assign != NONE {
            let assign = &bytecode.assigns[side.assign as usize];
            if assign.op.is_some() {
                if !self.looks && shared_number(frame, assign, i.b).is_some() {
                    return Ok(());
                }
                let value = self.operand(frame, bytecode, i.b)?;
                return self.assign_value(frame, assign, value);
            }
        }
        if side.op == Op::Add && i.to == i.a && side.assign != NONE && self.joined_there(frame, bytecode, i.a, i.b)? {
            return Ok(());
        }
        let value = self.operated(frame, bytecode, i.a, i.b, side)?;
        self.write_away(frame, bytecode, pc, i.to, value)
    }

    /// `xs = xs + ys` of two arrays or strings: the first one grows in its place.
    fn joined_there(&mut self, frame: &mut Frame, bytecode: &Bytecode, to: u16, with: u16) -> R<bool> {
        let (Value::Other(a), Value::Other(b)) = (&frame.slots[to as usize], &frame.slots[with as usize]) else {
            return Ok(false);
        };
        let are_alike = (a.is_array() && b.is_array()) || (a.is_string() && b.is_string());
        if !are_alike || !can_grow(a) || b.is_shared() || self.looks {
            return Ok(false);
        }
        let value = self.operand(frame, bytecode, with)?;
        let Value::Other(target) = &mut frame.slots[to as usize] else { unreachable!("looked at above") };
        Ok(grow(target, value).is_ok())
    }

    /// What an operator makes of two registers.
    fn operated(&mut self, frame: &mut Frame, bytecode: &Bytecode, a: u16, b: u16, side: Side) -> R {
        let (left, right) = (&frame.slots[a as usize], &frame.slots[b as usize]);
        if (left.is_shared() || right.is_shared())
            && let Some(value) = quick::combine(side.op, Number::of(left), Number::of(right)).value()
        {
            return Ok(value);
        }
        if let Some(value) = numbers::apply(side.op, left, right) {
            return Ok(value);
        }
        // Where sizes are limited, the native looks at them.
        if side.op == Op::Add
            && !self.looks
            && let Some(text) = numbers::joined(&frame.slots[a as usize], &frame.slots[b as usize])
        {
            return Ok(text);
        }
        // A native that compares leaves its arguments where they are; others take them.
        let lent = |register: u16| {
            is_comparison(side.op)
                && (register as usize) < bytecode.variables
                && is_lent(&frame.slots[register as usize])
        };
        let (lends_a, lends_b) = (lent(a) && !self.looks, lent(b) && a != b && !self.looks);
        if lends_a || lends_b {
            return self.operated_there(frame, bytecode, (a, lends_a), (b, lends_b), side);
        }
        let a = self.operand(frame, bytecode, a)?;
        let b = self.operand(frame, bytecode, b)?;
        let Node::Binary(binary) = &bytecode.nodes[side.node as usize] else { unreachable!("it is an operator") };
        self.combined(binary, a, b)
    }

    /// The same of a comparison of arrays and maps in variables, which are lent to it.
    fn operated_there(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        (a, lends_a): (u16, bool),
        (b, lends_b): (u16, bool),
        side: Side,
    ) -> R {
        let Node::Binary(binary) = &bytecode.nodes[side.node as usize] else { unreachable!("it is an operator") };
        // What is copied comes first: it may fail.
        let left = if lends_a { None } else { Some(self.operand(frame, bytecode, a)?) };
        let right = if lends_b { None } else { Some(self.operand(frame, bytecode, b)?) };
        let mut left = left.unwrap_or_else(|| frame.slots[a as usize].take()).boxed();
        let mut right = right.unwrap_or_else(|| frame.slots[b as usize].take()).boxed();
        let result = self.call_native(&binary.native, &mut [&mut left, &mut right], false);
        if lends_a {
            frame.slots[a as usize] = Value::Other(left);
        }
        if lends_b {
            frame.slots[b as usize] = Value::Other(right);
        }
        result
    }

    #[inline(never)]
    pub(super) fn compare_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<bool> {
        let (i, side) = (bytecode.code[pc], bytecode.sides[pc]);
        let (left, right) = (&frame.slots[i.a as usize], &frame.slots[i.b as usize]);
        if (left.is_shared() || right.is_shared())
            && let Some(truth) = quick::combine(side.op, Number::of(left), Number::of(right)).truth()
        {
            return Ok(truth);
        }
        if let Some(truth) = numbers::compare(side.op, left, right) {
            return Ok(truth);
        }
        let value = self.operated(frame, bytecode, i.a, i.b, side)?;
        self.held_true(value, side)
    }

    /// `a == "text"` and `a != 'c'`.
    #[inline]
    pub(super) fn compare_text(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<bool> {
        let (i, side) = (bytecode.code[pc], bytecode.sides[pc]);
        let Node::Binary(binary) = bytecode.node(pc) else { unreachable!("it is a comparison") };
        let Node::Literal(literal) = &binary.right else { unreachable!("it has a text on its right") };
        if let Some(truth) = numbers::compare(side.op, &frame.slots[i.a as usize], literal) {
            return Ok(truth);
        }
        let value = self.operand(frame, bytecode, i.a)?;
        let value = self.combined(binary, value, literal.clone())?;
        self.held_true(value, side)
    }

    /// Where the arm for a value stands.
    pub(super) fn switch_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> Target {
        let i = bytecode.code[pc];
        let Node::Switch(switch) = bytecode.node(pc) else { unreachable!("it is a switch") };
        let arm = match switch.recent.find(&frame.slots[i.a as usize]) {
            Some(arm) if !self.looks => Some(arm),
            _ => {
                let value = self.operand(frame, bytecode, i.a)?;
                self.arm(frame, switch, value)?
            }
        };
        Ok(arm.map_or(i.to as usize, |arm| switch.targets[arm as usize] as usize))
    }

    #[inline(never)]
    pub(super) fn truth_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<bool> {
        let value = self.operand(frame, bytecode, bytecode.code[pc].a)?;
        self.held_true(value, bytecode.sides[pc])
    }

    fn held_true(&mut self, value: Value, side: Side) -> R<bool> {
        match value {
            Value::Bool(truth) => Ok(truth),
            value if side.is_truth => Ok(self.hooks.truth(value.boxed(), side.at)?),
            value => self.as_truth(value, side.at),
        }
    }

    #[inline(never)]
    pub(super) fn copy_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<()> {
        let i = bytecode.code[pc];
        let value = self.operand(frame, bytecode, i.a)?;
        self.write_away(frame, bytecode, pc, i.to, value)
    }

    #[inline(never)]
    pub(super) fn copy_unless_lent(&mut self, frame: &mut Frame, from: u16, to: u16) -> R<()> {
        let value = match &frame.slots[from as usize] {
            value if is_lent(value) => Value::Unit,
            value => self.load(value)?,
        };
        frame.slots[to as usize] = value;
        Ok(())
    }

    #[inline(never)]
    pub(super) fn unary_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<()> {
        let i = bytecode.code[pc];
        let value = self.operand(frame, bytecode, i.a)?;
        let Node::Unary(unary) = bytecode.node(pc) else { unreachable!("it is an operator") };
        let value = match numbers::unary(unary.is_not, &value) {
            Some(value) => value,
            None => self.call_native(&unary.native, &mut [&mut value.boxed()], false)?,
        };
        self.write_away(frame, bytecode, pc, i.to, value)
    }

    /// A copy of an array's element that is no number, or that closures share.
    #[inline(never)]
    pub(super) fn element_at_hand(&self, frame: &Frame, bytecode: &Bytecode, pc: usize) -> Option<Value> {
        let (i, Node::Chain(chain)) = (bytecode.code[pc], bytecode.node(pc)) else { return None };
        let Value::Other(value) = &frame.slots[i.a as usize] else { return None };
        let index = Number::of(&frame.slots[i.b as usize]).as_int()?;
        if self.looks || chain.moves {
            return None;
        }
        let inside;
        let value = match value.is_shared() {
            true => {
                inside = value.read_lock::<Dynamic>()?;
                &*inside
            }
            false => value,
        };
        match value.read_lock::<Array>() {
            Some(array) => Some(Value::copied(&array[place(index, array.len())?])),
            None => character(&*value.read_lock::<ImmutableString>()?, index).map(|letter| Value::Other(letter.into())),
        }
    }

    /// The length of an array that closures share.
    #[inline(never)]
    pub(super) fn shared_length(&self, frame: &Frame, array: u16) -> Option<i64> {
        match &frame.slots[array as usize] {
            Value::Other(value) if value.is_shared() && !self.looks => Some(value.read_lock::<Array>()?.len() as i64),
            _ => None,
        }
    }

    /// Writes a number to an element of an array that closures share, or whose index they do.
    #[inline(never)]
    pub(super) fn store_shared(&self, frame: &mut Frame, array: u16, index: u16, value: u16) -> Option<()> {
        if self.looks || !(frame.slots[array as usize].is_shared() || frame.slots[index as usize].is_shared()) {
            return None;
        }
        let index = Number::of(&frame.slots[index as usize]).as_int()?;
        let new = Number::of(&frame.slots[value as usize]).value()?;
        let Value::Other(target) = &mut frame.slots[array as usize] else { return None };
        if target.is_read_only() {
            return None;
        }
        let mut array = target.write_lock::<Array>()?;
        let at = place(index, array.len())?;
        let element = &mut array[at];
        if element.is_shared() || element.is_read_only() {
            return None;
        }
        *element = new.boxed();
        Some(())
    }

    #[inline(never)]
    pub(super) fn element_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<()> {
        let Node::Chain(chain) = bytecode.node(pc) else { unreachable!("an element is a chain") };
        let value = self.other_chain(frame, chain)?;
        self.write_away(frame, bytecode, pc, bytecode.code[pc].to, value)
    }

    /// Adds a value to an array in a variable. `false`: it is no array that nobody else has.
    #[inline(never)]
    pub(super) fn push_at_hand(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<bool> {
        let i = bytecode.code[pc];
        // One that closures share may be held by a method that has called one.
        let can_grow = match &mut frame.slots[i.a as usize] {
            Value::Other(value) => !value.is_read_only() && value.write_lock::<Array>().is_some(),
            _ => false,
        };
        if self.looks || !can_grow {
            return Ok(false);
        }
        let chain = match bytecode.node(pc) {
            Node::Chain(chain) => chain,
            Node::Mark(mark) if let Node::Chain(chain) = &mark.1 => chain,
            _ => unreachable!("it is a chain"),
        };
        let value = self.handed_on(frame, bytecode, &chain.operands[0], i.b)?.boxed();
        self.step(bytecode.sides[pc].at)?;
        if let Value::Other(target) = &mut frame.slots[i.a as usize]
            && let Some(mut array) = target.write_lock::<Array>()
        {
            array.push(value);
        }
        if !matches!(frame.slots[i.to as usize], Value::Unit) {
            self.write_away(frame, bytecode, pc, i.to, Value::Unit)?;
        }
        Ok(true)
    }

    /// A register's value, which moves if the node says so.
    fn handed_on(&mut self, frame: &mut Frame, bytecode: &Bytecode, node: &Node, register: u16) -> R {
        match node {
            Node::Take(slot) => self.moved(&mut frame.slots[*slot as usize]),
            _ => self.operand(frame, bytecode, register),
        }
    }

    #[inline(never)]
    pub(super) fn store_away(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R<()> {
        let Node::AssignChain(assign) = bytecode.node(pc) else { unreachable!("it is an assignment") };
        let value = self.handed_on(frame, bytecode, &assign.value, bytecode.code[pc].to)?;
        self.assign_chain_value(frame, assign, value)
    }

    /// Where a loop goes on after a node that was left by `break` or `continue`.
    #[cold]
    pub(super) fn land(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize, fault: Fault) -> Target {
        let side = bytecode.sides[pc];
        if fault.is_some() || side.round == NONE {
            return Err(fault);
        }
        let round = &bytecode.rounds[side.round as usize];
        let counts = |frame: &Frame| round.count.is_some_and(|at| matches!(frame.slots[at as usize], Value::Int(_)));
        let target = match self.jump.take() {
            Some(Jump::Continue) => round.again,
            Some(Jump::Break(value)) if round.is_each || (round.count.is_some() && !counts(frame)) => {
                self.jump = Some(Jump::Break(value));
                return Err(None);
            }
            Some(Jump::Break(value)) => {
                if let Some(result) = round.result {
                    frame.slots[result as usize] = value;
                }
                round.out
            }
            jump => {
                self.jump = jump;
                return Err(None);
            }
        };
        frame.clear(round.clears.clone());
        Ok(target as usize)
    }

    /// Begins a loop over the numbers from `a` to `a + 1`. `false`: it has ended.
    #[inline(never)]
    pub(super) fn count(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize, body: usize) -> R<bool> {
        let (i, side) = (bytecode.code[pc], bytecode.sides[pc]);
        let (round, state) = (&bytecode.rounds[side.round as usize], i.a as usize);
        if let (Value::Int(from), Value::Int(to)) = (&frame.slots[state], &frame.slots[state + 1]) {
            let (from, to) = (*from, *to);
            if from > to || (from == to && !round.is_inclusive) {
                return Ok(false);
            }
            self.steps(round.weight, round.at)?;
            // The last number, which no sum passes over.
            frame.slots[state + 1] = Value::Int(if round.is_inclusive { to } else { to - 1 });
            frame.slots[round.variable as usize] = Value::Int(from);
            if let Some(counter) = round.counter {
                frame.slots[state + 2] = Value::Int(0);
                frame.slots[counter as usize] = Value::Int(0);
            }
            return Ok(true);
        }
        let (from, to) = (frame.slots[state].take(), frame.slots[state + 1].take());
        let Node::For(each) = bytecode.node(pc) else { unreachable!("it is a loop") };
        let Node::Binary(range) = &each.values else { unreachable!("it goes over a range") };
        let values = self.operator(&range.native, from, to)?;
        self.over(frame, each, values, Rounds::Code(bytecode, body))?;
        Ok(false)
    }

    /// Counts a round of a loop over numbers.
    #[inline]
    pub(super) fn count_round(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) {
        let (i, side) = (bytecode.code[pc], bytecode.sides[pc]);
        let Some(counter) = bytecode.rounds[side.round as usize].counter else { return };
        let state = i.a as usize;
        if let Value::Int(number) = frame.slots[state + 2] {
            frame.slots[state + 2] = Value::Int(number + 1);
            put(&mut frame.slots[counter as usize], Value::Int(number + 1));
        }
    }

    #[inline(never)]
    pub(super) fn each_round(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize, body: usize) -> R {
        let Node::For(each) = bytecode.node(pc) else { unreachable!("it is a loop") };
        self.each(frame, each, Rounds::Code(bytecode, body))
    }

    /// A loop inside a node.
    pub(in crate::script::machine) fn inner_loop(&mut self, frame: &mut Frame, start: usize, round: u32) -> R {
        let Some(bytecode) = frame.bytecode else { return Ok(Value::Unit) };
        let result = self.follow_code(frame, bytecode, start, true);
        if result.is_err() {
            frame.clear(bytecode.rounds[round as usize].clears.clone());
        }
        result
    }
}

/// `n += 1` of a number that closures share.
fn shared_number(frame: &mut Frame, assign: &Assign, with: u16) -> Option<()> {
    if assign.is_constant {
        return None;
    }
    let with = Number::of(&frame.slots[with as usize]);
    let Value::Other(place) = &mut frame.slots[assign.slot as usize] else { return None };
    if !with.is_some() || !place.is_shared() {
        return None;
    }
    let mut inside = place.write_lock::<Dynamic>()?;
    if inside.is_read_only() {
        return None;
    }
    *inside = quick::combine(assign.op?, Number::of_dynamic(&inside), with).value()?.boxed();
    Some(())
}

/// Whether an instruction compares.
pub fn is_comparison(op: Op) -> bool {
    matches!(op, Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal | Op::NotEqual)
}
