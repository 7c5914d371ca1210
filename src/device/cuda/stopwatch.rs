//! Times of events, on a clock of the host. Does not know what work is between the events.

use super::error::DriverError;
use super::event::{Event, Timing};
use super::stream::Stream;
use crate::device::clock::Clock;

/// Bound: milliseconds between an event and the anchor event that its time is measured from. CUDA returns differences
/// as 32-bit floats; up to this distance they are exact to 0.01 µs.
const REACH_MS: f32 = 100.0;

/// The times of one device's events. The first anchor is waited for when the stopwatch is made; later ones are measured
/// from it.
pub struct Stopwatch {
    anchor: Event,
    anchor_ns: f64,
}

impl Stopwatch {
    /// Relates the device's time to the clock. Waits for the stream, which should be idle: the delay between the event
    /// and the reading of the clock, some µs, is the error of all times.
    pub fn start(stream: &Stream, clock: Clock) -> Result<Stopwatch, DriverError> {
        let anchor = Stopwatch::mark(stream)?;
        anchor.wait()?;
        Ok(Stopwatch { anchor, anchor_ns: clock.now_ns() as f64 })
    }

    /// Records an event whose time `times` returns later.
    pub fn mark(stream: &Stream) -> Result<Event, DriverError> {
        let event = Event::new(stream.context(), Timing::On)?;
        event.record(stream)?;
        Ok(event)
    }

    /// The times of events that have been reached, in ns of the clock; each is at least 1.
    pub fn times(&mut self, events: Vec<Event>) -> Result<Vec<u64>, DriverError> {
        let mut times = Vec::with_capacity(events.len());
        for event in events {
            let ms = self.anchor.elapsed_ms(&event)?;
            let ns = self.anchor_ns + ms as f64 * 1e6;
            times.push((ns as u64).max(1));
            if ms > REACH_MS {
                (self.anchor, self.anchor_ns) = (event, ns);
            }
        }
        Ok(times)
    }
}
