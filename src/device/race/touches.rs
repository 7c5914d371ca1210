//! The race detector's record in each buffer.

use super::history::BufferClock;
use crate::base::span::Origin;

/// The race detector's record of a buffer.
///
/// Most buffers are accessed by one stream, which reads and writes the whole: that costs no allocation.
#[derive(Default)]
pub struct Touches {
    /// 1 + the lane of that stream; 0 before the first access.
    pub owner: u32,
    /// Its last write, and its last read after that.
    pub write: Option<Touch>,
    pub read: Option<Touch>,
    /// The full record, once another stream or a part of the buffer is accessed.
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
