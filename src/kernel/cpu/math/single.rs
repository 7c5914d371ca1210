//! `f32` functions.

use super::Math;
use crate::kernel::cpu::simd::Simd;

/// Adding and subtracting it rounds an f32 of magnitude below 2^22 to an integer, half to even.
const ROUND: f32 = 12_582_912.0;

/// Powers of two: `2^n` for an integer-valued `n` in -252..=254, in two factors so that results may be
/// subnormal or reach infinity.
#[inline(always)]
fn scale(y: f32, n: f32) -> f32 {
    let n = n as i32;
    let half = n >> 1;
    let a = f32::from_bits(((half + 127) << 23) as u32);
    let b = f32::from_bits(((n - half + 127) << 23) as u32);
    y * a * b
}

/// `e^r - 1` for |r| <= 0.36: minimax polynomial as in Cephes' `expf`, one degree higher.
#[inline(always)]
fn expm1_small<S: Simd>(r: f32) -> f32 {
    let mut p = 1.988_569_7e-4f32;
    p = S::fma32(p, r, 1.393_816_4e-3);
    p = S::fma32(p, r, 8.333_452e-3);
    p = S::fma32(p, r, 4.166_580e-2);
    p = S::fma32(p, r, 1.666_666_5e-1);
    p = S::fma32(p, r, 0.5);
    S::fma32(p * r, r, r)
}

impl Math for f32 {
    #[inline(always)]
    fn exp<S: Simd>(self) -> f32 {
        let x = if self > 130.0 { 130.0 } else { self };
        let x = if x < -130.0 { -130.0 } else { x };
        let n = S::fma32(x, std::f32::consts::LOG2_E, ROUND) - ROUND;
        let r = S::fma32(n, -0.693_359_4, x);
        let r = S::fma32(n, 2.121_944_4e-4, r);
        scale(1.0 + expm1_small::<S>(r), n)
    }

    #[inline(always)]
    fn tanh<S: Simd>(self) -> f32 {
        let e = Math::exp::<S>(2.0 * self.abs());
        let big = 1.0 - 2.0 / (e + 1.0);
        let z = self * self;
        let mut p = -5.704_988_7e-3f32;
        p = S::fma32(p, z, 2.063_908_9e-2);
        p = S::fma32(p, z, -5.373_971_6e-2);
        p = S::fma32(p, z, 1.333_144_2e-1);
        p = S::fma32(p, z, -3.333_328e-1);
        let small = S::fma32(p * z, self, self);
        if self.abs() < 0.625 { small } else { big.copysign(self) }
    }
}
