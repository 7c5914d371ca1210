//! A stream of an NVIDIA GPU as kernels see it: launches, scratch memory, products, error slots.

use super::vendor;
use crate::device::cache::{RawMemory, StreamPoint};
use crate::device::cuda::blas::{Outcome, Workspace};
use crate::device::cuda::dnn::{Addresses, Run};
use crate::device::cuda::memory::{DeviceMemory, Mapped};
use crate::device::cuda::replay;
use crate::device::cuda::{Context, DriverError, KernelError, Shape, Stream, Text};
use crate::kernel::abi::{Call, Fault, Faults, HostFn, RawView};
use crate::kernel::cuda::{
    ConvCall, ConvOrder, FaultSlot, Gpu, GpuError, HEADERS, Launch, MatmulCall, OPTIONS, Param, Source,
};
use crate::kernel::guard::End;
use crate::kernel::program::Program;
use crate::sched::backend::device_set::{CudaDevice, Gpu as Memories};
use crate::sched::backend::touch::{self, Span};
use crate::sched::fault::ward::Ward;
use crate::sched::window::node::Node;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Error slots of one device in memory that host and device see.
pub struct SlotPool {
    context: &'static Context,
    blocks: Vec<Mapped>,
    free: Vec<u32>,
    /// By slot of the stream: which of the blocks' words keeps the number of its first untold fault.
    first_faults: HashMap<u32, (usize, usize)>,
    /// Blocks of such words.
    words: Vec<Mapped>,
    /// By slot of the stream: a word of device memory that says whether a step is held.
    held: HashMap<u32, u64>,
}

/// Slots of one block.
const BLOCK_SLOTS: usize = 4096;
const SLOT_WORDS: usize = size_of::<FaultSlot>() / 8;
/// Where a slot names the word that it lowers, and its node's number.
const FIRST_WORD: usize = std::mem::offset_of!(FaultSlot, first) / 8;
const NUMBER_WORD: usize = std::mem::offset_of!(FaultSlot, number) / 8;
/// Words of one block, one for each stream.
const BLOCK_WORDS: usize = 512;

impl SlotPool {
    pub fn new(context: &'static Context) -> SlotPool {
        SlotPool {
            context,
            blocks: Vec::new(),
            free: Vec::new(),
            first_faults: HashMap::new(),
            words: Vec::new(),
            held: HashMap::new(),
        }
    }

    /// A slot for a node of a stream.
    fn take(&mut self, stream: u32, number: u64) -> Result<(u32, *mut u8), DriverError> {
        let first = self.first_fault_of(stream)?;
        if self.free.is_empty() {
            let block = Mapped::new(self.context, BLOCK_SLOTS * SLOT_WORDS)?;
            let first = (self.blocks.len() * BLOCK_SLOTS) as u32;
            self.blocks.push(block);
            self.free.extend((first..first + BLOCK_SLOTS as u32).rev());
            (first..first + BLOCK_SLOTS as u32).for_each(|slot| self.clear(slot));
        }
        let slot = self.free.pop().expect("a block was just added");
        let (block, at) = self.place(slot);
        block.write(at + FIRST_WORD, first);
        block.write(at + NUMBER_WORD, number);
        Ok((slot, (block.device_address() as usize + at * 8) as *mut u8))
    }

    fn place(&self, slot: u32) -> (&Mapped, usize) {
        (&self.blocks[slot as usize / BLOCK_SLOTS], slot as usize % BLOCK_SLOTS * SLOT_WORDS)
    }

    fn clear(&self, slot: u32) {
        let (block, at) = self.place(slot);
        block.write(at, u64::MAX);
        (1..SLOT_WORDS).for_each(|word| block.write(at + word, 0));
    }

    /// The address of the word with the number of a stream's first untold fault, which is made here.
    fn first_fault_of(&mut self, stream: u32) -> Result<u64, DriverError> {
        if let Some(known) = self.first_fault_address(stream) {
            return Ok(known);
        }
        let at = self.first_faults.len();
        if at / BLOCK_WORDS == self.words.len() {
            let block = Mapped::new(self.context, BLOCK_WORDS)?;
            (0..BLOCK_WORDS).for_each(|word| block.write(word, u64::MAX));
            self.words.push(block);
        }
        self.first_faults.insert(stream, (at / BLOCK_WORDS, at % BLOCK_WORDS));
        Ok(self.first_fault_address(stream).expect("just made"))
    }

    /// The same; none where no work of the stream can fail.
    pub fn first_fault_address(&self, stream: u32) -> Option<u64> {
        let &(block, word) = self.first_faults.get(&stream)?;
        Some(self.words[block].device_address() + word as u64 * 8)
    }

    /// What is untold there is known: all work of the stream that could fail has ended.
    pub fn set_first_fault(&self, stream: u32, number: Option<u64>) {
        if let Some(&(block, word)) = self.first_faults.get(&stream) {
            self.words[block].write(word, number.unwrap_or(u64::MAX));
        }
    }

    /// A word of device memory that says whether a stream's next step is held; none where there is no memory.
    pub fn held_word(&mut self, stream: u32) -> Option<u64> {
        let take = || DeviceMemory::new(self.context).reserve(512).unwrap_or(0);
        Some(*self.held.entry(stream).or_insert_with(take)).filter(|&address| address != 0)
    }

    /// What a slot holds after its launches have ended.
    pub fn read(&self, slot: u32) -> Option<Fault> {
        let (block, at) = self.place(slot);
        let words: [u64; 4] = std::array::from_fn(|word| block.read(at + word));
        FaultSlot {
            position: words[0],
            value: words[1] as i64,
            bound: words[2] as i64,
            kind: words[3] as u32,
            dim: (words[3] >> 32) as u32,
            ..FaultSlot::EMPTY
        }
        .read()
    }

    /// Nobody looks at a slot any more.
    pub fn free(&mut self, slot: u32) {
        let (block, at) = self.place(slot);
        if block.read(at) != u64::MAX {
            self.clear(slot);
        }
        self.free.push(slot);
    }
}

/// What a step needs of its device and stream while it is queued.
pub struct Lane<'a> {
    pub stream: &'a Stream,
    pub device: &'a CudaDevice,
    pub memories: &'a Memories,
    pub slot: u32,
    /// Device address of the word that says whether the step is held; 0 for a step that never is.
    pub held: u64,
    /// Nodes of the window that own the step's error slots, and the window.
    pub owners: &'a [usize],
    pub nodes: &'a [Node],
    /// Error slots that were given out, with their addresses and nodes.
    pub taken: &'a mut Vec<(u32, u64, usize)>,
    /// Blocks that go back when the step is queued: later work of the stream comes after.
    pub scratch: Vec<u64>,
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if !self.scratch.is_empty() {
            let mut memory = self.memories.memory.lock();
            self.scratch.drain(..).for_each(|block| memory.give_back(block));
        }
    }
}

/// Scratch memory is aligned to 256 bytes.
const TURNED: Addresses = Addresses { x: 256, w: 256, y: 256 };

fn device_error(error: impl std::error::Error + Send + Sync + 'static) -> GpuError {
    GpuError::Device(Box::new(error))
}

fn text(source: &Source) -> Text<'_> {
    Text { name: "kernel.cu", text: &source.text, headers: HEADERS, options: OPTIONS, key: source.key }
}

impl Gpu for Lane<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), GpuError> {
        let shape = Shape { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
        let parameters: SmallVec<[&[u8]; 8]> = launch.args.iter().map(Param::bytes).collect();
        self.device.tell(|replay, products| {
            let function = match replay.expected(launch.source.key, launch.entry) {
                Some(function) => function,
                None => {
                    let kernels = self.stream.context().kernels();
                    kernels.function(&text(launch.source), launch.entry).map_err(device_error)?
                }
            };
            let launch = replay::Launch { function, shape, parameters: &parameters };
            replay.kernel(&launch, products).map_err(device_error)
        })
    }

    fn scratch(&mut self, bytes: usize) -> Result<*mut u8, GpuError> {
        let no_wait = |_: &[StreamPoint]| false;
        let taken = self.memories.memory.lock().take(bytes.max(1), self.slot, 0, no_wait);
        let taken = taken.map_err(|_| GpuError::OutOfMemory { bytes })?;
        self.scratch.push(taken.number);
        Ok(taken.address as *mut u8)
    }

    fn counters(&mut self, count: usize) -> *mut u8 {
        self.stream.counters(count).map_or(std::ptr::null_mut(), |address| address as *mut u8)
    }

    fn fill_zero(&mut self, at: *mut u8, bytes: usize) -> Result<(), GpuError> {
        self.device.tell(|replay, products| replay.fill((at as u64, 0, bytes), products)).map_err(device_error)
    }

    fn copy(&mut self, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), GpuError> {
        let bytes = (to as u64, from as u64, bytes);
        self.device.tell(|replay, products| replay.copy(bytes, products)).map_err(device_error)
    }

    fn matmul(&mut self, product: &MatmulCall) -> Result<bool, GpuError> {
        let Some(product) = vendor::product(product, self.device.tf32()) else { return Ok(false) };
        let told = self.device.tell(|replay, products| replay.product(&product, products));
        let outcome = told.map_err(device_error)?;
        Ok(outcome == Outcome::Queued)
    }

    fn convolve(&mut self, convolution: &ConvCall) -> Result<bool, GpuError> {
        let Some((convolution, at)) = vendor::convolution(convolution, self.device.tf32()) else { return Ok(false) };
        let wanted = match self.device.tell(|replay, _| replay.expected_scratch(&convolution, &at)) {
            None => self.device.convolution_scratch(&convolution, &at).map_err(device_error)?,
            known => known,
        };
        let Some(bytes) = wanted else { return Ok(false) };
        // Without the memory, ways that want less are ours.
        let Ok(scratch) = self.scratch(bytes) else { return Ok(false) };
        let run = Run { convolution, at, workspace: Workspace { address: scratch as u64, bytes } };
        let told = self.device.tell(|replay, products| replay.convolution(&run, products));
        Ok(told.map_err(device_error)? == Outcome::Queued)
    }

    fn convolves_transposed(&mut self, call: &ConvCall) -> Result<bool, GpuError> {
        let turned = ConvCall { order: ConvOrder::ChannelsLast, ..*call };
        let all = [call, &turned].map(|call| vendor::convolution(call, self.device.tf32()));
        let [Some((plain, at)), Some((turned, _))] = all else { return Ok(false) };
        // Where the library turns both images, its scratch memory has room for them.
        let turns = plain.image_bytes() / 4 * 3;
        let Some(most) = self.device.convolution_scratch(&plain, &at).map_err(device_error)? else { return Ok(false) };
        if most < turns {
            return Ok(false);
        }
        let least = self.device.convolution_scratch(&turned, &TURNED).map_err(device_error)?;
        Ok(least.is_some_and(|least| least + turns <= most))
    }

    fn multiprocessors(&self) -> u32 {
        self.stream.context().facts().multiprocessors
    }

    fn capability(&self) -> (u32, u32) {
        self.stream.context().facts().capability
    }

    fn hold(&self) -> *const u8 {
        self.held as *const u8
    }

    fn fault_slot(&mut self, node: usize) -> Result<*mut u8, GpuError> {
        let owner = self.owners[node];
        let number = self.nodes[owner].number;
        let (slot, address) = self.device.slots.lock().take(self.slot, number).map_err(device_error)?;
        self.taken.push((slot, address as u64, owner));
        Ok(address)
    }
}

/// Host copies of a GPU's memory, one for each distinct span.
struct Copies<'a> {
    stream: &'a Stream,
    spans: Vec<(Span, Vec<u8>)>,
}

impl Copies<'_> {
    /// The view on a host copy of its memory.
    fn fetch(&mut self, view: &RawView) -> Result<RawView, DriverError> {
        let (low, bytes) = extent(view);
        let span = Span::new(view.ptr.wrapping_offset(low), bytes);
        let known = self.spans.iter().position(|(s, _)| s.address() == span.address() && s.len() == span.len());
        let at = match known {
            Some(at) => at,
            None => {
                let copy = span.read_from_device(self.stream)?;
                self.spans.push((span, copy));
                self.spans.len() - 1
            }
        };
        Ok(RawView { ptr: self.spans[at].1.as_mut_ptr().wrapping_offset(-low), ..view.clone() })
    }

    fn fetch_all(&mut self, views: &[RawView]) -> Result<Vec<RawView>, DriverError> {
        views.iter().map(|view| self.fetch(view)).collect()
    }

    /// Puts back what may have changed.
    fn store(&self, views: &[RawView]) -> Result<(), DriverError> {
        let written = |span: &Span| {
            let starts = |view: &RawView| view.ptr.wrapping_offset(extent(view).0) as u64 == span.address();
            views.iter().any(starts)
        };
        for (span, copy) in self.spans.iter().filter(|(span, _)| written(span)) {
            span.write_on_device(self.stream, copy)?;
        }
        self.stream.wait()
    }
}

/// Runs a host kernel on copies of a GPU's memory: for what has no CUDA kernel. Waits.
pub fn through_host(
    stream: &Stream,
    host: HostFn,
    call: &Call<'_>,
    ward: &Ward<'_>,
) -> Result<Result<(), End>, DriverError> {
    let mut copies = Copies { stream, spans: Vec::new() };
    let (inputs, outputs) = (copies.fetch_all(call.inputs)?, copies.fetch_all(call.outputs)?);
    let done = touch::run_kernel(host, &Call { inputs: &inputs, outputs: &outputs, ..*call }, ward);
    copies.store(call.outputs)?;
    Ok(done)
}

/// Runs a fused step on copies of a GPU's memory: for functions that have no CUDA text. Waits.
pub fn fused_through_host(
    stream: &Stream,
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    table: &[u64],
    faults: &[Faults],
    ward: &Ward<'_>,
) -> Result<Result<(), End>, DriverError> {
    let mut copies = Copies { stream, spans: Vec::new() };
    let fetched = copies.fetch_all(views)?;
    let done = touch::run_fused(program, shape, &fetched, table, faults, ward);
    copies.store(views)?;
    Ok(done)
}

/// Bytes of a view: where the lowest lies from its first element, and how many there are.
fn extent(view: &RawView) -> (isize, usize) {
    let elem = view.dtype.size_bytes() as isize;
    if view.numel() == 0 {
        return (0, 0);
    }
    let (mut low, mut high) = (0isize, 0isize);
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        let reach = (size as isize - 1) * stride;
        low += reach.min(0);
        high += reach.max(0);
    }
    (low * elem, ((high - low + 1) * elem) as usize)
}

/// Keeps a stream busy.
pub fn sleep(stream: &Stream, ns: u64) -> Result<(), KernelError> {
    static SOURCE: LazyLock<Source> =
        LazyLock::new(|| Source::new(include_str!("../../../../kernels/device/sleep.cu")));
    let function = stream.context().kernels().function(&text(&SOURCE), "ts_sleep")?;
    let mut ns = ns;
    let shape = Shape::line(1, 1);
    Ok(touch::launch(stream, function, &shape, &mut [(&raw mut ns).cast()])?)
}

/// A kernel that writes to an address that is nobody's: the device is dead after it.
pub fn stray(stream: &Stream) -> Result<(), KernelError> {
    static SOURCE: LazyLock<Source> =
        LazyLock::new(|| Source::new(include_str!("../../../../kernels/device/illegal_write.cu")));
    let function = stream.context().kernels().function(&text(&SOURCE), "ts_illegal_write")?;
    let mut nobodys = 1u64 << 60;
    Ok(touch::launch(stream, function, &Shape::line(1, 1), &mut [(&raw mut nobodys).cast()])?)
}
