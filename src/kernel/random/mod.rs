//! Random numbers: what draws them, and sampling without a formula.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
pub mod multinomial;
