//! A possible fault of work in flight, as far as the outcomes of finished work tell.

use crate::base::number_hash::Numbers;
use crate::kernel::abi::Faults;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// How a node's own work may fail.
#[derive(Default)]
pub enum Own {
    #[default]
    Nothing,
    /// Error slots of a queue in host memory.
    Slots(Arc<[Faults]>, SmallVec<[usize; 1]>),
    /// Failed unless it is set: work that a lost device drops.
    Runs(Arc<AtomicBool>),
    /// The address of an error slot that a device keeps. Known when the host reads it at the end.
    Device(u64),
}

/// A possible fault: of the node itself, or one that reaches its operands.
pub struct Cause {
    state: AtomicU8,
    own: Own,
    /// None once it is known.
    parents: Mutex<Causes>,
}

pub type Causes = SmallVec<[Arc<Cause>; 2]>;

const OPEN: u8 = 0;
const CLEAN: u8 = 1;
const BAD: u8 = 2;

impl Cause {
    pub fn new(own: Own, parents: Causes) -> Arc<Cause> {
        Arc::new(Cause { state: AtomicU8::new(OPEN), own, parents: Mutex::new(parents) })
    }

    pub fn known_bad() -> Arc<Cause> {
        Arc::new(Cause { state: AtomicU8::new(BAD), own: Own::Nothing, parents: Mutex::default() })
    }

    /// The address by which a device's own decision finds it; 0 for none.
    pub fn device_slot(&self) -> u64 {
        if let Own::Device(address) = self.own { address } else { 0 }
    }

    fn own_is_bad(&self) -> bool {
        match &self.own {
            Own::Nothing | Own::Device(_) => false,
            Own::Slots(faults, at) => at.iter().any(|&at| faults[at].is_set()),
            Own::Runs(ran) => !ran.load(Ordering::Acquire),
        }
    }

    pub fn settle(&self, bad: bool) {
        self.state.store(if bad { BAD } else { CLEAN }, Ordering::Release);
        let parents = std::mem::take(&mut *self.parents.lock());
        drop(parents);
    }

    /// The parents, and then the state: once the parents are taken, the state says what they were.
    fn look(&self) -> (Causes, u8) {
        let parents = self.parents.lock().clone();
        (parents, self.state.load(Ordering::Acquire))
    }

    /// Whether it happened, as far as finished work tells.
    pub fn is_bad(self: &Arc<Cause>) -> bool {
        let mut seen = Numbers::default();
        let mut open = vec![self.clone()];
        while let Some(cause) = open.pop() {
            let (parents, state) = cause.look();
            match state {
                BAD => return true,
                CLEAN => continue,
                _ if !seen.insert(Arc::as_ptr(&cause)) => continue,
                _ if cause.own_is_bad() => return true,
                _ => open.extend(parents),
            }
        }
        false
    }

    pub fn is_clean(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLEAN
    }

    /// All causes that are not known yet, including itself.
    pub fn open_ones(of: &[Arc<Cause>]) -> Vec<Arc<Cause>> {
        let (mut seen, mut found) = (Numbers::default(), Vec::new());
        let mut open = of.to_vec();
        while let Some(cause) = open.pop() {
            let (parents, state) = cause.look();
            if state == OPEN && seen.insert(Arc::as_ptr(&cause)) {
                open.extend(parents);
                found.push(cause);
            }
        }
        found
    }
}

impl Drop for Cause {
    /// Not: recursion. A chain is as long as the work in flight.
    fn drop(&mut self) {
        let mut open = std::mem::take(self.parents.get_mut());
        while let Some(cause) = open.pop() {
            if let Some(mut alone) = Arc::into_inner(cause) {
                open.append(alone.parents.get_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Another thread may settle a cause between two looks at it: what happened is never lost.
    #[test]
    fn what_is_settled_meanwhile_is_seen() {
        const ROUNDS: usize = 50_000;
        let carried = || Cause::new(Own::Nothing, Causes::from_iter([Cause::known_bad()]));
        let causes: Vec<Arc<Cause>> = (0..ROUNDS).map(|_| carried()).collect();
        let (begun, settled) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut lost = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (round, cause) in causes.iter().enumerate() {
                    while begun.load(Ordering::Acquire) <= round {
                        std::hint::spin_loop();
                    }
                    cause.settle(true);
                    settled.store(round + 1, Ordering::Release);
                }
            });
            for (round, cause) in causes.iter().enumerate() {
                begun.store(round + 1, Ordering::Release);
                while settled.load(Ordering::Acquire) <= round {
                    lost += !cause.is_bad() as usize;
                }
            }
        });
        assert_eq!(lost, 0);
    }
}
