//! The operands of operations: a buffer seen through a layout with a dtype, and its place in the gradient graph.
//! Plain data with counters; algorithms are in `sched/` and `tensor/`.

use super::args::Args;
use super::row::Op;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::span::{Origin, Site};
use crate::device::keyed::Keyed;
use crate::device::race::Touches;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Where a buffer's memory is freed when the last handle is dropped; implemented by the runtime.
pub trait Home: Send + Sync {
    fn release(&self, buffer: &Buffer);
}

/// Identity of memory on one device; the memory may not be allocated yet.
pub struct Buffer {
    pub id: u64,
    pub device: DeviceId,
    pub size_bytes: usize,
    pub pinned: bool,
    pub home: Arc<dyn Home>,
    /// Address, 0 while there is no memory.
    pub address: AtomicUsize,
    /// The allocator's own number of the block.
    pub block: AtomicU64,
    /// Tensor handles and saved operands, not nodes: a pending buffer with none needs no memory.
    pub handles: AtomicU32,
    /// Incremented when a write is recorded: shows whether the contents are still the same.
    pub version: AtomicU32,
    /// Writes counted in `version` that the gradient graph does not see: those through `x.data`.
    pub aside: AtomicU32,
    /// `View::version` when the operation that created the buffer ended: what scripts see as version 0.
    pub born: AtomicU32,
    /// Packed origin of the last recorded write, for the message about a stale saved operand.
    pub writer: AtomicU64,
    /// 1 + slot of the window that holds a node that uses this buffer, or 0.
    pub pending: AtomicU32,
    /// Temporary of the planner: index of this buffer in the current window.
    pub window_index: AtomicU32,
    /// The work that wrote it last, encoded by the scheduler.
    pub wrote: AtomicU64,
    /// Slot of the stream for which the memory was allocated.
    pub stream: AtomicU32,
    /// Host memory: copies between devices that still read or write it.
    pub in_flight: AtomicU32,
    /// Made in `inference_mode`: kept out of the gradient graph.
    pub inference: AtomicBool,
    /// The faults that reached parts of this memory, until these are overwritten.
    pub poison: Mutex<Vec<Poison>>,
    /// The race detector's records of it.
    pub touches: Keyed<Touches>,
}

/// A part of a buffer whose contents a fault has reached.
pub struct Poison {
    pub layout: Layout,
    pub elem_bytes: usize,
    pub fault: Arc<Diag>,
    /// Faults ascend by queue number; the earliest one is reported.
    pub order: u64,
}

impl Buffer {
    /// A buffer without memory, for the host's stream, that has not been used.
    pub fn new(id: u64, home: Arc<dyn Home>, device: DeviceId, size_bytes: usize, pinned: bool) -> Buffer {
        Buffer {
            id,
            device,
            size_bytes,
            pinned,
            home,
            address: AtomicUsize::new(0),
            block: AtomicU64::new(0),
            handles: AtomicU32::new(0),
            version: AtomicU32::new(0),
            aside: AtomicU32::new(0),
            born: AtomicU32::new(0),
            writer: AtomicU64::new(0),
            wrote: AtomicU64::new(0),
            pending: AtomicU32::new(0),
            window_index: AtomicU32::new(0),
            stream: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            inference: AtomicBool::new(false),
            poison: Mutex::new(Vec::new()),
            touches: Keyed::default(),
        }
    }

    pub fn ptr(&self) -> *mut u8 {
        self.address.load(Ordering::Acquire) as *mut u8
    }

    /// Records the writer, for the message about a stale operand.
    pub fn write_by(&self, origin: Origin) {
        raise(&self.version);
        self.writer.store((origin.user.0 as u64) << 32 | origin.inner.0 as u64, Ordering::Relaxed);
    }

    /// Records the creator, for reports about memory; not a write.
    pub fn owned_by(&self, origin: Origin) {
        self.writer.store((origin.user.0 as u64) << 32 | origin.inner.0 as u64, Ordering::Relaxed);
    }

    pub fn last_writer(&self) -> Origin {
        let packed = self.writer.load(Ordering::Relaxed);
        Origin { user: Site((packed >> 32) as u32), inner: Site(packed as u32) }
    }

    pub fn has_memory(&self) -> bool {
        self.address.load(Ordering::Acquire) != 0
    }

    pub fn is_live(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }
}

/// Counts one more write. Only the recording thread writes: there are no concurrent counts.
fn raise(count: &AtomicU32) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.has_memory() {
            self.home.release(self);
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "buffer {} on {}", self.id, self.device)
    }
}

/// Whether there ever was a complex tensor: until then calls do not look for one among their operands.
static SEEN_COMPLEX: AtomicBool = AtomicBool::new(false);

/// Whether any tensor may be complex.
pub fn seen_complex() -> bool {
    SEEN_COMPLEX.load(Ordering::Relaxed)
}

/// A window on a buffer. Immutable and shared by nodes and handles.
#[derive(Clone, Debug)]
pub struct View {
    pub buffer: Arc<Buffer>,
    pub layout: Layout,
    pub dtype: DType,
    covers_buffer: bool,
    /// The count of writes of `x.data` and its views, which the gradient graph of `x` does not see. None: the
    /// buffer's own count.
    apart: Option<Arc<AtomicU32>>,
}

impl View {
    pub fn new(buffer: Arc<Buffer>, layout: Layout, dtype: DType) -> View {
        if dtype.is_complex() {
            SEEN_COMPLEX.store(true, Ordering::Relaxed);
        }
        let covers_buffer = covers_buffer(&buffer, &layout, dtype);
        View { buffer, layout, dtype, covers_buffer, apart: None }
    }

    /// Another layout over the same memory, whose writes count as this view's.
    pub fn with_layout(&self, layout: Layout) -> View {
        View { apart: self.apart.clone(), ..View::new(self.buffer.clone(), layout, self.dtype) }
    }

    /// The same memory as elements of another dtype, whose writes count as this view's.
    pub fn reinterpreted(&self, layout: Layout, dtype: DType) -> View {
        View { apart: self.apart.clone(), ..View::new(self.buffer.clone(), layout, dtype) }
    }

    /// A complex view as real numbers: a last dimension of two, the real part first.
    pub fn as_pairs(&self) -> View {
        let mut layout = self.layout.doubled();
        layout.shape.push(2);
        layout.strides.push(1);
        self.reinterpreted(layout, self.dtype.real_part())
    }

    /// The real (0) or imaginary (1) parts of a complex view.
    pub fn part(&self, which: usize) -> View {
        let mut layout = self.layout.doubled();
        layout.offset += which;
        self.reinterpreted(layout, self.dtype.real_part())
    }

    /// The same elements as kernels see them: pairs of real numbers if they are complex.
    pub fn as_real(self: Arc<View>) -> Arc<View> {
        if self.dtype.is_complex() { Arc::new(self.as_pairs()) } else { self }
    }

    /// The same elements with a separate count of writes, which begins at `version`.
    pub fn counted_apart(&self, version: u32) -> View {
        View { apart: Some(Arc::new(AtomicU32::new(version))), ..self.clone() }
    }

    /// Records a write through this view, and its origin.
    pub fn write_by(&self, origin: Origin) {
        self.buffer.write_by(origin);
        if let Some(count) = &self.apart {
            raise(&self.buffer.aside);
            raise(count);
        }
    }

    /// How many writes the gradient graph saw: a saved operand is stale when this has changed.
    pub fn version(&self) -> u32 {
        match &self.apart {
            Some(count) => count.load(Ordering::Acquire),
            None => self.buffer.version.load(Ordering::Acquire).wrapping_sub(self.buffer.aside.load(Ordering::Acquire)),
        }
    }

    /// As `version`, without the writes of the operation that made the buffer.
    pub fn version_since_made(&self) -> u32 {
        match &self.apart {
            Some(_) => self.version(),
            None => self.version().wrapping_sub(self.buffer.born.load(Ordering::Acquire)),
        }
    }

    /// The operation that creates the buffer has ended.
    pub fn made(&self) {
        self.buffer.born.store(self.version(), Ordering::Release);
    }

    /// Whether nothing was written since `made`.
    pub fn is_made(&self) -> bool {
        self.buffer.born.load(Ordering::Acquire) == self.version()
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Address of the first element.
    pub fn ptr(&self) -> *mut u8 {
        self.buffer.ptr().wrapping_add(self.layout.offset * self.dtype.size_bytes())
    }

    pub fn meta(&self) -> Meta {
        Meta { shape: Shape::from_slice(&self.layout.shape), dtype: self.dtype, device: self.buffer.device }
    }

    /// Whether this view covers every byte of its buffer.
    pub fn covers_buffer(&self) -> bool {
        // Cached: it is needed for every operand of every operation on a GPU.
        self.covers_buffer
    }
}

fn covers_buffer(buffer: &Buffer, layout: &Layout, dtype: DType) -> bool {
    let (shape, strides): (&[usize], &[isize]) = (&layout.shape, &layout.strides);
    let mut elements = 1isize;
    for at in (0..shape.len().min(strides.len())).rev() {
        if shape[at] != 1 {
            if strides[at] != elements {
                return false;
            }
            elements = elements.wrapping_mul(shape[at] as isize);
        }
    }
    (elements as usize).wrapping_mul(dtype.size_bytes()) == buffer.size_bytes
}

/// A view that counts as a handle of its buffer.
#[derive(Debug)]
pub struct Held(Arc<View>);

impl Held {
    pub fn new(view: Arc<View>) -> Held {
        view.buffer.handles.fetch_add(1, Ordering::AcqRel);
        Held(view)
    }

    pub fn view(&self) -> &Arc<View> {
        &self.0
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        Held::new(self.0.clone())
    }
}

impl Drop for Held {
    /// The last handle frees the memory, although records of queued work may still name the buffer.
    fn drop(&mut self) {
        let buffer = &self.0.buffer;
        // Either this sees that no node is pending, or the flush that ends it sees that no handle is left.
        if buffer.handles.fetch_sub(1, Ordering::SeqCst) == 1
            && buffer.device.is_cuda()
            && buffer.pending.load(Ordering::SeqCst) == 0
            && buffer.has_memory()
        {
            buffer.home.release(buffer);
        }
    }
}

/// A tensor handle: a slot that all clones share.
#[derive(Clone)]
pub struct Tensor(pub Arc<Cell>);

/// The slot behind a handle.
pub struct Cell {
    view: Mutex<Held>,
    /// A `Tracked`: a copy of the state in `auto`, for the fast path.
    tracked: AtomicU8,
    pub auto: Mutex<Auto>,
    /// The operation that created it.
    pub made: Origin,
    /// Inside of `vmap`: all samples. `view` shows the first one.
    pub samples: Option<Box<Samples>>,
}

/// The samples of a tensor inside of `vmap`, one behind the other.
pub struct Samples {
    /// Its first dims are those of the levels; the others are those that the script sees. Its place in the gradient graph
    /// is that of all samples.
    pub value: Tensor,
    /// Numbers of the levels, ascending.
    pub levels: Levels,
}

/// Numbers of levels of `vmap`.
pub type Levels = SmallVec<[u64; 2]>;

/// Whether a gradient flows to a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Tracked {
    No,
    /// Part of a gradient graph, or a leaf that requires gradients.
    Yes,
    /// A view without a place of its own in the graph: yes if its base has one.
    AsBase,
    /// A tensor with samples: yes if all of them together have one.
    AsSamples,
}

/// A tensor's place in the gradient graph.
#[derive(Default)]
pub struct Auto {
    /// Set by the user, on a leaf.
    pub requires_grad: bool,
    /// The script got it as the conjugate of a tensor, which PyTorch shows through a view.
    pub is_conjugate: bool,
    /// It is a parameter of modules, also while it requires no gradient.
    pub is_parameter: bool,
    /// It was the input of a function transform that has ended: nobody asks for its gradient any more, save the transform.
    pub is_over: bool,
    pub retain_grad: bool,
    /// For a view: the restrictions on in-place changes.
    pub made_as: MadeAs,
    /// For a view: the version of its memory for which `edge` is valid. After a change, `edge` is derived from the
    /// base again (`history::refresh`).
    pub version: u32,
    pub grad: Option<Tensor>,
    /// The node and which of its outputs this is.
    pub edge: Option<(Arc<GradNode>, usize)>,
    /// For a leaf: hooks of its gradient, and of its `.grad` after a gradient was added.
    pub hooks: Option<Box<LeafHooks>>,
    /// For a leaf: a number below those of all nodes that lead to it; 0 before there are any.
    pub since: u64,
    /// For a view: the tensor (not a view) that owns the history of the memory.
    pub base: Option<Tensor>,
    /// What moved the tensor to its device, if it was made on another.
    pub moved: Origin,
}

/// What few leaves have: hooks, in the order in which they were registered, and gradients of rows.
#[derive(Default)]
pub struct LeafHooks {
    pub gradient: Vec<Hook>,
    pub accumulated: Vec<Hook>,
    pub rows: Vec<RowGrad>,
}

/// A part of a table's gradient: `values`, `[n, ..]`, belong to the rows that `index`, `[n]`, names. Rows that occur
/// several times add up.
#[derive(Clone)]
pub struct RowGrad {
    pub index: Tensor,
    pub values: Tensor,
}

impl Tensor {
    /// The parts of the gradient that are kept as rows.
    pub fn row_grads(&self) -> Vec<RowGrad> {
        self.0.auto.lock().hooks.as_ref().map_or(Vec::new(), |hooks| hooks.rows.clone())
    }

    /// Keeps these instead, beside the dense part.
    pub fn set_row_grads(&self, rows: Vec<RowGrad>) {
        let mut auto = self.0.auto.lock();
        if !rows.is_empty() || auto.hooks.is_some() {
            auto.hooks.get_or_insert_default().rows = rows;
        }
    }

    /// Whether `.grad` is there.
    pub fn has_grad(&self) -> bool {
        let auto = self.0.auto.lock();
        auto.grad.is_some() || auto.hooks.as_ref().is_some_and(|hooks| !hooks.rows.is_empty())
    }

    /// `x.grad = ()`.
    pub fn drop_grad(&self) {
        let mut auto = self.0.auto.lock();
        auto.grad = None;
        if let Some(hooks) = &mut auto.hooks {
            hooks.rows.clear();
        }
    }
}

/// How a view was created, if that forbids in-place changes which the gradient graph would have to follow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MadeAs {
    #[default]
    Usual,
    /// One of several views that one operation returned (`unbind`).
    OneOfSeveral,
    /// Created while gradients were not recorded.
    Unrecorded,
    /// It shows the memory in another dtype: parts of complex numbers.
    Reinterpreted,
}

impl Tensor {
    pub fn new(view: Arc<View>, made: Origin) -> Tensor {
        Tensor::of_held(Held::new(view), made)
    }

    /// A handle that takes over another's reference count.
    pub fn of_held(held: Held, made: Origin) -> Tensor {
        Tensor(Arc::new(Cell {
            view: Mutex::new(held),
            tracked: AtomicU8::new(Tracked::No as u8),
            auto: Mutex::new(Auto::default()),
            made,
            samples: None,
        }))
    }

    /// A tensor inside of `vmap`: a view of the first sample, and all of them.
    pub fn with_samples(first: Arc<View>, samples: Samples, made: Origin) -> Tensor {
        Tensor(Arc::new(Cell {
            view: Mutex::new(Held::new(first)),
            tracked: AtomicU8::new(Tracked::AsSamples as u8),
            auto: Mutex::new(Auto::default()),
            made,
            samples: Some(Box::new(samples)),
        }))
    }

    /// Inside of `vmap`, all samples.
    #[inline]
    pub fn samples(&self) -> Option<&Samples> {
        self.0.samples.as_deref()
    }

    pub fn view(&self) -> Arc<View> {
        self.0.view.lock().0.clone()
    }

    /// Looks at the view where it lies.
    pub fn with_view<R>(&self, look: impl FnOnce(&View) -> R) -> R {
        look(&self.0.view.lock().0)
    }

    /// Swaps the buffer behind every clone of this handle (`model.to`, `x.data = y`).
    pub fn set_view(&self, view: Arc<View>) {
        *self.0.view.lock() = Held::new(view);
    }

    /// As `set_view`, by a call at a place of the script.
    pub fn exchange_view(&self, view: Arc<View>, at: Origin) {
        if view.buffer.device != self.device() {
            self.0.auto.lock().moved = at;
        }
        self.set_view(view);
    }

    /// Where it came to its device, and whether it was made elsewhere.
    pub fn came(&self) -> (Origin, bool) {
        let moved = self.0.auto.lock().moved;
        if moved == Origin::NONE { (self.0.made, false) } else { (moved, true) }
    }

    pub fn dtype(&self) -> DType {
        self.0.view.lock().0.dtype
    }

    pub fn device(&self) -> DeviceId {
        self.0.view.lock().0.buffer.device
    }

    pub fn shape(&self) -> Shape {
        Shape::from_slice(&self.0.view.lock().0.layout.shape)
    }

    /// As its view's.
    pub fn version(&self) -> u32 {
        self.0.view.lock().0.version()
    }

    pub fn ndim(&self) -> usize {
        self.0.view.lock().0.layout.ndim()
    }

    pub fn numel(&self) -> usize {
        self.0.view.lock().0.layout.numel()
    }

    /// Whether a gradient flows to this tensor.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        let tracked = self.0.tracked.load(Ordering::Acquire);
        if tracked > Tracked::Yes as u8 { self.other_requires_grad() } else { tracked == Tracked::Yes as u8 }
    }

    #[inline(never)]
    fn other_requires_grad(&self) -> bool {
        if let Some(samples) = self.samples() {
            return samples.value.requires_grad();
        }
        self.0.auto.lock().base.as_ref().is_some_and(Tensor::requires_grad)
    }

    /// Must be called whenever `auto` has changed.
    pub fn set_tracked(&self, tracked: Tracked) {
        self.0.tracked.store(tracked as u8, Ordering::Release);
    }

    /// Whether it was made in `inference_mode`.
    pub fn is_inference(&self) -> bool {
        self.0.view.lock().0.buffer.inference.load(Ordering::Relaxed)
    }

    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = self.view();
        write!(f, "tensor({} {:?} on {})", view.dtype, view.layout.shape.as_slice(), view.buffer.device)
    }
}

/// Where a gradient goes next.
#[derive(Clone)]
pub enum Edge {
    Node(Arc<GradNode>, usize),
    /// A leaf that requires gradients.
    Leaf(Tensor),
}

/// An operand kept for a gradient rule.
#[derive(Clone)]
pub struct Saved {
    pub held: Held,
    pub version: u32,
    pub edge: SavedEdge,
    pub made: Origin,
}

/// How a saved operand is connected, for second-order gradients.
#[derive(Clone, Copy)]
pub enum SavedEdge {
    None,
    /// As the operand in this gradient slot of the node that saves it.
    Input(usize),
    /// It is output `n` of the node that saves it.
    Output(usize),
}

/// Shape, dtype and device of an operand, always available to a rule.
#[derive(Debug)]
pub struct Meta {
    pub shape: Shape,
    pub dtype: DType,
    pub device: DeviceId,
}

impl Clone for Meta {
    /// As `Layout`'s.
    fn clone(&self) -> Meta {
        Meta { shape: Shape::from_slice(&self.shape), dtype: self.dtype, device: self.device }
    }
}

impl Meta {
    pub fn of(tensor: &Tensor) -> Meta {
        tensor.0.view.lock().0.meta()
    }
}

/// What a script or a host program computes in backward: a hook, or the backward of a function of its own.
pub trait GradCall: Send + Sync {
    /// A gradient for each slot of a function; for a hook one: none leaves the gradient as it is.
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>>;

    /// Whether it was removed.
    fn is_over(&self) -> bool {
        false
    }
}

/// What it gets.
pub struct GradStep<'a> {
    pub grads: &'a [Option<Tensor>],
    /// What the function saved in its forward.
    pub saved: &'a [Option<Tensor>],
    pub inputs: &'a [Option<Meta>],
    pub outputs: &'a [Meta],
    /// Where the function was called.
    pub origin: Origin,
    /// Gradients of gradients are recorded.
    pub create_graph: bool,
    /// Leaves add what arrives to their `.grad`: `backward()`, and not `grad(ys, xs)`.
    pub accumulates: bool,
}

/// A hook, and which of a node's results it belongs to; 0 for a leaf.
pub type Hook = (usize, Arc<dyn GradCall>);

/// One recorded operation of the gradient graph.
pub struct GradNode {
    pub op: &'static Op,
    /// Arguments with the tensors taken out.
    pub args: Args,
    /// One for each gradient slot (see `row::GradRule`); none for a number.
    pub inputs: SmallVec<[Option<Meta>; 2]>,
    pub outputs: SmallVec<[Meta; 1]>,
    pub edges: Edges,
    /// What the row's `saves` lists, in that order; taken by the first backward unless the graph is retained.
    pub saved: Mutex<Option<SavedList>>,
    /// Order of recording; backward runs the highest first.
    pub sequence: u64,
    /// Slot of the stream that the operation was queued on.
    pub stream: u32,
    pub origin: Origin,
    /// For an in-place change of a view: the base's history before it, and where the view lies in the base.
    pub slice: Option<SliceOf>,
    /// Results that keep their gradient (`retain_grad`).
    pub retained: OnceLock<Retained>,
    /// Hooks of its results, in the order in which they were registered.
    pub hooks: OnceLock<Mutex<Vec<Hook>>>,
    /// The backward of a function of one's own, in place of the row's.
    pub own: Option<Box<dyn GradCall>>,
    /// What computes the saved operands again, and the number of this node there (`checkpoint`).
    pub again: Option<(Arc<dyn Keeper>, usize)>,
}

/// Takes what nodes save, and has it computed again when backward needs it.
pub trait Keeper: Send + Sync {
    /// A node was recorded that saves this. The number to ask for it by; none if the node keeps it itself.
    fn put(&self, saved: &SavedList) -> Option<usize>;
    fn take(&self, number: usize) -> Result<SavedList>;
}

/// Which results they are, and their handles.
pub type Retained = Mutex<Vec<(usize, std::sync::Weak<Cell>)>>;
/// One for each gradient slot; none if no gradient flows on.
pub type Edges = SmallVec<[Option<Edge>; 2]>;
/// One for each entry of the row's `saves`; none for missing arguments.
pub type SavedList = SmallVec<[Option<Saved>; 2]>;

/// PyTorch's CopySlices: an in-place operation on a part of a base.
pub struct SliceOf {
    pub base: Meta,
    /// Layout of the part relative to the base laid out densely.
    pub layout: Layout,
    /// Whether the part is complex; the base may have the real numbers of a complex part, or the other way round.
    pub is_complex: bool,
    pub base_layout: Layout,
    pub base_edge: Option<Edge>,
}

impl GradNode {
    /// Where its gradients go. The gradient of a written part of a base goes to the base.
    pub fn next(&self) -> impl Iterator<Item = &Edge> {
        let own = self.edges.iter().skip(self.slice.is_some() as usize);
        own.flatten().chain(self.slice.iter().filter_map(|slice| slice.base_edge.as_ref()))
    }

    /// The tensors whose place in the graph this is. What was written into a part of a base is the place of the base.
    pub fn results(&self) -> &[Meta] {
        match &self.slice {
            Some(slice) => std::slice::from_ref(&slice.base),
            None => &self.outputs,
        }
    }
}

impl Drop for GradNode {
    /// A long chain is dropped in a loop: recursion over a million nodes would overflow the stack.
    fn drop(&mut self) {
        let mut stack: Vec<Arc<GradNode>> = Vec::new();
        let take = |node: &mut GradNode, stack: &mut Vec<Arc<GradNode>>| {
            for edge in node.edges.drain(..).flatten() {
                if let Edge::Node(next, _) = edge {
                    stack.push(next);
                }
            }
            if let Some(Edge::Node(next, _)) = node.slice.as_mut().and_then(|slice| slice.base_edge.take()) {
                stack.push(next);
            }
        };
        take(self, &mut stack);
        while let Some(mut next) = stack.pop() {
            if let Some(node) = Arc::get_mut(&mut next) {
                take(node, &mut stack);
            }
        }
    }
}
