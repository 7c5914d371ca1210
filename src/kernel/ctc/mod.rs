//! The CTC loss.

pub mod cuda;
pub mod host;
