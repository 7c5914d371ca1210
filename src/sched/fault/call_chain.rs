//! The script's call stack when work is queued, so that a fault that is found later can show it.
//!
//! The current calls are a stack of positions, written at each call: two stores, no lock, no lookup. A chain gets a
//! number when something is queued under it, once for each call; chains with a common beginning share its entries.
//! Does not know names of functions: an entry is a position.

use crate::base::number_hash::ByNumber;
use crate::base::span::{Origin, Site};
use crate::sched::runtime::Runtime;
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// One step of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// A call of script code at this position.
    Call(Site),
    /// `backward` was called at this position.
    Backward(Origin),
}

/// Bound: entries kept; calls beyond it are shown with the known part of their stack.
const MAX_STEPS: usize = 1 << 16;
/// Bound: nested calls that are followed. The interpreter allows a thousand levels, and a level has more than one
/// call only while it evaluates their arguments.
const MAX_CALLS: usize = 1 << 12;

/// All chains of a session. 0 is the empty one.
#[derive(Default)]
pub struct CallChains {
    steps: Vec<(u32, Step)>,
    numbers: ByNumber<(u32, Step), u32>,
}

impl CallChains {
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

/// One call on the stack. The interpreter evaluates a call's arguments after the call was noted: of the calls noted
/// at one level only the last one has been entered by code that runs at deeper levels.
#[derive(Default)]
struct Call {
    /// The call's position, and its order: `2 * level + 1`; an even number for what is not a call of the script.
    place: AtomicU64,
    /// The number of the chain that ends here, plus one; 0 if it has none yet.
    chain: AtomicU32,
}

/// The current calls of a session. Written by the script's thread only; atomic because a session may move between
/// threads.
pub struct Calls {
    depth: AtomicU32,
    /// The interpreter's level of the code that made the current native call.
    level: AtomicU32,
    calls: Box<[Call]>,
    call_chains: Mutex<CallChains>,
}

impl Default for Calls {
    fn default() -> Calls {
        let calls = (0..MAX_CALLS).map(|_| Call::default()).collect();
        Calls { depth: AtomicU32::new(0), level: AtomicU32::new(0), calls, call_chains: Mutex::default() }
    }
}

impl Calls {
    /// Enters a call of script code at a position, in code of a level. Returns what `leave` restores.
    #[inline]
    pub fn enter(&self, site: Site, level: usize) -> u32 {
        self.push(site, 2 * level as u32 + 1, 0)
    }

    /// Leaves the call, normally or by an error.
    #[inline]
    pub fn leave(&self, before: u32) {
        self.depth.store(before, Ordering::Relaxed);
    }

    #[inline]
    fn push(&self, site: Site, order: u32, chain: u32) -> u32 {
        let depth = self.depth.load(Ordering::Relaxed);
        if let Some(call) = self.calls.get(depth as usize) {
            call.place.store((site.0 as u64) << 32 | order as u64, Ordering::Relaxed);
            call.chain.store(chain, Ordering::Relaxed);
        }
        self.depth.store(depth + 1, Ordering::Relaxed);
        depth
    }

    /// A native call that was made by code of this level begins.
    #[inline]
    pub fn native(&self, level: usize) {
        self.level.store(level as u32, Ordering::Relaxed);
    }

    /// The current native call computes gradients: work that it queues belongs to that step.
    pub fn enter_backward(&self, asked: Origin) -> u32 {
        let around = self.chain();
        let chain = self.call_chains.lock().extend(around, Step::Backward(asked));
        self.push(self.place(), 2 * self.level.load(Ordering::Relaxed), chain + 1)
    }

    /// Script code is called by something else than the interpreter: the position is the user's, and adds no step to
    /// the chain.
    pub fn enter_silently(&self, site: Site) -> u32 {
        self.push(site, 2 * self.level.load(Ordering::Relaxed), self.chain() + 1)
    }

    /// The position of the innermost call.
    pub fn place(&self) -> Site {
        let depth = (self.depth.load(Ordering::Relaxed) as usize).min(self.calls.len());
        let last = depth.checked_sub(1).map(|at| self.calls[at].place.load(Ordering::Relaxed));
        last.map_or(Site::NONE, |place| Site((place >> 32) as u32))
    }

    /// The chain of calls for work that the current native call queues.
    #[inline]
    pub fn chain(&self) -> u32 {
        let depth = (self.depth.load(Ordering::Relaxed) as usize).min(self.calls.len());
        if depth == 0 { 0 } else { self.chain_within(depth, 2 * self.level.load(Ordering::Relaxed) + 1) }
    }

    /// The chain that ends with the last of the first `depth` calls whose order is below `limit`.
    fn chain_within(&self, depth: usize, limit: u32) -> u32 {
        let order = |at: usize| self.calls[at].place.load(Ordering::Relaxed) as u32;
        let before = |end: usize, limit: u32| (0..end).rev().find(|&at| order(at) < limit);
        let known = |at: usize| self.calls[at].chain.load(Ordering::Relaxed).checked_sub(1);
        let Some(last) = before(depth, limit) else { return 0 };
        if let Some(known) = known(last) {
            return known;
        }
        let mut unknown: SmallVec<[usize; 8]> = smallvec![last];
        let mut chain = 0;
        while let Some(at) = before(unknown[unknown.len() - 1], order(unknown[unknown.len() - 1])) {
            match known(at) {
                Some(known) => {
                    chain = known;
                    break;
                }
                None => unknown.push(at),
            }
        }
        let mut call_chains = self.call_chains.lock();
        for &at in unknown.iter().rev() {
            let site = Site((self.calls[at].place.load(Ordering::Relaxed) >> 32) as u32);
            chain = call_chains.extend(chain, Step::Call(site));
            self.calls[at].chain.store(chain + 1, Ordering::Relaxed);
        }
        chain
    }
}

impl Runtime {
    /// The chain of calls for work that is queued now.
    pub(in crate::sched) fn call_chain(&self) -> u32 {
        self.calls.chain()
    }

    /// The steps of a chain, innermost first.
    pub(in crate::sched) fn steps(&self, call_chain: u32) -> Vec<Step> {
        self.calls.call_chains.lock().steps(call_chain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: u32) -> Step {
        Step::Call(Site::new(line as u16, 1))
    }

    fn shown(calls: &Calls) -> Vec<Step> {
        let chain = calls.chain();
        calls.call_chains.lock().steps(chain).collect()
    }

    #[test]
    fn chains_share_their_beginning_and_end_at_the_bound() {
        let mut call_chains = CallChains::default();
        let a = call_chains.extend(0, call(1));
        let (b, c) = (call_chains.extend(a, call(2)), call_chains.extend(a, call(3)));
        assert_eq!(call_chains.extend(a, call(2)), b);
        assert_eq!(call_chains.steps(c).collect::<Vec<_>>(), [call(3), call(1)]);
        assert_eq!(call_chains.steps(0).count(), 0);
        let mut deep = 0;
        for n in 0..MAX_STEPS as u32 + 10 {
            deep = call_chains.extend(deep, Step::Call(Site(n + (9 << 16))));
        }
        assert_eq!(call_chains.steps(deep).count(), MAX_STEPS - 3);
    }

    /// A gradient may be the first thing that a function asks for, before any of its calls has a chain.
    #[test]
    fn a_backward_may_be_the_first_work_of_a_function() {
        let calls = Calls::default();
        calls.enter(Site::new(1, 1), 0);
        calls.native(1);
        let asked = Origin::default();
        let before = calls.enter_backward(asked);
        assert_eq!(shown(&calls), [Step::Backward(asked), call(1)]);
        calls.leave(before);
    }

    /// `f(g(x))`, with an operation among the arguments, in `g`, and in `f` after it.
    #[test]
    fn a_call_whose_arguments_are_evaluated_has_not_been_entered() {
        let calls = Calls::default();
        let at = |line: u16, level: usize| calls.enter(Site::new(line, 1), level);
        let outer = at(1, 0);
        calls.native(0);
        assert_eq!(shown(&calls), []);
        let inner = at(2, 0);
        calls.native(1);
        assert_eq!(shown(&calls), [call(2)]);
        calls.leave(inner);
        assert_eq!((calls.place(), inner), (Site::new(1, 1), 1));
        calls.native(1);
        assert_eq!(shown(&calls), [call(1)]);
        let deeper = at(3, 1);
        calls.native(2);
        assert_eq!(shown(&calls), [call(3), call(1)]);
        let asked = Origin::at(Site::new(4, 1));
        let backward = calls.enter_backward(asked);
        assert_eq!(shown(&calls), [Step::Backward(asked), call(3), call(1)]);
        calls.leave(backward);
        let silent = calls.enter_silently(Site::new(9, 1));
        calls.native(5);
        assert_eq!((calls.place(), shown(&calls)), (Site::new(9, 1), vec![call(3), call(1)]));
        calls.leave(silent);
        calls.leave(deeper);
        calls.leave(outer);
        calls.native(0);
        assert_eq!((calls.place(), calls.chain()), (Site::NONE, 0));
    }

    #[test]
    fn calls_beyond_the_bound_are_counted_and_not_followed() {
        let calls = Calls::default();
        let befores: Vec<u32> = (0..MAX_CALLS + 5).map(|level| calls.enter(Site::new(7, 1), level)).collect();
        calls.native(MAX_CALLS + 5);
        assert_eq!(shown(&calls).len(), MAX_CALLS);
        for &before in befores.iter().rev() {
            calls.leave(before);
        }
        assert_eq!(calls.depth.load(Ordering::Relaxed), 0);
    }
}
