//! The rows, one file a family. A new operation is a new row here and nothing elsewhere.

pub mod arith;
pub mod create;
pub mod indexing;
pub mod reduce;
pub mod view;

use super::row::Op;

/// Every family, in the order of the manual.
pub static FAMILIES: &[&[&Op]] = &[create::ROWS, arith::ROWS, reduce::ROWS, view::ROWS, indexing::ROWS];
