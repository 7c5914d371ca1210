//! Single works that are no window: copies, waits of the clock, marks of time. Each kind of queue takes them in its
//! own way.

use crate::base::device_id::DeviceId;
use crate::device::cuda::staging::Staging;
use crate::device::cuda::{self, Event, KernelError};
use crate::device::sim;
use crate::device::virtual_time::copy_ns;
use crate::sched::backend::device_set::Kind;
use crate::sched::backend::touch::Span;
use crate::sched::profile::timeline::{Part, Timing};
use crate::sched::runtime::{Runtime, State};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What to put on a stream.
pub(in crate::sched) enum Task {
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

/// A task on its way.
pub(in crate::sched) struct Watched {
    pub sequence: u64,
    pub timing: Option<Timing>,
    pub ran: Option<Arc<AtomicBool>>,
}

/// When a stream passed a point.
#[derive(Clone)]
pub(in crate::sched) enum Stamp {
    Simulated(Arc<AtomicU64>),
    Cuda(Arc<Event>),
}

impl Stamp {
    /// Milliseconds from one stamp to another; both have been passed.
    pub fn ms_until(&self, other: &Stamp) -> Result<f64, String> {
        match (self, other) {
            (Stamp::Simulated(a), Stamp::Simulated(b)) => {
                Ok((b.load(Ordering::Acquire) as f64 - a.load(Ordering::Acquire) as f64) / 1e6)
            }
            (Stamp::Cuda(a), Stamp::Cuda(b)) => a.elapsed_ms(b).map(f64::from).map_err(|error| error.to_string()),
            _ => Err("the events are of different kinds of devices".to_string()),
        }
    }
}

impl Runtime {
    /// Queues a task on a stream, after what the stream waits for; a trace shows it as `part`.
    pub(in crate::sched) fn enqueue_watched(&self, state: &mut State, slot: u32, task: Task, part: Part) -> Watched {
        let ran = Arc::new(AtomicBool::new(false));
        let parts = SmallVec::from_elem(part, 1);
        let mut timing = self.timeline.as_ref().map(|_| Timing::new(std::iter::once(parts)));
        let known = matches!(self.gpus().map(|gpus| &gpus.kind), Some(Kind::Simulated(_)));
        let (sequence, _) = self.put(state, slot, task, false, Some((&mut timing, ran.clone())));
        state.streams[slot as usize].last_work = (part.number, sequence);
        Watched { sequence, timing, ran: known.then_some(ran) }
    }

    /// As `enqueue_watched`, for what no trace shows; keeps the time of its end when asked to.
    pub(in crate::sched) fn enqueue_timed(
        &self,
        state: &mut State,
        slot: u32,
        task: Task,
        timed: bool,
    ) -> (u64, Option<Stamp>) {
        self.put(state, slot, task, timed, None)
    }

    fn put(
        &self,
        state: &mut State,
        slot: u32,
        task: Task,
        timed: bool,
        watched: Option<(&mut Option<Timing>, Arc<AtomicBool>)>,
    ) -> (u64, Option<Stamp>) {
        let gpus = self.gpus().expect("streams are of devices");
        let stream = &mut state.streams[slot as usize];
        let after = std::mem::take(&mut stream.waits);
        let (sequence, stamp) = match &gpus.kind {
            Kind::Simulated(simulator) => {
                let timing = watched.as_ref().and_then(|(timing, _)| timing.as_ref());
                let stamp = timing.map(|timing| timing.ended.clone()).or(timed.then(Arc::default));
                let began = timing.map(|timing| timing.began.clone());
                let mut work = sim::Work { after, began, stamp: stamp.clone(), ..sim::Work::default() };
                (work.job, work.takes_ns) = simulated(task);
                if let Some((_, ran)) = watched {
                    let job = work.job.take();
                    work.job = Some(Box::new(move || {
                        job.into_iter().for_each(|job| job());
                        ran.store(true, Ordering::Release);
                    }));
                }
                (simulator.submit(slot, work), stamp.map(Stamp::Simulated))
            }
            Kind::Cuda(set) => {
                let mut stamp = None;
                if let Some(stream) = set.lanes.begin(slot, &after) {
                    let timing = watched.map(|(timing, _)| timing);
                    let begun = timing.as_ref().and_then(|_| self.begin_timing(set, Some(&stream)));
                    // A device that answers no more is noticed where its results are asked for.
                    let _ = set.with_staging(slot, &stream, |staging| on_cuda(task, &stream, &set.lanes, staging));
                    if let Some(timing) = timing {
                        let parts = timing.take().and_then(|timing| timing.steps.into_iter().next());
                        *timing = begun;
                        self.end_step(timing, Some(&stream), parts.map(|(parts, _)| parts).unwrap_or_default());
                    }
                    if timed && let Ok(event) = Event::new(stream.context(), cuda::Timing::On) {
                        let _ = event.record(&stream);
                        stamp = Some(Stamp::Cuda(Arc::new(event)));
                    }
                }
                (set.lanes.end(slot), stamp)
            }
        };
        stream.submitted = stream.submitted.max(sequence);
        (sequence, stamp)
    }

    /// Queues a closure on a simulated device's stream.
    pub(in crate::sched) fn enqueue_job(
        &self,
        state: &mut State,
        slot: u32,
        simulator: &sim::Simulator,
        job: sim::Job,
        timing: Option<&Timing>,
    ) -> u64 {
        let stream = &mut state.streams[slot as usize];
        let after = std::mem::take(&mut stream.waits);
        let (began, stamp) = (timing.map(|timing| timing.began.clone()), timing.map(|timing| timing.ended.clone()));
        let work = sim::Work { after, job: Some(job), began, stamp, ..sim::Work::default() };
        stream.submitted = simulator.submit(slot, work);
        stream.submitted
    }
}

fn simulated(task: Task) -> (Option<sim::Job>, u64) {
    match task {
        Task::Nothing | Task::Fails => (None, 0),
        Task::Sleep { ns } => (None, ns),
        Task::Write { from, to } => {
            let (bytes, ns) = (from.read(), copy_ns(from.len()));
            (Some(Box::new(move || to.write(&bytes))), ns)
        }
        Task::Copy { from: (_, from), to: (_, to) } => {
            let ns = copy_ns(from.len());
            (Some(Box::new(move || from.copy_to(&to))), ns)
        }
    }
}

fn on_cuda(
    task: Task,
    stream: &crate::device::cuda::Stream,
    lanes: &crate::device::cuda::Lanes,
    staging: &mut Staging,
) -> Result<(), KernelError> {
    match task {
        Task::Nothing | Task::Fails => Ok(()),
        Task::Sleep { ns } => crate::sched::backend::cuda::lane::sleep(stream, ns),
        Task::Write { from, to } => Ok(to.stage_from_host(stream, &from, staging)?),
        Task::Copy { from: (source, from), to: (target, to) } => match (source, target) {
            (DeviceId::Cpu, _) => Ok(to.fill_from_host(stream, &from)?),
            (_, DeviceId::Cpu) => Ok(from.copy_to_host(stream, &to)?),
            (DeviceId::Cuda(source), DeviceId::Cuda(target)) => {
                let (source, target) = (lanes.context(source), lanes.context(target));
                Ok(stream.copy_between((target, to.address()), (source, from.address()), from.len())?)
            }
        },
    }
}
