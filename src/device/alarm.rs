//! A timer thread for deadlines: it notifies whoever's time is over, so that nobody else has to read the clock.
//!
//! It sleeps until the earliest deadline it knows. A caller with an earlier one wakes it; a deadline of a run that ended
//! before costs one wake-up. Knows nothing of runs.

use super::clock::Clock;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

const NEVER: u64 = u64::MAX;

/// Somebody whose time may be over.
pub trait Alarm: Send + Sync {
    /// On the clock; `u64::MAX` for never.
    fn due_ns(&self) -> u64;
    /// It is over. Also called again, and just after the instant changed.
    fn ring(&self);
}

/// Those that are watched, and whether there is a thread.
struct Watched {
    list: Vec<Weak<dyn Alarm>>,
    runs: bool,
}

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);
static WATCHED: Mutex<Watched> = Mutex::new(Watched { list: Vec::new(), runs: false });
static CHANGED: Condvar = Condvar::new();
/// When the thread wakes by itself, on the clock.
static WAKES_NS: AtomicU64 = AtomicU64::new(NEVER);

/// The clock of all instants here.
pub fn clock() -> Clock {
    *CLOCK
}

/// Watches somebody for as long as it lives. False where there can be no thread.
pub fn watch<T: Alarm + 'static>(one: &Arc<T>) -> bool {
    let mut watched = WATCHED.lock();
    if !watched.runs {
        watched.runs = std::thread::Builder::new().name("tscript-alarm".into()).stack_size(64 << 10).spawn(run).is_ok();
    }
    let weak: Weak<dyn Alarm> = Arc::downgrade(&(one.clone() as Arc<dyn Alarm>));
    watched.list.push(weak);
    watched.runs
}

/// Somebody who is watched has this instant now.
///
/// Invariant: the caller has stored it before, and the thread stores `NEVER` before it reads instants, all in one order:
/// either the thread sees the instant, or the caller sees that the thread may sleep past it.
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
