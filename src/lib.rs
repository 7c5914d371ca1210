//! tscript: Rhai with tensors, devices, streams and events.

pub mod base;
