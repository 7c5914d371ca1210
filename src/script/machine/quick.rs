//! Arithmetic of numbers that are at hand: in variables, literals, elements of arrays and fields of maps. It has no effect
//! and makes no value on the way, so that what meets anything else is begun again in the general way.

use super::numbers;
use super::numeric::Numeric;
use super::places::exchange::root_read;
use super::places::place;
use super::run::{Frame, R};
use super::tree::{Binary, Chain, Native, Node, Op, Root, Step, StepKind};
use super::value::Value;
use crate::base::arithmetic;
use crate::script::values::ascii::character;
use crate::script::values::module::{ModuleValue, module};
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::atomic::{AtomicU8, Ordering};

/// A number or truth in two registers.
#[derive(Clone, Copy)]
pub struct Number {
    kind: Kind,
    bits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    /// It is something else.
    None,
    Int,
    Float,
    Bool,
}

/// Bound: times that a place may meet something else before it is left alone.
const MISSES: u8 = 8;

/// Whether a place meets numbers.
#[derive(Default)]
pub struct Luck(AtomicU8);

impl Luck {
    #[inline]
    pub fn is_good(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MISSES
    }

    #[cold]
    pub fn miss(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }
}

impl Number {
    pub const NONE: Number = Number { kind: Kind::None, bits: 0 };

    #[inline]
    fn int(int: i64) -> Number {
        Number { kind: Kind::Int, bits: int as u64 }
    }

    #[inline]
    fn float(float: f64) -> Number {
        Number { kind: Kind::Float, bits: float.to_bits() }
    }

    #[inline]
    fn bool(truth: bool) -> Number {
        Number { kind: Kind::Bool, bits: truth as u64 }
    }

    #[inline]
    pub fn of(value: &Value) -> Number {
        match value {
            Value::Int(int) => Number::int(*int),
            Value::Float(float) => Number::float(*float),
            Value::Bool(truth) => Number::bool(*truth),
            Value::Other(value) if value.is_shared() => Number::of_shared(value),
            _ => Number::NONE,
        }
    }

    /// That of what closures share.
    #[inline(never)]
    fn of_shared(value: &Dynamic) -> Number {
        value.read_lock::<Dynamic>().map_or(Number::NONE, |inside| Number::of_dynamic(&inside))
    }

    /// That of a result, if there is one.
    #[inline]
    pub fn of_result(result: &R) -> Number {
        match result {
            Ok(Value::Int(int)) => Number::int(*int),
            Ok(Value::Float(float)) => Number::float(*float),
            Ok(Value::Bool(truth)) => Number::bool(*truth),
            _ => Number::NONE,
        }
    }

    /// Writes a variable that holds nothing else and that no closure shares.
    #[inline]
    pub fn put(self, slot: &mut Value) -> Option<()> {
        if matches!(slot, Value::Other(_)) {
            return None;
        }
        match self.kind {
            Kind::Int => *slot = Value::Int(self.bits as i64),
            Kind::Float => *slot = Value::Float(f64::from_bits(self.bits)),
            Kind::Bool => *slot = Value::Bool(self.bits != 0),
            Kind::None => return None,
        }
        Some(())
    }

    #[inline]
    pub fn of_dynamic(value: &Dynamic) -> Number {
        if value.is_shared() {
            return Number::of_shared(value);
        }
        // What is generic is inlined here; Rhai's `as_int` and its kin are calls.
        if let Some(int) = value.read_lock::<i64>() {
            Number::int(*int)
        } else if let Some(float) = value.read_lock::<f64>() {
            Number::float(*float)
        } else if let Some(truth) = value.read_lock::<bool>() {
            Number::bool(*truth)
        } else {
            Number::NONE
        }
    }

    /// The value, unless it is something else.
    #[inline]
    pub fn value(self) -> Option<Value> {
        match self.kind {
            Kind::Int => Some(Value::Int(self.bits as i64)),
            Kind::Float => Some(Value::Float(f64::from_bits(self.bits))),
            Kind::Bool => Some(Value::Bool(self.bits != 0)),
            Kind::None => None,
        }
    }

    #[inline]
    pub fn is_some(self) -> bool {
        self.kind != Kind::None
    }

    /// The integer, unless it is something else.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        (self.kind == Kind::Int).then_some(self.bits as i64)
    }

    /// The truth, unless it is something else.
    #[inline]
    pub fn truth(self) -> Option<bool> {
        (self.kind == Kind::Bool).then_some(self.bits != 0)
    }

    #[inline]
    fn as_float(self) -> f64 {
        match self.kind {
            Kind::Int => self.bits as i64 as f64,
            _ => f64::from_bits(self.bits),
        }
    }
}

/// Whether a node runs no code of the script. What stands in a field of a module may be computed by a closure.
pub fn calls_nothing(node: &Node) -> bool {
    match node {
        Node::Literal(_) | Node::Local(_) | Node::Take(_) => true,
        Node::Binary(binary) => binary.is_quick && calls_nothing(&binary.left) && calls_nothing(&binary.right),
        _ => false,
    }
}

/// Whether an expression may be evaluated here.
pub fn is_quick(node: &Node) -> bool {
    match node {
        Node::Local(_) | Node::Take(_) | Node::Literal(Value::Int(_) | Value::Float(_) | Value::Bool(_)) => true,
        Node::Binary(binary) => binary.is_quick,
        Node::Chain(chain) => chain.is_quick,
        Node::Mark(mark) => is_quick(&mark.1),
        Node::Native(native) => match native.numeric {
            Some(numeric) if numeric.takes_letter() => native.arguments.iter().all(may_be_letter),
            Some(_) => native.arguments.iter().all(is_quick),
            None => false,
        },
        _ => false,
    }
}

/// Whether a node may come to a letter at hand.
fn may_be_letter(node: &Node) -> bool {
    match node {
        Node::Local(_) | Node::Literal(Value::Other(_)) => true,
        Node::Chain(chain) => match (&chain.root, &*chain.steps, &*chain.operands) {
            (Root::Local(_), [step], [index]) => {
                matches!(step.kind, StepKind::Index { .. }) && !step.or_unit && is_quick(index)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The same of a chain. `numeric`: what its last step does, if that is a function of numbers or letters.
pub fn is_quick_chain(root: &Root, steps: &[Step], operands: &[Node], numeric: Option<Numeric>) -> bool {
    let is_plain = |step: &Step| match &step.kind {
        StepKind::Index { operand, .. } => !step.or_unit && is_quick(&operands[*operand]),
        StepKind::Property { .. } => !step.or_unit,
        StepKind::Method { .. } => false,
    };
    let (path, rest) = match numeric {
        Some(_) => steps.split_at(steps.len() - 1),
        None => (steps, &[][..]),
    };
    if rest.iter().any(|step| step.or_unit)
        || !operands[operands.len() - numeric.map_or(0, |numeric| usize::from(numeric.takes_two()))..]
            .iter()
            .all(is_quick)
    {
        return false;
    }
    match root {
        Root::Local(_) | Root::This(_) => path.iter().all(is_plain),
        Root::Value(node) => numeric.is_some() && path.is_empty() && is_quick(node),
        Root::Constant(..) => false,
    }
}

/// The number that an expression comes to.
pub fn number(frame: &Frame, node: &Node) -> Number {
    match node {
        // A number that moves may stay.
        Node::Local(slot) | Node::Take(slot) => Number::of(&frame.slots[*slot as usize]),
        Node::Literal(value) => Number::of(value),
        Node::Binary(binary) if binary.is_quick => operation(frame, binary),
        Node::Chain(chain) => element(frame, chain),
        Node::Mark(mark) => number(frame, &mark.1),
        Node::Native(native) => called(frame, native),
        _ => Number::NONE,
    }
}

/// What a function of numbers or of a letter gives for what is at hand.
pub fn called(frame: &Frame, native: &Native) -> Number {
    match (native.numeric, &*native.arguments) {
        (Some(numeric), [value]) if numeric.takes_letter() => {
            letter(frame, value).map_or(Number::NONE, |letter| numeric.of_character(letter))
        }
        (Some(numeric), [value]) => numeric.run(number(frame, value)),
        (Some(numeric), [a, b]) => {
            let a = number(frame, a);
            if a.is_some() { numeric.run_two(a, number(frame, b)) } else { Number::NONE }
        }
        _ => Number::NONE,
    }
}

/// The letter in a variable, a literal or an element of a string.
fn letter(frame: &Frame, node: &Node) -> Option<char> {
    match node {
        Node::Local(slot) => letter_of(&frame.slots[*slot as usize]),
        Node::Literal(value) => letter_of(value),
        Node::Chain(chain) => letter_at(frame, chain, &chain.steps),
        _ => None,
    }
}

fn letter_of(value: &Value) -> Option<char> {
    let Value::Other(value) = value else { return None };
    if value.is_char() {
        return value.as_char().ok();
    }
    let text = value.read_lock::<ImmutableString>()?;
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The letter that a variable holds, or that an index leads to in its string.
fn letter_at(frame: &Frame, chain: &Chain, path: &[Step]) -> Option<char> {
    let Root::Local(slot) = &chain.root else { return None };
    let value = &frame.slots[*slot as usize];
    let (Value::Other(text), [step]) = (value, path) else {
        return if path.is_empty() { letter_of(value) } else { None };
    };
    let StepKind::Index { operand, .. } = &step.kind else { return None };
    character(&*text.read_lock::<ImmutableString>()?, number(frame, &chain.operands[*operand]).as_int()?)
}

/// The number that an operator makes of two.
#[inline]
pub fn operation(frame: &Frame, binary: &Binary) -> Number {
    let a = number(frame, &binary.left);
    if a.kind == Kind::None {
        return Number::NONE;
    }
    combine(binary.op, a, number(frame, &binary.right))
}

/// `a op b` of numbers.
#[inline]
pub fn combine(op: Op, a: Number, b: Number) -> Number {
    match (a.kind, b.kind) {
        (Kind::Int, Kind::Int) => integers(op, a.bits as i64, b.bits as i64),
        (Kind::Float, Kind::Float) => floats(op, a.as_float(), b.as_float()),
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => mixed(op, a, b),
        _ => Number::NONE,
    }
}

#[inline]
fn integers(op: Op, a: i64, b: i64) -> Number {
    let found = match op {
        Op::Add => a.checked_add(b),
        Op::Subtract => a.checked_sub(b),
        Op::Multiply => a.checked_mul(b),
        Op::Less => return Number::bool(a < b),
        Op::LessEqual => return Number::bool(a <= b),
        Op::Greater => return Number::bool(a > b),
        Op::GreaterEqual => return Number::bool(a >= b),
        Op::Equal => return Number::bool(a == b),
        Op::NotEqual => return Number::bool(a != b),
        Op::Divide => return Number::float(arithmetic::true_divide(a, b)),
        Op::Range | Op::RangeInclusive => return Number::NONE,
        _ => return numbers::integers(op, a, b).as_ref().map_or(Number::NONE, Number::of),
    };
    found.map_or(Number::NONE, Number::int)
}

/// An integer and a float.
#[inline]
fn mixed(op: Op, a: Number, b: Number) -> Number {
    match (op, a.value(), b.value()) {
        (Op::Add | Op::Subtract | Op::Multiply | Op::Divide, ..) => floats(op, a.as_float(), b.as_float()),
        (_, Some(a), Some(b)) => numbers::apply(op, &a, &b).as_ref().map_or(Number::NONE, Number::of),
        _ => Number::NONE,
    }
}

#[inline]
fn floats(op: Op, a: f64, b: f64) -> Number {
    match op {
        Op::Add => Number::float(a + b),
        Op::Subtract => Number::float(a - b),
        Op::Multiply => Number::float(a * b),
        Op::Divide => Number::float(a / b),
        Op::Less => Number::bool(a < b),
        Op::LessEqual => Number::bool(a <= b),
        Op::Greater => Number::bool(a > b),
        Op::GreaterEqual => Number::bool(a >= b),
        _ => numbers::floats(op, a, b).as_ref().map_or(Number::NONE, Number::of),
    }
}

/// The number in an element or field of what a variable or `this` holds, or what a function of numbers makes of it.
pub fn element(frame: &Frame, chain: &Chain) -> Number {
    let Some(numeric) = chain.numeric else { return part(frame, chain, &chain.steps) };
    let Some((_, path)) = chain.steps.split_last() else { return Number::NONE };
    if numeric.takes_letter() {
        return letter_at(frame, chain, path).map_or(Number::NONE, |letter| numeric.of_character(letter));
    }
    let a = match &chain.root {
        Root::Value(node) => number(frame, node),
        Root::Local(slot) if path.is_empty() => Number::of(&frame.slots[*slot as usize]),
        _ => part(frame, chain, path),
    };
    match chain.operands.last() {
        Some(b) if numeric.takes_two() && a.is_some() => numeric.run_two(a, number(frame, b)),
        _ => numeric.run(a),
    }
}

fn part(frame: &Frame, chain: &Chain, path: &[Step]) -> Number {
    let Some(root) = root_read(frame, chain) else { return Number::NONE };
    if root.is_shared() {
        return root.read_lock::<Dynamic>().map_or(Number::NONE, |root| within(frame, &root, path, &chain.operands));
    }
    within(frame, root, path, &chain.operands)
}

fn within(frame: &Frame, value: &Dynamic, steps: &[Step], operands: &[Node]) -> Number {
    let Some((step, rest)) = steps.split_first() else { return Number::of_dynamic(value) };
    if value.is_shared() {
        return Number::NONE;
    }
    match &step.kind {
        StepKind::Index { operand, .. } => {
            let index = number(frame, &operands[*operand]);
            match value.read_lock::<Array>() {
                Some(array) if index.kind == Kind::Int => match place(index.bits as i64, array.len()) {
                    Some(at) => within(frame, &array[at], rest, operands),
                    None => Number::NONE,
                },
                _ => Number::NONE,
            }
        }
        StepKind::Property { name, .. } => match value.read_lock::<Map>() {
            Some(map) => map.get(name.as_str()).map_or(Number::NONE, |value| within(frame, value, rest, operands)),
            None => match module(value).as_ref().map(ModuleValue::read) {
                Some(fields) => {
                    fields.get(name.as_str()).map_or(Number::NONE, |value| within(frame, value, rest, operands))
                }
                None => Number::NONE,
            },
        },
        StepKind::Method { .. } => Number::NONE,
    }
}
