//! Spectra: Fourier transforms, their frequencies, and windows.

pub mod core;
pub mod frequencies;
pub mod transforms;
pub mod windows;
