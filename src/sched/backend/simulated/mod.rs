//! GPUs that the machine does not have.

pub mod submit;
