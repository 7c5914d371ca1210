//! What becomes of work that goes wrong: diagnostics, poison, the ledger of what is under way, the ends of runs.

use crate::base::diag::Diag;
use std::sync::Arc;

pub mod diagnose;
pub mod ended;
pub mod ending;
pub mod last_words;
pub mod ledger;
pub mod poison;
pub mod suspects;
pub mod trail;
pub mod try_block;

/// Faults with their nodes, as places in a window.
pub type Found = Vec<(usize, Arc<Diag>)>;
