//! Stream compaction: positions or elements where a mask is not zero.
//!
//! The size of the result depends on data, so there are two phases: a count, then, with an output of that size, the
//! fill. Both divide the elements into the same fixed chunks; the fill writes each chunk at the exclusive prefix sum of
//! the counts, so chunks are filled in parallel and the order is row-major.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, Fault, FaultKind, RawView, Threads};
use crate::kernel::copy::host::copy_view;
use crate::kernel::guard;
use crate::kernel::host::element::{Element, by_dtype, by_size};
use crate::kernel::host::walk::{Ptr, StridedIter};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements of a chunk: few enough that 10^5 elements have several chunks for each thread, enough that the overhead of
/// a chunk is negligible.
const CHUNK: usize = 16 * 1024;
/// Positions that are found at a time.
const RUN: usize = 512;

/// Writes 1 for each element that is not zero, else 0, for `out.len()` elements; the stride counts elements.
type Flags = unsafe fn(from: *const u8, stride: isize, out: &mut [u8]);

unsafe fn flags_of<T: Element>(from: *const u8, stride: isize, out: &mut [u8]) {
    let from = from.cast::<T>();
    // SAFETY: `Mask::read` names `out.len()` elements of `T` with this stride.
    unsafe {
        if stride == 1 {
            let from = std::slice::from_raw_parts(from, out.len());
            out.iter_mut().zip(from).for_each(|(flag, &v)| *flag = (v != T::ZERO) as u8);
        } else {
            let from = |i: usize| *from.offset(i as isize * stride);
            out.iter_mut().enumerate().for_each(|(i, flag)| *flag = (from(i) != T::ZERO) as u8);
        }
    }
}

/// A tensor read as flags.
struct Mask {
    read: Flags,
    from: Ptr<u8>,
    size: isize,
    walk: StridedIter<1>,
}

impl Mask {
    fn new(x: &RawView) -> Mask {
        let read: Flags = by_dtype!(x.dtype, T => flags_of::<T>);
        Mask {
            read,
            from: Ptr::of(x),
            size: x.dtype.size_bytes() as isize,
            walk: StridedIter::new(&x.shape, [&x.strides]),
        }
    }

    /// The flags of the elements from row-major position `start` on.
    unsafe fn read(&self, start: usize, out: &mut [u8]) {
        let [stride] = self.walk.inner();
        self.walk.pieces(start..start + out.len(), |position, [offset], n| {
            // SAFETY: the walk stays inside the view.
            unsafe { (self.read)(self.from.at(offset * self.size), stride, &mut out[position - start..][..n]) }
        });
    }
}

/// The number of elements of each chunk that are not zero.
unsafe fn counts(mask: &Mask, threads: &Threads) -> Vec<usize> {
    let n = mask.walk.numel;
    let mut counts: Vec<AtomicUsize> = guard::with_capacity(n.div_ceil(CHUNK));
    counts.resize_with(n.div_ceil(CHUNK), AtomicUsize::default);
    threads.split(n, CHUNK, |range| {
        let mut buffer = [0u8; 1024];
        for start in range.clone().step_by(1024) {
            let part = &mut buffer[..Ord::min(1024, range.end - start)];
            // SAFETY: the mask is over a valid view, and positions are below its number of elements.
            unsafe { mask.read(start, part) };
            // Bytes are summed in groups whose sum fits a byte: a loop of plain vector additions.
            let count: usize = part.chunks(128).map(|c| c.iter().sum::<u8>() as usize).sum();
            counts[start / CHUNK].fetch_add(count, Ordering::Relaxed);
        }
    });
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

/// The exclusive prefix sums of the counts, and the total.
fn starts(counts: &[usize]) -> Vec<usize> {
    let mut sum = 0;
    let mut starts = guard::with_capacity(counts.len() + 1);
    starts.push(0);
    starts.extend(counts.iter().map(|count| {
        sum += count;
        sum
    }));
    starts
}

/// Writes `start + i` for every flag `i` that is 1 to `out`, compacted; returns their number.
#[inline]
fn compress(flags: &[u8], start: usize, out: &mut [usize; RUN]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && flags.len() == RUN {
        // SAFETY: the feature is there; there are `RUN` flags.
        return unsafe { compress_avx512(flags, start, out) };
    }
    // Without branches: every position is written, and one whose flag is 0 is overwritten by the next.
    let mut n = 0;
    for (i, &flag) in flags.iter().enumerate() {
        out[n] = start + i;
        n += flag as usize;
    }
    n
}

/// Eight flags at a time, whose positions one instruction compacts (`vpcompressq`).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn compress_avx512(flags: &[u8], start: usize, out: &mut [usize; RUN]) -> usize {
    use std::arch::x86_64::*;
    let mut lanes = _mm512_add_epi64(_mm512_set1_epi64(start as i64), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    let mut n = 0;
    for eight in flags.chunks_exact(8) {
        // The multiplication collects the lowest bit of each byte in the top byte.
        let bytes = eight.iter().rev().fold(0u64, |word, &flag| word << 8 | flag as u64);
        let mask = (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        // SAFETY: at most as many lanes were kept as flags were read, so eight more fit.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(n).cast(), _mm512_maskz_compress_epi64(mask, lanes)) };
        n += mask.count_ones() as usize;
        lanes = _mm512_add_epi64(lanes, _mm512_set1_epi64(8));
    }
    n
}

/// Calls `fill(rank of the first, positions)` with the row-major positions of the elements of `x` that are not zero: for
/// each rank once, from any thread, in short runs.
unsafe fn each_run(x: &RawView, threads: &Threads, fill: impl Fn(usize, &[usize]) + Sync) {
    let mask = Mask::new(x);
    // SAFETY: the mask is over `x`, which is a view of a `HostFn` call, valid for reading.
    let starts = starts(&unsafe { counts(&mask, threads) });
    threads.split(mask.walk.numel, CHUNK, |range| {
        let mut rank = starts[range.start / CHUNK];
        let (mut flags, mut positions) = ([0u8; RUN], [0usize; RUN]);
        for start in range.clone().step_by(RUN) {
            let part = &mut flags[..Ord::min(RUN, range.end - start)];
            // SAFETY: positions are below the number of elements of the mask, whose view is valid for reading.
            unsafe { mask.read(start, part) };
            let n = compress(part, start, &mut positions);
            fill(rank, &positions[..n]);
            rank += n;
        }
    });
}

/// First phase of [`nonzero`] and of [`masked_select`]. Inputs `[x]` or `[x, mask]`, whose last is counted; outputs
/// `[n]`: i64 of shape `[1]`, the number of elements that are not zero.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn count(call: &Call<'_>) {
    let Some(x) = call.inputs.last() else { return };
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the output has one element.
    unsafe { *call.outputs[0].ptr.cast::<i64>() = counts(&Mask::new(x), call.threads).iter().sum::<usize>() as i64 };
}

/// The coordinates of elements of `x` that are not zero (NaN counts as not zero), in row-major order. Inputs `[x]`;
/// outputs `[y]`: i64 of shape `[n, x.ndim]`, n from [`count`]. `argwhere` is the same.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn nonzero(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let (rows, ndim) = (y.shape[0], x.shape.len());
    let (row, column) = (y.strides[0], y.strides[1]);
    let to = Ptr::<i64>::of(y);
    // SAFETY: each row is written by one thread, and none beyond the output's.
    unsafe {
        each_run(x, call.threads, |rank, positions| {
            let positions = &positions[..Ord::min(positions.len(), rows.saturating_sub(rank))];
            if ndim == 1 {
                for (k, &position) in positions.iter().enumerate() {
                    *to.at((rank + k) as isize * row) = position as i64;
                }
                return;
            }
            // The last coordinate is advanced by differences; the others are recomputed when it overflows.
            let Some(last) = ndim.checked_sub(1) else { return };
            let (size, mut line, mut before) = (x.shape[last], usize::MAX, [0i64; 64]);
            for (k, &position) in positions.iter().enumerate() {
                let at = (rank + k) as isize * row;
                let first = if line == usize::MAX { 0 } else { line * size };
                if line == usize::MAX || position - first >= size {
                    line = position / size;
                    let mut rest = line;
                    for d in (0..last).rev() {
                        before[d] = (rest % x.shape[d]) as i64;
                        rest /= x.shape[d];
                    }
                }
                before[..last].iter().enumerate().for_each(|(d, &i)| *to.at(at + d as isize * column) = i);
                *to.at(at + last as isize * column) = (position - line * size) as i64;
            }
        });
    }
}

/// The elements of `x` where the mask is true, in row-major order. Inputs `[x, mask]` of one shape (stride 0 allowed); outputs
/// `[y]` of shape `[n]`, n from [`count`], dtype of `x`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn masked_select(call: &Call<'_>) {
    let (x, mask, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let (n, step) = (y.shape[0], y.strides[0]);
    let walk = StridedIter::new(&x.shape, [&x.strides]);
    let [stride] = walk.inner();
    let plain = walk.shape.len() == 1;
    by_size!(x.dtype, T => {
        let (from, to) = (Ptr::<T>::of(x), Ptr::<T>::of(y));
        // SAFETY: each element of the output is written by one thread, and none beyond its end.
        unsafe {
            each_run(mask, call.threads, |rank, positions| {
                let positions = &positions[..Ord::min(positions.len(), n.saturating_sub(rank))];
                let out = to.at(rank as isize * step);
                if plain {
                    for (k, &position) in positions.iter().enumerate() {
                        *out.offset(k as isize * step) = *from.at(position as isize * stride);
                    }
                    return;
                }
                for (k, &position) in positions.iter().enumerate() {
                    *out.offset(k as isize * step) = *from.at(walk.offsets(position)[0]);
                }
            });
        }
    })
}

/// Writes the elements of `src`, in order, where the mask is true. Inputs `[x, mask, src]`, mask of the shape of `x`
/// (stride 0 allowed), src of any shape and the dtype of `x`; outputs `[y]` like `x`, which may be `x`. Too few
/// elements in `src` are an `Index` fault of dim 0 (value: the number of true elements, bound: the elements of `src`),
/// and the rest of `y` stays as `x`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn masked_scatter(call: &Call<'_>) {
    let (x, mask, src, y) = (&call.inputs[0], &call.inputs[1], &call.inputs[2], &call.outputs[0]);
    let there = src.numel();
    let (to_walk, from_walk) = (StridedIter::new(&y.shape, [&y.strides]), StridedIter::new(&src.shape, [&src.strides]));
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; each element of the output is written by
    // one thread.
    unsafe {
        if x.ptr != y.ptr || x.strides != y.strides {
            copy_view(x, y, call.threads);
        }
        by_size!(x.dtype, T => {
            let (from, to) = (Ptr::<T>::of(src), Ptr::<T>::of(y));
            each_run(mask, call.threads, |rank, positions| {
                for (k, &position) in positions.iter().enumerate() {
                    if rank + k >= there {
                        let wanted: usize = counts(&Mask::new(mask), &Threads::ONE).iter().sum();
                        let (value, bound) = (wanted as i64, there as i64);
                        let kind = FaultKind::Index { dim: 0 };
                        call.faults.report(Fault { kind, position: position as u64, value, bound });
                        return;
                    }
                    *to.at(to_walk.offsets(position)[0]) = *from.at(from_walk.offsets(rank + k)[0]);
                }
            });
        })
    }
}

/// First phase of `repeat_interleave` with a tensor of counts. Inputs `[repeats]`, integral `[m]`; outputs `[n]`: i64
/// of shape `[1]`, their sum. A negative count is an `Index` fault of dim 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn repeats_count(call: &Call<'_>) {
    let repeats = &call.inputs[0];
    let mut sum = 0i64;
    for i in 0..repeats.numel() {
        // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the output has one element.
        sum += unsafe { repeat_of(repeats, i) }.unwrap_or_else(|value| {
            let kind = FaultKind::Index { dim: 0 };
            call.faults.report(Fault { kind, position: i as u64, value, bound: i64::MAX });
            0
        });
    }
    // SAFETY: `call` is one of `HostFn`, and the output has one `i64`.
    unsafe { *call.outputs[0].ptr.cast::<i64>() = sum };
}

/// Second phase: the index `0` `repeats[0]` times, then `1` `repeats[1]` times, and so on. Inputs `[repeats]`; outputs
/// `[y]`: i64 `[n]`, n from [`repeats_count`]. `repeat_interleave(x, repeats, dim)` is `index_select` of `x` by these.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn repeats_fill(call: &Call<'_>) {
    let (repeats, y) = (&call.inputs[0], &call.outputs[0]);
    debug_assert_eq!(y.dtype, DType::I64);
    let (n, mut at) = (y.numel(), 0usize);
    for i in 0..repeats.numel() {
        // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; writes stop at the end of the
        // output.
        unsafe {
            let end = Ord::min(n, at.saturating_add(repeat_of(repeats, i).unwrap_or(0) as usize));
            for k in at..end {
                *Ptr::<i64>::of(y).at(k as isize * y.strides[0]) = i as i64;
            }
            at = end;
        }
    }
}

/// One count; `Err` if it is negative.
unsafe fn repeat_of(repeats: &RawView, i: usize) -> Result<i64, i64> {
    let mut value = [0];
    // SAFETY: `i` is below the number of repeats, or the view has one element that stands for all.
    unsafe {
        crate::kernel::host::walk::read_ints(
            repeats,
            i as isize * crate::kernel::host::walk::extent(repeats, 0).1,
            0,
            &mut value,
        )
    };
    if value[0] < 0 { Err(value[0]) } else { Ok(value[0]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, values};

    #[test]
    fn counts_and_fills_agree_with_loops() {
        let mut dice = Dice(51);
        for threads in [&Threads::ONE, &Threads::new(3)] {
            for shape in [&[7][..], &[50000], &[3, 4, 5], &[300, 150], &[0, 4], &[]] {
                for dtype in [DType::Bool, DType::F32, DType::I64, DType::BF16] {
                    let n = shape.iter().product();
                    let ms: Vec<f64> = (0..n).map(|_| dice.below(2) as f64).collect();
                    let xs = values(n, &mut dice);
                    let m = Owned::strided_from(dtype, shape, &ms, &mut dice);
                    let x = Owned::strided_from(DType::F64, shape, &xs, &mut dice);
                    let set: Vec<usize> = (0..n).filter(|&i| ms[i] != 0.0).collect();
                    let size = Owned::dense(DType::I64, &[1]);
                    assert_eq!(call_on(threads, count, &[&x, &m], &[&size], &[]), None);
                    assert_eq!(size.get(), [set.len() as f64]);
                    let y = Owned::strided(DType::I64, &[set.len(), shape.len()], &mut dice);
                    assert_eq!(call_on(threads, nonzero, &[&m], &[&y], &[]), None);
                    let at: Vec<f64> = set.iter().flat_map(|&i| coords(i, shape)).map(|c| c as f64).collect();
                    assert!(y.get() == at);
                    let y = Owned::strided(DType::F64, &[set.len()], &mut dice);
                    assert_eq!(call_on(threads, masked_select, &[&x, &m], &[&y], &[]), None);
                    assert!(y.get() == set.iter().map(|&i| xs[i]).collect::<Vec<_>>());
                    let z = Owned::strided(DType::F64, shape, &mut dice);
                    assert_eq!(call_on(threads, masked_scatter, &[&x, &m, &y], &[&z], &[]), None);
                    assert!(z.get() == xs);
                }
            }
        }
    }

    #[test]
    fn nan_is_not_zero_and_too_short_a_source_is_a_fault() {
        let x = Owned::from(DType::F32, &[4], &[0., f64::NAN, -0.0, 1.]);
        let y = Owned::dense(DType::I64, &[2, 1]);
        sample::call(nonzero, &[&x], &[&y], &[]);
        assert_eq!(y.get(), [1., 3.]);
        let src = Owned::from(DType::F32, &[1], &[9.]);
        let z = Owned::dense(DType::F32, &[4]);
        let fault = call_on(&Threads::ONE, masked_scatter, &[&x, &x, &src], &[&z], &[]);
        assert_eq!(fault, Some(Fault { kind: FaultKind::Index { dim: 0 }, position: 3, value: 2, bound: 1 }));
        assert_eq!(&z.get()[1..], [9., 0., 1.]);
    }

    #[test]
    fn repeats_by_a_tensor() {
        let repeats = Owned::from(DType::I64, &[3], &[2., 0., 3.]);
        let size = Owned::dense(DType::I64, &[1]);
        sample::call(repeats_count, &[&repeats], &[&size], &[]);
        assert_eq!(size.get(), [5.]);
        let y = Owned::dense(DType::I64, &[5]);
        sample::call(repeats_fill, &[&repeats], &[&y], &[]);
        assert_eq!(y.get(), [0., 0., 2., 2., 2.]);
    }
}
