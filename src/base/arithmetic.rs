//! Arithmetic of plain numbers, as operators do it to tensors: true division, Python's remainder, powers with negative
//! exponents. What has no result is `None`.

use std::cmp::Ordering;

/// `a % b` with the sign of `b`, as Python's; by 0 there is none.
pub fn remainder(a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    let rest = a.wrapping_rem(b);
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}

/// `a % b` of floats with the sign of `b`; by 0 it is NaN.
pub fn float_remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else if rest == 0.0 {
        rest.copysign(b)
    } else {
        rest
    }
}

/// The quotient rounded towards negative infinity; by 0 there is none, and none for -2^63 by -1.
pub fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// The quotient of floats rounded towards negative infinity, as Python's `//`; by 0 it is infinite or NaN.
pub fn float_floor_divide(a: f64, b: f64) -> f64 {
    if b.is_infinite() && a.is_finite() {
        return if a != 0.0 && (a < 0.0) != (b < 0.0) { -1.0 } else { a / b };
    }
    if b == 0.0 {
        return a / b;
    }
    if !a.is_finite() {
        return f64::NAN;
    }
    let exact = (a - float_remainder(a, b)) / b;
    if exact == 0.0 {
        // The sign of the quotient: what is subtracted from `a` leaves that of `a` alone.
        return 0.0f64.copysign(a / b);
    }
    let floor = exact.floor();
    if exact - floor > 0.5 { floor + 1.0 } else { floor }
}

/// `a << b` as of tensors: by a negative number, or by 64 and more, it is 0.
pub fn shift_left(a: i64, b: i64) -> i64 {
    if (0..64).contains(&b) { a << b } else { 0 }
}

/// `a >> b` as of tensors: by a negative number, or by 64 and more, only the sign is left, 0 or -1.
pub fn shift_right(a: i64, b: i64) -> i64 {
    a >> if (0..64).contains(&b) { b } else { 63 }
}

/// `a ** b` of integers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Power {
    Int(i64),
    Float(f64),
}

/// A power of integers: a float where the exponent is negative. None for 0 to a negative power, and beyond 64 bits.
pub fn power(a: i64, b: i64) -> Option<Power> {
    match (a, b) {
        (0, ..0) => None,
        (_, ..0) => Some(Power::Float((a as f64).powf(b as f64))),
        (0 | 1, _) => Some(Power::Int(if b == 0 { 1 } else { a })),
        (-1, _) => Some(Power::Int(if b % 2 == 0 { 1 } else { -1 })),
        _ => a.checked_pow(u32::try_from(b).ok()?).map(Power::Int),
    }
}

/// The order of an integer and a float, exact beyond 2^53 too; none with NaN.
#[inline]
pub fn compare(int: i64, float: f64) -> Option<Ordering> {
    const EXACT: u64 = 1 << 53;
    if int.unsigned_abs() <= EXACT {
        return (int as f64).partial_cmp(&float);
    }
    // Bound: the range of i64; its end 2^63 is not in it.
    if float >= i64::MAX as f64 {
        return Some(Ordering::Less);
    }
    if float < i64::MIN as f64 {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let order = |whole: f64| int.cmp(&(whole as i64));
    (!float.is_nan()).then(|| order(whole).then(whole.total_cmp(&float)))
}

/// The integer for which a float stands that is a whole number.
pub fn whole(x: f64) -> Option<i64> {
    // Bound: the range of i64; its end 2^63 is not in it.
    (x.fract() == 0.0 && x >= i64::MIN as f64 && x < i64::MAX as f64).then_some(x as i64)
}

/// The quotient of two integers, rounded once: floats of large ones are rounded themselves.
#[inline]
pub fn true_divide(a: i64, b: i64) -> f64 {
    // Bound: integers that floats have exactly.
    const EXACT: u64 = 1 << 53;
    if (a.unsigned_abs() <= EXACT && b.unsigned_abs() <= EXACT) || b == 0 {
        return a as f64 / b as f64;
    }
    rounded_quotient(a, b)
}

#[cold]
fn rounded_quotient(a: i64, b: i64) -> f64 {
    let (above, below) = (u128::from(a.unsigned_abs()), u128::from(b.unsigned_abs()));
    if above == 0 {
        return a as f64 / b as f64;
    }
    // At least 64 bits of the quotient, the last of which says whether more would follow.
    let shift = above.leading_zeros();
    let (quotient, rest) = ((above << shift) / below, (above << shift) % below);
    let size = (quotient | u128::from(rest != 0)) as f64 * 2f64.powi(-(shift as i32));
    if (a < 0) == (b < 0) { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By CPython.
    #[test]
    fn quotients_of_integers_are_rounded_once() {
        for (a, b, expected) in [
            (9007199254740993, -7, -1286742750677284.8),
            (633925612709237504, 599168011261623284, 1.0580097748783814),
            (i64::MAX, i64::MIN, -1.0),
            (i64::MIN, -1, -(i64::MIN as f64)),
            (1, i64::MAX, 1.0842021724855044e-19),
            (i64::MIN, 3, -3.0744573456182584e18),
            (9007199254740995, 2, 4503599627370497.5),
            (7, 2, 3.5),
        ] {
            assert_eq!(true_divide(a, b), expected, "{a} / {b}");
        }
        assert!(true_divide(0, 0).is_nan() && true_divide(i64::MIN, 0) == f64::NEG_INFINITY);
    }

    /// Answers of CPython 3.11 for `a % b`, `a // b`.
    #[test]
    fn integers_divide_as_pythons() {
        for (a, b, rest, quotient) in [
            (7, 2, 1, 3),
            (-7, 2, 1, -4),
            (7, -2, -1, -4),
            (-7, -2, -1, 3),
            (-1, 5, 4, -1),
            (6, 3, 0, 2),
            (-6, 3, 0, -2),
            (i64::MIN, 3, 1, -3074457345618258603),
            (i64::MIN, 1, 0, i64::MIN),
        ] {
            assert_eq!((remainder(a, b), floor_divide(a, b)), (Some(rest), Some(quotient)), "{a} {b}");
        }
        assert_eq!((remainder(1, 0), floor_divide(1, 0)), (None, None));
        assert_eq!((remainder(i64::MIN, -1), floor_divide(i64::MIN, -1)), (Some(0), None));
    }

    #[test]
    fn floats_divide_as_pythons() {
        let inf = f64::INFINITY;
        for (a, b, rest, quotient) in [
            (7.5, 2.0, 1.5, 3.0),
            (-7.5, 2.0, 0.5, -4.0),
            (7.5, -2.0, -0.5, -4.0),
            (-0.0, 2.0, 0.0, -0.0),
            (-2.16, -3.0, -2.16, 0.0),
            (2.16, 3.0, 2.16, 0.0),
            (5.0, inf, 5.0, 0.0),
            (-5.0, inf, inf, -1.0),
            (0.3, 0.1, 0.09999999999999998, 2.0),
        ] {
            assert_eq!(float_remainder(a, b), rest, "{a} % {b}");
            assert_eq!(float_floor_divide(a, b), quotient, "{a} // {b}");
            assert_eq!(float_floor_divide(a, b).is_sign_negative(), quotient.is_sign_negative(), "{a} // {b}");
        }
        assert!(float_remainder(1.0, 0.0).is_nan() && float_floor_divide(0.0, 0.0).is_nan());
        assert_eq!(float_floor_divide(-1.0, 0.0), -inf);
    }

    #[test]
    fn powers_of_integers() {
        assert_eq!(power(2, 10), Some(Power::Int(1024)));
        assert_eq!(power(2, -1), Some(Power::Float(0.5)));
        assert_eq!(power(-2, -3), Some(Power::Float(-0.125)));
        assert_eq!((power(0, -1), power(0, 0), power(2, 64)), (None, Some(Power::Int(1)), None));
        assert_eq!((power(1, i64::MAX), power(-1, i64::MAX)), (Some(Power::Int(1)), Some(Power::Int(-1))));
    }

    #[test]
    fn integers_and_floats_are_compared_exactly() {
        let big = 1 << 53;
        for (int, float, expected) in [
            (1, 1.5, Ordering::Less),
            (big, 9007199254740992.0, Ordering::Equal),
            (big + 1, 9007199254740992.0, Ordering::Greater),
            (-big - 1, -9007199254740992.0, Ordering::Less),
            (i64::MAX, 9223372036854775808.0, Ordering::Less),
            (i64::MIN, -9223372036854775808.0, Ordering::Equal),
            (i64::MIN, f64::NEG_INFINITY, Ordering::Greater),
            (i64::MAX, 0.5, Ordering::Greater),
        ] {
            assert_eq!(compare(int, float), Some(expected), "{int} {float}");
        }
        assert_eq!((compare(1, f64::NAN), compare(i64::MAX, f64::NAN)), (None, None));
    }

    #[test]
    fn whole_floats_stand_for_integers() {
        assert_eq!((whole(4.0), whole(-0.0), whole(2.5)), (Some(4), Some(0), None));
        assert_eq!((whole(9223372036854775807.0), whole(f64::NAN), whole(f64::INFINITY)), (None, None, None));
        assert_eq!(whole(-9223372036854775808.0), Some(i64::MIN));
    }
}
