//! Floor 6: the program. Goes through `Session`; knows neither kernels nor devices.

pub mod render;
