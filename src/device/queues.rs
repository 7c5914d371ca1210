//! What the queues of simulated and CUDA devices have in common: numbered streams, points on them, waits.

use super::stop::Stop;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A point of a stream: all its work up to and including a sequence number, which counts from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The number that [`Queues::stream`] was given.
    pub stream: u32,
    pub sequence: u64,
}

/// The queues of all devices of one kind in a session.
pub trait Queues: Send + Sync {
    /// A new stream under a number of the caller's; returns the counter of its finished works. The error is a
    /// sentence for the user.
    fn stream(&self, number: u32, device: u16, priority: i32) -> Result<Arc<AtomicU64>, String>;
    /// Waits until the stream has passed the point, or it should stop; says whether it has passed.
    fn wait(&self, stream: u32, sequence: u64, stop: &Stop) -> bool;
    /// Waits for everything on one device.
    fn wait_idle(&self, device: u16, stop: &Stop) -> bool;
    /// Brings the stream's counter up to date.
    fn refresh(&self, stream: u32);
    /// As `refresh`, for a host that polls in a loop: virtual time passes with each call.
    fn poll(&self, stream: u32);
    /// The device is gone: its queued works count as passed, so that nobody waits for them.
    fn lose(&self, device: u16);
    /// Ends works that only take time (`cuda::sleep`) at once, where the device can.
    fn hurry(&self) {}
    /// Called when nothing more will be queued: waits until no work accesses memory any more, or until `waiting` is
    /// due; says whether that is so.
    fn stop(&self, waiting: &Stop) -> bool;
}
