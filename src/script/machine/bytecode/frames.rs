//! Enters bodies: their frames, their constants and what was lent to them.

use super::lent_parts::{Out, put_back};
use super::{Argument, Bytecode, DirectCall};
use crate::script::machine::calls::{Placed, is_lent};
use crate::script::machine::run::{Frame, Machine, R};
use crate::script::machine::tree::{Body, Code, Node};
use crate::script::machine::unit::Function;
use crate::script::machine::value::Value;
use crate::script::source::Marked;
use rhai::{Dynamic, FnPtr};
use smallvec::SmallVec;
use std::sync::Arc;

impl Machine<'_> {
    /// The value of a body whose variables are in their registers.
    #[inline]
    pub(in crate::script::machine) fn run_body<'f>(&mut self, frame: &mut Frame<'f>, code: &'f Code) -> R {
        match &code.body {
            Body::Tree(node) => self.eval(frame, node),
            Body::Code(bytecode) => {
                for (slot, constant) in frame.slots[bytecode.changing..].iter_mut().zip(&bytecode.constants) {
                    match constant {
                        Value::Int(int) => *slot = Value::Int(*int),
                        Value::Float(float) => *slot = Value::Float(*float),
                        other => *slot = other.clone(),
                    }
                }
                frame.bytecode = Some(bytecode);
                self.follow_code(frame, bytecode, 0, false)
            }
        }
    }

    /// A call of a function of the same text: its arguments move from registers to where it finds them.
    pub(super) fn call_direct(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R {
        let call = &bytecode.calls[bytecode.sides[pc].node as usize];
        let _marked = call.mark.map(|place| Marked::enter(self.hooks, place, self.global.level));
        let Some(function) = call.function.upgrade().filter(|function| function.is_compiled()) else {
            let mut values: SmallVec<[Dynamic; 6]> = SmallVec::new();
            for argument in &call.arguments {
                values.push(self.argument(frame, bytecode, *argument)?.boxed());
            }
            return self.operate_on(&call.operands, &mut values).map(Value::of);
        };
        let Some(code) = function.code() else { unreachable!("it is compiled") };
        if self.profiles || frame.rest.len() < code.slots {
            return self.call_apart(frame, bytecode, call, &function, code);
        }
        let mut out = Out::new();
        let placed = self.place_arguments(frame, bytecode, call, code, &mut out);
        let lent = match placed.and_then(|lent| self.deeper(call.at).map(|()| lent)) {
            Ok(lent) => lent,
            Err(fault) => {
                put_back(frame, bytecode, out);
                frame.rest[..call.arguments.len()].fill(Value::Unit);
                return Err(fault);
            }
        };
        if lent != 0 {
            swap_lent(frame, call, lent);
        }
        let (slots, rest) = frame.rest.split_at_mut(code.slots);
        let result = match self.steps(2, call.at) {
            Err(fault) => Err(fault),
            Ok(()) => {
                let mut inner = Frame::new(slots, rest, None);
                self.run_body(&mut inner, code)
            }
        };
        if lent != 0 {
            swap_lent(frame, call, lent);
        }
        if !out.is_empty() {
            put_back(frame, bytecode, out);
        }
        Value::end(&mut frame.rest[..code.changing()]);
        self.shallower(result, &function, call.at)
    }

    /// `f(x)` of a closure in a variable: its arguments move from registers to where it finds them.
    pub(super) fn apply_direct(&mut self, frame: &mut Frame, bytecode: &Bytecode, pc: usize) -> R {
        let i = bytecode.code[pc];
        let call = &bytecode.calls[bytecode.sides[pc].node as usize];
        let _marked = call.mark.map(|place| Marked::enter(self.hooks, place, self.global.level));
        if !self.profiles
            && !self.looks
            && let Some((function, taken)) = self.closure_in(frame, i.a, call.arguments.len())
        {
            for (at, argument) in call.arguments.iter().enumerate() {
                let register = Self::register(frame, *argument);
                match self.operand(frame, bytecode, register) {
                    Ok(value) => frame.rest[taken + at] = value,
                    Err(fault) => {
                        Value::end(&mut frame.rest[..taken + at]);
                        return Err(fault);
                    }
                }
            }
            return self.run_placed(frame.rest, Placed { function, own: None }, None, call.at);
        }
        let Node::Either(either) = &bytecode.nodes[i.b as usize] else { unreachable!("it is such a call") };
        self.either(frame, either)
    }

    /// The function of a closure in a variable, where there is room for it, and how many values it has taken along: they are
    /// in its first registers.
    fn closure_in(&mut self, frame: &mut Frame, slot: u16, arguments: usize) -> Option<(Arc<Function>, usize)> {
        let Value::Other(value) = &frame.slots[slot as usize] else { return None };
        if !value.is_fnptr() {
            return None;
        }
        let pointer = value.read_lock::<FnPtr>().filter(|pointer| pointer.is_anonymous())?;
        let curry = pointer.curry();
        let function = self.known(pointer.fn_name(), curry.len() + arguments)?;
        if function.code()?.slots > frame.rest.len() {
            return None;
        }
        for (slot, value) in frame.rest.iter_mut().zip(curry) {
            *slot = if value.is_shared() { Value::Other(value.clone()) } else { Value::unboxed(value.clone()) };
        }
        Some((function, curry.len()))
    }

    /// Arguments in the first registers of the function that is called, but for those that are lent: their bits.
    #[inline]
    fn place_arguments(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        call: &DirectCall,
        code: &Code,
        out: &mut Out,
    ) -> R<u64> {
        if call.has_parts {
            self.place_parts(frame, bytecode, call, code, out)?;
        }
        let mut lent = 0;
        for (at, argument) in call.arguments.iter().enumerate() {
            if matches!(argument, Argument::Part(_)) {
                continue;
            }
            if self.lends(frame, code, at, *argument)? {
                lent |= 1 << at;
                continue;
            }
            let register = Self::register(frame, *argument);
            match frame.slots[register as usize] {
                Value::Int(int) => frame.rest[at] = Value::Int(int),
                Value::Float(float) => frame.rest[at] = Value::Float(float),
                _ => frame.rest[at] = self.operand(frame, bytecode, register)?,
            }
        }
        Ok(lent)
    }

    /// The register of an argument that has one.
    fn register(frame: &Frame, argument: Argument) -> u16 {
        match argument {
            Argument::Register(register) | Argument::Lendable(register) => register,
            Argument::Early(slot, _) if is_lent(&frame.slots[slot as usize]) => slot,
            Argument::Early(_, register) => register,
            Argument::Part(_) => unreachable!("a part is looked for"),
        }
    }

    /// The value of an argument, of which nothing is lent.
    fn argument(&mut self, frame: &mut Frame, bytecode: &Bytecode, argument: Argument) -> R {
        match argument {
            Argument::Part(node) => self.eval(frame, &bytecode.nodes[node as usize]),
            argument => self.operand(frame, bytecode, Self::register(frame, argument)),
        }
    }

    /// Whether an argument is lent: a value that costs to copy, and that the function leaves alone.
    #[inline]
    fn lends(&mut self, frame: &Frame, code: &Code, at: usize, argument: Argument) -> R<bool> {
        let Some(slot) = argument.lendable() else { return Ok(false) };
        let value = &frame.slots[slot as usize];
        if !code.lends(at) || !is_lent(value) {
            return Ok(false);
        }
        if self.looks
            && let Value::Other(value) = value
        {
            self.hooks.look(value)?;
        }
        Ok(true)
    }

    /// A call with a stack of its own, or whose time is taken.
    #[inline(never)]
    fn call_apart(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        call: &DirectCall,
        function: &Arc<Function>,
        code: &Code,
    ) -> R {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        let mut lent: SmallVec<[(usize, u16); 2]> = SmallVec::new();
        for (at, argument) in call.arguments.iter().enumerate() {
            if let Some(slot) = argument.lendable()
                && self.lends(frame, code, at, *argument)?
            {
                lent.push((at, slot));
                values.push(Value::Unit);
                continue;
            }
            values.push(self.argument(frame, bytecode, *argument)?);
        }
        for (at, slot) in &lent {
            values[*at] = frame.slots[*slot as usize].take();
        }
        let result = self.run(frame.rest, function, &mut values, None, call.at);
        for (at, slot) in &lent {
            frame.slots[*slot as usize] = values[*at].take();
        }
        result
    }
}

impl Argument {
    #[inline]
    fn lendable(self) -> Option<u16> {
        match self {
            Argument::Lendable(slot) | Argument::Early(slot, _) => Some(slot),
            Argument::Register(_) | Argument::Part(_) => None,
        }
    }
}

/// Moves what is lent to the called function's registers, or back.
fn swap_lent(frame: &mut Frame, call: &DirectCall, lent: u64) {
    for (at, argument) in call.arguments.iter().enumerate() {
        if let Some(slot) = argument.lendable()
            && lent >> at & 1 == 1
        {
            std::mem::swap(&mut frame.slots[slot as usize], &mut frame.rest[at]);
        }
    }
}
