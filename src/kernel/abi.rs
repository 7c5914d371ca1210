//! The arguments of a kernel: views of memory, attributes, threads, and the slot for its fault.

use super::guard;
use crate::base::attr::Attr;
use crate::base::dtype::DType;
use crate::base::layout::{Shape, Strides, contiguous_strides};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A strided window on raw memory. The pointer already includes the offset; strides count elements.
#[derive(Debug)]
pub struct RawView {
    pub ptr: *mut u8,
    pub dtype: DType,
    pub shape: Shape,
    pub strides: Strides,
}

impl Clone for RawView {
    /// As `Layout`'s.
    fn clone(&self) -> RawView {
        RawView {
            ptr: self.ptr,
            dtype: self.dtype,
            shape: Shape::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
        }
    }
}

// SAFETY: a view is an address; whoever launches a kernel guarantees that the memory lives and is not
// written elsewhere meanwhile (the scheduler's hazards).
unsafe impl Send for RawView {}
// SAFETY: a shared view gives no access that a copy of it would not give; the same hazards order both.
unsafe impl Sync for RawView {}

impl RawView {
    pub fn contiguous(ptr: *mut u8, dtype: DType, shape: &[usize]) -> RawView {
        RawView { ptr, dtype, shape: Shape::from_slice(shape), strides: contiguous_strides(shape) }
    }

    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1isize;
        self.shape.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == expected;
            expected *= size as isize;
            fits
        }) || self.numel() == 0
    }

    /// The elements as a slice.
    ///
    /// # Safety
    /// The view is contiguous, `T` is the representation of its dtype, and nobody writes meanwhile.
    pub unsafe fn slice<T>(&self) -> &[T] {
        debug_assert!(self.is_contiguous() && size_of::<T>() == self.dtype.size_bytes());
        // SAFETY: a contiguous view names `numel` elements of type `T` from `ptr` on, which nobody writes (this
        // function's contract).
        if self.numel() == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.numel()) } }
    }

    /// The elements as a slice to write.
    ///
    /// # Safety
    /// As `slice`, and nobody else reads or writes meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut<T>(&self) -> &mut [T] {
        debug_assert!(self.is_contiguous() && size_of::<T>() == self.dtype.size_bytes());
        if self.numel() == 0 {
            &mut []
        } else {
            // SAFETY: a contiguous view names `numel` elements of type `T` from `ptr` on, which nobody else uses (this
            // function's contract).
            unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.numel()) }
        }
    }
}

/// An error in the data that a kernel found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// `value` is not in `-bound..bound` for dimension `dim`.
    Index { dim: u8 },
    /// A class label: `value` is not in `0..bound`.
    Label,
    /// A probability that is negative, NaN or infinite, or a row that sums to zero.
    Probability,
    /// A standard deviation that is negative or NaN.
    Deviation,
    /// A value that is not finite, for a kernel that computes the range of all values.
    Range,
    /// Integer division (or remainder) by zero.
    DivisionByZero,
    /// `cholesky`: the leading minor of order `value` is not positive-definite.
    NotPositiveDefinite,
    /// `solve`, `inv`: the matrix is singular (`value`: the pivot).
    Singular,
    /// `svd`, `eigh`: no convergence.
    NoConvergence,
    /// The output has NaN or infinity although every input is finite (`--check`).
    NotFinite,
}

/// A fault, with the numbers for its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// Position of the bad element in row-major order of the operand that holds it.
    pub position: u64,
    pub value: i64,
    pub bound: i64,
}

/// The error slot of one node: stores the fault of the lowest position.
#[derive(Default, Debug)]
pub struct Faults {
    any: AtomicBool,
    first: Mutex<Option<Fault>>,
}

impl Faults {
    /// Called by kernels, from any thread, which then continue without invalid accesses.
    #[cold]
    pub fn report(&self, fault: Fault) {
        let mut first = self.first.lock();
        if first.is_none_or(|old| fault.position < old.position) {
            *first = Some(fault);
        }
        self.any.store(true, Ordering::Release);
    }

    /// The kernel did not complete, for a reason that is reported elsewhere: its results are invalid.
    pub fn spoil(&self) {
        self.any.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The fault, without removing it.
    pub fn get(&self) -> Option<Fault> {
        if self.is_set() { *self.first.lock() } else { None }
    }

    pub fn take(&self) -> Option<Fault> {
        if !self.any.swap(false, Ordering::Acquire) {
            return None;
        }
        self.first.lock().take()
    }
}

/// The threads that kernels may use.
pub struct Threads {
    workers: Option<Workers>,
}

/// A pool that is started at the first parallel work: many scripts have none.
struct Workers {
    count: usize,
    pool: OnceLock<Option<rayon::ThreadPool>>,
}

impl Threads {
    /// Only the calling thread.
    pub const ONE: Threads = Threads { workers: None };

    /// A pool of `count` workers; one means the calling thread alone.
    pub fn new(count: usize) -> Threads {
        Threads { workers: (count > 1).then(|| Workers { count, pool: OnceLock::new() }) }
    }

    pub fn count(&self) -> usize {
        self.workers.as_ref().map_or(1, |workers| workers.count)
    }

    /// `None` also if no threads can be started: the calling thread then does everything.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let workers = self.workers.as_ref()?;
        let build = || {
            let name = |i| format!("tscript-cpu-{i}");
            rayon::ThreadPoolBuilder::new().num_threads(workers.count).thread_name(name).build().ok()
        };
        workers.pool.get_or_init(build).as_ref()
    }

    /// Calls `work` on disjoint ranges that cover `0..n`, each of at least `grain` items (a range's start is
    /// a multiple of `grain`), in parallel when there is enough for two. Where the kernel should end it ends between
    /// two ranges: what one item does must not take longer than some milliseconds, or look itself ([`guard::check`]).
    #[inline]
    pub fn split(&self, n: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        // A trait object for both branches, so that the body is compiled once.
        let work: &(dyn Fn(Range<usize>) + Sync) = &work;
        let pool = if n > grain.max(1) { self.pool() } else { None };
        match pool {
            Some(pool) => split_in(pool, n, grain.max(1), work),
            None if n > 0 => guard::in_pieces(0..n, grain.max(1), work),
            None => {}
        }
    }

    /// Runs `work` inside the pool, so that libraries built on rayon use its threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self.pool() {
            Some(pool) => {
                let guard = guard::current();
                pool.install(|| guard.with(work))
            }
            None => work(),
        }
    }
}

/// Not generic: the pool's machinery is compiled once, not once a kernel (a third of all code otherwise).
fn split_in(pool: &rayon::ThreadPool, n: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let blocks = n.div_ceil(grain);
    // A few ranges for each worker, so that the load is balanced.
    let ranges = blocks.min(4 * pool.current_num_threads());
    let run = |i: usize| {
        let (start, end) = (blocks * i / ranges * grain, (blocks * (i + 1) / ranges * grain).min(n));
        if start < end {
            guard::in_pieces(start..end, grain, work);
        }
    };
    super::shared_work::run(pool, ranges, &run);
}

/// One call of a kernel.
pub struct Call<'a> {
    pub inputs: &'a [RawView],
    pub outputs: &'a [RawView],
    /// The operation's attributes, in the order of its row.
    pub attrs: &'a [Attr],
    pub threads: &'a Threads,
    pub faults: &'a Faults,
    /// Seed and first counter, for kernels that draw random numbers.
    pub seed: u64,
    pub offset: u64,
}

/// A kernel on the host. Outputs are distinct from inputs unless the row says that it works in place.
///
/// # Safety
/// Every view is valid for its dtype, shape and strides; nobody writes the inputs or touches the outputs
/// during the call.
pub type HostFn = unsafe fn(&Call<'_>);
