//! When operations ran, for `--profile`: launches and waits of the script, work of streams, memory.
//!
//! Costs one test for each operation when it is off. Independent of file formats and names of sources.

use crate::base::device_id::DeviceId;
use crate::base::span::{Origin, Site};
use crate::device::clock::Clock;
use crate::device::race::StreamName;
use crate::op::tensor::View;
use crate::sched::runtime::Runtime;
use crate::sched::window::node::Node;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The row of a slice in the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Row {
    /// The script's own thread.
    Script,
    /// A stream; the CPU's stream works while the script's thread waits.
    Stream(StreamName),
}

/// The kind of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceKind {
    /// The script requests an operation.
    Launch,
    /// A stream runs operations, in one pass over memory if there are several.
    Work,
    /// The script's thread waits until something has run.
    Wait,
}

/// One operation of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    pub name: &'static str,
    pub origin: Origin,
    /// The same number at the launch and at the run; 0 for waits.
    pub number: u64,
}

/// A period of one row.
#[derive(Clone, Debug)]
pub struct Slice {
    pub row: Row,
    pub what: SliceKind,
    pub parts: SmallVec<[Part; 1]>,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Bytes of tensors on a device at a time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub device: DeviceId,
    pub at_ns: u64,
    pub bytes: u64,
}

/// Everything that was recorded. Times in ns since the session began.
#[derive(Clone, Default, Debug)]
pub struct Recording {
    pub slices: Vec<Slice>,
    pub samples: Vec<Sample>,
    /// Slices beyond the bound, of which only the number is known.
    pub left_out: u64,
}

/// Bound: slices kept, about 100 MB.
const MAX_SLICES: usize = 1_000_000;

/// The recorder of one session.
pub struct Timeline {
    pub(in crate::sched) clock: Clock,
    /// Packed position of the current native call.
    here: AtomicU64,
    waiting: AtomicBool,
    /// Time of the script's thread in launches and waits, in ns.
    busy: AtomicU64,
    recording: Mutex<Recording>,
}

/// When the steps of a submission ran.
pub struct Timing {
    /// By step.
    pub parts: Vec<SmallVec<[Part; 1]>>,
    /// Begin and end of each, in ns of a trace's clock, once all of it has ended. Fewer if the device does not report
    /// more.
    pub spans: Box<dyn FnOnce(Clock) -> Vec<(u64, u64)> + Send>,
}

/// A wait of the script's thread; it ends when this is dropped.
pub struct Waiting<'a>(Option<(&'a Timeline, &'static str, u64)>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some((trace, name, begin_ns)) = self.0 else { return };
        trace.waiting.store(false, Ordering::Relaxed);
        let part = Part { name, origin: trace.here(), number: 0 };
        let end_ns = trace.clock.now_ns();
        trace.push(Slice {
            row: Row::Script,
            what: SliceKind::Wait,
            parts: SmallVec::from_elem(part, 1),
            begin_ns,
            end_ns,
        });
    }
}

impl Timeline {
    pub fn new() -> Timeline {
        let (here, waiting, recording) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::default());
        Timeline { clock: Clock::start(), here, waiting, busy: AtomicU64::new(0), recording }
    }

    /// The position of the current native call.
    pub(in crate::sched) fn here(&self) -> Origin {
        let packed = self.here.load(Ordering::Relaxed);
        Origin { user: Site((packed >> 32) as u32), inner: Site(packed as u32) }
    }

    pub(in crate::sched) fn push(&self, slice: Slice) {
        if slice.row == Row::Script {
            self.busy.fetch_add(slice.end_ns.saturating_sub(slice.begin_ns), Ordering::Relaxed);
        }
        let mut recording = self.recording.lock();
        if recording.slices.len() < MAX_SLICES {
            recording.slices.push(slice);
        } else {
            recording.left_out += 1;
        }
    }

    fn sample(&self, device: DeviceId, bytes: u64) {
        let at_ns = self.clock.now_ns();
        let mut recording = self.recording.lock();
        if recording.samples.len() < MAX_SLICES {
            recording.samples.push(Sample { device, at_ns, bytes });
        }
    }
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::new()
    }
}

/// A node as a part of a slice.
pub(in crate::sched) fn part(node: &Node) -> Part {
    Part { name: node.name, origin: node.origin, number: node.number }
}

impl Runtime {
    /// The current native call: waits are attributed to it.
    pub fn note_call(&self, origin: Origin) {
        if let Some(trace) = &self.timeline {
            trace.here.store((origin.user.0 as u64) << 32 | origin.inner.0 as u64, Ordering::Relaxed);
        }
    }

    /// The recording so far; none without `profile`.
    pub fn recording(&self) -> Option<Recording> {
        let trace = self.timeline.as_ref()?;
        Some(trace.recording.lock().clone())
    }

    /// The time now, and how much the script's thread has spent in launches and waits, in ns; none without `profile`.
    pub fn profile_now(&self) -> Option<(u64, u64)> {
        let trace = self.timeline.as_ref()?;
        Some((trace.clock.now_ns(), trace.busy.load(Ordering::Relaxed)))
    }

    /// The script's thread waits until the result is dropped. A nested wait is part of the outer one.
    pub(in crate::sched) fn waiting(&self, name: &'static str) -> Waiting<'_> {
        let outermost = self.timeline.as_deref().filter(|trace| !trace.waiting.swap(true, Ordering::Relaxed));
        Waiting(outermost.map(|trace| (trace, name, trace.clock.now_ns())))
    }

    /// The time now, if times are recorded.
    pub(in crate::sched) fn time_now(&self) -> Option<u64> {
        self.timeline.as_ref().map(|trace| trace.clock.now_ns())
    }

    /// The script has requested an operation, since `begin_ns`.
    pub(in crate::sched) fn note_launch(&self, begin_ns: Option<u64>, part: Part) {
        if let (Some(trace), Some(begin_ns)) = (&self.timeline, begin_ns) {
            let (parts, end_ns) = (SmallVec::from_elem(part, 1), trace.clock.now_ns());
            trace.push(Slice { row: Row::Script, what: SliceKind::Launch, parts, begin_ns, end_ns });
        }
    }

    /// A step has run to its end, since `begin_ns`.
    pub(in crate::sched) fn note_step(&self, name: StreamName, begin_ns: Option<u64>, nodes: &[Node], step: &[usize]) {
        if let (Some(trace), Some(begin_ns)) = (&self.timeline, begin_ns) {
            let row = Row::Stream(name);
            let parts = step.iter().map(|&at| part(&nodes[at])).collect();
            trace.push(Slice { row, what: SliceKind::Work, parts, begin_ns, end_ns: trace.clock.now_ns() });
        }
    }

    /// A submission has ended: a slice for each of its steps.
    pub(in crate::sched) fn note_submission(&self, name: StreamName, timing: Timing) {
        let Some(trace) = &self.timeline else { return };
        let spans = (timing.spans)(trace.clock);
        // Skipped steps took no time.
        for (parts, (begin_ns, end_ns)) in timing.parts.into_iter().zip(spans).filter(|(_, span)| span.1 > span.0) {
            trace.push(Slice { row: Row::Stream(name), what: SliceKind::Work, parts, begin_ns, end_ns });
        }
    }

    /// Bytes of tensors on the device of a view, now.
    pub(in crate::sched) fn note_memory(&self, view: &View) {
        if let Some(trace) = &self.timeline {
            let bytes = self.with_home(&view.buffer, |memory| memory.allocated());
            trace.sample(view.buffer.device, bytes as u64);
        }
    }
}
