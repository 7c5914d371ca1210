//! The race detector: is every access ordered after the accesses that it conflicts with?
//!
//! Vector clocks over streams and the host (C. Fidge 1988, F. Mattern 1989; the cheap case after FastTrack, C. Flanagan
//! and S. Freund 2009). A pure state machine: it knows no device queue, no memory and no time, and its result for a
//! program is the same on every run.
//!
//! - [`Clocks`] (`clock.rs`) has the vector clock of each stream and of the host. Recording an event copies a stream's
//!   clock, waiting for one takes the elementwise maximum, and what the host has waited for precedes all work queued
//!   later.
//! - [`BufferClock`] (`history.rs`) has the accesses to one buffer that still matter, and finds the conflict of a new
//!   one. While one stream alone accesses the buffer, and always all of it, that is one mark for the last write and one
//!   for the last read ([`Touches`], `touches.rs`).
//! - [`Region`] (`region.rs`) is the set of bytes of a strided layout; `overlap.rs` decides exactly whether two
//!   overlap.
//! - [`Conflict`] (`report.rs`) has both accesses, [`Conflict::diagnose`] makes the message, [`Reported`] suppresses
//!   repetitions.

mod clock;
mod history;
mod overlap;
mod region;
mod report;
#[cfg(test)]
mod tests;
mod touches;

pub use clock::{Clocks, EventClock, Lane, StreamName};
pub use history::{BufferClock, Kind, Use};
pub use region::Region;
pub use report::{Conflict, Reported};
pub use touches::Touches;
