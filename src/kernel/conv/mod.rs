//! Convolutions and their gradients.

pub mod cuda;
pub mod host;
