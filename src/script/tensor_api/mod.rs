//! Functions about tensors that are not rows: literals, files, modes, settings, pictures.

pub mod checkpoint;
pub mod literal;
pub mod modes;
pub mod pictures;
pub mod questions;
pub mod settings;
pub mod storage;
