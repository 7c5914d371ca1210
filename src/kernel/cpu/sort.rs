//! Sorting along a dim.
//!
//! Every element becomes a pair: an unsigned key of the same order, and its position. Pairs are distinct, so every order
//! here is stable and unique, whatever the method and the number of threads: a comparison sort for short rows, a
//! radix sort from the lowest digit for long ones. NaN is the largest; -0 equals 0. What selects without sorting is in
//! `pick.rs`.

pub mod pick;
pub mod unique;

use super::element::{Element, Key, by_dtype};
use super::walk::{Ptr, Walk, dim, extent, flag, without};
use crate::kernel::abi::{Call, RawView, Threads};

/// Bound: rows up to this length are sorted by comparison, which needs no second buffer and no tables.
const SHORT: usize = 512;
/// Bits of a digit. Cost: three passes over 32-bit keys; the 2048 counters and write positions stay in cache.
const DIGIT: u32 = 11;

type Pair<T> = <<T as Element>::Key as Key>::Pair;

#[inline(always)]
fn unpair<T: Element>(pair: Pair<T>) -> (T::Key, u32) {
    T::Key::unpair(pair)
}

/// Positions in pairs have 32 bits: a longer row (of at least 4 GiB) cannot be sorted, and `infer` refuses it.
pub const LONGEST_ROW: usize = u32::MAX as usize;

/// A row of a view: its first element and the stride along it.
#[derive(Clone, Copy)]
struct Row<T> {
    first: Ptr<T>,
    stride: isize,
    length: usize,
}

impl<T: Element> Row<T> {
    /// # Safety
    /// The row exists and `i` lies in it.
    #[inline(always)]
    unsafe fn get(&self, i: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.first.at(i as isize * self.stride) }
    }

    #[inline(always)]
    unsafe fn pair(&self, i: usize, descending: bool) -> Pair<T> {
        // SAFETY: the caller's promise.
        let key = unsafe { self.get(i) }.key();
        (if descending { key.invert() } else { key }).pair(i as u32)
    }

    /// All pairs in order, in `pairs`; `spare` is a second buffer.
    unsafe fn order(&self, descending: bool, pairs: &mut Vec<Pair<T>>, spare: &mut Vec<Pair<T>>, threads: &Threads) {
        let n = self.length;
        pairs.clear();
        if n <= SHORT {
            // SAFETY: the row has n elements.
            pairs.extend((0..n).map(|i| unsafe { self.pair(i, descending) }));
            pairs.sort_unstable();
            return;
        }
        reserve(pairs, n);
        let to = Ptr::new(pairs.as_mut_ptr());
        threads.split(n, 16 * 1024, |range| {
            // SAFETY: the buffer has room for n; each place is written once.
            range.for_each(|i| unsafe { to.at(i as isize).write(self.pair(i, descending)) });
        });
        // SAFETY: all n were written.
        unsafe { pairs.set_len(n) };
        radix::<T::Key>(pairs, spare, threads);
    }
}

/// Room for `n` more, in huge pages when it is large.
/// Cost: fresh memory is a third of the time of sorting 10^6 elements with small pages, a tenth with huge ones.
fn reserve<P>(list: &mut Vec<P>, n: usize) {
    let had = list.capacity();
    list.reserve(n);
    #[cfg(target_os = "linux")]
    if list.capacity() != had && n * size_of::<P>() >= 4 << 20 {
        const PAGE: usize = 4096;
        let start = (list.as_ptr() as usize).next_multiple_of(PAGE);
        let end = (list.as_ptr() as usize + list.capacity() * size_of::<P>()) / PAGE * PAGE;
        // SAFETY: pages of our own allocation; the advice changes no contents, and its failure does no harm.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Sorts pairs by their keys, from the lowest digit up; each pass is stable, so equal keys keep their positions' order.
fn radix<K: Key>(pairs: &mut Vec<K::Pair>, spare: &mut Vec<K::Pair>, threads: &Threads) {
    const SIZE: usize = 1 << DIGIT;
    let n = pairs.len();
    spare.clear();
    reserve(spare, n);
    let parts = Ord::min(threads.count(), n.div_ceil(64 * 1024));
    let part = |p: usize| n * p / parts..n * (p + 1) / parts;
    let mut tables = vec![[0usize; SIZE]; parts];
    for shift in (0..K::BITS).step_by(DIGIT as usize) {
        let digit = |pair: K::Pair| K::unpair(pair).0.digit(shift, SIZE as u32 - 1);
        let (from, to) = (Ptr::new(pairs.as_mut_ptr()), Ptr::new(spare.as_mut_ptr()));
        let counts = Ptr::new(tables.as_mut_ptr());
        threads.split(parts, 1, |range| {
            for p in range {
                // SAFETY: each part has its own table; the pairs are only read.
                unsafe {
                    let table = &mut *counts.at(p as isize);
                    table.fill(0);
                    part(p).for_each(|i| table[digit(*from.at(i as isize))] += 1);
                }
            }
        });
        // Where each part's run of each digit begins.
        let (mut sum, mut trivial) = (0, false);
        for d in 0..SIZE {
            let before = sum;
            for table in tables.iter_mut() {
                (table[d], sum) = (sum, sum + table[d]);
            }
            trivial |= sum - before == n;
        }
        if trivial {
            continue;
        }
        let starts = Ptr::new(tables.as_mut_ptr());
        threads.split(parts, 1, |range| {
            for p in range {
                // SAFETY: the starts divide the spare buffer among parts and digits; each place is written once.
                unsafe {
                    let table = &mut *starts.at(p as isize);
                    for i in part(p) {
                        let pair = *from.at(i as isize);
                        let next = &mut table[digit(pair)];
                        to.at(*next as isize).write(pair);
                        *next += 1;
                    }
                }
            }
        });
        // SAFETY: all n were written.
        unsafe { spare.set_len(n) };
        std::mem::swap(pairs, spare);
    }
}

/// Sorts along a dim, keeping the order of equals. Inputs `[x]`; outputs `[values, indices]`: dtype of `x`, i64. Attrs `[dim,
/// descending]`. NaN comes last, or first when descending, as in PyTorch.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn sort(call: &Call<'_>) {
    // SAFETY: passed on.
    unsafe { sorted(call, Some(&call.outputs[0]), Some(&call.outputs[1])) }
}

/// The indices of [`sort`]. Inputs `[x]`; outputs `[indices]`. Attrs `[dim, descending]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn argsort(call: &Call<'_>) {
    // SAFETY: passed on.
    unsafe { sorted(call, None, Some(&call.outputs[0])) }
}

/// The values of [`sort`] (`msort` with dim 0). Inputs `[x]`; outputs `[values]`. Attrs `[dim, descending]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn sort_values(call: &Call<'_>) {
    // SAFETY: passed on.
    unsafe { sorted(call, Some(&call.outputs[0]), None) }
}

unsafe fn sorted(call: &Call<'_>, values: Option<&RawView>, indices: Option<&RawView>) {
    let (x, descending) = (&call.inputs[0], flag(call, 1));
    let (first, second) = (values.or(indices), indices.or(values));
    let (Some(first), Some(second)) = (first, second) else { return };
    // SAFETY: passed on; rows of the outputs are distinct.
    by_dtype!(x.dtype, T => unsafe {
        each_row::<T>(x, [first, second], dim(call, 0), call.threads, |row, at, buffers, threads| {
            let [pairs, spare] = buffers;
            row.order(descending, pairs, spare, threads);
            let pairs: &[Pair<T>] = pairs;
            threads.split(row.length, 16 * 1024, |range| {
                let d = dim(call, 0);
                for i in range {
                    let (key, position) = unpair::<T>(pairs[i]);
                    if let Some(values) = values {
                        let (to, step) = (Ptr::<T>::of(values), extent(values, d).1);
                        *to.at(at[0] + i as isize * step) = value_of(row, key, position, descending);
                    }
                    if let Some(indices) = indices {
                        let (to, step) = (Ptr::<i64>::of(indices), extent(indices, d).1);
                        *to.at(at[1] + i as isize * step) = position as i64;
                    }
                }
            });
        })
    })
}

/// The element that a pair was made from. Reading it back from its key spares a random access; zeros and NaNs alone
/// do not come back from their keys bit for bit.
#[inline(always)]
unsafe fn value_of<T: Element>(row: &Row<T>, key: T::Key, position: u32, descending: bool) -> T {
    let value = T::from_key(if descending { key.invert() } else { key });
    // SAFETY: the position lies in the row.
    if value == T::ZERO || value.is_nan() { unsafe { row.get(position as usize) } } else { value }
}

/// Calls `work(row of x, offsets of the rows of the outputs, two buffers, threads)` for each row along dim `d`: rows in parallel
/// when there are enough, else one after the other with all threads.
unsafe fn each_row<T: Element>(
    x: &RawView,
    outputs: [&RawView; 2],
    d: usize,
    threads: &Threads,
    work: impl Fn(&Row<T>, [isize; 2], &mut [Vec<Pair<T>>; 2], &Threads) + Sync,
) {
    let (length, stride) = extent(x, d);
    let others = |view: &RawView| {
        let mut strides = without(&view.strides, d);
        strides.resize(x.shape.len().saturating_sub(1), 0);
        strides
    };
    let walk = Walk::<3>::new(&without(&x.shape, d), [&others(x), &others(outputs[0]), &others(outputs[1])]);
    let run = |which: usize, buffers: &mut [Vec<Pair<T>>; 2], threads: &Threads| {
        let [f, a, b] = walk.offsets(which);
        let row = Row { first: Ptr::new(Ptr::<T>::of(x).at(f)), stride, length };
        work(&row, [a, b], buffers, threads);
    };
    if walk.numel >= 2 * threads.count() || length < 32 * 1024 {
        threads.split(walk.numel, (2048 / Ord::max(length, 1)).max(1), |range| {
            let mut buffers = [Vec::new(), Vec::new()];
            range.for_each(|which| run(which, &mut buffers, &Threads::ONE));
        });
    } else {
        let mut buffers = [Vec::new(), Vec::new()];
        (0..walk.numel).for_each(|which| run(which, &mut buffers, threads));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::cpu::walk::sample::{self, Dice, Owned, call_on, coords, flat};

    #[test]
    fn sorts_agree_with_a_stable_sort() {
        let mut dice = Dice(71);
        for threads in [&Threads::ONE, &Threads::new(3)] {
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
                                c.iter_mut().nth(d).into_iter().for_each(|c| *c = l);
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
                        assert_eq!(call_on(threads, sort_values, &[&x], &[&v], &attrs), None);
                        assert!(v.get() == vs);
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
