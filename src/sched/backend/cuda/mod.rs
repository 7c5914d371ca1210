//! NVIDIA GPUs.

pub mod lane;
pub mod submit;
pub mod vendor;
