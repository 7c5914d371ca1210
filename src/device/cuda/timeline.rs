//! The progress of a stream as a number that only grows: submission n is finished, or not yet.
//!
//! A submission is the work that its owner queues between two marks. Does not know what that is.

use super::error::DriverError;
use super::event::{Event, Timing};
use super::stream::Stream;
use std::collections::VecDeque;
use std::time::Duration;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Done,
    /// `stop` returned true; the work continues.
    Interrupted,
}

/// The submissions of one stream. Pass it the same stream every time.
#[derive(Default)]
pub struct Timeline {
    submitted: u64,
    finished: u64,
    /// Events of submissions that were not seen to finish, oldest first; the last is number `submitted`.
    pending: VecDeque<Event>,
}

/// Polls before a waiting thread begins to sleep. Bound: some milliseconds of spinning, as CUDA's own waits do,
/// cover the steps of a training loop; longer waits lose less than a per cent by sleeping.
const SPINS: u32 = 10_000;
const NAP: Duration = Duration::from_micros(50);

impl Timeline {
    pub fn new() -> Timeline {
        Timeline::default()
    }

    /// The number of the last submission; 0 before the first.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// The last submission that was seen done, without asking.
    pub fn seen_finished(&self) -> u64 {
        self.finished
    }

    /// Ends a submission: all that was queued since the last mark. Returns its number, the first is 1.
    /// Not while the stream is captured: the mark would become a part of the graph.
    pub fn mark(&mut self, stream: &Stream) -> Result<u64, DriverError> {
        let event = Event::new(stream.context(), Timing::Off)?;
        event.record(stream)?;
        self.pending.push_back(event);
        self.submitted += 1;
        Ok(self.submitted)
    }

    /// Asks the device, and returns the last submission that is done.
    pub fn finished(&mut self) -> Result<u64, DriverError> {
        // A stream works in order, so a binary search finds the first that is not done, beginning with the newest. A
        // query costs as much as a small launch.
        let (mut done, mut open) = (0, self.pending.len());
        let mut next = open.saturating_sub(1);
        while done < open {
            if self.pending[next].is_done()? {
                done = next + 1;
            } else {
                open = next;
            }
            next = done + (open - done) / 2;
        }
        self.pending.drain(..done);
        self.finished += done as u64;
        Ok(self.finished)
    }

    /// Whether submission `n` is done; yes for 0, no for what is not submitted yet.
    /// Cost: a comparison when it has been seen done, one query otherwise.
    pub fn is_finished(&mut self, n: u64) -> Result<bool, DriverError> {
        if n <= self.finished {
            return Ok(true);
        }
        let Some(event) = self.pending.get((n - self.finished - 1) as usize) else { return Ok(false) };
        if !event.is_done()? {
            return Ok(false);
        }
        // A stream works in order: all submissions before it are done too.
        self.pending.drain(..(n - self.finished) as usize);
        self.finished = n;
        Ok(true)
    }

    /// Future work of another stream comes after submission `n`.
    pub fn order(&mut self, n: u64, waiter: &Stream) -> Result<(), DriverError> {
        let n = n.min(self.submitted);
        if n <= self.finished {
            return Ok(());
        }
        match self.pending.get((n - self.finished - 1) as usize) {
            Some(event) => waiter.wait_for(event),
            None => Ok(()),
        }
    }

    /// Waits for submission `n`, at most the last. Calls `stop` from time to time and gives up if it returns true.
    pub fn wait(&mut self, n: u64, stop: &mut dyn FnMut() -> bool) -> Result<Waited, DriverError> {
        let n = n.min(self.submitted);
        let mut polls = 0u32;
        while !self.is_finished(n)? {
            polls = polls.saturating_add(1);
            if polls.is_multiple_of(64) && stop() {
                return Ok(Waited::Interrupted);
            }
            if polls > SPINS {
                std::thread::sleep(NAP);
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(Waited::Done)
    }
}
