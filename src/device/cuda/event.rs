//! Events: points of a stream that can be waited for and timed. Handles are pooled, since creating one costs as much as a
//! launch. Does not know what work precedes an event.

use super::context::Context;
use super::error::{DriverError, NOT_READY, driver};
use super::stream::Stream;
use cudarc::driver::sys;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an event records the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    Off,
    On,
}

/// Unused event handles of one context.
#[derive(Default)]
pub struct Pool {
    free: [Mutex<Vec<Handle>>; 2],
}

struct Handle(sys::CUevent);

// SAFETY: CUDA's events may be used from any thread.
unsafe impl Send for Handle {}

/// An event of one context. It may be dropped at any time: a queued wait refers to the point that was recorded when it
/// was queued.
pub struct Event {
    context: &'static Context,
    handle: Handle,
    timing: Timing,
    recorded: AtomicBool,
}

// SAFETY: CUDA's events may be used from any thread, and the flag is atomic.
unsafe impl Sync for Event {}

impl Event {
    pub fn new(context: &'static Context, timing: Timing) -> Result<Event, DriverError> {
        let recorded = AtomicBool::new(false);
        let free = context.events.free[timing as usize].lock().pop();
        if let Some(handle) = free {
            return Ok(Event { context, handle, timing, recorded });
        }
        context.make_current()?;
        let flags = match timing {
            Timing::Off => sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32,
            Timing::On => sys::CUevent_flags_enum::CU_EVENT_DEFAULT as u32,
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; the call writes one pointer.
        context.note(unsafe { driver!(cuEventCreate(&mut handle, flags)) })?;
        Ok(Event { context, handle: Handle(handle), timing, recorded })
    }

    pub(super) fn handle(&self) -> sys::CUevent {
        self.handle.0
    }

    pub fn context(&self) -> &'static Context {
        self.context
    }

    pub fn timing(&self) -> Timing {
        self.timing
    }

    pub fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Acquire)
    }

    /// Records the point after all work that `stream` has so far. Cost: 0.2 µs together with the wait of another
    /// stream.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: both handles are alive; the driver checks that they are of one context.
        self.context.note(unsafe { driver!(cuEventRecord(self.handle.0, stream.handle())) })?;
        self.recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the work before the point is done; yes for an event that was never recorded.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        if !self.is_recorded() {
            return Ok(true);
        }
        self.context.make_current()?;
        // SAFETY: the event lives as long as `self`, which destroys it when dropped.
        match unsafe { driver!(cuEventQuery(self.handle.0)) } {
            Ok(()) => Ok(true),
            Err(error) if error.code == NOT_READY => Ok(false),
            Err(error) => self.context.note(Err(error)),
        }
    }

    /// Waits until the work before the point is done. Cannot be interrupted; see [`super::Timeline::wait`].
    pub fn wait(&self) -> Result<(), DriverError> {
        if !self.is_recorded() {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: the event lives as long as `self`, which destroys it when dropped.
        self.context.note(unsafe { driver!(cuEventSynchronize(self.handle.0)) })
    }

    /// Milliseconds from this point to `end`, with a resolution of about half a microsecond. Both events have timing,
    /// are recorded and done.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32, DriverError> {
        self.context.make_current()?;
        let mut ms = 0.0;
        // SAFETY: both handles are alive; the call writes one number.
        self.context.note(unsafe { driver!(cuEventElapsedTime_v2(&mut ms, self.handle.0, end.handle.0)) })?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let handle = Handle(self.handle.0);
        self.context.events.free[self.timing as usize].lock().push(handle);
    }
}
