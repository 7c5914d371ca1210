//! Sorting, the largest and middle elements, distinct values.

pub mod cuda;
pub mod cuda_unique;
pub mod host;
