//! Attention: scaled dot products, on the host and on GPUs.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_mma;
pub mod host;
