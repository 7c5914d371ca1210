//! Copies, fills, and what only moves elements: concatenation, repetition, flips, triangles, transposition.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_transpose;
pub mod host;
