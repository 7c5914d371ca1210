//! The runtime of one session: windows, their flush, memory, random state, defaults, untold faults.

use super::fault;
use super::key::{self, Key};
use super::memory::Memory;
use super::node::{Input, Node, Work};
use super::plan::{self, Fused, Plan, ScalarRef, Step, view_of};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::limits::{WINDOW_BYTES, WINDOW_NODES};
use crate::base::rng::Generator;
use crate::kernel::abi::{Call, Faults, RawView, Threads};
use crate::kernel::cpu::fused;
use crate::kernel::program::Class;
use crate::op::tensor::{Buffer, Held, Home, View};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bound: plans kept; a script that makes more has no loop that repeats.
const MAX_PLANS: usize = 2048;
/// Bound: pending bytes below which nobody asks whether they fit.
const SMALL_BYTES: usize = 4 << 20;

/// The process-wide pool of kernel threads.
pub fn threads() -> &'static Threads {
    static POOL: OnceLock<Threads> = OnceLock::new();
    POOL.get_or_init(|| Threads::new(std::thread::available_parallelism().map_or(1, |n| n.get())))
}

/// How a session runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Each operation runs to its end before the next.
    pub blocking: bool,
    /// Report the first operation that makes NaN or infinity.
    pub check: bool,
    pub seed: u64,
    /// Bytes of tensors that the host may hold.
    pub host_limit: usize,
    /// Nodes of a window (tests set 1).
    pub window_nodes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { blocking: false, check: false, seed: 0, host_limit: usize::MAX, window_nodes: WINDOW_NODES }
    }
}

/// Shared by every handle of a session.
pub struct Runtime {
    pub options: Options,
    state: Mutex<State>,
    memory: Mutex<Memory>,
    next_buffer: AtomicU64,
    sequence: AtomicU64,
    grad_enabled: AtomicBool,
    default_float: AtomicU8,
    default_device: AtomicU32,
    /// Nodes recorded so far; windows flushed so far.
    pub recorded: AtomicU64,
    pub flushes: AtomicU64,
    me: std::sync::Weak<Runtime>,
}

struct State {
    window: Vec<Node>,
    pending_bytes: usize,
    rng: Generator,
    /// Faults that nobody has been told yet, earliest first.
    untold: Vec<Arc<Diag>>,
    plans: HashMap<Key, Plan>,
}

impl Home for Runtime {
    fn release(&self, buffer: &Buffer) {
        if buffer.address.swap(0, Ordering::AcqRel) != 0 {
            self.memory.lock().give_back(buffer.block.load(Ordering::Relaxed));
        }
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }

    fn runtime(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Runtime {
    pub fn new(options: Options) -> Arc<Runtime> {
        Arc::new_cyclic(|me| Runtime {
            memory: Mutex::new(Memory::new(options.host_limit)),
            state: Mutex::new(State {
                window: Vec::new(),
                pending_bytes: 0,
                rng: Generator::new(options.seed),
                untold: Vec::new(),
                plans: HashMap::new(),
            }),
            options,
            next_buffer: AtomicU64::new(1),
            sequence: AtomicU64::new(1),
            grad_enabled: AtomicBool::new(true),
            default_float: AtomicU8::new(DType::F32 as u8),
            default_device: AtomicU32::new(0),
            recorded: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            me: me.clone(),
        })
    }

    pub fn shared(&self) -> Arc<Runtime> {
        self.me.upgrade().expect("whoever calls holds it")
    }

    pub fn grad_enabled(&self) -> bool {
        self.grad_enabled.load(Ordering::Relaxed)
    }

    /// Sets the mode and returns the old one.
    pub fn set_grad_enabled(&self, enabled: bool) -> bool {
        self.grad_enabled.swap(enabled, Ordering::Relaxed)
    }

    pub fn default_float(&self) -> DType {
        DType::ALL[self.default_float.load(Ordering::Relaxed) as usize]
    }

    pub fn set_default_float(&self, dtype: DType) {
        self.default_float.store(dtype as u8, Ordering::Relaxed);
    }

    pub fn default_device(&self) -> DeviceId {
        match self.default_device.load(Ordering::Relaxed) {
            0 => DeviceId::Cpu,
            n => DeviceId::Cuda((n - 1) as u16),
        }
    }

    pub fn set_default_device(&self, device: DeviceId) {
        let code = match device {
            DeviceId::Cpu => 0,
            DeviceId::Cuda(index) => index as u32 + 1,
        };
        self.default_device.store(code, Ordering::Relaxed);
    }

    pub fn seed(&self, seed: u64) {
        self.state.lock().rng = Generator::new(seed);
    }

    pub fn generator(&self) -> Generator {
        self.state.lock().rng
    }

    pub fn set_generator(&self, rng: Generator) {
        self.state.lock().rng = rng;
    }

    /// Takes counters for `n` random values: seed and first counter.
    pub fn draw(&self, n: u64) -> (u64, u64) {
        let mut state = self.state.lock();
        (state.rng.seed, state.rng.take(n))
    }

    pub fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// A buffer that will get memory when it is first written.
    pub fn buffer(&self, device: DeviceId, size_bytes: usize, pinned: bool) -> Arc<Buffer> {
        Arc::new(Buffer {
            id: self.next_buffer.fetch_add(1, Ordering::Relaxed),
            device,
            size_bytes,
            pinned,
            home: self.shared(),
            address: AtomicUsize::new(0),
            block: AtomicU64::new(0),
            handles: AtomicU32::new(0),
            version: AtomicU32::new(0),
            writer: AtomicU64::new(0),
            pending: AtomicU32::new(0),
            mark: AtomicU32::new(0),
            poison: Mutex::new(None),
        })
    }

    /// Admission: large results get their memory at the call, so that out of memory can be caught there.
    pub fn admit(&self, buffer: &Buffer) -> Result<()> {
        let mut state = self.state.lock();
        state.pending_bytes += buffer.size_bytes;
        // Small results are told from large ones without asking the allocator.
        let small = state.pending_bytes < SMALL_BYTES.min(self.options.host_limit / 64);
        if small || (state.pending_bytes < WINDOW_BYTES && state.pending_bytes <= self.memory.lock().free_bytes()) {
            return Ok(());
        }
        self.run_window(&mut state);
        self.give_memory(buffer)
    }

    /// Gives memory now; out of memory is an error value.
    pub fn give_memory(&self, buffer: &Buffer) -> Result<()> {
        if buffer.has_memory() {
            return Ok(());
        }
        let mut memory = self.memory.lock();
        let owner = buffer.writer.load(Ordering::Relaxed);
        match memory.take(buffer.size_bytes, owner) {
            Ok(taken) => {
                buffer.block.store(taken.number, Ordering::Relaxed);
                buffer.address.store(taken.address, Ordering::Release);
                Ok(())
            }
            Err(report) => Err(super::memory::diagnose(&report, buffer.device)),
        }
    }

    /// Records a node. With blocking, or a full window, runs.
    pub fn record(&self, node: Node) -> Result<()> {
        self.recorded.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        for output in &node.outputs {
            output.buffer.write_by(node.origin);
            output.buffer.pending.store(1, Ordering::Relaxed);
        }
        for view in node.reads() {
            view.buffer.pending.store(1, Ordering::Relaxed);
        }
        let at_once = self.options.blocking || self.options.check;
        if state.window.len() + 1 >= self.options.window_nodes || at_once {
            // The caller makes its handles only after this: without these, nobody would seem to see the results.
            let _seen: Vec<Held> = node.outputs.iter().map(|output| Held::new(output.clone())).collect();
            state.window.push(node);
            self.run_window(&mut state);
            if at_once && let Some(first) = state.untold.first().cloned() {
                state.untold.clear();
                return Err(Box::new((*first).clone()));
            }
            return Ok(());
        }
        state.window.push(node);
        Ok(())
    }

    /// Runs everything recorded so far. Faults are kept, not raised.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        self.run_window(&mut state);
    }

    /// Flushes if the buffer is touched by a pending node.
    pub fn settle(&self, buffer: &Buffer) {
        if buffer.pending.load(Ordering::Relaxed) != 0 {
            self.flush();
        }
    }

    /// Runs everything and raises the earliest fault that nobody was told.
    pub fn synchronize(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.run_window(&mut state);
        if state.untold.is_empty() {
            return Ok(());
        }
        let first = state.untold.remove(0);
        Err(Box::new((*first).clone()))
    }

    /// Marks a fault as told.
    pub fn told(&self, diag: &Arc<Diag>) {
        self.state.lock().untold.retain(|other| !Arc::ptr_eq(other, diag));
    }

    pub fn allocated_bytes(&self) -> usize {
        self.memory.lock().allocated()
    }

    pub fn peak_bytes(&self) -> usize {
        self.memory.lock().peak()
    }

    fn run_window(&self, state: &mut State) {
        state.pending_bytes = 0;
        if state.window.is_empty() {
            return;
        }
        self.flushes.fetch_add(1, Ordering::Relaxed);
        let nodes = std::mem::take(&mut state.window);
        let key = key::of(&nodes);
        let known = state.plans.remove(&key);
        let mut plan = known.unwrap_or_else(|| plan::plan(&nodes, |buffer| buffer.is_live()));
        let faults = self.execute(&nodes, &mut plan);
        if state.plans.len() >= MAX_PLANS {
            state.plans.clear();
        }
        state.plans.insert(key, plan);
        for node in &nodes {
            for view in node.reads().chain(&node.outputs) {
                view.buffer.pending.store(0, Ordering::Relaxed);
            }
        }
        self.spread_poison(&nodes, faults, state);
        let mut nodes = nodes;
        nodes.clear();
        state.window = nodes;
    }

    /// Carries out a plan; returns the faults with their nodes.
    fn execute(&self, nodes: &[Node], plan: &mut Plan) -> Vec<(usize, Arc<Diag>)> {
        let mut faults = Vec::new();
        for (step, last_uses) in plan.steps.iter_mut().zip(&plan.last_uses) {
            match step {
                Step::Fused(fused) => self.run_fused(nodes, fused, &mut faults),
                Step::Kernel(node) => self.run_kernel(nodes, *node, &mut faults),
            }
            for &(node, operand) in last_uses {
                let buffer = &view_of(&nodes[node as usize], operand).buffer;
                if !buffer.is_live() && buffer.has_memory() {
                    self.release(buffer);
                }
            }
        }
        faults
    }

    /// Memory for a step's output. Running out here means that admission was wrong by what others took
    /// meanwhile: the node faults, the session lives.
    fn ensure(&self, view: &View, node: &Node, at: usize, faults: &mut Vec<(usize, Arc<Diag>)>) -> bool {
        match self.give_memory(&view.buffer) {
            Ok(()) => true,
            Err(diag) => {
                let text = format!("`{}` was queued here", node.name);
                faults.push((at, Arc::from(diag.or_at(node.origin, text))));
                false
            }
        }
    }

    fn run_fused(&self, nodes: &[Node], step: &mut Fused, faults: &mut Vec<(usize, Arc<Diag>)>) {
        for (slot, raw) in step.slots.iter().zip(&mut step.views) {
            let node = &nodes[slot.node];
            let view = view_of(node, slot.operand);
            if !self.ensure(view, node, slot.node, faults) {
                return;
            }
            raw.ptr = view.ptr();
        }
        for (entry, scalar) in step.table.iter_mut().zip(&step.scalars) {
            *entry = scalar_bits(nodes, *scalar);
        }
        let slots: Vec<Faults> = step.fallible.iter().map(|_| Faults::default()).collect();
        // SAFETY: every view lies in a buffer with memory; the plan orders conflicting steps, and this
        // thread runs them one after the other.
        unsafe { fused::run(&step.program, &step.shape, &step.views, &step.table, threads(), &slots) };
        for (slot, &at) in slots.iter().zip(&step.fallible) {
            if let Some(found) = slot.take() {
                faults.push((at, diagnose(found, &nodes[at])));
            }
        }
    }

    fn run_kernel(&self, nodes: &[Node], at: usize, faults: &mut Vec<(usize, Arc<Diag>)>) {
        let node = &nodes[at];
        let Work::Kernel { host, attrs, seed, offset } = &node.work else { unreachable!("a kernel step") };
        let inputs: Vec<&Arc<View>> = node.reads().collect();
        for view in inputs.iter().copied().chain(&node.outputs) {
            if !self.ensure(view, node, at, faults) {
                return;
            }
        }
        let raw = |view: &Arc<View>| RawView {
            ptr: view.ptr(),
            dtype: view.dtype,
            shape: view.layout.shape.clone(),
            strides: view.layout.strides.clone(),
        };
        let inputs: Vec<RawView> = inputs.into_iter().map(raw).collect();
        let outputs: Vec<RawView> = node.outputs.iter().map(raw).collect();
        let slot = Faults::default();
        let call = Call {
            inputs: &inputs,
            outputs: &outputs,
            attrs,
            threads: threads(),
            faults: &slot,
            seed: *seed,
            offset: *offset,
        };
        // SAFETY: as for fused steps.
        unsafe { host(&call) };
        if let Some(found) = slot.take() {
            faults.push((at, diagnose(found, node)));
        }
    }

    /// What depended on a fault is poisoned; what was overwritten whole is cured.
    fn spread_poison(&self, nodes: &[Node], faults: Vec<(usize, Arc<Diag>)>, state: &mut State) {
        let poisoned = |view: &Arc<View>| view.buffer.poison.lock().is_some();
        if faults.is_empty()
            && !nodes.iter().any(|node| node.reads().any(poisoned) || node.outputs.iter().any(poisoned))
        {
            return;
        }
        for (at, node) in nodes.iter().enumerate() {
            let own = faults.iter().find(|(owner, _)| *owner == at).map(|(_, diag)| diag.clone());
            let inherited = node.reads().find_map(|view| view.buffer.poison.lock().clone());
            if let Some(own) = &own {
                state.untold.push(own.clone());
            }
            let poison = inherited.or(own);
            for output in &node.outputs {
                let mut slot = output.buffer.poison.lock();
                if poison.is_some() || output.covers() {
                    *slot = poison.clone().or_else(|| if output.covers() { None } else { slot.clone() });
                }
            }
        }
    }
}

fn diagnose(found: crate::kernel::abi::Fault, node: &Node) -> Arc<Diag> {
    let place = node.outputs[0].buffer.device.to_string();
    Arc::from(fault::diagnose(found, node.name, node.origin, &place))
}

/// A table entry as raw bits.
fn scalar_bits(nodes: &[Node], scalar: ScalarRef) -> u64 {
    let random = |node: usize, input: u8| match nodes[node].inputs[input as usize] {
        Input::Random { seed, offset, low, range, .. } => [seed, offset, low as u64, range],
        _ => [0; 4],
    };
    match scalar {
        ScalarRef::Seed { node, input } => random(node, input)[0],
        ScalarRef::Offset { node, input } => random(node, input)[1],
        ScalarRef::Low { node, input } => random(node, input)[2],
        ScalarRef::Range { node, input } => random(node, input)[3],
        ScalarRef::Value { node, input, class, dtype } => {
            let Input::Scalar(value) = nodes[node].inputs[input as usize] else { return 0 };
            bits(value, class, dtype)
        }
    }
}

/// A number as an element of `dtype` in a register of `class`: raw bits of f64, i64, or 0 and 1.
fn bits(value: Scalar, class: Class, dtype: DType) -> u64 {
    match class {
        Class::Bool => (value.to_f64() != 0.0 || value.to_f64().is_nan()) as u64,
        Class::I64 => {
            let value = value.to_i64();
            let wrapped = match dtype {
                DType::U8 => value as u8 as i64,
                DType::I8 => value as i8 as i64,
                DType::I16 => value as i16 as i64,
                DType::I32 => value as i32 as i64,
                _ => value,
            };
            wrapped as u64
        }
        // 16-bit tensors compute with the number in f32, as PyTorch does.
        Class::F32 | Class::F64 => value.to_f64().to_bits(),
    }
}

/// Where an observation looks.
pub fn poison_of(view: &View) -> Option<Arc<Diag>> {
    view.buffer.poison.lock().clone()
}

/// Host access to memory.
impl Runtime {
    /// Fills a new contiguous view from the host.
    pub fn upload(&self, view: &View, bytes: &[u8]) -> Result<()> {
        self.give_memory(&view.buffer)?;
        let size = view.layout.numel() * view.dtype.size_bytes();
        assert_eq!(size, bytes.len(), "as many bytes as the view has");
        // SAFETY: the buffer was just made and has this many bytes; nobody else knows it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), view.ptr(), size) };
        Ok(())
    }

    /// All elements of a settled view, row-major.
    pub fn download(&self, view: &View) -> Vec<u8> {
        let size = view.layout.numel() * view.dtype.size_bytes();
        let mut out = vec![0u8; size];
        if size == 0 {
            return out;
        }
        let source = RawView {
            ptr: view.ptr(),
            dtype: view.dtype,
            shape: view.layout.shape.clone(),
            strides: view.layout.strides.clone(),
        };
        if source.is_contiguous() {
            // SAFETY: the view lies in a buffer with memory, and everything that writes it has run.
            unsafe { std::ptr::copy_nonoverlapping(source.ptr, out.as_mut_ptr(), size) };
            return out;
        }
        let elem = view.dtype.size_bytes();
        let mut index = vec![0usize; view.layout.ndim()];
        for chunk in out.chunks_exact_mut(elem) {
            let at: isize = index.iter().zip(&view.layout.strides).map(|(&i, &s)| i as isize * s).sum();
            // SAFETY: the index is within the view's shape.
            unsafe { std::ptr::copy_nonoverlapping(source.ptr.offset(at * elem as isize), chunk.as_mut_ptr(), elem) };
            for dim in (0..index.len()).rev() {
                index[dim] += 1;
                if index[dim] < view.layout.shape[dim] {
                    break;
                }
                index[dim] = 0;
            }
        }
        out
    }

    /// One element of a settled view's buffer.
    pub fn peek_bytes(&self, view: &View, element: usize) -> [u8; 8] {
        let elem = view.dtype.size_bytes();
        let mut out = [0u8; 8];
        let at = view.buffer.ptr().wrapping_add(element * elem);
        // SAFETY: the caller gives an element inside the view's buffer, which has memory.
        unsafe { std::ptr::copy_nonoverlapping(at, out.as_mut_ptr(), elem) };
        out
    }
}

/// Devices.
impl Runtime {
    /// The CUDA device with an index.
    pub fn cuda_device(&self, index: i64) -> Result<DeviceId> {
        Err(Diag::error(code::NO_CUDA, format!("there is no device cuda:{index}: no CUDA device is available"))
            .help("`tscript devices` says what was found and what is missing"))
    }

    /// What `"cuda"` means now.
    pub fn current_cuda(&self) -> Result<DeviceId> {
        Err(Diag::error(code::NO_CUDA, "no CUDA device is available")
            .help("`tscript devices` says what was found and what is missing"))
    }
}
