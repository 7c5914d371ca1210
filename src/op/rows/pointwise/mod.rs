//! Functions of one element, or of one element of each operand.

pub mod arith;
pub mod bessel;
pub mod blend;
pub mod compare;
pub mod complex;
pub mod complex_parts;
pub mod convert;
pub mod distribution_tails;
pub mod power;
pub mod special;
pub mod unary;
pub mod value_checks;
