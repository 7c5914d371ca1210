//! Layer, group, RMS and batch normalization.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
