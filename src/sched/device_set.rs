//! The devices of a session: opened when a script first asks, with their memory.

use super::gpu_lane::SlotPool;
use super::memory::{self, Memory};
use super::options::{MatmulPrecision, Options, Simulation};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::device::cache::RawMemory;
use crate::device::cuda::blas::{Blas, Outcome, Product, WORKSPACE_BYTES, Workspace};
use crate::device::cuda::dnn::{Addresses, Convolution, Dnn, Run};
use crate::device::cuda::memory::{DeviceMemory, PinnedMemory};
use crate::device::cuda::replay::{Products, Replay};
use crate::device::cuda::staging::Staging;
use crate::device::cuda::{Context, DriverError, Lanes, Stopwatch, Stream};
use crate::device::host_memory::{HostMemory, physical_bytes};
use crate::device::planned_fault::{FaultKind, FaultPlan, PlannedFault};
use crate::device::queues::Queues;
use crate::device::sim::Simulator;
use crate::device::stop::Stop;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bound: graphs of one device. Each takes some ten kilobytes of the driver for every kernel in it.
const GRAPHS_MAX: usize = 256;

/// One GPU.
pub struct Gpu {
    pub memory: Mutex<Memory>,
    pub lost: AtomicBool,
    /// What is told of its loss, once.
    pub last_words: Mutex<Option<Arc<Diag>>>,
}

/// All GPUs of a session.
pub struct Gpus {
    pub kind: Kind,
    pub queues: Arc<dyn Queues>,
    pub list: Vec<Gpu>,
    /// Host memory from which devices copy while the host goes on.
    pub pinned: Mutex<Memory>,
    pub faults: Mutex<FaultPlan>,
    /// Whether a launch of a real GPU is to go astray, for a test.
    pub breaks: bool,
    /// Whether a request for memory is planned to fail: then each is made at its call.
    pub counts_requests: bool,
}

/// What the GPUs are.
pub enum Kind {
    Simulated(Arc<Simulator>),
    Cuda(CudaSet),
}

/// NVIDIA GPUs with what a session keeps of each.
pub struct CudaSet {
    pub lanes: Arc<Lanes>,
    pub devices: Vec<Arc<CudaDevice>>,
    /// By slot of the stream: pinned buffers through which ordinary memory travels.
    staging: Mutex<HashMap<u32, Staging>>,
}

impl CudaSet {
    /// Runs `work` with the staging buffers of a stream.
    pub fn with_staging<R>(&self, slot: u32, stream: &Stream, work: impl FnOnce(&mut Staging) -> R) -> R {
        work(self.staging.lock().entry(slot).or_insert_with(|| Staging::new(stream.context())))
    }
}

/// One NVIDIA GPU.
pub struct CudaDevice {
    pub context: &'static Context,
    /// Outer none: not asked for yet. Inner none: the library is not there.
    pub blas: Mutex<Option<Option<Blas>>>,
    /// As `blas`.
    dnn: Mutex<Option<Option<Dnn>>>,
    pub slots: Mutex<SlotPool>,
    /// Times for a trace; none before the first is wanted.
    pub stopwatch: Mutex<Option<Stopwatch>>,
    /// What is being queued: held back, perhaps, for a graph.
    window: Mutex<(u32, Replay)>,
    /// Streams that record graphs and do nothing else, by priority, which kernels of a graph take from them.
    recorders: Mutex<Vec<Arc<Stream>>>,
    /// One more than there are graphs.
    graphs: Arc<()>,
    /// By slot of the stream: scratch memory of matrix products, outside the statistics; 0 where there is none.
    workspaces: Mutex<HashMap<u32, u64>>,
    tf32: AtomicBool,
}

impl CudaDevice {
    fn new(context: &'static Context) -> CudaDevice {
        CudaDevice {
            context,
            blas: Mutex::new(None),
            dnn: Mutex::new(None),
            slots: Mutex::new(SlotPool::new(context)),
            stopwatch: Mutex::new(None),
            window: Mutex::default(),
            recorders: Mutex::default(),
            graphs: Arc::default(),
            workspaces: Mutex::default(),
            tf32: AtomicBool::new(false),
        }
    }

    /// Whether products and convolutions of f32 may round their factors for the tensor cores.
    pub fn tf32(&self) -> bool {
        self.tf32.load(Ordering::Relaxed)
    }

    /// The commands of a window come, to be replayed where they are those of the last time.
    pub fn begin_window(&self, slot: u32, mut replay: Replay, stream: &Arc<Stream>) {
        replay.begin(stream);
        *self.window.lock() = (slot, replay);
    }

    /// Tells the window at hand what comes next.
    pub fn tell<R>(&self, work: impl FnOnce(&mut Replay, &mut ByLibrary<'_>) -> R) -> R {
        let (slot, replay) = &mut *self.window.lock();
        work(replay, &mut ByLibrary { device: self, slot: *slot })
    }

    /// The window was told whole.
    pub fn end_window(&self) -> Replay {
        std::mem::take(&mut *self.window.lock()).1
    }

    /// Queues what is held back: memory under it may go. What fails now fails again at the window's end.
    fn let_go(&self) {
        let _ = self.tell(|replay, products| replay.step_aside(products));
    }

    /// What a further graph for a stream is made with; none where there are enough, or no stream can be had.
    pub fn recorder(&self, stream: &Stream) -> Option<(Arc<Stream>, Arc<()>)> {
        if Arc::strong_count(&self.graphs) > GRAPHS_MAX {
            return None;
        }
        let mut recorders = self.recorders.lock();
        let known = recorders.iter().find(|recorder| recorder.priority() == stream.priority()).cloned();
        let recorder = match known {
            Some(recorder) => recorder,
            None => {
                let made = Arc::new(Stream::new(self.context, stream.priority()).ok()?);
                recorders.push(made.clone());
                made
            }
        };
        Some((recorder, self.graphs.clone()))
    }

    /// Queues a product on a stream by the vendor's library.
    fn multiply(&self, slot: u32, product: &Product, stream: &Stream) -> Result<Outcome, DriverError> {
        let mut blas = self.blas.lock();
        let blas: &mut Option<Blas> = match &mut *blas {
            Some(found) => found,
            none => none.insert(Blas::open(self.context)?),
        };
        let Some(blas) = blas else { return Ok(Outcome::Unsupported) };
        let address = self.workspace(slot, WORKSPACE_BYTES);
        let workspace = Workspace { address, bytes: if address == 0 { 0 } else { WORKSPACE_BYTES } };
        blas.matmul(product, stream, workspace)
    }

    /// Works with the vendor's library of convolutions; none where there is none, or it cannot be used.
    fn with_dnn<R>(&self, work: impl FnOnce(&mut Dnn) -> Result<R, DriverError>) -> Result<Option<R>, DriverError> {
        let mut dnn = self.dnn.lock();
        // Our own kernels do without a library that is broken.
        let open = || Dnn::open(self.context).ok().flatten();
        dnn.get_or_insert_with(open).as_mut().map(work).transpose()
    }

    /// Bytes of scratch memory that the vendor's library wants for a convolution; none where it does not do it.
    pub fn convolution_scratch(&self, convolution: &Convolution, at: &Addresses) -> Result<Option<usize>, DriverError> {
        Ok(self.with_dnn(|dnn| dnn.scratch(convolution, at))?.flatten())
    }

    /// Scratch memory for the products of one stream; 0 where there is none to be had.
    pub fn workspace(&self, slot: u32, bytes: usize) -> u64 {
        let take = || DeviceMemory::new(self.context).reserve(bytes).unwrap_or(0);
        *self.workspaces.lock().entry(slot).or_insert_with(take)
    }
}

/// Products and convolutions on a stream of a device.
pub struct ByLibrary<'a> {
    device: &'a CudaDevice,
    slot: u32,
}

impl Products for ByLibrary<'_> {
    fn queue(&mut self, product: &Product, stream: &Stream) -> Result<Outcome, DriverError> {
        self.device.multiply(self.slot, product, stream)
    }

    fn convolve(&mut self, run: &Run, stream: &Stream) -> Result<Outcome, DriverError> {
        Ok(self.device.with_dnn(|dnn| dnn.convolve(run, stream))?.unwrap_or(Outcome::Unsupported))
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        let mut memory = DeviceMemory::new(self.context);
        self.workspaces.get_mut().values().filter(|&&at| at != 0).for_each(|&at| memory.release(at, 0));
    }
}

/// Memory of devices whose segments only go back when the device is idle, as with `cudaFree`; no more of it than
/// the session may have.
struct Settled<M: RawMemory> {
    raw: M,
    limit: usize,
    reserved: usize,
    /// Segments that go back when the device is idle: the script did not wait for that to its end.
    going: Vec<(u64, usize)>,
    stop: Arc<Stop>,
    device: u16,
    queues: Arc<dyn Queues>,
    /// Its launches may be held back.
    held: Option<Arc<CudaDevice>>,
}

impl<M: RawMemory> RawMemory for Settled<M> {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        let after = self.reserved.checked_add(bytes).filter(|&after| after <= self.limit)?;
        let address = self.raw.reserve(bytes)?;
        self.reserved = after;
        Some(address)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        if let Some(device) = &self.held {
            device.let_go();
        }
        self.going.push((address, bytes));
        // Work in flight still writes there.
        if self.queues.wait_idle(self.device, &self.stop) {
            for (address, bytes) in self.going.drain(..) {
                self.raw.release(address, bytes);
                self.reserved -= bytes;
            }
        }
    }

    fn total(&self) -> usize {
        self.raw.total().min(self.limit)
    }

    fn left(&self) -> usize {
        self.raw.left()
    }
}

impl<M: RawMemory> Drop for Settled<M> {
    fn drop(&mut self) {
        // The queues were stopped before this.
        self.going.drain(..).for_each(|(address, bytes)| self.raw.release(address, bytes));
    }
}

fn gpu<M: RawMemory + Send + 'static>(
    raw: M,
    device: u16,
    limits: &Options,
    queues: &Arc<dyn Queues>,
    held: Option<Arc<CudaDevice>>,
) -> Gpu {
    let (limit, stop) = (limits.device_limit, limits.stop.clone());
    let raw = Settled { raw, limit, reserved: 0, going: Vec::new(), stop, device, queues: queues.clone(), held };
    Gpu { memory: Mutex::new(Memory::new(Box::new(raw))), lost: AtomicBool::new(false), last_words: Mutex::default() }
}

impl Gpus {
    fn simulated(options: &Simulation, limits: &Options) -> Gpus {
        let simulator = Arc::new(Simulator::new(options.gpus, options.seed));
        let queues: Arc<dyn Queues> = simulator.clone();
        let memory = |at| gpu(HostMemory::new(options.memory_bytes), at, limits, &queues, None);
        let list = (0..options.gpus as u16).map(memory).collect();
        Gpus {
            kind: Kind::Simulated(simulator),
            queues,
            list,
            pinned: Mutex::new(Memory::new(Box::new(HostMemory::new(limits.host_limit.min(physical_bytes()))))),
            faults: Mutex::new(FaultPlan::new(options.faults.clone())),
            breaks: false,
            counts_requests: options.faults.iter().any(|fault| fault.kind == FaultKind::Alloc),
        }
    }

    fn cuda(limits: &Options) -> Option<Gpus> {
        let driver = crate::device::cuda::open().ok()?;
        let contexts: Vec<&'static Context> = driver.devices().iter().map(|device| device.context()).collect();
        let first = *contexts.first()?;
        let lanes = Arc::new(Lanes::new(contexts.clone()));
        let queues: Arc<dyn Queues> = lanes.clone();
        let devices: Vec<Arc<CudaDevice>> = contexts.iter().map(|context| Arc::new(CudaDevice::new(context))).collect();
        let memory = |(at, device): (usize, &Arc<CudaDevice>)| {
            gpu(DeviceMemory::new(device.context), at as u16, limits, &queues, Some(device.clone()))
        };
        let list = devices.iter().enumerate().map(memory).collect();
        // For tests of what is told of a dead device: `lost:3@cuda:0` sends the third launch astray.
        let wish = std::env::var("TSCRIPT_TEST_STRAY").ok().and_then(|text| PlannedFault::parse(&text).ok());
        Some(Gpus {
            kind: Kind::Cuda(CudaSet { lanes, devices, staging: Mutex::default() }),
            queues,
            list,
            pinned: Mutex::new(Memory::new(Box::new(PinnedMemory::new(first)))),
            breaks: wish.is_some(),
            faults: Mutex::new(FaultPlan::new(wish.into_iter().collect())),
            counts_requests: false,
        })
    }

    /// The GPUs that the options give, or that the machine has.
    pub fn open(options: &Options) -> Option<Gpus> {
        match &options.simulate {
            Some(simulated) => (simulated.gpus > 0).then(|| Gpus::simulated(simulated, options)),
            None => Gpus::cuda(options),
        }
    }

    pub fn set_matmul_precision(&self, precision: MatmulPrecision) {
        if let Kind::Cuda(set) = &self.kind {
            let may_round = precision != MatmulPrecision::Highest;
            set.devices.iter().for_each(|device| device.tf32.store(may_round, Ordering::Relaxed));
        }
    }

    /// Launches that are held back are queued now: somebody waits.
    pub fn let_go(&self) {
        if let Kind::Cuda(set) = &self.kind {
            set.devices.iter().for_each(|device| device.let_go());
        }
    }

    pub fn gpu(&self, device: DeviceId) -> &Gpu {
        match device {
            DeviceId::Cuda(index) => &self.list[index as usize],
            DeviceId::Cpu => unreachable!("the host is no GPU"),
        }
    }

    /// An error where the device was lost.
    pub fn check_alive(&self, device: DeviceId) -> Result<()> {
        if self.gpu(device).lost.load(Ordering::Acquire) {
            return Err(Diag::error(code::DEVICE_LOST, format!("{device} was lost"))
                .note("its memory is gone; other devices and the session go on"));
        }
        Ok(())
    }
}

/// The host's memory.
pub fn host_memory(limit: usize) -> Memory {
    memory::Memory::new(Box::new(HostMemory::new(limit.min(physical_bytes()))))
}

#[cold]
pub fn no_cuda(index: Option<i64>, count: usize) -> Box<Diag> {
    match (index, count) {
        (Some(index), 0) => {
            Diag::error(code::NO_CUDA, format!("there is no device cuda:{index}: no CUDA device is available"))
        }
        (Some(index), count) => {
            let last = count - 1;
            Diag::error(code::UNKNOWN_DEVICE, format!("there is no device cuda:{index}"))
                .note(format!("devices go from cuda:0 to cuda:{last}"))
        }
        (None, _) => Diag::error(code::NO_CUDA, "no CUDA device is available"),
    }
    .help("`tscript devices` says what was found and what is missing")
}
