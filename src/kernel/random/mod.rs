//! Random numbers: what draws them, and sampling without a formula.

pub mod cuda;
pub mod host;
pub mod multinomial;
