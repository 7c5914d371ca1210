//! Products of matrices.

pub mod cuda;
pub mod host;
