//! The two types that dense kernels compute in, and code compiled once per vector width.
//!
//! Knows nothing of views: 16-bit operands are widened before they get here (`staging`).

use super::simd::{Simd, levels};
use super::vector::Vector;
use crate::base::dtype::DType;
use crate::kernel::math::Math;

/// `f32` or `f64`.
pub trait Real: faer::traits::RealField + Copy + Default + std::iter::Sum + std::ops::Neg<Output = Self> {
    const DTYPE: DType;
    const ZERO: Self;
    const ONE: Self;
    const NEG_INF: Self;
    const INF: Self;
    const EPS: Self;
    /// The vectors of this type on a machine of level `S`.
    type In<S: Simd>: Vector<Elem = Self>;

    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// e to the power of `self`, without branches or calls for `f32`, so that loops over it become vectors.
    fn exp(self) -> Self;
    /// `exp` of each lane.
    ///
    /// # Safety
    /// The machine is of level `S`.
    unsafe fn exp_in<S: Simd>(x: Self::In<S>) -> Self::In<S>;
    /// The hyperbolic tangent of each lane.
    ///
    /// # Safety
    /// The machine is of level `S`.
    unsafe fn tanh_in<S: Simd>(x: Self::In<S>) -> Self::In<S>;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    /// To the nearest whole number, of two the even one.
    fn round_even(self) -> Self;
    /// `self * a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;

    fn from_usize(n: usize) -> Self {
        Self::from_f64(n as f64)
    }

    fn is_nan(self) -> bool {
        #[allow(clippy::eq_op)]
        {
            self != self
        }
    }

    /// The maximum; NaN if either is NaN.
    #[inline(always)]
    fn max_nan(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }
}

impl Real for f32 {
    const DTYPE: DType = DType::F32;
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const NEG_INF: f32 = f32::NEG_INFINITY;
    const INF: f32 = f32::INFINITY;
    const EPS: f32 = f32::EPSILON;
    type In<S: Simd> = S::F32;

    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }

    /// Error under 1.5 units in the last place; subnormal results are not flushed, NaN propagates. Cody and Waite's
    /// reduction to half of ln 2, then the polynomial of Cephes' `expf`.
    #[inline(always)]
    fn exp(self) -> f32 {
        let x = if self > 89.0 { 89.0 } else { self };
        let x = if x < -104.0 { -104.0 } else { x };
        // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the mantissa.
        let shifted = x.mul_add(std::f32::consts::LOG2_E, 12_582_912.0);
        let n = shifted - 12_582_912.0;
        let r = n.mul_add(-0.693_359_4, x);
        let r = n.mul_add(2.121_944_4e-4, r);
        let mut p = 1.987_569_1e-4f32;
        p = p.mul_add(r, 1.398_199_9e-3);
        p = p.mul_add(r, 8.333_452e-3);
        p = p.mul_add(r, 4.166_579_6e-2);
        p = p.mul_add(r, 1.666_666_5e-1);
        p = p.mul_add(r, 0.5);
        let p = p.mul_add(r * r, r + 1.0);
        // Two factors, because 2^n alone is not a normal number at the ends of the range.
        let n = (shifted.to_bits() as i32).wrapping_sub(0x4B40_0000);
        let half = n >> 1;
        let power = |k: i32| f32::from_bits((k.wrapping_add(127) as u32).wrapping_shl(23));
        p * power(half) * power(n.wrapping_sub(half))
    }
    #[inline(always)]
    unsafe fn exp_in<S: Simd>(x: S::F32) -> S::F32 {
        // SAFETY: whoever calls `exp_in` runs on a machine with the instructions of `S`.
        unsafe { crate::kernel::math::vector::exp(x) }
    }
    #[inline(always)]
    unsafe fn tanh_in<S: Simd>(x: S::F32) -> S::F32 {
        // SAFETY: whoever calls `tanh_in` runs on a machine with the instructions of `S`.
        unsafe { crate::kernel::math::vector::tanh(x) }
    }
    #[inline(always)]
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn floor(self) -> f32 {
        f32::floor(self)
    }
    #[inline(always)]
    fn round_even(self) -> f32 {
        f32::round_ties_even(self)
    }
    #[inline(always)]
    fn fma(self, a: f32, b: f32) -> f32 {
        self.mul_add(a, b)
    }
}

impl Real for f64 {
    const DTYPE: DType = DType::F64;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const NEG_INF: f64 = f64::NEG_INFINITY;
    const INF: f64 = f64::INFINITY;
    const EPS: f64 = f64::EPSILON;
    type In<S: Simd> = S::F64;

    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    unsafe fn exp_in<S: Simd>(x: S::F64) -> S::F64 {
        // SAFETY: whoever calls `exp_in` runs on a machine with the instructions of `S`.
        unsafe { each_lane::<S>(x, EXP[S::LEVEL]) }
    }
    #[inline(always)]
    unsafe fn tanh_in<S: Simd>(x: S::F64) -> S::F64 {
        // SAFETY: whoever calls `tanh_in` runs on a machine with the instructions of `S`.
        unsafe { each_lane::<S>(x, TANH[S::LEVEL]) }
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn floor(self) -> f64 {
        f64::floor(self)
    }
    #[inline(always)]
    fn round_even(self) -> f64 {
        f64::round_ties_even(self)
    }
    #[inline(always)]
    fn fma(self, a: f64, b: f64) -> f64 {
        self.mul_add(a, b)
    }
}

/// Computes a function of `n` lanes in place.
type Lanes = unsafe fn(*mut f64, usize);
const EXP: [Lanes; 3] = levels!(<S> fn(lanes: *mut f64, n: usize) {
    for i in 0..n {
        *lanes.add(i) = Math::exp::<S>(*lanes.add(i));
    }
});
const TANH: [Lanes; 3] = levels!(<S> fn(lanes: *mut f64, n: usize) {
    for i in 0..n {
        *lanes.add(i) = Math::tanh::<S>(*lanes.add(i));
    }
});

/// A function of each lane. Not: inlined, which would take a polynomial for each of its places.
///
/// # Safety
/// The machine is of level `S`.
#[inline(always)]
unsafe fn each_lane<S: Simd>(x: S::F64, function: Lanes) -> S::F64 {
    let mut lanes = [0.0; 8];
    // SAFETY: the machine has the instructions of `S`; no vector of f64 has more than 8 lanes.
    unsafe {
        x.store(lanes.as_mut_ptr());
        function(lanes.as_mut_ptr(), S::F64::N);
        S::F64::load(lanes.as_ptr())
    }
}

/// Writes a function over `T: Real`, or over that and the machine level `S: Simd`, that is compiled for AVX-512, for
/// AVX2 and for the baseline, and picks one of them at each call (an atomic load). Of f64 there is none for AVX-512, which takes a
/// third less code, unless it is `at_each_level`, nor of functions that are `without_highest`.
///
/// Not: closures that may stay calls (those given to `array::from_fn` or `map` of an array): they are compiled for
/// the baseline, and vectors are passed to them through memory.
macro_rules! widths {
    (without_highest: $($function:tt)*) => {
        $crate::kernel::host::real::widths! { @[1] $($function)* }
    };
    (at_each_level: $($function:tt)*) => {
        $crate::kernel::host::real::widths! { @[16] $($function)* }
    };
    (@[$bytes:literal] $(#[$meta:meta])* $vis:vis fn $name:ident<T>($($rest:tt)*) $($tail:tt)*) => {
        $crate::kernel::host::real::widths! { @[$bytes] $(#[$meta])* $vis fn $name<T, S>($($rest)*) $($tail)* }
    };
    (@[$bytes:literal] $(#[$meta:meta])* $vis:vis fn $name:ident<T, $S:ident>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name<T: $crate::kernel::host::real::Real>($($arg: $ty),*) $(-> $ret)? {
            use $crate::kernel::host::real::Real;
            use $crate::kernel::host::simd;
            #[inline(always)]
            #[allow(clippy::extra_unused_type_parameters)]
            fn body<T: Real, $S: simd::Simd>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]
                fn wide512<T: Real>($($arg: $ty),*) $(-> $ret)? { body::<T, simd::Avx512>($($arg),*) }
                #[target_feature(enable = "avx2,fma,bmi2")]
                fn wide256<T: Real>($($arg: $ty),*) $(-> $ret)? { body::<T, simd::Avx2>($($arg),*) }
                match simd::level() {
                    // SAFETY: the processor has the features that `wide512` is compiled for.
                    0 if size_of::<T>() < $bytes => return unsafe { wide512::<T>($($arg),*) },
                    // SAFETY: the processor has the features that `wide256` is compiled for.
                    0 | 1 => return unsafe { wide256::<T>($($arg),*) },
                    _ => {}
                }
            }
            body::<T, simd::Portable>($($arg),*)
        }
    };
    ($($function:tt)*) => {
        $crate::kernel::host::real::widths! { @[8] $($function)* }
    };
}
pub(crate) use widths;

/// Calls `$body` with `$T` as the type that `$dtype` computes in; other dtypes do nothing.
/// Invariant: rows only launch these kernels with floats.
macro_rules! real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.compute() {
            $crate::base::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::base::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            other => debug_assert!(false, "no dense kernel for {other}"),
        }
    };
}
pub(crate) use real;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_over_the_whole_range() {
        let mut x = -110.0f32;
        while x < 95.0 {
            let (ours, exact) = (Real::exp(x), (x as f64).exp());
            let error = (ours as f64 - exact).abs();
            assert!(
                exact > f32::MAX as f64 && ours.is_infinite() || error <= exact * 2e-7 + 2e-45,
                "{x}: {ours} {exact}"
            );
            x += 0.0137;
        }
        assert!(Real::exp(f32::NAN).is_nan());
        assert_eq!(Real::exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(Real::exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(Real::exp(0.0f32), 1.0);
    }
}
