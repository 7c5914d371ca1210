//! f64 functions without branches, at most 2 ulp unless stated otherwise.
//!
//! Coefficients of log, sin, cos and the parts of pi/2 and ln 2 are those of fdlibm (Sun Microsystems, 1993);
//! exp is its Taylor series; erfcx is a Chebyshev fit of our own.

use super::Simd;
use std::f64::consts::LOG2_E;

/// 1.5 · 2^52: adding it rounds a value below 2^51 to an integer, which is then in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// The nearest integer as a float and as an integer.
#[inline(always)]
fn nearest(x: f64) -> (f64, i64) {
    let t = x + MAGIC;
    (t - MAGIC, (t.to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64))
}

/// `y * 2^k` for |k| up to 2100, in two factors so that the result may be subnormal or infinite.
#[inline(always)]
fn scale(y: f64, k: i64) -> f64 {
    let half = k >> 1;
    let power = |k: i64| f64::from_bits((k.wrapping_add(1023) << 52) as u64);
    y * power(half) * power(k.wrapping_sub(half))
}

#[inline(always)]
fn clamp(x: f64, limit: f64) -> f64 {
    let x = if x > limit { limit } else { x };
    if x < -limit { -limit } else { x }
}

/// `e^r - 1` for |r| <= 0.35: Taylor to the 13th power (remainder 4e-18).
#[inline(always)]
fn expm1_small<S: Simd>(r: f64) -> f64 {
    let mut p = 1.605_904_383_682_161_3e-10;
    p = S::fma64(p, r, 2.087_675_698_786_81e-9);
    p = S::fma64(p, r, 2.505_210_838_544_172e-8);
    p = S::fma64(p, r, 2.755_731_922_398_589e-7);
    p = S::fma64(p, r, 2.755_731_922_398_589_3e-6);
    p = S::fma64(p, r, 2.480_158_730_158_730_2e-5);
    p = S::fma64(p, r, 1.984_126_984_126_984e-4);
    p = S::fma64(p, r, 1.388_888_888_888_889e-3);
    p = S::fma64(p, r, 8.333_333_333_333_333e-3);
    p = S::fma64(p, r, 4.166_666_666_666_666_4e-2);
    p = S::fma64(p, r, 1.666_666_666_666_666_6e-1);
    p = S::fma64(p, r, 0.5);
    S::fma64(p * r, r, r)
}

/// `x` as `k ln 2 + r`.
#[inline(always)]
fn reduce_exp<S: Simd>(x: f64) -> (f64, i64) {
    let (n, k) = nearest(x * LOG2_E);
    (S::fma64(n, -LN2_LO, S::fma64(n, -LN2_HI, x)), k)
}

#[inline(always)]
pub fn exp<S: Simd>(x: f64) -> f64 {
    let (r, k) = reduce_exp::<S>(clamp(x, 800.0));
    scale(1.0 + expm1_small::<S>(r), k)
}

#[inline(always)]
pub fn exp2<S: Simd>(x: f64) -> f64 {
    let x = clamp(x, 1100.0);
    let (n, k) = nearest(x);
    scale(1.0 + expm1_small::<S>((x - n) * std::f64::consts::LN_2), k)
}

#[inline(always)]
pub fn expm1<S: Simd>(x: f64) -> f64 {
    let x = if x < -45.0 { -45.0 } else { x };
    let x = if x > 800.0 { 800.0 } else { x };
    let (r, k) = reduce_exp::<S>(x);
    // 2^k (e^r - 1) + (2^k - 1), all times one half so that 2^k does not overflow first.
    let inverse = f64::from_bits((1023i64.wrapping_sub(if k > 1000 { 1000 } else { k }) << 52) as u64);
    let y = scale(expm1_small::<S>(r) + (1.0 - inverse), k);
    let y = if k == 0 { expm1_small::<S>(r) } else { y };
    // -0 stays -0.
    y.copysign(x)
}

/// `x` as `2^k (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2), and `ln(1 + f)` in the form
/// `f - rest`. For positive finite x.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
    let k = (bits >> 52).wrapping_sub(0x3ff);
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(0x3fe6_a09e_667f_3bcd));
    let n = f64::from_bits(k.wrapping_add(MAGIC.to_bits())) - MAGIC;
    let n = if tiny { n - 54.0 } else { n };
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t1 = w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let t2 = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half = 0.5 * f * f;
    (n, f, half - s * (half + t1 + t2))
}

/// Replaces `y` at 0, negative numbers, infinity and NaN.
#[inline(always)]
fn log_edges(x: f64, y: f64) -> f64 {
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f64::NAN } else { y };
    if x < f64::INFINITY { y } else { x }
}

#[inline(always)]
pub fn log<S: Simd>(x: f64) -> f64 {
    let (n, f, rest) = log_parts(x);
    log_edges(x, n * LN2_HI - ((rest - n * LN2_LO) - f))
}

#[inline(always)]
pub fn log2<S: Simd>(x: f64) -> f64 {
    let (n, f, rest) = log_parts(x);
    log_edges(x, n + (f - rest) * LOG2_E)
}

#[inline(always)]
pub fn log1p<S: Simd>(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of the addition, computed from the larger operand.
    let lost = if x > 1.0 { 1.0 - (u - x) } else { x - (u - 1.0) };
    let y = log::<S>(u) + lost / u;
    let y = if x > -1.0 && x < f64::INFINITY { y } else { log::<S>(u) };
    // -0 stays -0.
    y.copysign(x)
}

/// `x` as `n pi/2 + r`, |r| <= pi/4, for |x| below `TRIG_LIMIT`; the low two bits of n.
#[inline(always)]
fn reduce_trig<S: Simd>(x: f64) -> (f64, i64) {
    let (n, k) = nearest(x * std::f64::consts::FRAC_2_PI);
    let r = x - n * 1.570_796_326_734_125_6;
    let r = r - n * 6.077_100_506_303_966e-11;
    (r - n * 2.022_266_248_795_950_6e-21, k)
}

#[inline(always)]
fn sin_small<S: Simd>(r: f64, z: f64) -> f64 {
    let mut p = 1.589_690_995_211_55e-10;
    p = S::fma64(p, z, -2.505_076_025_340_686_3e-8);
    p = S::fma64(p, z, 2.755_731_370_707_006_8e-6);
    p = S::fma64(p, z, -1.984_126_982_985_795e-4);
    p = S::fma64(p, z, 8.333_333_333_322_49e-3);
    p = S::fma64(p, z, -1.666_666_666_666_663_2e-1);
    S::fma64(p * z, r, r)
}

#[inline(always)]
fn cos_small<S: Simd>(z: f64) -> f64 {
    let mut p = -1.135_964_755_778_819_5e-11;
    p = S::fma64(p, z, 2.087_572_321_298_175e-9);
    p = S::fma64(p, z, -2.755_731_435_139_066_3e-7);
    p = S::fma64(p, z, 2.480_158_728_947_673e-5);
    p = S::fma64(p, z, -1.388_888_888_887_411e-3);
    p = S::fma64(p, z, 4.166_666_666_666_66e-2);
    let half = 0.5 * z;
    let w = 1.0 - half;
    w + (((1.0 - w) - half) + z * z * p)
}

#[inline(always)]
fn negate_if(y: f64, yes: bool) -> f64 {
    if yes { -y } else { y }
}

#[inline(always)]
pub fn sin<S: Simd>(x: f64) -> f64 {
    let (r, k) = reduce_trig::<S>(x);
    let z = r * r;
    let y = if k & 1 != 0 { cos_small::<S>(z) } else { sin_small::<S>(r, z) };
    // -0 stays -0.
    if x == 0.0 { x } else { negate_if(y, k & 2 != 0) }
}

#[inline(always)]
pub fn cos<S: Simd>(x: f64) -> f64 {
    let (r, k) = reduce_trig::<S>(x);
    let z = r * r;
    let y = if k & 1 != 0 { sin_small::<S>(r, z) } else { cos_small::<S>(z) };
    negate_if(y, k.wrapping_add(1) & 2 != 0)
}

/// At most 4 ulp: for rounding to f32.
#[inline(always)]
pub fn tan<S: Simd>(x: f64) -> f64 {
    let (r, k) = reduce_trig::<S>(x);
    let z = r * r;
    let (s, c) = (sin_small::<S>(r, z), cos_small::<S>(z));
    let y = if k & 1 != 0 { -c / s } else { s / c };
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn sinh<S: Simd>(x: f64) -> f64 {
    let t = expm1::<S>(x.abs());
    let y = 0.5 * (t + t / (t + 1.0));
    let y = if t > 1e18 { 0.5 * t } else { y };
    y.copysign(x)
}

#[inline(always)]
pub fn cosh<S: Simd>(x: f64) -> f64 {
    let e = exp::<S>(x.abs());
    0.5 * e + 0.5 / e
}

#[inline(always)]
pub fn tanh<S: Simd>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 22.0 { 22.0 } else { a };
    let t = expm1::<S>(2.0 * a);
    (t / (t + 2.0)).copysign(x)
}

/// For |x| up to 1e150.
#[inline(always)]
pub fn asinh<S: Simd>(x: f64) -> f64 {
    let a = x.abs();
    let z = a * a;
    let y = log1p::<S>(a + z / (1.0 + (1.0 + z).sqrt()));
    if a < f64::INFINITY { y.copysign(x) } else { x }
}

/// For x up to 1e150.
#[inline(always)]
pub fn acosh<S: Simd>(x: f64) -> f64 {
    let t = x - 1.0;
    let y = log1p::<S>(t + (2.0 * t + t * t).sqrt());
    if t < 0.0 { f64::NAN } else { y }
}

#[inline(always)]
pub fn atanh<S: Simd>(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * log1p::<S>(2.0 * a / (1.0 - a))).copysign(x)
}

/// `x^y` by `e^(y ln x)`, good to about |y ln x| ulp of f64: for rounding to f32.
#[inline(always)]
pub fn pow<S: Simd>(x: f64, y: f64) -> f64 {
    let power = exp::<S>(y * log::<S>(x.abs()));
    let whole = nearest(clamp(y, 1e15)).0 == clamp(y, 1e15);
    // Beyond 2^53 every float is even.
    let half = 0.5 * clamp(y, 1e15);
    let odd = whole && nearest(half).0 != half && y.abs() < 1e15;
    let power = if x.is_sign_negative() && odd { -power } else { power };
    let power = if x < 0.0 && !whole && x > f64::NEG_INFINITY { f64::NAN } else { power };
    let power = if x.abs() == 1.0 && y.abs() == f64::INFINITY { 1.0 } else { power };
    if y == 0.0 || x == 1.0 { 1.0 } else { power }
}

/// The complementary error function, relative error 2e-10: `e^(-x^2)` times a fit of `erfcx(x) (1 + 2x)` in
/// `(x - 4) / (x + 4)`. For rounding to f32.
#[inline(always)]
pub fn erfc<S: Simd>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 27.0 { 27.0 } else { a };
    let u = (a - 4.0) / (a + 4.0);
    let mut p = -9.714_715_277_462_741e-6;
    p = S::fma64(p, u, -8.597_036_566_738_98e-6);
    p = S::fma64(p, u, 1.482_094_863_146_270_6e-4);
    p = S::fma64(p, u, -2.204_965_812_831_358_7e-4);
    p = S::fma64(p, u, -7.558_842_773_943_456e-4);
    p = S::fma64(p, u, 5.047_344_723_157_265e-3);
    p = S::fma64(p, u, -1.619_851_621_708_336_8e-2);
    p = S::fma64(p, u, 3.716_141_336_243_051e-2);
    p = S::fma64(p, u, -6.633_020_048_394_969e-2);
    p = S::fma64(p, u, 9.373_409_380_730_136e-2);
    p = S::fma64(p, u, -1.010_390_813_973_787_7e-1);
    p = S::fma64(p, u, 6.809_693_885_725_164e-2);
    p = S::fma64(p, u, 1.537_965_251_463_623_9e-2);
    p = S::fma64(p, u, -1.396_211_137_621_324_3e-1);
    p = S::fma64(p, u, 1.232_995_118_625_552_6);
    let y = exp::<S>(-a * a) * p / (1.0 + 2.0 * a);
    if x < 0.0 { 2.0 - y } else { y }
}
