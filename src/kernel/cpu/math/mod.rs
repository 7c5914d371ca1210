//! Elementary functions that vectorise: one trait, implemented for `f32` and `f64`.
//!
//! Everything is branch-free (selects only), so a loop over it becomes vector code. Knows nothing of tiles.

mod double;
mod single;

use super::simd::Simd;

/// Functions of a float, compiled for a machine level `S`. The name says the mathematics; errors are at
/// most 2 units in the last place for `f32` unless a function says otherwise.
pub trait Math: Copy {
    fn exp<S: Simd>(self) -> Self;
    fn tanh<S: Simd>(self) -> Self;
}
