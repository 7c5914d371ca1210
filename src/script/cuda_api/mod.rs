//! Devices, streams and events, and the module `cuda`.

pub mod autocast;
pub mod cuda;
pub mod devices;
mod kernel;
pub mod naming;
pub mod streams;
