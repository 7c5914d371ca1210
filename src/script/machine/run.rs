//! Runs what the compiler made: one function for each kind of node, values on the way back, errors and jumps as errors.

use super::numbers;
use super::tree::{
    Binary, Block, Call, CaseKey, First, For, If, Native, Node, Switch, Text, Try, Unary, While, Within,
};
use super::unit::Function;
use super::value::Value;
use crate::script::source::Hooks;
use rhai::{Dynamic, Engine, EvalAltResult, GlobalRuntimeState, ImmutableString, Position};
use smallvec::SmallVec;
use std::sync::Arc;

/// An error, or none: then `Machine::jump` says where to go on.
pub type Fault = Option<Box<EvalAltResult>>;
pub type R<T = Value> = Result<T, Fault>;

/// What leaves a statement without being an error.
pub enum Jump {
    Break(Value),
    Continue,
    Return(Value),
}

/// One run of compiled code inside one of Rhai's evaluations.
pub struct Machine<'m> {
    pub engine: &'m Engine,
    pub global: &'m mut GlobalRuntimeState,
    pub hooks: &'m dyn Hooks,
    /// Set where a fault is `None`.
    pub jump: Option<Jump>,
    /// Whether values are looked at when a variable is read.
    pub looks: bool,
}

/// A function at work.
pub struct Frame<'f> {
    pub slots: &'f mut [Value],
    /// Room for the functions that it calls.
    pub rest: &'f mut [Value],
    pub this: Option<&'f mut Dynamic>,
}

/// Bound: slots that a stack has at first; a function that finds too little room gets a stack of its own.
pub const STACK: usize = 4096;

impl<'m> Machine<'m> {
    /// One step, which a limit or an interrupt may end.
    #[inline]
    pub fn step(&mut self, at: Position) -> R<()> {
        self.steps(1, at)
    }

    #[inline]
    pub fn steps(&mut self, count: u32, at: Position) -> R<()> {
        match self.hooks.step(count) {
            None => Ok(()),
            Some(token) => Err(Some(Box::new(EvalAltResult::ErrorTerminated(token, at)))),
        }
    }

    /// The value of a node.
    pub fn eval(&mut self, frame: &mut Frame, node: &Node) -> R {
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Local(slot) => self.load(&frame.slots[*slot as usize]),
            Node::Binary(binary) => self.binary(frame, binary),
            Node::Call(call) => self.call(frame, call),
            Node::Chain(chain) => self.chain(frame, chain),
            Node::Native(native) => self.native(frame, native),
            Node::Let(slot, value) => {
                let value = self.eval(frame, value)?;
                frame.slots[*slot as usize] = value;
                Ok(Value::Unit)
            }
            Node::Assign(assign) => self.assign(frame, assign),
            Node::AssignChain(assign) => self.assign_chain(frame, assign),
            Node::Block(block) => self.block(frame, block),
            Node::If(branch) => self.branch(frame, branch),
            Node::While(repeat) => self.repeat(frame, repeat),
            Node::For(each) => self.each(frame, each),
            Node::Return(value) => {
                let value = match value {
                    Some(value) => self.eval(frame, value)?,
                    None => Value::Unit,
                };
                self.leave(Jump::Return(value))
            }
            Node::Break(value) => {
                let value = match value {
                    Some(value) => self.eval(frame, value)?,
                    None => Value::Unit,
                };
                self.leave(Jump::Break(value))
            }
            Node::Continue => self.leave(Jump::Continue),
            Node::Truth(_) | Node::And(_) | Node::Or(_) => self.test(frame, node, Position::NONE).map(Value::Bool),
            Node::Unary(unary) => self.unary(frame, unary),
            other => self.rare(frame, other),
        }
    }

    /// Nodes that are met less often, apart so that the frame of `eval` stays small.
    #[inline(never)]
    fn rare(&mut self, frame: &mut Frame, node: &Node) -> R {
        match node {
            Node::This(at) => match frame.this.as_deref() {
                Some(this) => Ok(Value::copied(this)),
                None => Err(Some(Box::new(EvalAltResult::ErrorUnboundThis(*at)))),
            },
            Node::Global(global) => {
                let constants = self.global.constants.as_ref();
                let found = constants.and_then(|all| all.read().ok()?.get(&*global.name).map(Value::copied));
                match found {
                    Some(value) => Ok(value),
                    None => self.mirror(frame, &global.fragment),
                }
            }
            Node::Constant(constant) => match constant.value.get() {
                Some(value) => Ok(Value::copied(value)),
                None => {
                    let value = self.mirror(frame, &constant.fragment)?;
                    let _ = constant.value.set(value.clone().boxed());
                    Ok(value)
                }
            },
            Node::Coalesce(parts) => {
                let mut value = Value::Unit;
                for part in parts {
                    value = self.eval(frame, part)?;
                    if !matches!(value, Value::Unit) {
                        break;
                    }
                }
                Ok(value)
            }
            Node::Array(items) => {
                let mut array = rhai::Array::with_capacity(items.len());
                for item in items {
                    array.push(self.eval(frame, item)?.boxed());
                }
                Ok(Value::Other(Dynamic::from_array(array)))
            }
            Node::Map(literal) => {
                let mut map = literal.template.clone();
                for (name, value) in &literal.entries {
                    let value = self.eval(frame, value)?.boxed();
                    if let Some(place) = map.get_mut(name.as_str()) {
                        *place = value;
                    }
                }
                Ok(Value::Other(Dynamic::from_map(map)))
            }
            Node::Text(text) => self.text(frame, text),
            Node::Curry(curry) => self.curry(frame, &curry.0, &curry.1),
            Node::Switch(switch) => self.switch(frame, switch),
            Node::Throw(thrown) => {
                let value = self.eval(frame, &thrown.0)?.boxed();
                Err(Some(Box::new(EvalAltResult::ErrorRuntime(value, thrown.1))))
            }
            Node::LetConstant(slot, value) => {
                let value = self.eval(frame, value)?;
                frame.slots[*slot as usize] = match value {
                    Value::Other(value) => Value::Other(value.into_read_only()),
                    plain => plain,
                };
                Ok(Value::Unit)
            }
            Node::AssignThis(assign) => self.assign_this(frame, assign),
            Node::Try(block) => self.attempt(frame, block),
            Node::TryWait(body) => {
                let entered = self.hooks.try_enter();
                let result = self.eval(frame, &body.0);
                self.settle(entered, result)
            }
            Node::Mark(mark) => {
                let entered = self.hooks.enter(mark.0, self.global.level);
                let hooks = self.hooks;
                let _leave = Leave { hooks, entered };
                self.eval(frame, &mark.1)
            }
            Node::Missing(asked) => match self.eval(frame, &asked.1) {
                Err(Some(error)) if crate::script::source::is_missing(&error, asked.0) => Ok(Value::Unit),
                other => other,
            },
            Node::Share(slots) => {
                for &slot in slots {
                    let place = &mut frame.slots[slot as usize];
                    if !place.is_shared() {
                        *place = Value::Other(place.take().boxed().into_shared());
                    }
                }
                Ok(Value::Unit)
            }
            Node::Within(within) => self.within(frame, within),
            Node::Operated(operated) => {
                let mut values: SmallVec<[Dynamic; 6]> = SmallVec::new();
                for node in &operated.1 {
                    values.push(self.eval(frame, node)?.boxed());
                }
                self.operate_on(&operated.0, &mut values).map(Value::of)
            }
            Node::Fragment(fragment) => self.mirror(frame, fragment),
            _ => unreachable!("`eval` knows the others"),
        }
    }

    #[cold]
    #[inline(never)]
    fn leave(&mut self, jump: Jump) -> R {
        self.jump = Some(jump);
        Err(None)
    }

    /// The value of a variable, shared by none.
    #[inline]
    pub fn load(&mut self, value: &Value) -> R {
        match value {
            Value::Int(int) => Ok(Value::Int(*int)),
            Value::Float(float) => Ok(Value::Float(*float)),
            Value::Bool(truth) => Ok(Value::Bool(*truth)),
            Value::Unit => Ok(Value::Unit),
            Value::Other(value) => self.copy(value),
        }
    }

    #[inline(never)]
    fn copy(&mut self, value: &Dynamic) -> R {
        if self.looks {
            self.hooks.look(value)?;
        }
        if value.is_shared() && value.is_locked() {
            return Err(Some(Box::new(EvalAltResult::ErrorDataRace(String::new(), Position::NONE))));
        }
        Ok(Value::copied(value))
    }

    /// A value that is at hand without computing anything: operands of most arithmetic.
    #[inline]
    fn peek<'v>(frame: &'v Frame, node: &'v Node) -> Option<&'v Value> {
        match node {
            Node::Local(slot) => Some(&frame.slots[*slot as usize]),
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    #[inline]
    fn binary(&mut self, frame: &mut Frame, binary: &Binary) -> R {
        if let (Some(a), Some(b)) = (Self::peek(frame, &binary.left), Self::peek(frame, &binary.right))
            && let Some(value) = numbers::apply(binary.op, a, b)
        {
            return Ok(value);
        }
        let a = self.eval(frame, &binary.left)?;
        let b = self.eval(frame, &binary.right)?;
        match numbers::apply(binary.op, &a, &b) {
            Some(value) => Ok(value),
            None => self.operator(&binary.native, a, b),
        }
    }

    /// An operator of values that are no numbers.
    #[inline(never)]
    pub fn operator(&mut self, native: &Native, a: Value, b: Value) -> R {
        let (mut a, mut b) = (a.boxed(), b.boxed());
        self.call_native(native, &mut [&mut a, &mut b], false)
    }

    #[inline(never)]
    fn unary(&mut self, frame: &mut Frame, unary: &Unary) -> R {
        let value = self.eval(frame, &unary.operand)?;
        match numbers::unary(unary.is_not, &value) {
            Some(value) => Ok(value),
            None => self.call_native(&unary.native, &mut [&mut value.boxed()], false),
        }
    }

    /// A condition. `at`: its place, for a value that is no truth.
    #[inline]
    pub fn test(&mut self, frame: &mut Frame, node: &Node, at: Position) -> R<bool> {
        match node {
            Node::Truth(inner) => self.test_truth(frame, &inner.0, inner.1),
            Node::Binary(binary) => {
                if let (Some(a), Some(b)) = (Self::peek(frame, &binary.left), Self::peek(frame, &binary.right))
                    && let Some(truth) = numbers::compare(binary.op, a, b)
                {
                    return Ok(truth);
                }
                let value = self.binary(frame, binary)?;
                self.as_truth(value, at)
            }
            Node::And(parts) => {
                for (part, at) in parts {
                    if !self.test(frame, part, *at)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(parts) => {
                for (part, at) in parts {
                    if self.test(frame, part, *at)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Literal(Value::Bool(truth)) => Ok(*truth),
            _ => {
                let value = self.eval(frame, node)?;
                self.as_truth(value, at)
            }
        }
    }

    /// `__truth(x)`: of a tensor, too.
    #[inline]
    fn test_truth(&mut self, frame: &mut Frame, inner: &Node, at: Position) -> R<bool> {
        if let Node::Binary(binary) = inner
            && let (Some(a), Some(b)) = (Self::peek(frame, &binary.left), Self::peek(frame, &binary.right))
            && let Some(truth) = numbers::compare(binary.op, a, b)
        {
            return Ok(truth);
        }
        match self.eval(frame, inner)? {
            Value::Bool(truth) => Ok(truth),
            value => Ok(self.hooks.truth(value.boxed(), at)?),
        }
    }

    #[inline]
    fn as_truth(&mut self, value: Value, at: Position) -> R<bool> {
        match value {
            Value::Bool(truth) => Ok(truth),
            value => {
                let kind = self.engine.map_type_name(value.boxed().type_name()).to_string();
                Err(Some(Box::new(EvalAltResult::ErrorMismatchDataType("bool".into(), kind, at))))
            }
        }
    }

    #[inline]
    fn block(&mut self, frame: &mut Frame, block: &Block) -> R {
        let mut result = Ok(Value::Unit);
        for statement in &block.statements {
            result = self.eval(frame, statement);
            if result.is_err() {
                break;
            }
        }
        for slot in block.declares.clone() {
            frame.slots[slot as usize] = Value::Unit;
        }
        result
    }

    #[inline]
    fn branch(&mut self, frame: &mut Frame, branch: &If) -> R {
        let chosen = if self.test(frame, &branch.condition, branch.at)? { &branch.yes } else { &branch.no };
        self.eval(frame, chosen)
    }

    /// What a round's end means: `Some` ends the loop.
    #[inline]
    fn round(&mut self, result: R) -> Option<R> {
        match result {
            Ok(_) => None,
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

    fn repeat(&mut self, frame: &mut Frame, repeat: &While) -> R {
        loop {
            self.steps(repeat.weight, repeat.at)?;
            if !repeat.is_do && self.ends(frame, repeat)? {
                return Ok(Value::Unit);
            }
            let result = self.eval(frame, &repeat.body);
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

    fn each(&mut self, frame: &mut Frame, each: &For) -> R {
        if let Node::Binary(range) = &each.values
            && matches!(&*range.native.name, ".." | "..=")
        {
            let from = self.eval(frame, &range.left)?;
            let to = self.eval(frame, &range.right)?;
            if let (Value::Int(from), Value::Int(to)) = (&from, &to) {
                let to = if range.native.name == ".." { *to } else { to.saturating_add(1) };
                return self.count(frame, each, *from, to);
            }
            let values = self.operator(&range.native, from, to)?;
            return self.items(frame, each, values.boxed());
        }
        let values = self.eval(frame, &each.values)?.boxed();
        self.items(frame, each, values)
    }

    /// A loop over a range of integers.
    fn count(&mut self, frame: &mut Frame, each: &For, from: i64, to: i64) -> R {
        let mut result = Value::Unit;
        for (number, value) in (from..to).enumerate() {
            self.steps(each.weight, each.at)?;
            if each.is_empty {
                continue;
            }
            if let Some(counter) = each.counter {
                put(&mut frame.slots[counter as usize], Value::Int(number as i64));
            }
            put(&mut frame.slots[each.variable as usize], Value::Int(value));
            let done = self.eval(frame, &each.body);
            if let Some(end) = self.round(done) {
                self.forget(frame, each);
                result = end?;
                break;
            }
        }
        self.forget(frame, each);
        Ok(result)
    }

    fn items(&mut self, frame: &mut Frame, each: &For, values: Dynamic) -> R {
        let Some(items) = self.hooks.items(values) else {
            return Err(Some(Box::new(EvalAltResult::ErrorFor(each.values_at))));
        };
        let mut result = Value::Unit;
        for (number, item) in items.enumerate() {
            self.steps(each.weight, each.at)?;
            if each.is_empty {
                continue;
            }
            let item = match item {
                Ok(item) => Value::of(item),
                Err(error) => {
                    self.forget(frame, each);
                    return Err(Some(super::native::placed(error, each.values_at)));
                }
            };
            if let Some(counter) = each.counter {
                put(&mut frame.slots[counter as usize], Value::Int(number as i64));
            }
            put(&mut frame.slots[each.variable as usize], item);
            let done = self.eval(frame, &each.body);
            if let Some(end) = self.round(done) {
                self.forget(frame, each);
                result = end?;
                break;
            }
        }
        self.forget(frame, each);
        Ok(result)
    }

    /// The variables of a loop end with it.
    fn forget(&mut self, frame: &mut Frame, each: &For) {
        frame.slots[each.variable as usize] = Value::Unit;
        if let Some(counter) = each.counter {
            frame.slots[counter as usize] = Value::Unit;
        }
    }

    fn switch(&mut self, frame: &mut Frame, switch: &Switch) -> R {
        let value = self.eval(frame, &switch.value)?;
        let key = match &value {
            Value::Int(int) => Some(CaseKey::Int(*int)),
            Value::Bool(truth) => Some(CaseKey::Bool(*truth)),
            Value::Unit => Some(CaseKey::Unit),
            Value::Other(value) => value.read_lock::<ImmutableString>().map(|text| CaseKey::Text(text.clone())),
            Value::Float(_) => None,
        };
        let known = key.as_ref().and_then(|key| switch.known.read().get(key).copied());
        let arm = match known {
            Some(arm) => arm,
            None => {
                let arm = self.operate_on(&switch.operands, &mut [value.boxed()])?.as_int().unwrap_or(-1) as i32;
                if let Some(key) = key {
                    let mut known = switch.known.write();
                    // Bound: values that a place remembers.
                    if known.len() < 1024 {
                        known.insert(key, arm);
                    }
                }
                arm
            }
        };
        match usize::try_from(arm) {
            Ok(arm) => self.eval(frame, &switch.arms[arm]),
            Err(_) => Ok(Value::Unit),
        }
    }

    fn text(&mut self, frame: &mut Frame, text: &Text) -> R {
        let mut parts: SmallVec<[Dynamic; 6]> = SmallVec::new();
        for part in &text.parts {
            parts.push(self.eval(frame, part)?.boxed());
        }
        if parts.iter().all(Dynamic::is_string) {
            let mut whole = String::new();
            for part in &parts {
                whole.push_str(part.as_immutable_string_ref().as_deref().map_or("", |part| part.as_str()));
            }
            return Ok(Value::Other(whole.into()));
        }
        self.operate_on(&text.operands, &mut parts).map(Value::of)
    }

    /// A closure with what it takes along: shared variables stay shared.
    fn curry(&mut self, frame: &mut Frame, closure: &Node, captured: &[Node]) -> R {
        let closure = self.eval(frame, closure)?.boxed();
        let Some(mut pointer) = closure.try_cast::<rhai::FnPtr>() else {
            return Ok(Value::Unit);
        };
        for node in captured {
            let value = match node {
                Node::Local(slot) => frame.slots[*slot as usize].clone(),
                other => self.eval(frame, other)?,
            };
            pointer.add_curry(value.boxed());
        }
        Ok(Value::Other(pointer.into()))
    }

    fn attempt(&mut self, frame: &mut Frame, block: &Try) -> R {
        let mut error = match self.eval(frame, &block.body) {
            Err(Some(error)) if !error.is_pseudo_error() && error.is_catchable() => error,
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
    fn within(&mut self, frame: &mut Frame, within: &Within) -> R {
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

    /// The end of a `try` block's body, on whatever way it is left.
    fn settle(&mut self, entered: u64, result: R) -> R {
        let result = match result {
            Ok(value) => Ok(value.boxed()),
            Err(Some(error)) => Err(error),
            Err(None) => Err(Box::new(match self.jump.take() {
                Some(Jump::Break(value)) => EvalAltResult::LoopBreak(true, value.boxed(), Position::NONE),
                Some(Jump::Return(value)) => EvalAltResult::Return(value.boxed(), Position::NONE),
                _ => EvalAltResult::LoopBreak(false, Dynamic::UNIT, Position::NONE),
            })),
        };
        match self.hooks.try_leave(entered, result) {
            Ok(value) => Ok(Value::of(value)),
            Err(error) => Err(self.jump_of(error)),
        }
    }

    fn native(&mut self, frame: &mut Frame, native: &Native) -> R {
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

    fn call(&mut self, frame: &mut Frame, call: &Call) -> R {
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
    pub fn body(
        &mut self,
        stack: &mut [Value],
        code: &super::tree::Code,
        values: &mut [Value],
        this: Option<&mut Dynamic>,
    ) -> R {
        let (slots, rest) = stack.split_at_mut(code.slots);
        for (slot, value) in slots.iter_mut().zip(values) {
            *slot = value.take();
        }
        let mut frame = Frame { slots, rest, this };
        let result = self.eval(&mut frame, &code.body);
        for slot in frame.slots {
            if matches!(slot, Value::Other(_)) {
                *slot = Value::Unit;
            }
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

/// Writes a variable; what closures share with it sees the new value.
#[inline]
pub fn put(slot: &mut Value, value: Value) {
    if let Value::Other(place) = slot
        && place.is_shared()
        && let Some(mut inside) = place.write_lock::<Dynamic>()
    {
        *inside = value.boxed();
        return;
    }
    *slot = value;
}

/// Restores the mark also when a native function panics.
struct Leave<'a> {
    hooks: &'a dyn Hooks,
    entered: u32,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.hooks.leave(self.entered);
    }
}
