//! Elementary functions that vectorise: one trait, implemented for `f32` and `f64`.
//!
//! Bodies are branch-free (selects only), so a loop over them becomes vector code; the few that are not say
//! so. Many `f32` functions are computed in f64 (`wide`) and rounded once, which is both shortest and most
//! exact. Knows nothing of tiles.

mod double;
mod single;
mod special;
mod wide;

use super::simd::Simd;

pub use special::{bessel_i0, digamma, erfinv, trigamma};

/// Functions of a float, compiled for a machine level `S`. For `f32`, errors are at most 2 units in the last
/// place over the whole range; the tests hold each to it.
pub trait Math: Copy {
    fn exp<S: Simd>(self) -> Self;
    fn exp2<S: Simd>(self) -> Self;
    fn expm1<S: Simd>(self) -> Self;
    fn log<S: Simd>(self) -> Self;
    fn log2<S: Simd>(self) -> Self;
    fn log10<S: Simd>(self) -> Self;
    fn log1p<S: Simd>(self) -> Self;
    /// For |x| below `TRIG_LIMIT`.
    fn sin<S: Simd>(self) -> Self;
    fn cos<S: Simd>(self) -> Self;
    fn tan<S: Simd>(self) -> Self;
    /// For every argument; not vectorised.
    fn sin_any(self) -> Self;
    fn cos_any(self) -> Self;
    fn tan_any(self) -> Self;
    fn asin<S: Simd>(self) -> Self;
    fn acos<S: Simd>(self) -> Self;
    fn atan<S: Simd>(self) -> Self;
    fn atan2<S: Simd>(self, x: Self) -> Self;
    fn sinh<S: Simd>(self) -> Self;
    fn cosh<S: Simd>(self) -> Self;
    fn tanh<S: Simd>(self) -> Self;
    fn asinh<S: Simd>(self) -> Self;
    fn acosh<S: Simd>(self) -> Self;
    fn atanh<S: Simd>(self) -> Self;
    fn pow<S: Simd>(self, y: Self) -> Self;
    fn hypot<S: Simd>(self, y: Self) -> Self;
    fn erf<S: Simd>(self) -> Self;
    fn erfc<S: Simd>(self) -> Self;
    /// 1 / (1 + e^-x).
    fn sigmoid<S: Simd>(self) -> Self;
    fn erfinv(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    fn trigamma(self) -> Self;
    fn bessel_i0(self) -> Self;
    /// The next representable value towards `y`.
    fn next_after(self, y: Self) -> Self;
}

/// Bound: magnitude up to which the three-part reduction modulo pi/2 keeps every bit.
pub const TRIG_LIMIT: f64 = 100_000.0;
