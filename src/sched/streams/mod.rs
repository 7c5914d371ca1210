//! The streams and devices of a session: where work is queued, and single tasks.

pub mod enqueue;
pub mod facts;
pub mod gates;
pub mod placement;
pub mod stream;
pub mod watch;
