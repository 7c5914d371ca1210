//! Runs windows, makes copies, and reads values.

pub mod device_prefetch;
pub mod host_access;
mod operands;
pub mod transfer;
pub mod window;
