//! The kinds of devices.

pub mod cuda;
pub mod device_set;
pub mod simulated;
pub mod touch;
