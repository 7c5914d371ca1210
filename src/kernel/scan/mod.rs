//! Cumulative sums, products, extremes.

pub mod cuda;
pub mod host;
