//! The interface between a host program and its scripts: tensors, values, functions and types.

pub mod exchange;
#[cfg(feature = "ndarray")]
pub mod ndarrays;
pub mod passing;
pub mod register;
