//! Sorted search, counts of values, histograms.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
