//! Random values.

pub mod distributions;
pub mod poisson_binomial;
pub mod reparameterized;
