//! NVIDIA GPUs: each step is a launch on a CUDA stream.

mod cached;
mod device;
mod lane;
mod slots;
mod special;
mod step_times;
mod submission;
mod touch;
mod vendor;

use super::gpus::{Gpus, gpu};
use super::step::Submission;
use super::task::{Enqueued, Stamp, Task, Wish};
use super::touch::Span;
use super::{After, Backend, Compiled, Facts, Window};
use crate::base::device_id::DeviceId;
use crate::base::dtype::DType;
use crate::device::cuda::memory::{DeviceMemory, PinnedMemory};
use crate::device::cuda::staging::Staging;
use crate::device::cuda::{Context, Event, KernelError, Stream, StreamTable, Timing};
use crate::device::planned_fault::{Fate, FaultPlan, PlannedFault};
use crate::device::queues::{Point, Queues};
use crate::kernel::abi::Fault;
use crate::kernel::custom::Custom;
use crate::kernel::recurrent::layer::Layer;
use crate::sched::memory::Memory;
use crate::sched::options::{MatmulPrecision, Options};
use crate::sched::window::plan::Prepared;
use cached::Cached;
use device::CudaDevice;
use lane::text;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use step_times::StepTimes;
use submission::Launching;

/// NVIDIA GPUs with their state in a session.
struct Cuda {
    lanes: Arc<StreamTable>,
    devices: Vec<Arc<CudaDevice>>,
    /// By slot of the stream: pinned staging buffers for copies from pageable memory.
    staging: Mutex<HashMap<u32, Staging>>,
    /// The launch that a test makes fail with an illegal address.
    breaks: bool,
}

/// The GPUs of the machine, unless simulated ones were requested.
pub(in crate::sched) fn open(options: &Options) -> Option<Gpus> {
    if options.simulate.is_some() {
        return None;
    }
    let driver = crate::device::cuda::open().ok()?;
    let contexts: Vec<&'static Context> = driver.devices().iter().map(|device| device.context()).collect();
    let first = *contexts.first()?;
    let lanes = Arc::new(StreamTable::new(contexts.clone()));
    let queues: Arc<dyn Queues> = lanes.clone();
    let devices: Vec<Arc<CudaDevice>> = contexts.iter().map(|context| Arc::new(CudaDevice::new(context))).collect();
    let memory = |(at, device): (usize, &Arc<CudaDevice>)| {
        let held = device.clone();
        let let_go = Box::new(move || held.let_go());
        gpu(DeviceMemory::new(device.context), at as u16, options, &queues, Some(let_go))
    };
    let list = devices.iter().enumerate().map(memory).collect();
    // For tests of reports about a lost device: `lost:3@cuda:0` makes the third launch write to an illegal address.
    let wish = std::env::var("TSCRIPT_TEST_STRAY").ok().and_then(|text| PlannedFault::parse(&text).ok());
    Some(Gpus {
        backend: Box::new(Cuda { lanes, devices, staging: Mutex::default(), breaks: wish.is_some() }),
        queues,
        list,
        pinned: Mutex::new(Memory::new(Box::new(PinnedMemory::new(first)))),
        faults: Mutex::new(FaultPlan::new(wish.into_iter().collect())),
        counts_requests: false,
    })
}

impl Cuda {
    /// Calls `work` with the staging buffers of a stream.
    fn with_staging<R>(&self, slot: u32, stream: &Stream, work: impl FnOnce(&mut Staging) -> R) -> R {
        work(self.staging.lock().entry(slot).or_insert_with(|| Staging::new(stream.context())))
    }

    /// The device of a stream.
    fn device_of(&self, stream: &Stream) -> Option<&Arc<CudaDevice>> {
        self.devices.iter().find(|device| std::ptr::eq(device.context, stream.context()))
    }

    /// For tests: makes the device fail at this launch (see `open`) by a write to an illegal address.
    fn break_by_plan(&self, stream: &Stream, window: &Window<'_>) {
        if self.breaks && window.planned.lock().launch(window.name.device) != Fate::Runs {
            // The effect is noticed where all lost devices are.
            let _ = special::illegal_write(stream);
        }
    }

    fn queue(&self, task: Task, stream: &Stream, staging: &mut Staging) -> Result<(), KernelError> {
        match task {
            Task::Nothing | Task::Fails => Ok(()),
            Task::Sleep { ns } => special::sleep(stream, ns),
            Task::Write { from, to } => Ok(to.stage_from_host(stream, &from, staging)?),
            Task::Copy { from: (source, from), to: (target, to) } => match (source, target) {
                (DeviceId::Cpu, _) => Ok(to.fill_from_host(stream, &from)?),
                (_, DeviceId::Cpu) => Ok(from.copy_to_host(stream, &to)?),
                (DeviceId::Cuda(source), DeviceId::Cuda(target)) => {
                    let (source, target) = (self.lanes.context(source), self.lanes.context(target));
                    Ok(stream.copy_between((target, to.address()), (source, from.address()), from.len())?)
                }
            },
        }
    }
}

impl Backend for Cuda {
    fn facts(&self, device: u16) -> Facts {
        let facts = self.devices[device as usize].context.facts();
        Facts {
            name: facts.name.clone(),
            capability: facts.capability,
            multiprocessors: facts.multiprocessors,
            uuid: facts.uuid,
            is_simulated: false,
        }
    }

    /// Creates the GPU's context.
    fn open(&self, device: u16) {
        self.lanes.context(device).open();
    }

    fn compile(&self, device: u16, custom: &'static Custom) -> Compiled {
        let kernels = self.devices[device as usize].context.kernels();
        match kernels.function(&text(&custom.source), &custom.entry) {
            Ok(function) => {
                let bytes = |at: usize| custom.params[at].size_bytes();
                let sizes = function.parameters();
                let differs = (0..sizes.len()).find(|&at| at >= custom.params.len() || sizes[at].1 != bytes(at));
                match differs {
                    Some(at) => Compiled::Failed(format!(
                        "parameter {at} has {} bytes, which the types do not say",
                        sizes[at].1
                    )),
                    None => Compiled::Runs,
                }
            }
            Err(KernelError::Text { log, .. }) => Compiled::Faulty(log),
            Err(error) => Compiled::Failed(error.to_string()),
        }
    }

    fn recurrent_reserve(&self, device: u16, layer: &Layer, dtype: DType, biased: bool) -> usize {
        // Without the library's answer our own kernels run.
        let room = self.devices[device as usize].library_room(layer, dtype, biased).ok().flatten();
        room.map_or(0, |room| room.reserve)
    }

    fn begin<'a>(&'a self, window: Window<'a>) -> Box<dyn Submission + 'a> {
        Box::new(Launching::new(self, window))
    }

    fn enqueue(&self, slot: u32, after: After, task: Task, wish: Wish) -> Enqueued {
        let mut enqueued = Enqueued::default();
        if let Some(stream) = self.lanes.begin(slot, &after) {
            let begun = wish
                .trace
                .and_then(|(part, clock)| Some((part, StepTimes::begin(self.device_of(&stream)?, clock, &stream)?)));
            // A lost device is noticed where its results are read.
            let _ = self.with_staging(slot, &stream, |staging| self.queue(task, &stream, staging));
            let step_times =
                begun.and_then(|(part, step_times)| step_times.end_step(&stream, SmallVec::from_elem(part, 1)));
            enqueued.timing = step_times.map(StepTimes::timing);
            if wish.stamp
                && let Ok(event) = Event::new(stream.context(), Timing::On)
            {
                let _ = event.record(&stream);
                enqueued.stamp = Some(Stamp(Arc::new(event)));
            }
        }
        Enqueued { sequence: self.lanes.end(slot), ..enqueued }
    }

    fn elapsed_ms(&self, from: &Stamp, to: &Stamp) -> Result<f64, String> {
        match (from.0.downcast_ref::<Event>(), to.0.downcast_ref::<Event>()) {
            (Some(from), Some(to)) => from.elapsed_ms(to).map(f64::from).map_err(|error| error.to_string()),
            _ => Err("the events are of different kinds of devices".to_string()),
        }
    }

    fn shares_memory(&self) -> bool {
        false
    }

    fn read(&self, device: u16, from: &Span) -> Result<Vec<u8>, String> {
        let slot = device as u32 + 1;
        let Some(stream) = self.lanes.begin(slot, &[]) else { return Err("no stream could be made there".into()) };
        self.with_staging(slot, &stream, |staging| from.fetch(&stream, staging)).map_err(|error| error.to_string())
    }

    fn is_query_slow(&self) -> bool {
        true
    }

    fn set_matmul_precision(&self, precision: MatmulPrecision) {
        self.devices.iter().for_each(|device| device.set_tf32(precision != MatmulPrecision::Highest));
    }

    fn set_deterministic(&self, only: bool) {
        self.devices.iter().for_each(|device| device.set_deterministic(only));
    }

    fn let_go(&self) {
        self.devices.iter().for_each(|device| device.let_go());
    }

    /// Graphs are freed; they are recorded again if that is worthwhile.
    fn forget(&self, prepared: &mut Prepared) {
        if !prepared.is_empty() {
            prepared.get::<Cached>().recordings.iter_mut().for_each(|recording| recording.replay.forget());
        }
    }

    fn death(&self, device: u16) -> Option<String> {
        self.devices[device as usize].context.death().map(|death| death.to_string())
    }

    fn has_run(&self, point: Point) -> bool {
        self.lanes.has_run(point)
    }

    fn decides_gates(&self) -> bool {
        true
    }

    fn read_slot(&self, device: u16, slot: u32) -> Option<Fault> {
        self.devices[device as usize].slots.lock().read(slot)
    }

    fn free_slot(&self, device: u16, slot: u32) {
        self.devices[device as usize].slots.lock().free(slot);
    }

    fn set_first_fault(&self, device: u16, stream: u32, number: Option<u64>) {
        self.devices[device as usize].slots.lock().set_first_fault(stream, number);
    }
}
