//! When a simulated submission ran, and how long each of its steps took.

use crate::device::clock::Clock;
use crate::sched::profile::timeline::{Part, Timing};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Shares {
    /// On the simulator's clock.
    pub began: Arc<AtomicU64>,
    pub ended: Arc<AtomicU64>,
    /// By step: its time as measured by the queue's thread.
    pub took: Vec<Arc<AtomicU64>>,
    clock: Clock,
}

impl Shares {
    pub fn new(steps: usize, clock: Clock) -> Shares {
        let took = (0..steps).map(|_| Arc::default()).collect();
        Shares { began: Arc::default(), ended: Arc::default(), took, clock }
    }

    pub fn timing(self, parts: Vec<SmallVec<[Part; 1]>>) -> Timing {
        let spans = move |clock: Clock| {
            let begin = clock.begin_of(self.clock);
            self.spans().into_iter().map(|(from, to)| (begin + from, begin + to)).collect()
        };
        Timing { parts, spans: Box::new(spans) }
    }

    /// Begin and end of each step: the submission's time on its device is divided in the proportions of the measured
    /// times.
    fn spans(&self) -> Vec<(u64, u64)> {
        let [began, ended] = [&self.began, &self.ended].map(|at| at.load(Ordering::Acquire));
        let span = ended.saturating_sub(began);
        let took: Vec<u64> = self.took.iter().map(|took| took.load(Ordering::Acquire)).collect();
        let measured: u64 = took.iter().sum();
        if measured == 0 {
            // A copy is not measured and takes the whole time.
            return took.iter().map(|_| (began, if ended == 0 { began } else { ended })).collect();
        }
        let at = |part: u64| began + (span as u128 * part as u128 / measured as u128) as u64;
        let ends = took.iter().scan(0, |sum, took| {
            *sum += took;
            Some(*sum)
        });
        ends.zip(&took).map(|(end, took)| (at(end - took), at(end))).collect()
    }
}
