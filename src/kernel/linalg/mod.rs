//! Factorizations, solutions of linear systems, spectra, matrix functions.

pub mod cuda;
pub mod host;
