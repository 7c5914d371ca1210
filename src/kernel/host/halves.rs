//! Runs of `f16` to `f32` and back, by the machine's own instructions where it has them.

use crate::kernel::fused::host::{f16_to_f32, f32_to_f16};

/// # Safety
/// As `Simd::widen_halves`, here and below for both ways.
#[inline(always)]
pub unsafe fn widen(from: *const u16, to: *mut f32, n: usize) {
    for i in 0..n {
        // SAFETY: `i` is below `n` (this function's contract).
        unsafe { *to.add(i) = f16_to_f32(*from.add(i)) };
    }
}

#[inline(always)]
#[allow(clippy::missing_safety_doc)]
pub unsafe fn narrow(from: *const f32, to: *mut u16, n: usize) {
    for i in 0..n {
        // SAFETY: `i` is below `n` (this function's contract).
        unsafe { *to.add(i) = f32_to_f16(*from.add(i)) };
    }
}

/// `vectors!(names, lanes, intrinsics)`: whole vectors, and what is left one by one.
#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($widen_run:ident, $narrow_run:ident, $N:literal, $Half:ty,
     $load_half:ident $widen:ident $store:ident $load:ident $narrow:ident $store_half:ident) => {
        #[inline(always)]
        #[allow(clippy::missing_safety_doc)]
        pub unsafe fn $widen_run(from: *const u16, to: *mut f32, n: usize) {
            use std::arch::x86_64::*;
            let whole = n - n % $N;
            // SAFETY: the machine has the level, and the memories have `n` elements (this function's contract).
            unsafe {
                for i in (0..whole).step_by($N) {
                    $store(to.add(i), $widen($load_half(from.add(i).cast::<$Half>())));
                }
                widen(from.add(whole), to.add(whole), n - whole);
            }
        }

        #[inline(always)]
        #[allow(clippy::missing_safety_doc)]
        pub unsafe fn $narrow_run(from: *const f32, to: *mut u16, n: usize) {
            use std::arch::x86_64::*;
            let whole = n - n % $N;
            // SAFETY: the machine has the level, and the memories have `n` elements (this function's contract).
            unsafe {
                for i in (0..whole).step_by($N) {
                    let half = $narrow::<_MM_FROUND_TO_NEAREST_INT>($load(from.add(i)));
                    $store_half(to.add(i).cast::<$Half>(), half);
                }
                narrow(from.add(whole), to.add(whole), n - whole);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vectors!(widen_512, narrow_512, 16, __m256i,
    _mm256_loadu_si256 _mm512_cvtph_ps _mm512_storeu_ps _mm512_loadu_ps _mm512_cvtps_ph _mm256_storeu_si256);
#[cfg(target_arch = "x86_64")]
vectors!(widen_256, narrow_256, 8, __m128i,
    _mm_loadu_si128 _mm256_cvtph_ps _mm256_storeu_ps _mm256_loadu_ps _mm256_cvtps_ph _mm_storeu_si128);

#[cfg(not(target_arch = "x86_64"))]
pub use {narrow as narrow_256, narrow as narrow_512, widen as widen_256, widen as widen_512};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::host::simd::{level, levels};

    type Both = unsafe fn(*const u16, *mut f32, *mut u16, usize);

    /// Every `f16` on every level of the machine is what it is by the integer form, and comes back; and values between two
    /// of them are rounded alike.
    #[test]
    fn every_half_on_every_level() {
        const ALL: [Both; 3] = levels!(<S> fn(bits: *const u16, wide: *mut f32, back: *mut u16, n: usize) {
            S::widen_halves(bits, wide, n);
            S::narrow_halves(wide, back, n);
        });
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        for version in &ALL[level()..] {
            for n in [bits.len(), bits.len() - 5] {
                let (mut wide, mut back) = (vec![0f32; n], vec![0u16; n]);
                // SAFETY: the vectors have `n` elements; the machine has the level.
                unsafe { version(bits.as_ptr(), wide.as_mut_ptr(), back.as_mut_ptr(), n) };
                for i in 0..n {
                    let x = f16_to_f32(bits[i]);
                    assert!(wide[i] == x || (wide[i].is_nan() && x.is_nan()), "{i:x}");
                    assert!(back[i] == bits[i] || x.is_nan(), "{i:x}");
                }
            }
        }
    }

    #[test]
    fn ties_and_values_between() {
        const ALL: [unsafe fn(*const f32, *mut u16, usize); 3] =
            levels!(<S> fn(from: *const f32, to: *mut u16, n: usize) { S::narrow_halves(from, to, n) });
        let between: Vec<f32> = (0..0x7c00u16)
            .flat_map(|bits| {
                let (low, high) = (f16_to_f32(bits), f16_to_f32(bits + 1));
                let middle = if high.is_infinite() { 65_520.0 } else { (low + high) * 0.5 };
                [middle, f32::from_bits(middle.to_bits() - 1), -f32::from_bits(middle.to_bits() + 1)]
            })
            .collect();
        for version in &ALL[level()..] {
            let mut half = vec![0u16; between.len()];
            // SAFETY: both vectors have as many elements; the machine has the level.
            unsafe { version(between.as_ptr(), half.as_mut_ptr(), between.len()) };
            for (x, half) in between.iter().zip(half) {
                assert_eq!(half, f32_to_f16(*x), "{x:e}");
            }
        }
    }
}
