//! What an operation's operand is: a buffer seen through a layout with a dtype, and its place in the
//! gradient graph. Plain data with counters; algorithms over it live in `sched/` and `tensor/`.

use super::args::Args;
use super::row::Op;
use crate::base::device_id::DeviceId;
use crate::base::diag::Diag;
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::span::{Origin, Site};
use crate::device::keyed::Keyed;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Where a buffer's memory goes when the last handle is gone; implemented by the runtime.
pub trait Home: Send + Sync {
    fn release(&self, buffer: &Buffer);
    fn as_any(&self) -> &(dyn Any + Send + Sync);
    /// The runtime that owns the buffer, shared.
    fn runtime(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Identity of a piece of memory on one device; it has memory or not yet.
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
    /// Raised when a write is recorded.
    pub version: AtomicU32,
    /// Packed origin of the last recorded write: who made a saved operand stale.
    pub writer: AtomicU64,
    /// 1 + slot of the window that holds a node that touches this buffer, or 0.
    pub pending: AtomicU32,
    /// Scratch of the planner: index of this buffer in the window at hand.
    pub mark: AtomicU32,
    /// Which work wrote it last, in the scheduler's words.
    pub wrote: AtomicU64,
    /// Slot of the stream that the memory was taken for.
    pub stream: AtomicU32,
    /// Host memory: copies between devices that still read or write it.
    pub in_flight: AtomicU32,
    /// The faults that reached parts of this memory, until these are overwritten.
    pub poison: Mutex<Vec<Poison>>,
    /// What the race detector knows about it.
    pub touches: Keyed<Touches>,
}

/// What the race detector knows about a buffer.
///
/// Most buffers are touched by one stream, which reads and writes the whole: that costs no allocation.
#[derive(Default)]
pub struct Touches {
    /// 1 + the lane of that stream; 0 before any touched it.
    pub owner: u32,
    /// Its last write, and its last read after that.
    pub write: Option<Touch>,
    pub read: Option<Touch>,
    /// Everything, once there is more to know than that; the scheduler's own.
    pub history: Option<Box<dyn Any + Send>>,
}

/// One access to a whole buffer.
#[derive(Clone, Copy)]
pub struct Touch {
    /// Which access of its stream it was.
    pub epoch: u64,
    pub origin: Origin,
    /// The operation's name.
    pub op: &'static str,
}

/// A part of a buffer whose contents a fault has reached.
pub struct Poison {
    pub layout: Layout,
    pub elem_bytes: usize,
    pub fault: Arc<Diag>,
    /// Faults ascend in the order in which the work was queued; the earliest is told.
    pub order: u64,
}

impl Buffer {
    pub fn ptr(&self) -> *mut u8 {
        self.address.load(Ordering::Acquire) as *mut u8
    }

    /// Notes who writes, for the message about a stale operand.
    pub fn write_by(&self, origin: Origin) {
        // Only the thread that records writes: no other counts at the same time.
        self.version.store(self.version.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.writer.store((origin.user.0 as u64) << 32 | origin.inner.0 as u64, Ordering::Relaxed);
    }

    /// Notes who made it, for reports about memory; not a write.
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

/// A window on a buffer. Immutable and shared by nodes and handles.
#[derive(Clone, Debug)]
pub struct View {
    pub buffer: Arc<Buffer>,
    pub layout: Layout,
    pub dtype: DType,
    covers: bool,
}

impl View {
    pub fn new(buffer: Arc<Buffer>, layout: Layout, dtype: DType) -> View {
        let covers = covers(&buffer, &layout, dtype);
        View { buffer, layout, dtype, covers }
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

    /// Does this view cover every byte of its buffer?
    pub fn covers(&self) -> bool {
        // Known: it is asked for every operand of every operation on a GPU.
        self.covers
    }
}

fn covers(buffer: &Buffer, layout: &Layout, dtype: DType) -> bool {
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
    /// The last handle gives the memory back, although records of queued work may still name the buffer.
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
    /// Part of a gradient graph, or a leaf that requires gradients; a copy of what `auto` says, for the fast path.
    tracked: AtomicBool,
    pub auto: Mutex<Auto>,
    /// The operation that made it.
    pub made: Origin,
}

/// A tensor's place in the gradient graph.
#[derive(Default)]
pub struct Auto {
    /// Set by the user, on a leaf.
    pub requires_grad: bool,
    pub grad: Option<Tensor>,
    /// The node and which of its outputs this is.
    pub edge: Option<(Arc<GradNode>, usize)>,
    pub retain_grad: bool,
    /// For a differentiable view: the tensor that owns the history of the buffer.
    pub base: Option<Tensor>,
    /// How often an in-place change rebased the history. A view that counts fewer than its base takes its
    /// edge from the base anew.
    pub rebased: u32,
}

impl Tensor {
    pub fn new(view: Arc<View>, made: Origin) -> Tensor {
        Tensor::of_held(Held::new(view), made)
    }

    /// A handle that takes over another's count.
    pub fn of_held(held: Held, made: Origin) -> Tensor {
        Tensor(Arc::new(Cell {
            view: Mutex::new(held),
            tracked: AtomicBool::new(false),
            auto: Mutex::new(Auto::default()),
            made,
        }))
    }

    pub fn view(&self) -> Arc<View> {
        self.0.view.lock().0.clone()
    }

    /// Swaps the buffer behind every clone of this handle (`model.to`, `x.data = y`).
    pub fn set_view(&self, view: Arc<View>) {
        *self.0.view.lock() = Held::new(view);
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

    pub fn ndim(&self) -> usize {
        self.0.view.lock().0.layout.ndim()
    }

    pub fn numel(&self) -> usize {
        self.0.view.lock().0.layout.numel()
    }

    /// Does a gradient flow to this tensor?
    pub fn requires_grad(&self) -> bool {
        self.0.tracked.load(Ordering::Acquire)
    }

    /// To be called whenever `auto` changed.
    pub fn set_tracked(&self, tracked: bool) {
        self.0.tracked.store(tracked, Ordering::Release);
    }

    pub fn is_leaf(&self) -> bool {
        self.0.auto.lock().edge.is_none()
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

/// How a saved operand is connected, for gradients of gradients.
#[derive(Clone, Copy)]
pub enum SavedEdge {
    None,
    /// As the operand in this gradient slot of the node that saves it.
    Input(usize),
    /// It is output `n` of the very node that saves it.
    Output(usize),
}

/// Shape, dtype and device of an operand, always known to a rule.
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

/// One recorded operation of the gradient graph.
pub struct GradNode {
    pub op: &'static Op,
    /// Arguments with the tensors taken out.
    pub args: Args,
    /// One for each gradient slot (see `row::GradRule`); none where a number stood.
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
    /// For an in-place change of a view: the base's history before, and where the view lies in it.
    pub slice: Option<SliceOf>,
    /// Results that want to keep their gradient (`retain_grad`).
    pub retained: OnceLock<Retained>,
}

/// Which results they are, and their handles.
pub type Retained = Mutex<Vec<(usize, std::sync::Weak<Cell>)>>;
/// One for each gradient slot; none where no gradient goes on.
pub type Edges = SmallVec<[Option<Edge>; 2]>;
/// One for each entry of the row's `saves`; none for what was not there.
pub type SavedList = SmallVec<[Option<Saved>; 2]>;

/// PyTorch's CopySlices: an in-place operation on a part of a base.
pub struct SliceOf {
    pub base: Meta,
    /// Layout of the part relative to the base laid out densely.
    pub layout: Layout,
    pub base_layout: Layout,
    pub base_edge: Option<Edge>,
}

impl Drop for GradNode {
    /// A long chain is taken apart in a loop: recursion over a million nodes would overflow the stack.
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
