//! A stream of an NVIDIA GPU as kernels use it: launches, scratch memory, products, error slots.

use super::device::CudaDevice;
use super::vendor;
use crate::base::dtype::DType;
use crate::device::cache::StreamPoint;
use crate::device::cuda::blas::{Outcome, Workspace};
use crate::device::cuda::dnn::{Addresses, Convolution, Run};
use crate::device::cuda::fft;
use crate::device::cuda::replay;
use crate::device::cuda::{Shape, Stream, Text};
use crate::kernel::cuda::gate::gate;
use crate::kernel::cuda::{
    ConvCall, ConvOrder, DecomposeCall, Gpu, GpuError, Hold, Launch, MatmulCall, OPTIONS, Param, RecurrentCall,
    RecurrentRoom, RightVectors, Source, Transform, TransformCall, headers,
};
use crate::kernel::recurrent::layer::Layer;
use crate::sched::memory::Memory;
use crate::sched::order::gate::Gate;
use crate::sched::window::node::Node;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a step needs of its device and stream while it is queued.
pub struct Lane<'a> {
    pub stream: &'a Stream,
    pub device: &'a CudaDevice,
    /// The device's allocator.
    pub memory: &'a Mutex<Memory>,
    pub slot: u32,
    /// The gate of a step that may be held.
    pub gated: Option<&'a mut Gated>,
    /// Nodes of the window that own the step's error slots, and the window.
    pub owners: &'a [usize],
    pub nodes: &'a [Node],
    /// Error slots that were allocated, with their addresses and nodes.
    pub taken: &'a mut Vec<(u32, u64, usize)>,
    /// Blocks that are freed when the step is queued: later work of the stream runs after it.
    pub scratch: Vec<u64>,
}

/// A gate that the device evaluates, before the first kernel of its steps.
pub struct Gated {
    pub gate: Arc<Gate>,
    /// Device address of the word that says whether the steps are held.
    pub held: u64,
    /// The steps are held if one of these words is not above its bound.
    pub conditions: Vec<(u64, u64)>,
    pub state: Decision,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Open,
    /// The next launch evaluates it.
    Next,
    Made,
}

impl Gated {
    /// For the next kernel: a kernel of one block evaluates a single condition itself, others run after a kernel that
    /// does.
    fn decide(&mut self, blocks: u64, lane: &mut Lane<'_>) -> Result<Hold, GpuError> {
        let hold = Hold { held: self.held, ..Hold::default() };
        match (self.state, blocks, &*self.conditions) {
            (Decision::Made, ..) => Ok(hold),
            (_, 1, &[(word, bound)]) => {
                self.state = Decision::Next;
                Ok(Hold { word, bound, ..hold })
            }
            _ => {
                gate(self.held, &self.conditions, lane)?;
                self.state = Decision::Made;
                Ok(hold)
            }
        }
    }
}

impl Lane<'_> {
    /// As the library takes it, by the modes of the session.
    fn convolution(&self, call: &ConvCall) -> Option<(Convolution, Addresses)> {
        vendor::convolution(call, self.device.tf32(), self.device.deterministic())
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if !self.scratch.is_empty() {
            let mut memory = self.memory.lock();
            self.scratch.drain(..).for_each(|block| memory.give_back(block));
        }
    }
}

/// Scratch memory is aligned to 256 bytes.
const ALIGNMENT: Addresses = Addresses { x: 256, w: 256, y: 256 };

fn device_error(error: impl std::error::Error + Send + Sync + 'static) -> GpuError {
    GpuError::Device(Box::new(error))
}

pub(super) fn text(source: &Source) -> Text<'_> {
    Text { name: "kernel.cu", text: &source.text, headers: headers(), options: OPTIONS, key: source.key }
}

impl Gpu for Lane<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), GpuError> {
        let shape = Shape { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
        let parameters: SmallVec<[&[u8]; 8]> = launch.args.iter().map(Param::bytes).collect();
        self.device.with_replay(|replay, products| {
            let function = match replay.expected(launch.source.key, launch.entry) {
                Some(function) => function,
                None => {
                    let kernels = self.stream.context().kernels();
                    kernels.function(&text(launch.source), launch.entry).map_err(device_error)?
                }
            };
            let launch = replay::Launch { function, shape, parameters: &parameters };
            replay.kernel(&launch, products).map_err(device_error)
        })?;
        // Set only now: if the launch failed, the word still belongs to an earlier step.
        if let Some(gated) = self.gated.as_deref_mut().filter(|gated| gated.state == Decision::Next) {
            gated.state = Decision::Made;
        }
        Ok(())
    }

    fn scratch(&mut self, bytes: usize) -> Result<*mut u8, GpuError> {
        let no_wait = |_: &[StreamPoint]| false;
        let taken = self.memory.lock().take(bytes.max(1), self.slot, 0, no_wait);
        let taken = taken.map_err(|_| GpuError::OutOfMemory { bytes })?;
        self.scratch.push(taken.number);
        Ok(taken.address as *mut u8)
    }

    fn counters(&mut self, count: usize) -> *mut u8 {
        self.stream.counters(count).map_or(std::ptr::null_mut(), |address| address as *mut u8)
    }

    fn fill_zero(&mut self, at: *mut u8, bytes: usize) -> Result<(), GpuError> {
        self.device.with_replay(|replay, products| replay.fill((at as u64, 0, bytes), products)).map_err(device_error)
    }

    fn copy(&mut self, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), GpuError> {
        let bytes = (to as u64, from as u64, bytes);
        self.device.with_replay(|replay, products| replay.copy(bytes, products)).map_err(device_error)
    }

    fn matmul(&mut self, product: &MatmulCall) -> Result<bool, GpuError> {
        let Some(product) = vendor::product(product, self.device.tf32()) else { return Ok(false) };
        let queued = self.device.with_replay(|replay, products| replay.product(&product, products));
        let outcome = queued.map_err(device_error)?;
        Ok(outcome == Outcome::Queued)
    }

    fn convolve(&mut self, convolution: &ConvCall) -> Result<bool, GpuError> {
        let Some((convolution, at)) = self.convolution(convolution) else { return Ok(false) };
        let scratch = match self.device.with_replay(|replay, _| replay.expected_scratch(&convolution, &at)) {
            None => self.device.convolution_scratch(&convolution, &at).map_err(device_error)?,
            known => known,
        };
        let Some(bytes) = scratch else { return Ok(false) };
        // Without memory for it, our own kernels need less.
        let Ok(scratch) = self.scratch(bytes) else { return Ok(false) };
        let run = Run { convolution, at, workspace: Workspace { address: scratch as u64, bytes } };
        let queued = self.device.with_replay(|replay, products| replay.convolution(&run, products));
        Ok(queued.map_err(device_error)? == Outcome::Queued)
    }

    fn convolves_transposed(&mut self, call: &ConvCall) -> Result<bool, GpuError> {
        let channels_last = ConvCall { order: ConvOrder::ChannelsLast, ..*call };
        let all = [call, &channels_last].map(|call| self.convolution(call));
        let [Some((plain, at)), Some((channels_last, _))] = all else { return Ok(false) };
        // The library transposes both images here: its scratch memory must hold them.
        let turns = plain.image_bytes() / 4 * 3;
        let Some(most) = self.device.convolution_scratch(&plain, &at).map_err(device_error)? else { return Ok(false) };
        if most < turns {
            return Ok(false);
        }
        let least = self.device.convolution_scratch(&channels_last, &ALIGNMENT).map_err(device_error)?;
        Ok(least.is_some_and(|least| least + turns <= most))
    }

    fn recurrent_room(&mut self, layer: &Layer, dtype: DType, biased: bool) -> Result<Option<RecurrentRoom>, GpuError> {
        self.device.library_room(layer, dtype, biased).map_err(device_error)
    }

    fn recurrent(&mut self, call: &RecurrentCall) -> Result<(), GpuError> {
        const NONE: GpuError = GpuError::Unsupported("this recurrent layer");
        let layer = vendor::recurrent(&call.layer, call.dtype, call.biased, self.device.tf32()).ok_or(NONE)?;
        let bytes = self.device.recurrent_room(&layer).map_err(device_error)?.ok_or(NONE)?.scratch;
        let workspace = Workspace { address: self.scratch(bytes)? as u64, bytes };
        let (at, pass) = vendor::pass(call);
        // It is not recorded: the library may use streams of its own.
        self.device.let_go();
        let queued = self.device.recurrent(&layer, &at, &pass, workspace, self.stream).map_err(device_error)?;
        if queued { Ok(()) } else { Err(NONE) }
    }

    fn decomposes(&mut self, call: &DecomposeCall) -> Result<bool, GpuError> {
        let Some(problem) = vendor::decomposition(call) else { return Ok(false) };
        Ok(self.device.decomposition_scratch(&problem).map_err(device_error)?.is_some())
    }

    fn decompose(&mut self, call: &DecomposeCall) -> Result<Vec<RightVectors>, GpuError> {
        const NONE: GpuError = GpuError::Unsupported("this decomposition");
        let problem = vendor::decomposition(call).ok_or(NONE)?;
        let bytes = self.device.decomposition_scratch(&problem).map_err(device_error)?.ok_or(NONE)?;
        let workspace = Workspace { address: self.scratch(bytes)? as u64, bytes };
        // It is not recorded, since it may wait.
        self.device.let_go();
        let right = self.device.decompose(&problem, workspace, self.stream).map_err(device_error)?;
        Ok(right.into_iter().map(vendor::right_vectors).collect())
    }

    fn transforms(&mut self, call: &TransformCall) -> Result<bool, GpuError> {
        Ok(self.device.transform_plan(&vendor::signals(call)).map_err(device_error)?.is_some())
    }

    fn transform(&mut self, call: &TransformCall) -> Result<(), GpuError> {
        let plan = self.device.transform_plan(&vendor::signals(call)).map_err(device_error)?;
        let plan = plan.ok_or(GpuError::Unsupported("this transform"))?;
        let bytes = plan.bytes();
        let address = if bytes == 0 { 0 } else { self.scratch(bytes)? as u64 };
        let inverse = call.kind == Transform::Whole { inverse: true };
        let (from, to) = (call.from.ptr as u64, call.to.ptr as u64);
        let run = fft::Run { plan, inverse, from, to, workspace: Workspace { address, bytes } };
        self.device.with_replay(|replay, products| replay.transform(&run, products)).map_err(device_error)
    }

    fn deterministic(&self) -> bool {
        self.device.deterministic()
    }

    fn multiprocessors(&self) -> u32 {
        self.stream.context().facts().multiprocessors
    }

    fn capability(&self) -> (u32, u32) {
        self.stream.context().facts().capability
    }

    fn hold(&mut self, blocks: u64) -> Result<Hold, GpuError> {
        let Some(gated) = self.gated.take() else { return Ok(Hold::default()) };
        let decided = gated.decide(blocks, self);
        self.gated = Some(gated);
        decided
    }

    fn fault_slot(&mut self, node: usize) -> Result<*mut u8, GpuError> {
        let owner = self.owners[node];
        let number = self.nodes[owner].number;
        let (slot, address) = self.device.slots.lock().take(self.slot, number).map_err(device_error)?;
        self.taken.push((slot, address as u64, owner));
        Ok(address)
    }
}
