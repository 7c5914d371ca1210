//! Failed work: diagnostics, poison, the ledger of work in flight, the ends of runs.

use crate::base::diag::Diag;
use std::sync::Arc;

pub mod call_chain;
pub mod diagnose;
pub mod ledger;
pub mod loss_report;
pub mod outside;
pub mod poison;
pub mod shutdown;
pub mod suspects;
pub mod try_block;
pub mod unfinished;

/// Faults with their nodes, as indices in a window.
pub type Found = Vec<(usize, Arc<Diag>)>;
