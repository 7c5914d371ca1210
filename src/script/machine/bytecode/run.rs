//! Follows the instructions. What is here is done with numbers in registers; all else is `away`.

use super::{Bytecode, Opcode};
use crate::script::machine::places::place;
use crate::script::machine::quick::{self, Number};
use crate::script::machine::run::{Fault, Frame, Jump, Machine, R, put};
use crate::script::machine::tree::{Node, Op};
use crate::script::machine::value::Value;
use crate::script::values::ascii::character;
use rhai::{Array, Dynamic, ImmutableString};

/// Writes a register that holds no value of Rhai's.
macro_rules! write {
    ($machine:expr, $frame:expr, $bytecode:expr, $pc:expr, $to:expr, $value:expr) => {{
        let slot = &mut $frame.slots[$to as usize];
        if matches!(slot, Value::Other(_)) {
            let value = $value;
            $machine.write_away($frame, $bytecode, $pc - 1, $to, value)?;
        } else {
            *slot = $value;
        }
    }};
}

macro_rules! arithmetic {
    ($machine:expr, $frame:expr, $bytecode:expr, $pc:expr, $i:expr, $checked:ident, $op:tt) => {{
        let pair = (&$frame.slots[$i.a as usize], &$frame.slots[$i.b as usize]);
        match pair {
            (Value::Int(a), Value::Int(b)) => match a.$checked(*b) {
                Some(value) => write!($machine, $frame, $bytecode, $pc, $i.to, Value::Int(value)),
                None => $machine.operate_away($frame, $bytecode, $pc - 1)?,
            },
            (Value::Float(a), Value::Float(b)) => {
                let value = *a $op *b;
                write!($machine, $frame, $bytecode, $pc, $i.to, Value::Float(value))
            }
            (Value::Int(a), Value::Float(b)) => {
                let value = *a as f64 $op *b;
                write!($machine, $frame, $bytecode, $pc, $i.to, Value::Float(value))
            }
            (Value::Float(a), Value::Int(b)) => {
                let value = *a $op *b as f64;
                write!($machine, $frame, $bytecode, $pc, $i.to, Value::Float(value))
            }
            _ => $machine.operate_away($frame, $bytecode, $pc - 1)?,
        }
    }};
}

macro_rules! compare {
    ($machine:expr, $frame:expr, $bytecode:expr, $pc:expr, $i:expr, $op:tt) => {{
        let holds = match (&$frame.slots[$i.a as usize], &$frame.slots[$i.b as usize]) {
            (Value::Int(a), Value::Int(b)) => a $op b,
            (Value::Float(a), Value::Float(b)) => a $op b,
            _ => $machine.compare_away($frame, $bytecode, $pc - 1)?,
        };
        if !holds {
            $pc = $i.to as usize;
        }
    }};
}

/// Where to go on after a node that was left by a jump.
macro_rules! landed {
    ($machine:expr, $frame:expr, $bytecode:expr, $pc:expr, $fault:expr) => {
        match $machine.land($frame, $bytecode, $pc - 1, $fault) {
            Ok(target) => {
                $pc = target;
                continue;
            }
            Err(fault) => return Err(fault),
        }
    };
}

impl Machine<'_> {
    /// Runs instructions until their value is known. `nested`: a part of a body, which a `return` leaves as a jump.
    pub(in crate::script::machine) fn follow_code(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        start: usize,
        nested: bool,
    ) -> R {
        let mut pc = start;
        loop {
            let i = bytecode.code[pc];
            pc += 1;
            match i.opcode {
                Opcode::Add => arithmetic!(self, frame, bytecode, pc, i, checked_add, +),
                Opcode::Subtract => arithmetic!(self, frame, bytecode, pc, i, checked_sub, -),
                Opcode::Multiply => arithmetic!(self, frame, bytecode, pc, i, checked_mul, *),
                Opcode::Divide => match (&frame.slots[i.a as usize], &frame.slots[i.b as usize]) {
                    (Value::Float(a), Value::Float(b)) => {
                        let value = a / b;
                        write!(self, frame, bytecode, pc, i.to, Value::Float(value))
                    }
                    _ => self.operate_away(frame, bytecode, pc - 1)?,
                },
                Opcode::Remainder => match (&frame.slots[i.a as usize], &frame.slots[i.b as usize]) {
                    (Value::Int(a), Value::Int(b)) if *b > 0 => {
                        let value = a % b;
                        let value = if value < 0 { value + b } else { value };
                        write!(self, frame, bytecode, pc, i.to, Value::Int(value))
                    }
                    _ => self.operate_away(frame, bytecode, pc - 1)?,
                },
                Opcode::Operate => self.operate_away(frame, bytecode, pc - 1)?,
                Opcode::UnlessLess => compare!(self, frame, bytecode, pc, i, <),
                Opcode::UnlessLessEqual => compare!(self, frame, bytecode, pc, i, <=),
                Opcode::UnlessGreater => compare!(self, frame, bytecode, pc, i, >),
                Opcode::UnlessGreaterEqual => compare!(self, frame, bytecode, pc, i, >=),
                Opcode::UnlessEqual => compare!(self, frame, bytecode, pc, i, ==),
                Opcode::UnlessNotEqual => compare!(self, frame, bytecode, pc, i, !=),
                Opcode::UnlessText => {
                    if !self.compare_text(frame, bytecode, pc - 1)? {
                        pc = i.to as usize;
                    }
                }
                Opcode::Copy => {
                    let slot = &frame.slots[i.a as usize];
                    match slot {
                        Value::Int(int) => {
                            let int = *int;
                            write!(self, frame, bytecode, pc, i.to, Value::Int(int))
                        }
                        Value::Float(float) => {
                            let float = *float;
                            write!(self, frame, bytecode, pc, i.to, Value::Float(float))
                        }
                        _ => self.copy_away(frame, bytecode, pc - 1)?,
                    }
                }
                Opcode::Jump => pc = i.to as usize,
                Opcode::Again => {
                    self.round_step(bytecode, pc - 1)?;
                    pc = i.to as usize;
                }
                Opcode::Step => self.round_step(bytecode, pc - 1)?,
                Opcode::Unless | Opcode::When => {
                    let holds = match frame.slots[i.a as usize] {
                        Value::Bool(truth) => truth,
                        _ => self.truth_away(frame, bytecode, pc - 1)?,
                    };
                    if holds == (i.opcode == Opcode::When) {
                        pc = i.to as usize;
                    }
                }
                Opcode::Switch => match self.switch_away(frame, bytecode, pc - 1) {
                    Ok(target) => pc = target,
                    Err(fault) => landed!(self, frame, bytecode, pc, fault),
                },
                Opcode::Index => match self.index_at_hand(frame, i.a, i.b) {
                    Some(number) => {
                        if number.put(&mut frame.slots[i.to as usize]).is_none() {
                            let value = number.value().unwrap_or_default();
                            self.write_away(frame, bytecode, pc - 1, i.to, value)?;
                        }
                    }
                    None => match self.letter_at_hand(frame, i.a, i.b) {
                        Some(letter) => {
                            self.write_away(frame, bytecode, pc - 1, i.to, Value::Other(letter.into()))?;
                        }
                        None => match self.element_at_hand(frame, bytecode, pc - 1) {
                            Some(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                            None => self.element_away(frame, bytecode, pc - 1)?,
                        },
                    },
                },
                Opcode::Element => {
                    let Node::Chain(chain) = &bytecode.nodes[bytecode.sides[pc - 1].node as usize] else {
                        unreachable!("an element is a chain")
                    };
                    let is_quick = chain.luck.is_good() && !self.looks;
                    let number = if is_quick { quick::element(frame, chain) } else { Number::NONE };
                    if number.put(&mut frame.slots[i.to as usize]).is_none() {
                        match number.value() {
                            Some(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                            None => {
                                chain.luck.miss();
                                self.element_away(frame, bytecode, pc - 1)?;
                            }
                        }
                    }
                }
                Opcode::Number => {
                    let node = bytecode.node(pc - 1);
                    let number = if self.looks { Number::NONE } else { quick::number(frame, node) };
                    if number.put(&mut frame.slots[i.to as usize]).is_none() {
                        let value = match number.value() {
                            Some(value) => value,
                            None => self.eval(frame, node)?,
                        };
                        self.write_away(frame, bytecode, pc - 1, i.to, value)?;
                    }
                }
                Opcode::Push => {
                    if !self.push_at_hand(frame, bytecode, pc - 1)? {
                        match self.eval(frame, bytecode.node(pc - 1)) {
                            Ok(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                            Err(fault) => landed!(self, frame, bytecode, pc, fault),
                        }
                    }
                }
                Opcode::Length => match self.length_at_hand(frame, i.a) {
                    Some(length) => {
                        self.step(bytecode.sides[pc - 1].at)?;
                        write!(self, frame, bytecode, pc, i.to, Value::Int(length as i64))
                    }
                    None => match self.shared_length(frame, i.a) {
                        Some(length) => {
                            self.step(bytecode.sides[pc - 1].at)?;
                            self.write_away(frame, bytecode, pc - 1, i.to, Value::Int(length))?;
                        }
                        None => self.element_away(frame, bytecode, pc - 1)?,
                    },
                },
                Opcode::StoreIndex => {
                    if self.store_at_hand(frame, i.a, i.b, i.to).is_none()
                        && self.store_shared(frame, i.a, i.b, i.to).is_none()
                    {
                        self.store_away(frame, bytecode, pc - 1)?;
                    }
                }
                Opcode::Execute => {
                    if let Err(fault) = self.exec(frame, bytecode.node(pc - 1)) {
                        landed!(self, frame, bytecode, pc, fault);
                    }
                }
                Opcode::Evaluate => match self.eval(frame, bytecode.node(pc - 1)) {
                    Ok(Value::Int(int)) => write!(self, frame, bytecode, pc, i.to, Value::Int(int)),
                    Ok(Value::Float(float)) => write!(self, frame, bytecode, pc, i.to, Value::Float(float)),
                    Ok(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                    Err(fault) => landed!(self, frame, bytecode, pc, fault),
                },
                Opcode::Call => match self.call_direct(frame, bytecode, pc - 1) {
                    Ok(Value::Int(int)) => write!(self, frame, bytecode, pc, i.to, Value::Int(int)),
                    Ok(Value::Float(float)) => write!(self, frame, bytecode, pc, i.to, Value::Float(float)),
                    Ok(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                    Err(fault) => return Err(fault),
                },
                Opcode::Apply => match self.apply_direct(frame, bytecode, pc - 1) {
                    Ok(Value::Int(int)) => write!(self, frame, bytecode, pc, i.to, Value::Int(int)),
                    Ok(Value::Float(float)) => write!(self, frame, bytecode, pc, i.to, Value::Float(float)),
                    Ok(value) => self.write_away(frame, bytecode, pc - 1, i.to, value)?,
                    Err(fault) => return Err(fault),
                },
                Opcode::Next => {
                    let state = i.a as usize;
                    let (Value::Int(now), Value::Int(last)) = (&frame.slots[state], &frame.slots[state + 1]) else {
                        // The machine goes on with the next round.
                        return Ok(Value::Unit);
                    };
                    if now < last {
                        let now = now + 1;
                        self.round_step(bytecode, pc - 1)?;
                        frame.slots[state] = Value::Int(now);
                        put(&mut frame.slots[i.b as usize], Value::Int(now));
                        self.count_round(frame, bytecode, pc - 1);
                        pc = i.to as usize;
                    }
                }
                Opcode::CopyUnlessLent => self.copy_unless_lent(frame, i.a, i.to)?,
                Opcode::Take if let Value::Int(int) = frame.slots[i.a as usize] => {
                    write!(self, frame, bytecode, pc, i.to, Value::Int(int))
                }
                Opcode::Take if let Value::Float(float) = frame.slots[i.a as usize] => {
                    write!(self, frame, bytecode, pc, i.to, Value::Float(float))
                }
                Opcode::Take => {
                    let value = self.moved(&mut frame.slots[i.a as usize])?;
                    self.write_away(frame, bytecode, pc - 1, i.to, value)?;
                }
                Opcode::Literal => {
                    let Node::Literal(value) = bytecode.node(pc - 1) else { unreachable!("it is a literal") };
                    self.write_away(frame, bytecode, pc - 1, i.to, value.clone())?;
                }
                Opcode::Negate | Opcode::Not => match &frame.slots[i.a as usize] {
                    Value::Float(float) if i.opcode == Opcode::Negate => {
                        let float = -*float;
                        write!(self, frame, bytecode, pc, i.to, Value::Float(float))
                    }
                    _ => self.unary_away(frame, bytecode, pc - 1)?,
                },
                Opcode::Count => match self.count(frame, bytecode, pc - 1, pc) {
                    Ok(true) => {}
                    Ok(false) => pc = i.to as usize,
                    Err(fault) => return Err(fault),
                },
                Opcode::Each => {
                    let value = self.each_round(frame, bytecode, pc - 1, pc)?;
                    frame.slots[i.a as usize] = value;
                    pc = i.to as usize;
                }
                Opcode::EndRound => return Ok(Value::Unit),
                Opcode::LeaveCount => match frame.slots[i.a as usize] {
                    Value::Int(_) => pc = i.to as usize,
                    _ => return self.leave(Jump::Break(Value::Unit)),
                },
                Opcode::Clear => frame.clear(i.a..i.b),
                Opcode::Return => {
                    let value = self.result(frame, bytecode, i.a)?;
                    return if nested { self.leave(Jump::Return(value)) } else { Ok(value) };
                }
                Opcode::Finish => return self.result(frame, bytecode, i.a),
            }
        }
    }

    /// What limits and interrupts ask for in each round.
    #[inline]
    fn round_step(&mut self, bytecode: &Bytecode, pc: usize) -> R<()> {
        let round = &bytecode.rounds[bytecode.sides[pc].round as usize];
        self.next_round(round.weight, round.depth, round.at)
    }

    /// The number in an array's element.
    #[inline]
    fn index_at_hand(&self, frame: &Frame, array: u16, index: u16) -> Option<Number> {
        let (Value::Other(value), Value::Int(index)) = (&frame.slots[array as usize], &frame.slots[index as usize])
        else {
            return None;
        };
        if value.is_shared() || self.looks {
            return None;
        }
        let array = value.read_lock::<Array>()?;
        let number = Number::of_dynamic(&array[place(*index, array.len())?]);
        number.is_some().then_some(number)
    }

    /// The letter of a string.
    #[inline]
    fn letter_at_hand(&self, frame: &Frame, text: u16, index: u16) -> Option<char> {
        let (Value::Other(value), Value::Int(index)) = (&frame.slots[text as usize], &frame.slots[index as usize])
        else {
            return None;
        };
        if value.is_shared() || self.looks {
            return None;
        }
        character(&*value.read_lock::<ImmutableString>()?, *index)
    }

    #[inline]
    fn length_at_hand(&self, frame: &Frame, array: u16) -> Option<usize> {
        match &frame.slots[array as usize] {
            Value::Other(value) if !value.is_shared() && !self.looks => Some(value.read_lock::<Array>()?.len()),
            _ => None,
        }
    }

    /// Writes a number to an array's element, which is one or `()`.
    #[inline]
    fn store_at_hand(&self, frame: &mut Frame, array: u16, index: u16, value: u16) -> Option<()> {
        if self.looks {
            return None;
        }
        let Value::Int(index) = frame.slots[index as usize] else { return None };
        let new = match &frame.slots[value as usize] {
            Value::Int(int) => Dynamic::from_int(*int),
            Value::Float(float) => Dynamic::from_float(*float),
            Value::Bool(truth) => Dynamic::from_bool(*truth),
            _ => return None,
        };
        let Value::Other(target) = &mut frame.slots[array as usize] else { return None };
        if target.is_shared() || target.is_read_only() {
            return None;
        }
        let mut array = target.write_lock::<Array>()?;
        let at = place(index, array.len())?;
        let element = &mut array[at];
        if element.is_shared() || element.is_read_only() {
            return None;
        }
        *element = new;
        Some(())
    }

    /// The value with which a body ends.
    fn result(&mut self, frame: &mut Frame, bytecode: &Bytecode, register: u16) -> R {
        let at = register as usize;
        if at < bytecode.variables {
            return self.load(&frame.slots[at]);
        }
        match &mut frame.slots[at] {
            Value::Int(int) => Ok(Value::Int(*int)),
            Value::Float(float) => Ok(Value::Float(*float)),
            Value::Bool(truth) => Ok(Value::Bool(*truth)),
            other if at < bytecode.changing => Ok(other.take()),
            constant => Ok(constant.clone()),
        }
    }
}

impl Bytecode {
    #[inline]
    pub fn node(&self, pc: usize) -> &Node {
        &self.nodes[self.sides[pc].node as usize]
    }
}

/// An error that no jump is.
pub type Target = Result<usize, Fault>;

/// Operators whose instruction is their own.
pub fn own(op: Op) -> Opcode {
    match op {
        Op::Add => Opcode::Add,
        Op::Subtract => Opcode::Subtract,
        Op::Multiply => Opcode::Multiply,
        Op::Divide => Opcode::Divide,
        Op::Remainder => Opcode::Remainder,
        _ => Opcode::Operate,
    }
}
