//! Streams: queues of a device that run concurrently. Does not know what is queued.

use super::context::Context;
use super::error::{DriverError, NOT_READY, driver};
use super::event::Event;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Bound: counters of a stream. Twice the number of blocks that share their work on the largest current GPU.
const COUNTERS: usize = 4096;

/// A queue of one device. Queued work still runs after it is dropped.
///
/// Not: CUDA's null stream. It waits for the other streams of the process and they wait for it, so the stream that
/// scripts know as 0 is one of these too.
pub struct Stream {
    context: &'static Context,
    handle: sys::CUstream,
    priority: i32,
    /// Device address of the counters; None if they could not be allocated.
    counters: OnceLock<Option<u64>>,
}

// SAFETY: CUDA's streams may be used from any thread; calls on one stream are queued in the order they are made.
unsafe impl Send for Stream {}
// SAFETY: for `Sync` as for `Send`: CUDA's streams may be used from any thread; calls on one stream are queued in the
// order they are made.
unsafe impl Sync for Stream {}

impl Stream {
    /// A smaller `priority` is more urgent, 0 is usual; the driver clamps it to [`Context::priorities`].
    pub fn new(context: &'static Context, priority: i32) -> Result<Stream, DriverError> {
        context.make_current()?;
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        let mut stream = Stream { context, handle: std::ptr::null_mut(), priority: 0, counters: OnceLock::new() };
        // SAFETY: the context is current; the calls write one pointer and one number.
        unsafe {
            context.note(driver!(cuStreamCreateWithPriority(&mut stream.handle, flags, priority)))?;
            context.note(driver!(cuStreamGetPriority(stream.handle, &mut stream.priority)))?;
        }
        Ok(stream)
    }

    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// The priority after the driver clamped it.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Device address of `count` words that are 0 between two kernels of this stream; None if there are not that many.
    /// They belong to the stream and to no allocator.
    pub fn counters(&self, count: usize) -> Option<u64> {
        if count > COUNTERS { None } else { *self.counters.get_or_init(|| self.make_counters().ok()) }
    }

    fn make_counters(&self) -> Result<u64, DriverError> {
        self.context.make_current()?;
        let (mut address, bytes) = (0, COUNTERS * size_of::<u32>());
        // SAFETY: the context is current; the first call writes one address, of as many bytes as the second fills.
        unsafe {
            self.context.note(driver!(cuMemAllocAsync(&mut address, bytes, self.handle)))?;
            self.context.note(driver!(cuMemsetD8Async(address, 0, bytes, self.handle)))?;
        }
        Ok(address)
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.handle
    }

    /// The handle for CUDA's libraries and other users of CUDA; valid as long as this value.
    pub fn raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// Later work of this stream runs after the point that `event` has now, on this device or another.
    pub fn wait_for(&self, event: &Event) -> Result<(), DriverError> {
        if !event.is_recorded() {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: both handles are alive; 0 means no special treatment in captures.
        self.context.note(unsafe { driver!(cuStreamWaitEvent(self.handle, event.handle(), 0)) })
    }

    /// Whether all work so far is done.
    pub fn is_idle(&self) -> Result<bool, DriverError> {
        self.context.make_current()?;
        // SAFETY: the stream lives as long as `self`, which destroys it when dropped.
        match unsafe { driver!(cuStreamQuery(self.handle)) } {
            Ok(()) => Ok(true),
            Err(error) if error.code == NOT_READY => Ok(false),
            Err(error) => self.context.note(Err(error)),
        }
    }

    /// Waits until all work so far is done. Cannot be interrupted; see [`super::Timeline::wait`].
    pub fn wait(&self) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the stream lives as long as `self`, which destroys it when dropped.
        self.context.note(unsafe { driver!(cuStreamSynchronize(self.handle)) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.handle.is_null() || self.context.make_current().is_err() {
            return;
        }
        // SAFETY: handle and memory are alive, and nobody can use them after what is queued. An error could only be that of
        // earlier work, which the next call reports too.
        unsafe {
            if let Some(Some(address)) = self.counters.get() {
                let _ = driver!(cuMemFreeAsync(*address, self.handle));
            }
            let _ = driver!(cuStreamDestroy_v2(self.handle));
        }
    }
}
