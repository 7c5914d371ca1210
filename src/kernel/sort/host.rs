//! Sorting along a dim.
//!
//! Every element becomes a pair: an unsigned key of the same order, and its index. Pairs are distinct, so the sorted
//! order is stable and unique, for any algorithm and number of threads: a comparison sort for short rows, an LSD radix
//! sort for long ones. NaN is the largest; -0 equals 0. Only the code that makes keys and writes values is compiled for
//! each dtype; everything else for two widths of keys. Selections without a sort are in `select.rs`.

pub mod select;
mod ties;
pub mod unique;

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::guard;
use crate::kernel::host::element::{Element, Key, by_dtype};
use crate::kernel::host::walk::{Ptr, StridedIter, dim, extent, flag, without};
use parking_lot::Mutex;
use std::any::Any;
use std::ops::Range;

/// Bound: rows up to this length are sorted by comparison, which needs no second buffer and no histograms.
const SHORT: usize = 512;
/// Positions in pairs have 32 bits: a longer row (of at least 4 GiB) cannot be sorted, and `op::infer` reports an
/// error.
pub const LONGEST_ROW: usize = u32::MAX as usize;

/// The loops over the elements of a dtype with keys `K`.
#[derive(Clone, Copy)]
struct Kind<K: Key> {
    bytes: isize,
    /// The key of every NaN, for floats.
    nan: Option<K>,
    /// Writes the pairs of the elements `range` of a row.
    load: unsafe fn(row: *const u8, stride: isize, range: Range<usize>, descending: bool, out: *mut K::Pair),
    /// Writes the elements of pairs, with a stride of `step`.
    store: unsafe fn(row: *const u8, stride: isize, pairs: &[K::Pair], descending: bool, out: *mut u8, step: isize),
}

fn kind<T: Element>() -> Kind<T::Key> {
    unsafe fn load<T: Element>(
        row: *const u8,
        stride: isize,
        range: Range<usize>,
        descending: bool,
        out: *mut <T::Key as Key>::Pair,
    ) {
        let row = row.cast::<T>();
        for (to, i) in range.enumerate() {
            // SAFETY: `Row::load` names elements of the row by `range`, and room for their pairs.
            unsafe {
                let key = (*row.offset(i as isize * stride)).key();
                out.add(to).write((if descending { key.invert() } else { key }).pair(i as u32));
            }
        }
    }
    unsafe fn store<T: Element>(
        row: *const u8,
        stride: isize,
        pairs: &[<T::Key as Key>::Pair],
        descending: bool,
        out: *mut u8,
        step: isize,
    ) {
        let (row, out) = (row.cast::<T>(), out.cast::<T>());
        for (i, &pair) in pairs.iter().enumerate() {
            let (key, position) = T::Key::unpair(pair);
            let value = T::from_key(if descending { key.invert() } else { key });
            // Computing an element from its key avoids a random access; only zeros and NaNs are not restored bit for
            // bit. SAFETY: positions lie in the row; the caller names the output.
            unsafe {
                let lossy = value == T::ZERO || value.is_nan();
                *out.offset(i as isize * step) = if lossy { *row.offset(position as isize * stride) } else { value };
            }
        }
    }
    let nan = T::DTYPE.is_float().then(|| T::from_f64(f64::NAN).key());
    Kind { bytes: size_of::<T>() as isize, nan, load: load::<T>, store: store::<T> }
}

/// The loops of a dtype whose keys are `K`.
fn kind_of<K: Key>(dtype: DType) -> Kind<K> {
    let found = by_dtype!(dtype, T => (&kind::<T>() as &dyn Any).downcast_ref().copied());
    found.expect("`by_key` chooses the width by the dtype")
}

fn has_wide_keys(dtype: DType) -> bool {
    by_dtype!(dtype, T => <T as Element>::Key::BITS == u64::BITS)
}

/// Runs the body with `$kind` as the `Kind` of a dtype. The body is compiled for each width of keys, not for each
/// dtype.
macro_rules! by_key {
    ($dtype:expr, $kind:ident => $body:expr) => {
        if $crate::kernel::sort::host::has_wide_keys($dtype) {
            let $kind = &$crate::kernel::sort::host::kind_of::<u64>($dtype);
            $body
        } else {
            let $kind = &$crate::kernel::sort::host::kind_of::<u32>($dtype);
            $body
        }
    };
}
use by_key;

/// A row of a view: its first element and the stride along it, in elements.
#[derive(Clone, Copy)]
struct Row<'a, K: Key> {
    kind: &'a Kind<K>,
    first: Ptr<u8>,
    stride: isize,
    length: usize,
}

impl<K: Key> Row<'_, K> {
    /// Appends the pairs of a part of the row.
    ///
    /// # Safety
    /// The row exists and the range lies in it.
    unsafe fn load(&self, range: Range<usize>, descending: bool, pairs: &mut Vec<K::Pair>) {
        let (had, n) = (pairs.len(), range.len());
        guard::reserve(pairs, n);
        // SAFETY: the room is there, and all of it is written.
        unsafe {
            (self.kind.load)(self.first.at(0), self.stride, range, descending, pairs.as_mut_ptr().add(had));
            pairs.set_len(had + n);
        }
    }

    /// Writes the elements of pairs of this row.
    ///
    /// # Safety
    /// The output has as many elements, with a stride of `step`.
    unsafe fn store(&self, pairs: &[K::Pair], descending: bool, out: *mut u8, step: isize) {
        // SAFETY: `out` has room for as many elements `step` apart (this function's contract); pairs hold positions of
        // the row.
        unsafe { (self.kind.store)(self.first.at(0), self.stride, pairs, descending, out, step) }
    }

    /// Stores all pairs of the row, sorted, in `pairs`; `spare` is a second buffer.
    unsafe fn order(&self, descending: bool, pairs: &mut Vec<K::Pair>, spare: &mut Vec<K::Pair>, threads: &Threads) {
        let n = self.length;
        pairs.clear();
        if n <= SHORT {
            // SAFETY: the row has `n` elements, and all of them are read.
            unsafe { self.load(0..n, descending, pairs) };
            pairs.sort_unstable();
            return;
        }
        reserve(pairs, n);
        let to = Ptr::new(pairs.as_mut_ptr());
        let counts = Mutex::new(vec![[0u32; DIGITS]; K::BITS as usize / DIGIT_BITS as usize]);
        threads.split(n, 16 * 1024, |range| {
            let mut own = vec![[0u32; DIGITS]; K::BITS as usize / DIGIT_BITS as usize];
            for start in range.clone().step_by(BLOCK) {
                let block = start..(start + BLOCK).min(range.end);
                let (to, length) = (to.at(start as isize), block.len());
                // SAFETY: the buffer has room for n; each place is written once, and read by whoever wrote it.
                unsafe {
                    (self.kind.load)(self.first.at(0), self.stride, block, descending, to);
                    count::<K>(std::slice::from_raw_parts(to, length), &mut own);
                }
            }
            for (sum, own) in counts.lock().iter_mut().flatten().zip(own.iter().flatten()) {
                *sum += own;
            }
        });
        // SAFETY: the ranges that wrote pairs cover all of `0..n`, and the vectors have that capacity.
        unsafe { pairs.set_len(n) };
        radix::<K>(pairs, spare, &counts.into_inner(), threads);
    }
}

/// The histogram of each digit of some pairs' keys.
fn count<K: Key>(pairs: &[K::Pair], counts: &mut [[u32; DIGITS]]) {
    for &pair in pairs {
        let key = K::unpair(pair).0;
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[key.digit(digit as u32 * DIGIT_BITS, DIGITS as u32 - 1)] += 1;
        }
    }
}

/// Reserves capacity for `n` more, in huge pages if it is large. Cost: without huge pages, page faults are a third of
/// the time of sorting 10^6 elements; with them a tenth.
fn reserve<P>(list: &mut Vec<P>, n: usize) {
    let had = list.capacity();
    guard::reserve(list, n);
    #[cfg(target_os = "linux")]
    if list.capacity() != had && n * size_of::<P>() >= 4 << 20 {
        const PAGE: usize = 4096;
        let start = (list.as_ptr() as usize).next_multiple_of(PAGE);
        let end = (list.as_ptr() as usize + list.capacity() * size_of::<P>()) / PAGE * PAGE;
        // SAFETY: pages of our own allocation; the advice changes no contents, and its failure does no harm.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Bits of a digit. Cost: 11 would need three passes instead of four, but a pass would write so many runs at once that
/// their ends do not fit into the L1 cache, and a sort would take twice as long.
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Pairs that are counted while they are in the cache.
const BLOCK: usize = 2048;
/// Bound: parts of a row that threads sort together; each counts its digits.
const PARTS: usize = 8;
/// Number of threads from which on a row is sorted in parallel. Cost: two threads take longer than one for 10^6
/// elements, since each pass reads what the other core has just written.
const WORTHWHILE: usize = 4;

/// LSD radix sort of pairs by their keys; each pass is stable, so equal keys keep the order of their indices. `counts` is the
/// histogram of all of them: a digit that all keys share needs no pass.
fn radix<K: Key>(pairs: &mut Vec<K::Pair>, spare: &mut Vec<K::Pair>, counts: &[[u32; DIGITS]], threads: &Threads) {
    let n = pairs.len();
    spare.clear();
    reserve(spare, n);
    let parts = if threads.count() < WORTHWHILE { 1 } else { threads.count().min(n.div_ceil(64 * 1024)).min(PARTS) };
    let start = |part: usize| (n as u64 * part as u64 / parts as u64) as usize;
    // The histogram of each part, then the start of its run of each digit.
    let mut table = vec![[0u32; DIGITS]; parts];
    for (pass, counts) in counts.iter().enumerate() {
        if counts.iter().any(|&count| count as usize == n) {
            continue;
        }
        let shift = pass as u32 * DIGIT_BITS;
        let digit = |pair: K::Pair| K::unpair(pair).0.digit(shift, DIGITS as u32 - 1);
        let (from, to) = (Ptr::new(pairs.as_mut_ptr()), Ptr::new(spare.as_mut_ptr()));
        if parts == 1 {
            table[0] = *counts;
        } else {
            let tables = Ptr::new(table.as_mut_ptr());
            threads.split(parts, 1, |range| {
                for part in range {
                    // SAFETY: each part has its own table; the pairs are only read.
                    unsafe {
                        let table = &mut *tables.at(part as isize);
                        table.fill(0);
                        (start(part)..start(part + 1)).for_each(|i| table[digit(*from.at(i as isize))] += 1);
                    }
                }
            });
        }
        let mut sum = 0;
        for d in 0..DIGITS {
            for table in &mut table {
                (table[d], sum) = (sum, sum + table[d]);
            }
        }
        let tables = Ptr::new(table.as_mut_ptr());
        threads.split(parts, 1, |range| {
            for part in range {
                // SAFETY: the starts divide the spare buffer among parts and digits, so each place is written once; each
                // part has its own table.
                unsafe {
                    let table = &mut *tables.at(part as isize);
                    for i in start(part)..start(part + 1) {
                        let pair = *from.at(i as isize);
                        let end = &mut table[digit(pair)];
                        to.at(*end as isize).write(pair);
                        *end += 1;
                    }
                }
            }
        });
        // SAFETY: the ranges that wrote pairs cover all of `0..n`, and the vectors have that capacity.
        unsafe { spare.set_len(n) };
        std::mem::swap(pairs, spare);
    }
}

/// Sorts along a dim, stably. Inputs `[x]`; outputs `[values, indices]`: dtype of `x`, i64. Attrs `[dim, descending]`.
/// NaN comes last, or first when descending, as in PyTorch.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn sort(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { sorted(call, Some(&call.outputs[0]), Some(&call.outputs[1])) }
}

/// The indices of [`sort`]. Inputs `[x]`; outputs `[indices]`. Attrs `[dim, descending]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn argsort(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { sorted(call, None, Some(&call.outputs[0])) }
}

unsafe fn sorted(call: &Call<'_>, values: Option<&RawView>, indices: Option<&RawView>) {
    let (x, descending, d) = (&call.inputs[0], flag(call, 1), dim(call, 0));
    let (Some(first), Some(second)) = (values.or(indices), indices.or(values)) else { return };
    by_key!(x.dtype, kind => {
        each_row(kind, x, [first, second], d, call.threads, &|row, at, [pairs, spare], threads| {
            // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; rows of the outputs are
            // distinct, and ranges of a row are.
            unsafe { row.order(descending, pairs, spare, threads) };
            let pairs: &[_] = pairs;
            threads.split(row.length, 16 * 1024, |range| {
                let (start, pairs) = (range.start as isize, &pairs[range]);
                // SAFETY: both outputs have a row for each row of `x`, and threads have ranges of it of their own.
                unsafe {
                    if let Some(values) = values {
                        let step = extent(values, d).1;
                        let to = Ptr::<u8>::of(values).at((at[0] + start * step) * row.kind.bytes);
                        row.store(pairs, descending, to, step);
                    }
                    if let Some(indices) = indices {
                        let step = extent(indices, d).1;
                        write_positions(row, pairs, Ptr::of(indices).at(at[1] + start * step), step);
                    }
                }
            });
        })
    })
}

/// Writes the positions of pairs, with a stride of `step`.
unsafe fn write_positions<K: Key>(_: &Row<'_, K>, pairs: &[K::Pair], out: *mut i64, step: isize) {
    for (i, &pair) in pairs.iter().enumerate() {
        // SAFETY: whoever calls this gives room for `pairs.len()` numbers `step` apart.
        unsafe { *out.offset(i as isize * step) = K::unpair(pair).1 as i64 };
    }
}

/// The work for a row. Arguments: the row of `x`, offsets of the rows of the outputs, two buffers, threads.
type Work<'a, K> = dyn Fn(&Row<'_, K>, [isize; 2], &mut [Vec<<K as Key>::Pair>; 2], &Threads) + Sync + 'a;

/// Calls `work` for each row along dim `d`: rows in parallel if there are enough, else one after the other with all
/// threads.
fn each_row<K: Key>(
    kind: &Kind<K>,
    x: &RawView,
    outputs: [&RawView; 2],
    d: usize,
    threads: &Threads,
    work: &Work<'_, K>,
) {
    let (length, stride) = extent(x, d);
    let others = |view: &RawView| {
        let mut strides = without(&view.strides, d);
        strides.resize(x.shape.len().saturating_sub(1), 0);
        strides
    };
    let walk = StridedIter::<3>::new(&without(&x.shape, d), [&others(x), &others(outputs[0]), &others(outputs[1])]);
    let run = |which: usize, buffers: &mut [Vec<K::Pair>; 2], threads: &Threads| {
        let [f, a, b] = walk.offsets(which);
        let row = Row { kind, first: Ptr::new(Ptr::<u8>::of(x).at(f * kind.bytes)), stride, length };
        work(&row, [a, b], buffers, threads);
    };
    if walk.numel >= 2 * threads.count() || length < 32 * 1024 {
        threads.split(walk.numel, (2048 / Ord::max(length, 1)).max(1), |range| {
            let mut buffers = [Vec::new(), Vec::new()];
            range.for_each(|which| run(which, &mut buffers, &Threads::ONE));
        });
    } else {
        K::with_buffers(|buffers| (0..walk.numel).for_each(|which| run(which, buffers, threads)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, flat};

    #[test]
    fn sorts_agree_with_a_stable_sort() {
        let mut dice = Dice(71);
        for threads in [&Threads::ONE, &Threads::new(5)] {
            for (shape, d) in [
                (&[9][..], 0),
                (&[100_000], 0),
                (&[3, 4, 5], 1),
                (&[2, 5000], 1),
                (&[70, 2], 0),
                (&[3, 0], 1),
                (&[], 0),
            ] {
                for dtype in [DType::F32, DType::I8, DType::I64, DType::F16, DType::F64] {
                    let xs: Vec<f64> = (0..shape.iter().product()).map(|_| dice.below(200) as f64 - 100.0).collect();
                    let x = Owned::strided_from(dtype, shape, &xs, &mut dice);
                    let (v, i) =
                        (Owned::strided(dtype, shape, &mut dice), Owned::strided(DType::I64, shape, &mut dice));
                    for descending in [false, true] {
                        let attrs = [Attr::Int(d as i64), Attr::Bool(descending)];
                        assert_eq!(call_on(threads, sort, &[&x], &[&v, &i], &attrs), None);
                        let (vs, is) = (v.get(), i.get());
                        let start = |k: usize| shape.is_empty() || coords(k, shape)[d] == 0;
                        for first in (0..xs.len()).filter(|&k| start(k)) {
                            let n = shape.get(d).copied().unwrap_or(1);
                            let at = |l: usize| {
                                let mut c = coords(first, shape);
                                c.get_mut(d).into_iter().for_each(|c| *c = l);
                                flat(&c, shape)
                            };
                            let mut order: Vec<usize> = (0..n).collect();
                            order.sort_by(|&a, &b| {
                                let order = xs[at(a)].total_cmp(&xs[at(b)]);
                                if descending { order.reverse() } else { order }
                            });
                            assert!(
                                (0..n).all(|l| is[at(l)] == order[l] as f64 && vs[at(l)] == xs[at(order[l])]),
                                "{dtype} {shape:?}"
                            );
                        }
                        assert_eq!(call_on(threads, argsort, &[&x], &[&i], &attrs), None);
                        assert!(i.get() == is);
                    }
                }
            }
        }
    }

    #[test]
    fn nan_and_zeros_are_pytorchs() {
        let x = Owned::from(DType::F32, &[6], &[3., f64::NAN, -0.0, f64::NAN, 0.0, 5.]);
        let (v, i) = (Owned::dense(DType::F32, &[6]), Owned::dense(DType::I64, &[6]));
        sample::call(sort, &[&x], &[&v, &i], &[Attr::Int(0), Attr::Bool(true)]);
        // torch.sort(x, descending=True, stable=True)
        assert_eq!(i.get(), [1., 3., 5., 0., 2., 4.]);
        assert!(v.get()[4].is_sign_negative() && v.get()[5].is_sign_positive() && v.get()[0].is_nan());
        sample::call(sort, &[&x], &[&v, &i], &[Attr::Int(0), Attr::Bool(false)]);
        assert_eq!(i.get(), [2., 4., 0., 5., 1., 3.]);
    }
}
