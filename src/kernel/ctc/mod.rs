//! The CTC loss.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
