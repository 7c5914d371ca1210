//! Operators between values other than tensors: which of them a run refuses, and the results of the others.

use super::flow::Flow;
use super::guards::equal;
use super::lints;
use super::value::Value;
use crate::base::arithmetic;
use crate::base::arithmetic::Power;
use crate::base::code;
use crate::base::diag::Diag;
use crate::op::params;

impl Flow<'_> {
    pub(super) fn plain_operator(&mut self, op: &str, token: u32, left: &Value, right: &Value) -> Value {
        if matches!(op, "==" | "!=") {
            if never_equal(left, right) {
                self.warn(token, lints::never_equal(op, left, right, self.world.origin(token)));
            }
            if let Some(wrong) = names_nothing(left, right).or_else(|| names_nothing(right, left)) {
                self.warn(token, lints::names_nothing(op, &wrong, self.world.origin(token)));
            }
            return match equal(left, right) {
                None if !(left.is_known() && right.is_known()) => Value::Unknown,
                same => Value::Bool(same.map(|same| same == (op == "=="))),
            };
        }
        if left.is_known() && right.is_known() && !is_supported(op, left, right) {
            let types = [left, right].map(|value| value.type_name().unwrap_or("?"));
            let text = format!("`{op}` does not work between {} and {}", left.kind(), right.kind());
            self.no_operator(token, op, &types, text);
            return Value::Unknown;
        }
        let compares = matches!(op, "<" | ">" | "<=" | ">=");
        match (left, right) {
            (Value::Int(a), Value::Int(Some(0))) if op == "%" => {
                let a = a.map_or("an integer".to_string(), |a| a.to_string());
                self.report_at(token, Diag::error(code::ARITHMETIC, format!("`%`: {a} is divided by zero")), "here");
                Value::Unknown
            }
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (Value::Int(Some(a)), Value::Int(Some(b))) if compares => Value::Bool(Some(match op {
                "<" => a < b,
                ">" => a > b,
                "<=" => a <= b,
                _ => a >= b,
            })),
            _ if compares => Value::Bool(None),
            (Value::Bool(_), Value::Bool(_)) if matches!(op, "&" | "|" | "^") => Value::Bool(None),
            (Value::Int(a), Value::Int(b)) if op == "/" => {
                Value::Float(a.zip(*b).map(|(a, b)| crate::base::arithmetic::true_divide(a, b)))
            }
            (Value::Int(Some(a)), Value::Int(Some(b))) => self.integers(op, token, *a, *b),
            (Value::Int(_), Value::Int(_)) if matches!(op, "+" | "-" | "*" | "%") => Value::Int(None),
            (Value::Int(_), Value::Int(_)) => Value::Number,
            (Value::Float(_), Value::Float(_) | Value::Int(_)) | (Value::Int(_), Value::Float(_)) => Value::Float(None),
            (a, b) if a.is_number() && b.is_number() => Value::Number,
            (Value::Str(_), _) | (_, Value::Str(_)) if op == "+" => Value::Str(None),
            (Value::Str(_), Value::Int(_)) | (Value::Int(_), Value::Str(_)) if op == "*" => Value::Str(None),
            (Value::Array(_), Value::Array(_)) if op == "+" => Value::Array(None),
            (Value::Array(_), Value::Int(_)) | (Value::Int(_), Value::Array(_)) if op == "*" => Value::Array(None),
            _ => Value::Unknown,
        }
    }

    /// Two known integers. The divisor is not 0.
    fn integers(&mut self, op: &str, token: u32, a: i64, b: i64) -> Value {
        let (result, what) = match op {
            "+" => (a.checked_add(b), "addition overflow"),
            "-" => (a.checked_sub(b), "subtraction overflow"),
            "*" => (a.checked_mul(b), "multiplication overflow"),
            "%" => (arithmetic::remainder(a, b), "modulo division overflow"),
            "**" => match arithmetic::power(a, b) {
                Some(Power::Float(power)) => return Value::Float(Some(power)),
                Some(Power::Int(power)) => (Some(power), ""),
                None if b < 0 => (None, "integer raised to a negative power"),
                None => (None, "exponential overflow"),
            },
            _ => return Value::Number,
        };
        if result.is_none() {
            self.report_at(token, Diag::error(code::ARITHMETIC, format!("{what}: {a} {op} {b}")), "here");
        }
        Value::Int(result)
    }

    /// `a..b`.
    pub(super) fn range(&mut self, token: u32, ends: [Option<Value>; 2], inclusive: bool) -> Value {
        let integer = Value::Int(None);
        let [start, end] = ends.each_ref().map(|end| end.as_ref().unwrap_or(&integer));
        let no_end = |value: &Value| match value {
            Value::Float(x) => x.is_some_and(|x| arithmetic::whole(x).is_none()),
            value => matches!(value, Value::Str(_) | Value::Array(_) | Value::Map(_) | Value::Bool(_)),
        };
        if start.is_known() && end.is_known() && (no_end(start) || no_end(end)) {
            let op = if inclusive { "..=" } else { ".." };
            let types = [start, end].map(|value| value.type_name().unwrap_or("?"));
            let text = format!("`{op}` does not work between {} and {}", start.kind(), end.kind());
            self.no_operator(token, op, &types, text);
        }
        match (&ends[0], &ends[1]) {
            (Some(Value::Int(Some(start))), Some(Value::Int(Some(end)))) => {
                Value::Range(end.checked_add(inclusive as i64).map(|end| (*start, end)))
            }
            _ => Value::Range(None),
        }
    }

    /// `x in y`: containers that cannot be searched.
    pub(super) fn contains_refused(&mut self, token: u32, left: &Value, right: &Value) {
        let wrong = match right {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Unit => true,
            Value::Str(_) | Value::Map(_) => {
                left.is_known() && !matches!((left, right), (Value::Str(_), _) | (Value::Char, _))
            }
            _ => false,
        };
        if wrong && (left.is_known() || !matches!(right, Value::Str(_) | Value::Map(_))) {
            let text = format!("`in` does not look for {} in {}", left.kind(), right.kind());
            let help = "`x in xs` searches an array, a string, or the keys of a map; of a tensor `(x == 1).any()`";
            self.report_at(token, Diag::error(code::ARGUMENT_TYPE, text).help(help), "this operator");
        }
    }
}

/// Why a text is the name of no dtype or device with which it is compared.
fn names_nothing(value: &Value, name: &Value) -> Option<Box<Diag>> {
    match value {
        Value::DType(_) => params::dtype(name.text()?).err(),
        Value::Device => params::device(name.text()?).err(),
        _ => None,
    }
}

/// Whether two plain values can never be equal.
pub(super) fn never_equal(left: &Value, right: &Value) -> bool {
    let kind = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => 1,
        Value::Str(_) => 2,
        Value::Array(_) => 3,
        Value::Map(_) => 4,
        _ => 0,
    };
    kind(left) != 0 && kind(right) != 0 && kind(left) != kind(right)
}

/// Whether a value may be an integer, or stand for one.
fn is_count(value: &Value) -> bool {
    match value {
        Value::Float(x) => x.is_none_or(|x| arithmetic::whole(x).is_some()),
        value => matches!(value, Value::Int(_) | Value::Number),
    }
}

/// Whether an operator other than `==` may work between two plain values.
fn is_supported(op: &str, left: &Value, right: &Value) -> bool {
    use Value::{Array, Char, Float, Int, Map, Number, Str, Unit};
    let number = |value: &Value| matches!(value, Int(_) | Float(_) | Number);
    let plain = |value: &Value| number(value) || matches!(value, Str(_) | Array(_) | Map(_) | Unit | Value::Closure(_));
    if let (Value::Bool(_), other) | (other, Value::Bool(_)) = (left, right)
        && number(other)
    {
        return false;
    }
    if !plain(left) || !plain(right) || (number(left) && number(right)) {
        return !matches!((op, left, right), ("@", a, b) if number(a) && number(b));
    }
    match op {
        "+" => matches!((left, right), (Str(_), _) | (_, Str(_)) | (Array(_), Array(_)) | (Map(_), Map(_))),
        "-" => matches!((left, right), (Str(_), Str(_) | Char) | (Map(_), Map(_))),
        "*" => {
            let many = |value: &Value| matches!(value, Str(_) | Array(_));
            (many(left) && is_count(right)) || (is_count(left) && many(right))
        }
        "/" | "%" | "**" | "@" => false,
        "<" | ">" | "<=" | ">=" => matches!((left, right), (Str(_), Str(_)) | (Array(_), Array(_)) | (Unit, Unit)),
        _ => true,
    }
}
