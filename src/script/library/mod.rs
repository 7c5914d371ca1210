//! The standard library in `std/` as texts: its files, the parameters that they write down, what of them a script can reach.

pub mod reach;
pub mod texts;
