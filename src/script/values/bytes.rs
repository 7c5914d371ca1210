//! The elements of blobs.

use crate::base::code;
use crate::base::diag::Diag;

/// The error for an integer that is no byte.
pub fn not_a_byte(value: i64) -> Box<Diag> {
    Diag::error(code::VALUE, format!("a byte is from 0 to 255, not {value}"))
}
