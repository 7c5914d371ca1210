//! Operands as contiguous slices of the type that a kernel computes in, and results that are converted back.
//!
//! A contiguous operand of that type is borrowed; a strided or 16-bit one is copied into scratch memory, which the thread
//! caches. Knows no arithmetic.

use super::real::Real;
use crate::base::dtype::DType;
use crate::base::layout::Strides;
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::guard;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

/// Cache line, and the widest vector.
const ALIGN: usize = 64;
/// Bound: bytes of scratch memory that an idle thread caches; more could exceed the memory of a small model.
const CACHED_BYTES: usize = 96 << 20;
const CACHED_COUNT: usize = 12;

#[derive(Default)]
struct Cached(Vec<(*mut u8, usize)>);

impl Drop for Cached {
    fn drop(&mut self) {
        for (ptr, bytes) in self.0.drain(..) {
            release(ptr, bytes);
        }
    }
}

thread_local! {
    static CACHE: RefCell<Cached> = RefCell::default();
}

fn release(ptr: *mut u8, bytes: usize) {
    // SAFETY: every block was allocated in `Scratch::new` with this size and alignment.
    unsafe { dealloc(ptr, Layout::from_size_align_unchecked(bytes, ALIGN)) }
}

/// Initialized memory with arbitrary content, aligned to 64 bytes, taken from and returned to the thread's cache.
pub struct Scratch<T> {
    ptr: *mut u8,
    bytes: usize,
    /// Bytes that were admitted.
    need: usize,
    len: usize,
    of: PhantomData<T>,
}

// SAFETY: it owns its memory, like a `Vec`.
unsafe impl<T: Send> Send for Scratch<T> {}
// SAFETY: a shared `Scratch` gives a shared slice, as a `Vec` does.
unsafe impl<T: Sync> Sync for Scratch<T> {}

impl<T: Copy + Default> Scratch<T> {
    /// Precondition: `T` is a plain number type: any bytes are a valid value.
    pub fn new(len: usize) -> Scratch<T> {
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.max(1).checked_next_multiple_of(ALIGN));
        let Some(need) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else { guard::no_memory(usize::MAX) };
        guard::admit(need);
        let cached = CACHE.with_borrow_mut(|cached| {
            let fits = |&(_, &(_, bytes)): &(usize, &(*mut u8, usize))| bytes >= need && bytes / 4 <= need.max(4096);
            let best_fit = cached.0.iter().enumerate().filter(fits).min_by_key(|(_, block)| block.1)?.0;
            Some(cached.0.swap_remove(best_fit))
        });
        let (ptr, bytes) = cached.unwrap_or_else(|| {
            let layout = Layout::from_size_align(need, ALIGN).expect("scratch fits the address space");
            // SAFETY: the size is not zero. Zeroed, so that reading before writing is defined.
            let ptr = unsafe { alloc_zeroed(layout) };
            if ptr.is_null() {
                guard::no_memory(need);
            }
            (ptr, need)
        });
        Scratch { ptr, bytes, need, len, of: PhantomData }
    }

    pub fn zeroed(len: usize) -> Scratch<T> {
        let mut scratch = Scratch::new(len);
        scratch.fill(T::default());
        scratch
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let (ptr, bytes) = (self.ptr, self.bytes);
        guard::release(self.need);
        let cached = CACHE.try_with(|cached| {
            let mut cached = cached.borrow_mut();
            let total: usize = cached.0.iter().map(|block| block.1).sum();
            let keep = total + bytes <= CACHED_BYTES && cached.0.len() < CACHED_COUNT;
            if keep {
                cached.0.push((ptr, bytes));
            }
            keep
        });
        if !cached.unwrap_or(false) {
            release(ptr, bytes);
        }
    }
}

impl<T> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialized elements, owned.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` initialized elements, owned.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.len) }
    }
}

/// An address that threads may share; each writes its own range.
pub struct Shared<T>(*mut T);

impl<T> Copy for Shared<T> {}
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

// SAFETY: an address; `range` states what its users owe.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: a shared `Shared` gives the address, which is `Copy` anyway; `range` states what its users owe.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub fn new(slice: &mut [T]) -> Shared<T> {
        Shared(slice.as_mut_ptr())
    }

    pub fn at(self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }

    /// # Safety
    /// The range lies inside the slice that this was made of, which outlives the result, and no other
    /// thread or live reference touches it.
    pub unsafe fn range<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: the range lies inside the slice, and nobody else touches it (this function's contract).
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

/// An operand in row-major order.
pub enum Packed<'a, T> {
    Lent(&'a [T]),
    Own(Scratch<T>),
}

impl<T> Deref for Packed<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Packed::Lent(slice) => slice,
            Packed::Own(scratch) => scratch,
        }
    }
}

/// A float type in memory, convertible to and from `f32` and `f64`.
trait Stored: Copy + Send + Sync + 'static {
    fn widen<T: Real>(self) -> T;
    fn narrow<T: Real>(x: T) -> Self;
    fn widen_row<T: Real>(from: &[Self], to: &mut [T]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    }
    fn narrow_row<T: Real>(from: &[T], to: &mut [Self]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = Self::narrow(from);
        }
    }
}

impl Stored for f32 {
    fn widen<T: Real>(self) -> T {
        T::from_f64(self as f64)
    }
    fn narrow<T: Real>(x: T) -> f32 {
        x.to_f64() as f32
    }
}

impl Stored for f64 {
    fn widen<T: Real>(self) -> T {
        T::from_f64(self)
    }
    fn narrow<T: Real>(x: T) -> f64 {
        x.to_f64()
    }
}

/// `half`'s slice conversions use the processor's instructions; they want the concrete `f32`.
macro_rules! stored_half {
    ($half:ty) => {
        impl Stored for $half {
            fn widen<T: Real>(self) -> T {
                T::from_f64(self.to_f64())
            }
            fn narrow<T: Real>(x: T) -> $half {
                if T::DTYPE == DType::F32 {
                    <$half>::from_f32(x.to_f64() as f32)
                } else {
                    <$half>::from_f64(x.to_f64())
                }
            }
            fn widen_row<T: Real>(from: &[$half], to: &mut [T]) {
                if T::DTYPE == DType::F32 {
                    // SAFETY: `T::DTYPE` is `F32` for `f32` alone, so both slices are of the same type.
                    let to = unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<f32>(), to.len()) };
                    from.convert_to_f32_slice(to);
                } else {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_f64(from.to_f64()));
                }
            }
            fn narrow_row<T: Real>(from: &[T], to: &mut [$half]) {
                if T::DTYPE == DType::F32 {
                    // SAFETY: `T::DTYPE` is `F32` for `f32` alone, so both slices are of the same type.
                    let from = unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<f32>(), from.len()) };
                    to.convert_from_f32_slice(from);
                } else {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = <$half>::from_f64(from.to_f64()));
                }
            }
        }
    };
}
stored_half!(f16);
stored_half!(bf16);

/// Offset of row `row`, in elements; rows are all dims but the last.
pub fn row_offset(shape: &[usize], strides: &[isize], row: usize) -> isize {
    let mut rest = row;
    let mut offset = 0;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if rest == 0 {
            break;
        }
        offset += (rest % size) as isize * stride;
        rest /= size;
    }
    offset
}

/// Elements that a thread packs at a time.
const GRAIN: usize = 32 * 1024;

/// Calls `each(view's row, range of packed elements)` for every row, over the threads.
fn rows(view: &RawView, threads: &Threads, each: impl Fn(*mut u8, Range<usize>) + Sync) {
    let (cols, outer) = match view.shape.split_last() {
        Some((&cols, outer)) => (cols, outer),
        None => (1, &[][..]),
    };
    if view.numel() == 0 {
        return;
    }
    let count: usize = outer.iter().product();
    let size = view.dtype.size_bytes() as isize;
    let view = &view;
    threads.split(count, (GRAIN / cols).max(1), |range| {
        for row in range {
            let offset = row_offset(outer, &view.strides[..outer.len()], row);
            each(view.ptr.wrapping_offset(offset * size), row * cols..(row + 1) * cols);
        }
    });
}

unsafe fn gather<S: Stored, T: Real>(view: &RawView, threads: &Threads, out: &mut [T]) {
    let stride = view.strides.last().copied().unwrap_or(1);
    let out = Shared::new(out);
    // Contiguous memory is one row, divided among the threads.
    if view.is_contiguous() {
        threads.split(view.numel(), GRAIN, |range| {
            // SAFETY: the view is contiguous, and ranges are disjoint.
            unsafe {
                let from = std::slice::from_raw_parts(view.ptr.cast::<S>().add(range.start), range.len());
                S::widen_row(from, out.range(range));
            }
        });
        return;
    }
    rows(view, threads, |row, range| {
        // SAFETY: rows are inside the view; each fills its own range.
        unsafe {
            let (len, row, out) = (range.len(), row.cast::<S>(), out.range(range));
            match stride {
                1 => S::widen_row(std::slice::from_raw_parts(row, len), out),
                0 => out.fill((*row).widen()),
                _ => out.iter_mut().enumerate().for_each(|(i, out)| *out = (*row.offset(i as isize * stride)).widen()),
            }
        }
    });
}

unsafe fn scatter<S: Stored, T: Real>(view: &RawView, threads: &Threads, from: &[T]) {
    let stride = view.strides.last().copied().unwrap_or(1);
    if view.is_contiguous() {
        threads.split(view.numel(), GRAIN, |range| {
            // SAFETY: the view is contiguous, and ranges are disjoint.
            unsafe {
                let to = std::slice::from_raw_parts_mut(view.ptr.cast::<S>().add(range.start), range.len());
                S::narrow_row(&from[range], to);
            }
        });
        return;
    }
    rows(view, threads, |row, range| {
        // SAFETY: rows are inside the view, whose elements are distinct.
        unsafe {
            let row = row.cast::<S>();
            from[range].iter().enumerate().for_each(|(i, &x)| *row.offset(i as isize * stride) = S::narrow(x));
        }
    });
}

/// The operand's elements in row-major order. Integers and bools are not read (rows convert before).
///
/// # Safety
/// The view is valid for reading.
pub unsafe fn read<'a, T: Real>(view: &'a RawView, threads: &Threads) -> Packed<'a, T> {
    if view.dtype == T::DTYPE && view.is_contiguous() {
        // SAFETY: contiguous, and of this type.
        return Packed::Lent(unsafe { view.slice() });
    }
    let mut scratch = Scratch::new(view.numel());
    // SAFETY: the view is valid for reading (this function's contract), and each arm reads it as its own dtype.
    unsafe {
        match view.dtype {
            DType::F32 => gather::<f32, T>(view, threads, &mut scratch),
            DType::F64 => gather::<f64, T>(view, threads, &mut scratch),
            DType::F16 => gather::<f16, T>(view, threads, &mut scratch),
            DType::BF16 => gather::<bf16, T>(view, threads, &mut scratch),
            other => {
                debug_assert!(false, "no dense kernel for {other}");
                scratch.fill(T::ZERO);
            }
        }
    }
    Packed::Own(scratch)
}

/// As `read`, but with the dims in the order of memory: returns the strides of the copy; stride 0 stays 0, and a
/// transposed operand stays transposed.
///
/// # Safety
/// As `read`.
pub unsafe fn read_in_memory_order<T: Real>(view: &RawView, threads: &Threads) -> (Scratch<T>, Strides) {
    let mut dims: Vec<usize> = (0..view.shape.len()).filter(|&d| view.strides[d] != 0 && view.shape[d] != 1).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(view.strides[d].unsigned_abs()));
    let ordered = RawView {
        ptr: view.ptr,
        dtype: view.dtype,
        shape: dims.iter().map(|&d| view.shape[d]).collect(),
        strides: dims.iter().map(|&d| view.strides[d]).collect(),
    };
    let mut strides: Strides = view.shape.iter().map(|_| 0).collect();
    let mut next = 1;
    for &d in dims.iter().rev() {
        strides[d] = next;
        next *= view.shape[d] as isize;
    }
    if view.numel() == 0 {
        return (Scratch::new(0), strides);
    }
    // SAFETY: `ordered` names exactly the input's elements, which are readable by this function's contract.
    let scratch = match unsafe { read::<T>(&ordered, threads) } {
        Packed::Own(scratch) => scratch,
        Packed::Lent(slice) => {
            let mut scratch = Scratch::new(slice.len());
            scratch.copy_from_slice(slice);
            scratch
        }
    };
    (scratch, strides)
}

/// A result: written in row-major order, then stored.
pub struct Sink<'a, T> {
    view: &'a RawView,
    own: Option<Scratch<T>>,
}

impl<'a, T: Real> Sink<'a, T> {
    /// # Safety
    /// The view is valid for writing, and nobody else touches it while the sink lives.
    pub unsafe fn new(view: &'a RawView) -> Sink<'a, T> {
        let direct = view.dtype == T::DTYPE && view.is_contiguous();
        Sink { view, own: (!direct).then(|| Scratch::new(view.numel())) }
    }

    /// The memory to write the result to; its content is undefined before.
    pub fn slice(&mut self) -> &mut [T] {
        match &mut self.own {
            Some(scratch) => scratch,
            // SAFETY: contiguous and of this type; `&mut self` makes it the only reference.
            None => unsafe { self.view.slice_mut() },
        }
    }

    /// Converts and stores the result.
    pub fn finish(self, threads: &Threads) {
        let Some(scratch) = self.own else { return };
        // SAFETY: the view is valid for writing and nobody else touches it, as `new` asks; each arm writes it as its
        // own dtype.
        unsafe {
            match self.view.dtype {
                DType::F32 => scatter::<f32, T>(self.view, threads, &scratch),
                DType::F64 => scatter::<f64, T>(self.view, threads, &scratch),
                DType::F16 => scatter::<f16, T>(self.view, threads, &scratch),
                DType::BF16 => scatter::<bf16, T>(self.view, threads, &scratch),
                other => debug_assert!(false, "no dense kernel for {other}"),
            }
        }
    }
}

/// Elements of any type in row-major order, unconverted (labels, masks, positions).
///
/// # Safety
/// The view is valid for reading and `T` is the representation of its dtype.
pub unsafe fn read_as<'a, T: Copy + Default>(view: &'a RawView) -> Packed<'a, T> {
    if view.is_contiguous() {
        // SAFETY: a contiguous view of the dtype whose representation is `T` (this function's contract).
        return Packed::Lent(unsafe { view.slice() });
    }
    let mut scratch = Scratch::new(view.numel());
    for (i, x) in scratch.iter_mut().enumerate() {
        // SAFETY: the offset of a valid position.
        *x = unsafe { *view.ptr.cast::<T>().offset(row_offset(&view.shape, &view.strides, i)) };
    }
    Packed::Own(scratch)
}

/// A shape as three factors around `dim`: before, at, after.
pub fn around(shape: &[usize], dim: usize) -> (usize, usize, usize) {
    let at = shape.get(dim).copied().unwrap_or(1);
    (shape.iter().take(dim).product(), at, shape.iter().skip(dim + 1).product())
}

/// A buffer of a test: owns memory, makes views.
#[cfg(test)]
pub mod testing {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::layout::Shape;
    use crate::kernel::abi::{Call, Fault, Faults, HostFn};
    use crate::kernel::host::element::{Element, by_dtype};

    pub struct Array {
        pub view: RawView,
        /// The memory of the view.
        _memory: Vec<u64>,
    }

    impl Array {
        pub fn empty(dtype: DType, shape: &[usize]) -> Array {
            let n: usize = shape.iter().product();
            let mut memory = vec![u64::MAX; n.max(1)];
            let view = RawView::contiguous(memory.as_mut_ptr().cast(), dtype, shape);
            Array { view, _memory: memory }
        }

        pub fn of(dtype: DType, shape: &[usize], data: &[f64]) -> Array {
            let array = Array::empty(dtype, shape);
            assert_eq!(array.view.numel(), data.len());
            for (i, &x) in data.iter().enumerate() {
                // SAFETY: `i` is below the number of elements of the buffer, which is of this dtype.
                by_dtype!(dtype, T => unsafe { *array.view.ptr.cast::<T>().add(i) = Element::from_f64(x) });
            }
            array
        }

        /// Sines that do not repeat within a test.
        pub fn wave(dtype: DType, shape: &[usize], seed: f64) -> Array {
            let n: usize = shape.iter().product();
            let data: Vec<f64> =
                (0..n).map(|i| ((i as f64 * 12.9898 + seed * 78.233).sin() * 43758.5453).fract()).collect();
            Array::of(dtype, shape, &data)
        }

        pub fn get(&self) -> Vec<f64> {
            (0..self.view.numel())
                .map(|i| {
                    let at = row_offset(&self.view.shape, &self.view.strides, i);
                    // SAFETY: `i` is below the number of elements of the buffer, which is of this dtype.
                    by_dtype!(self.view.dtype, T => unsafe { Element::to_f64(*self.view.ptr.cast::<T>().offset(at)) })
                })
                .collect()
        }

        pub fn permute(mut self, dims: &[usize]) -> Array {
            self.view.shape = dims.iter().map(|&d| self.view.shape[d]).collect::<Shape>();
            self.view.strides = dims.iter().map(|&d| self.view.strides[d]).collect();
            self
        }
    }

    pub fn call(kernel: HostFn, inputs: &[&Array], outputs: &[&Array], attrs: &[Attr]) -> Option<Fault> {
        let inputs: Vec<RawView> = inputs.iter().map(|a| a.view.clone()).collect();
        let outputs: Vec<RawView> = outputs.iter().map(|a| a.view.clone()).collect();
        let faults = Faults::default();
        let threads = Threads::new(2);
        let call =
            Call { inputs: &inputs, outputs: &outputs, attrs, threads: &threads, faults: &faults, seed: 0, offset: 0 };
        // SAFETY: the views are those of arrays that live until the kernel has returned, and no two share memory.
        unsafe { kernel(&call) };
        faults.take()
    }

    #[track_caller]
    pub fn close(ours: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(ours.len(), expected.len());
        for (i, (&a, &b)) in ours.iter().zip(expected).enumerate() {
            let same = a == b || a.is_nan() && b.is_nan();
            assert!(same || (a - b).abs() <= tolerance * (1.0 + b.abs()), "at {i}: {a} is not {b}");
        }
    }

    /// Central differences of `loss` at some elements of `x` against the gradient.
    #[track_caller]
    pub fn differences(x: &[f64], gradient: &[f64], loss: impl Fn(&[f64]) -> f64) {
        let step = 1e-5;
        for i in (0..x.len()).step_by((x.len() / 40).max(1)) {
            let mut moved = x.to_vec();
            moved[i] = x[i] + step;
            let up = loss(&moved);
            moved[i] = x[i] - step;
            let difference = (up - loss(&moved)) / (2.0 * step);
            assert!(
                (difference - gradient[i]).abs() < 1e-6 * (1.0 + difference.abs()),
                "at {i}: {} is not {difference}",
                gradient[i]
            );
        }
    }

    pub fn ints(xs: &[i64]) -> Attr {
        Attr::Ints(xs.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn strided_and_narrow_operands_are_packed() {
        let x = Array::of(DType::BF16, &[2, 3], &[1., 2., 3., 4., 5., 6.]).permute(&[1, 0]);
        // SAFETY: `x` owns the memory of its view and lives until the end of the test.
        let packed = unsafe { read::<f32>(&x.view, &Threads::ONE) };
        assert_eq!(&*packed, &[1., 4., 2., 5., 3., 6.]);
        // SAFETY: `x` owns the memory of its view and lives until the end of the test.
        let (scratch, strides) = unsafe { read_in_memory_order::<f32>(&x.view, &Threads::ONE) };
        assert_eq!((&*scratch, &*strides), (&[1f32, 2., 3., 4., 5., 6.][..], &[1, 3][..]));
    }

    #[test]
    fn results_are_scattered() {
        let x = Array::of(DType::F16, &[2, 3], &[0.; 6]).permute(&[1, 0]);
        // SAFETY: `x` lives and nobody else uses it.
        let mut sink = unsafe { Sink::<f32>::new(&x.view) };
        sink.slice().copy_from_slice(&[1., 4., 2., 5., 3., 6.]);
        sink.finish(&Threads::ONE);
        assert_eq!(x.get(), [1., 4., 2., 5., 3., 6.]);
    }
}
