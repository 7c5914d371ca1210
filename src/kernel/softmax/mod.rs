//! Softmax and its logarithm, with gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
