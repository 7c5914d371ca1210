//! How a kernel ends early: its caller must stop, there is no memory for its scratch, or it panics. Each of these unwinds to
//! the place where the kernel was called, and becomes a value there.
//!
//! Most kernels need no code for this: the functions that divide work check from time to time (`check`), and
//! allocations of scratch memory ask for admission (`admit`). The caller decides whether to stop and how much memory
//! there is (`trait Guard`).

use crate::base::quiet;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Bound: scratch memory that needs no admission; a thread has a few such blocks at a time.
const SMALL_BYTES: usize = 1 << 20;
/// Bound: time between two checks, where work can be divided freely.
const CHECK_PERIOD: Duration = Duration::from_millis(4);

/// What the caller decides while a kernel runs. Called by all threads of the kernel.
pub trait Guard: Sync {
    /// Whether the kernel must stop now.
    fn must_stop(&self) -> bool;
    /// Whether this many bytes of scratch memory may be allocated.
    fn admit(&self, bytes: usize) -> bool;
    /// Admitted scratch memory is freed.
    fn release(&self, bytes: usize);
    /// Time until the kernel must stop, if known.
    fn time_left(&self) -> Option<Duration>;
    /// Whether the kernel may run on copies, on a thread that is abandoned when the caller must stop (`detached`).
    fn may_detach(&self) -> bool;
}

/// Why a kernel did not complete. Its outputs are partly written then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    Interrupted,
    /// A part that cannot be interrupted would take longer than there is time.
    NoTime,
    /// It should run on a detached thread.
    Detach,
    /// No memory for this many bytes of scratch.
    NoMemory(usize),
    Panic(String),
}

thread_local! {
    /// Invariant: what it points to lives until `under` restores the previous one.
    static CURRENT: Cell<Option<*const (dyn Guard + 'static)>> = const { Cell::new(None) };
    /// Bytes that were admitted for vectors of the current piece; released at its end.
    static VEC_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The guard of this thread's kernel, to pass to its worker threads.
#[derive(Clone, Copy)]
pub(super) struct Current(Option<*const (dyn Guard + 'static)>);

// SAFETY: guards are `Sync`, and whoever shares work out waits for all that help.
unsafe impl Send for Current {}
// SAFETY: a shared `Current` gives a shared guard, and guards are `Sync`.
unsafe impl Sync for Current {}

/// Restores the previous guard, also while unwinding.
struct Restore(Option<*const (dyn Guard + 'static)>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs a kernel under a guard.
pub fn under<R>(guard: &dyn Guard, work: impl FnOnce() -> R) -> Result<R, End> {
    // SAFETY: only the lifetime changes; `Restore` takes the address away before this returns.
    let guard = unsafe { std::mem::transmute::<*const (dyn Guard + '_), *const (dyn Guard + 'static)>(guard) };
    catch_unwind(AssertUnwindSafe(|| Current(Some(guard)).with(work))).map_err(end)
}

pub(super) fn current() -> Current {
    Current(CURRENT.get())
}

impl Current {
    /// Runs a part of a kernel on another thread.
    pub(super) fn with<R>(self, work: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.replace(self.0));
        if self.0.is_some() { quiet::during(work) } else { work() }
    }
}

fn with<R>(ask: impl FnOnce(&dyn Guard) -> R) -> Option<R> {
    // SAFETY: by the invariant of `CURRENT`, what it points to lives until `under` returns, within which we are.
    CURRENT.get().map(|guard| ask(unsafe { &*guard }))
}

/// Ends the kernel here if the caller must stop. To be called about once a millisecond in long loops.
pub fn check() {
    if with(|guard| guard.must_stop()) == Some(true) {
        unwind(End::Interrupted);
    }
}

/// `check`, in every `every`-th iteration of a loop.
#[inline(always)]
pub fn check_every(round: usize, every: usize) {
    if round.is_multiple_of(every) {
        check();
    }
}

/// Ends the kernel here if less time than this is left. Called before a part that cannot be interrupted.
pub fn require_time(time: Duration) {
    check();
    if with(|guard| guard.time_left()).flatten().is_some_and(|left| left < time) {
        unwind(End::NoTime);
    }
}

/// Called before a long part that cannot be interrupted: ends the kernel if it may be run again on a detached thread.
pub fn detach() {
    if with(|guard| guard.may_detach()) == Some(true) {
        unwind(End::Detach);
    }
}

/// Ends the kernel if the scratch memory is not admitted.
pub fn admit(bytes: usize) {
    if bytes >= SMALL_BYTES && with(|guard| guard.admit(bytes)) == Some(false) {
        unwind(End::NoMemory(bytes));
    }
}

fn admit_vec(bytes: usize) {
    admit(bytes);
    if bytes >= SMALL_BYTES {
        VEC_BYTES.set(VEC_BYTES.get().saturating_add(bytes));
    }
}

/// Releases admitted memory.
pub fn release(bytes: usize) {
    if bytes >= SMALL_BYTES {
        with(|guard| guard.release(bytes));
    }
}

/// Ends the kernel: the system has not enough memory.
pub fn no_memory(bytes: usize) -> ! {
    unwind(End::NoMemory(bytes))
}

/// Not a panic: no panic hook is called, nothing is printed.
#[cold]
fn unwind(end: End) -> ! {
    resume_unwind(Box::new(end))
}

/// A vector of `len` values as scratch of a kernel. Its memory is admitted first; where there is none, the kernel ends
/// without an abort.
pub fn filled<T: Clone>(len: usize, value: T) -> Vec<T> {
    let mut list = with_capacity(len);
    list.resize(len, value);
    list
}

/// An empty vector with capacity for `len` values, as `filled`. Its bytes are counted until the piece of work that made
/// it ends, or else until the kernel ends.
pub fn with_capacity<T>(len: usize) -> Vec<T> {
    let bytes = len.saturating_mul(size_of::<T>());
    admit_vec(bytes);
    let mut list = Vec::new();
    if list.try_reserve_exact(len).is_err() {
        no_memory(bytes);
    }
    list
}

/// Capacity for `more` values in a vector that outlives the kernel, as `with_capacity`.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() >= more {
        return;
    }
    let bytes = more.saturating_mul(size_of::<T>());
    admit_vec(bytes);
    if list.try_reserve(more).is_err() {
        no_memory(bytes);
    }
}

/// Calls `work` on consecutive pieces of `range`, all but the last a multiple of `grain` items, with a check between
/// two of them. The pieces grow until one takes `CHECK_PERIOD`, so that short work is divided once or not at all.
pub(super) fn in_pieces(range: Range<usize>, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    if CURRENT.get().is_none() {
        return work(range);
    }
    if range.len() <= grain {
        return in_piece(range, work);
    }
    let (mut start, mut step) = (range.start, grain);
    let mut begun = Instant::now();
    loop {
        let end = start.saturating_add(step).min(range.end);
        in_piece(start..end, work);
        if end == range.end {
            return;
        }
        check();
        let now = Instant::now();
        if now - begun < CHECK_PERIOD {
            step = step.saturating_mul(2);
        }
        (start, begun) = (end, now);
    }
}

/// Bytes of vectors that a piece makes are released at its end, so that many pieces count no more than one.
fn in_piece(range: Range<usize>, work: &(dyn Fn(Range<usize>) + Sync)) {
    let outer = VEC_BYTES.replace(0);
    work(range);
    let taken = VEC_BYTES.replace(outer);
    if taken > 0 {
        with(|guard| guard.release(taken));
    }
}

fn end(payload: Box<dyn Any + Send>) -> End {
    match payload.downcast::<End>() {
        Ok(end) => *end,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            End::Panic(text.unwrap_or("it did not say why").to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::abi::Threads;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Stops after this many checks, and has this many bytes.
    struct StopsAfter(AtomicUsize, AtomicUsize);

    impl Guard for StopsAfter {
        fn must_stop(&self) -> bool {
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        }
        fn admit(&self, bytes: usize) -> bool {
            self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
        }
        fn release(&self, bytes: usize) {
            self.1.fetch_add(bytes, Ordering::Relaxed);
        }
        fn time_left(&self) -> Option<Duration> {
            Some(Duration::from_secs(1))
        }
        fn may_detach(&self) -> bool {
            false
        }
    }

    fn guard(checks: usize, bytes: usize) -> StopsAfter {
        StopsAfter(AtomicUsize::new(checks), AtomicUsize::new(bytes))
    }

    #[test]
    fn shared_work_ends_soon_on_all_threads() {
        for threads in [Threads::ONE, Threads::new(3)] {
            let done = AtomicUsize::new(0);
            let work = |range: Range<usize>| {
                std::thread::sleep(Duration::from_millis(range.len() as u64));
                done.fetch_add(range.len(), Ordering::Relaxed);
            };
            let ended = under(&guard(5, 0), || threads.split(100_000, 1, work));
            assert_eq!(ended, Err(End::Interrupted));
            assert!(done.load(Ordering::Relaxed) < 100, "{done:?}");
        }
        assert_eq!(under(&guard(0, 0), || 7), Ok(7));
    }

    #[test]
    fn pieces_cover_all_items_once_and_begin_at_grains() {
        let threads = Threads::new(2);
        let counts: Vec<AtomicUsize> = (0..10_007).map(|_| AtomicUsize::new(0)).collect();
        let work = |range: Range<usize>| {
            assert_eq!(range.start % 16, 0);
            counts[range].iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        };
        assert_eq!(under(&guard(usize::MAX, 0), || threads.split(10_007, 16, work)), Ok(()));
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn scratch_is_admitted_and_a_panic_is_a_value() {
        let small = guard(usize::MAX, 8 << 20);
        let two = || (filled(4 << 20, 0u8), filled(5 << 20, 0u8));
        assert_eq!(under(&small, || two().0.len()), Err(End::NoMemory(5 << 20)));
        assert_eq!(under(&small, || with_capacity::<u64>(usize::MAX / 4).len()), Err(End::NoMemory(usize::MAX)));
        // Those of pieces are released with them.
        let pieces = || Threads::ONE.split(100, 1, |range| drop(filled(6 << 20, range.start as u8)));
        assert_eq!(under(&guard(usize::MAX, 8 << 20), pieces), Ok(()));
        let threads = Threads::new(2);
        let panics = || threads.split(8, 1, |range| assert!(!range.contains(&5), "on purpose"));
        let ended = under(&guard(usize::MAX, 0), panics);
        assert!(matches!(ended, Err(End::Panic(text)) if text.contains("on purpose")));
        assert_eq!(under(&guard(usize::MAX, 0), || require_time(Duration::from_secs(2))), Err(End::NoTime));
        // No guard stays set.
        assert!(with(|_| ()).is_none());
    }
}
