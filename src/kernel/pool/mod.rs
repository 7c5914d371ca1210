//! Pooling and its gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
