//! Functions of plain numbers, as in Python's `math`: integers are accepted for floats, `log` is the natural
//! logarithm as for tensors (Rhai's has base 10), `int` returns an integer.

use crate::base::arithmetic::{self, Power};
use crate::base::code;
use crate::base::diag::Diag;
use crate::base::float_functions::{FUNCTIONS, QUESTIONS, ROUNDINGS, extreme_is_int, larger, smaller};
use crate::base::suggest::unknown_keyword;
use crate::script::bind::rows::Natives;
use crate::script::values::panics::Place;
use crate::script::values::raise::{Native, raise};
use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, Map, NativeCallContext};
use std::cmp::Ordering;

type IntegerOp = fn(i64, i64) -> Option<i64>;

/// Names, the operation on two integers, the operation on floats.
type Operator = (&'static [&'static str], Option<IntegerOp>, fn(f64, f64) -> f64);

/// Functions that do what operators do. Integers give integers where there is an integer operation.
const OPERATORS: &[Operator] = &[
    (&["add"], Some(i64::checked_add), |x, y| x + y),
    (&["sub", "subtract"], Some(i64::checked_sub), |x, y| x - y),
    (&["mul", "multiply"], Some(i64::checked_mul), |x, y| x * y),
    (&["div", "divide", "true_divide"], None, |x, y| x / y),
    (&["atan2"], None, f64::atan2),
    (&["hypot"], None, f64::hypot),
    (&["copysign"], None, f64::copysign),
    (&["/"], None, |x, y| x / y),
    (&["%", "remainder"], Some(arithmetic::remainder), arithmetic::float_remainder),
    (&["floor_divide"], Some(arithmetic::floor_divide), arithmetic::float_floor_divide),
];

fn operators(natives: &mut Natives) {
    for &(names, whole, real) in OPERATORS {
        for &name in names {
            natives.note(name);
            let of = || FuncRegistration::new(name).in_global_namespace();
            of().place_in(&mut natives.module, real);
            of().place_in(&mut natives.module, move |x: i64, y: f64| real(x as f64, y));
            of().place_in(&mut natives.module, move |x: f64, y: i64| real(x, y as f64));
            let Some(whole) = whole else {
                if matches!(name, "/" | "div" | "divide" | "true_divide") {
                    of().place_in(&mut natives.module, arithmetic::true_divide);
                } else {
                    of().place_in(&mut natives.module, move |x: i64, y: i64| real(x as f64, y as f64));
                }
                continue;
            };
            of().place_in(
                &mut natives.module,
                move |context: NativeCallContext, x: i64, y: i64| -> Result<i64, Box<EvalAltResult>> {
                    let text = || match (name, y) {
                        ("%" | "remainder" | "floor_divide", 0) => format!("`{name}`: {x} is divided by zero"),
                        _ => format!("`{name}`: {x} and {y} give no integer of 64 bits"),
                    };
                    whole(x, y).ok_or_else(|| raise(Diag::error(code::ARITHMETIC, text()), context.call_position()))
                },
            );
        }
    }
}

/// The larger and the smaller of two numbers, one of them a float, as it is. Rhai's return the second number where the first
/// is NaN.
fn extremes(natives: &mut Natives) {
    type Pick = fn(f64, f64) -> f64;
    for (name, pick, wanted) in [("max", larger as Pick, Ordering::Greater), ("min", smaller as Pick, Ordering::Less)] {
        let of = || FuncRegistration::new(name).in_global_namespace();
        let pick_int = move |int: i64, float: f64, if_equal| match extreme_is_int(int, float, wanted, if_equal) {
            true => Dynamic::from_int(int),
            false => Dynamic::from_float(float),
        };
        of().place_in(&mut natives.module, pick);
        of().place_in(&mut natives.module, move |x: i64, y: f64| pick_int(x, y, true));
        of().place_in(&mut natives.module, move |x: f64, y: i64| pick_int(y, x, false));
    }
}

pub fn register(natives: &mut Natives) {
    operators(natives);
    extremes(natives);
    for &(name, function) in FUNCTIONS {
        natives.note(name);
        let of = || FuncRegistration::new(name).in_global_namespace();
        of().place_in(&mut natives.module, function);
        of().place_in(&mut natives.module, move |x: i64| function(x as f64));
    }
    for &(name, function) in ROUNDINGS {
        natives.note(name);
        let of = || FuncRegistration::new(name).in_global_namespace();
        of().place_in(&mut natives.module, function);
        of().place_in(&mut natives.module, |x: i64| x);
    }
    let of = || FuncRegistration::new("abs").in_global_namespace();
    of().place_in(&mut natives.module, |context: NativeCallContext, x: i64| {
        let overflow = || {
            let message = format!("`abs`: the absolute value of {x} is no integer of 64 bits");
            raise(Diag::error(code::ARITHMETIC, message), context.call_position())
        };
        x.checked_abs().ok_or_else(overflow)
    });
    let of = || FuncRegistration::new("round").in_global_namespace();
    divisions(natives);
    divisors(natives);
    bits(natives);
    powers(natives);
    // As of tensors: the sign of a float is a float, and that of NaN 0.
    let sign = |x: f64| if x.is_nan() || x == 0.0 { 0.0 } else { x.signum() };
    FuncRegistration::new("sign").in_global_namespace().place_in(&mut natives.module, sign);
    of().place_in(&mut natives.module, |context: NativeCallContext, x: i64, digits: i64| {
        let overflow = || {
            let message = format!("`round`: {x} to {digits} digits is no integer of 64 bits");
            raise(Diag::error(code::VALUE, message), context.call_position())
        };
        rounded(x, digits).ok_or_else(overflow)
    });
    for &(name, question) in QUESTIONS {
        natives.note(name);
        let of = || FuncRegistration::new(name).in_global_namespace();
        of().place_in(&mut natives.module, question);
        of().place_in(&mut natives.module, move |x: i64| question(x as f64));
    }
    natives.note("int");
    let of = || FuncRegistration::new("int").in_global_namespace();
    of().place_in(&mut natives.module, |x: i64| x);
    of().place_in(&mut natives.module, |context: NativeCallContext, x: f64| whole("int", code::VALUE, &context, x));
    // Rhai returns 0 for NaN.
    let of = || FuncRegistration::new("to_int").in_global_namespace();
    let to_int = |context: NativeCallContext, x: f64| whole("to_int", code::ARITHMETIC, &context, x);
    of().place_in(&mut natives.module, to_int);
}

/// `gcd` and `lcm` of integers.
fn divisors(natives: &mut Natives) {
    fn common(x: i64, y: i64) -> u64 {
        let (mut x, mut y) = (x.unsigned_abs(), y.unsigned_abs());
        while y != 0 {
            (x, y) = (y, x % y);
        }
        x
    }
    fn multiple(x: i64, y: i64) -> Option<u64> {
        match common(x, y) {
            0 => Some(0),
            divisor => (x.unsigned_abs() / divisor).checked_mul(y.unsigned_abs()),
        }
    }
    type Of = fn(i64, i64) -> Option<u64>;
    for (name, of) in [("gcd", (|x, y| Some(common(x, y))) as Of), ("lcm", multiple as Of)] {
        natives.note(name);
        let call = move |context: NativeCallContext, x: i64, y: i64| {
            let found = of(x, y).and_then(|found| i64::try_from(found).ok());
            let text = || format!("`{name}`: {x} and {y} give no integer of 64 bits");
            found.ok_or_else(|| raise(Diag::error(code::ARITHMETIC, text()), context.call_position()))
        };
        FuncRegistration::new(name).in_global_namespace().place_in(&mut natives.module, call);
    }
}

/// `!x`, `x << n` and `x >> n` of integers.
fn bits(natives: &mut Natives) {
    let of = |name: &str| FuncRegistration::new(name).in_global_namespace();
    of("!").place_in(&mut natives.module, |x: i64| !x);
    of("<<").place_in(&mut natives.module, arithmetic::shift_left);
    of(">>").place_in(&mut natives.module, arithmetic::shift_right);
}

/// `div(a, b, #{rounding_mode: "floor"})` of numbers.
fn divisions(natives: &mut Natives) {
    let of = || FuncRegistration::new("div").in_global_namespace();
    let divide = |context: NativeCallContext, x: Dynamic, y: Dynamic, options: Map| -> Native {
        let wrong = |text: String| Err(raise(Diag::error(code::ARITHMETIC, text), context.call_position()));
        if let Some(unknown) = options.keys().find(|key| *key != "rounding_mode") {
            let mut diag = unknown_keyword(unknown, &["rounding_mode"]);
            diag.message = format!("`div`: {}", diag.message);
            return Err(raise(diag, context.call_position()));
        }
        let mode =
            options.get("rounding_mode").filter(|mode| !mode.is_unit()).map_or(String::new(), |mode| mode.to_string());
        let float =
            |value: &Dynamic| value.as_float().or_else(|_| value.as_int().map(|n| n as f64)).unwrap_or(f64::NAN);
        Ok(match (&mode[..], x.as_int(), y.as_int()) {
            ("", ..) => (float(&x) / float(&y)).into(),
            ("floor" | "trunc", Ok(x), Ok(0)) => return wrong(format!("`div`: {x} is divided by zero")),
            ("floor" | "trunc", Ok(x), Ok(y)) => {
                let quotient = if mode == "floor" { arithmetic::floor_divide(x, y) } else { x.checked_div(y) };
                match quotient {
                    Some(quotient) => quotient.into(),
                    None => return wrong(format!("`div`: {x} and {y} give no integer of 64 bits")),
                }
            }
            ("floor", ..) => arithmetic::float_floor_divide(float(&x), float(&y)).into(),
            ("trunc", ..) => (float(&x) / float(&y)).trunc().into(),
            (other, ..) => {
                let text = format!("`div`: `rounding_mode` is \"floor\", \"trunc\" or (), not \"{other}\"");
                return Err(raise(Diag::error(code::VALUE, text), context.call_position()));
            }
        })
    };
    of().place_in(&mut natives.module, move |c: NativeCallContext, x: i64, y: i64, o: Map| {
        divide(c, x.into(), y.into(), o)
    });
    of().place_in(&mut natives.module, move |c: NativeCallContext, x: f64, y: f64, o: Map| {
        divide(c, x.into(), y.into(), o)
    });
    of().place_in(&mut natives.module, move |c: NativeCallContext, x: i64, y: f64, o: Map| {
        divide(c, x.into(), y.into(), o)
    });
    of().place_in(&mut natives.module, move |c: NativeCallContext, x: f64, y: i64, o: Map| {
        divide(c, x.into(), y.into(), o)
    });
}

/// `pow(x, y)` of numbers, as `x ** y`; `divmod(x, y)` as `[x.floor_divide(y), x % y]`.
fn powers(natives: &mut Natives) {
    natives.note("pow");
    let of = |name: &str| FuncRegistration::new(name).in_global_namespace();
    let module = &mut natives.module;
    of("pow").place_in(module, f64::powf);
    of("pow").place_in(module, |x: i64, y: f64| (x as f64).powf(y));
    of("pow").place_in(module, |x: f64, y: i64| x.powf(y as f64));
    of("pow").place_in(module, |context: NativeCallContext, x: i64, y: i64| match arithmetic::power(x, y) {
        Some(Power::Int(power)) => Ok(Dynamic::from_int(power)),
        Some(Power::Float(power)) => Ok(Dynamic::from_float(power)),
        None => {
            let text = format!("`pow`: {x} to the power of {y} is no integer of 64 bits");
            Err(raise(Diag::error(code::ARITHMETIC, text), context.call_position()))
        }
    });
    let pair = |x: f64, y: f64| -> Array {
        vec![arithmetic::float_floor_divide(x, y).into(), arithmetic::float_remainder(x, y).into()]
    };
    of("divmod").place_in(module, pair);
    of("divmod").place_in(module, move |x: i64, y: f64| pair(x as f64, y));
    of("divmod").place_in(module, move |x: f64, y: i64| pair(x, y as f64));
    of("divmod").place_in(module, |context: NativeCallContext, x: i64, y: i64| {
        match (arithmetic::floor_divide(x, y), arithmetic::remainder(x, y)) {
            (Some(quotient), Some(rest)) => Ok(vec![quotient.into(), rest.into()] as Array),
            _ => {
                let text =
                    if y == 0 { "is divided by zero".into() } else { format!("by {y} is no integer of 64 bits") };
                Err(raise(Diag::error(code::ARITHMETIC, format!("`divmod`: {x} {text}")), context.call_position()))
            }
        }
    });
    natives.note("divmod");
}

fn whole(name: &str, code: code::Code, context: &NativeCallContext, x: f64) -> Result<i64, Box<EvalAltResult>> {
    // Bound: the range of i64; its end 2^63 is not in it.
    if x.trunc() >= i64::MIN as f64 && x < i64::MAX as f64 {
        return Ok(x as i64);
    }
    Err(raise(Diag::error(code, format!("`{name}`: {x} is no integer of 64 bits")), context.call_position()))
}

/// As Python's `round` of an integer: digits before the point become zeros, halves go to the even one.
fn rounded(x: i64, digits: i64) -> Option<i64> {
    // Bound: 10^19 is the first power of ten above all i64; beyond twice the largest, the result is zero.
    let places = match u32::try_from(digits.min(0).unsigned_abs()) {
        Ok(places) if places < 20 => places,
        _ => return Some(0),
    };
    let unit = 10i128.pow(places);
    let (whole, rest) = ((x as i128).div_euclid(unit), (x as i128).rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && whole % 2 != 0);
    i64::try_from((whole + i128::from(up)) * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::rounded;

    use crate::script::session::handle::Session;

    #[test]
    fn integers_round_as_pythons() {
        // What Python 3.11 gives.
        for (x, digits, expected) in [
            (2, 1, 2),
            (1250, -2, 1200),
            (1350, -2, 1400),
            (-1250, -2, -1200),
            (15, -1, 20),
            (-15, -1, -20),
            (49, -2, 0),
            (7, -30, 0),
        ] {
            assert_eq!(rounded(x, digits), Some(expected), "round({x}, {digits})");
        }
        assert_eq!(rounded(i64::MAX, -1), None);
        assert_eq!(rounded(i64::MIN, -18), Some(-9_000_000_000_000_000_000));
    }

    #[test]
    fn numbers_of_both_kinds() {
        let mut session = Session::builder().build().expect("a session");
        let mut at = 0;
        let mut text = |code: &str| {
            at += 1;
            let value = session.enter(at, code).unwrap_or_else(|e| panic!("{code}: {e}"));
            session.show(&value).expect("shown")
        };
        for (code, expected) in [
            ("sqrt(9)", "3.0"),
            ("log(1)", "0.0"),
            ("(log(2.718281828459045) * 1e9).round()", "1000000000.0"),
            ("log10(100)", "2.0"),
            ("pow(2, 3)", "8"),
            ("[pow(2, -1), pow(2.0, 3), divmod(-7, 2), sign(-2.5), sign(3)]", "[0.5, 8.0, [-4, 1], -1.0, 1]"),
            ("add(2, 3)", "5"),
            ("sub(2, 0.5)", "1.5"),
            ("[max(NAN, 1.0), max(1, NAN), min(NAN, 1), min(1.0, NAN)].map(|x| isnan(x))", "[true, true, true, true]"),
            ("[max(2, 3.5), min(2, 3.5), max(-1.0, -2), max(2, 3)]", "[3.5, 2, -1.0, 3]"),
            ("[max([1.0, NAN, 3.0]), [NAN, 2.0].min(), min([2, NAN])].map(|x| isnan(x))", "[true, true, true]"),
            (
                "let codes = []; for x in [NAN, INF, 1e19] { try { x.to_int(); } catch (e) { codes.push(e.code); } } codes",
                "[\"E0214\", \"E0214\", \"E0214\"]",
            ),
            ("[(-7.9).to_int(), 7.9.to_int()]", "[-7, 7]"),
            ("multiply(2, 3)", "6"),
            ("div(7, 2)", "3.5"),
            ("7.sub(3)", "4"),
            ("int(-2.5)", "-2"),
            ("[ceil(2.1), floor(2.9), trunc(-2.9), 2.1.ceil()]", "[3.0, 2.0, -2.0, 3.0]"),
            ("[ceil(2), floor(2), trunc(2), round(2), 2.floor()]", "[2, 2, 2, 2, 2]"),
            ("[asinh(0), acosh(1), atanh(0), hypot(3, 4), copysign(2, -0.5)]", "[0.0, 0.0, 0.0, 5.0, -2.0]"),
            ("[isnan(0.0 / 0.0), isinf(1), isfinite(1.5)]", "[true, false, true]"),
            ("float(2)", "2.0"),
            ("let total = 0; total += 0.5; total", "0.5"),
            ("let x = 2.5; x *= 2; x", "5.0"),
        ] {
            assert_eq!(text(code), expected, "{code}");
        }
        assert!(session.enter(99, "int(1e30)").is_err());
        assert!(session.enter(100, "mul(4611686018427387904, 2)").is_err());
    }
}
