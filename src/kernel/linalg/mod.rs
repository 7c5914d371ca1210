//! Factorizations, solutions of linear systems, spectra, matrix functions.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
