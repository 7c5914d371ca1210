//! What a session recorded about its time, with source lines.

use crate::base::span::Origin;
pub use crate::sched::profile::timeline::{Part, Recording, Row, Slice, SliceKind};
pub use crate::script::host::function_times::{FunctionName, FunctionTimes};
use crate::script::session::handle::Session;
use crate::script::source::{Location, SourceMap};

/// The record of a session that was built with `profile(true)`.
pub struct Timeline {
    pub recording: Recording,
    pub functions: FunctionTimes,
    sources: SourceMap,
}

impl Timeline {
    /// The user's line of a part; none for work of the host program or of the end of the script.
    pub fn place(&self, origin: Origin) -> Option<Location> {
        self.sources.location(origin.user)
    }

    /// How the profile calls a function, and where it stands.
    pub fn function(&self, function: &FunctionName) -> (String, Option<Location>) {
        let mut place = self.sources.location(function.at);
        // The body's first statement is known: the function begins before it.
        if let (Some(source), Some(place)) = (self.sources.source(function.at), &mut place)
            && let Some(before) = source.text.get(..source.offset(function.at))
            && let Some(begins) = before.rfind(&format!("fn {}(", function.name))
        {
            (place.line, place.column) = source.line_column(begins);
        }
        let name = match &*function.name {
            "" => "the top level".to_string(),
            name if name.starts_with("anon$") => "a closure".to_string(),
            name => format!("`{name}`"),
        };
        (name, place)
    }
}

#[doc(hidden)]
impl Session {
    /// The recording so far; none unless the session was built with `profile(true)`. Times of simulated GPUs with a
    /// seed are virtual.
    pub fn timeline(&self) -> Option<Timeline> {
        let recording = self.host.rt.recording()?;
        let functions = self.host.function_times.lock().clone();
        Some(Timeline { recording, functions, sources: self.host.sources.read().clone() })
    }
}
