//! `f32` sine, cosine and tangent in `f32`, for magnitudes below `TRIG_LIMIT` on machines with fused multiply-add.
//!
//! The range reduction subtracts multiples of pi/2 in three parts, each rounded once. The polynomials are our own fits of
//! the relative error.

use super::Simd;
use std::f32::consts::FRAC_2_PI;

/// 1.5 · 2^23: adding it rounds an f32 of magnitude below 2^22 to an integer, which is then in the low bits.
const MAGIC: f32 = 12_582_912.0;

/// `(sin(r) / r - 1) / r^2`, `(cos(r) - 1 + r^2 / 2) / r^4` and `(tan(r) / r - 1) / r^2` in r^2, for |r| <= pi/4.
const SIN: [f32; 4] = [2.718_084e-6, -1.983_930_9e-4, 8.333_329e-3, -1.666_666_7e-1];
const COS: [f32; 3] = [2.443_809e-5, -1.388_736_4e-3, 4.166_664_6e-2];
const TAN: [f32; 7] =
    [4.381_672_5e-3, 7.887_562e-5, 1.084_399_3e-2, 2.127_912_3e-2, 5.406_049e-2, 1.333_265_9e-1, 3.333_335e-1];

/// `x` as `n pi/2 + r` with |r| <= pi/4: the low bits of n, r, and what rounding took from r.
// The leading bits of pi / 2, whose products with whole numbers are exact.
#[allow(clippy::approx_constant)]
#[inline(always)]
fn reduce<S: Simd>(x: f32) -> (u32, f32, f32) {
    let shifted = S::fma32(x, FRAC_2_PI, MAGIC);
    let n = shifted - MAGIC;
    let rest = S::fma32(n, -3.139_164_7e-7, S::fma32(n, -1.570_796, x));
    let r = S::fma32(n, -5.390_302_5e-15, rest);
    (shifted.to_bits().wrapping_sub(MAGIC.to_bits()), r, S::fma32(n, -5.390_302_5e-15, rest - r))
}

#[inline(always)]
fn polynomial<S: Simd, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().reduce(|sum, c| S::fma32(sum, x, c)).unwrap_or(0.0)
}

/// The sine of `r` or, for odd `n`, its cosine; with the other sign when bit 1 of `n` is set.
#[inline(always)]
fn quadrant<S: Simd>(n: u32, r: f32, negative: u32) -> f32 {
    let z = r * r;
    let sin = S::fma32(polynomial::<S, 4>(z, SIN) * z, r, r);
    let cos = S::fma32(S::fma32(polynomial::<S, 3>(z, COS), z, -0.5), z, 1.0);
    let y = if n & 1 != 0 { cos } else { sin };
    f32::from_bits(y.to_bits() ^ ((negative & 2) << 30))
}

#[inline(always)]
pub fn sin<S: Simd>(x: f32) -> f32 {
    let (n, r, _) = reduce::<S>(x);
    let y = quadrant::<S>(n, r, n);
    // -0 stays -0.
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn cos<S: Simd>(x: f32) -> f32 {
    let (n, r, _) = reduce::<S>(x);
    let next = n.wrapping_add(1);
    quadrant::<S>(next, r, next)
}

#[inline(always)]
pub fn tan<S: Simd>(x: f32) -> f32 {
    let (n, r, lost) = reduce::<S>(x);
    let z = r * r;
    // The slope of the tangent is about 1 + 1.5 z.
    let rest = S::fma32(polynomial::<S, 7>(z, TAN) * z, r, S::fma32(1.5 * z, lost, lost));
    let t = r + rest;
    let lost = (r - t) + rest;
    let q = -1.0 / t;
    let turned = S::fma32(q, S::fma32(q, lost, S::fma32(q, t, 1.0)), q);
    let y = if n & 1 != 0 { turned } else { t };
    if x == 0.0 { x } else { y }
}
