//! The levels of `vmap` that are active: how many samples each has, and what random operations do there.

use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// What random operations give the samples of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// They are refused.
    Error,
    /// The same numbers.
    Same,
    /// Numbers of their own.
    Different,
}

/// One `vmap` that is running.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Later levels have higher numbers; none is used twice.
    pub number: u64,
    pub samples: usize,
    pub randomness: Randomness,
}

#[derive(Default)]
pub struct Samples {
    /// Whether there was any level: a tensor of one that has ended may still be held.
    used: AtomicBool,
    state: Mutex<(u64, SmallVec<[Level; 2]>)>,
}

impl Samples {
    /// Whether tensors may have samples.
    #[inline(always)]
    pub fn were_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Begins a level inside those that are active.
    pub fn enter(&self, samples: usize, randomness: Randomness) -> Level {
        self.used.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.0 += 1;
        let level = Level { number: state.0, samples, randomness };
        state.1.push(level);
        level
    }

    /// Ends a level, and those inside it.
    pub fn leave(&self, number: u64) {
        self.state.lock().1.retain(|level| level.number < number);
    }

    /// A level that has ended is active for a while: backward runs code that the script wrote for one sample. False if it is
    /// active anyway.
    pub fn enter_again(&self, level: Level) -> bool {
        let active = &mut self.state.lock().1;
        let Err(at) = active.binary_search_by_key(&level.number, |other| other.number) else { return false };
        active.insert(at, level);
        true
    }

    /// Ends such a level, and no other.
    pub fn leave_again(&self, number: u64) {
        self.state.lock().1.retain(|level| level.number != number);
    }

    /// The active levels, the outermost first.
    pub fn active(&self) -> SmallVec<[Level; 2]> {
        if self.were_used() { self.state.lock().1.clone() } else { SmallVec::new() }
    }

    /// An active level.
    pub fn level(&self, number: u64) -> Option<Level> {
        self.state.lock().1.iter().copied().find(|level| level.number == number)
    }
}
