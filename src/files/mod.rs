//! Floor 1: file formats as bytes in, arrays out. Knows neither tensors nor devices.

pub mod array;
pub mod csv;
pub mod image;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod write;
