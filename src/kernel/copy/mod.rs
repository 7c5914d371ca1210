//! Copies, fills, and operations that only move elements: concatenation, repetition, flips, tril and triu, transposition.

pub mod cuda;
pub mod cuda_transpose;
pub mod host;
