//! The loss of connectionist temporal classification.

pub mod cuda;
pub mod host;
