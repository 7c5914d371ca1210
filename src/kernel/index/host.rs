//! Advanced indexing: reading and writing the elements that index tensors name.
//!
//! One implementation is used for `x[i, j]`, `index_select`, `embedding`, their gradients and in-place forms: a table
//! converts a block of indices into offsets, and at each offset starts a slice of the dims that are not indexed. Writes
//! have no races and do not depend on the number of threads: a thread owns a range of the target, and every thread
//! processes the indices in order. Gather and scatter along a dim are in `gather.rs`.

pub mod bag;
pub mod gather;
pub mod rows;

use crate::base::dtype::DType;
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::{Call, Fault, FaultKind, Faults, RawView, Threads};
use crate::kernel::copy::host::{copy_bytes, copy_view};
use crate::kernel::host::element::{Element, by_dtype, by_size};
use crate::kernel::host::simd;
use crate::kernel::host::walk::{Ptr, StridedIter, flag, int, ints, read_ints};
use smallvec::SmallVec;
use std::ops::Range;

/// Indices that are checked and converted into offsets at a time: two buffers of 4 KB on the stack.
const BLOCK: usize = 512;
/// Slices that are asked for before they are needed, and the bytes of each: what follows them the processor foresees.
const AHEAD: usize = 6;
const PREFETCHED: usize = 512;
/// The offset of an index that is out of range or skipped.
const INVALID: isize = isize::MIN;

/// An index tensor and the bounds of its values.
struct Bounded<'a> {
    index: &'a RawView,
    size: usize,
    kind: FaultKind,
    /// Whether negative indices count from the end.
    wraps: bool,
    faults: &'a Faults,
}

impl Bounded<'_> {
    /// Reads indices in `0..size`. Invalid ones are reported with their position and become -1; returns false if there
    /// are any.
    #[inline]
    unsafe fn read(&self, at: (isize, isize), out: &mut [i64], position: impl Fn(usize) -> usize) -> bool {
        let size = self.size as i64;
        let shift = if self.wraps { size } else { 0 };
        // SAFETY: the caller promises that the elements `at.0 + k * at.1`, `k < out.len()`, exist in the index.
        let good = unsafe {
            if self.index.dtype == DType::I64 && at.1 == 1 {
                within()(Ptr::<i64>::of(self.index).at(at.0), out.as_mut_ptr(), out.len(), shift, size)
            } else {
                read_ints(self.index, at.0, at.1, out);
                within()(out.as_ptr(), out.as_mut_ptr(), out.len(), shift, size)
            }
        };
        if !good {
            self.report(out, position);
        }
        good
    }

    #[cold]
    fn report(&self, out: &mut [i64], position: impl Fn(usize) -> usize) {
        let size = self.size as i64;
        for (k, i) in out.iter_mut().enumerate().filter(|(_, i)| **i as u64 >= size as u64) {
            // The value as the user wrote it: wrapping added the size to a negative one.
            let value = if *i < 0 && self.wraps { *i - size } else { *i };
            self.faults.report(Fault { kind: self.kind, position: position(k) as u64, value, bound: size });
            *i = -1;
        }
    }
}

/// Writes `n` indices, `shift` added to those that are negative, and says whether all are in `0..size`. Vectorized;
/// `from` may be `out`.
type Within = unsafe fn(from: *const i64, out: *mut i64, n: usize, shift: i64, size: i64) -> bool;

fn within() -> Within {
    const ALL: [Within; 3] = simd::levels!(<S> fn(from: *const i64, out: *mut i64, n: usize, shift: i64, size: i64) -> bool {
        let mut bad = 0i64;
        for k in 0..n {
            let read = *from.add(k);
            let index = read + if read < 0 { shift } else { 0 };
            bad |= ((index < 0) | (index >= size)) as i64;
            *out.add(k) = index;
        }
        bad == 0
    });
    ALL[simd::level()]
}

/// How an index value becomes an offset in the indexed tensor.
enum Step<'a> {
    Stride(isize),
    /// The value is a row-major position in the whole tensor.
    Position(&'a RawView),
}

/// Index tensors of one shape, which together give offsets.
struct Table<'a> {
    entries: SmallVec<[(Bounded<'a>, StridedIter<1>, Step<'a>); 2]>,
    /// A value of the first index tensor that is skipped without a fault (`padding_idx`).
    skips: Option<i64>,
}

impl<'a> Table<'a> {
    fn new(call: &'a Call<'a>, x: &'a RawView, indices: &'a [RawView], dims: &[i64], wraps: bool) -> Table<'a> {
        let entry = |(index, &dim): (&'a RawView, &i64)| {
            let dim = dim as usize;
            let bounded = Bounded {
                index,
                size: x.shape[dim],
                kind: FaultKind::Index { dim: dim as u8 },
                wraps,
                faults: call.faults,
            };
            (bounded, StridedIter::new(&index.shape, [&index.strides]), Step::Stride(x.strides[dim]))
        };
        Table { entries: indices.iter().zip(dims).map(entry).collect(), skips: None }
    }

    /// Offsets of the entries `start..start + out.len()`; false when some are `INVALID`.
    unsafe fn offsets(&self, start: usize, out: &mut [isize]) -> bool {
        let mut buffer = [0i64; BLOCK];
        let values = &mut buffer[..out.len()];
        let mut good = true;
        out.fill(0);
        for (which, (bounded, walk, step)) in self.entries.iter().enumerate() {
            let stride = walk.inner()[0];
            walk.pieces(start..start + out.len(), |position, [offset], n| {
                let part = &mut values[position - start..][..n];
                if let Some(skipped) = self.skips.filter(|_| which == 0) {
                    // SAFETY: the walk over the index gives this offset for `part.len()` elements that exist.
                    unsafe { read_ints(bounded.index, offset, stride, part) };
                    for (k, _) in part.iter().enumerate().filter(|(_, v)| **v == skipped) {
                        out[position - start + k] = INVALID;
                        good = false;
                    }
                }
                // SAFETY: the walk stays inside the index tensor.
                good &= unsafe { bounded.read((offset, stride), part, |k| position + k) };
            });
            if let (true, Step::Stride(stride)) = (good, step) {
                // The common case, without a branch for each element.
                out.iter_mut().zip(values.iter()).for_each(|(offset, &value)| *offset += value as isize * stride);
                continue;
            }
            for (offset, &value) in out.iter_mut().zip(values.iter()) {
                if value < 0 || *offset == INVALID {
                    *offset = INVALID;
                    continue;
                }
                *offset += match step {
                    Step::Stride(stride) => value as isize * stride,
                    Step::Position(x) => offset_of(x, value as usize),
                };
            }
        }
        good
    }
}

/// Offset of the element at a row-major position.
fn offset_of(x: &RawView, mut position: usize) -> isize {
    let mut offset = 0;
    for (&size, &stride) in x.shape.iter().zip(&x.strides).rev() {
        offset += (position % size) as isize * stride;
        position /= size;
    }
    offset
}

/// An indexed tensor `x` against a dense one, `other`, that has an element for each index and slice element.
struct AdvancedIndex<'a> {
    table: Table<'a>,
    /// Strides of `other` over the dims of the index.
    entries: StridedIter<1>,
    /// Strides of `x` and of `other` over the dims that are not indexed.
    slice: StridedIter<2>,
}

impl<'a> AdvancedIndex<'a> {
    /// `dims` of `x` are indexed; in `other` the dims of the index are inserted at `place` among the remaining dims.
    fn new(table: Table<'a>, x: &RawView, other: &RawView, dims: &[i64], place: usize) -> AdvancedIndex<'a> {
        let index_ndim = table.entries.first().map_or(0, |(bounded, ..)| bounded.index.shape.len());
        let unindexed: Vec<usize> = (0..x.shape.len()).filter(|&d| !dims.contains(&(d as i64))).collect();
        let shape: Shape = unindexed.iter().map(|&d| x.shape[d]).collect();
        let from: Strides = unindexed.iter().map(|&d| x.strides[d]).collect();
        let mut to = other.strides.clone();
        let inner: Strides = to.drain(place..place + index_ndim).collect();
        let entries = StridedIter::new(&other.shape[place..place + index_ndim], [&inner]);
        AdvancedIndex { table, entries, slice: StridedIter::new(&shape, [&from, &to]) }
    }

    /// Calls `loops` for every pair of an element of `x` and one of `other`. For an invalid index `loops.missing` is used
    /// instead of an element of `x`; without it the index is skipped.
    ///
    /// `Access::Read`: `x` is only read, so that entries are divided freely. `Access::Write`: each element of `x` belongs to
    /// one thread, which processes the entries in order.
    unsafe fn each(&self, x: &RawView, other: &RawView, access: Access, threads: &Threads, loops: &PairLoops) {
        let (entries, slice) = (self.entries.numel, self.slice.numel);
        if entries == 0 || slice == 0 {
            return;
        }
        let everywhere = isize::MIN + 1..isize::MAX;
        let ends = BytePtrs { x: Ptr::of(x), other: Ptr::of(other), size: x.dtype.size_bytes() as isize };
        let work = |entries: Range<usize>, slice: Range<usize>, owned: &Range<isize>| {
            // SAFETY: `x` and `other` are valid and `loops` is for their dtype (this function's contract); the comment
            // below says how the work is divided.
            unsafe { self.part(&ends, entries, slice, owned, loops) }
        };
        // Slices are divided among threads if they are long enough: threads then access different elements for any
        // indices.
        if slice >= 16 * 1024 || (slice >= 64 && entries <= BLOCK) {
            let grain = (16 * 1024 / entries.min(16 * 1024)).max(16);
            threads.split(slice, grain, |range| work(0..entries, range, &everywhere));
        } else if access == Access::Read {
            let grain = (16 * 1024 / slice).max(1);
            threads.split(entries, grain, |range| work(range, 0..slice, &everywhere));
        } else if threads.count() == 1 || entries * slice < 16 * 1024 {
            work(0..entries, 0..slice, &everywhere);
        } else {
            // Each thread owns a range of offsets of slices: different slices of `x` start at different offsets.
            let reach = |(bounded, _, step): &(Bounded<'_>, StridedIter<1>, Step<'_>)| match step {
                Step::Stride(stride) => (bounded.size as isize - 1) * stride + 1,
                Step::Position(x) => offset_of(x, x.numel() - 1) + 1,
            };
            let reach: isize = self.table.entries.iter().map(reach).sum();
            let parts = threads.count() as isize;
            threads.split(parts as usize, 1, |range| {
                for part in range.start as isize..range.end as isize {
                    work(0..entries, 0..slice, &(reach * part / parts..reach * (part + 1) / parts));
                }
            });
        }
    }

    unsafe fn part(
        &self,
        ends: &BytePtrs,
        entries: Range<usize>,
        slice: Range<usize>,
        owned: &Range<isize>,
        loops: &PairLoops,
    ) {
        let [entry_step] = self.entries.inner();
        let [slice_from, slice_to] = self.slice.inner();
        let all = owned.start == isize::MIN + 1;
        let mut buffer = [0isize; BLOCK];
        // The longer contiguous dim of `other` is the inner loop.
        let entries_inside = self.slice.numel == 1 || (slice_to != 1 && entry_step == 1);
        let slice_bytes = if slice_from == 1 { slice.len() * ends.size as usize } else { 0 };
        self.entries.pieces(entries, |first, [to], n| {
            for start in (0..n).step_by(BLOCK) {
                let offsets = &mut buffer[..BLOCK.min(n - start)];
                // SAFETY: the piece lies inside the index.
                let good = unsafe { self.table.offsets(first + start, offsets) };
                let to = to + start as isize * entry_step;
                if !all {
                    for offset in offsets.iter_mut().filter(|o| !owned.contains(o)) {
                        *offset = INVALID;
                    }
                }
                // SAFETY: offsets and walks stay inside the tensors; the caller divides the elements among threads.
                unsafe {
                    if entries_inside {
                        self.slice.pieces(slice.clone(), |_, [s_from, s_to], m| {
                            for k in 0..m as isize {
                                let (f, t) = (s_from + k * slice_from, to + s_to + k * slice_to);
                                (loops.indexed_loop)(loops, ends.x(f), offsets, ends.other(t), entry_step, good && all);
                            }
                        });
                        continue;
                    }
                    for (i, &offset) in offsets.iter().enumerate() {
                        if let Some(&ahead) = offsets.get(i + AHEAD).filter(|ahead| **ahead != INVALID) {
                            prefetch(ends.x(ahead), slice_bytes);
                        }
                        let to = to + i as isize * entry_step;
                        let (base, moves) = match (offset == INVALID, loops.missing) {
                            (false, _) => (ends.x(offset), 1),
                            (true, Some(missing)) => (missing.at(0), 0),
                            (true, None) => continue,
                        };
                        self.slice.pieces(slice.clone(), |_, [s_from, s_to], m| {
                            let from = base.wrapping_offset(moves * s_from * ends.size);
                            (loops.strided_loop)(loops, from, moves * slice_from, ends.other(to + s_to), slice_to, m);
                        });
                    }
                }
            }
        });
    }
}

/// Asks for the memory at a pointer before it is needed: slices lie anywhere, so that the processor does not foresee them.
#[inline]
fn prefetch(from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes.min(PREFETCHED)).step_by(64) {
        // SAFETY: a prefetch accesses nothing, wherever it points; SSE is part of every x86-64 processor.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(from.wrapping_add(line).cast())
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}

/// Both tensors, in bytes.
struct BytePtrs {
    x: Ptr<u8>,
    other: Ptr<u8>,
    size: isize,
}

impl BytePtrs {
    fn x(&self, offset: isize) -> *mut u8 {
        self.x.at(offset * self.size)
    }

    fn other(&self, offset: isize) -> *mut u8 {
        self.other.at(offset * self.size)
    }
}

/// An operation on pairs of elements: two loops as function pointers, so that the code around them is compiled once.
struct PairLoops {
    /// For pairs of `x[offsets[i]]` and `other[i * step]`; `plain` if no offset is `INVALID`.
    indexed_loop: unsafe fn(&PairLoops, x: *mut u8, offsets: &[isize], other: *mut u8, step: isize, plain: bool),
    /// For n pairs of `x[i * step]` and `other[i * other_step]`.
    strided_loop: unsafe fn(&PairLoops, x: *mut u8, step: isize, other: *mut u8, other_step: isize, n: usize),
    /// The element that is used for invalid indices.
    missing: Option<Ptr<u8>>,
    /// A factor, in the dtype of the tensors.
    factor: [u8; 8],
}

/// The operation on a pair of elements.
///
/// # Safety
/// Of `apply`: `x` and `other` name one element each, which nobody else touches meanwhile.
trait PairOp<T>: 'static {
    /// In which direction elements are copied as they are, if that is all.
    const COPIES: Option<Copies> = None;
    unsafe fn apply(x: *mut T, other: *mut T, factor: T);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// From `x`.
    Out,
    /// Into `x`.
    In,
}

struct Get;
struct Set;
struct Add;
struct AddScaled;

impl<T: Copy> PairOp<T> for Get {
    const COPIES: Option<Copies> = Some(Copies::Out);
    #[inline(always)]
    unsafe fn apply(x: *mut T, other: *mut T, _: T) {
        // SAFETY: `x` and `other` name one element each (`PairOp`), which nobody else touches now.
        unsafe { *other = *x }
    }
}
impl<T: Copy> PairOp<T> for Set {
    const COPIES: Option<Copies> = Some(Copies::In);
    #[inline(always)]
    unsafe fn apply(x: *mut T, other: *mut T, _: T) {
        // SAFETY: `x` and `other` name one element each (`PairOp`), which nobody else touches now.
        unsafe { *x = *other }
    }
}
impl<T: Element> PairOp<T> for Add {
    #[inline(always)]
    unsafe fn apply(x: *mut T, other: *mut T, _: T) {
        // SAFETY: `x` and `other` name one element each (`PairOp`), which nobody else touches now.
        unsafe { *x = (*x).plus(*other) }
    }
}
impl<T: Element> PairOp<T> for AddScaled {
    #[inline(always)]
    unsafe fn apply(x: *mut T, other: *mut T, factor: T) {
        // SAFETY: `x` and `other` name one element each (`PairOp`), which nobody else touches now.
        unsafe { *x = (*x).plus((*other).times(factor)) }
    }
}

fn pair_loops<T: Copy, M: PairOp<T>>(missing: Option<Ptr<u8>>, factor: [u8; 8]) -> PairLoops {
    unsafe fn indexed_loop<T: Copy, M: PairOp<T>>(
        loops: &PairLoops,
        x: *mut u8,
        offsets: &[isize],
        other: *mut u8,
        step: isize,
        plain: bool,
    ) {
        let (x, other) = (x.cast::<T>(), other.cast::<T>());
        // SAFETY: `part` names the elements of `x` and `other` by good offsets of their walks; eight bytes hold any
        // factor.
        unsafe {
            let factor = loops.factor.as_ptr().cast::<T>().read_unaligned();
            if plain {
                for (i, &offset) in offsets.iter().enumerate() {
                    M::apply(x.wrapping_offset(offset), other.wrapping_offset(i as isize * step), factor);
                }
                return;
            }
            for (i, &offset) in offsets.iter().enumerate() {
                let to = other.wrapping_offset(i as isize * step);
                match (offset != INVALID, loops.missing) {
                    (true, _) => M::apply(x.wrapping_offset(offset), to, factor),
                    (false, Some(missing)) => M::apply(missing.at(0).cast(), to, factor),
                    (false, None) => {}
                }
            }
        }
    }
    unsafe fn strided_loop<T: Copy, M: PairOp<T>>(
        loops: &PairLoops,
        x: *mut u8,
        step: isize,
        other: *mut u8,
        other_step: isize,
        n: usize,
    ) {
        let (x, other) = (x.cast::<T>(), other.cast::<T>());
        // SAFETY: `part` names the elements of `x` and `other` by good offsets of their walks; eight bytes hold any
        // factor.
        unsafe {
            let factor = loops.factor.as_ptr().cast::<T>().read_unaligned();
            if let (true, Some(copies)) = ((step, other_step) == (1, 1), M::COPIES) {
                let (from, to) = if copies == Copies::Out { (x, other) } else { (other, x) };
                copy_bytes(from.cast_const().cast(), to.cast(), n * size_of::<T>());
            } else if (step, other_step) == (1, 1) {
                (0..n).for_each(|i| M::apply(x.add(i), other.add(i), factor));
            } else {
                (0..n as isize).for_each(|i| M::apply(x.offset(i * step), other.offset(i * other_step), factor));
            }
        }
    }
    PairLoops { indexed_loop: indexed_loop::<T, M>, strided_loop: strided_loop::<T, M>, missing, factor }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Reads: `other = x[..]`, zero where an index is invalid.
unsafe fn index_read(indexed: &AdvancedIndex<'_>, x: &RawView, other: &RawView, threads: &Threads) {
    let mut zero = 0u64;
    let zero = Some(Ptr::new((&raw mut zero).cast::<u8>()));
    let loops = by_size!(x.dtype, T => pair_loops::<T, Get>(zero, [0; 8]));
    // SAFETY: both views are of a `HostFn` call, and `loops` is for the dtype of `x`; each element of `other` is written
    // once.
    unsafe { indexed.each(x, other, Access::Read, threads, &loops) }
}

/// Writes: `x[..] = other`; of duplicate indices the last one is written.
unsafe fn index_write(indexed: &AdvancedIndex<'_>, x: &RawView, other: &RawView, threads: &Threads) {
    let loops = by_size!(x.dtype, T => pair_loops::<T, Set>(None, [0; 8]));
    // SAFETY: both views are of a `HostFn` call, and `loops` is for the dtype of `x`; `Access::Write` gives each thread
    // elements of its own.
    unsafe { indexed.each(x, other, Access::Write, threads, &loops) }
}

/// Adds: `x[..] += other * factor`, duplicates in order; a factor of 1 when there is none.
unsafe fn index_accumulate(
    indexed: &AdvancedIndex<'_>,
    x: &RawView,
    other: &RawView,
    factor: Option<[u8; 8]>,
    threads: &Threads,
) {
    let loops = match factor {
        None => by_dtype!(x.dtype, T => pair_loops::<T, Add>(None, [0; 8])),
        Some(factor) => by_dtype!(x.dtype, T => pair_loops::<T, AddScaled>(None, factor)),
    };
    // SAFETY: both views are of a `HostFn` call, and `loops` is for the dtype of `x`; `Access::Write` gives each thread
    // elements of its own.
    unsafe { indexed.each(x, other, Access::Write, threads, &loops) }
}

/// Copies `x` to the output unless they are the same memory, as in the in-place forms.
unsafe fn begin(x: &RawView, y: &RawView, threads: &Threads) {
    if x.ptr != y.ptr || x.strides != y.strides {
        // SAFETY: both views are of a `HostFn` call, and they are not the same memory.
        unsafe { copy_view(x, y, threads) };
    }
}

/// `x[i, .., j]`: inputs `[x, index ..]`, where all index tensors have one shape `B` (stride 0 allowed; i64, i32, i16,
/// i8 or u8). Outputs `[y]`: the dims of `x` that are not indexed, in order, with `B` inserted at `place`; dtype of `x`.
/// Attrs `[dims, place]`: the indexed dims, one for each index tensor, and a position. Negative indices count
/// from the end; a bad one is an `Index` fault and reads 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn index_get(call: &Call<'_>) {
    let ([x, indices @ ..], y) = (call.inputs, &call.outputs[0]) else { return };
    let dims = ints(call, 0);
    let table = Table::new(call, x, indices, dims, true);
    let indexed = AdvancedIndex::new(table, x, y, dims, int(call, 1) as usize);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { index_read(&indexed, x, y, call.threads) }
}

/// `x[i, .., j] = value`, or `+=`: inputs `[x, value, index ..]`, value of the shape that [`index_get`] gives (stride 0
/// allowed) and of the dtype of `x`. Outputs `[y]` of the shape and dtype of `x`, which may be `x` itself. Attrs `[dims,
/// place, accumulate]`. Duplicates are added in order, or the last one stays. A bad index writes nothing.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn index_put(call: &Call<'_>) {
    let ([x, value, indices @ ..], y) = (call.inputs, &call.outputs[0]) else { return };
    let dims = ints(call, 0);
    let table = Table::new(call, y, indices, dims, true);
    let indexed = AdvancedIndex::new(table, y, value, dims, int(call, 1) as usize);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        begin(x, y, call.threads);
        if flag(call, 2) {
            index_accumulate(&indexed, y, value, None, call.threads);
        } else {
            index_write(&indexed, y, value, call.threads);
        }
    }
}

/// `torch.take`: inputs `[x, index]`; outputs `[y]` of the shape of the index and the dtype of `x`. Indices are row-major
/// positions in `x`; negative ones count from the end; a bad one is an `Index` fault of dim 0 and reads 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn take(call: &Call<'_>) {
    let (x, index, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let indexed = positions(call, x, index, y);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { index_read(&indexed, x, y, call.threads) }
}

/// `torch.Tensor.put_`, and the gradient of [`take`] (from a zero `x`): inputs `[x, value, index]`, value of the shape of
/// the index; outputs `[y]` like `x`, which may be `x`. Attrs `[accumulate]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn put(call: &Call<'_>) {
    let (x, value, index, y) = (&call.inputs[0], &call.inputs[1], &call.inputs[2], &call.outputs[0]);
    let indexed = positions(call, y, index, value);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        begin(x, y, call.threads);
        if flag(call, 0) {
            index_accumulate(&indexed, y, value, None, call.threads);
        } else {
            index_write(&indexed, y, value, call.threads);
        }
    }
}

/// Offsets of indices that are row-major positions in `x`.
fn positions<'a>(call: &'a Call<'a>, x: &'a RawView, index: &'a RawView, other: &RawView) -> AdvancedIndex<'a> {
    let step = if x.is_contiguous() { Step::Stride(1) } else { Step::Position(x) };
    let kind = FaultKind::Index { dim: 0 };
    let bounded = Bounded { index, size: x.numel(), kind, wraps: true, faults: call.faults };
    let mut entries = SmallVec::new();
    entries.push((bounded, StridedIter::new(&index.shape, [&index.strides]), step));
    AdvancedIndex {
        table: Table { entries, skips: None },
        entries: StridedIter::new(&other.shape, [&other.strides]),
        slice: StridedIter::new(&[], [&[], &[]]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, dims, flat, values};

    /// Checks get, put and accumulating put of one case against loops.
    fn check(
        shape: &[usize],
        indexed: &[usize],
        index_shape: &[usize],
        place: usize,
        threads: &Threads,
        dice: &mut Dice,
    ) {
        let count: usize = index_shape.iter().product();
        let unindexed: Vec<usize> = (0..shape.len()).filter(|d| !indexed.contains(d)).collect();
        let mut out: Vec<usize> = unindexed.iter().map(|&d| shape[d]).collect();
        for (k, &n) in index_shape.iter().enumerate() {
            out.insert(place + k, n);
        }
        let index_values: Vec<Vec<f64>> = indexed
            .iter()
            .map(|&d| (0..count).map(|_| dice.below(2 * shape[d]) as f64 - shape[d] as f64).collect())
            .collect();
        let source = |o: usize| -> usize {
            let mut c = coords(o, &out);
            let b: Vec<usize> = c.drain(place..place + index_shape.len()).collect();
            let mut at = vec![0; shape.len()];
            unindexed.iter().zip(&c).for_each(|(&d, &i)| at[d] = i);
            for (k, &d) in indexed.iter().enumerate() {
                at[d] = (index_values[k][flat(&b, index_shape)] as i64).rem_euclid(shape[d] as i64) as usize;
            }
            flat(&at, shape)
        };
        let total: usize = out.iter().product();
        let attrs = |accumulate| {
            let list: Vec<i64> = indexed.iter().map(|&d| d as i64).collect();
            [dims(&list), Attr::Int(place as i64), Attr::Bool(accumulate)]
        };
        for (dtype, index_dtype) in [(DType::F32, DType::I64), (DType::I16, DType::I32), (DType::F64, DType::I16)] {
            let xs = values(shape.iter().product(), dice);
            let x = Owned::strided_from(dtype, shape, &xs, dice);
            let indices: Vec<Owned> =
                index_values.iter().map(|v| Owned::strided_from(index_dtype, index_shape, v, dice)).collect();
            let mut inputs = vec![&x];
            inputs.extend(&indices);
            for dense in [true, false] {
                let y = if dense { Owned::dense(dtype, &out) } else { Owned::strided(dtype, &out, dice) };
                assert_eq!(call_on(threads, index_get, &inputs, &[&y], &attrs(false)), None);
                assert!(y.get() == (0..total).map(|o| xs[source(o)]).collect::<Vec<_>>(), "get {shape:?} {indexed:?}");
                let vs = values(total, dice);
                y.set(&vs);
                for accumulate in [false, true] {
                    let z = Owned::strided(dtype, shape, dice);
                    let mut expected = xs.clone();
                    for (o, &v) in vs.iter().enumerate() {
                        expected[source(o)] = if accumulate { expected[source(o)] + v } else { v };
                    }
                    let mut inputs = vec![&x, &y];
                    inputs.extend(&indices);
                    assert_eq!(call_on(threads, index_put, &inputs, &[&z], &attrs(accumulate)), None);
                    assert!(z.get() == expected, "put {shape:?} {indexed:?} {accumulate}");
                }
            }
        }
    }

    #[test]
    fn advanced_indexing_agrees_with_loops() {
        let mut dice = Dice(11);
        for threads in [&Threads::ONE, &Threads::new(3)] {
            check(&[5], &[0], &[7], 0, threads, &mut dice);
            check(&[4, 6], &[0], &[3], 0, threads, &mut dice);
            check(&[4, 6], &[1], &[2, 5], 1, threads, &mut dice);
            check(&[4, 6], &[0, 1], &[9], 0, threads, &mut dice);
            check(&[3, 4, 5], &[0, 2], &[2, 3], 0, threads, &mut dice);
            check(&[3, 4, 5], &[1], &[4], 1, threads, &mut dice);
            check(&[3, 4, 5, 2], &[1, 2], &[6], 1, threads, &mut dice);
            check(&[50, 3], &[0], &[9000], 0, threads, &mut dice);
            check(&[70], &[0], &[40000], 0, threads, &mut dice);
            check(&[9, 30, 80], &[0], &[20], 0, threads, &mut dice);
            check(&[90, 30], &[1], &[700], 1, threads, &mut dice);
            check(&[4, 0], &[0], &[3], 0, threads, &mut dice);
            check(&[4, 3], &[0], &[0], 0, threads, &mut dice);
        }
    }

    #[test]
    fn a_bad_index_is_told_by_its_lowest_position() {
        let x = Owned::from(DType::F32, &[3, 2], &[1., 2., 3., 4., 5., 6.]);
        let index = Owned::from(DType::I64, &[4], &[2., -4., 0., 3.]);
        let y = Owned::dense(DType::F32, &[4, 2]);
        let fault = Some(Fault { kind: FaultKind::Index { dim: 0 }, position: 1, value: -4, bound: 3 });
        assert_eq!(call_on(&Threads::ONE, index_get, &[&x, &index], &[&y], &[dims(&[0]), Attr::Int(0)]), fault);
        assert_eq!(y.get(), [5., 6., 0., 0., 1., 2., 0., 0.]);
        let value = Owned::from(DType::F32, &[4, 2], &[9.0; 8]);
        let z = Owned::dense(DType::F32, &[3, 2]);
        let attrs = [dims(&[0]), Attr::Int(0), Attr::Bool(true)];
        assert_eq!(call_on(&Threads::ONE, index_put, &[&x, &value, &index], &[&z], &attrs), fault);
        assert_eq!(z.get(), [10., 11., 3., 4., 14., 15.]);
        let empty = Owned::dense(DType::F32, &[0]);
        let y = Owned::dense(DType::F32, &[4]);
        assert!(call_on(&Threads::ONE, take, &[&empty, &index], &[&y], &[]).is_some());
        assert_eq!(y.get(), [0.0; 4]);
    }

    #[test]
    fn take_and_put_flatten() {
        let mut dice = Dice(12);
        let numbers: Vec<f64> = (0..24).map(f64::from).collect();
        let index = Owned::strided_from(DType::I32, &[2, 3], &[0., -1., 5., 23., 7., 7.], &mut dice);
        for dense in [true, false] {
            let x = if dense {
                Owned::from(DType::F64, &[2, 3, 4], &numbers)
            } else {
                Owned::strided_from(DType::F64, &[2, 3, 4], &numbers, &mut dice)
            };
            let y = Owned::strided(DType::F64, &[2, 3], &mut dice);
            sample::call(take, &[&x, &index], &[&y], &[]);
            assert_eq!(y.get(), [0., 23., 5., 23., 7., 7.]);
            let z = Owned::strided(DType::F64, &[2, 3, 4], &mut dice);
            sample::call(put, &[&x, &y, &index], &[&z], &[Attr::Bool(true)]);
            let mut expected = numbers.clone();
            [0, 23, 5, 23, 7, 7].iter().for_each(|&i| expected[i] += i as f64);
            assert_eq!(z.get(), expected);
        }
    }
}
