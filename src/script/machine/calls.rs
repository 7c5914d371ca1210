//! Runs calls: of native functions with their arguments, and of compiled functions with a frame.

use super::native::placed;
use super::run::{Frame, Jump, Machine, R, STACK};
use super::tree::{Call, Code, Either, First, Native};
use super::unit::{Function, Unit};
use super::value::Value;
use crate::script::bind::apply;
use crate::script::bind::apply::Callee;
use rhai::{Dynamic, EvalAltResult, FnPtr, NativeCallContext, Position};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

impl Machine<'_> {
    pub fn native(&mut self, frame: &mut Frame, native: &Native) -> R {
        let mut values: SmallVec<[Dynamic; 6]> = SmallVec::new();
        match native.first {
            First::Value => {
                for argument in &native.arguments {
                    values.push(self.eval(frame, argument)?.boxed());
                }
                let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
                self.call_native(native, &mut list, false)
            }
            First::Variable(slot) => {
                for argument in &native.arguments[1..] {
                    values.push(self.eval(frame, argument)?.boxed());
                }
                let place = &mut frame.slots[slot as usize];
                if let Value::Other(value) = place
                    && !value.is_shared()
                {
                    if self.looks {
                        self.hooks.look(value)?;
                    }
                    return self.call_on(native, value, &mut values, true);
                }
                let shared = place.is_shared();
                let mut first = self.load(&frame.slots[slot as usize])?.boxed();
                let result = self.call_on(native, &mut first, &mut values, !shared);
                if !shared {
                    frame.slots[slot as usize] = Value::unboxed(first);
                }
                result
            }
            First::This => {
                for argument in &native.arguments[1..] {
                    values.push(self.eval(frame, argument)?.boxed());
                }
                match frame.this.as_deref_mut() {
                    Some(this) if this.is_shared() => {
                        let mut copy = this.flatten_clone();
                        self.call_on(native, &mut copy, &mut values, false)
                    }
                    Some(this) => self.call_on(native, this, &mut values, true),
                    None => Err(Some(Box::new(EvalAltResult::ErrorUnboundThis(native.at)))),
                }
            }
        }
    }

    /// Calls a native function on a value and those after it.
    fn call_on(&mut self, native: &Native, first: &mut Dynamic, rest: &mut [Dynamic], by_reference: bool) -> R {
        let mut list: SmallVec<[&mut Dynamic; 6]> = SmallVec::new();
        list.push(first);
        list.extend(rest);
        self.call_native(native, &mut list, by_reference)
    }

    /// Calls what a place remembers, or lets Rhai look for it.
    #[inline]
    pub fn call_native(&mut self, native: &Native, values: &mut [&mut Dynamic], by_reference: bool) -> R {
        match native.site.find(values) {
            Some(entry) => self.invoke(entry, &native.name, values, by_reference, native.at).map(Value::of),
            None => self.search(native, values).map(Value::of),
        }
    }

    pub fn call(&mut self, frame: &mut Frame, call: &Call) -> R {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        if call.first_is_variable {
            values.push(Value::Unit);
            for argument in &call.arguments[1..] {
                values.push(self.eval(frame, argument)?);
            }
            values[0] = self.eval(frame, &call.arguments[0])?;
        } else {
            for argument in &call.arguments {
                values.push(self.eval(frame, argument)?);
            }
        }
        match call.function.upgrade() {
            Some(function) if function.is_compiled() => self.run(frame.rest, &function, &mut values, None, call.at),
            _ => {
                let mut values: SmallVec<[Dynamic; 6]> = values.into_iter().map(Value::boxed).collect();
                self.operate_on(&call.operands, &mut values).map(Value::of)
            }
        }
    }

    /// `f(x)` where `f` is a variable: what it holds, or the function with its name.
    pub fn either(&mut self, frame: &mut Frame, either: &Either) -> R {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        for argument in &either.arguments {
            values.push(self.eval(frame, argument)?);
        }
        if let Value::Other(value) = &mut frame.slots[either.slot as usize]
            && let Some(result) = self.applied(frame.rest, &either.unit, value, &mut values, either.at)?
        {
            return Ok(result);
        }
        if let Some(function) = either.function.upgrade().filter(|function| function.is_compiled()) {
            return self.run(frame.rest, &function, &mut values, None, either.at);
        }
        let mut values: SmallVec<[Dynamic; 6]> = values.into_iter().map(Value::boxed).collect();
        let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
        self.call_native(&either.native, &mut list, false)
    }

    /// Calls a closure or a module; `None` where the value cannot be called. A shared module is locked while it runs, a
    /// closure is not: it may name its variable.
    pub fn applied(
        &mut self,
        stack: &mut [Value],
        unit: &Weak<Unit>,
        target: &mut Dynamic,
        arguments: &mut [Value],
        at: Position,
    ) -> R<Option<Value>> {
        let result = match apply::callee(target) {
            Some(Callee::Closure(pointer)) => self.pointer(stack, unit, &pointer, None, arguments, at),
            Some(Callee::Forward(pointer)) if target.is_shared() => {
                let Some(mut inside) = target.write_lock::<Dynamic>() else {
                    return Err(Some(Box::new(EvalAltResult::ErrorDataRace(String::new(), Position::NONE))));
                };
                self.pointer(stack, unit, &pointer, Some(&mut inside), arguments, at)
            }
            Some(Callee::Forward(pointer)) => self.pointer(stack, unit, &pointer, Some(target), arguments, at),
            None => return Ok(None),
        };
        result.map(Some)
    }

    /// Calls a closure, wherever it comes from.
    fn pointer(
        &mut self,
        stack: &mut [Value],
        unit: &Weak<Unit>,
        pointer: &FnPtr,
        mut this: Option<&mut Dynamic>,
        arguments: &mut [Value],
        at: Position,
    ) -> R {
        if let Some(value) = self.closure(stack, unit, pointer, this.as_deref_mut(), arguments, at)? {
            return Ok(value);
        }
        let arguments: Vec<Dynamic> = arguments.iter_mut().map(|value| value.take().boxed()).collect();
        let context = NativeCallContext::new_with_all_fields(
            self.engine,
            pointer.fn_name(),
            self.global.source(),
            self.global,
            at,
        );
        match pointer.call_raw(&context, this, arguments) {
            Ok(value) => Ok(Value::of(value)),
            Err(error) => Err(Some(placed(error, at))),
        }
    }

    /// Calls a closure of this text; `None` where it is another's.
    pub fn closure(
        &mut self,
        stack: &mut [Value],
        unit: &Weak<Unit>,
        pointer: &FnPtr,
        this: Option<&mut Dynamic>,
        arguments: &mut [Value],
        at: Position,
    ) -> R<Option<Value>> {
        if !pointer.is_anonymous() {
            return Ok(None);
        }
        let count = pointer.curry().len() + arguments.len();
        let known = unit.upgrade().and_then(|unit| unit.find(pointer.fn_name(), count));
        let Some(function) = known.filter(|function| function.is_compiled()) else { return Ok(None) };
        let mut values: SmallVec<[Value; 4]> =
            pointer.curry().iter().map(|value| Value::unboxed(value.clone())).collect();
        values.extend(arguments.iter_mut().map(Value::take));
        self.run(stack, &function, &mut values, this, at).map(Some)
    }

    /// Runs a function of compiled code, as Rhai's `call_script_fn` does.
    pub fn run(
        &mut self,
        stack: &mut [Value],
        function: &Arc<Function>,
        values: &mut [Value],
        this: Option<&mut Dynamic>,
        at: Position,
    ) -> R {
        let Some(code) = function.code() else { unreachable!("the caller has asked `is_compiled`") };
        self.global.level += 1;
        if self.global.level > self.engine.max_call_levels() {
            self.global.level -= 1;
            return Err(Some(Box::new(EvalAltResult::ErrorStackOverflow(at))));
        }
        let stepped = self.steps(2, at);
        let result = match stepped {
            Err(error) => Err(error),
            Ok(()) if stack.len() < code.slots => {
                let mut own = vec![Value::Unit; STACK.max(code.slots)];
                self.body(&mut own, code, values, this)
            }
            Ok(()) => self.body(stack, code, values, this),
        };
        self.global.level -= 1;
        match result {
            Ok(value) => Ok(value),
            Err(None) => match self.jump.take() {
                Some(Jump::Return(value)) => Ok(value),
                // Rhai's parser lets no `break` out of a function.
                _ => Ok(Value::Unit),
            },
            Err(Some(error)) => Err(Some(self.through(error, &function.def.name, at))),
        }
    }

    #[inline]
    pub fn body(&mut self, stack: &mut [Value], code: &Code, values: &mut [Value], this: Option<&mut Dynamic>) -> R {
        let (slots, rest) = stack.split_at_mut(code.slots);
        for (slot, value) in slots.iter_mut().zip(values) {
            *slot = value.take();
        }
        let mut frame = Frame { slots, rest, this, lent: None };
        let result = self.eval(&mut frame, &code.body);
        for slot in frame.slots {
            if matches!(slot, Value::Other(_)) {
                *slot = Value::Unit;
            }
        }
        // Moved back where no closure lives on that shares it.
        if let (Some(lent), Some(this)) = (frame.lent, frame.this) {
            *this = lent.flatten();
        }
        result
    }

    /// An error on its way out of a function.
    #[cold]
    fn through(&self, mut error: Box<EvalAltResult>, name: &str, at: Position) -> Box<EvalAltResult> {
        if matches!(*error, EvalAltResult::Exit(..)) || error.is_system_exception() {
            error.set_position(at);
            return error;
        }
        let source = self.global.source().unwrap_or("").to_string();
        Box::new(EvalAltResult::ErrorInFunctionCall(name.to_string(), source, error, at))
    }
}
