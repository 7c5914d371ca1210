//! Sums, extremes, moments and running results along dims.

pub mod covariance;
pub mod differences;
pub mod magnitude;
pub mod minmax;
pub mod moments;
pub mod reduce;
pub mod scan;
