//! Strided copy with conversion, and fill: the base of every kernel that rearranges memory.
//!
//! Dims are first sorted by the strides of the output and merged; then the copy is a `memcpy`, a transpose, or a loop
//! over pieces.

pub mod arrange;
pub mod strided_add;
pub mod transpose;
pub mod triangle;

use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::{RawView, Threads};
use crate::kernel::host::element::{Element, by_dtype, by_size, convert};
use crate::kernel::host::simd;
use crate::kernel::host::walk::{Ptr, StridedIter};
use smallvec::SmallVec;

/// Minimal number of elements for a thread: 64 KB of `f32`, a few microseconds.
const GRAIN: usize = 16 * 1024;
/// Bound: bytes of an output from which on it is written by non-temporal stores, which bypass the cache. Half of a
/// typical last-level cache, which such an output would evict anyway.
pub(crate) const NON_TEMPORAL_BYTES: usize = 16 << 20;
/// Bound: bytes of a contiguous piece from which on non-temporal stores pay: they are aligned to 128 bytes, and the rest is
/// copied separately.
const NON_TEMPORAL_PIECE: usize = 4096;

/// The bytes of a number in a dtype, followed by zeros.
pub fn scalar_bytes(value: Scalar, dtype: DType) -> [u8; 8] {
    by_dtype!(dtype, T => {
        let value: T = match value {
            Scalar::Bool(b) => T::from_i64(b as i64),
            Scalar::Int(i) => T::from_i64(i),
            Scalar::Float(x) => T::from_f64(x),
        };
        let mut bytes = [0u8; 8];
        // SAFETY: an element has at most eight bytes.
        unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(value) };
        bytes
    })
}

/// A 0-dimensional view expanded to a shape.
pub fn expanded(value: &RawView, shape: &[usize]) -> RawView {
    RawView { shape: Shape::from_slice(shape), strides: SmallVec::from_elem(0, shape.len()), ..value.clone() }
}

/// Sets every byte of the output's elements to zero.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], for the one view.
pub unsafe fn zero(to: &RawView, threads: &Threads) {
    let mut zeros = [0u64; 1];
    let value =
        RawView { ptr: zeros.as_mut_ptr().cast(), dtype: to.dtype, shape: Shape::new(), strides: Strides::new() };
    // SAFETY: the value lies on our stack until the call ends.
    unsafe { copy_view(&expanded(&value, &to.shape), to, threads) }
}

/// Copies one view to another of the same shape, converted to its dtype as C does it (to `bool`: `!= 0`; float to integer
/// truncates; integers wrap). Any strides; stride 0 and negative ones in `from` too.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], with `from` as input and `to` as output.
pub unsafe fn copy_view(from: &RawView, to: &RawView, threads: &Threads) {
    debug_assert_eq!(from.shape, to.shape);
    if to.numel() == 0 {
        return;
    }
    let mut order: SmallVec<[usize; 6]> = (0..to.shape.len()).collect();
    // Output strides are equal only if a size is 1 or the output is broadcast; the input's strides decide then.
    order.sort_by_key(|&d| std::cmp::Reverse((to.strides[d].unsigned_abs(), from.strides[d].unsigned_abs())));
    let shape: Shape = order.iter().map(|&d| to.shape[d]).collect();
    let strides = |view: &RawView| order.iter().map(|&d| view.strides[d]).collect::<Strides>();
    let walk = StridedIter::new(&shape, [&strides(to), &strides(from)]);
    // SAFETY: both views are valid (this function's contract); the walk names the same elements in another order.
    unsafe {
        if from.dtype == to.dtype {
            by_size!(to.dtype, T => copy_same_dtype::<T>(Ptr::of(from), Ptr::of(to), &walk, threads))
        } else {
            let run = by_dtype!(from.dtype, S => convert_loop_to::<S>(to.dtype));
            copy_converting(run, from, to, &walk, threads);
        }
    }
}

/// Converts `n` elements; both strides count elements. One function for each pair of dtypes, so that only the inner
/// loop is compiled for each pair.
type ConvertLoop = unsafe fn(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, n: usize);

fn convert_loop_to<S: Element>(to: DType) -> ConvertLoop {
    by_dtype!(to, D => convert_loop::<S, D>)
}

unsafe fn convert_loop<S: Element, D: Element>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    n: usize,
) {
    // SAFETY: whoever takes this function from the table names `n` elements of `S` and of `D` with these strides.
    unsafe {
        let (from, to) = (from.cast::<S>(), to.cast::<D>());
        if (to_stride, from_stride) == (1, 1) {
            let (to, from) = (std::slice::from_raw_parts_mut(to, n), std::slice::from_raw_parts(from, n));
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = convert(from));
        } else {
            for i in 0..n as isize {
                *to.offset(i * to_stride) = convert(*from.offset(i * from_stride));
            }
        }
    }
}

unsafe fn copy_same_dtype<T: Copy + Send + Sync + PartialEq + 'static>(
    from: Ptr<T>,
    to: Ptr<T>,
    walk: &StridedIter<2>,
    threads: &Threads,
) {
    let [inner_to, inner_from] = walk.inner();
    let size = size_of::<T>();
    let non_temporal = walk.numel * size >= NON_TEMPORAL_BYTES;
    if inner_to == 1 && inner_from.abs() > 1 {
        // SAFETY: `walk` is that of two valid views of elements of `T`, as for everything that this function does.
        if unsafe { transpose::transpose(from, to, walk, non_temporal, threads) } {
            return;
        }
    }
    threads.split(walk.numel, GRAIN * 4 / size.min(4), |range| {
        walk.pieces(range, |_, [t, f], n| {
            // SAFETY: pieces of disjoint ranges are disjoint in the output, whose elements are distinct.
            unsafe {
                let (to, from) = (to.at(t), from.at(f));
                match (inner_to, inner_from) {
                    (1, 1) if non_temporal && n * size >= NON_TEMPORAL_PIECE => {
                        copy_non_temporal(from.cast(), to.cast(), n * size)
                    }
                    (1, 1) => copy_bytes(from.cast(), to.cast(), n * size),
                    (1, 0) => std::slice::from_raw_parts_mut(to, n).fill(*from),
                    // Steps that the compiler knows make vectors.
                    (1, -1) => reverse(size)(from.cast(), to.cast(), n),
                    (1, 2) => stepped::<T, 2>(from, to, n),
                    (1, -2) => stepped::<T, -2>(from, to, n),
                    _ => {
                        for i in 0..n as isize {
                            *to.offset(i * inner_to) = *from.offset(i * inner_from);
                        }
                    }
                }
            }
        });
        if non_temporal {
            non_temporal_fence();
        }
    });
}

/// What copies `n` elements of this size in reverse: `to[i] = from[-i]`.
fn reverse(size: usize) -> unsafe fn(*const u8, *mut u8, usize) {
    macro_rules! reversed {
        ($T:ty) => {{
            const ALL: [unsafe fn(*const u8, *mut u8, usize); 3] =
                simd::levels!(<S> fn(from: *const u8, to: *mut u8, n: usize) {
                    let (from, to) = (from.cast::<$T>(), to.cast::<$T>());
                    for i in 0..n {
                        *to.add(i) = *from.sub(i);
                    }
                });
            ALL[simd::level()]
        }};
    }
    match size {
        1 => reversed!(u8),
        2 => reversed!(u16),
        4 => reversed!(u32),
        8 => reversed!(u64),
        _ => reversed!([u64; 2]),
    }
}

/// `to[i] = from[i * STEP]` for `n` elements.
///
/// # Safety
/// These elements exist, and those of `to` are nobody else's.
unsafe fn stepped<T: Copy, const STEP: isize>(from: *const T, to: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: `i` is below `n` (this function's contract).
        unsafe { *to.add(i) = *from.offset(i as isize * STEP) };
    }
}

unsafe fn copy_converting(run: ConvertLoop, from: &RawView, to: &RawView, walk: &StridedIter<2>, threads: &Threads) {
    let [inner_to, inner_from] = walk.inner();
    let (size_to, size_from) = (to.dtype.size_bytes() as isize, from.dtype.size_bytes() as isize);
    let (from, to) = (Ptr::<u8>::of(from), Ptr::<u8>::of(to));
    threads.split(walk.numel, GRAIN, |range| {
        walk.pieces(range, |_, [t, f], n| {
            // SAFETY: pieces of disjoint ranges are disjoint in the output, whose elements are distinct.
            unsafe { run(from.at(f * size_from), inner_from, to.at(t * size_to), inner_to, n) }
        });
    });
}

/// Bound: bytes from which on vectors copy them. The C library copies a few thousand bytes and more by `rep movsb`, which on
/// AMD's processors takes several times as long where the two ends are not aligned alike, as rows of odd lengths.
const VECTORS_COPY: usize = 1024;

/// Copies bytes.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= VECTORS_COPY && crate::kernel::host::simd::has_avx2() {
        // SAFETY: AVX2 implies AVX; `from` and `to` name `bytes` bytes that do not overlap (this function's contract).
        unsafe { copy_avx(from, to, bytes) };
        return;
    }
    // SAFETY: `from` and `to` name `bytes` bytes each that do not overlap (this function's contract).
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// At least 128 bytes: the first and the last are copied twice where the rest, whose stores are aligned, does not meet them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_avx(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::*;
    // SAFETY: `at` is at most `bytes - 128`, so that all loads and stores lie inside the two ranges.
    let lines = |at: usize| unsafe {
        let line = |i: usize| _mm256_loadu_si256(from.add(at + 32 * i).cast::<__m256i>());
        let lines = [line(0), line(1), line(2), line(3)];
        for (i, line) in lines.into_iter().enumerate() {
            _mm256_storeu_si256(to.add(at + 32 * i).cast(), line);
        }
    };
    lines(0);
    let mut at = to.align_offset(32);
    while at + 128 <= bytes {
        lines(at);
        at += 128;
    }
    lines(bytes - 128);
}

/// Copies bytes by non-temporal stores, which do not read the destination's cache lines. `non_temporal_fence` must
/// follow before another thread reads them. Cost: a copy of 64 MB moves 128 MB over the memory bus instead of 192.
///
/// # Safety
/// As `copy_nonoverlapping`.
pub(crate) unsafe fn copy_non_temporal(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if crate::kernel::host::simd::has_avx2() {
        // SAFETY: AVX2 implies AVX; `from` and `to` name `bytes` bytes that do not overlap (this function's contract).
        unsafe { copy_non_temporal_avx(from, to, bytes) };
        return;
    }
    // SAFETY: `from` and `to` name `bytes` bytes each that do not overlap (`copy_nonoverlapping`, this function's
    // contract).
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// Makes the non-temporal stores of this thread visible to others.
pub(crate) fn non_temporal_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the fence is an instruction of SSE, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_non_temporal_avx(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::*;
    let head = to.align_offset(64).min(bytes);
    let body = (bytes - head) / 128 * 128;
    // SAFETY: head, body and tail make up the range; the body is aligned for the streaming stores.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let mut at = head;
        while at < head + body {
            let line = |i: usize| _mm256_loadu_si256(from.add(at + 32 * i).cast::<__m256i>());
            let lines = [line(0), line(1), line(2), line(3)];
            _mm256_stream_si256(to.add(at).cast(), lines[0]);
            _mm256_stream_si256(to.add(at + 32).cast(), lines[1]);
            _mm256_stream_si256(to.add(at + 64).cast(), lines[2]);
            _mm256_stream_si256(to.add(at + 96).cast(), lines[3]);
            at += 128;
        }
        std::ptr::copy_nonoverlapping(from.add(at), to.add(at), bytes - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::abi::Call;
    use crate::kernel::host::walk::reversed;
    use crate::kernel::host::walk::sample::*;

    /// `copy_view` as a kernel.
    unsafe fn copy(call: &Call<'_>) {
        // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them.
        unsafe { copy_view(&call.inputs[0], &call.outputs[0], call.threads) }
    }

    #[test]
    fn bytes_are_copied_whatever_their_number_and_alignment() {
        let from: Vec<u8> = (0..8192u32).map(|i| ((i * 31) >> 3) as u8).collect();
        for n in [0, 1, 127, 1023, 1024, 1025, 1151, 1152, 1153, 2048, 4093, 5000] {
            for (a, b) in [(0, 0), (1, 0), (0, 1), (13, 32), (31, 5)] {
                let mut to = vec![0xA5u8; n + 64];
                // SAFETY: both have `n` bytes from there on.
                unsafe { copy_bytes(from[a..].as_ptr(), to[b..].as_mut_ptr(), n) };
                assert_eq!(to[b..b + n], from[a..a + n], "{n} bytes");
                assert!(to[..b].iter().chain(&to[b + n..]).all(|&byte| byte == 0xA5), "{n} bytes");
            }
        }
    }

    #[test]
    fn every_pair_of_dtypes_and_layouts() {
        let mut dice = Dice(1);
        for from in DType::REAL {
            for to in DType::REAL {
                for shape in [&[][..], &[5], &[3, 4], &[2, 1, 3, 5], &[0, 3]] {
                    let numbers = values(shape.iter().product(), &mut dice);
                    let x = Owned::strided_from(from, shape, &numbers, &mut dice);
                    let y = Owned::strided(to, shape, &mut dice);
                    call(copy, &[&x], &[&y], &[]);
                    let bits = from == DType::Bool || to == DType::Bool;
                    let expected: Vec<f64> =
                        numbers.iter().map(|&v| if bits { (v != 0.0) as u8 as f64 } else { v }).collect();
                    assert_eq!(y.get(), expected, "{from} to {to} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn large_transposes_in_every_size() {
        let threads = Threads::new(3);
        for dtype in [DType::U8, DType::I16, DType::F32, DType::F64] {
            for (rows, cols) in [(130, 70), (16, 333), (9, 8), (1, 40)] {
                let numbers: Vec<f64> = (0..2 * rows * cols).map(|i| (i % 251) as f64).collect();
                let mut x = Owned::from(dtype, &[2, rows, cols], &numbers);
                x.view.shape = Shape::from_slice(&[2, cols, rows]);
                x.view.strides.swap(1, 2);
                let y = Owned::dense(dtype, &[2, cols, rows]);
                assert_eq!(call_on(&threads, copy, &[&x], &[&y], &[]), None);
                assert_eq!(y.get(), x.get(), "{dtype} {rows} x {cols}");
            }
        }
    }

    /// Few columns, few rows, from either end, and steps: each has a loop of its own.
    #[test]
    fn narrow_and_reversed() {
        let threads = Threads::new(2);
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::I64] {
            for (rows, cols) in [(2, 1100), (1030, 2), (3, 40), (40, 3), (4, 2100), (33, 4), (6, 70), (70, 5), (40, 50)]
            {
                let numbers: Vec<f64> = (0..2 * rows * cols).map(|i| (i % 251) as f64).collect();
                let check = |what: &str, change: &dyn Fn(RawView) -> RawView| {
                    let mut x = Owned::from(dtype, &[2, rows, cols], &numbers);
                    x.view = change(x.view.clone());
                    let y = Owned::dense(dtype, &x.view.shape);
                    assert_eq!(call_on(&threads, copy, &[&x], &[&y], &[]), None);
                    assert!(y.get() == x.get(), "{what} {dtype} {rows} x {cols}");
                };
                let turned = |mut view: RawView| {
                    view.shape.swap(1, 2);
                    view.strides.swap(1, 2);
                    view
                };
                let stepped = |mut view: RawView| {
                    view.shape[2] /= 2;
                    view.strides[2] *= 2;
                    view
                };
                check("turned", &turned);
                check("turned, rows reversed", &|view| reversed(&turned(view), 1));
                check("turned, columns reversed", &|view| reversed(&turned(view), 2));
                check("turned, both reversed", &|view| reversed(&reversed(&turned(view), 1), 2));
                check("reversed", &|view| reversed(&view, 2));
                check("stepped", &stepped);
                check("stepped, reversed", &|view| reversed(&stepped(view), 2));
            }
        }
    }

    #[test]
    fn large_copies_are_non_temporal_and_exact() {
        let n = NON_TEMPORAL_BYTES / 4 + 77;
        let numbers: Vec<f64> = (0..n).map(|i| (i % 65521) as f64).collect();
        let x = Owned::from(DType::F32, &[n], &numbers);
        let y = Owned::dense(DType::F32, &[n]);
        assert_eq!(call_on(&Threads::new(2), copy, &[&x], &[&y], &[]), None);
        assert!(y.get() == numbers);
    }

    #[test]
    fn broadcast() {
        let x = Owned::from(DType::F32, &[3, 1], &[1., 2., 3.]).expanded(1, 4);
        let y = Owned::dense(DType::I32, &[3, 4]);
        call(copy, &[&x], &[&y], &[]);
        assert_eq!(y.get(), [1., 1., 1., 1., 2., 2., 2., 2., 3., 3., 3., 3.]);
    }
}
