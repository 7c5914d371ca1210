//! Cancellation of a script and of its host's waits: by request, or by a deadline.
//!
//! A state machine over a flag and a deadline; waits and step counters check it.

use super::alarm::{self, Deadline};
use super::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// No deadline.
const NEVER: u64 = u64::MAX;
/// Signals that each step of the interpreter checks with one load: a stop was requested; the alarm of the deadline
/// rang.
const REQUESTED: u8 = 1;
const ALARM: u8 = 2;
/// Bound: time after an interruption in which queued work may still complete, if the session continues. What a loop has
/// just queued usually takes less, so that a model is not left with half of its parameters updated. People do not
/// notice a quarter of a second.
const GRACE_PERIOD_NS: u64 = 250_000_000;

/// Shared by a session, its waits, its kernels and every interrupt handle.
///
/// Work belongs to the run (a script, a REPL entry, a call) that queued it: when a run has to stop, what it queued is
/// dropped, also after the next run has begun.
#[derive(Debug)]
pub struct Stop {
    /// `REQUESTED`, `ALARM`.
    signals: AtomicU8,
    /// An alarm rings at the deadline.
    has_alarm: AtomicBool,
    /// On the clock: when a stop was requested.
    requested_ns: AtomicU64,
    /// A request ends the session: queued work is dropped without the grace period.
    is_final: AtomicBool,
    clock: Clock,
    /// On the clock.
    deadline_ns: AtomicU64,
    /// The number of the current run.
    run: AtomicU64,
    /// Work of runs up to this one is dropped, because that run timed out or was interrupted.
    dropped_runs: AtomicU64,
    was_timed_out: AtomicBool,
    /// No results are needed any more.
    closed: AtomicBool,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            signals: AtomicU8::new(0),
            has_alarm: AtomicBool::new(false),
            requested_ns: AtomicU64::new(0),
            is_final: AtomicBool::new(false),
            clock: alarm::clock(),
            deadline_ns: AtomicU64::new(NEVER),
            run: AtomicU64::new(1),
            dropped_runs: AtomicU64::new(0),
            was_timed_out: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }
}

impl Stop {
    /// One that is already requested: a wait with it only polls.
    pub fn now() -> Stop {
        let stop = Stop::default();
        stop.request();
        stop
    }

    /// One with a deadline this far from now.
    pub fn after(allowed: Duration) -> Stop {
        let stop = Stop::default();
        stop.begin(Some(allowed));
        stop
    }

    /// Requests a stop; callable from any thread.
    pub fn request(&self) {
        if !self.is_requested() {
            self.requested_ns.store(self.clock.now_ns(), Ordering::Relaxed);
        }
        self.signals.fetch_or(REQUESTED, Ordering::Release);
    }

    /// From now on the timer thread watches the deadline, so that each step of the interpreter checks it with one load.
    /// Where there can be no thread, steps have to read the clock (`is_timed_out`).
    pub fn set_alarm(self: &Arc<Stop>) {
        self.has_alarm.store(alarm::watch(self), Ordering::Relaxed);
    }

    /// Begins a new run, which may take this long.
    pub fn begin(&self, allowed: Option<Duration>) {
        self.run.fetch_add(1, Ordering::Relaxed);
        self.signals.store(0, Ordering::Release);
        let ends = match allowed {
            None => NEVER,
            Some(allowed) => self.clock.now_ns().saturating_add(u64::try_from(allowed.as_nanos()).unwrap_or(NEVER)),
        };
        // Sequentially consistent: see `alarm`.
        self.deadline_ns.store(ends, Ordering::SeqCst);
        if ends != NEVER && self.has_alarm.load(Ordering::Relaxed) {
            alarm::is_due_at(ends);
        }
    }

    /// Ends the run; says whether it had to stop, so that what it queued is dropped.
    pub fn end(&self) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.was_timed_out.store(self.is_timed_out(), Ordering::Relaxed);
            self.dropped_runs.store(self.run(), Ordering::Release);
        }
        self.deadline_ns.store(NEVER, Ordering::Relaxed);
        is_due
    }

    /// Drops queued work of the current run and of those before.
    pub fn drop_queued(&self) {
        self.was_timed_out.store(false, Ordering::Relaxed);
        self.dropped_runs.store(self.run(), Ordering::Release);
    }

    /// No results are needed any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The number of the current run.
    pub fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// Whether a stop was requested. Costs one load.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & REQUESTED != 0
    }

    /// Whether a stop was requested or the alarm rang; `check_alarm` tells whether it rang for this run. Costs one
    /// load.
    #[inline]
    pub fn has_signals(&self) -> bool {
        self.signals.load(Ordering::Relaxed) != 0
    }

    /// As `is_timed_out`, after a signal was seen. Clears an alarm that rang for an earlier run.
    #[cold]
    pub fn check_alarm(&self) -> bool {
        let is_timed_out = self.is_timed_out();
        if !is_timed_out {
            self.signals.fetch_and(!ALARM, Ordering::Relaxed);
        }
        is_timed_out
    }

    /// Whether an alarm rings at the deadline.
    pub fn has_alarm(&self) -> bool {
        self.has_alarm.load(Ordering::Relaxed)
    }

    /// Whether the deadline has passed. Reads the clock if there is a deadline.
    #[inline]
    pub fn is_timed_out(&self) -> bool {
        let ends = self.deadline_ns.load(Ordering::Relaxed);
        ends != NEVER && self.clock.now_ns() >= ends
    }

    /// Time until the deadline of the current run, if it has one.
    pub fn time_left(&self) -> Option<Duration> {
        let ends = self.deadline_ns.load(Ordering::Relaxed);
        (ends != NEVER).then(|| Duration::from_nanos(ends.saturating_sub(self.clock.now_ns())))
    }

    /// Whether the last run that had to stop did so because of its deadline.
    pub fn ended_by_timeout(&self) -> bool {
        self.is_timed_out() || (!self.is_requested() && self.was_timed_out.load(Ordering::Relaxed))
    }

    /// From now on a request ends the session.
    pub fn make_final(&self) {
        self.is_final.store(true, Ordering::Relaxed);
    }

    /// Whether work that a run queued should be dropped, and kernels under way interrupted.
    #[inline]
    pub fn drops(&self, run: u64) -> bool {
        let requested = || {
            let waited =
                || self.clock.now_ns() > self.requested_ns.load(Ordering::Relaxed).saturating_add(GRACE_PERIOD_NS);
            self.is_requested() && (self.is_final.load(Ordering::Relaxed) || waited())
        };
        self.closed.load(Ordering::Relaxed)
            || self.dropped_runs.load(Ordering::Relaxed) >= run
            || (run == self.run() && (self.is_timed_out() || requested()))
    }

    /// Whether a wait should give up.
    pub fn is_due(&self) -> bool {
        self.is_requested() || self.is_timed_out()
    }
}

impl Deadline for Stop {
    fn due_ns(&self) -> u64 {
        self.deadline_ns.load(Ordering::SeqCst)
    }

    fn ring(&self) {
        self.signals.fetch_or(ALARM, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_or_late() {
        let stop = Stop::default();
        assert!(!stop.is_due());
        stop.begin(Some(Duration::ZERO));
        assert!(stop.is_timed_out() && stop.is_due() && !stop.is_requested());
        assert!(stop.drops(stop.run()));
        stop.begin(Some(Duration::from_secs(3600)));
        assert!(!stop.is_due());
        stop.request();
        assert!(!stop.drops(stop.run()));
        stop.make_final();
        assert!(stop.drops(stop.run()));
        stop.begin(None);
        assert!(!stop.drops(stop.run()));
        stop.request();
        assert!(stop.is_due() && !stop.is_timed_out());
        stop.begin(None);
        assert!(!stop.is_due());
        assert!(Stop::now().is_due());
    }

    #[test]
    fn the_alarm_rings_for_the_run_at_hand() {
        let stop = Arc::new(Stop::default());
        stop.set_alarm();
        let rings = |stop: &Stop| {
            (0..500).any(|_| stop.has_signals() || (std::thread::sleep(Duration::from_millis(4)), false).1)
        };
        for _ in 0..3 {
            stop.begin(Some(Duration::from_secs(3600)));
            assert!(!stop.has_signals());
            stop.begin(Some(Duration::from_millis(5)));
            assert!(rings(&stop) && stop.check_alarm());
            stop.end();
        }
        // An alarm of an earlier run is ignored.
        stop.begin(Some(Duration::from_secs(3600)));
        stop.ring();
        assert!(stop.has_signals() && !stop.check_alarm() && !stop.has_signals());
        let short = Arc::new(Stop::default());
        short.set_alarm();
        short.begin(Some(Duration::from_millis(5)));
        assert!(rings(&short), "sooner than the other's");
    }

    #[test]
    fn work_of_a_run_that_had_to_end_is_left_out_for_good() {
        let stop = Stop::default();
        stop.begin(None);
        let (first, ended) = (stop.run(), stop.end());
        assert!(!ended && !stop.drops(first));
        stop.begin(Some(Duration::ZERO));
        let second = stop.run();
        assert!(stop.end() && stop.ended_by_timeout());
        stop.begin(None);
        assert!(stop.drops(first) && stop.drops(second) && !stop.drops(stop.run()) && !stop.is_timed_out());
        stop.request();
        assert!(!stop.drops(stop.run()), "a moment to end");
        std::thread::sleep(Duration::from_nanos(GRACE_PERIOD_NS + 10_000_000));
        assert!(stop.drops(stop.run()));
        stop.begin(None);
        stop.close();
        assert!(stop.drops(stop.run()));
    }
}
