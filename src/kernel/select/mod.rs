//! Selection by masks, positions of elements that are not zero.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
