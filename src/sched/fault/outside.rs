//! Work that is no node, such as a file that is written while the script goes on: it has a place in the order of queueing
//! and the calls that led to it, so that its errors are told as those of operations are.

use crate::base::diag::Diag;
use crate::sched::runtime::Runtime;

/// When such work was queued, and under which calls.
#[derive(Clone, Copy)]
pub struct Queued {
    pub number: u64,
    call_chain: u32,
}

impl Runtime {
    /// The next place in the order of queueing.
    pub fn queue_outside(&self) -> Queued {
        Queued { number: self.next_number(), call_chain: self.call_chain() }
    }

    /// The late error of such work.
    pub fn late_outside(&self, diag: Box<Diag>, queued: Queued) -> Box<Diag> {
        Box::new((*self.late(diag, queued.number, queued.call_chain)).clone())
    }

    /// Whether each operation runs to its end before the next, so that its error is told at its call.
    pub fn runs_at_once(&self) -> bool {
        self.options.blocking || self.options.check
    }
}
