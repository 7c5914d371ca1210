//! tscript: Rhai with tensors, devices, streams and events.

pub mod base;
pub mod device;
pub mod files;
pub mod kernel;
pub mod op;
pub mod sched;
pub mod script;
pub mod tensor;
pub mod tools;
