//! Functions about tensors that are not rows: literals, files, modes, settings, pictures.

pub mod autograd;
pub mod bits;
pub mod checkpoint;
pub mod elementwise;
pub mod generators;
pub mod hooks;
pub mod literal;
pub mod modes;
pub mod pictures;
pub mod questions;
pub mod recompute;
pub mod settings;
pub mod storage;
