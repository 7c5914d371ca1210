//! Random values by element index.

use crate::base::rng;
use crate::kernel::program::{Class, Draw};

/// Values of elements `start`, `start + step`, ... of an operation with key `seed` and first counter `first`.
///
/// # Safety
/// `out` has room for `n` elements of `class`.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn fill(
    draw: Draw,
    class: Class,
    seed: u64,
    first: u64,
    start: u64,
    step: u64,
    n: usize,
    out: *mut u8,
) {
    for k in 0..n {
        let word = rng::word(seed, first, start.wrapping_add(step.wrapping_mul(k as u64)));
        // SAFETY: the caller's promise.
        unsafe {
            match (draw, class) {
                (Draw::Uniform | Draw::Normal, Class::F64) => *out.cast::<f64>().add(k) = rng::uniform_f32(word) as f64,
                (Draw::Uniform | Draw::Normal, _) => *out.cast::<f32>().add(k) = rng::uniform_f32(word),
                (Draw::Word, _) => *out.cast::<i64>().add(k) = word as i64,
            }
        }
    }
}
