//! Which calls of the script led to the work that is being queued, so that a fault that is found later can show
//! the call stack of that time.
//!
//! A chain of calls is a number; chains that share their beginning share its entries. Entering a call costs one
//! look-up and queueing nothing. Knows no names of functions: a step is a place.

use super::runtime::Runtime;
use crate::base::span::{Origin, Site};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// One step of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// A call of script code, made here.
    Call(Site),
    /// Gradients were asked for here.
    Backward(Origin),
}

/// Bound: entries kept; what is called beyond it is shown with the part of its stack that is known.
const MAX_STEPS: usize = 1 << 16;

/// All chains of a session. 0 is the empty one.
#[derive(Default)]
pub struct Trails {
    steps: Vec<(u32, Step)>,
    numbers: HashMap<(u32, Step), u32>,
}

impl Trails {
    /// The chain `from` with one step more.
    pub fn extend(&mut self, from: u32, step: Step) -> u32 {
        if let Some(&known) = self.numbers.get(&(from, step)) {
            return known;
        }
        if self.steps.len() >= MAX_STEPS {
            return from;
        }
        self.steps.push((from, step));
        let number = self.steps.len() as u32;
        self.numbers.insert((from, step), number);
        number
    }

    /// The steps of a chain, innermost first.
    pub fn steps(&self, mut at: u32) -> impl Iterator<Item = Step> {
        std::iter::from_fn(move || {
            let (from, step) = *self.steps.get(at.checked_sub(1)? as usize)?;
            at = from;
            Some(step)
        })
    }
}

impl Runtime {
    /// A step begins; returns the chain that `leave_step` restores.
    pub fn enter_step(&self, step: Step) -> u32 {
        let from = self.trail.load(Ordering::Relaxed);
        let to = self.trails.lock().extend(from, step);
        self.trail.store(to, Ordering::Relaxed);
        from
    }

    pub fn leave_step(&self, before: u32) {
        self.trail.store(before, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_share_their_beginning_and_end_at_the_bound() {
        let call = |line| Step::Call(Site::new(line, 1));
        let mut trails = Trails::default();
        let a = trails.extend(0, call(1));
        let (b, c) = (trails.extend(a, call(2)), trails.extend(a, call(3)));
        assert_eq!(trails.extend(a, call(2)), b);
        assert_eq!(trails.steps(c).collect::<Vec<_>>(), [call(3), call(1)]);
        assert_eq!(trails.steps(0).count(), 0);
        let mut deep = 0;
        for n in 0..MAX_STEPS as u32 + 10 {
            deep = trails.extend(deep, Step::Call(Site(n + (9 << 16))));
        }
        assert_eq!(trails.steps(deep).count(), MAX_STEPS - 3);
    }
}
