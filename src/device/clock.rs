//! The clock of traces.

use std::time::Instant;

/// A clock that counts nanoseconds since its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    pub fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// The time on this clock at which another clock started.
    pub fn begin_of(&self, other: Clock) -> u64 {
        other.0.saturating_duration_since(self.0).as_nanos() as u64
    }
}
