//! Runs what the compiler made: values on the way back, errors and jumps as errors. Here are the machine itself, operators,
//! conditions and literals; `control` has statements, `calls` calls, `chain` what begins with a value and a dot.

use super::bytecode::Bytecode;
use super::callback::Running;
use super::control::Rounds;
use super::numbers;
use super::quick::{self, Number};
use super::quick_store;
use super::rest::Declared;
use super::tree::{Binary, Native, Node, Op, Text, Unary};
use super::unit::{Function, Unit};
use super::value::Value;
use crate::base::span::Site;
use crate::script::source::{Hooks, Marked};
use crate::script::values::module::ModuleValue;
use rhai::{Dynamic, Engine, EvalAltResult, GlobalRuntimeState, ImmutableString, Position};
use smallvec::SmallVec;
use std::fmt::Write;
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
    /// The name at which the change begins that is under way, if nobody will see it in an array or map.
    pub losing: Option<Position>,
    /// Shared values that the chain that runs holds, and where it goes on when it does not hold them any more.
    pub held: usize,
    pub resume: Option<(usize, Dynamic)>,
    /// Whether the times of functions are recorded.
    pub profiles: bool,
    /// The text whose environment is in effect.
    pub unit: *const Unit,
    /// Closures that were called last.
    pub recent: SmallVec<[Arc<Function>; RECENT]>,
}

/// Bound: closures that a machine remembers.
pub const RECENT: usize = 16;

/// What stays from one run to the next of the same native's closure.
#[derive(Clone, Copy)]
pub struct Kept {
    looks: bool,
    profiles: bool,
    unit: *const Unit,
}

impl Kept {
    pub fn now(hooks: &dyn Hooks) -> Kept {
        Kept { looks: hooks.looks(), profiles: hooks.profiles(), unit: Running::innermost() }
    }
}

/// A function at work.
pub struct Frame<'f> {
    pub slots: &'f mut [Value],
    /// Room for the functions that it calls.
    pub rest: &'f mut [Value],
    pub this: Option<&'f mut Dynamic>,
    /// What `this` was, while closures share it.
    pub lent: Option<Dynamic>,
    /// Variables that the statement before has declared by other means than `let`.
    pub declared: Vec<Declared>,
    /// Where loops inside nodes have their instructions.
    pub bytecode: Option<&'f Bytecode>,
}

impl<'f> Frame<'f> {
    pub fn new(slots: &'f mut [Value], rest: &'f mut [Value], this: Option<&'f mut Dynamic>) -> Frame<'f> {
        Frame { slots, rest, this, lent: None, declared: Vec::new(), bytecode: None }
    }

    /// Variables end: those that hold more than a number.
    #[inline]
    pub fn clear(&mut self, slots: std::ops::Range<u16>) {
        Value::end(&mut self.slots[slots.start as usize..slots.end as usize]);
    }
}

/// Bound: slots that a stack has at first; a function that finds too little room gets a stack of its own.
pub const STACK: usize = 4096;

impl<'m> Machine<'m> {
    pub fn new(engine: &'m Engine, global: &'m mut GlobalRuntimeState, hooks: &'m dyn Hooks) -> Machine<'m> {
        Machine::with(engine, global, hooks, Kept::now(hooks))
    }

    /// The machine of one more run.
    pub fn with(
        engine: &'m Engine,
        global: &'m mut GlobalRuntimeState,
        hooks: &'m dyn Hooks,
        kept: Kept,
    ) -> Machine<'m> {
        let Kept { looks, profiles, unit } = kept;
        Machine {
            engine,
            global,
            hooks,
            jump: None,
            looks,
            losing: None,
            held: 0,
            resume: None,
            profiles,
            unit,
            recent: SmallVec::new(),
        }
    }

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

    /// A round of a loop ends or begins; `depth`: how many loops of its function are around it.
    #[inline]
    pub fn next_round(&mut self, weight: u32, depth: u8, at: Position) -> R<()> {
        match self.hooks.round(weight, (self.global.level as u32) << 8 | u32::from(depth)) {
            None => Ok(()),
            Some(token) => Err(Some(Box::new(EvalAltResult::ErrorTerminated(token, at)))),
        }
    }

    /// The value of a node.
    pub fn eval(&mut self, frame: &mut Frame, node: &Node) -> R {
        match node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Local(slot) => self.load(&frame.slots[*slot as usize]),
            Node::Take(slot) => self.moved(&mut frame.slots[*slot as usize]),
            Node::Binary(binary) => self.binary(frame, binary),
            Node::Call(call) => self.call(frame, call),
            Node::Chain(chain) => self.chain(frame, chain),
            Node::Native(native) => self.native(frame, native),
            Node::Let(..) | Node::Assign(_) | Node::AssignChain(_) | Node::Unpack(_) => {
                self.exec(frame, node).map(|()| Value::Unit)
            }
            Node::Block(block) => self.block(frame, block),
            Node::If(branch) => self.branch(frame, branch),
            Node::While(repeat) => self.repeat(frame, repeat),
            Node::For(each) => self.each(frame, each, Rounds::Node(&each.body)),
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
            Node::Mark(mark) => self.marked(frame, mark.0, &mark.1),
            other => self.rare(frame, other),
        }
    }

    #[inline(never)]
    fn marked(&mut self, frame: &mut Frame, place: Site, call: &Node) -> R {
        let _marked = Marked::enter(self.hooks, place, self.global.level);
        self.eval(frame, call)
    }

    /// A statement whose value nobody reads.
    pub fn exec(&mut self, frame: &mut Frame, node: &Node) -> R<()> {
        match node {
            Node::Assign(assign) => self.assign(frame, assign),
            Node::AssignChain(assign) => self.assign_chain(frame, assign),
            Node::Let(slot, value) => {
                let result = self.eval(frame, value);
                quick_store::settle(&mut frame.slots[*slot as usize], result)
            }
            Node::Unpack(unpack) => self.unpack(frame, unpack),
            Node::Block(block) => self.run_block(frame, block),
            Node::If(branch) => {
                let chosen = self.chosen(frame, branch)?;
                self.exec(frame, chosen)
            }
            other => match self.eval(frame, other) {
                Ok(_) => Ok(()),
                Err(fault) => Err(fault),
            },
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
                    array.push(self.part(frame, item)?);
                }
                for (place, item) in array.iter_mut().zip(items) {
                    if let Some(slot) = moves_last(frame, item) {
                        *place = self.moved(slot)?.boxed();
                    }
                }
                Ok(Value::Other(Dynamic::from_array(array)))
            }
            Node::Map(literal) => {
                let mut map = literal.template.clone();
                for (name, value) in &literal.entries {
                    let value = self.part(frame, value)?;
                    if let Some(place) = map.get_mut(name.as_str()) {
                        *place = value;
                    }
                }
                for (name, value) in &literal.entries {
                    if let Some(slot) = moves_last(frame, value)
                        && let Some(place) = map.get_mut(name.as_str())
                    {
                        *place = self.moved(slot)?.boxed();
                    }
                }
                Ok(Value::Other(Dynamic::from_map(map)))
            }
            Node::Text(text) => self.text(frame, text),
            Node::Either(either) => self.either(frame, either),
            Node::Running(function, count) => {
                let Some(mut pointer) = function.upgrade().and_then(|function| function.pointer()) else {
                    return Ok(Value::Unit);
                };
                for value in &frame.slots[..*count] {
                    pointer.add_curry(value.clone().boxed());
                }
                Ok(Value::Other(pointer.into()))
            }
            Node::Lend(at) => match frame.this.as_deref_mut() {
                // A handle is seen by all its holders, however long the closure lives.
                Some(this) if this.is::<ModuleValue>() => Ok(Value::Other(this.clone())),
                Some(this) => {
                    let shared = this.take().into_shared();
                    frame.lent = Some(shared.clone());
                    Ok(Value::Other(shared))
                }
                None => Err(Some(Box::new(EvalAltResult::ErrorUnboundThis(*at)))),
            },
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
            Node::TryWait(body) => self.wait(frame, &body.0, body.1),
            Node::Missing(asked) => {
                let found = match &asked.1 {
                    Node::Chain(chain) => self.ask(frame, chain),
                    other => self.eval(frame, other),
                };
                match found {
                    Err(Some(error)) if crate::script::source::is_missing(&error, asked.0) => Ok(Value::Unit),
                    other => other,
                }
            }
            Node::Share(slots) => {
                for &(slot, is_constant) in slots {
                    let place = &mut frame.slots[slot as usize];
                    if !place.is_shared() {
                        let value = place.take().boxed();
                        let value = if is_constant { value.into_read_only() } else { value };
                        *place = Value::Other(value.into_shared());
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
            Node::Loop(start, round) => self.inner_loop(frame, *start as usize, *round),
            Node::Import(import) => {
                let path = self.eval(frame, &import.0)?.boxed();
                self.import(&import.1, path)
            }
            Node::Evaluating(block) => self.evaluating(frame, block),
            Node::Rest(rest) => self.rest(frame, rest),
            Node::OneTooMany(at) => Err(Some(Box::new(EvalAltResult::ErrorTooManyVariables(*at)))),
            _ => unreachable!("`eval` knows the others"),
        }
    }

    /// A part of an array or map, or `()` in the place of one that moves last.
    fn part(&mut self, frame: &mut Frame, node: &Node) -> R<Dynamic> {
        match moves_last(frame, node) {
            Some(_) => Ok(Dynamic::UNIT),
            None => self.eval(frame, node).map(Value::boxed),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn leave(&mut self, jump: Jump) -> R {
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

    /// The value of a variable that nobody reads afterwards.
    #[inline]
    pub(super) fn moved(&mut self, slot: &mut Value) -> R {
        match slot {
            Value::Other(value) if value.is_shared() || value.is_read_only() => self.load(slot),
            Value::Other(value) => {
                if self.looks {
                    self.hooks.look(value)?;
                }
                Ok(slot.take())
            }
            plain => Ok(plain.take()),
        }
    }

    #[inline(never)]
    fn copy(&mut self, value: &Dynamic) -> R {
        if self.looks {
            self.hooks.look(value)?;
        }
        if !value.is_shared() {
            return Ok(Value::copied(value));
        }
        match value.read_lock::<Dynamic>() {
            Some(inside) => Ok(Value::copied(&inside)),
            None => Err(Some(Box::new(EvalAltResult::ErrorDataRace(String::new(), Position::NONE)))),
        }
    }

    /// A value that is at hand without computing anything: operands of most arithmetic.
    #[inline]
    pub(super) fn peek<'v>(frame: &'v Frame, node: &'v Node) -> Option<&'v Value> {
        match node {
            Node::Local(slot) => Some(&frame.slots[*slot as usize]),
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    #[inline]
    fn binary(&mut self, frame: &mut Frame, binary: &Binary) -> R {
        if binary.is_quick && binary.luck.is_good() && !self.looks {
            match quick::operation(frame, binary).value() {
                Some(value) => return Ok(value),
                None => binary.luck.miss(),
            }
        }
        if let (Some(a), Some(b)) = (Self::peek(frame, &binary.left), Self::peek(frame, &binary.right))
            && let Some(value) = numbers::apply(binary.op, a, b)
        {
            return Ok(value);
        }
        let left = self.eval(frame, &binary.left);
        let right = match &left {
            Ok(_) => self.eval(frame, &binary.right),
            Err(_) => return left,
        };
        // Numbers are taken from where they were returned.
        if let Some(value) = quick::combine(binary.op, Number::of_result(&left), Number::of_result(&right)).value() {
            return Ok(value);
        }
        self.combined(binary, left?, right?)
    }

    /// What an operator makes of two values.
    pub(super) fn combined(&mut self, binary: &Binary, a: Value, b: Value) -> R {
        match numbers::apply(binary.op, &a, &b) {
            Some(value) => Ok(value),
            // Where sizes are limited, the native looks at them.
            None if binary.op == Op::Add && !self.looks => match numbers::joined(&a, &b) {
                Some(text) => Ok(text),
                None => self.operator(&binary.native, a, b),
            },
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
                if let Some(truth) = self.compared(frame, binary) {
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
                if let Some(truth) = self.at_hand(frame, node) {
                    return Ok(truth);
                }
                let value = self.eval(frame, node)?;
                self.as_truth(value, at)
            }
        }
    }

    /// A comparison of numbers that are at hand.
    #[inline]
    fn compared(&self, frame: &Frame, binary: &Binary) -> Option<bool> {
        if binary.is_quick && binary.luck.is_good() && !self.looks {
            return quick::operation(frame, binary).truth();
        }
        let (a, b) = (Self::peek(frame, &binary.left)?, Self::peek(frame, &binary.right)?);
        numbers::compare(binary.op, a, b)
    }

    /// A truth in a variable, an element or a field.
    #[inline]
    fn at_hand(&self, frame: &Frame, node: &Node) -> Option<bool> {
        match node {
            Node::Local(slot) => match frame.slots[*slot as usize] {
                Value::Bool(truth) => Some(truth),
                _ => None,
            },
            Node::Chain(chain) if chain.is_quick && chain.luck.is_good() && !self.looks => {
                quick::element(frame, chain).truth()
            }
            _ => None,
        }
    }

    /// `__truth(x)`: of a tensor, too.
    #[inline]
    fn test_truth(&mut self, frame: &mut Frame, inner: &Node, at: Position) -> R<bool> {
        if let Node::Binary(binary) = inner
            && let Some(truth) = self.compared(frame, binary)
        {
            return Ok(truth);
        }
        if let Some(truth) = self.at_hand(frame, inner) {
            return Ok(truth);
        }
        match self.eval(frame, inner)? {
            Value::Bool(truth) => Ok(truth),
            value => Ok(self.hooks.truth(value.boxed(), at)?),
        }
    }

    #[inline]
    pub(super) fn as_truth(&mut self, value: Value, at: Position) -> R<bool> {
        match value {
            Value::Bool(truth) => Ok(truth),
            value => {
                let kind = self.engine.map_type_name(value.boxed().type_name()).to_string();
                Err(Some(Box::new(EvalAltResult::ErrorMismatchDataType("bool".into(), kind, at))))
            }
        }
    }

    fn text(&mut self, frame: &mut Frame, text: &Text) -> R {
        let mut parts: SmallVec<[Value; 6]> = SmallVec::new();
        for part in &text.parts {
            parts.push(match part {
                Node::Native(native) if &*native.name == "__text" => self.interpolated(frame, native)?,
                part => self.eval(frame, part)?,
            });
        }
        let mut whole = String::new();
        for part in &parts {
            match part {
                // Writing to a string cannot fail.
                Value::Int(int) => _ = write!(whole, "{int}"),
                Value::Other(part) if part.is_string() && !part.is_shared() => {
                    if let Some(part) = part.read_lock::<ImmutableString>() {
                        whole.push_str(&part);
                    }
                }
                _ => {
                    let mut parts: SmallVec<[Dynamic; 6]> = parts.into_iter().map(Value::boxed).collect();
                    return self.operate_on(&text.operands, &mut parts).map(Value::of);
                }
            }
        }
        Ok(Value::Other(whole.into()))
    }

    /// `__text(x)` in a string: integers and strings as they are.
    fn interpolated(&mut self, frame: &mut Frame, native: &Native) -> R {
        let [argument] = &*native.arguments else { return self.native(frame, native) };
        let is_text = |value: &Value| matches!(value, Value::Other(value) if value.is_string() && !value.is_shared());
        if self.looks {
            return self.native(frame, native);
        }
        if let Some(value) = Self::peek(frame, argument) {
            return match value {
                Value::Int(int) => Ok(Value::Int(*int)),
                value if is_text(value) => Ok(value.clone()),
                _ => self.native(frame, native),
            };
        }
        match self.eval(frame, argument)? {
            value if matches!(value, Value::Int(_)) || is_text(&value) => Ok(value),
            value => self.call_native(native, &mut [&mut value.boxed()], false),
        }
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
}

/// The variable that moves into an array or map when its other parts are made, of which one may fail. Not: one that closures
/// share, which a part may change.
fn moves_last<'s>(frame: &'s mut Frame, part: &Node) -> Option<&'s mut Value> {
    let Node::Take(slot) = part else { return None };
    Some(&mut frame.slots[*slot as usize]).filter(|value| !value.is_shared())
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
