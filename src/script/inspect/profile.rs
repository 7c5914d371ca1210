//! What a session recorded about its time, with the lines of its sources.

use crate::base::span::Origin;
pub use crate::sched::profile::timeline::{Part, Recording, Row, Slice, What};
use crate::script::session::handle::Session;
use crate::script::source::{Location, SourceMap};

/// The record of a session that was built with `profile(true)`.
pub struct Timeline {
    pub recording: Recording,
    sources: SourceMap,
}

impl Timeline {
    /// The user's line that stands behind a part; none for what the host program or the end of the script did.
    pub fn place(&self, origin: Origin) -> Option<Location> {
        self.sources.location(origin.user)
    }
}

#[doc(hidden)]
impl Session {
    /// What ran when so far; none unless the session was built with `profile(true)`. Times of simulated GPUs with
    /// a seed are virtual.
    pub fn timeline(&self) -> Option<Timeline> {
        let recording = self.host.rt.recording()?;
        Some(Timeline { recording, sources: self.host.sources.read().clone() })
    }
}
