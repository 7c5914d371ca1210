//! What tells a script and the waits of its host to give up: somebody asked, or its time is over.
//!
//! A state machine over a flag and an instant; whoever waits or counts steps looks at it.

use super::clock::Clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// No instant.
const NEVER: u64 = u64::MAX;

/// Shared by a session, its waits and everybody who may interrupt it.
#[derive(Debug)]
pub struct Stop {
    asked: AtomicBool,
    /// Whether whoever asks wants nothing more of this session: queued work is left out then.
    is_last: AtomicBool,
    clock: Clock,
    /// On the clock.
    ends_ns: AtomicU64,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            asked: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            clock: Clock::start(),
            ends_ns: AtomicU64::new(NEVER),
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

    /// From any thread.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// A new piece of work begins, which may take this long.
    pub fn begin(&self, allowed: Option<Duration>) {
        self.asked.store(false, Ordering::Release);
        let ends = match allowed {
            None => NEVER,
            Some(allowed) => self.clock.now_ns().saturating_add(u64::try_from(allowed.as_nanos()).unwrap_or(NEVER)),
        };
        self.ends_ns.store(ends, Ordering::Relaxed);
    }

    /// Somebody asked. Costs one load.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The time is over. Costs a look at the clock where there is a limit.
    #[inline]
    pub fn is_late(&self) -> bool {
        let ends = self.ends_ns.load(Ordering::Relaxed);
        ends != NEVER && self.clock.now_ns() >= ends
    }

    /// Who asks, from now on, wants nothing more of this session.
    pub fn make_last(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Whether work that is queued should be left out. Not where somebody asked who goes on with the session: what
    /// is changed in place, a model's statistics for example, would be half new.
    #[inline]
    pub fn drops_work(&self) -> bool {
        self.is_late() || (self.is_asked() && self.is_last.load(Ordering::Relaxed))
    }

    /// Whether a wait should give up.
    pub fn is_due(&self) -> bool {
        self.is_asked() || self.is_late()
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
        assert!(stop.drops_work());
        stop.begin(Some(Duration::from_secs(3600)));
        assert!(!stop.is_due());
        stop.ask();
        assert!(!stop.drops_work());
        stop.make_last();
        assert!(stop.drops_work());
        stop.begin(None);
        assert!(!stop.drops_work());
        stop.ask();
        assert!(stop.is_due() && !stop.is_late());
        stop.begin(None);
        assert!(!stop.is_due());
        assert!(Stop::now().is_due());
    }
}
