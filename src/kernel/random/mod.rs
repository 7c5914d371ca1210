//! Random numbers, and sampling from given probabilities.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
pub mod multinomial;
