//! The streams and devices of a session: where work goes, and what is queued there beside windows.

pub mod enqueue;
pub mod facts;
pub mod gates;
pub mod placement;
pub mod stream;
pub mod watch;
