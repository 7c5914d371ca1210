//! Layer, group, RMS and batch normalization.

pub mod cuda;
pub mod host;
