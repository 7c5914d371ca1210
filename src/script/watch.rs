//! What ends a script that goes too far: a state machine that the interpreter feeds with its steps.
//!
//! Knows the session's limits and this thread's memory; what a step is, is the interpreter's word. Tensors have
//! limits of their own, in the allocator.

use super::raise::ErrorValue;
use super::stack::{self, Stack};
use super::value::Cell;
use crate::base::code;
use crate::base::diag::Diag;
use crate::device::stop::Stop;
use crate::device::{heap, metered};
use rhai::{Array, Dynamic, FnPtr, Map, Scope};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::Duration;

/// Bound: steps between two looks at the clock; a step takes about 30 ns, a look as long.
const CLOCK_STEPS: u64 = 256;
/// Bound: values inside values, where a script is not trusted; what people write is less than ten deep.
const NESTING: usize = 64;
/// Bytes of native stack that dropping or copying a value takes for each value around it, at most; nobody asks first.
const FRAME: usize = 300;
/// Bytes that an element of an array takes.
const ELEMENT: usize = 16;
/// Bound: visits in one look for which the next `visits / PAUSE` uses of variables are not looked at.
const PAUSE: u64 = 32;

/// How far a script may go; without a number, as far as it likes.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Steps of the interpreter in one run or call; 0 means no limit.
    pub operations: u64,
    /// Of one run or call.
    pub time: Option<Duration>,
    /// Bytes that a script's own values may hold.
    pub heap: Option<usize>,
    /// Bytes that the whole program may have through `Heap`: as many as the machine has room for.
    pub program: Option<usize>,
    /// Whether variables are looked at: for values inside values, and for maps that grew by `m[key] = value`, where
    /// the interpreter does not look.
    pub looks: bool,
    pub map_entries: usize,
}

/// Watches one session.
pub struct Watch {
    pub limits: Limits,
    pub stop: Arc<Stop>,
    pub stack: Stack,
    steps: AtomicU64,
    /// Whether a step must look at more than the ordinary three things.
    counts: bool,
    /// Bytes that the program may have through `Heap`.
    most_taken: usize,
    /// Uses of variables, and at which of them the next look is due.
    uses: AtomicU64,
    next_look: AtomicU64,
    random: AtomicU64,
    /// Values that one look visits.
    most_visits: usize,
    /// What the thread held when the session was entered, less what the session held then.
    base: AtomicIsize,
    held: AtomicIsize,
}

impl Watch {
    pub fn new(limits: Limits, stop: Arc<Stop>, stack: Stack) -> Watch {
        // Whoever wants to hide a deep value from so many visits must make each level so wide that the heap is full
        // before the stack would be spent.
        let levels = (stack.usable() / 2 / FRAME).max(1);
        let width = limits.heap.unwrap_or(64 << 20) / ELEMENT / levels;
        Watch {
            counts: limits.operations != 0 || limits.time.is_some() || limits.heap.is_some(),
            most_taken: limits.program.unwrap_or(usize::MAX),
            most_visits: NESTING * width.max(16),
            limits,
            stop,
            stack,
            steps: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            next_look: AtomicU64::new(0),
            // Nobody can foresee it; it decides only how early a value that is refused is met.
            random: AtomicU64::new(RandomState::new().build_hasher().finish() | 1),
            base: AtomicIsize::new(0),
            held: AtomicIsize::new(0),
        }
    }

    /// The session begins to run something on this thread.
    pub fn enter(&self) {
        self.stack.enter();
        self.stop.begin(self.limits.time);
        self.steps.store(0, Ordering::Relaxed);
        let held = self.held.load(Ordering::Relaxed);
        self.base.store(metered::held_bytes().wrapping_sub(held), Ordering::Relaxed);
    }

    /// It has ended.
    pub fn leave(&self) {
        self.held.store(self.heap(), Ordering::Relaxed);
        self.stop.end();
    }

    fn heap(&self) -> isize {
        metered::held_bytes().wrapping_sub(self.base.load(Ordering::Relaxed))
    }

    /// One step; a value ends the script.
    #[inline]
    pub fn step(&self) -> Option<Dynamic> {
        // Every part of an expression is a step: what they have in common is a few comparisons.
        let over = heap::taken_bytes() > self.most_taken;
        if self.counts || over || self.stop.is_asked() || self.stack.is_spent() { self.step_with_care() } else { None }
    }

    #[cold]
    #[inline(never)]
    fn step_with_care(&self) -> Option<Dynamic> {
        if self.stack.is_spent() {
            return Some(stack::spent());
        }
        if self.stop.is_asked() {
            return Some(Dynamic::from("interrupted"));
        }
        // Not: `fetch_add`. One thread at a time runs a session, and a locked instruction costs five times as much.
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
        let limits = &self.limits;
        if limits.operations != 0 && steps > limits.operations {
            return Some(told(operations()));
        }
        if steps.is_multiple_of(CLOCK_STEPS) && limits.time.is_some() && self.stop.is_late() {
            return Some(told(late()));
        }
        match (limits.heap, limits.program) {
            (Some(limit), _) if self.heap() > limit as isize => Some(told(held(limit))),
            (_, Some(limit)) if heap::taken_bytes() > limit => Some(told(full(limit))),
            _ => None,
        }
    }

    /// Whether a value of so many bytes may be made.
    pub fn room(&self, bytes: usize) -> Result<(), Box<Diag>> {
        let over = |held: usize, limit: usize| held.saturating_add(bytes) > limit;
        match (self.limits.heap, self.limits.program) {
            (Some(limit), _) if over(self.heap().max(0) as usize, limit) => Err(held(limit)),
            (_, Some(limit)) if over(heap::taken_bytes(), limit) => Err(full(limit)),
            _ => Ok(()),
        }
    }

    /// Whether a host function that waits should give up.
    pub fn ended(&self) -> Option<Box<Diag>> {
        match (self.stop.is_asked(), self.stop.is_late()) {
            (true, _) => Some(Diag::error(code::INTERRUPTED, "the script was interrupted")),
            (_, true) => Some(late()),
            _ => None,
        }
    }

    /// A script uses a variable; an error where its value has too many values inside each other. Only every
    /// thirtieth use or so is looked at, a random one: nesting grows by one with each use.
    #[inline]
    pub fn used(&self, name: &str, index: usize, scope: &Scope) -> Result<(), Box<Diag>> {
        let uses = self.uses.load(Ordering::Relaxed) + 1;
        self.uses.store(uses, Ordering::Relaxed);
        if uses < self.next_look.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.look(uses, name, index, scope)
    }

    #[cold]
    fn look(&self, uses: u64, name: &str, index: usize, scope: &Scope) -> Result<(), Box<Diag>> {
        let mut look = Look { visits: 0, most: self.most_visits, cells: Vec::new() };
        let found = if index > 0 && index <= scope.len() {
            scope.iter_raw().nth(index - 1).map(|(_, _, value)| value)
        } else {
            scope.get(name)
        };
        let deep = found.is_some_and(|value| look.is_deep(value, NESTING));
        // xorshift: a script cannot tell by counting which use is looked at.
        let mut x = self.random.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.store(x, Ordering::Relaxed);
        self.next_look.store(uses + 1 + x % 64 + look.visits as u64 / PAUSE, Ordering::Relaxed);
        let wide = |value: &Dynamic| {
            !value.is_locked() && value.read_lock::<Map>().is_some_and(|map| map.len() > self.limits.map_entries)
        };
        match (found.is_some_and(wide), deep) {
            (true, _) => Err(too_wide(self.limits.map_entries)),
            (_, true) => Err(too_deep()),
            _ => Ok(()),
        }
    }
}

/// One look at a value.
struct Look {
    visits: usize,
    most: usize,
    /// Cells on the way: a cell may hold itself.
    cells: Vec<Cell>,
}

impl Look {
    /// Whether more than `left` values lie inside each other. Recursion is as deep as that.
    fn is_deep(&mut self, value: &Dynamic, left: usize) -> bool {
        self.visits += 1;
        if self.visits > self.most || is_plain(value) {
            return false;
        }
        if left == 0 {
            return true;
        }
        // Its owner is at work on it, on this very thread.
        if value.is_locked() {
            return false;
        }
        // What was put there last is looked at first.
        if let Some(array) = value.read_lock::<Array>() {
            return array.iter().rev().any(|item| self.is_deep(item, left - 1));
        }
        if let Some(map) = value.read_lock::<Map>() {
            return map.values().any(|item| self.is_deep(item, left - 1));
        }
        if let Some(function) = value.read_lock::<FnPtr>() {
            return function.iter_curry().any(|item| self.is_deep(item, left - 1));
        }
        if let Some(cell) = value.read_lock::<Cell>() {
            if self.cells.iter().any(|known| known.same(&cell)) {
                return false;
            }
            self.cells.push(cell.clone());
            let deep = cell.with(|inside| self.is_deep(inside, left - 1));
            self.cells.pop();
            return deep;
        }
        false
    }
}

#[inline]
fn is_plain(value: &Dynamic) -> bool {
    value.is_int() || value.is_float() || value.is_bool() || value.is_unit() || value.is_string()
}

fn told(diag: Box<Diag>) -> Dynamic {
    Dynamic::from(ErrorValue(diag))
}

#[cold]
fn operations() -> Box<Diag> {
    Diag::error(code::LIMIT_OPERATIONS, "the script reached its limit of operations")
        .help("the program that runs the script sets this limit")
}

#[cold]
fn late() -> Box<Diag> {
    Diag::error(code::LIMIT_TIME, "the time for this script is over")
        .help("the program that runs the script sets this limit")
}

#[cold]
fn held(limit: usize) -> Box<Diag> {
    let text = format!("the script's own values take more than {limit} bytes");
    Diag::error(code::LIMIT_MEMORY, text).help("numbers in bulk belong in tensors, which have a limit of their own")
}

#[cold]
fn full(limit: usize) -> Box<Diag> {
    let text =
        format!("the script's own values would take more than {} MiB, a fifth of the machine's memory", limit >> 20);
    Diag::error(code::LIMIT_MEMORY, text).help("numbers in bulk belong in tensors, which may take all of it")
}

#[cold]
fn too_wide(entries: usize) -> Box<Diag> {
    let text = format!("a map has more than {entries} entries");
    Diag::error(code::LIMIT_SIZE, text).help("numbers in bulk belong in tensors, which have no such limit")
}

#[cold]
fn too_deep() -> Box<Diag> {
    let text = format!("more than {NESTING} values lie inside each other");
    Diag::error(code::LIMIT_SIZE, text).help("a list is one array with many elements, not arrays inside arrays")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(limits: Limits) -> Watch {
        Watch::new(limits, Arc::default(), Stack::new(2 << 20))
    }

    fn code_of(value: Option<Dynamic>) -> Option<code::Code> {
        value.map(|value| value.cast::<ErrorValue>().0.code)
    }

    #[test]
    fn steps_are_counted_from_each_entry() {
        let watch = watch(Limits { operations: 3, ..Limits::default() });
        for _ in 0..2 {
            watch.enter();
            assert!((0..3).all(|_| watch.step().is_none()));
            assert_eq!(code_of(watch.step()), Some(code::LIMIT_OPERATIONS));
        }
    }

    #[test]
    fn the_clock_is_looked_at_now_and_then() {
        let watch = watch(Limits { time: Some(Duration::ZERO), ..Limits::default() });
        watch.enter();
        let first = (1..).find_map(|step| code_of(watch.step()).map(|code| (step, code)));
        assert_eq!(first, Some((CLOCK_STEPS, code::LIMIT_TIME)));
    }

    #[test]
    fn nesting_is_seen_through_arrays_maps_cells_and_closures() {
        let watch = watch(Limits::default());
        let wraps: [fn(Dynamic) -> Dynamic; 4] = [
            |value| Dynamic::from(vec![Dynamic::from(1i64), value, Dynamic::from(Array::new())]),
            |value| Dynamic::from(Map::from_iter([("next".into(), value)])),
            |value| Dynamic::from(Cell::new(value)),
            |value| {
                let mut function = FnPtr::new("f").expect("a name");
                function.add_curry(value.into_shared());
                Dynamic::from(function)
            },
        ];
        for wrap in wraps {
            let deep = |levels: usize| (0..levels).fold(Dynamic::UNIT, |value, _| wrap(value));
            let seen = |value: &Dynamic| {
                Look { visits: 0, most: watch.most_visits, cells: Vec::new() }.is_deep(value, NESTING)
            };
            assert!(!seen(&deep(NESTING - 1)) && seen(&deep(NESTING + 2)));
        }
        let cell = Cell::new(Dynamic::UNIT);
        cell.set(Dynamic::from(cell.clone()));
        assert!(!Look { visits: 0, most: 1000, cells: Vec::new() }.is_deep(&Dynamic::from(cell.clone()), NESTING));
        cell.set(Dynamic::UNIT);
    }
}
