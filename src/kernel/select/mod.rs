//! Selection by masks, positions of elements that are not zero.

pub mod cuda;
pub mod host;
