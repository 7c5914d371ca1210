//! Cross entropy and negative log likelihood.

pub mod cuda;
pub mod host;
