//! Pooling and its gradients.

pub mod cuda;
pub mod host;
