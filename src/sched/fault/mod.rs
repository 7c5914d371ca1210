//! What becomes of work that goes wrong: diagnostics, poison, the ledger of what is under way, the ends of runs.

pub mod diagnose;
pub mod ending;
pub mod last_words;
pub mod ledger;
pub mod poison;
pub mod suspects;
pub mod trail;
pub mod try_block;
pub mod ward;
