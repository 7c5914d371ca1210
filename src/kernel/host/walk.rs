//! Iteration over several strided views of one shape together (as PyTorch's TensorIterator), and helpers that index-like
//! kernels share: shared pointers, attributes, strided sub-views.
//!
//! Knows no element types.

use crate::base::attr::Attr;
use crate::base::dtype::Scalar;
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::guard;
use crate::kernel::host::element::by_integer;
use smallvec::SmallVec;
use std::ops::Range;

/// A pointer that parallel closures may share.
pub struct Ptr<T>(*mut T);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ptr<T> {}
// SAFETY: an address; every use states why no two threads write the same element.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: for `Sync` as for `Send`: an address; every use states why no two threads write the same element.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Ptr<T> {
    pub fn new(ptr: *mut T) -> Ptr<T> {
        Ptr(ptr)
    }

    pub fn of(view: &RawView) -> Ptr<T> {
        Ptr(view.ptr.cast())
    }

    /// The address of element `offset`.
    #[inline(always)]
    pub fn at(self, offset: isize) -> *mut T {
        self.0.wrapping_offset(offset)
    }
}

/// Elements between two calls of `guard::check`: about a millisecond. Longer pieces are divided.
const LOOK: usize = 1 << 18;

/// Several views of one shape; adjacent dims are merged where every view allows it.
#[derive(Clone, Debug)]
pub struct StridedIter<const N: usize> {
    pub shape: Shape,
    pub strides: [Strides; N],
    pub numel: usize,
}

impl<const N: usize> StridedIter<N> {
    /// `strides[k]` has one entry for each dim of `shape`, in elements.
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> StridedIter<N> {
        let mut walk = StridedIter {
            shape: Shape::new(),
            strides: std::array::from_fn(|_| SmallVec::new()),
            numel: shape.iter().product(),
        };
        for (dim, &size) in shape.iter().enumerate().filter(|&(_, &size)| size != 1) {
            let merges = walk.shape.last().is_some()
                && (0..N).all(|k| *walk.strides[k].last().unwrap_or(&0) == strides[k][dim] * size as isize);
            if merges {
                let last = walk.shape.len() - 1;
                walk.shape[last] *= size;
                (0..N).for_each(|k| walk.strides[k][last] = strides[k][dim]);
            } else {
                walk.shape.push(size);
                (0..N).for_each(|k| walk.strides[k].push(strides[k][dim]));
            }
        }
        if walk.shape.is_empty() {
            walk.shape.push(1);
            (0..N).for_each(|k| walk.strides[k].push(0));
        }
        walk
    }

    /// Strides of the innermost dim.
    pub fn inner(&self) -> [isize; N] {
        let last = self.shape.len() - 1;
        std::array::from_fn(|k| self.strides[k][last])
    }

    /// Calls `each(position, offsets, length)` for the pieces of the innermost dim that make up the row-major
    /// `range` of elements; within a piece offsets grow by `inner()`.
    #[inline]
    pub fn pieces(&self, range: Range<usize>, mut each: impl FnMut(usize, [isize; N], usize)) {
        self.pieces_of(range, &mut each);
    }

    /// Not generic, so that the bookkeeping is compiled once and not for each kernel.
    fn pieces_of(&self, range: Range<usize>, each: &mut dyn FnMut(usize, [isize; N], usize)) {
        if range.is_empty() {
            return;
        }
        let last = self.shape.len() - 1;
        if last == 0 && range.len() <= LOOK {
            let start = range.start as isize;
            return each(range.start, std::array::from_fn(|k| start * self.strides[k][0]), range.len());
        }
        let mut at: Shape = SmallVec::from_elem(0, last + 1);
        let mut offsets = [0isize; N];
        let mut rest = range.start;
        for dim in (0..=last).rev() {
            at[dim] = rest % self.shape[dim];
            rest /= self.shape[dim];
            (0..N).for_each(|k| offsets[k] += at[dim] as isize * self.strides[k][dim]);
        }
        let mut position = range.start;
        let mut seen = 0;
        loop {
            let length = (self.shape[last] - at[last]).min(range.end - position).min(LOOK);
            each(position, offsets, length);
            position += length;
            if position == range.end {
                return;
            }
            seen += length;
            if seen >= LOOK {
                seen = 0;
                guard::check();
            }
            if at[last] + length < self.shape[last] {
                at[last] += length;
                (0..N).for_each(|k| offsets[k] += length as isize * self.strides[k][last]);
                continue;
            }
            (0..N).for_each(|k| offsets[k] -= at[last] as isize * self.strides[k][last]);
            at[last] = 0;
            for dim in (0..last).rev() {
                at[dim] += 1;
                (0..N).for_each(|k| offsets[k] += self.strides[k][dim]);
                if at[dim] < self.shape[dim] {
                    break;
                }
                (0..N).for_each(|k| offsets[k] -= at[dim] as isize * self.strides[k][dim]);
                at[dim] = 0;
            }
        }
    }

    /// Offsets of one element, by its row-major position.
    #[inline]
    pub fn offsets(&self, position: usize) -> [isize; N] {
        let mut offsets = [0isize; N];
        let mut rest = position;
        for dim in (0..self.shape.len()).rev() {
            let at = (rest % self.shape[dim]) as isize;
            rest /= self.shape[dim];
            (0..N).for_each(|k| offsets[k] += at * self.strides[k][dim]);
        }
        offsets
    }
}

/// `strides` or `shape` without one dim.
pub fn without<T: Copy>(list: &[T], dim: usize) -> SmallVec<[T; 6]>
where
    [T; 6]: smallvec::Array<Item = T>,
{
    list.iter().enumerate().filter(|&(d, _)| d != dim).map(|(_, &value)| value).collect()
}

/// The view moved by `offset` elements, with other sizes and strides.
pub fn shifted(view: &RawView, offset: isize, shape: Shape, strides: Strides) -> RawView {
    let bytes = offset * view.dtype.size_bytes() as isize;
    RawView { ptr: view.ptr.wrapping_offset(bytes), dtype: view.dtype, shape, strides }
}

/// The elements `start..start + len` of one dim.
pub fn narrow(view: &RawView, dim: usize, start: usize, len: usize) -> RawView {
    let mut shape = view.shape.clone();
    shape[dim] = len;
    shifted(view, start as isize * view.strides[dim], shape, view.strides.clone())
}

/// The view with one dim reversed.
pub fn reversed(view: &RawView, dim: usize) -> RawView {
    let (last, mut strides) = (view.shape[dim].saturating_sub(1) as isize, view.strides.clone());
    strides[dim] = -strides[dim];
    shifted(view, last * view.strides[dim], view.shape.clone(), strides)
}

/// Size and stride of a dim; a 0-dimensional view counts as one of size 1.
pub fn extent(view: &RawView, dim: usize) -> (usize, isize) {
    if view.shape.is_empty() { (1, 0) } else { (view.shape[dim], view.strides[dim]) }
}

/// The attribute `index` as an integer; 0 when absent.
pub fn int(call: &Call<'_>, index: usize) -> i64 {
    match call.attrs.get(index) {
        Some(Attr::Int(value)) => *value,
        Some(Attr::Bool(value)) => *value as i64,
        Some(Attr::Scalar(value)) => value.to_i64(),
        Some(Attr::Float(value)) => *value as i64,
        _ => 0,
    }
}

/// The attribute `index` as a dim (`op::infer` made it non-negative).
pub fn dim(call: &Call<'_>, index: usize) -> usize {
    int(call, index).max(0) as usize
}

/// The attribute `index` as a flag; false when absent.
pub fn flag(call: &Call<'_>, index: usize) -> bool {
    matches!(call.attrs.get(index), Some(Attr::Bool(true)))
}

/// The attribute `index` as a list; empty when absent.
pub fn ints<'a>(call: &'a Call<'_>, index: usize) -> &'a [i64] {
    match call.attrs.get(index) {
        Some(Attr::Ints(list)) => list,
        _ => &[],
    }
}

/// The attribute `index` as a number; `None` when absent.
pub fn scalar(call: &Call<'_>, index: usize) -> Option<Scalar> {
    match call.attrs.get(index) {
        Some(Attr::Scalar(value)) => Some(*value),
        Some(Attr::Int(value)) => Some(Scalar::Int(*value)),
        Some(Attr::Float(value)) => Some(Scalar::Float(*value)),
        Some(Attr::Bool(value)) => Some(Scalar::Bool(*value)),
        _ => None,
    }
}

/// The attribute `index` as a string; empty when absent.
pub fn word<'a>(call: &'a Call<'_>, index: usize) -> &'a str {
    match call.attrs.get(index) {
        Some(Attr::Str(text)) => text,
        _ => "",
    }
}

/// Reads an index or a mask as integers: `out[i] = view[offset + i * stride]`.
///
/// # Safety
/// The elements exist; the dtype is integral.
#[inline]
pub unsafe fn read_ints(view: &RawView, offset: isize, stride: isize, out: &mut [i64]) {
    // SAFETY: the elements exist (this function's contract), and each arm reads them as the view's own dtype.
    unsafe {
        by_integer!(view.dtype, T => read_as(Ptr::<T>::of(view), offset, stride, out), else read_as(Ptr::<u8>::of(view), offset, stride, out))
    }
}

#[inline(always)]
unsafe fn read_as<T: Copy + Into<i64>>(ptr: Ptr<T>, offset: isize, stride: isize, out: &mut [i64]) {
    // SAFETY: the caller of `read_ints` promises that the elements exist.
    unsafe {
        if stride == 1 {
            let from = std::slice::from_raw_parts(ptr.at(offset), out.len());
            out.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
        } else {
            out.iter_mut().enumerate().for_each(|(i, to)| *to = (*ptr.at(offset + i as isize * stride)).into());
        }
    }
}

/// Strided tensors with known holes, for the tests of index-like kernels.
#[cfg(test)]
pub mod sample {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Faults, HostFn, Threads};
    use crate::kernel::host::element::{Element, by_dtype};

    /// Numbers from a linear congruential generator.
    pub struct Dice(pub u64);

    impl Dice {
        pub fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 33) as usize) % n.max(1)
        }
    }

    /// A tensor that owns its memory.
    pub struct Owned {
        pub view: RawView,
        memory: Vec<u64>,
    }

    impl Owned {
        /// A layout: dims in a shuffled order of memory, steps of 1 to 2, every hole filled with 0xA5.
        pub fn strided(dtype: DType, shape: &[usize], dice: &mut Dice) -> Owned {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            (1..shape.len()).rev().for_each(|i| order.swap(i, dice.below(i + 1)));
            let mut strides: Strides = SmallVec::from_elem(0, shape.len());
            let mut size = 1usize;
            for &d in &order {
                let step = 1 + dice.below(2);
                strides[d] = (size * step) as isize;
                size *= step * shape[d].max(1);
            }
            Owned::with(dtype, shape, strides, size)
        }

        pub fn dense(dtype: DType, shape: &[usize]) -> Owned {
            let size = shape.iter().product();
            Owned::with(dtype, shape, crate::base::layout::contiguous_strides(shape), size)
        }

        fn with(dtype: DType, shape: &[usize], strides: Strides, size: usize) -> Owned {
            let mut memory = vec![0xA5A5_A5A5_A5A5_A5A5u64; size * dtype.size_bytes() / 8 + 2];
            let ptr = memory.as_mut_ptr().cast::<u8>();
            Owned { view: RawView { ptr, dtype, shape: Shape::from_slice(shape), strides }, memory }
        }

        pub fn from(dtype: DType, shape: &[usize], values: &[f64]) -> Owned {
            let owned = Owned::dense(dtype, shape);
            owned.set(values);
            owned
        }

        pub fn strided_from(dtype: DType, shape: &[usize], values: &[f64], dice: &mut Dice) -> Owned {
            let owned = Owned::strided(dtype, shape, dice);
            owned.set(values);
            owned
        }

        /// The same values with stride 0 in `dim`, which gets size `n`: values must have size 1 there.
        pub fn expanded(mut self, dim: usize, n: usize) -> Owned {
            assert_eq!(self.view.shape[dim], 1);
            self.view.shape[dim] = n;
            self.view.strides[dim] = 0;
            self
        }

        pub fn set(&self, values: &[f64]) {
            assert_eq!(values.len(), self.view.numel());
            by_dtype!(self.view.dtype, T => {
                let walk = StridedIter::new(&self.view.shape, [&self.view.strides]);
                for (i, &value) in values.iter().enumerate() {
                    // SAFETY: the view lies in this tensor's memory.
                    unsafe { *Ptr::<T>::of(&self.view).at(walk.offsets(i)[0]) = T::from_f64(value) };
                }
            });
        }

        pub fn get(&self) -> Vec<f64> {
            by_dtype!(self.view.dtype, T => {
                let walk = StridedIter::new(&self.view.shape, [&self.view.strides]);
                // SAFETY: the view lies in this tensor's memory.
                (0..self.view.numel()).map(|i| unsafe { (*Ptr::<T>::of(&self.view).at(walk.offsets(i)[0])).to_f64() }).collect()
            })
        }

        /// Bytes of the memory that are not elements of the view, to check that they were not written.
        pub fn holes(&self) -> Vec<u8> {
            let size = self.view.dtype.size_bytes();
            let mut bytes: Vec<u8> = self.memory.iter().flat_map(|w| w.to_ne_bytes()).collect();
            let walk = StridedIter::new(&self.view.shape, [&self.view.strides]);
            for i in 0..self.view.numel() {
                let at = walk.offsets(i)[0] as usize * size;
                bytes[at..at + size].fill(0xA5);
            }
            bytes
        }
    }

    /// Calls a kernel on `threads` and checks that it wrote nothing outside of its outputs.
    pub fn call_on(
        threads: &Threads,
        kernel: HostFn,
        inputs: &[&Owned],
        outputs: &[&Owned],
        attrs: &[Attr],
    ) -> Option<crate::kernel::abi::Fault> {
        let faults = Faults::default();
        let views = |list: &[&Owned]| list.iter().map(|o| o.view.clone()).collect::<Vec<_>>();
        let (inputs_, outputs_) = (views(inputs), views(outputs));
        let call = Call { inputs: &inputs_, outputs: &outputs_, attrs, threads, faults: &faults, seed: 0, offset: 0 };
        // SAFETY: the views lie in memory that the test owns.
        unsafe { kernel(&call) };
        for output in outputs {
            assert!(output.holes().iter().all(|&b| b == 0xA5), "a kernel wrote beside its output");
        }
        faults.take()
    }

    /// `call_on` with one thread; expects no fault.
    pub fn call(kernel: HostFn, inputs: &[&Owned], outputs: &[&Owned], attrs: &[Attr]) {
        assert_eq!(call_on(&Threads::ONE, kernel, inputs, outputs, attrs), None);
    }

    pub fn dims(list: &[i64]) -> Attr {
        Attr::Ints(SmallVec::from_slice(list))
    }

    /// Row-major coordinates of element `i`.
    pub fn coords(mut i: usize, shape: &[usize]) -> Vec<usize> {
        let mut at = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            at[d] = i % shape[d];
            i /= shape[d];
        }
        at
    }

    pub fn flat(at: &[usize], shape: &[usize]) -> usize {
        at.iter().zip(shape).fold(0, |sum, (&i, &n)| sum * n + i)
    }

    /// Small integers, so that sums are exact in every dtype.
    pub fn values(n: usize, dice: &mut Dice) -> Vec<f64> {
        (0..n).map(|_| dice.below(7) as f64).collect()
    }
}
