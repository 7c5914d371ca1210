//! The standard library in `std/` as texts: its files, the signatures in them, and which functions a script can
//! reach.

pub mod reach;
pub mod texts;
