//! The clock of traces.

use std::time::Instant;

/// Nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    pub fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Where another clock's beginning lies on this one.
    pub fn begin_of(&self, other: Clock) -> u64 {
        other.0.saturating_duration_since(self.0).as_nanos() as u64
    }
}
