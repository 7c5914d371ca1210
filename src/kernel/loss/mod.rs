//! Cross entropy and negative log likelihood.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
