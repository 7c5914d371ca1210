//! The logarithm of the gamma function and its derivative for results of `f32`: in f64, without branches.
//!
//! Below 8 the argument is raised by 8 (the recurrence as one product), then the asymptotic series; negative arguments by
//! reflection (Abramowitz and Stegun 6.1.17, 6.1.41, 6.3.7 and 6.3.18).

use super::{Simd, wide};
use std::f64::consts::PI;

const LN_PI: f64 = 1.144_729_885_849_400_2;
/// ln(2 pi) / 2 - 1/2.
const STIRLING: f64 = 0.418_938_533_204_672_74;

/// B(2k) / (2k (2k - 1)), of higher order first, for powers of 1 / x².
const LGAMMA: [f64; 7] =
    [1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
/// B(2k) / (2k).
const DIGAMMA: [f64; 5] = [1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0];

#[inline(always)]
fn polynomial<S: Simd, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.into_iter().reduce(|sum, c| S::fma64(sum, x, c)).unwrap_or(0.0)
}

/// The distance from the nearest integer, with its sign.
#[inline(always)]
fn from_integer(x: f64) -> f64 {
    x - x.round_ties_even()
}

#[inline(always)]
pub fn lgamma<S: Simd>(x: f32) -> f32 {
    let x = x as f64;
    let reflected = x < 0.5;
    let z = if reflected { 1.0 - x } else { x };
    let low = z < 8.0;
    let pairs = [z * (z + 7.0), (z + 1.0) * (z + 6.0), (z + 2.0) * (z + 5.0), (z + 3.0) * (z + 4.0)];
    let product = if low { (pairs[0] * pairs[1]) * (pairs[2] * pairs[3]) } else { 1.0 };
    let w = if low { z + 8.0 } else { z };
    let inverse = 1.0 / w;
    let series = inverse * polynomial::<S, 7>(inverse * inverse, LGAMMA);
    let s = (w - 0.5) * (wide::log::<S>(w) - 1.0) + (STIRLING + series);
    let sine = wide::sin::<S>(PI * from_integer(x).abs());
    let l = wide::log::<S>(if reflected { product / sine } else { product });
    let y = if reflected { LN_PI + l - s } else { s - l };
    let y = if x == 1.0 || x == 2.0 { 0.0 } else { y };
    (if x == f64::NEG_INFINITY { f64::INFINITY } else { y }) as f32
}

/// Poles give NaN, zero an infinity of the opposite sign, as in PyTorch.
#[inline(always)]
pub fn digamma<S: Simd>(x: f32) -> f32 {
    let x = x as f64;
    let z = if x < 0.0 { 1.0 - x } else { x };
    let low = z < 8.0;
    // The derivative of the logarithm of z (z + 1) .. (z + 7), whose factors are pairs of z² + 7 z and a number.
    let q = z * (z + 7.0);
    let (a, b, c, d) = (q, q + 6.0, q + 10.0, q + 12.0);
    let sums = (2.0 * z + 7.0) * ((a + b) * (c * d) + (c + d) * (a * b)) / ((a * b) * (c * d));
    let w = if low { z + 8.0 } else { z };
    let inverse = 1.0 / w;
    let square = inverse * inverse;
    let y = wide::log::<S>(w) - 0.5 * inverse - square * polynomial::<S, 5>(square, DIGAMMA);
    let y = if low { y - sums } else { y };
    let apart = from_integer(x);
    let tangent = PI / wide::tan::<S>(PI * apart);
    let y = if x < 0.0 { y - tangent } else { y };
    let y = if x < 0.0 && apart == 0.0 { f64::NAN } else { y };
    (if x == 0.0 { f64::INFINITY.copysign(-x) } else { y }) as f32
}
