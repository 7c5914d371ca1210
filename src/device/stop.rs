//! Cancellation of a script and of its host's waits: somebody asked for it, or its time is over.
//!
//! A state machine over a flag and a deadline; waits and step counters check it.

use super::alarm::{self, Alarm};
use super::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// No instant.
const NEVER: u64 = u64::MAX;
/// Signs that a step of the interpreter looks at, all at once: somebody asked; the alarm went off.
const ASKED: u8 = 1;
const RANG: u8 = 2;
/// Bound: time after an interruption in which queued work may still come to its end, where somebody goes on with the
/// session: what a loop has just queued is mostly less than that, and a model is not left half changed. People do not
/// notice a quarter of a second.
const GRACE_NS: u64 = 250_000_000;

/// Shared by a session, its waits, its kernels and everybody who may interrupt it.
///
/// Work belongs to the run (a script, an entry, a call) that queued it: when a run has to end, what it left in queues
/// is left out, also when the next run has begun.
#[derive(Debug)]
pub struct Stop {
    /// `ASKED`, `RANG`.
    signs: AtomicU8,
    /// An alarm goes off when the time is over.
    has_alarm: AtomicBool,
    /// On the clock: when somebody asked.
    asked_ns: AtomicU64,
    /// Whether whoever asks wants nothing more of this session: queued work is left out at once then.
    is_last: AtomicBool,
    clock: Clock,
    /// On the clock.
    ends_ns: AtomicU64,
    /// The number of the run at hand.
    run: AtomicU64,
    /// Work of runs up to this one is left out, because the last of them was late, or interrupted.
    left_out: AtomicU64,
    was_late: AtomicBool,
    /// Nobody wants any result any more.
    closed: AtomicBool,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            signs: AtomicU8::new(0),
            has_alarm: AtomicBool::new(false),
            asked_ns: AtomicU64::new(0),
            is_last: AtomicBool::new(false),
            clock: alarm::clock(),
            ends_ns: AtomicU64::new(NEVER),
            run: AtomicU64::new(1),
            left_out: AtomicU64::new(0),
            was_late: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }
}

impl Stop {
    /// One that was asked for already: a wait only looks.
    pub fn now() -> Stop {
        let stop = Stop::default();
        stop.ask();
        stop
    }

    /// One that is due after some time.
    pub fn after(allowed: Duration) -> Stop {
        let stop = Stop::default();
        stop.begin(Some(allowed));
        stop
    }

    /// From any thread.
    pub fn ask(&self) {
        if !self.is_asked() {
            self.asked_ns.store(self.clock.now_ns(), Ordering::Relaxed);
        }
        self.signs.fetch_or(ASKED, Ordering::Release);
    }

    /// From now on a thread watches the time, so that who takes steps sees at each of them that it is over, at the cost of
    /// one load. Where there can be no thread, the clock has to be looked at (`is_late`).
    pub fn set_alarm(self: &Arc<Stop>) {
        self.has_alarm.store(alarm::watch(self), Ordering::Relaxed);
    }

    /// A new run begins, which may take this long.
    pub fn begin(&self, allowed: Option<Duration>) {
        self.run.fetch_add(1, Ordering::Relaxed);
        self.signs.store(0, Ordering::Release);
        let ends = match allowed {
            None => NEVER,
            Some(allowed) => self.clock.now_ns().saturating_add(u64::try_from(allowed.as_nanos()).unwrap_or(NEVER)),
        };
        // Sequentially consistent: see `alarm`.
        self.ends_ns.store(ends, Ordering::SeqCst);
        if ends != NEVER && self.has_alarm.load(Ordering::Relaxed) {
            alarm::is_due_at(ends);
        }
    }

    /// The run is over; says whether it had to end, so that what it left in queues is left out.
    pub fn end(&self) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.was_late.store(self.is_late(), Ordering::Relaxed);
            self.left_out.store(self.run(), Ordering::Release);
        }
        self.ends_ns.store(NEVER, Ordering::Relaxed);
        is_due
    }

    /// Work of the run at hand, and of those before, is left out.
    pub fn leave_out(&self) {
        self.was_late.store(false, Ordering::Relaxed);
        self.left_out.store(self.run(), Ordering::Release);
    }

    /// Nobody wants any result any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The number of the run at hand.
    pub fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// Somebody asked. Costs one load.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.signs.load(Ordering::Relaxed) & ASKED != 0
    }

    /// Somebody asked, or the alarm went off: `is_due` tells whether it did for this run. Costs one load.
    #[inline]
    pub fn has_signs(&self) -> bool {
        self.signs.load(Ordering::Relaxed) != 0
    }

    /// As `is_late`, for who saw a sign. An alarm that went off for a run that was over goes out.
    #[cold]
    pub fn look(&self) -> bool {
        let is_late = self.is_late();
        if !is_late {
            self.signs.fetch_and(!RANG, Ordering::Relaxed);
        }
        is_late
    }

    /// Whether an alarm goes off when the time is over.
    pub fn has_alarm(&self) -> bool {
        self.has_alarm.load(Ordering::Relaxed)
    }

    /// The time is over. Costs a look at the clock where there is a limit.
    #[inline]
    pub fn is_late(&self) -> bool {
        let ends = self.ends_ns.load(Ordering::Relaxed);
        ends != NEVER && self.clock.now_ns() >= ends
    }

    /// Time until the run at hand has to end, where there is a limit.
    pub fn left(&self) -> Option<Duration> {
        let ends = self.ends_ns.load(Ordering::Relaxed);
        (ends != NEVER).then(|| Duration::from_nanos(ends.saturating_sub(self.clock.now_ns())))
    }

    /// Whether it is, or was, the time that ended the last run which had to end.
    pub fn ends_by_time(&self) -> bool {
        self.is_late() || (!self.is_asked() && self.was_late.load(Ordering::Relaxed))
    }

    /// Who asks, from now on, wants nothing more of this session.
    pub fn make_last(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether work that a run queued should be left out, and what is under way cut short.
    #[inline]
    pub fn drops(&self, run: u64) -> bool {
        let asked = || {
            let waited = || self.clock.now_ns() > self.asked_ns.load(Ordering::Relaxed).saturating_add(GRACE_NS);
            self.is_asked() && (self.is_last.load(Ordering::Relaxed) || waited())
        };
        self.closed.load(Ordering::Relaxed)
            || self.left_out.load(Ordering::Relaxed) >= run
            || (run == self.run() && (self.is_late() || asked()))
    }

    /// Whether a wait should give up.
    pub fn is_due(&self) -> bool {
        self.is_asked() || self.is_late()
    }
}

impl Alarm for Stop {
    fn due_ns(&self) -> u64 {
        self.ends_ns.load(Ordering::SeqCst)
    }

    fn ring(&self) {
        self.signs.fetch_or(RANG, Ordering::Relaxed);
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
        assert!(stop.is_late() && stop.is_due() && !stop.is_asked());
        assert!(stop.drops(stop.run()));
        stop.begin(Some(Duration::from_secs(3600)));
        assert!(!stop.is_due());
        stop.ask();
        assert!(!stop.drops(stop.run()));
        stop.make_last();
        assert!(stop.drops(stop.run()));
        stop.begin(None);
        assert!(!stop.drops(stop.run()));
        stop.ask();
        assert!(stop.is_due() && !stop.is_late());
        stop.begin(None);
        assert!(!stop.is_due());
        assert!(Stop::now().is_due());
    }

    #[test]
    fn the_alarm_rings_for_the_run_at_hand() {
        let stop = Arc::new(Stop::default());
        stop.set_alarm();
        let rings =
            |stop: &Stop| (0..500).any(|_| stop.has_signs() || (std::thread::sleep(Duration::from_millis(4)), false).1);
        for _ in 0..3 {
            stop.begin(Some(Duration::from_secs(3600)));
            assert!(!stop.has_signs());
            stop.begin(Some(Duration::from_millis(5)));
            assert!(rings(&stop) && stop.look());
            stop.end();
        }
        // One that comes late is for nobody.
        stop.begin(Some(Duration::from_secs(3600)));
        stop.ring();
        assert!(stop.has_signs() && !stop.look() && !stop.has_signs());
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
        assert!(stop.end() && stop.ends_by_time());
        stop.begin(None);
        assert!(stop.drops(first) && stop.drops(second) && !stop.drops(stop.run()) && !stop.is_late());
        stop.ask();
        assert!(!stop.drops(stop.run()), "a moment to end");
        std::thread::sleep(Duration::from_nanos(GRACE_NS + 10_000_000));
        assert!(stop.drops(stop.run()));
        stop.begin(None);
        stop.close();
        assert!(stop.drops(stop.run()));
    }
}
