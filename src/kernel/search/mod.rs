//! Sorted search, counts of values, histograms.

pub mod cuda;
pub mod host;
