//! Operators of numbers, truths and strings, as Rhai and `bind/compare.rs` have them. What can fail, and what is
//! anything else, is `None` here and asked of Rhai, so that its messages are told.

use super::tree::Op;
use super::value::Value;
use crate::base::arithmetic;
use crate::base::arithmetic::Power;
use rhai::{Array, Dynamic, FnPtr, ImmutableString, Map};
use std::cmp::Ordering;

impl Op {
    pub fn of(name: &str) -> Op {
        match name {
            "+" => Op::Add,
            "-" => Op::Subtract,
            "*" => Op::Multiply,
            "/" => Op::Divide,
            "%" => Op::Remainder,
            "**" => Op::Power,
            "<<" => Op::ShiftLeft,
            ">>" => Op::ShiftRight,
            "&" => Op::And,
            "|" => Op::Or,
            "^" => Op::Xor,
            "==" => Op::Equal,
            "!=" => Op::NotEqual,
            "<" => Op::Less,
            "<=" => Op::LessEqual,
            ">" => Op::Greater,
            ">=" => Op::GreaterEqual,
            ".." => Op::Range,
            "..=" => Op::RangeInclusive,
            _ => Op::Other,
        }
    }

    /// Whether it makes a number or a truth of numbers.
    pub fn computes(self) -> bool {
        !matches!(self, Op::Range | Op::RangeInclusive | Op::Other)
    }

    /// The comparison with its sides exchanged.
    #[inline]
    fn turned(self) -> Op {
        match self {
            Op::Less => Op::Greater,
            Op::LessEqual => Op::GreaterEqual,
            Op::Greater => Op::Less,
            Op::GreaterEqual => Op::LessEqual,
            op => op,
        }
    }

    #[inline]
    fn holds(self, order: Option<Ordering>) -> Option<bool> {
        Some(match self {
            Op::Equal => order == Some(Ordering::Equal),
            Op::NotEqual => order != Some(Ordering::Equal),
            Op::Less => order == Some(Ordering::Less),
            Op::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Op::Greater => order == Some(Ordering::Greater),
            Op::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            _ => return None,
        })
    }
}

/// `a op b`; `None` where Rhai must be asked.
#[inline]
pub fn apply(op: Op, a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => integers(op, *a, *b),
        (Value::Float(a), Value::Float(b)) => floats(op, *a, *b),
        (Value::Int(a), Value::Float(b)) => mixed(op, *a, *b, |a, b| floats(op, a, b)),
        (Value::Float(a), Value::Int(b)) => mixed(op.turned(), *b, *a, |b, a| floats(op, a, b)),
        (Value::Bool(a), Value::Bool(b)) => truths(op, *a, *b),
        (Value::Other(a), Value::Other(b)) => texts(op, a, b).or_else(|| of_kinds(op, a, b)).map(Value::Bool),
        // `xs[1..]` and `xs[..2]`.
        (Value::Int(from), Value::Unit) if op == Op::Range || op == Op::RangeInclusive => range(op, *from, i64::MAX),
        (Value::Unit, Value::Int(to)) if op == Op::Range || op == Op::RangeInclusive => range(op, 0, *to),
        _ => unlike(op, a, b).map(Value::Bool),
    }
}

/// A comparison of two numbers or strings without making a value of it.
#[inline]
pub fn compare(op: Op, a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(match op {
            Op::Equal => a == b,
            Op::NotEqual => a != b,
            Op::Less => a < b,
            Op::LessEqual => a <= b,
            Op::Greater => a > b,
            Op::GreaterEqual => a >= b,
            _ => return None,
        }),
        (Value::Float(a), Value::Float(b)) => op.holds(a.partial_cmp(b)),
        (Value::Int(a), Value::Float(b)) => op.holds(arithmetic::compare(*a, *b)),
        (Value::Float(a), Value::Int(b)) => op.turned().holds(arithmetic::compare(*b, *a)),
        (Value::Other(a), Value::Other(b)) => texts(op, a, b).or_else(|| of_kinds(op, a, b)),
        _ => unlike(op, a, b),
    }
}

#[inline]
pub fn integers(op: Op, a: i64, b: i64) -> Option<Value> {
    Some(Value::Int(match op {
        Op::Add => a.checked_add(b)?,
        Op::Subtract => a.checked_sub(b)?,
        Op::Multiply => a.checked_mul(b)?,
        Op::Divide => return Some(Value::Float(arithmetic::true_divide(a, b))),
        Op::Remainder => arithmetic::remainder(a, b)?,
        Op::Power => match arithmetic::power(a, b)? {
            Power::Int(power) => power,
            Power::Float(power) => return Some(Value::Float(power)),
        },
        Op::ShiftLeft => arithmetic::shift_left(a, b),
        Op::ShiftRight => arithmetic::shift_right(a, b),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Range | Op::RangeInclusive => return range(op, a, b),
        _ => return op.holds(Some(a.cmp(&b))).map(Value::Bool),
    }))
}

fn range(op: Op, a: i64, b: i64) -> Option<Value> {
    match op {
        Op::Range => Some(Value::Other(Dynamic::from(a..b))),
        Op::RangeInclusive => Some(Value::Other(Dynamic::from(a..=b))),
        _ => None,
    }
}

#[inline]
pub fn floats(op: Op, a: f64, b: f64) -> Option<Value> {
    Some(Value::Float(match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide => a / b,
        Op::Remainder => arithmetic::float_remainder(a, b),
        Op::Power => a.powf(b),
        _ => return op.holds(a.partial_cmp(&b)).map(Value::Bool),
    }))
}

/// An integer and a float: what compares does so exactly, all else is one of floats.
#[inline]
fn mixed(op: Op, int: i64, float: f64, otherwise: impl FnOnce(f64, f64) -> Option<Value>) -> Option<Value> {
    match op {
        Op::Equal | Op::NotEqual | Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual => {
            op.holds(arithmetic::compare(int, float)).map(Value::Bool)
        }
        _ => otherwise(int as f64, float),
    }
}

fn truths(op: Op, a: bool, b: bool) -> Option<Value> {
    Some(Value::Bool(match op {
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        _ => op.holds(Some(a.cmp(&b)))?,
    }))
}

/// Comparisons of strings and characters.
fn texts(op: Op, a: &Dynamic, b: &Dynamic) -> Option<bool> {
    if a.is::<char>() && b.is::<char>() {
        return op.holds(Some(a.as_char().ok()?.cmp(&b.as_char().ok()?)));
    }
    if !(a.is::<ImmutableString>() && b.is::<ImmutableString>()) {
        return match (a.is::<char>() && b.is::<ImmutableString>(), a.is::<ImmutableString>() && b.is::<char>()) {
            (true, _) => op.turned().holds(Some(text_and_character(b, a)?)),
            (_, true) => op.holds(Some(text_and_character(a, b)?)),
            _ => None,
        };
    }
    let (a, b) = (a.read_lock::<ImmutableString>()?, b.read_lock::<ImmutableString>()?);
    match op {
        Op::Equal => Some(a.as_str() == b.as_str()),
        Op::NotEqual => Some(a.as_str() != b.as_str()),
        _ => op.holds(Some(a.as_str().cmp(b.as_str()))),
    }
}

/// The order of a string and a character, which is as the string of it.
fn text_and_character(text: &Dynamic, character: &Dynamic) -> Option<Ordering> {
    let (text, character) = (text.read_lock::<ImmutableString>()?, character.as_char().ok()?);
    // The order of UTF-8 is that of characters.
    let mut letters = text.chars();
    Some(match letters.next().map(|first| first.cmp(&character)) {
        None => Ordering::Less,
        Some(Ordering::Equal) if letters.next().is_some() => Ordering::Greater,
        Some(order) => order,
    })
}

/// Values that are equal to none of another kind.
#[derive(PartialEq, Eq)]
enum Kind {
    Unit,
    Bool,
    Number,
    Text,
    Array,
    Map,
    Closure,
}

impl Kind {
    fn of(value: &Value) -> Option<Kind> {
        Some(match value {
            Value::Unit => Kind::Unit,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) | Value::Float(_) => Kind::Number,
            Value::Other(value) => return Kind::of_other(value),
        })
    }

    fn of_other(value: &Dynamic) -> Option<Kind> {
        if value.is::<ImmutableString>() || value.is::<char>() {
            Some(Kind::Text)
        } else if value.is::<Array>() {
            Some(Kind::Array)
        } else if value.is::<Map>() {
            Some(Kind::Map)
        } else {
            value.is::<FnPtr>().then_some(Kind::Closure)
        }
    }
}

/// `a == b` and `a != b` of values of different kinds, and of `()`.
fn unlike(op: Op, a: &Value, b: &Value) -> Option<bool> {
    decided(op, Kind::of(a)?, Kind::of(b)?)
}

/// The same of Rhai's values.
fn of_kinds(op: Op, a: &Dynamic, b: &Dynamic) -> Option<bool> {
    decided(op, Kind::of_other(a)?, Kind::of_other(b)?)
}

fn decided(op: Op, a: Kind, b: Kind) -> Option<bool> {
    match op {
        Op::Equal | Op::NotEqual if a == Kind::Unit && b == Kind::Unit => Some(op == Op::Equal),
        Op::Equal | Op::NotEqual if a != b => Some(op == Op::NotEqual),
        _ => None,
    }
}

/// Bound: bytes of a text that is joined without a look at limits and memory.
const SHORT: usize = 64 << 10;

/// `a + b` of two short strings.
#[inline]
pub fn joined(a: &Value, b: &Value) -> Option<Value> {
    let (Value::Other(a), Value::Other(b)) = (a, b) else { return None };
    let (a, b) = (a.read_lock::<ImmutableString>()?, b.read_lock::<ImmutableString>()?);
    if a.len() + b.len() > SHORT {
        return None;
    }
    let mut text = String::with_capacity(a.len() + b.len());
    text.push_str(&a);
    text.push_str(&b);
    Some(Value::Other(text.into()))
}

/// `-a` and `!a`.
#[inline]
pub fn unary(is_not: bool, a: &Value) -> Option<Value> {
    match a {
        Value::Bool(a) if is_not => Some(Value::Bool(!a)),
        Value::Int(a) if is_not => Some(Value::Int(!a)),
        Value::Int(a) if !is_not => a.checked_neg().map(Value::Int),
        Value::Float(a) if !is_not => Some(Value::Float(-a)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_fail_is_left_to_rhai() {
        let of = |op, a, b| apply(op, &Value::Int(a), &Value::Int(b));
        assert!(matches!(of(Op::Add, 2, 3), Some(Value::Int(5))));
        assert!(of(Op::Add, i64::MAX, 1).is_none());
        assert!(of(Op::Remainder, 1, 0).is_none());
        assert!(of(Op::Power, 0, -1).is_none());
        assert!(matches!(of(Op::Divide, 7, 2), Some(Value::Float(3.5))));
        assert!(matches!(of(Op::Divide, 1, 0), Some(Value::Float(f64::INFINITY))));
        assert!(matches!(of(Op::ShiftLeft, 1, 64), Some(Value::Int(0))));
        assert!(unary(false, &Value::Int(i64::MIN)).is_none());
    }

    #[test]
    fn comparisons_are_those_of_ieee() {
        let nan = Value::Float(f64::NAN);
        assert_eq!(compare(Op::Equal, &nan, &nan), Some(false));
        assert_eq!(compare(Op::NotEqual, &nan, &nan), Some(true));
        assert_eq!(compare(Op::LessEqual, &Value::Int(1), &Value::Float(1.0)), Some(true));
        assert_eq!(compare(Op::GreaterEqual, &nan, &Value::Int(1)), Some(false));
    }
}
