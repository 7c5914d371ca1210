//! Functions of numbers and letters that need no call: `abs(x)`, `x.sqrt()`, `min(a, b)`, `ord(c)`, `text[i].isdigit()`. They
//! give what the natives of these names give; what is an error there is none here and left to them.

use super::quick::Number;
use super::value::Value;
use crate::base::arithmetic::{self, Power};
use crate::base::float_functions::{
    FUNCTIONS, Function, QUESTIONS, Question, ROUNDINGS, extreme_is_int, larger, smaller,
};
use rhai::Dynamic;
use std::cmp::Ordering;

#[derive(Clone, Copy)]
pub enum Numeric {
    /// Of a float; an integer is converted.
    Of(Function),
    /// It leaves an integer as it is.
    Rounding(Function),
    Question(Question),
    Abs,
    ToInt,
    ToFloat,
    Larger,
    Smaller,
    FloorDivide,
    Power,
    /// Of a letter.
    Ord,
    IsLetter(fn(&u8) -> bool),
}

impl Numeric {
    /// What a function or method of this name does with so many values.
    pub fn of(name: &str, count: usize) -> Option<Numeric> {
        if count == 2 {
            return Some(match name {
                "max" => Numeric::Larger,
                "min" => Numeric::Smaller,
                "floor_divide" => Numeric::FloorDivide,
                "pow" => Numeric::Power,
                _ => return None,
            });
        }
        let find = |table: &[(&str, Function)]| table.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
        match (count, name) {
            (1, "abs") => Some(Numeric::Abs),
            (1, "int" | "to_int") => Some(Numeric::ToInt),
            (1, "to_float") => Some(Numeric::ToFloat),
            (1, "ord") => Some(Numeric::Ord),
            (1, _) => {
                let question = || QUESTIONS.iter().find(|(known, _)| *known == name);
                let of = find(FUNCTIONS).map(Numeric::Of);
                of.or_else(|| find(ROUNDINGS).map(Numeric::Rounding))
                    .or_else(|| question().map(|(_, asked)| Numeric::Question(*asked)))
            }
            _ => None,
        }
    }

    /// A question about a letter, as a method.
    pub fn of_letter(name: &str, count: usize) -> Option<Numeric> {
        let asked: fn(&u8) -> bool = match (name, count) {
            ("isdigit", 0) => u8::is_ascii_digit,
            ("isalpha", 0) => u8::is_ascii_alphabetic,
            ("isalnum", 0) => u8::is_ascii_alphanumeric,
            ("isspace", 0) => |letter| !letter.is_ascii_graphic(),
            _ => return None,
        };
        Some(Numeric::IsLetter(asked))
    }

    pub fn takes_letter(self) -> bool {
        matches!(self, Numeric::Ord | Numeric::IsLetter(_))
    }

    #[inline]
    pub fn of_character(self, letter: char) -> Number {
        match self {
            Numeric::Ord => Number::of(&Value::Int(i64::from(u32::from(letter)))),
            // Of the control characters some are blanks.
            Numeric::IsLetter(asked) if matches!(letter, '\t' | '\n' | '\r' | ' '..='~') => {
                Number::of(&Value::Bool(asked(&(letter as u8))))
            }
            _ => Number::NONE,
        }
    }

    pub fn takes_two(self) -> bool {
        matches!(self, Numeric::Larger | Numeric::Smaller | Numeric::FloorDivide | Numeric::Power)
    }

    /// What it gives for a number.
    #[inline]
    pub fn run(self, a: Number) -> Number {
        a.value().and_then(|a| self.of_one(&a)).as_ref().map_or(Number::NONE, Number::of)
    }

    /// What it gives for two.
    #[inline]
    pub fn run_two(self, a: Number, b: Number) -> Number {
        let found = a.value().zip(b.value()).and_then(|(a, b)| self.of_two(&a, &b));
        found.as_ref().map_or(Number::NONE, Number::of)
    }

    /// What it gives for the value before the dot and those in the parentheses.
    pub fn of_values(self, a: Number, rest: &[Value]) -> Number {
        match rest {
            [] => self.run(a),
            [b] => self.run_two(a, Number::of(b)),
            _ => Number::NONE,
        }
    }

    pub fn of_dynamics(self, values: &[&mut Dynamic]) -> Number {
        match values {
            [a] => self.run(Number::of_dynamic(a)),
            [a, b] => self.run_two(Number::of_dynamic(a), Number::of_dynamic(b)),
            _ => Number::NONE,
        }
    }

    fn of_one(self, a: &Value) -> Option<Value> {
        Some(match (self, a) {
            (Numeric::Of(function), Value::Float(a)) => Value::Float(function(*a)),
            (Numeric::Of(function), Value::Int(a)) => Value::Float(function(*a as f64)),
            (Numeric::Rounding(function), Value::Float(a)) => Value::Float(function(*a)),
            (Numeric::Rounding(_), Value::Int(a)) => Value::Int(*a),
            (Numeric::Question(asked), Value::Float(a)) => Value::Bool(asked(*a)),
            (Numeric::Question(asked), Value::Int(a)) => Value::Bool(asked(*a as f64)),
            (Numeric::Abs, Value::Float(a)) => Value::Float(a.abs()),
            (Numeric::Abs, Value::Int(a)) => Value::Int(a.checked_abs()?),
            (Numeric::ToFloat, Value::Int(a)) => Value::Float(*a as f64),
            // Bound: the range of i64; its end 2^63 is not in it.
            (Numeric::ToInt, Value::Float(a)) if a.trunc() >= i64::MIN as f64 && *a < i64::MAX as f64 => {
                Value::Int(*a as i64)
            }
            _ => return None,
        })
    }

    fn of_two(self, a: &Value, b: &Value) -> Option<Value> {
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            return Some(Value::Int(match self {
                Numeric::Larger => *a.max(b),
                Numeric::Smaller => *a.min(b),
                Numeric::FloorDivide => arithmetic::floor_divide(*a, *b)?,
                Numeric::Power => match arithmetic::power(*a, *b)? {
                    Power::Int(power) => power,
                    Power::Float(power) => return Some(Value::Float(power)),
                },
                _ => return None,
            }));
        }
        if let Numeric::Larger | Numeric::Smaller = self {
            return self.extreme(a, b);
        }
        let (a, b) = (float(a)?, float(b)?);
        Some(Value::Float(match self {
            Numeric::FloorDivide => arithmetic::float_floor_divide(a, b),
            Numeric::Power => a.powf(b),
            _ => return None,
        }))
    }

    /// The larger or smaller of two numbers that are not both integers.
    fn extreme(self, a: &Value, b: &Value) -> Option<Value> {
        let (pick, wanted): (fn(f64, f64) -> f64, _) = match self {
            Numeric::Larger => (larger, Ordering::Greater),
            _ => (smaller, Ordering::Less),
        };
        let takes_int = |int: i64, float: f64, if_equal| extreme_is_int(int, float, wanted, if_equal);
        Some(match (a, b) {
            (Value::Float(a), Value::Float(b)) => Value::Float(pick(*a, *b)),
            (Value::Int(a), Value::Float(b)) if takes_int(*a, *b, true) => Value::Int(*a),
            (Value::Float(a), Value::Int(b)) if takes_int(*b, *a, false) => Value::Int(*b),
            (Value::Float(float), Value::Int(_)) | (Value::Int(_), Value::Float(float)) => Value::Float(*float),
            _ => return None,
        })
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    /// What a script prints, where natives are called (sizes are limited) and where they are not.
    fn said(natives: bool, script: &str) -> String {
        let mut builder = Session::builder();
        if natives {
            builder = builder.string_limit(1 << 20);
        }
        let mut session = builder.build().expect("a session");
        let value = session.enter(1, script).unwrap_or_else(|error| panic!("{script}: {error}"));
        session.show(&value).expect("shown")
    }

    fn both(expressions: &[String]) {
        for some in expressions.chunks(300) {
            let one = |expression: &String| {
                format!(
                    "for i in 0..2 {{ try {{ let x = {expression}; got.push([type_of(x), x]); }} catch (e) {{ got.push(e.code); }} }}\n"
                )
            };
            let script = format!("let got = [];\n{}got", some.iter().map(one).collect::<String>());
            let (quick, native) = (said(false, &script), said(true, &script));
            if quick != native && some.len() > 1 {
                some.iter().for_each(|expression| both(std::slice::from_ref(expression)));
            }
            assert_eq!(quick, native, "{some:?}");
        }
    }

    const NUMBERS: [&str; 14] = [
        "0",
        "3",
        "-7",
        "9223372036854775807",
        "-9223372036854775808",
        "0.0",
        "-0.0",
        "2.5",
        "-3.5",
        "1e19",
        "NAN",
        "INF",
        "-INF",
        "true",
    ];

    #[test]
    fn functions_give_what_their_natives_give() {
        let one = FUNCTIONS.iter().chain(ROUNDINGS).map(|(name, _)| *name);
        let names = one.chain(QUESTIONS.iter().map(|(name, _)| *name)).chain(["abs", "int", "to_int", "to_float"]);
        let all: Vec<String> = names.flat_map(|name| [format!("{name}(a)"), format!("a.{name}()")]).collect();
        let of =
            |number: &str| all.iter().map(move |call| format!("{{ let a = {number}; {call} }}")).collect::<Vec<_>>();
        both(&NUMBERS.iter().flat_map(|number| of(number)).collect::<Vec<_>>());
        let mut pairs = Vec::new();
        for (a, b) in NUMBERS.iter().flat_map(|a| NUMBERS.map(|b| (a, b))) {
            for name in ["max", "min", "floor_divide", "pow"] {
                pairs.push(format!("{{ let a = {a}; let b = {b}; {name}(a, b) }}"));
                pairs.push(format!("{{ let a = {a}; let b = {b}; a.{name}(b) }}"));
            }
        }
        both(&pairs);
    }

    #[test]
    fn letters_are_asked_as_their_natives_are() {
        let mut all = Vec::new();
        for text in ["a", "Z", "5", " ", "_", "\\n", "é", "٣", "", "ab", "\\x01"] {
            for call in ["ord(a)", "a.isdigit()", "a.isalpha()", "a.isalnum()", "a.isspace()"] {
                all.push(format!("{{ let a = \"{text}\"; {call} }}"));
                let of_element = if call == "ord(a)" { "ord(s[1])".to_string() } else { call.replacen('a', "s[1]", 1) };
                all.push(format!("{{ let s = \"x{text}\"; {of_element} }}"));
            }
        }
        both(&all);
    }
}
