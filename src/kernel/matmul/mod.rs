//! Products of matrices.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
