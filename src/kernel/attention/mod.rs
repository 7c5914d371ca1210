//! Attention: scaled dot products, on the host and on GPUs.

pub mod cuda;
pub mod cuda_mma;
pub mod host;
