//! Fourier transforms along dims.

pub mod host;
