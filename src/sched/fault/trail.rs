//! Which calls of the script led to the work that is being queued, so that a fault that is found later can show
//! the call stack of that time.
//!
//! Calls under way are a stack of places, written at each call: two stores, no lock, no look-up. A chain becomes a
//! number when something is queued under it, once for each call; chains that share their beginning share its
//! entries. Knows no names of functions: a step is a place.

use crate::base::span::{Origin, Site};
use crate::sched::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
/// Bound: calls under way that are followed. The interpreter allows a thousand levels, and a level has more calls
/// under way than one only while it works out their arguments.
const MAX_CALLS: usize = 1 << 12;

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

/// One call under way. The interpreter works out a call's arguments after the call was noted: of the calls noted at
/// one level only the last has been entered by what runs further in.
#[derive(Default)]
struct Call {
    /// The call's place, and what orders it: `2 * level + 1`; an even number for what is no call of the script.
    place: AtomicU64,
    /// The number of the chain that ends here, plus one; 0 before somebody asked.
    chain: AtomicU32,
}

/// The calls under way in a session. Written by the script's thread alone; atomic because a session may move
/// between threads.
pub struct Calls {
    depth: AtomicU32,
    /// The interpreter's level where the native call at work was written.
    level: AtomicU32,
    calls: Box<[Call]>,
    trails: Mutex<Trails>,
}

impl Default for Calls {
    fn default() -> Calls {
        let calls = (0..MAX_CALLS).map(|_| Call::default()).collect();
        Calls { depth: AtomicU32::new(0), level: AtomicU32::new(0), calls, trails: Mutex::default() }
    }
}

impl Calls {
    /// A call of script code is made at a place, in code that runs at a level. Returns what `leave` restores.
    #[inline]
    pub fn enter(&self, site: Site, level: usize) -> u32 {
        self.push(site, 2 * level as u32 + 1, 0)
    }

    /// Ends the call, on whatever way.
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

    /// A native call that was written in code of this level begins.
    #[inline]
    pub fn native(&self, level: usize) {
        self.level.store(level as u32, Ordering::Relaxed);
    }

    /// The native call at work asks for gradients: what it queues comes from there.
    pub fn enter_backward(&self, asked: Origin) -> u32 {
        let chain = self.trails.lock().extend(self.chain(), Step::Backward(asked));
        self.push(self.place(), 2 * self.level.load(Ordering::Relaxed), chain + 1)
    }

    /// Something else than the interpreter calls script code: its place is the user's, and no step of the chain.
    pub fn enter_silently(&self, site: Site) -> u32 {
        self.push(site, 2 * self.level.load(Ordering::Relaxed), self.chain() + 1)
    }

    /// The place of the innermost call.
    pub fn place(&self) -> Site {
        let depth = (self.depth.load(Ordering::Relaxed) as usize).min(self.calls.len());
        let last = depth.checked_sub(1).map(|at| self.calls[at].place.load(Ordering::Relaxed));
        last.map_or(Site::NONE, |place| Site((place >> 32) as u32))
    }

    /// The chain of calls that leads to what the native call at work queues.
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
        let mut unknown = vec![last];
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
        let mut trails = self.trails.lock();
        for &at in unknown.iter().rev() {
            let site = Site((self.calls[at].place.load(Ordering::Relaxed) >> 32) as u32);
            chain = trails.extend(chain, Step::Call(site));
            self.calls[at].chain.store(chain + 1, Ordering::Relaxed);
        }
        chain
    }
}

impl Runtime {
    /// The chain of calls that leads to what is queued now.
    pub(in crate::sched) fn trail(&self) -> u32 {
        self.calls.chain()
    }

    /// The steps of a chain, innermost first.
    pub(in crate::sched) fn steps(&self, trail: u32) -> Vec<Step> {
        self.calls.trails.lock().steps(trail).collect()
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
        calls.trails.lock().steps(chain).collect()
    }

    #[test]
    fn chains_share_their_beginning_and_end_at_the_bound() {
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

    /// `f(g(x))`, with an operation among the arguments, in `g`, and in `f` after it.
    #[test]
    fn a_call_whose_arguments_are_worked_out_has_not_been_entered() {
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
