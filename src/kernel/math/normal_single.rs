//! Functions about the normal distribution in `f32`, without branches, for machines with fused multiply-add.

use super::single::{ERF_NEAR, ERFINV_MIDDLE, ERFINV_TAIL, erfcx_parts, polynomial, power_parts, scale};
use super::{Math, Simd};
use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

/// As `ERFINV_TAIL`, in `sqrt(w) - 6`, from 4 on.
const NDTRI_FAR: [f32; 9] = [
    1.534_428_9e-8,
    -2.186_619_5e-7,
    1.347_135_6e-6,
    -5.624_978_7e-6,
    2.085_210_3e-5,
    -4.201_129e-5,
    -4.720_399_2e-4,
    1.009_604_6,
    5.859_913,
];

/// e^(s + rest) erfcx(a).
#[inline(always)]
fn tail<S: Simd>(a: f32, s: f32, rest: f32) -> f32 {
    let (tail, lost) = erfcx_parts::<S>(a);
    let (e, k) = power_parts::<S>(s, rest);
    scale(tail + S::fma32(e, tail, S::fma32(e, lost, lost)), k)
}

/// erf for |x| < 0.93.
#[inline(always)]
fn near<S: Simd>(x: f32) -> f32 {
    S::fma32(polynomial::<S, 6>(x * x, ERF_NEAR), x, x)
}

/// e^(a²) erfc(a) for a >= 0: from 10 on by the asymptotic series (NIST DLMF 7.12.1).
#[inline(always)]
fn erfcx_above<S: Simd>(a: f32) -> f32 {
    let (near, lost) = erfcx_parts::<S>(if a > 10.0 { 10.0 } else { a });
    let z = 1.0 / (a * a);
    let series = polynomial::<S, 5>(z, [6.5625, -1.875, 0.75, -0.5, 1.0]);
    if a > 10.0 { 0.564_189_6 / a * series } else { near + lost }
}

/// e^(x²) erfc(x).
#[inline(always)]
pub fn erfcx<S: Simd>(x: f32) -> f32 {
    let a = x.abs();
    let y = erfcx_above::<S>(a);
    let square = a * a;
    // From here on the power is infinite.
    let (power, rest) = if square > 100.0 { (100.0, 0.0) } else { (square, S::fma32(a, a, -square)) };
    let (e, k) = power_parts::<S>(power, rest);
    let grown = scale(2.0 + 2.0 * e, k) - y;
    if x < 0.0 { grown } else { y }
}

/// The complementary distribution function at `a` >= 0.
#[inline(always)]
fn upper<S: Simd>(a: f32) -> f32 {
    // From here on the result rounds to 0.
    let a = if a > 15.0 { 15.0 } else { a };
    let (t, s) = (a * FRAC_1_SQRT_2, -0.5 * a * a);
    let far = 0.5 * tail::<S>(t, s, S::fma32(-0.5 * a, a, -s));
    if t < 0.45 { 0.5 - 0.5 * near::<S>(t) } else { far }
}

/// The distribution function of the standard normal.
#[inline(always)]
pub fn ndtr<S: Simd>(x: f32) -> f32 {
    let y = upper::<S>(x.abs());
    let y = if x > 0.0 { 1.0 - y } else { y };
    if x.is_nan() { x } else { y }
}

/// Its logarithm.
#[inline(always)]
pub fn log_ndtr<S: Simd>(x: f32) -> f32 {
    let a = x.abs();
    let t = a * FRAC_1_SQRT_2;
    let low = Math::log::<S>(0.5 * erfcx_above::<S>(t)) - 0.5 * a * a;
    let above = upper::<S>(a);
    let high = Math::log1p::<S>(-(if x > 0.0 { above } else { 1.0 - above }));
    let y = if x < -1.0 { low } else { high };
    if x.is_nan() { x } else { y }
}

/// Its inverse, by the fits of `erfinv`.
#[inline(always)]
pub fn ndtri<S: Simd>(p: f32) -> f32 {
    let (x, product) = (2.0 * p - 1.0, p * (1.0 - p));
    let w = -Math::log::<S>(4.0 * product);
    let root = w.sqrt();
    let middle = polynomial::<S, 9>(w - 2.5, ERFINV_MIDDLE);
    let tail = polynomial::<S, 9>(root - 3.0, ERFINV_TAIL);
    let far = polynomial::<S, 9>(root - 6.0, NDTRI_FAR);
    let y = if w < 5.0 { middle } else { tail };
    let y = SQRT_2 * x * if w < 16.0 { y } else { far };
    let y = if p == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if p == 1.0 { f32::INFINITY } else { y };
    if (0.0..=1.0).contains(&p) { y } else { f32::NAN }
}

/// -x ln x, 0 at 0, minus infinity below.
#[inline(always)]
pub fn entr<S: Simd>(x: f32) -> f32 {
    let y = -x * Math::log::<S>(x);
    let y = if x == 0.0 { 0.0 } else { y };
    if x < 0.0 { f32::NEG_INFINITY } else { y }
}
