//! What a session recorded about its time, with source lines.

use crate::base::span::Origin;
pub use crate::sched::profile::timeline::{Part, Recording, Row, Slice, SliceKind};
use crate::script::session::handle::Session;
use crate::script::source::{Location, SourceMap};

/// The record of a session that was built with `profile(true)`.
pub struct Timeline {
    pub recording: Recording,
    sources: SourceMap,
}

impl Timeline {
    /// The user's line of a part; none for work of the host program or of the end of the script.
    pub fn place(&self, origin: Origin) -> Option<Location> {
        self.sources.location(origin.user)
    }
}

#[doc(hidden)]
impl Session {
    /// The recording so far; none unless the session was built with `profile(true)`. Times of simulated GPUs with a
    /// seed are virtual.
    pub fn timeline(&self) -> Option<Timeline> {
        let recording = self.host.rt.recording()?;
        Some(Timeline { recording, sources: self.host.sources.read().clone() })
    }
}
