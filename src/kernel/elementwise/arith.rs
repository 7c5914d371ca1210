//! Functions of two and more numbers: arithmetic, the kinds of division, selection.

use super::*;

/// Floor division of integers; 0 by zero.
#[inline(always)]
fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
    if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q }
}

/// The remainder with the divisor's sign; 0 by zero.
#[inline(always)]
fn remainder(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

/// `a^b`, wrapping; a negative exponent gives the exact inverse when that is an integer, else 0.
fn power(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut left, mut y) = (a, b, 1i64);
    while left > 0 {
        if left & 1 == 1 {
            y = y.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    y
}

/// For integers of `bits` bits. The lowest integer has no positive counterpart and stays as it is, as in PyTorch.
fn gcd(a: i64, b: i64, bits: u32) -> i64 {
    let size = |x: i64| (x.wrapping_abs() << (64 - bits)) >> (64 - bits);
    let (mut a, mut b) = (size(a), size(b));
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

/// Integers narrower than 32 bits are multiplied in 32 bits.
fn lcm(a: i64, b: i64, bits: u32) -> i64 {
    let multiple = match gcd(a, b, bits) {
        0 => 0,
        g => a.wrapping_div(g).wrapping_mul(b),
    };
    if bits == 64 { multiple.wrapping_abs() } else { (multiple as i32).wrapping_abs() as i64 }
}

/// `a % b` of floats whose quotient is below 2^24: in f64 its whole part, the product and the difference are exact. An infinite
/// divisor leaves everything.
#[inline(always)]
fn exact_rest(a: f32, b: f32) -> f32 {
    let (x, y) = (a as f64, b as f64);
    let whole = (x / y).trunc();
    let taken = if whole == 0.0 { 0.0 } else { whole * y };
    ((x - taken) as f32).copysign(a)
}

/// Floor division and remainder of floats as Python and PyTorch define them; `r` is `a % b`.
macro_rules! float_division {
    ($floor_div:ident, $remainder:ident, $T:ty) => {
        #[inline(always)]
        fn $floor_div(a: $T, b: $T, r: $T) -> $T {
            let q = (a - r) / b;
            let q = if r != 0.0 && (b < 0.0) != (r < 0.0) { q - 1.0 } else { q };
            let whole = q.floor();
            let whole = if q - whole > 0.5 { whole + 1.0 } else { whole };
            let whole = if q == 0.0 { (0.0 as $T).copysign(a / b) } else { whole };
            if b == 0.0 { a / b } else { whole }
        }

        #[inline(always)]
        fn $remainder(b: $T, r: $T) -> $T {
            if r != 0.0 && (b < 0.0) != (r < 0.0) { r + b } else { r }
        }
    };
}
float_division!(floor_div_f32, remainder_f32, f32);
float_division!(floor_div_f64, remainder_f64, f64);

#[inline(always)]
fn within_1000(n: f64) -> f64 {
    let n = if n > -1000.0 { n } else { -1000.0 };
    if n < 1000.0 { n } else { 1000.0 }
}

/// 2^n for an integer n from -1000 to 1000.
#[inline(always)]
fn power_of_two(n: f64) -> f64 {
    // Adding 1.5 · 2^52 leaves the integer in the lowest bits.
    let bits = (n + 1023.0 + 6_755_399_441_055_744.0).to_bits();
    f64::from_bits(bits << 52)
}

/// The 16-bit float next to `a`, whose bits are given, towards `b`.
fn neighbor(a: f32, b: f32, bits: u16, value: impl Fn(u16) -> f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        return f32::NAN;
    }
    if a == b {
        return b;
    }
    if a == 0.0 {
        return value(1).copysign(b);
    }
    // The bits of a float increase with its magnitude.
    value(if (a < b) == (a > 0.0) { bits + 1 } else { bits - 1 })
}

functions! {
    ADD "add" "a + b" {
        float(a, b) = a + b;
        int(a, b) = a.wrapping_add(b);
        bool(a, b) = a | b;
    }
    SUB "sub" "a - b" {
        float(a, b) = a - b;
        int(a, b) = a.wrapping_sub(b);
    }
    MUL "mul" "a * b" {
        float(a, b) = a * b;
        int(a, b) = a.wrapping_mul(b);
        bool(a, b) = a & b;
    }
    /// True division of floats.
    DIV "div" "a / b" { float(a, b) = a / b; }
    /// Rounds towards minus infinity.
    FLOOR_DIV "floor_div" "ts_floor_div(a, b)" where 1 is NonZero {
        quotient(a, b) = floor_div_f32(a, b, exact_rest(a, b)), floor_div_f32(a, b, a % b);
        (a: F64, b: F64) -> F64 = floor_div_f64(a, b, a % b);
        division(a, b) = (a / b).floor(), floor_div(a, b);
    }
    /// Rounds towards zero.
    TRUNC_DIV "trunc_div" "ts_trunc_div(a, b)" where 1 is NonZero {
        float(a, b) = (a / b).trunc();
        division(a, b) = (a / b).trunc(), if b == 0 { 0 } else { a.wrapping_div(b) };
    }
    /// With the divisor's sign.
    REMAINDER "remainder" "ts_remainder(a, b)" where 1 is NonZero {
        quotient(a, b) = remainder_f32(b, exact_rest(a, b)), remainder_f32(b, a % b);
        (a: F64, b: F64) -> F64 = remainder_f64(b, a % b);
        division(a, b) = a - (a / b).floor() * b, remainder(a, b);
    }
    /// With the dividend's sign.
    FMOD "fmod" "ts_fmod(a, b)" where 1 is NonZero {
        quotient(a, b) = exact_rest(a, b), a % b;
        (a: F64, b: F64) -> F64 = a % b;
        division(a, b) = a - (a / b).trunc() * b, if b == 0 { 0 } else { a.wrapping_rem(b) };
    }
    POW "pow" "ts_pow(a, b)" {
        float(a, b) = Math::pow::<S>(a, b);
        int(a, b) = power(a, b);
    }
    /// The angle of the point (b, a).
    ATAN2 "atan2" "ts_atan2(a, b)" { float(a, b) = Math::atan2::<S>(a, b); }
    HYPOT "hypot" "ts_hypot(a, b)" { float(a, b) = Math::hypot::<S>(a, b); }
    COPYSIGN "copysign" "ts_copysign(a, b)" { float(a, b) = a.copysign(b); }
    /// Of the sum a of squares and the sum b of c differences, over d.
    VARIANCE "variance" "ts_variance(a, b, c, d)" {
        few(a, b, c, d) = {
            let left = a - b * b / c;
            (if left < 0.0 { 0.0 } else { left }) / d
        };
    }
    /// a · 2^b for integers b.
    LDEXP "ldexp" "ts_ldexp(a, b)" {
        (a: F32, b: F32) -> F32 = (a as f64 * power_of_two(within_1000(b as f64))) as f32;
        (a: F64, b: F64) -> F64 = {
            // What three powers of the exponent's range do not reach is 0 or infinite.
            let first = within_1000(b);
            let second = within_1000(b - first);
            let third = within_1000(b - first - second);
            a * power_of_two(first) * power_of_two(second) * power_of_two(third)
        };
    }
    NEXTAFTER "nextafter" "ts_nextafter(a, b)" { float(a, b) = Math::next_after(a, b); }
    /// For f16, whose values are in f32 registers.
    NEXTAFTER_F16 "nextafter_f16" "ts_nextafter_f16(a, b)" {
        (a: F32, b: F32) -> F32 = neighbor(a, b, half::f16::from_f32(a).to_bits(), |bits| half::f16::from_bits(bits).to_f32());
    }
    /// For bf16.
    NEXTAFTER_BF16 "nextafter_bf16" "ts_nextafter_bf16(a, b)" {
        (a: F32, b: F32) -> F32 = neighbor(a, b, half::bf16::from_f32(a).to_bits(), |bits| half::bf16::from_bits(bits).to_f32());
    }
    LOGADDEXP "logaddexp" "ts_logaddexp(a, b)" {
        float(a, b) = {
            let (high, low) = if a < b { (b, a) } else { (a, b) };
            // The difference of equal infinities is NaN.
            let y = high + Math::log1p::<S>(Math::exp::<S>(low - high));
            if a.is_infinite() && a == b { a } else { y }
        };
    }
    LOGADDEXP2 "logaddexp2" "ts_logaddexp2(a, b)" {
        float(a, b) = {
            let (high, low) = if a < b { (b, a) } else { (a, b) };
            let y = high + Math::log1p::<S>(Math::exp2::<S>(low - high)) * 1.442_695_040_888_963_4;
            if a.is_infinite() && a == b { a } else { y }
        };
    }
    /// NaN propagates.
    MAXIMUM "maximum" "ts_maximum(a, b)" {
        float(a, b) = if a > b || a.is_nan() { a } else { b };
        int(a, b) = if a > b { a } else { b };
        bool(a, b) = a | b;
    }
    /// NaN propagates.
    MINIMUM "minimum" "ts_minimum(a, b)" {
        float(a, b) = if a < b || a.is_nan() { a } else { b };
        int(a, b) = if a < b { a } else { b };
        bool(a, b) = a & b;
    }
    /// NaN is ignored.
    FMAX "fmax" "ts_fmax(a, b)" {
        float(a, b) = if a > b || b.is_nan() { a } else { b };
        int(a, b) = if a > b { a } else { b };
        bool(a, b) = a | b;
    }
    /// NaN is ignored.
    FMIN "fmin" "ts_fmin(a, b)" {
        float(a, b) = if a < b || b.is_nan() { a } else { b };
        int(a, b) = if a < b { a } else { b };
        bool(a, b) = a & b;
    }
    GCD "gcd" "ts_gcd(a, b, 64)" narrow GCD_I8 GCD_I16 GCD_I32 { int(a, b) = gcd(a, b, 64); }
    GCD_I8 "gcd_i8" "ts_gcd(a, b, 8)" { int(a, b) = gcd(a, b, 8); }
    GCD_I16 "gcd_i16" "ts_gcd(a, b, 16)" { int(a, b) = gcd(a, b, 16); }
    GCD_I32 "gcd_i32" "ts_gcd(a, b, 32)" { int(a, b) = gcd(a, b, 32); }
    LCM "lcm" "ts_lcm(a, b, 64)" narrow LCM_I8 LCM_I16 LCM_I32 { int(a, b) = lcm(a, b, 64); }
    LCM_I8 "lcm_i8" "ts_lcm(a, b, 8)" { int(a, b) = lcm(a, b, 8); }
    LCM_I16 "lcm_i16" "ts_lcm(a, b, 16)" { int(a, b) = lcm(a, b, 16); }
    LCM_I32 "lcm_i32" "ts_lcm(a, b, 32)" { int(a, b) = lcm(a, b, 32); }
    /// `a ln b`, 0 where `a` is 0 unless `b` is NaN.
    XLOGY "xlogy" "ts_xlogy(a, b)" {
        float(a, b) = {
            let y = a * Math::log::<S>(b);
            let y = if a == 0.0 { 0.0 } else { y };
            if b.is_nan() { b } else { y }
        };
    }
    /// 0 below zero, `b` at zero, 1 above.
    HEAVISIDE "heaviside" "ts_heaviside(a, b)" {
        float(a, b) = {
            let step = if a > 0.0 { 1.0 } else { 0.0 };
            if a == 0.0 { b } else { step }
        };
        int(a, b) = if a == 0 { b } else { (a > 0) as i64 };
    }
    /// With bit masks: branches are not vectorized.
    WHERE "where" "(a ? b : c)" {
        (a: Bool, b: F32, c: F32) -> F32 = {
            let all = ((a != 0) as u32).wrapping_neg();
            f32::from_bits(b.to_bits() & all | c.to_bits() & !all)
        };
        (a: Bool, b: F64, c: F64) -> F64 = {
            let all = ((a != 0) as u64).wrapping_neg();
            f64::from_bits(b.to_bits() & all | c.to_bits() & !all)
        };
        (a: Bool, b: I64, c: I64) -> I64 = {
            let all = ((a != 0) as i64).wrapping_neg();
            b & all | c & !all
        };
        (a: Bool, b: Bool, c: Bool) -> Bool = if a != 0 { b } else { c };
    }
    /// `a + c (b - a)`, exact at both ends.
    LERP "lerp" "ts_lerp(a, b, c)" {
        float(a, b, c) = {
            let (low, high) = (a + c * (b - a), b - (b - a) * (1.0 - c));
            if c.abs() < 0.5 { low } else { high }
        };
    }
    /// `a + b c d`: `addcmul` with its factor second.
    FMA "fma" "a + b * c * d" {
        float(a, b, c, d) = a + b * c * d;
        int(a, b, c, d) = a.wrapping_add(b.wrapping_mul(c).wrapping_mul(d));
    }
    /// `a + (b c) / d`: `addcdiv` with its factor second.
    ADDCDIV "addcdiv" "a + b * c / d" { float(a, b, c, d) = a + b * c / d; }
    /// The number itself, which must be a probability.
    PROBABILITY "probability" "a" where 0 is Probability { float(a) = a; }
    /// The number itself, which must be a standard deviation.
    DEVIATION "deviation" "a" where 0 is Deviation { float(a) = a; }
    /// The number itself, which must be finite.
    FINITE "finite" "a" where 0 is Finite { float(a) = a; }
    /// `a` clamped to `b`..`c`; NaN propagates, and the result is `c` if `b > c`.
    CLAMP "clamp" "ts_clamp(a, b, c)" {
        float(a, b, c) = {
            let y = if a < b || b.is_nan() { b } else { a };
            if y > c || (c.is_nan() && !y.is_nan()) { c } else { y }
        };
        int(a, b, c) = {
            let y = if a < b { b } else { a };
            if y > c { c } else { y }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::program::TILE;

    /// Divisions of integers, where tiles of small ones are computed as f64, are those of single integers on every level.
    #[test]
    fn divisions_of_integers() {
        type Exact = fn(i64, i64) -> i64;
        let functions: [(&Function, Exact); 4] = [
            (&FLOOR_DIV, floor_div),
            (&REMAINDER, remainder),
            (&TRUNC_DIV, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
            (&FMOD, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
        ];
        let edge = 1i64 << 50;
        let left = [0, 1, -1, 2, -2, 5, -7, 8, 99, -100, edge - 1, -edge, edge - 2, 1 - edge, 3 << 48, 1_000_000_007];
        let right = [1, -1, 2, -2, 3, -3, 7, -9, 10, edge - 1, -edge, edge - 2, 1 - edge, 65_537, -1_000_003, 6];
        let small: Vec<(i64, i64)> = left.iter().flat_map(|&a| right.map(|b| (a, b))).collect();
        let with = |a: i64, b: i64| small.iter().copied().chain([(a, b)]).collect::<Vec<_>>();
        let tiles =
            [small.clone(), with(7, 0), with(edge, 3), with(7, -edge - 1), with(i64::MIN, -1), with(i64::MAX, 2)];
        for (function, exact) in functions {
            let variant = &function.variants[function.variant(&[Class::I64, Class::I64]).unwrap()];
            for pairs in &tiles {
                assert!(pairs.len() <= TILE);
                let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
                let expected: Vec<i64> = pairs.iter().map(|&(a, b)| exact(a, b)).collect();
                for tile in &variant.tiles[simd::level()..] {
                    let (mut out, mut own) = (vec![0i64; a.len()], a.clone());
                    let args = |a: &[i64]| [a.as_ptr().cast(), b.as_ptr().cast(), b.as_ptr().cast(), b.as_ptr().cast()];
                    // SAFETY: all vectors are as long; the machine has the level.
                    unsafe {
                        tile(&args(&a), out.as_mut_ptr().cast(), a.len());
                        tile(&args(&own), own.as_mut_ptr().cast(), a.len());
                    }
                    assert_eq!(out, expected, "{}", function.name);
                    assert_eq!(own, expected, "{} in place", function.name);
                }
            }
        }
    }
}
