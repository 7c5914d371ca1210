//! NVIDIA GPUs with their state in a session: libraries, error slots, graphs, scratch memory of matrix products.

use super::slots::SlotPool;
use super::vendor;
use crate::base::dtype::DType;
use crate::device::cache::RawMemory;
use crate::device::cuda::blas::{Blas, Outcome, Product, WORKSPACE_BYTES, Workspace};
use crate::device::cuda::dnn::recurrent::{Places, Recurrent, Room, Task};
use crate::device::cuda::dnn::{Addresses, Convolution, Dnn, Run};
use crate::device::cuda::fft::{self, Fft, Plan, Signals};
use crate::device::cuda::memory::DeviceMemory;
use crate::device::cuda::replay::{Products, Replay};
use crate::device::cuda::solver::{Problem, Right, Solver};
use crate::device::cuda::{Context, DriverError, Stopwatch, Stream};
use crate::kernel::cuda::RecurrentRoom;
use crate::kernel::recurrent::layer::Layer;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bound: graphs of one device. Each takes about ten kilobytes of driver memory for every kernel in it.
const GRAPHS_MAX: usize = 256;

/// One NVIDIA GPU.
pub struct CudaDevice {
    pub context: &'static Context,
    /// Outer `None`: not opened yet. Inner `None`: the library is not installed.
    pub blas: Mutex<Option<Option<Blas>>>,
    /// As `blas`.
    dnn: Mutex<Option<Option<Dnn>>>,
    /// As `blas`.
    solver: Mutex<Option<Option<Solver>>>,
    /// As `blas`.
    fft: Mutex<Option<Option<Fft>>>,
    pub slots: Mutex<SlotPool>,
    /// Measures times for a trace; `None` until the first is requested.
    pub stopwatch: Mutex<Option<Stopwatch>>,
    /// Commands that are being queued, or collected for a graph.
    window: Mutex<(u32, Replay)>,
    /// Streams that only record graphs, by priority: kernels of a graph inherit it from them.
    recorders: Mutex<Vec<Arc<Stream>>>,
    /// Each live graph holds a clone: the count of references less one is the number of graphs.
    graphs: Arc<()>,
    /// By slot of the stream: scratch memory of matrix products, not included in memory statistics; 0 where there is
    /// none.
    workspaces: Mutex<HashMap<u32, u64>>,
    tf32: AtomicBool,
    deterministic: AtomicBool,
}

impl CudaDevice {
    pub fn new(context: &'static Context) -> CudaDevice {
        CudaDevice {
            context,
            blas: Mutex::new(None),
            dnn: Mutex::new(None),
            solver: Mutex::new(None),
            fft: Mutex::new(None),
            slots: Mutex::new(SlotPool::new(context)),
            stopwatch: Mutex::new(None),
            window: Mutex::default(),
            recorders: Mutex::default(),
            graphs: Arc::default(),
            workspaces: Mutex::default(),
            tf32: AtomicBool::new(false),
            deterministic: AtomicBool::new(false),
        }
    }

    /// Whether products and convolutions of f32 may round their factors for tensor cores.
    pub fn tf32(&self) -> bool {
        self.tf32.load(Ordering::Relaxed)
    }

    /// As `tf32`, for work that is queued from now on.
    pub fn set_tf32(&self, may_round: bool) {
        self.tf32.store(may_round, Ordering::Relaxed);
    }

    /// Whether sums of floats must be the same in each run.
    pub fn deterministic(&self) -> bool {
        self.deterministic.load(Ordering::Relaxed)
    }

    /// As `deterministic`, for work that is queued from now on.
    pub fn set_deterministic(&self, only: bool) {
        self.deterministic.store(only, Ordering::Relaxed);
    }

    /// A window begins; its commands are replayed if they equal those of the last time.
    pub fn begin_window(&self, slot: u32, mut replay: Replay, stream: &Arc<Stream>) {
        replay.begin(stream);
        *self.window.lock() = (slot, replay);
    }

    /// Passes the next command of the window to the replay.
    pub fn with_replay<R>(&self, work: impl FnOnce(&mut Replay, &mut ByLibrary<'_>) -> R) -> R {
        let (slot, replay) = &mut *self.window.lock();
        work(replay, &mut ByLibrary { device: self, slot: *slot })
    }

    /// All commands of the window were passed.
    pub fn end_window(&self) -> Replay {
        std::mem::take(&mut *self.window.lock()).1
    }

    /// Queues the collected commands, since their memory may be freed. An error here occurs again at the window's
    /// end.
    pub fn let_go(&self) {
        let _ = self.with_replay(|replay, products| replay.stop_replay(products));
    }

    /// What a new graph for a stream is recorded with; `None` if there are enough graphs, or no stream is available.
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

    /// Calls `work` with the vendor's convolution library; `None` if it is missing or unusable.
    fn with_dnn<R>(&self, work: impl FnOnce(&mut Dnn) -> Result<R, DriverError>) -> Result<Option<R>, DriverError> {
        let mut dnn = self.dnn.lock();
        // Our own kernels are used instead of a broken library.
        let open = || Dnn::open(self.context).ok().flatten();
        dnn.get_or_insert_with(open).as_mut().map(work).transpose()
    }

    /// Bytes of scratch memory that the vendor's library needs for a convolution; `None` if it does not support it.
    pub fn convolution_scratch(&self, convolution: &Convolution, at: &Addresses) -> Result<Option<usize>, DriverError> {
        Ok(self.with_dnn(|dnn| dnn.scratch(convolution, at))?.flatten())
    }

    /// What the vendor's library needs for a recurrent layer; `None` if it does not support it.
    pub fn recurrent_room(&self, layer: &Recurrent) -> Result<Option<Room>, DriverError> {
        Ok(self.with_dnn(|dnn| dnn.recurrent_room(layer))?.flatten())
    }

    /// The same for kernels.
    pub fn library_room(
        &self,
        layer: &Layer,
        dtype: DType,
        biased: bool,
    ) -> Result<Option<RecurrentRoom>, DriverError> {
        let Some(layer) = vendor::recurrent(layer, dtype, biased, self.tf32()) else { return Ok(None) };
        let room = self.recurrent_room(&layer)?;
        Ok(room.map(|Room { offsets, weights, reserve, .. }| RecurrentRoom { offsets, weights, reserve }))
    }

    /// Queues a recurrent layer by the vendor's library, beside the collected commands; false if it does not support it.
    pub fn recurrent(
        &self,
        layer: &Recurrent,
        at: &Places,
        task: &Task,
        workspace: Workspace,
        stream: &Stream,
    ) -> Result<bool, DriverError> {
        Ok(self.with_dnn(|dnn| dnn.recurrent(layer, at, task, workspace, stream))?.unwrap_or(false))
    }

    /// Calls `work` with the vendor's decompositions; `None` if the library is missing or unusable.
    fn with_solver<R>(
        &self,
        work: impl FnOnce(&mut Solver) -> Result<R, DriverError>,
    ) -> Result<Option<R>, DriverError> {
        let mut solver = self.solver.lock();
        let open = || Solver::open(self.context).ok().flatten();
        solver.get_or_insert_with(open).as_mut().map(work).transpose()
    }

    /// Bytes of scratch memory that the vendor's library needs for a decomposition; `None` if it does not support it.
    pub fn decomposition_scratch(&self, problem: &Problem) -> Result<Option<usize>, DriverError> {
        Ok(self.with_solver(|solver| solver.scratch(problem))?.flatten())
    }

    /// Queues a decomposition by the vendor's library, beside the collected commands.
    pub fn decompose(
        &self,
        problem: &Problem,
        workspace: Workspace,
        stream: &Stream,
    ) -> Result<Vec<Right>, DriverError> {
        Ok(self.with_solver(|solver| solver.run(problem, workspace, stream))?.unwrap_or_default())
    }

    /// The vendor's plan of Fourier transforms; `None` if the library is missing or does not take the signals.
    pub fn transform_plan(&self, signals: &Signals) -> Result<Option<Arc<Plan>>, DriverError> {
        let mut fft = self.fft.lock();
        let fft = fft.get_or_insert_with(|| Fft::open(self.context)).as_mut();
        Ok(fft.map(|fft| fft.plan(signals)).transpose()?.flatten())
    }

    /// Scratch memory for the products of one stream; 0 if none is available.
    pub fn workspace(&self, slot: u32, bytes: usize) -> u64 {
        let take = || DeviceMemory::new(self.context).reserve(bytes).unwrap_or(0);
        *self.workspaces.lock().entry(slot).or_insert_with(take)
    }
}

/// Products, convolutions and transforms on a stream of a device.
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

    fn transform(&mut self, run: &fft::Run, stream: &Stream) -> Result<(), DriverError> {
        // There is a plan, so there is the library.
        self.device.fft.lock().iter_mut().flatten().try_for_each(|fft| fft.run(run, stream))
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        let mut memory = DeviceMemory::new(self.context);
        self.workspaces.get_mut().values().filter(|&&at| at != 0).for_each(|&at| memory.release(at, 0));
    }
}
