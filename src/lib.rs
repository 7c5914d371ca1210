//! tscript: Rhai with tensors, devices, streams and events.

pub mod base;
pub mod device;
pub mod files;
pub mod kernel;
pub mod script;
pub mod tools;
