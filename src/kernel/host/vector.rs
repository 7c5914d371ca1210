//! Explicit vectors of floats, for loops that the compiler does not vectorize by itself: sums, dot products, and what
//! needs a particular instruction.
//!
//! A body over `V: Vector` is compiled for each machine level like any other (`simd`). Knows nothing of functions;
//! `math::vector` builds those on it.

// The safety contract of all methods is stated once, at `Vector`.
#![allow(clippy::missing_safety_doc)]

/// `N` floats in a register. NaN: `min` and `max` return their second operand if either is NaN.
///
/// # Safety
/// Of every method: the machine has the vector's instructions, and pointers name `N` elements (any alignment, but
/// `stream` wants that of the whole vector).
pub trait Vector: Copy {
    type Elem: Copy;
    const N: usize;

    unsafe fn splat(x: Self::Elem) -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    /// Stores without reading the line into the cache first.
    unsafe fn stream(self, to: *mut Self::Elem);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self * a + b`, rounded once where the machine can.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    unsafe fn abs(self) -> Self;
    /// In each lane `yes` if `self` is less than `other`, else `no`.
    unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    unsafe fn copysign(self, sign: Self) -> Self;
    /// `self * 2^n` for an integral `n` of magnitude up to 250; subnormal and infinite results are correct.
    unsafe fn scale(self, n: Self) -> Self;
    /// The sum of all lanes, adding halves first.
    unsafe fn sum(self) -> Self::Elem;
    /// The largest lane; NaN is ignored unless all lanes are NaN.
    unsafe fn largest(self) -> Self::Elem;
}

/// Vectors for machines without AVX2: an array that the compiler may vectorize, of 16 bytes as registers there have them.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>([T; N]);

macro_rules! plain {
    ($T:ident, $N:literal, $Bits:ident, $bias:literal, $mantissa:literal) => {
        impl Vector for Plain<$T, $N> {
            type Elem = $T;
            const N: usize = $N;

            #[inline(always)]
            unsafe fn splat(x: $T) -> Self {
                Plain([x; $N])
            }
            #[inline(always)]
            unsafe fn load(from: *const $T) -> Self {
                // SAFETY: `from` names `N` elements (`Vector`), and an array of them may lie at any address.
                Plain(unsafe { from.cast::<[$T; $N]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $T) {
                // SAFETY: `to` names `N` elements (`Vector`), and they may lie at any address.
                unsafe { to.cast::<[$T; $N]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut $T) {
                // SAFETY: `to` names `N` elements (`Vector`), which is what `store` asks for.
                unsafe { self.store(to) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] + other.0[i]))
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] - other.0[i]))
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] * other.0[i]))
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] / other.0[i]))
            }
            #[inline(always)]
            unsafe fn fma(self, a: Self, b: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i] * a.0[i] + b.0[i]))
            }
            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                Plain(std::array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            unsafe fn abs(self) -> Self {
                Plain(self.0.map($T::abs))
            }
            #[inline(always)]
            unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self {
                Plain(std::array::from_fn(|i| if self.0[i] < other.0[i] { yes.0[i] } else { no.0[i] }))
            }
            #[inline(always)]
            unsafe fn copysign(self, sign: Self) -> Self {
                Plain(std::array::from_fn(|i| self.0[i].copysign(sign.0[i])))
            }
            #[inline(always)]
            unsafe fn scale(self, n: Self) -> Self {
                let power = |k: i32| $T::from_bits((k.wrapping_add($bias) as $Bits) << $mantissa);
                Plain(std::array::from_fn(|i| {
                    let k = n.0[i] as i32;
                    // Two factors, since 2^k alone may not be a normal number.
                    self.0[i] * power(k >> 1) * power(k - (k >> 1))
                }))
            }
            #[inline(always)]
            unsafe fn sum(self) -> $T {
                let (mut lanes, mut width) = (self.0, $N / 2);
                while width > 0 {
                    for i in 0..width {
                        lanes[i] += lanes[i + width];
                    }
                    width /= 2;
                }
                lanes[0]
            }
            #[inline(always)]
            unsafe fn largest(self) -> $T {
                self.0.into_iter().fold($T::NAN, |a, b| if b > a || a.is_nan() { b } else { a })
            }
        }
    };
}
plain!(f32, 4, u32, 127, 23);
plain!(f64, 2, u64, 1023, 52);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// The methods that the four types share, by the names of their instructions.
    macro_rules! common {
        ($T:ty, $N:literal, $set1:ident $load:ident $store:ident $stream:ident $add:ident $sub:ident $mul:ident
            $div:ident $fma:ident $min:ident $max:ident) => {
            type Elem = $T;
            const N: usize = $N;

            #[inline(always)]
            unsafe fn splat(x: $T) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $set1(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $T) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`); `from` names `N` elements.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $T) {
                // SAFETY: the machine has the instructions of this vector (`Vector`); `to` names `N` elements.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut $T) {
                // SAFETY: the machine has the instructions of this vector (`Vector`); `to` names `N` elements and is
                // aligned to the vector.
                unsafe { $stream(to, self) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $div(self, other) }
            }
            #[inline(always)]
            unsafe fn fma(self, a: Self, b: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $fma(self, a, b) }
            }
            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $min(self, other) }
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // SAFETY: the machine has the instructions of this vector (`Vector`).
                unsafe { $max(self, other) }
            }
        };
    }

    impl Vector for __m512 {
        common!(f32, 16, _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_add_ps
            _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_fmadd_ps _mm512_min_ps _mm512_max_ps);
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_abs_ps(self) }
        }
        #[inline(always)]
        unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self, other), no, yes) }
        }
        #[inline(always)]
        unsafe fn copysign(self, sign: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`). The table is "first where the mask is set, else second".
            unsafe {
                let mask = _mm512_set1_epi32(i32::MIN);
                let (a, b) = (_mm512_castps_si512(sign), _mm512_castps_si512(self));
                _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xca>(mask, a, b))
            }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_scalef_ps(self, n) }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_reduce_add_ps(self) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { largest(self) }
        }
    }

    impl Vector for __m512d {
        common!(f64, 8, _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_add_pd
            _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_fmadd_pd _mm512_min_pd _mm512_max_pd);
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_abs_pd(self) }
        }
        #[inline(always)]
        unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(self, other), no, yes) }
        }
        #[inline(always)]
        unsafe fn copysign(self, sign: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe {
                let mask = _mm512_set1_epi64(i64::MIN);
                let (a, b) = (_mm512_castpd_si512(sign), _mm512_castpd_si512(self));
                _mm512_castsi512_pd(_mm512_ternarylogic_epi64::<0xca>(mask, a, b))
            }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_scalef_pd(self, n) }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f64 {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { _mm512_reduce_add_pd(self) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f64 {
            // SAFETY: the machine has AVX-512 (`Vector`).
            unsafe { largest(self) }
        }
    }

    impl Vector for __m256 {
        common!(f32, 8, _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_add_ps
            _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps _mm256_min_ps _mm256_max_ps);
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self) }
        }
        #[inline(always)]
        unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(self, other)) }
        }
        #[inline(always)]
        unsafe fn copysign(self, sign: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe {
                let mask = _mm256_set1_ps(-0.0);
                _mm256_or_ps(_mm256_and_ps(mask, sign), _mm256_andnot_ps(mask, self))
            }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe {
                let k = _mm256_cvtps_epi32(n);
                let half = _mm256_srai_epi32::<1>(k);
                let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, _mm256_set1_epi32(127)));
                let rest = _mm256_add_epi32(_mm256_sub_epi32(k, half), _mm256_set1_epi32(127));
                let y = _mm256_mul_ps(self, _mm256_castsi256_ps(first));
                _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(rest)))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { sum(self) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { largest(self) }
        }
    }

    impl Vector for __m256d {
        common!(f64, 4, _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_add_pd
            _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd _mm256_min_pd _mm256_max_pd);
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self) }
        }
        #[inline(always)]
        unsafe fn less(self, other: Self, yes: Self, no: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { _mm256_blendv_pd(no, yes, _mm256_cmp_pd::<_CMP_LT_OQ>(self, other)) }
        }
        #[inline(always)]
        unsafe fn copysign(self, sign: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe {
                let mask = _mm256_set1_pd(-0.0);
                _mm256_or_pd(_mm256_and_pd(mask, sign), _mm256_andnot_pd(mask, self))
            }
        }
        #[inline(always)]
        unsafe fn scale(self, n: Self) -> Self {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe {
                let k = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n));
                let half = _mm256_cvtepi32_epi64(_mm_srai_epi32::<1>(_mm256_cvtpd_epi32(n)));
                let bias = _mm256_set1_epi64x(1023);
                let first = _mm256_slli_epi64::<52>(_mm256_add_epi64(half, bias));
                let rest = _mm256_slli_epi64::<52>(_mm256_add_epi64(_mm256_sub_epi64(k, half), bias));
                _mm256_mul_pd(_mm256_mul_pd(self, _mm256_castsi256_pd(first)), _mm256_castsi256_pd(rest))
            }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f64 {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { sum(self) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f64 {
            // SAFETY: the machine has AVX2 and FMA (`Vector`).
            unsafe { largest(self) }
        }
    }

    /// Through the stack; called once for each row.
    #[inline(always)]
    unsafe fn largest<V: Vector<Elem: PartialOrd + Default>>(v: V) -> V::Elem {
        let mut lanes = [V::Elem::default(); 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { v.store(lanes.as_mut_ptr()) };
        let mut max = lanes[0];
        for &lane in &lanes[1..V::N] {
            // Also replaces a NaN, which is not comparable.
            if lane > max || max.partial_cmp(&max).is_none() {
                max = lane;
            }
        }
        max
    }

    #[inline(always)]
    unsafe fn sum<V: Vector<Elem: std::ops::AddAssign + Default>>(v: V) -> V::Elem {
        let mut lanes = [V::Elem::default(); 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { v.store(lanes.as_mut_ptr()) };
        let mut width = V::N / 2;
        while width > 0 {
            for i in 0..width {
                let other = lanes[i + width];
                lanes[i] += other;
            }
            width /= 2;
        }
        lanes[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::host::simd::{Portable, Simd, levels};

    unsafe fn check<V: Vector<Elem = f32>>() {
        let x: Vec<f32> = (0..V::N).map(|i| (i as f32 - 3.5) * 1.25).collect();
        let each = |f: unsafe fn(V) -> V| -> Vec<f32> {
            let mut y = vec![0.0; V::N];
            // SAFETY: `check` is called for levels of the machine alone; both vectors have `N` elements.
            unsafe { f(V::load(x.as_ptr())).store(y.as_mut_ptr()) };
            y
        };
        // SAFETY: the caller has the vector's instructions.
        unsafe {
            let want = |f: fn(f32) -> f32| x.iter().map(|&x| f(x)).collect::<Vec<f32>>();
            assert_eq!(each(|v| v.abs()), want(f32::abs));
            assert_eq!(each(|v| V::splat(2.0).copysign(v)), want(|x| 2f32.copysign(x)));
            assert_eq!(each(|v| v.scale(V::splat(-148.0))), want(|x| (x as f64 * 2f64.powi(-148)) as f32));
            assert_eq!(each(|v| v.scale(V::splat(128.0))), want(|x| (x as f64 * 2f64.powi(128)) as f32));
            assert_eq!(each(|v| v.max(V::splat(1.0)).min(V::splat(4.0))), want(|x| x.clamp(1.0, 4.0)));
            assert_eq!(each(|v| v.less(V::splat(1.0), V::splat(2.0), v)), want(|x| if x < 1.0 { 2.0 } else { x }));
            assert!(each(|v| V::splat(1.0).max(v.mul(V::splat(f32::NAN)))).iter().all(|x| x.is_nan()));
            let v = V::load(x.as_ptr());
            assert_eq!((v.sum(), v.largest()), (x.iter().sum(), x[V::N - 1]));
        }
    }

    #[test]
    fn every_level_agrees_with_scalars() {
        // SAFETY: levels from the machine's own on exist.
        unsafe {
            for version in &levels!(<S> fn() { check::<S::F32>() })[crate::kernel::host::simd::level()..] {
                version();
            }
            check::<<Portable as Simd>::F32>();
        }
    }
}
