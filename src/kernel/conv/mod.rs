//! Convolutions and their gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
