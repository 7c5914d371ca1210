//! Ends a script that exceeds its limits; the interpreter calls it at each step.
//!
//! Knows the session's limits and this thread's memory; the interpreter defines what a step is. Limits are set in
//! `session/builder.rs`; memory of tensors is limited where it is reserved, `device/host_memory.rs` on the host and
//! `sched/backend/gpus.rs` on GPUs, with the messages of `sched/memory/mod.rs`.

use crate::base::code;
use crate::base::diag::Diag;
use crate::device::stop::Stop;
use crate::device::{heap, metered, system_memory};
use crate::script::host::stack;
use crate::script::host::stack::Stack;
use crate::script::values::module::fields;
use crate::script::values::raise::ErrorValue;
use crate::script::values::types::Cell;
use rhai::{Array, Blob, Dynamic, FnPtr, ImmutableString, Scope};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::time::Duration;

/// Bound: steps between two checks of the clock, if no alarm can be set; a step takes about 30 ns, a check as long.
const CLOCK_STEPS: u64 = 256;
/// Bound: nesting of values of untrusted scripts; normal scripts nest less than ten deep.
const NESTING: usize = 64;
/// Maximum bytes of native stack for dropping or copying a value, for each level of nesting; there is no check before
/// that.
const FRAME: usize = 300;
/// Bytes that an element of an array takes.
const ELEMENT: usize = 16;
/// Bound: after a check with so many visits, the next `visits / PAUSE` uses of variables are not checked.
const PAUSE: u64 = 32;

/// The limits of a script; `None` or 0 means unlimited.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Steps of the interpreter in one run or call; 0 means no limit.
    pub operations: u64,
    /// Of one run or call.
    pub time: Option<Duration>,
    /// Bytes that a script's own values may hold.
    pub heap: Option<usize>,
    /// Bytes that the whole program may have through `Heap`: as many as the machine has.
    pub program: Option<usize>,
    /// Whether the nesting of values is checked.
    pub nests: bool,
    /// Sizes of a value, including nested values; 0 means no limit.
    pub string_bytes: usize,
    pub array_elements: usize,
    pub map_entries: usize,
}

/// Enforces the limits of one session.
pub struct Watch {
    pub limits: Limits,
    pub stop: Arc<Stop>,
    pub stack: Stack,
    steps: AtomicU64,
    /// Whether a step must check more than the three usual conditions.
    counts: bool,
    /// Whether the program's memory through `Heap` is checked.
    asks_heap: bool,
    /// Uses of variables so far, and at which of them the next check, and the next full count of a value, are due.
    uses: AtomicU64,
    next_look: AtomicU64,
    next_count: AtomicU64,
    random: AtomicU64,
    /// Elements of values that were added to arrays since the last count.
    added: AtomicU64,
    /// Maximum values that one check visits.
    most_visits: usize,
    /// Memory of the thread when the session was entered, minus the session's memory then.
    base: AtomicIsize,
    held: AtomicIsize,
}

impl Watch {
    pub fn new(limits: Limits, stop: Arc<Stop>, stack: Stack) -> Watch {
        // To hide a deeply nested value from so many visits, each level would have to be so wide that the heap is
        // full before the stack is used up.
        let levels = (stack.usable() / 2 / FRAME).max(1);
        let width = limits.heap.unwrap_or(64 << 20) / ELEMENT / levels;
        Watch {
            counts: limits.operations != 0 || limits.heap.is_some() || (limits.time.is_some() && !stop.has_alarm()),
            asks_heap: limits.program.is_some(),
            most_visits: NESTING * width.max(16),
            limits,
            stop,
            stack,
            steps: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            next_look: AtomicU64::new(0),
            next_count: AtomicU64::new(0),
            // Unpredictable for scripts; it only determines how early a value that is refused is found.
            random: AtomicU64::new(RandomState::new().build_hasher().finish() | 1),
            added: AtomicU64::new(0),
            base: AtomicIsize::new(0),
            held: AtomicIsize::new(0),
        }
    }

    /// The session starts to run code on this thread.
    pub fn enter(&self) {
        self.stack.enter();
        self.stop.begin(self.limits.time);
        self.steps.store(0, Ordering::Relaxed);
        let held = self.held.load(Ordering::Relaxed);
        self.base.store(metered::held_bytes().wrapping_sub(held), Ordering::Relaxed);
    }

    /// The code has ended.
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
        self.step_by(1)
    }

    /// So many steps at once.
    #[inline]
    pub fn step_by(&self, count: u32) -> Option<Dynamic> {
        // Every part of an expression is a step: the common path is a few comparisons.
        let over = self.asks_heap && heap::taken_bytes() > system_memory::heap_limit();
        if self.counts || over || self.stop.has_signals() || self.stack.is_exhausted() {
            self.slow_step(count)
        } else {
            None
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_step(&self, count: u32) -> Option<Dynamic> {
        if self.stack.is_exhausted() {
            return Some(stack::exhausted());
        }
        if self.stop.is_requested() {
            return Some(Dynamic::from("interrupted"));
        }
        // Not: `fetch_add`. One thread at a time runs a session, and a locked instruction costs five times as much.
        let steps = self.steps.load(Ordering::Relaxed) + u64::from(count);
        self.steps.store(steps, Ordering::Relaxed);
        let limits = &self.limits;
        if limits.operations != 0 && steps > limits.operations {
            return Some(raised(operations()));
        }
        // The alarm went off; without an alarm, the clock is checked periodically.
        let checks_clock = self.stop.has_signals() || (steps % CLOCK_STEPS < u64::from(count) && limits.time.is_some());
        if checks_clock && self.stop.check_alarm() {
            return Some(raised(late()));
        }
        match (limits.heap, limits.program) {
            (Some(limit), _) if self.heap() > limit as isize => Some(raised(held(limit))),
            (_, Some(limit)) => self.grows(0, limit).err().map(raised),
            _ => None,
        }
    }

    /// Whether a value of so many bytes may be created.
    pub fn room(&self, bytes: usize) -> Result<(), Box<Diag>> {
        let over = |held: usize, limit: usize| held.saturating_add(bytes) > limit;
        match (self.limits.heap, self.limits.program) {
            (Some(limit), _) if over(self.heap().max(0) as usize, limit) => Err(held(limit)),
            (_, Some(limit)) => self.grows(bytes, limit),
            _ => Ok(()),
        }
    }

    /// Whether the program may allocate so many more bytes.
    fn grows(&self, bytes: usize, limit: usize) -> Result<(), Box<Diag>> {
        match system_memory::grow_heap(bytes, limit) {
            true => Ok(()),
            false if heap::taken_bytes().saturating_add(bytes) > limit => Err(full(limit)),
            false => Err(lost_memory()),
        }
    }

    /// So many elements were added to an array; returns whether the array should be counted.
    pub fn should_count(&self, elements: usize) -> bool {
        let added = self.added.load(Ordering::Relaxed).saturating_add(elements as u64);
        let counts = self.limits.array_elements != 0 && added > self.limits.array_elements as u64 / 4;
        self.added.store(if counts { 0 } else { added }, Ordering::Relaxed);
        counts
    }

    /// Whether a text may have so many bytes.
    pub fn text_fits(&self, bytes: usize) -> Result<(), Box<Diag>> {
        match self.limits.string_bytes {
            0 => Ok(()),
            limit if bytes <= limit => Ok(()),
            limit => Err(too_large("a string", "bytes", limit)),
        }
    }

    /// Whether an array may have so many elements.
    pub fn array_fits(&self, elements: usize) -> Result<(), Box<Diag>> {
        match self.limits.array_elements {
            limit if limit != 0 && elements > limit => Err(too_large("an array", "elements", limit)),
            _ => self.room(elements.saturating_mul(size_of::<Dynamic>())),
        }
    }

    /// Whether a waiting host function should stop.
    pub fn ended(&self) -> Option<Box<Diag>> {
        match (self.stop.is_requested(), self.stop.is_timed_out()) {
            (true, _) => Some(Diag::error(code::INTERRUPTED, "the script was interrupted")),
            (_, true) => Some(late()),
            _ => None,
        }
    }

    /// Whether variables are checked when they are used.
    pub fn checks_variables(&self) -> bool {
        let limits = &self.limits;
        limits.nests || limits.string_bytes != 0 || limits.array_elements != 0 || limits.map_entries != 0
    }

    /// A script uses a variable; an error if its value is too large or too deeply nested.
    #[inline]
    pub fn used(&self, name: &str, index: usize, scope: &Scope) -> Result<(), Box<Diag>> {
        let found = if index > 0 && index <= scope.len() {
            scope.iter_raw().nth(index - 1).map(|(_, _, value)| value)
        } else {
            scope.get(name)
        };
        match found {
            Some(value) if !is_number(value) => self.look(value),
            _ => Ok(()),
        }
    }

    /// A value that is no number is used.
    pub fn look(&self, value: &Dynamic) -> Result<(), Box<Diag>> {
        let uses = self.uses.load(Ordering::Relaxed) + 1;
        self.uses.store(uses, Ordering::Relaxed);
        // The value is locked by a method that is running on this thread.
        if is_taken(value) {
            return Ok(());
        }
        let seems = Size::guess(value, &mut || self.random());
        if let Some(over) = self.over(seems) {
            if seems.is_exact {
                return Err(over);
            }
            if uses >= self.next_count.load(Ordering::Relaxed) {
                let size = Size::of(value);
                self.next_count.store(uses + size.visits as u64 / PAUSE, Ordering::Relaxed);
                self.over(size).map_or(Ok(()), Err)?;
            }
        }
        // Only about every thirtieth use is checked, at random: nesting grows by one level with each use.
        if !self.limits.nests || uses < self.next_look.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut look = Look { visits: 0, most: self.most_visits, cells: Vec::new() };
        let deep = look.is_deep(value, NESTING);
        self.next_look.store(uses + 1 + self.random() % 64 + look.visits as u64 / PAUSE, Ordering::Relaxed);
        if deep { Err(too_deep()) } else { Ok(()) }
    }

    /// xorshift: a script cannot predict which use is checked.
    fn random(&self) -> u64 {
        let mut x = self.random.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.store(x, Ordering::Relaxed);
        x
    }

    fn over(&self, size: Size) -> Option<Box<Diag>> {
        let limits = &self.limits;
        let above = |count: usize, limit: usize| limit != 0 && count > limit;
        match () {
            () if above(size.bytes, limits.string_bytes) => Some(too_large("a string", "bytes", limits.string_bytes)),
            () if above(size.elements, limits.array_elements) => {
                Some(too_large("an array", "elements", limits.array_elements))
            }
            () if above(size.entries, limits.map_entries) => Some(too_large("a map", "entries", limits.map_entries)),
            () => None,
        }
    }
}

/// The size of a value: bytes of strings, elements of arrays, entries of maps, including nested values.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: usize,
    elements: usize,
    entries: usize,
    /// Values that were visited.
    visits: usize,
    /// Whether nothing was estimated.
    is_exact: bool,
}

impl Size {
    /// Estimates from one random value at each level of nesting, as if the others were like it (Knuth's estimate of a
    /// tree); the outermost level is exact. Cost: one visit for each level.
    fn guess(value: &Dynamic, random: &mut impl FnMut() -> u64) -> Size {
        let (mut size, mut times) = (Size::default(), 1usize);
        Size::descend(value, NESTING, &mut size, &mut times, random);
        size.is_exact = size.visits == 1;
        size
    }

    fn descend(value: &Dynamic, left: usize, size: &mut Size, times: &mut usize, random: &mut impl FnMut() -> u64) {
        size.visits += 1;
        if left == 0 || is_taken(value) {
            return;
        }
        let grow = |count: &mut usize, by: usize, times: usize| *count = count.saturating_add(by.saturating_mul(times));
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return grow(&mut size.bytes, text.len(), *times);
        }
        if let Some(blob) = value.read_lock::<Blob>() {
            return grow(&mut size.elements, blob.len(), *times);
        }
        let mut one = |length: usize| (length > 0).then(|| (random() % length as u64) as usize);
        if let Some(array) = value.read_lock::<Array>() {
            grow(&mut size.elements, array.len(), *times);
            *times = times.saturating_mul(array.len());
            let inner = one(array.len()).map(|at| &array[at]).filter(|inner| !is_number(inner));
            if let Some(inner) = inner {
                Size::descend(inner, left - 1, size, times, random);
            }
        } else if let Some(map) = fields(value) {
            grow(&mut size.entries, map.len(), *times);
            *times = times.saturating_mul(map.len());
            // Cost: access to a map entry by index is linear, so one of the first is taken.
            let inner = one(map.len().min(16)).and_then(|at| map.values().nth(at)).filter(|inner| !is_number(inner));
            if let Some(inner) = inner {
                Size::descend(inner, left - 1, size, times, random);
            }
        }
    }

    /// Exact: visits every value.
    fn of(value: &Dynamic) -> Size {
        let mut size = Size { is_exact: true, ..Size::default() };
        size.add(value, NESTING);
        size
    }

    fn add(&mut self, value: &Dynamic, left: usize) {
        self.visits += 1;
        if left == 0 || is_number(value) || is_taken(value) {
            return;
        }
        if let Some(text) = value.read_lock::<ImmutableString>() {
            self.bytes = self.bytes.saturating_add(text.len());
        } else if let Some(blob) = value.read_lock::<Blob>() {
            self.elements += blob.len();
        } else if let Some(array) = value.read_lock::<Array>() {
            self.elements += array.len();
            array.iter().for_each(|item| self.add(item, left - 1));
        } else if let Some(map) = fields(value) {
            self.entries += map.len();
            map.values().for_each(|item| self.add(item, left - 1));
        }
    }
}

/// One check of a value.
struct Look {
    visits: usize,
    most: usize,
    /// Cells on the path: a cell may contain itself.
    cells: Vec<Cell>,
}

impl Look {
    /// Whether values are nested more than `left` levels deep. Recursion is as deep as that.
    fn is_deep(&mut self, value: &Dynamic, left: usize) -> bool {
        self.visits += 1;
        if self.visits > self.most || is_plain(value) {
            return false;
        }
        if left == 0 {
            return true;
        }
        // The value is locked by a method that is running on this thread.
        if is_taken(value) {
            return false;
        }
        // The last element is checked first.
        if let Some(array) = value.read_lock::<Array>() {
            return array.iter().rev().any(|item| self.is_deep(item, left - 1));
        }
        if let Some(map) = fields(value) {
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
fn is_number(value: &Dynamic) -> bool {
    value.is_int() || value.is_float() || value.is_bool() || value.is_unit()
}

/// Whether the value itself is locked. Rhai's own query walks all nested values.
#[inline]
fn is_taken(value: &Dynamic) -> bool {
    value.is_shared() && value.is_locked()
}

#[inline]
fn is_plain(value: &Dynamic) -> bool {
    is_number(value) || value.is_string()
}

fn raised(diag: Box<Diag>) -> Dynamic {
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
fn lost_memory() -> Box<Diag> {
    Diag::error(code::LIMIT_MEMORY, "the memory that the program may have is used up, by tensors or by other programs")
        .help("what is no longer needed goes with the last variable that holds it")
}

#[cold]
fn too_large(what: &str, of: &str, limit: usize) -> Box<Diag> {
    Diag::error(code::LIMIT_SIZE, format!("{what} has more than {limit} {of}, those inside it included"))
        .help("numbers in bulk belong in tensors, which have no such limit")
}

#[cold]
fn too_deep() -> Box<Diag> {
    let text = format!("values are nested more than {NESTING} deep");
    Diag::error(code::LIMIT_SIZE, text).help("a list is one array with many elements, not arrays inside arrays")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhai::Map;

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
    fn the_clock_is_checked_periodically() {
        let watch = watch(Limits { time: Some(Duration::ZERO), ..Limits::default() });
        watch.enter();
        let first = (1..).find_map(|step| code_of(watch.step()).map(|code| (step, code)));
        assert_eq!(first, Some((CLOCK_STEPS, code::LIMIT_TIME)));
    }

    #[test]
    fn nesting_is_counted_through_arrays_maps_cells_and_closures() {
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

    /// The cost of growing a list, in visited values.
    #[test]
    fn a_growing_list_is_not_walked_at_each_use() {
        let mut random = 1u64;
        let mut visits = 0;
        let mut list = Array::new();
        for n in 0..20_000i64 {
            list.push(Dynamic::from(n));
            if n % 100 == 0 {
                let value = Dynamic::from(list.clone());
                let size = Size::guess(&value, &mut || {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    random >> 33
                });
                assert_eq!((size.elements, size.is_exact), (list.len(), true));
                visits += size.visits;
            }
        }
        assert_eq!(visits, 200);
    }

    #[test]
    fn size_limits_hold_wherever_values_grow() {
        let watch = watch(Limits { string_bytes: 1000, array_elements: 1000, map_entries: 1000, ..Limits::default() });
        let refused = |value: Dynamic| {
            let mut scope = Scope::new();
            scope.push_dynamic("x", value);
            // An estimate may be low, but rarely many times in a row.
            (0..200).any(|_| watch.used("x", 1, &scope).is_err_and(|diag| diag.code == code::LIMIT_SIZE))
        };
        let array = |n: usize, item: Dynamic| Dynamic::from(vec![item; n]);
        let map = |n: usize, item: Dynamic| {
            Dynamic::from((0..n).map(|at| (at.to_string().into(), item.clone())).collect::<Map>())
        };
        let text = |n: usize| Dynamic::from("x".repeat(n));
        for make in [&array as &dyn Fn(usize, Dynamic) -> Dynamic, &map] {
            assert!(!refused(make(1000, Dynamic::UNIT)) && refused(make(1001, Dynamic::UNIT)));
            assert!(!refused(make(20, make(40, Dynamic::UNIT))) && refused(make(40, make(40, Dynamic::UNIT))));
            assert!(!refused(make(20, text(49))) && refused(make(20, text(51))));
        }
        assert!(!refused(text(1000)) && refused(text(1001)));
        let mixed = array(1, map(1, array(2, map(2, array(600, Dynamic::UNIT)))));
        assert!(refused(mixed));
    }
}
