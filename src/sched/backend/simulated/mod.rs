//! GPUs that the machine does not have: queues over host memory (`device/simulated.rs`), with injected faults.

mod shares;
mod submission;

use super::gpus::{Gpus, gpu, host_memory};
use super::step::Submission;
use super::task::{Enqueued, Stamp, Task, Wish};
use super::{After, Backend, Facts, Window};
use crate::device::host_memory::HostMemory;
use crate::device::planned_fault::{FaultKind, FaultPlan};
use crate::device::queues::Queues;
use crate::device::simulated::{Job, Simulator, Work};
use crate::device::virtual_time::copy_ns;
use crate::sched::options::Options;
use parking_lot::Mutex;
use shares::Shares;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use submission::Batch;

struct Simulated(Arc<Simulator>);

/// The devices that the options describe.
pub(in crate::sched) fn open(options: &Options) -> Option<Gpus> {
    let simulation = options.simulate.as_ref().filter(|simulation| simulation.gpus > 0)?;
    let simulator = Arc::new(Simulator::new(simulation.gpus, simulation.seed));
    let queues: Arc<dyn Queues> = simulator.clone();
    let memory = |at| gpu(HostMemory::new(simulation.memory_bytes), at, options, &queues, None);
    let list = (0..simulation.gpus as u16).map(memory).collect();
    Some(Gpus {
        backend: Box::new(Simulated(simulator)),
        queues,
        list,
        pinned: Mutex::new(host_memory(options.host_limit)),
        faults: Mutex::new(FaultPlan::new(simulation.faults.clone())),
        counts_requests: simulation.faults.iter().any(|fault| fault.kind == FaultKind::Alloc),
    })
}

impl Backend for Simulated {
    fn facts(&self, device: u16) -> Facts {
        Facts {
            name: "Simulated GPU".to_string(),
            capability: (9, 0),
            multiprocessors: 1,
            // A UUID that no real device has: the last byte is the index.
            uuid: std::array::from_fn(|at| if at == 15 { device as u8 } else { 0 }),
            is_simulated: true,
        }
    }

    fn begin<'a>(&'a self, window: Window<'a>) -> Box<dyn Submission + 'a> {
        Box::new(Batch::new(&self.0, window))
    }

    fn enqueue(&self, stream: u32, after: After, task: Task, wish: Wish) -> Enqueued {
        let shares = wish.trace.map(|(part, _)| (part, Shares::new(1, self.0.clock())));
        let stamp: Option<Arc<AtomicU64>> = match &shares {
            Some((_, shares)) => Some(shares.ended.clone()),
            None => wish.stamp.then(Arc::default),
        };
        let began = shares.as_ref().map(|(_, shares)| shares.began.clone());
        let (mut job, takes_ns) = work_of(task);
        let ran = wish.ran.then(|| Arc::new(AtomicBool::new(false)));
        if let Some(ran) = ran.clone() {
            let inner = job.take();
            job = Some(Box::new(move || {
                inner.into_iter().for_each(|job| job());
                ran.store(true, Ordering::Release);
            }));
        }
        let sequence = self.0.submit(stream, Work { after, job, takes_ns, began, stamp: stamp.clone() });
        let timing = shares.map(|(part, shares)| shares.timing(vec![SmallVec::from_elem(part, 1)]));
        Enqueued { sequence, stamp: stamp.map(|stamp| Stamp(stamp)), ran, timing }
    }

    fn elapsed_ms(&self, from: &Stamp, to: &Stamp) -> Result<f64, String> {
        let time = |stamp: &Stamp| stamp.0.downcast_ref::<AtomicU64>().map(|at| at.load(Ordering::Acquire) as f64);
        match (time(from), time(to)) {
            (Some(from), Some(to)) => Ok((to - from) / 1e6),
            _ => Err("the events are of different kinds of devices".to_string()),
        }
    }
}

fn work_of(task: Task) -> (Option<Job>, u64) {
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
