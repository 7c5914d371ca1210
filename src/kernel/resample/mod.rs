//! Interpolation and padding by copied elements.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
pub mod pad;
