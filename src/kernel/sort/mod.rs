//! Sorting, the largest and middle elements, distinct values.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_unique;
pub mod host;
