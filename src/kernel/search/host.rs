//! Counting and finding: `bincount`, `histc`, `searchsorted` and `bucketize`.

use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::copy::host::{expanded, zero};
use crate::kernel::guard;
use crate::kernel::host::element::{Element, by_dtype};
use crate::kernel::host::walk::{Ptr, StridedIter, flag, int, read_ints, scalar};
use crate::kernel::index::host::gather::{adding, scatter_to};
use parking_lot::Mutex;

/// The length of `bincount`'s result. Inputs `[x]`, integral; outputs `[n]`: i64 of shape `[1]`. Attrs `[minlength]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn bincount_size(call: &Call<'_>) {
    let x = &call.inputs[0];
    let walk = StridedIter::new(&x.shape, [&x.strides]);
    let largest = Mutex::new(-1i64);
    call.threads.split(walk.numel, 64 * 1024, |range| {
        let [stride] = walk.inner();
        let (mut buffer, mut max) = ([0i64; 512], -1);
        walk.pieces(range, |_, [offset], n| {
            for start in (0..n).step_by(512) {
                let values = &mut buffer[..512.min(n - start)];
                // SAFETY: the walk stays inside the input.
                unsafe { read_ints(x, offset + start as isize * stride, stride, values) };
                max = values.iter().fold(max, |a, &b| Ord::max(a, b));
            }
        });
        let mut largest = largest.lock();
        *largest = Ord::max(*largest, max);
    });
    // SAFETY: `call` is one of `HostFn`, and the output has one `i64`.
    unsafe { *call.outputs[0].ptr.cast::<i64>() = Ord::max(int(call, 0), largest.into_inner().saturating_add(1)) };
}

/// The number of occurrences of each value, or the sum of its weights in order. Inputs `[x]` or `[x, weights]`, both
/// `[m]`; outputs `[y]` of shape `[n]`: i64, or the weights' dtype. A value that is not in `0..n` is an `Index` fault
/// of dim 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn bincount(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; a one on our stack is read with stride
    // 0.
    unsafe {
        zero(y, call.threads);
        if let Some(weights) = call.inputs.get(1) {
            scatter_to(call, y, x, weights, 0, adding(y.dtype));
            return;
        }
        // Without bins there may be no memory.
        if y.numel() > 0 && count(call, x, std::slice::from_raw_parts_mut(y.ptr.cast(), y.numel())) {
            return;
        }
        // Finds the value that has no bin, and reports it.
        let mut one = 1i64;
        let one = RawView::contiguous((&raw mut one).cast(), DType::I64, &[]);
        scatter_to(call, y, x, &expanded(&one, &x.shape), 0, adding(DType::I64));
    }
}

/// Bound: bins that a part counts several times over, so that equal values one after the other do not wait for each other.
const FEW_BINS: usize = 1024;
const WAYS: usize = 4;

/// Adds to the bins of the values of `x`, each part of `x` in bins of its own; false, and nothing added, if a value has no bin.
///
/// # Safety
/// `x` is valid.
unsafe fn count(call: &Call<'_>, x: &RawView, bins: &mut [i64]) -> bool {
    let walk = StridedIter::new(&x.shape, [&x.strides]);
    let parts = Mutex::new((true, Vec::new()));
    let (number, ways) = (bins.len(), if bins.len() <= FEW_BINS { WAYS } else { 1 });
    call.threads.split(walk.numel, (64 * 1024).max(4 * number), |range| {
        let [stride] = walk.inner();
        let (mut buffer, mut own, mut inside) = ([0i64; 512], vec![0i64; number * ways], true);
        walk.pieces(range, |_, [offset], n| {
            for start in (0..n).step_by(512) {
                let values = &mut buffer[..512.min(n - start)];
                // SAFETY: the walk stays inside the input.
                unsafe { read_ints(x, offset + start as isize * stride, stride, values) };
                for (i, &value) in values.iter().enumerate() {
                    if (value as u64) < number as u64 {
                        // A power of two.
                        own[value as usize * ways + (i & (ways - 1))] += 1;
                    } else {
                        inside = false;
                    }
                }
            }
        });
        let mut parts = parts.lock();
        parts.0 &= inside;
        parts.1.push(own);
    });
    let (inside, parts) = parts.into_inner();
    for own in parts.iter().filter(|_| inside) {
        bins.iter_mut().zip(own.chunks(ways)).for_each(|(bin, own)| *bin += own.iter().sum::<i64>());
    }
    inside
}

/// Histogram of `bins` equal parts of `[min, max]`; values outside and NaN are not counted; if both limits are 0 (or
/// equal), they are those of the data. Inputs `[x]`; outputs `[y]` of shape `[bins]`, dtype of `x`. Attrs `[bins, min,
/// max]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn histc(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let bins = y.numel();
    let limit = |index| scalar(call, index).map_or(0.0, |value| value.to_f64());
    let (mut low, mut high) = (limit(1), limit(2));
    let walk = StridedIter::new(&x.shape, [&x.strides]);
    let [stride] = walk.inner();
    by_dtype!(x.dtype, T => {
        let from = Ptr::<T>::of(x);
        if low == high {
            let limits = Mutex::new((f64::INFINITY, f64::NEG_INFINITY));
            call.threads.split(walk.numel, 64 * 1024, |range| {
                let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                walk.pieces(range, |_, [offset], n| for i in 0..n as isize {
                    // SAFETY: the walk stays inside the input.
                    let value = unsafe { *from.at(offset + i * stride) }.to_f64();
                    (low, high) = (f64::min(low, value), f64::max(high, value));
                });
                let mut limits = limits.lock();
                *limits = (f64::min(limits.0, low), f64::max(limits.1, high));
            });
            (low, high) = limits.into_inner();
            if low > high {
                (low, high) = (0.0, 0.0);
            }
            if low == high {
                (low, high) = (low - 1.0, high + 1.0);
            }
        }
        // As PyTorch, in the arithmetic of the elements' dtype: the edges of bins depend on it.
        let round = |value: f64| T::from_f64(value).to_f64();
        let (low, high) = (round(low), round(high));
        let (span, parts) = (round(high - low), round(bins as f64));
        let totals = Mutex::new(guard::filled(bins, 0u64));
        call.threads.split(walk.numel, 64 * 1024, |range| {
            let mut counts = guard::filled(bins, 0u64);
            walk.pieces(range, |_, [offset], n| for i in 0..n as isize {
                // SAFETY: the walk stays inside the input.
                let value = unsafe { *from.at(offset + i * stride) }.to_f64();
                if value >= low && value <= high {
                    let bin = round(round(round(value - low) * parts) / span) as usize;
                    counts[Ord::min(bin, bins - 1)] += 1;
                }
            });
            totals.lock().iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        });
        for (i, total) in totals.into_inner().into_iter().enumerate() {
            let stride = y.strides.first().copied().unwrap_or(0);
            // SAFETY: the output has `bins` elements.
            unsafe { *Ptr::<T>::of(y).at(i as isize * stride) = T::from_f64(total as f64) };
        }
    });
}

/// The index at which each value would be inserted to keep the order. Inputs `[sorted, values]` or `[sorted, values,
/// sorter]`, same dtype; `sorted` is `[n]`, or has the leading dims of `values`; `sorter` (i64, shape of `sorted`)
/// lists its ascending order. Outputs `[y]` of the values' shape, i64 or i32. Attrs `[right]`: after equal elements
/// instead of before. `bucketize(x, b)` is `searchsorted(b, x)`. A NaN is inserted at the end.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn searchsorted(call: &Call<'_>) {
    let (sorted, values, y, right) = (&call.inputs[0], &call.inputs[1], &call.outputs[0], flag(call, 0));
    let sorter = call.inputs.get(2);
    let ndim = values.shape.len();
    let last = sorted.shape.len() - 1;
    let (n, stride) = (sorted.shape[last], sorted.strides[last]);
    // The row of `sorted` (and of `sorter`) that belongs to each value.
    let row_strides = |view: &RawView| -> Vec<isize> {
        if last == 0 {
            return vec![0; ndim];
        }
        (0..ndim).map(|d| if d + 1 < ndim { view.strides[d] } else { 0 }).collect()
    };
    let orders = sorter.map_or(vec![0; ndim], row_strides);
    let shape: Shape = values.shape.clone();
    let walk = StridedIter::<4>::new(&shape, [&y.strides, &values.strides, &row_strides(sorted), &orders]);
    let order_stride = sorter.map_or(0, |view| view.strides[last]);
    by_dtype!(sorted.dtype, T => {
        let (from, wanted) = (Ptr::<T>::of(sorted), Ptr::<T>::of(values));
        call.threads.split(walk.numel, 1024, |range| {
            let steps = walk.inner();
            walk.pieces(range, |_, at, m| {
                for i in 0..m as isize {
                    let [t, v, s, o]: [isize; 4] = std::array::from_fn(|k| at[k] + i * steps[k]);
                    // SAFETY: all lie inside their tensors; a sorter's entry is checked.
                    unsafe {
                        let value = *wanted.at(v);
                        let (mut low, mut high) = (0, n);
                        while low < high {
                            let middle = low + (high - low) / 2;
                            let place = match sorter {
                                Some(sorter) => {
                                    let entry = *Ptr::<i64>::of(sorter).at(o + middle as isize * order_stride);
                                    if (0..n as i64).contains(&entry) { entry as isize } else { 0 }
                                }
                                None => middle as isize,
                            };
                            let found = *from.at(s + place * stride);
                            let stays = if right { found > value } else { found >= value };
                            if stays { high = middle } else { low = middle + 1 }
                        }
                        if y.dtype == DType::I32 {
                            *Ptr::<i32>::of(y).at(t) = low as i32;
                        } else {
                            *Ptr::<i64>::of(y).at(t) = low as i64;
                        }
                    }
                }
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::kernel::abi::Threads;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, values};

    #[test]
    fn bincount_counts_and_weighs() {
        let mut dice = Dice(41);
        let xs = values(40000, &mut dice);
        let ws = values(40000, &mut dice);
        let x = Owned::from(DType::I64, &[40000], &xs);
        let w = Owned::from(DType::F64, &[40000], &ws);
        let size = Owned::dense(DType::I64, &[1]);
        sample::call(bincount_size, &[&x], &[&size], &[Attr::Int(9)]);
        assert_eq!(size.get(), [9.]);
        sample::call(bincount_size, &[&x], &[&size], &[]);
        assert_eq!(size.get(), [7.]);
        let (counts, sums) = (Owned::dense(DType::I64, &[7]), Owned::dense(DType::F64, &[7]));
        assert_eq!(call_on(&Threads::new(2), bincount, &[&x], &[&counts], &[]), None);
        assert_eq!(call_on(&Threads::new(2), bincount, &[&x, &w], &[&sums], &[]), None);
        for k in 0..7 {
            let of = |i: &usize| xs[*i] == k as f64;
            assert_eq!(counts.get()[k], (0..40000).filter(of).count() as f64);
            assert_eq!(sums.get()[k], (0..40000).filter(of).map(|i| ws[i]).sum::<f64>());
        }
    }

    #[test]
    fn histograms_are_pytorchs() {
        let x = Owned::from(DType::F32, &[6], &[1., 2., 1., 4., f64::NAN, 0.5]);
        let y = Owned::dense(DType::F32, &[4]);
        // torch.histc(tensor([1., 2, 1, 4, nan, 0.5]), bins=4, min=0, max=3)
        sample::call(histc, &[&x], &[&y], &[Attr::Int(4), Attr::Float(0.0), Attr::Float(3.0)]);
        assert_eq!(y.get(), [1., 2., 1., 0.]);
        sample::call(histc, &[&x], &[&y], &[Attr::Int(4), Attr::Float(0.0), Attr::Float(0.0)]);
        assert_eq!(y.get(), [3., 1., 0., 1.]);
    }

    #[test]
    fn searchsorted_left_right_rows_and_sorter() {
        let mut dice = Dice(42);
        let edges = Owned::from(DType::F32, &[4], &[1., 3., 3., 5.]);
        let x = Owned::strided_from(DType::F32, &[2, 3], &[0., 1., 3., 4., 6., f64::NAN], &mut dice);
        let y = Owned::strided(DType::I64, &[2, 3], &mut dice);
        sample::call(searchsorted, &[&edges, &x], &[&y], &[Attr::Bool(false)]);
        assert_eq!(y.get(), [0., 0., 1., 3., 4., 4.]);
        sample::call(searchsorted, &[&edges, &x], &[&y], &[Attr::Bool(true)]);
        assert_eq!(y.get(), [0., 1., 3., 3., 4., 4.]);
        let rows = Owned::strided_from(DType::I32, &[2, 3], &[1., 3., 5., 2., 4., 6.], &mut dice);
        let x = Owned::from(DType::I32, &[2, 2], &[3., 9., 3., 2.]);
        let y = Owned::dense(DType::I32, &[2, 2]);
        sample::call(searchsorted, &[&rows, &x], &[&y], &[Attr::Bool(false)]);
        assert_eq!(y.get(), [1., 3., 1., 0.]);
        let mixed = Owned::from(DType::I32, &[3], &[5., 1., 3.]);
        let order = Owned::from(DType::I64, &[3], &[1., 2., 0.]);
        sample::call(searchsorted, &[&mixed, &x, &order], &[&y], &[Attr::Bool(false)]);
        assert_eq!(y.get(), [1., 3., 1., 1.]);
    }
}
