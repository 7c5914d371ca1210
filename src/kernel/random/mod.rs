//! Random numbers, and sampling from given probabilities.

pub mod cuda;
pub mod host;
pub mod multinomial;
