//! The race detector: is every access ordered after the accesses that it conflicts with?
//!
//! Vector clocks over streams and the host (C. Fidge 1988, F. Mattern 1989; the cheap case after FastTrack,
//! C. Flanagan and S. Freund 2009). A pure state machine: it knows no device queue, no memory and no time,
//! and what it says about a program is the same on every run.
//!
//! - [`Clocks`] holds what each stream and the host are known to come after. Recording an event copies a
//!   stream's clock, waiting joins one, and a host that waited passes what it knows to all work queued later.
//! - [`BufferClock`] holds the accesses to one buffer that still matter. While one stream touches the buffer,
//!   and touches all of it, that is one mark for the last write and one for the last read.
//! - [`Region`] is a set of bytes, and decides overlap of strided layouts exactly.
//! - [`Conflict`] carries both accesses, [`Conflict::diagnose`] tells the user, [`Reported`] tells once.

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
