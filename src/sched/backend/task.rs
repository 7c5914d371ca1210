//! Single works that are no window: copies, waits of the clock, marks of time. Each kind of device takes them in its own
//! way.

use super::touch::Span;
use crate::base::device_id::DeviceId;
use crate::device::clock::Clock;
use crate::sched::profile::timeline::{Part, Timing};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to put on a stream.
pub enum Task {
    Nothing,
    Sleep {
        ns: u64,
    },
    /// Bytes of the host, taken before the call returns.
    Write {
        from: Span,
        to: Span,
    },
    /// Between a device and pinned host memory, or between two devices.
    Copy {
        from: (DeviceId, Span),
        to: (DeviceId, Span),
    },
    /// Ends without having done anything: a launch that goes wrong by plan.
    Fails,
}

/// What its caller wants to know of a task.
#[derive(Default)]
pub struct Wish {
    /// When the stream passes it.
    pub stamp: bool,
    /// Whether it ran.
    pub ran: bool,
    /// When it ran, as this part of a trace, on this clock.
    pub trace: Option<(Part, Clock)>,
}

/// A task on its way, with what was wished for, as far as the device can tell.
#[derive(Default)]
pub struct Enqueued {
    pub sequence: u64,
    pub stamp: Option<Stamp>,
    pub ran: Option<Arc<AtomicBool>>,
    pub timing: Option<Timing>,
}

/// When a stream passed a point; only the kind of device that made it can read it.
#[derive(Clone)]
pub struct Stamp(pub Arc<dyn Any + Send + Sync>);
