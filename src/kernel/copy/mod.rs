//! Copies, fills, and operations that only move elements: concatenation, repetition, flips, tril and triu, transposition.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_transpose;
pub mod host;
