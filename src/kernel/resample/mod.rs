//! Interpolation and padding by copied elements.

pub mod cuda;
pub mod host;
pub mod pad;
