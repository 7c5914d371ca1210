//! Copies, fills, and what only moves elements: concatenation, repetition, flips, triangles, transposition.

pub mod cuda;
pub mod cuda_transpose;
pub mod host;
