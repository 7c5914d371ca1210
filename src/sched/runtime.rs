//! The runtime of one session: windows and their flush, memory, random state, defaults.

use super::autocast::Autocast;
use super::backend::gpus::{Gpus, host_memory};
use super::execute::device_prefetch::Offers;
use super::fault::call_chain::Calls;
use super::fault::ledger::Ledger;
use super::memory::PendingDemand;
use super::memory::{self, Memory, Room};
use super::options::MatmulPrecision;
pub use super::options::Options;
use super::order::gate::{Past, note_writer};
use super::order::points::HOST;
use super::profile::timeline::{self, Timeline};
use super::profile::trace::Trace;
use super::rounds::{LoopRounds, ROUND_KERNELS};
use super::samples::Samples;
use super::streams::placement::Placement;
use super::streams::stream::{Stream, StreamHandle};
use super::streams::watch::Naming;
use super::window::each::EachProgram;
use super::window::key::{self, ByKey};
use super::window::known_steps::KnownSteps;
use super::window::node::{Node, Work};
use super::window::plan::{self, Plan};
use crate::base::code::Code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::rng::Generator;
use crate::base::span::{Origin, Site};
use crate::device::keyed::Key;
use crate::device::lent::Lent;
use crate::device::planned_fault::FaultKind;
use crate::device::queues::Point;
use crate::device::race::{Clocks, Reported, StreamName};
use crate::kernel::abi::Threads;
use crate::op::tensor::{Buffer, Home, Keeper};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bound: plans kept; a script that makes more has no repeating loop.
const MAX_PLANS: usize = 2048;
/// Bound: pending bytes below which no check is made whether they fit.
pub(super) const SMALL_BYTES: usize = 4 << 20;
/// Bound: lists of nodes that are kept for future windows: as many as are freed at one query of a device.
const KEPT_LISTS: usize = super::execute::window::LOOK_NODES / super::execute::window::LEAST_NODES;
/// Bound: nodes, or bytes of their results, that justify a window at the end of a round. Submitting one costs as much
/// as recording a dozen nodes; with fewer than these, the optimizer's step is usually in the same window.
const ROUND_NODES: usize = 64;
const ROUND_BYTES: usize = 64 << 20;

/// The process-wide pool of kernel threads.
pub fn threads() -> &'static Threads {
    static POOL: OnceLock<Threads> = OnceLock::new();
    POOL.get_or_init(|| Threads::new(std::thread::available_parallelism().map_or(1, |n| n.get())))
}

/// The block number of memory that no allocator knows.
const BORROWED: u64 = u64::MAX;

/// Bound: bytes of a list for which no check is made.
const SMALL_LIST: usize = 1 << 20;

/// Whether so many bytes may be allocated.
pub type ValueRoom = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// Where warnings go.
pub type Warnings = Box<dyn Fn(Box<Diag>) + Send>;

/// State shared by every handle of a session.
///
/// Lock order: `state`, `placement`, memory; a stream handle is never dropped while one is held.
pub struct Runtime {
    pub options: Options,
    pub(super) state: Mutex<State>,
    pub(super) placement: Mutex<Placement>,
    pub(super) host: Mutex<Memory>,
    /// The host's memory besides its tensors.
    pub(super) room: Arc<Room>,
    pub(super) opened: OnceLock<Option<Gpus>>,
    /// Whether the GPUs were opened and have their default streams.
    pub(super) placed: AtomicBool,
    pub(super) warnings: Mutex<Warnings>,
    /// What was warned of where, of what is warned of once a place.
    warned: Mutex<HashSet<(Code, Site)>>,
    pub(super) naming: Mutex<Option<Box<dyn Naming>>>,
    /// Where streams were created.
    pub(super) made: Mutex<HashMap<StreamName, Origin>>,
    /// The recording of `--profile`.
    pub(super) timeline: Option<Box<Timeline>>,
    /// Programs of steps over many tensors, by what they do.
    pub(super) programs: Mutex<HashMap<[u64; 2], Arc<EachProgram>>>,
    /// The script's current calls.
    pub calls: Calls,
    pub(super) offers: Offers,
    next_buffer: AtomicU64,
    sequence: AtomicU64,
    grad_enabled: AtomicBool,
    forward_mode: AtomicBool,
    /// Mixed precision.
    pub autocast: Autocast,
    /// What `vmap` maps over.
    pub samples: Samples,
    /// Whether backward looks for NaN.
    anomaly: AtomicBool,
    /// Whether new tensors are kept out of the gradient graph for good.
    inference: AtomicBool,
    /// What takes the operands that nodes of the gradient graph save; whether there is something.
    keeper: Mutex<Option<Arc<dyn Keeper>>>,
    has_keeper: AtomicBool,
    default_float: AtomicU8,
    /// Index in `MatmulPrecision::ALL`.
    matmul_precision: AtomicU8,
    deterministic: AtomicBool,
    /// Results up to this size skip admission, on the host and on a GPU: a window full of them is small.
    pub(super) tiny_bytes: usize,
    pub(super) tiny_device_bytes: usize,
    /// By allocator, a bit: it has so little memory left that every result is checked.
    pub(super) tight: AtomicU64,
    /// Nodes recorded so far; windows flushed so far.
    pub recorded: AtomicU64,
    /// Kernels in all windows.
    kernels: AtomicUsize,
    pub flushes: AtomicU64,
    /// Whether the script's own values may take so many more bytes.
    pub values: OnceLock<ValueRoom>,
    /// What windows became, while it is recorded.
    pub trace: Trace,
    /// By buffer: memory of the host program.
    lent: Mutex<HashMap<u64, Lent>>,
    me: std::sync::Weak<Runtime>,
}

/// What changes as a script runs.
pub struct State {
    /// By slot; the host's is the first.
    pub(super) windows: Vec<Window>,
    pub(super) streams: Vec<Stream>,
    /// By slot: stream handles.
    pub(super) handles: Vec<std::sync::Weak<StreamHandle>>,
    /// By GPU: the last number that a stream was given.
    pub(super) stream_numbers: Vec<u32>,
    pub(super) ledger: Ledger,
    /// What all future work comes after, because the host has waited for it.
    pub(super) host_past: Past,
    /// What guarantees memory for all windows.
    pub(super) demand: PendingDemand,
    pub(super) clocks: Clocks,
    /// Identifies the race detector's records of buffers.
    pub(super) key: Key,
    pub(super) reported: Reported,
    rng: Generator,
    plans: ByKey<Plan>,
    known_steps: KnownSteps,
    loops: LoopRounds,
    /// Empty lists of nodes, with their capacity.
    lists: Vec<Vec<Node>>,
    /// Nodes that were queued on real GPUs since the last query of finished work there.
    pub(super) since_look: usize,
}

impl State {
    /// A list whose nodes are done is kept for a future window.
    pub(super) fn keep_list(&mut self, mut nodes: Vec<Node>) {
        nodes.clear();
        if self.lists.len() < KEPT_LISTS {
            self.lists.push(nodes);
        }
    }
}

/// Nodes of one stream that were recorded and have not run yet.
#[derive(Default)]
pub struct Window {
    pub(super) nodes: Vec<Node>,
    pub(super) pending_bytes: usize,
    /// What guarantees memory for them, by allocator.
    pub(super) demand: SmallVec<[(usize, usize); 1]>,
    /// A round has ended since the last node.
    round_ended: bool,
    /// How many of its nodes are kernels.
    kernels: usize,
    /// How many nodes the last window had.
    usual: usize,
}

impl Window {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The queue number of its last node; 0 if there is none.
    pub(super) fn last_number(&self) -> u64 {
        self.nodes.last().map_or(0, |node| node.number)
    }
}

impl Home for Runtime {
    fn release(&self, buffer: &Buffer) {
        if buffer.address.swap(0, Ordering::AcqRel) != 0 {
            let number = buffer.block.load(Ordering::Relaxed);
            if number == BORROWED {
                let lent = self.lent.lock().remove(&buffer.id);
                // Not under the lock: the owner of the memory may do anything when it is returned.
                drop(lent);
                return;
            }
            self.with_home(buffer, |memory| memory.give_back(number));
        }
    }
}

impl Runtime {
    pub fn new(options: Options) -> Arc<Runtime> {
        let mut clocks = Clocks::new();
        let name = StreamName { device: DeviceId::Cpu, number: 0 };
        let lane = clocks.stream(name);
        let host = Stream::new(name, 0, Default::default(), lane);
        let timeline = options.profile.then(Box::default);
        let tiny = |limit: usize| SMALL_BYTES.min(limit / 64) / options.window_nodes.max(1);
        let tiny_bytes = tiny(options.host_limit);
        // Requests that are planned to fail are counted, so each is made at its call.
        let simulated = options.simulate.as_ref();
        let counts = simulated.is_some_and(|gpus| gpus.faults.iter().any(|fault| fault.kind == FaultKind::Alloc));
        let device_limit = simulated.map_or(usize::MAX, |gpus| gpus.memory_bytes).min(options.device_limit);
        let tiny_device_bytes = if counts { 0 } else { tiny(device_limit) };
        let host_memory = host_memory(options.host_limit);
        Arc::new_cyclic(|me| Runtime {
            room: host_memory.room(),
            host: Mutex::new(host_memory),
            state: Mutex::new(State {
                windows: vec![Window::default()],
                streams: vec![host],
                handles: Vec::new(),
                stream_numbers: Vec::new(),
                ledger: Ledger::default(),
                host_past: Past::default(),
                demand: PendingDemand::default(),
                clocks,
                key: Key::new(),
                reported: Reported::default(),
                rng: Generator::new(options.seed),
                plans: ByKey::default(),
                known_steps: KnownSteps::default(),
                loops: LoopRounds::default(),
                lists: Vec::new(),
                since_look: 0,
            }),
            options,
            placement: Mutex::default(),
            opened: OnceLock::new(),
            placed: AtomicBool::new(false),
            warnings: Mutex::new(Box::new(|_| {})),
            warned: Mutex::default(),
            naming: Mutex::new(None),
            made: Mutex::default(),
            timeline,
            programs: Mutex::default(),
            calls: Calls::default(),
            offers: Offers::default(),
            next_buffer: AtomicU64::new(1),
            sequence: AtomicU64::new(1),
            grad_enabled: AtomicBool::new(true),
            forward_mode: AtomicBool::new(false),
            autocast: Autocast::default(),
            samples: Samples::default(),
            anomaly: AtomicBool::new(false),
            inference: AtomicBool::new(false),
            keeper: Mutex::default(),
            has_keeper: AtomicBool::new(false),
            default_float: AtomicU8::new(DType::F32 as u8),
            matmul_precision: AtomicU8::new(MatmulPrecision::Highest as u8),
            deterministic: AtomicBool::new(false),
            tiny_bytes,
            tiny_device_bytes,
            tight: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            kernels: AtomicUsize::new(0),
            flushes: AtomicU64::new(0),
            values: OnceLock::new(),
            trace: Trace::default(),
            lent: Mutex::default(),
            me: me.clone(),
        })
    }

    pub fn shared(&self) -> Arc<Runtime> {
        self.me.upgrade().expect("whoever calls holds it")
    }

    pub(super) fn gpus_if_opened(&self) -> Option<&Gpus> {
        self.opened.get().and_then(Option::as_ref)
    }

    /// Sets where warnings go.
    pub fn on_warning(&self, report: Warnings) {
        *self.warnings.lock() = report;
    }

    /// Whether nothing of this code was warned of at a place before.
    pub fn is_first_warning(&self, code: Code, at: Site) -> bool {
        self.warned.lock().insert((code, at))
    }

    /// Reports a warning.
    pub fn warn(&self, diag: Box<Diag>) {
        (self.warnings.lock())(diag);
    }

    /// Sets how the script names its streams, for calls that diagnostics suggest.
    pub fn name_streams(&self, naming: Box<dyn Naming>) {
        *self.naming.lock() = Some(naming);
    }

    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled.load(Ordering::Relaxed)
    }

    /// Sets the mode and returns the old one.
    pub fn set_grad_enabled(&self, enabled: bool) -> bool {
        self.grad_enabled.swap(enabled, Ordering::Relaxed)
    }

    /// Whether the function that runs is differentiated in forward mode, which `no_grad` does not switch off.
    pub fn is_forward_mode(&self) -> bool {
        self.forward_mode.load(Ordering::Relaxed)
    }

    /// Sets it and returns what it was.
    pub fn set_forward_mode(&self, on: bool) -> bool {
        self.forward_mode.swap(on, Ordering::Relaxed)
    }

    pub fn detects_anomalies(&self) -> bool {
        self.anomaly.load(Ordering::Relaxed)
    }

    pub fn set_detect_anomalies(&self, on: bool) -> bool {
        self.anomaly.swap(on, Ordering::Relaxed)
    }

    pub fn is_inference(&self) -> bool {
        self.inference.load(Ordering::Relaxed)
    }

    pub fn set_inference(&self, on: bool) -> bool {
        self.inference.swap(on, Ordering::Relaxed)
    }

    /// What takes the operands that nodes of the gradient graph save.
    #[inline]
    pub fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        if self.has_keeper.load(Ordering::Relaxed) { self.keeper.lock().clone() } else { None }
    }

    pub fn set_keeper(&self, keeper: Option<Arc<dyn Keeper>>) -> Option<Arc<dyn Keeper>> {
        self.has_keeper.store(keeper.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *self.keeper.lock(), keeper)
    }

    pub fn default_float(&self) -> DType {
        DType::ALL[self.default_float.load(Ordering::Relaxed) as usize]
    }

    pub fn matmul_precision(&self) -> MatmulPrecision {
        MatmulPrecision::ALL[self.matmul_precision.load(Ordering::Relaxed) as usize]
    }

    pub fn deterministic(&self) -> bool {
        self.deterministic.load(Ordering::Relaxed)
    }

    /// For sums on GPUs that are queued from now on.
    pub fn set_deterministic(&self, only: bool) {
        let mut state = self.state.lock();
        self.flush_all(&mut state);
        self.deterministic.store(only, Ordering::Relaxed);
        // Prepared plans may contain the other way.
        state.plans.clear();
        if let Some(gpus) = self.gpus_if_opened() {
            gpus.backend.set_deterministic(only);
        }
    }

    /// For products that are queued from now on.
    pub fn set_matmul_precision(&self, precision: MatmulPrecision) {
        let mut state = self.state.lock();
        self.flush_all(&mut state);
        self.matmul_precision.store(precision as u8, Ordering::Relaxed);
        // Prepared plans may contain the old one.
        state.plans.clear();
        if let Some(gpus) = self.gpus_if_opened() {
            gpus.backend.set_matmul_precision(precision);
        }
    }

    pub fn set_default_float(&self, dtype: DType) {
        self.default_float.store(dtype as u8, Ordering::Relaxed);
    }

    pub fn seed(&self, seed: u64) {
        self.state.lock().rng = Generator::new(seed);
    }

    /// The random generator's state: its seed and the next counter.
    pub fn generator(&self) -> Generator {
        self.state.lock().rng
    }

    pub fn set_generator(&self, generator: Generator) {
        self.state.lock().rng = generator;
    }

    /// Reserves counters for `n` random values, and returns the generator at which they begin.
    pub fn draw(&self, n: u64) -> Generator {
        let mut state = self.state.lock();
        let before = state.rng;
        state.rng.take(n);
        before
    }

    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// A buffer that gets memory when it is first written.
    pub fn buffer(&self, device: DeviceId, size_bytes: usize, pinned: bool) -> Arc<Buffer> {
        self.buffer_at(self.shared(), device, size_bytes, pinned)
    }

    /// Creates an NVIDIA GPU's context at its first use.
    pub(super) fn open_device(&self, device: DeviceId) {
        if let DeviceId::Cuda(index) = device
            && let Some(gpus) = self.gpus_if_opened()
        {
            gpus.backend.open(index);
        }
    }

    /// As `buffer`, for a caller that has the runtime in an `Arc`: `home` is that.
    pub fn buffer_at(&self, home: Arc<dyn Home>, device: DeviceId, size_bytes: usize, pinned: bool) -> Arc<Buffer> {
        self.open_device(device);
        let id = self.next_buffer.fetch_add(1, Ordering::Relaxed);
        Arc::new(Buffer::new(id, home, device, size_bytes, pinned))
    }

    /// A buffer over memory of the host program; it is returned with the last handle.
    pub fn lend(&self, lent: Lent) -> Arc<Buffer> {
        let buffer = self.buffer(DeviceId::Cpu, lent.len(), false);
        buffer.block.store(BORROWED, Ordering::Relaxed);
        buffer.address.store(lent.address(), Ordering::Release);
        self.lent.lock().insert(buffer.id, lent);
        buffer
    }

    /// Calls `work` with the allocator of a buffer's memory.
    pub(super) fn with_home<R>(&self, buffer: &Buffer, work: impl FnOnce(&mut Memory) -> R) -> R {
        match (buffer.device, self.gpus_if_opened()) {
            (DeviceId::Cuda(_), Some(gpus)) => work(&mut gpus.gpu(buffer.device).memory.lock()),
            (DeviceId::Cpu, Some(gpus)) if buffer.pinned => work(&mut gpus.pinned.lock()),
            _ => work(&mut self.host.lock()),
        }
    }

    /// Calls `work` with the allocator of a device, after all recorded work of the device was queued: scripts see the
    /// same numbers as if nothing were deferred.
    pub fn with_memory<R>(&self, device: DeviceId, work: impl FnOnce(&mut Memory) -> R) -> Result<R> {
        let mut state = self.state.lock();
        self.flush_device(&mut state, device);
        self.harvest(&mut state);
        drop(state);
        match device {
            DeviceId::Cpu => Ok(work(&mut self.host.lock())),
            DeviceId::Cuda(_) => {
                self.gpu_index(device)?;
                let gpus = self.gpus().expect("the device exists");
                Ok(work(&mut gpus.gpu(device).memory.lock()))
            }
        }
    }

    /// Whether the host has memory for so many bytes besides its tensors: lists that are created when values go to
    /// the script, or indices to a tensor. Out of memory is an error value.
    pub fn host_room(&self, bytes: usize) -> Result<()> {
        // Small lists are not checked.
        if bytes <= SMALL_LIST {
            return Ok(());
        }
        if let Some(room) = self.values.get() {
            room(bytes)?;
        }
        let mut memory = self.host.lock();
        if bytes <= memory.free_bytes() {
            return Ok(());
        }
        Err(memory::diagnose(&memory.cache().out_of_memory(bytes), DeviceId::Cpu, self.options.host_limit))
    }

    /// Records a node. Runs the window if it is full or in blocking mode.
    #[inline]
    pub fn record(&self, node: Node) -> Result<()> {
        if self.timeline.is_none() { self.record_node(node) } else { self.record_timed(node) }
    }

    fn record_timed(&self, node: Node) -> Result<()> {
        let (begun, part) = (self.time_now(), timeline::part(&node));
        let number = self.recorded.load(Ordering::Relaxed) + 1;
        let view = node.outputs[0].clone();
        let recorded = self.record_node(node);
        self.note_launch(begun, timeline::Part { number, ..part });
        self.note_memory(&view);
        recorded
    }

    /// The next queue number.
    pub(super) fn next_number(&self) -> u64 {
        self.recorded.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn record_node(&self, mut node: Node) -> Result<()> {
        let device = node.outputs[0].buffer.device;
        let slot = self.slot_of(device);
        let mut state = self.state.lock();
        let state = &mut *state;
        (node.number, node.call_chain) = (self.next_number(), self.call_chain());
        if slot != HOST {
            self.check_device(state, device)?;
            self.watch(state, slot, &node)?;
        }
        let own = slot + 1;
        for view in node.reads().chain(&node.outputs) {
            let pending = view.buffer.pending.load(Ordering::Relaxed);
            if pending != own {
                if pending != 0 {
                    self.run_window(state, pending - 1);
                }
                // Only memory of GPUs is freed while work is pending: see `Held`.
                let order = if slot == HOST { Ordering::Release } else { Ordering::SeqCst };
                view.buffer.pending.store(own, order);
            }
        }
        for output in &node.outputs {
            output.write_by(node.origin);
            note_writer(&output.buffer, slot, node.number);
        }
        let at_once = self.runs_at_once();
        let window = &mut state.windows[slot as usize];
        if window.nodes.capacity() == 0 {
            window.nodes = state.lists.pop().unwrap_or_else(|| Vec::with_capacity(window.usual));
        }
        node.begins_round = std::mem::take(&mut window.round_ended) && !window.nodes.is_empty();
        if matches!(node.work, Work::Kernel { .. }) {
            window.kernels += 1;
            self.kernels.fetch_add(1, Ordering::Relaxed);
        }
        if !at_once && window.nodes.len() + 1 < self.options.window_nodes {
            window.nodes.push(node);
            return Ok(());
        }
        // The caller creates its handles only after this: without these, the results would seem to have no readers.
        let results: SmallVec<[Arc<Buffer>; 2]> = node.outputs.iter().map(|output| output.buffer.clone()).collect();
        results.iter().for_each(|buffer| _ = buffer.handles.fetch_add(1, Ordering::SeqCst));
        window.nodes.push(node);
        self.run_window(state, slot);
        let ended = if at_once { self.end_blocking(state, slot) } else { Ok(()) };
        results.iter().for_each(|buffer| _ = buffer.handles.fetch_sub(1, Ordering::SeqCst));
        ended
    }

    fn end_blocking(&self, state: &mut State, slot: u32) -> Result<()> {
        let _waiting = self.waiting("running to the end");
        let point = Point { stream: slot, sequence: state.streams[slot as usize].submitted };
        self.wait_point(state, point)?;
        self.raise_first(state, |_| true)
    }

    /// Queues everything recorded so far. Faults are kept, not raised.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        self.flush_all(&mut state);
    }

    /// A round of a loop ends here, as far as can be known: windows that hold enough are queued, so that later rounds
    /// make the same windows, whose plans are known. Small rounds share a window, and stay separate in it.
    pub fn end_round(&self) {
        let mut state = self.state.lock();
        state.loops.train(self.recorded.load(Ordering::Relaxed));
        for slot in 0..state.windows.len() as u32 {
            let window = &mut state.windows[slot as usize];
            window.round_ended = true;
            if window.nodes.len() >= ROUND_NODES || window.pending_bytes >= ROUND_BYTES {
                self.run_window(&mut state, slot);
            }
        }
    }

    /// A round of a loop ends; `depth`: how deep the loop is.
    #[inline]
    pub fn end_loop_round(&self, depth: u32) {
        if self.kernels.load(Ordering::Relaxed) >= ROUND_KERNELS {
            self.end_windows(depth);
        }
    }

    #[cold]
    fn end_windows(&self, depth: u32) {
        let mut state = self.state.lock();
        if !state.loops.ends(depth, self.recorded.load(Ordering::Relaxed)) {
            return;
        }
        for slot in 0..state.windows.len() as u32 {
            if state.windows[slot as usize].kernels >= ROUND_KERNELS {
                self.run_window(&mut state, slot);
            }
        }
    }

    pub(super) fn flush_all(&self, state: &mut State) {
        for slot in 0..state.windows.len() as u32 {
            self.run_window(state, slot);
        }
    }

    pub(super) fn flush_device(&self, state: &mut State, device: DeviceId) {
        for slot in 0..state.windows.len() as u32 {
            if state.streams[slot as usize].name.device == device {
                self.run_window(state, slot);
            }
        }
    }

    /// Runs everything on every device and raises the earliest unreported fault.
    pub fn synchronize(&self) -> Result<()> {
        self.synchronize_before(u64::MAX)
    }

    /// As `synchronize`, but a fault from a queue number on is left to be raised later.
    pub fn synchronize_before(&self, limit: u64) -> Result<()> {
        let _waiting = self.waiting("waiting for everything");
        let mut state = self.state.lock();
        let state = &mut *state;
        self.flush_all(state);
        for slot in 1..state.streams.len() as u32 {
            let stream = &state.streams[slot as usize];
            if stream.submitted <= stream.left_at {
                continue;
            }
            let point = Point { stream: slot, sequence: stream.submitted };
            self.wait_point(state, point)?;
            let lane = state.streams[slot as usize].lane;
            state.clocks.host_sync(lane);
            let number = state.streams[slot as usize].last_work.0;
            self.host_came_after(state, slot, number);
        }
        self.raise_first(state, |unreported| unreported.order < limit)
    }

    /// The current queue number: everything that is recorded already comes before it.
    pub fn current_queue_number(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed) + 1
    }

    /// Plans the window of a slot and runs it (the host's) or submits it to its queue.
    pub(super) fn run_window(&self, state: &mut State, slot: u32) {
        let window = &mut state.windows[slot as usize];
        window.pending_bytes = 0;
        for (home, bytes) in std::mem::take(&mut window.demand) {
            state.demand.note(home, bytes, false);
        }
        let window = &mut state.windows[slot as usize];
        if window.nodes.is_empty() {
            return;
        }
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.trace.window();
        self.kernels.fetch_sub(std::mem::take(&mut window.kernels), Ordering::Relaxed);
        // Its capacity is freed too: thousands of idle streams hold nothing.
        let nodes = std::mem::take(&mut window.nodes);
        window.usual = nodes.len();
        let (key, layouts) = key::of(&nodes);
        let known = state.plans.remove(&key);
        let mut plan = known.unwrap_or_else(|| plan::plan(&nodes, &mut state.known_steps, |buffer| buffer.is_live()));
        plan.begin(layouts);
        if slot == HOST {
            // Interrupted: the window's operands are still being computed; its results stay unknown, as the script
            // ends here.
            if self.gpus_if_opened().is_none() || self.wait_for_copies(state, &nodes).is_ok() {
                self.run_on_host(state, &nodes, &mut plan);
            }
            end_pending(&plan, &nodes);
            state.keep_list(nodes);
        } else {
            self.submit(state, slot, nodes, &mut plan);
        }
        if state.plans.len() >= MAX_PLANS {
            state.plans.clear();
        }
        state.plans.insert(key, plan);
    }
}

impl Runtime {
    /// Graphs of repeated windows are freed; they are recorded again if that is worthwhile.
    pub(super) fn forget_graphs(&self) {
        let Some(gpus) = self.gpus_if_opened() else { return };
        let mut state = self.state.lock();
        state.plans.values_mut().for_each(|plan| gpus.backend.forget(&mut plan.prepared));
    }
}

/// Nothing of this window is pending any more; frees memory that lost its last handle meanwhile.
pub(super) fn end_pending(plan: &Plan, nodes: &[Node]) {
    for buffer in plan.buffers(nodes) {
        if !buffer.device.is_cuda() {
            buffer.pending.store(0, Ordering::Release);
            continue;
        }
        buffer.pending.store(0, Ordering::SeqCst);
        if buffer.handles.load(Ordering::SeqCst) == 0 && buffer.has_memory() {
            buffer.home.release(buffer);
        }
    }
}
