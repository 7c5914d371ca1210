//! Sorting, distinct values, histograms.

pub mod distinct;
pub mod histogram;
pub mod sort;
