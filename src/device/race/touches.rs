//! What lies in a buffer for the race detector.

use super::history::BufferClock;
use crate::base::span::Origin;

/// What the race detector knows about a buffer.
///
/// Most buffers are touched by one stream, which reads and writes the whole: that costs no allocation.
#[derive(Default)]
pub struct Touches {
    /// 1 + the lane of that stream; 0 before any touched it.
    pub owner: u32,
    /// Its last write, and its last read after that.
    pub write: Option<Touch>,
    pub read: Option<Touch>,
    /// Everything, once there is more to know than that.
    pub history: Option<Box<BufferClock>>,
}

/// One access to a whole buffer.
#[derive(Clone, Copy)]
pub struct Touch {
    /// Which access of its stream it was.
    pub epoch: u64,
    pub origin: Origin,
    /// The operation's name.
    pub op: &'static str,
}
