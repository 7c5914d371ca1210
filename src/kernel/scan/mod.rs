//! Cumulative sums, products, extremes.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
