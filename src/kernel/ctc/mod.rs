//! The loss of connectionist temporal classification.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
