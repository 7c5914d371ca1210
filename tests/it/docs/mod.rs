//! The book in `docs/`: its code runs and prints what the pages say, its reference is that of the tables, its pages and
//! links exist. `TSCRIPT_BLESS=1` rewrites printed texts and the reference.

mod blocks;
mod links;
mod lists;
pub mod page;
mod reference;
mod tables;
