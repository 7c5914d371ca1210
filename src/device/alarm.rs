//! A timer thread for deadlines: it notifies those whose deadline has passed, so that nobody else has to read the
//! clock.
//!
//! It sleeps until the earliest deadline it knows. A caller with an earlier one wakes it; a deadline that is canceled
//! costs one wake-up. Knows nothing of runs.

use super::clock::Clock;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

const NEVER: u64 = u64::MAX;

/// Something with a deadline.
pub trait Deadline: Send + Sync {
    /// The deadline on `clock`; `u64::MAX` for none.
    fn due_ns(&self) -> u64;
    /// The deadline has passed. May be called again, and just after the deadline changed.
    fn ring(&self);
}

/// What is watched, and whether the thread runs.
struct Watched {
    list: Vec<Weak<dyn Deadline>>,
    runs: bool,
}

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);
static WATCHED: Mutex<Watched> = Mutex::new(Watched { list: Vec::new(), runs: false });
static CHANGED: Condvar = Condvar::new();
/// When the thread wakes by itself, on the clock.
static WAKES_NS: AtomicU64 = AtomicU64::new(NEVER);

/// The clock of all deadlines.
pub fn clock() -> Clock {
    *CLOCK
}

/// Watches `alarm` for as long as it lives. False where there can be no thread.
pub fn watch<T: Deadline + 'static>(one: &Arc<T>) -> bool {
    let mut watched = WATCHED.lock();
    if !watched.runs {
        watched.runs = std::thread::Builder::new().name("tscript-alarm".into()).stack_size(64 << 10).spawn(run).is_ok();
    }
    let weak: Weak<dyn Deadline> = Arc::downgrade(&(one.clone() as Arc<dyn Deadline>));
    watched.list.push(weak);
    watched.runs
}

/// Tells the thread that something that it watches has this deadline now.
///
/// Invariant: the caller stores the deadline before this call, and the thread stores `NEVER` before it reads deadlines,
/// all sequentially consistent: either the thread sees the deadline, or the caller sees that the thread may sleep past
/// it.
#[inline]
pub fn is_due_at(due_ns: u64) {
    if due_ns < WAKES_NS.load(Ordering::SeqCst) {
        let _watched = WATCHED.lock();
        CHANGED.notify_one();
    }
}

fn run() {
    let mut watched = WATCHED.lock();
    loop {
        WAKES_NS.store(NEVER, Ordering::SeqCst);
        let (now, mut next) = (CLOCK.now_ns(), NEVER);
        watched.list.retain(|one| {
            let Some(one) = one.upgrade() else { return false };
            match one.due_ns() {
                due if due <= now => one.ring(),
                due => next = next.min(due),
            }
            true
        });
        WAKES_NS.store(next, Ordering::SeqCst);
        match next {
            NEVER => CHANGED.wait(&mut watched),
            next => _ = CHANGED.wait_for(&mut watched, Duration::from_nanos(next.saturating_sub(CLOCK.now_ns()))),
        }
    }
}
