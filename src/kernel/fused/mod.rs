//! Programs of element-wise operations and reductions in one pass, interpreted on the host and compiled on GPUs.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
