//! `f64` functions.

use super::Math;
use crate::kernel::cpu::simd::Simd;

impl Math for f64 {
    #[inline(always)]
    fn exp<S: Simd>(self) -> f64 {
        self.exp()
    }

    #[inline(always)]
    fn tanh<S: Simd>(self) -> f64 {
        self.tanh()
    }
}
