//! Tensors from nothing, and conversions.

pub mod create;
pub mod signal_windows;
pub mod spread;
