//! Softmax and its logarithm, with gradients.

pub mod cuda;
pub mod host;
