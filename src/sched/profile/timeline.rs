//! What ran when, for `--profile`: launches and waits of the script, works of streams, memory.
//!
//! Off, it costs one test at each operation. Knows no format of files and no names of sources.

use crate::base::device_id::DeviceId;
use crate::base::span::{Origin, Site};
use crate::device::clock::Clock;
use crate::device::cuda::{self, Stopwatch};
use crate::op::tensor::View;
use crate::sched::backend::device_set::{CudaSet, Kind};
use crate::sched::race::StreamName;
use crate::sched::runtime::{Runtime, State};
use crate::sched::streams::stream::HOST;
use crate::sched::window::node::Node;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where a slice stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Row {
    /// The script's own thread.
    Script,
    /// A stream; the CPU's one works while the script's thread waits.
    Stream(StreamName),
}

/// What a slice shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The script asks for an operation.
    Launch,
    /// A stream carries operations out, in one pass over memory when they are several.
    Work,
    /// The script's thread waits until something was carried out.
    Wait,
}

/// One operation of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    pub name: &'static str,
    pub origin: Origin,
    /// The same at the launch and where it is carried out; 0 for waits.
    pub number: u64,
}

/// A piece of time of one row.
#[derive(Clone, Debug)]
pub struct Slice {
    pub row: Row,
    pub what: What,
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

/// Everything that was seen. Times in ns since the session began.
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
    /// Packed place of the native call at work.
    here: AtomicU64,
    waiting: AtomicBool,
    recording: Mutex<Recording>,
}

/// When a submission began and ended on its device, and how long each of its steps took there.
#[derive(Default)]
pub struct Timing {
    pub(in crate::sched) began: Arc<AtomicU64>,
    pub(in crate::sched) ended: Arc<AtomicU64>,
    /// By step: its parts, and its time as the queue's thread measured it.
    pub(in crate::sched) steps: Vec<(SmallVec<[Part; 1]>, Arc<AtomicU64>)>,
    /// On an NVIDIA GPU: points of the stream before the first step and after each.
    marks: Vec<cuda::Event>,
}

impl Timing {
    pub(in crate::sched) fn new(steps: impl Iterator<Item = SmallVec<[Part; 1]>>) -> Timing {
        let steps = steps.map(|parts| (parts, Arc::default())).collect();
        Timing { steps, ..Timing::default() }
    }

    /// A simulated submission's steps share the time that it took on its device as they shared the time that was
    /// measured. Begin and end of each, on the simulator's clock.
    fn shares(&self) -> Vec<(u64, u64)> {
        let [began, ended] = [&self.began, &self.ended].map(|at| at.load(Ordering::Acquire));
        let span = ended.saturating_sub(began);
        let took: Vec<u64> = self.steps.iter().map(|(_, took)| took.load(Ordering::Acquire)).collect();
        let measured: u64 = took.iter().sum();
        if measured == 0 {
            // A copy is not measured and is the whole submission.
            return took.iter().map(|_| (began, if ended == 0 { began } else { ended })).collect();
        }
        let at = |part: u64| began + (span as u128 * part as u128 / measured as u128) as u64;
        let ends = took.iter().scan(0, |sum, took| {
            *sum += took;
            Some(*sum)
        });
        ends.zip(&took).map(|(end, took)| (at(end - took), at(end))).collect()
    }
}

/// A wait of the script's thread; it ends when this is dropped.
pub struct Waiting<'a>(Option<(&'a Timeline, &'static str, u64)>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some((trace, name, begin_ns)) = self.0 else { return };
        trace.waiting.store(false, Ordering::Relaxed);
        let part = Part { name, origin: trace.here(), number: 0 };
        let end_ns = trace.clock.now_ns();
        trace.push(Slice { row: Row::Script, what: What::Wait, parts: SmallVec::from_elem(part, 1), begin_ns, end_ns });
    }
}

impl Timeline {
    pub fn new() -> Timeline {
        let (here, waiting, recording) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::default());
        Timeline { clock: Clock::start(), here, waiting, recording }
    }

    /// The place of the native call at work.
    pub(in crate::sched) fn here(&self) -> Origin {
        let packed = self.here.load(Ordering::Relaxed);
        Origin { user: Site((packed >> 32) as u32), inner: Site(packed as u32) }
    }

    pub(in crate::sched) fn push(&self, slice: Slice) {
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
    /// The native call that is at work now: waits are put down to it.
    pub fn note_call(&self, origin: Origin) {
        if let Some(trace) = &self.timeline {
            trace.here.store((origin.user.0 as u64) << 32 | origin.inner.0 as u64, Ordering::Relaxed);
        }
    }

    /// What was recorded so far; none without `profile`.
    pub fn recording(&self) -> Option<Recording> {
        let trace = self.timeline.as_ref()?;
        Some(trace.recording.lock().clone())
    }

    /// The script's thread waits until the result is dropped. A wait within a wait is part of it.
    pub(in crate::sched) fn waiting(&self, name: &'static str) -> Waiting<'_> {
        let outermost = self.timeline.as_deref().filter(|trace| !trace.waiting.swap(true, Ordering::Relaxed));
        Waiting(outermost.map(|trace| (trace, name, trace.clock.now_ns())))
    }

    /// The time now, when somebody wants to know.
    pub(in crate::sched) fn time_now(&self) -> Option<u64> {
        self.timeline.as_ref().map(|trace| trace.clock.now_ns())
    }

    /// The script has asked for an operation, since `begin_ns`.
    pub(in crate::sched) fn note_launch(&self, begin_ns: Option<u64>, part: Part) {
        if let (Some(trace), Some(begin_ns)) = (&self.timeline, begin_ns) {
            let (parts, end_ns) = (SmallVec::from_elem(part, 1), trace.clock.now_ns());
            trace.push(Slice { row: Row::Script, what: What::Launch, parts, begin_ns, end_ns });
        }
    }

    /// A step of the host's window has run, since `begin_ns`.
    pub(in crate::sched) fn note_host_step(
        &self,
        state: &State,
        begin_ns: Option<u64>,
        nodes: &[Node],
        step: &[usize],
    ) {
        if let (Some(trace), Some(begin_ns)) = (&self.timeline, begin_ns) {
            let row = Row::Stream(state.streams[HOST as usize].name);
            let parts = step.iter().map(|&at| part(&nodes[at])).collect();
            trace.push(Slice { row, what: What::Work, parts, begin_ns, end_ns: trace.clock.now_ns() });
        }
    }

    /// Begins the times of what is queued on an NVIDIA GPU's stream, when somebody wants to know.
    pub(in crate::sched) fn begin_timing(&self, set: &CudaSet, stream: Option<&cuda::Stream>) -> Option<Timing> {
        let (trace, stream) = (self.timeline.as_ref()?, stream?);
        let device = set.devices.iter().find(|device| std::ptr::eq(device.context, stream.context()))?;
        let mut watch = device.stopwatch.lock();
        if watch.is_none() {
            *watch = Some(Stopwatch::start(stream, trace.clock).ok()?);
        }
        Some(Timing { marks: vec![Stopwatch::mark(stream).ok()?], ..Timing::default() })
    }

    /// Everything queued since the last mark is one step.
    pub(in crate::sched) fn end_step(
        &self,
        timing: &mut Option<Timing>,
        stream: Option<&cuda::Stream>,
        parts: SmallVec<[Part; 1]>,
    ) {
        let (Some(known), Some(stream)) = (timing.as_mut(), stream) else { return };
        match Stopwatch::mark(stream) {
            Ok(mark) => {
                known.marks.push(mark);
                known.steps.push((parts, Arc::default()));
            }
            // The device is gone, which is told elsewhere.
            Err(_) => *timing = None,
        }
    }

    /// A submission has ended: a slice for each of its steps.
    pub(in crate::sched) fn note_submission(&self, name: StreamName, timing: Timing) {
        let (Some(trace), Some(gpus)) = (&self.timeline, self.gpus()) else { return };
        let spans: Vec<(u64, u64)> = match (&gpus.kind, name.device) {
            (Kind::Simulated(simulator), _) => {
                let begin = trace.clock.begin_of(simulator.clock());
                timing.shares().into_iter().map(|(from, to)| (begin + from, begin + to)).collect()
            }
            (Kind::Cuda(set), DeviceId::Cuda(index)) => {
                let mut watch = set.devices[index as usize].stopwatch.lock();
                let times = watch.as_mut().and_then(|watch| watch.times(timing.marks).ok()).unwrap_or_default();
                times.windows(2).map(|pair| (pair[0], pair[1])).collect()
            }
            _ => return,
        };
        // What was left out took no time.
        for ((parts, _), (begin_ns, end_ns)) in timing.steps.into_iter().zip(spans).filter(|(_, span)| span.1 > span.0)
        {
            trace.push(Slice { row: Row::Stream(name), what: What::Work, parts, begin_ns, end_ns });
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
