//! Runs calls: of native functions with their arguments, and of compiled functions with a frame.

use super::native::placed;
use super::places::Values;
use super::places::exchange::{is_own, is_path};
use super::quick;
use super::quick_store;
use super::run::{Fault, Frame, Jump, Machine, R, RECENT, STACK};
use super::tree::{Call, Code, Either, First, Native, Node, Plain};
use super::unit::{Function, Unit, closure_named};
use super::value::Value;
use crate::script::bind::apply;
use crate::script::bind::apply::Callee;
use crate::script::values::ascii::text_of;
use crate::script::values::module::ModuleValue;
use crate::script::values::set::{Key, Set};
use rhai::{Dynamic, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext, Position};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// A closure that takes another number of values: Rhai lists the value before the dot among them.
#[cold]
fn without_this(error: Box<EvalAltResult>, name: &str) -> Box<EvalAltResult> {
    let EvalAltResult::ErrorFunctionNotFound(signature, at) = &*error else { return error };
    let Some(types) = signature.strip_prefix(name).and_then(|rest| rest.strip_prefix(" (")) else { return error };
    let types = types.split_once(", ").map_or(")", |(_, rest)| rest);
    Box::new(EvalAltResult::ErrorFunctionNotFound(format!("{name} ({types}"), *at))
}

/// Whether a value is worth lending, and nobody else has it.
pub(super) fn is_lent(value: &Value) -> bool {
    matches!(value, Value::Other(value) if is_own(value))
}

/// Whether a set has an element, a map an entry with a text as its key, or a text that text as its part.
#[inline]
fn has_text(whole: &Dynamic, parts: &[Dynamic]) -> Option<bool> {
    let [part] = parts else { return None };
    if let Some(set) = whole.read_lock::<Set>() {
        return Key::of(part).ok().map(|key| set.has(&key));
    }
    let text = part.read_lock::<ImmutableString>();
    let mut letter = [0; 4];
    let part = match &text {
        Some(text) => text.as_str(),
        None => &*part.as_char().ok()?.encode_utf8(&mut letter),
    };
    match whole.read_lock::<Map>() {
        Some(map) => Some(map.contains_key(part)),
        None => whole.read_lock::<ImmutableString>().map(|whole| whole.contains(part)),
    }
}

/// The letter of ASCII with a number.
fn letter(values: &[&mut Dynamic]) -> Option<ImmutableString> {
    let [code] = values else { return None };
    let code = if code.is_int() { code.as_int().ok()? } else { return None };
    u8::try_from(code).ok().filter(u8::is_ascii).map(|code| text_of(char::from(code)))
}

/// A closure's function, whose values are in the first slots of the stack that it runs on.
pub(super) struct Placed {
    pub function: Arc<Function>,
    /// The stack, where the machine's has too little room left.
    pub own: Option<Vec<Value>>,
}

impl Code {
    /// A stack of its own, where too little room is left.
    #[inline]
    fn own_stack(&self, stack: &[Value]) -> Option<Vec<Value>> {
        (stack.len() < self.slots).then(|| vec![Value::Unit; STACK.max(self.slots)])
    }
}

impl Machine<'_> {
    pub fn native(&mut self, frame: &mut Frame, native: &Native) -> R {
        if native.numeric.is_some() && native.luck.is_good() && !self.looks {
            match quick::called(frame, native).value() {
                Some(value) => return Ok(value),
                None => native.luck.miss(),
            }
        }
        if let Some(qualified) = &native.qualified
            && let Some(function) = self.qualified(qualified, native)
            && function.is_compiled()
        {
            return self.call_qualified(frame, native, &function);
        }
        let mut values: SmallVec<[Dynamic; 6]> = SmallVec::new();
        match native.first {
            First::Value => {
                if native.asks
                    && let Some(Node::Chain(chain)) = native.arguments.first()
                    && is_path(chain)
                {
                    for argument in &native.arguments[1..] {
                        values.push(self.eval(frame, argument)?.boxed());
                    }
                    let ask =
                        |machine: &mut Self, first: &mut Dynamic| machine.call_on(native, first, &mut values, false);
                    if let Some(answer) = self.asked_there(frame, chain, ask)? {
                        return Ok(answer);
                    }
                    values.clear();
                }
                for argument in &native.arguments {
                    values.push(self.eval(frame, argument)?.boxed());
                }
                if native.plain == Some(Plain::Contains)
                    && !self.looks
                    && let Some(truth) = has_text(&values[0], &values[1..])
                {
                    self.step(native.at)?;
                    return Ok(Value::Bool(truth));
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
                    } else if native.plain == Some(Plain::Contains)
                        && let Some(truth) = has_text(value, &values)
                    {
                        self.step(native.at)?;
                        return Ok(Value::Bool(truth));
                    }
                    return self.call_on(native, value, &mut values, true);
                }
                let shared = place.is_shared();
                if native.asks
                    && !self.looks
                    && let Value::Other(root) = place
                {
                    let mut root = root.clone();
                    let ask =
                        |machine: &mut Self, first: &mut Dynamic| machine.call_on(native, first, &mut values, false);
                    if let Some(answer) = self.asked_at(&mut root, &[], &Values::new(), ask)? {
                        return Ok(answer);
                    }
                }
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
        if let Some(numeric) = native.numeric.filter(|_| !self.looks)
            && let Some(value) = numeric.of_dynamics(values).value()
        {
            return self.step(native.at).map(|()| value);
        }
        if native.plain == Some(Plain::Chr)
            && !self.looks
            && let Some(letter) = letter(values)
        {
            return self.step(native.at).map(|()| Value::Other(letter.into()));
        }
        match native.site.find(values) {
            Some(entry) => self.invoke(entry, &native.name, values, by_reference, native.at).map(Value::of),
            None => self.search(native, values).map(Value::of),
        }
    }

    pub fn call(&mut self, frame: &mut Frame, call: &Call) -> R {
        let function = call.function.upgrade().filter(|function| function.is_compiled());
        let code = function.as_ref().and_then(|function| function.code());
        if let (Some(function), Some(code)) = (&function, code)
            && call.is_simple
            && !self.profiles
            && frame.rest.len() >= code.slots
            && !call.lendable.iter().any(|(_, slot)| is_lent(&frame.slots[*slot as usize]))
        {
            return self.call_simple(frame, call, function, code);
        }
        let mut lent: SmallVec<[(usize, u16); 2]> = SmallVec::new();
        if let Some(code) = code {
            let wanted =
                call.lendable.iter().filter(|(at, slot)| code.lends(*at) && is_lent(&frame.slots[*slot as usize]));
            lent.extend(wanted.copied());
        }
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        let late = call.first_is_variable as usize;
        values.resize(late, Value::Unit);
        for (at, argument) in call.arguments.iter().enumerate().skip(late) {
            let value = match lent.iter().any(|(lent, _)| *lent == at) {
                true => Value::Unit,
                false => self.eval(frame, argument)?,
            };
            values.push(value);
        }
        if late == 1 && lent.first().is_none_or(|(first, _)| *first != 0) {
            values[0] = self.eval(frame, &call.arguments[0])?;
        }
        let (Some(function), Some(_)) = (&function, code) else {
            let mut values: SmallVec<[Dynamic; 6]> = values.into_iter().map(Value::boxed).collect();
            return self.operate_on(&call.operands, &mut values).map(Value::of);
        };
        if self.looks {
            for (_, slot) in &lent {
                if let Value::Other(value) = &frame.slots[*slot as usize] {
                    self.hooks.look(value)?;
                }
            }
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

    /// A call whose arguments call nothing: they are computed where the function finds them.
    fn call_simple(&mut self, frame: &mut Frame, call: &Call, function: &Function, code: &Code) -> R {
        for (at, argument) in call.arguments.iter().enumerate() {
            if !self.looks && quick::number(frame, argument).put(&mut frame.rest[at]).is_some() {
                continue;
            }
            let value = self.eval(frame, argument);
            if let Err(fault) = quick_store::settle(&mut frame.rest[at], value) {
                frame.rest[..at].fill(Value::Unit);
                return Err(fault);
            }
        }
        if let Err(fault) = self.deeper(call.at) {
            frame.rest[..call.arguments.len()].fill(Value::Unit);
            return Err(fault);
        }
        let (slots, rest) = frame.rest.split_at_mut(code.slots);
        let result = match self.steps(2, call.at) {
            Err(fault) => Err(fault),
            Ok(()) => self.run_body(&mut Frame::new(&mut *slots, rest, None), code),
        };
        Value::end(&mut slots[..code.changing()]);
        self.shallower(result, function, call.at)
    }

    /// A call begins, unless it is one too many.
    #[inline]
    pub(super) fn deeper(&mut self, at: Position) -> R<()> {
        if self.global.level >= self.engine.max_call_levels() {
            return Err(Some(Box::new(EvalAltResult::ErrorStackOverflow(at))));
        }
        self.global.level += 1;
        Ok(())
    }

    /// `f(x)` where `f` is a variable: what it holds, or the function with its name.
    pub fn either(&mut self, frame: &mut Frame, either: &Either) -> R {
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        for argument in &either.arguments {
            values.push(self.eval(frame, argument)?);
        }
        let (mut constant, mut missing) = (Value::Unit, None);
        let held = match &either.holder {
            Node::Local(slot) => &mut frame.slots[*slot as usize],
            other => {
                // A constant that comes later hides no function.
                match self.eval(frame, other) {
                    Ok(value) => constant = value,
                    Err(fault) => missing = Some(fault),
                }
                &mut constant
            }
        };
        if let Value::Other(value) = held
            && let Some(result) = self.applied(frame.rest, value, &mut values, either.at)?
        {
            return Ok(result);
        }
        if let Some(function) = either.function.upgrade().filter(|function| function.is_compiled()) {
            return self.run(frame.rest, &function, &mut values, None, either.at);
        }
        let mut values: SmallVec<[Dynamic; 6]> = values.into_iter().map(Value::boxed).collect();
        let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
        let result = self.call_native(&either.native, &mut list, false);
        let is_unknown = |fault: &Fault| {
            fault.as_ref().is_some_and(|error| matches!(**error, EvalAltResult::ErrorFunctionNotFound(..)))
        };
        match (missing, result) {
            (Some(missing), Err(fault)) if is_unknown(&fault) => Err(missing),
            (_, result) => result,
        }
    }

    /// Calls a closure or a module; `None` where the value cannot be called. A shared module is locked while it runs, a
    /// closure is not: it may name its variable.
    pub fn applied(
        &mut self,
        stack: &mut [Value],
        target: &mut Dynamic,
        arguments: &mut [Value],
        at: Position,
    ) -> R<Option<Value>> {
        if let Some(placed) = self.held(stack, target, arguments) {
            return self.run_placed(stack, placed, None, at).map(Some);
        }
        let handle = target.read_lock::<ModuleValue>().map(|module| module.clone()).filter(|_| target.is_shared());
        if let Some(module) = handle {
            return self.applied(stack, &mut Dynamic::from(module), arguments, at);
        }
        let result = match apply::callee(target) {
            Some(Callee::Closure(pointer)) => self.pointer(stack, &pointer, None, arguments, at),
            Some(Callee::Forward(pointer)) if target.is_shared() => {
                let Some(mut inside) = target.write_lock::<Dynamic>() else {
                    return Err(Some(Box::new(EvalAltResult::ErrorDataRace(String::new(), Position::NONE))));
                };
                self.pointer(stack, &pointer, Some(&mut inside), arguments, at)
            }
            Some(Callee::Forward(pointer)) => {
                let result = self.pointer(stack, &pointer, Some(target), arguments, at);
                result.map_err(|fault| fault.map(|error| without_this(error, pointer.fn_name())))
            }
            None => return Ok(None),
        };
        result.map(Some)
    }

    /// Calls a closure, wherever it comes from.
    pub(super) fn pointer(
        &mut self,
        stack: &mut [Value],
        pointer: &FnPtr,
        mut this: Option<&mut Dynamic>,
        arguments: &mut [Value],
        at: Position,
    ) -> R {
        if let Some(value) = self.closure(stack, pointer, this.as_deref_mut(), arguments, at)? {
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

    /// Calls a closure; `None` where it is a function that has a name, or not compiled.
    pub fn closure(
        &mut self,
        stack: &mut [Value],
        pointer: &FnPtr,
        this: Option<&mut Dynamic>,
        arguments: &mut [Value],
        at: Position,
    ) -> R<Option<Value>> {
        match self.place(stack, pointer, arguments) {
            Some(placed) => self.run_placed(stack, placed, this, at).map(Some),
            None => Ok(None),
        }
    }

    /// The function of a closure, whose values move to where it finds them.
    #[inline]
    fn place(&mut self, stack: &mut [Value], pointer: &FnPtr, arguments: &mut [Value]) -> Option<Placed> {
        if !pointer.is_anonymous() {
            return None;
        }
        let curry = pointer.curry();
        let function = self.known(pointer.fn_name(), curry.len() + arguments.len())?;
        let mut own = function.code()?.own_stack(stack);
        let slots = own.as_deref_mut().unwrap_or(stack);
        for (slot, value) in slots.iter_mut().zip(curry) {
            *slot = if value.is_shared() { Value::Other(value.clone()) } else { Value::unboxed(value.clone()) };
        }
        for (slot, argument) in slots[curry.len()..].iter_mut().zip(arguments) {
            *slot = argument.take();
        }
        Some(Placed { function, own })
    }

    /// The same of a value that holds the closure, which is not copied for it, and not held while the closure runs.
    #[inline]
    pub(super) fn held(&mut self, stack: &mut [Value], value: &Dynamic, arguments: &mut [Value]) -> Option<Placed> {
        if !value.is_fnptr() {
            return None;
        }
        self.place(stack, &*value.read_lock::<FnPtr>()?, arguments)
    }

    /// Runs a closure whose values are where it finds them.
    pub(super) fn run_placed(
        &mut self,
        stack: &mut [Value],
        mut placed: Placed,
        this: Option<&mut Dynamic>,
        at: Position,
    ) -> R {
        let Some(code) = placed.function.code() else { unreachable!("`place` has asked for it") };
        let stack = placed.own.as_deref_mut().unwrap_or(stack);
        let result = self.run_there(stack, &placed.function, code, this, at);
        Value::end(&mut stack[..code.changing()]);
        result
    }

    /// The compiled function of a closure.
    #[inline]
    pub(super) fn known(&mut self, name: &str, count: usize) -> Option<Arc<Function>> {
        let has_count = |function: &Function| function.def.params.len() == count;
        // Most often it is the same text, not only an equal one.
        let is_same = |known: &str| std::ptr::eq(known.as_ptr(), name.as_ptr());
        let same = self.recent.iter().find(|function| is_same(&function.def.name) && has_count(function));
        let equal = || self.recent.iter().find(|function| function.def.name == name && has_count(function));
        if let Some(known) = same.or_else(equal) {
            return Some(known.clone());
        }
        let found = closure_named(self.hooks, name, count)?;
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(found.clone());
        Some(found)
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
        let mut own = code.own_stack(stack);
        let stack = own.as_deref_mut().unwrap_or(stack);
        for (slot, value) in stack.iter_mut().zip(values.iter_mut()) {
            *slot = value.take();
        }
        let result = self.run_there(stack, function, code, this, at);
        // What was lent goes back.
        for (at, (slot, value)) in stack.iter_mut().zip(values).enumerate() {
            if code.lends(at) {
                *value = slot.take();
            }
        }
        Value::end(&mut stack[..code.changing()]);
        result
    }

    /// Runs a function whose values are in the first slots. They end with the caller's `Value::end`.
    pub(super) fn run_there(
        &mut self,
        stack: &mut [Value],
        function: &Function,
        code: &Code,
        this: Option<&mut Dynamic>,
        at: Position,
    ) -> R {
        self.deeper(at)?;
        let result = match self.steps(2, at) {
            Err(fault) => Err(fault),
            Ok(()) => self.at_home(function.unit(), |machine| machine.timed(stack, function, code, this)),
        };
        self.shallower(result, function, at)
    }

    /// Runs code of a text among what the text has.
    #[inline]
    pub(super) fn at_home(&mut self, unit: &Weak<Unit>, run: impl FnOnce(&mut Self) -> R) -> R {
        if std::ptr::eq(self.unit, unit.as_ptr()) {
            return run(self);
        }
        match unit.upgrade() {
            Some(unit) => self.among(&unit, run),
            None => run(self),
        }
    }

    /// What a function's end means.
    #[inline]
    pub(super) fn shallower(&mut self, result: R, function: &Function, at: Position) -> R {
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

    /// Runs a function's body, whose values are in the first slots.
    #[inline]
    pub fn timed(&mut self, stack: &mut [Value], function: &Function, code: &Code, this: Option<&mut Dynamic>) -> R {
        if !self.profiles {
            return self.body(stack, code, this);
        }
        self.hooks.function_begins(&function.def.name, code.at);
        let result = self.body(stack, code, this);
        self.hooks.function_ends();
        result
    }

    fn body(&mut self, stack: &mut [Value], code: &Code, this: Option<&mut Dynamic>) -> R {
        let (slots, rest) = stack.split_at_mut(code.slots);
        let mut frame = Frame::new(slots, rest, this);
        let result = self.run_body(&mut frame, code);
        // Moved back where no closure lives on that shares it.
        if let (Some(lent), Some(this)) = (frame.lent, frame.this) {
            let ended = |at: &usize| !code.lends(*at);
            (0..code.changing()).filter(ended).for_each(|at| frame.slots[at] = Value::Unit);
            *this = lent.flatten();
        }
        result
    }

    /// An error on its way out of a function.
    #[cold]
    fn through(&self, mut error: Box<EvalAltResult>, name: &str, at: Position) -> Box<EvalAltResult> {
        if matches!(*error, EvalAltResult::Exit(..)) || error.is_system_exception() {
            // Of calls that are too deep, the innermost one is told.
            if !matches!(*error, EvalAltResult::ErrorStackOverflow(..)) || error.position().is_none() {
                error.set_position(at);
            }
            return error;
        }
        let source = self.global.source().unwrap_or("").to_string();
        Box::new(EvalAltResult::ErrorInFunctionCall(name.to_string(), source, error, at))
    }
}
