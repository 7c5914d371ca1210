//! Single tasks outside of windows: copies, sleeps, time stamps. Each kind of device carries them out in its own way.

use super::touch::Span;
use crate::base::device_id::DeviceId;
use crate::device::clock::Clock;
use crate::sched::profile::timeline::{Part, Timing};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to queue on a stream.
pub enum Task {
    Nothing,
    Sleep {
        ns: u64,
    },
    /// Bytes of the host, read before the call returns.
    Write {
        from: Span,
        to: Span,
    },
    /// Between a device and pinned host memory, or between two devices.
    Copy {
        from: (DeviceId, Span),
        to: (DeviceId, Span),
    },
    /// Ends without doing anything: a launch that fails by plan.
    Fails,
}

/// What the caller wants to know about a task.
#[derive(Default)]
pub struct Wish {
    /// The time when the stream passes it.
    pub stamp: bool,
    /// Whether it ran.
    pub ran: bool,
    /// When it ran, as this part of a trace, on this clock.
    pub trace: Option<(Part, Clock)>,
}

/// A queued task, with the requested information, as far as the device can provide it.
#[derive(Default)]
pub struct Enqueued {
    pub sequence: u64,
    pub stamp: Option<Stamp>,
    pub ran: Option<Arc<AtomicBool>>,
    pub timing: Option<Timing>,
}

/// The time when a stream passed a point; only the kind of device that created it can read it.
#[derive(Clone)]
pub struct Stamp(pub Arc<dyn Any + Send + Sync>);
