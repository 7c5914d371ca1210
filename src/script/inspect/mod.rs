//! Inspection of a session and of texts without changing them: completion, state, contents, times.

pub mod complete;
pub mod contents;
pub mod look;
pub mod machine;
pub mod measure;
pub mod profile;
