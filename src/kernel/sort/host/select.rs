//! Selections that need no sorted row: topk, kthvalue, median, mode.

use super::{Row, by_key, each_row, ties, write_positions};
use crate::base::attr::Attr;
use crate::base::dtype::Scalar;
use crate::base::layout::contiguous_strides;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::copy::host::{copy_view, scalar_bytes};
use crate::kernel::guard;
use crate::kernel::host::element::Key;
use crate::kernel::host::walk::{Ptr, dim, extent, flag, int};
use parking_lot::Mutex;

/// The k largest (or smallest) along a dim, the first in order first; of equal elements those that PyTorch selects.
/// Inputs `[x]`; outputs `[values, indices]` with k in `dim`: dtype of `x`, i64. Attrs `[k, dim, largest]`. NaN is the
/// largest. Used for `sorted: false`, too.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn topk(call: &Call<'_>) {
    let (x, values, indices) = (&call.inputs[0], &call.outputs[0], &call.outputs[1]);
    let (d, largest) = (dim(call, 1), flag(call, 2));
    let (k, value_step) = extent(values, d);
    let index_step = extent(indices, d).1;
    if k == 0 {
        return;
    }
    by_key!(x.dtype, kind => {
        each_row(kind, x, [values, indices], d, call.threads, &|row, at, _, threads| {
            // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; rows of the outputs are
            // distinct.
            unsafe {
                let pairs = topk_pairs(row, k, largest, threads);
                row.store(&pairs, largest, Ptr::<u8>::of(values).at(at[0] * row.kind.bytes), value_step);
                write_positions(row, &pairs, Ptr::of(indices).at(at[1]), index_step);
            }
        })
    })
}

fn less<K: Key>(a: &K::Pair, b: &K::Pair) -> bool {
    K::unpair(*a).0 < K::unpair(*b).0
}

fn tie<K: Key>(pairs: &[K::Pair]) -> bool {
    pairs.windows(2).any(|pair| K::unpair(pair[0]).0 == K::unpair(pair[1]).0)
}

/// The first k pairs of a row in sorted order. If elements are equal, among them or to the next one, PyTorch's
/// algorithm decides.
unsafe fn topk_pairs<K: Key>(row: &Row<'_, K>, k: usize, descending: bool, threads: &Threads) -> Vec<K::Pair> {
    // SAFETY: the row is one of `each_row`, over a view that is valid for reading.
    let mut first = unsafe { smallest_pairs(row, Ord::min(k + 1, row.length), descending, threads) };
    if tie::<K>(&first) {
        let mut all = guard::with_capacity(row.length);
        // SAFETY: the row has `length` elements, and all of them are read.
        unsafe { row.load(0..row.length, descending, &mut all) };
        if k * 64 <= row.length {
            ties::partial_sort(&mut all, k, less::<K>);
        } else {
            ties::nth_element(&mut all, k - 1, less::<K>);
            ties::sort(&mut all[..k - 1], less::<K>);
        }
        first = all;
    }
    first.truncate(k);
    first
}

/// The k smallest pairs of a row in order. Each thread has a short list of candidates and a threshold; almost every
/// element is rejected by one comparison.
unsafe fn smallest_pairs<K: Key>(row: &Row<'_, K>, k: usize, descending: bool, threads: &Threads) -> Vec<K::Pair> {
    let all = Mutex::new(Vec::new());
    threads.split(row.length, Ord::max(32 * 1024, 2 * k), |range| {
        let room = Ord::min(range.len(), Ord::max(4 * k, 64));
        let (mut list, mut some): (Vec<K::Pair>, Vec<K::Pair>) = (guard::with_capacity(room), Vec::with_capacity(512));
        let mut limit: Option<K::Pair> = None;
        for start in range.clone().step_by(512) {
            some.clear();
            // SAFETY: `start..` up to the end of `range` lies inside the row.
            unsafe { row.load(start..Ord::min(start + 512, range.end), descending, &mut some) };
            for &pair in &some {
                if limit.is_some_and(|limit| pair > limit) {
                    continue;
                }
                list.push(pair);
                if list.len() == room && room > k {
                    limit = Some(*list.select_nth_unstable(k - 1).1);
                    list.truncate(k);
                }
            }
        }
        let mut all = all.lock();
        guard::reserve(&mut all, list.len());
        all.append(&mut list);
    });
    let mut all = all.into_inner();
    if all.len() > k {
        all.select_nth_unstable(k - 1);
        all.truncate(k);
    }
    all.sort_unstable();
    all
}

/// The k-th smallest (k from 1) along a dim. Inputs `[x]`; outputs `[values, indices]` with size 1 in `dim`, or without
/// it. Attrs `[k, dim]`. Of equal elements it is the one that PyTorch's quickselect returns.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn kthvalue(call: &Call<'_>) {
    let k = int(call, 0).max(1) as usize - 1;
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { pick(call, 1, Rank::Kth(k)) }
}

/// The lower of the two middle elements along a dim; NaN if the row has one, at the first one's index. Inputs `[x]`;
/// outputs `[values, indices]` or `[values]`, with size 1 in the dim or without it. Attrs `[dim]`; `None`: the median
/// of all elements, with row-major positions as indices; that of an empty tensor is NaN (0 for integers).
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn median(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { pick(call, 0, Rank::Median) }
}

/// As [`median`], ignoring NaN; NaN at index 0 if all elements are NaN.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn nanmedian(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { pick(call, 0, Rank::NanMedian) }
}

/// The most frequent element along a dim, the smallest of equally frequent ones, with the index that PyTorch's sort
/// puts last. Inputs, outputs and attrs as [`median`]. Each NaN is an element of its own.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn mode(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { pick(call, 0, Rank::Mode) }
}

#[derive(Clone, Copy)]
enum Rank {
    Kth(usize),
    Median,
    NanMedian,
    Mode,
}

unsafe fn pick(call: &Call<'_>, dim_attr: usize, rank: Rank) {
    let (mut x, values) = (call.inputs[0].clone(), &call.outputs[0]);
    let indices = call.outputs.get(1);
    let mut memory = Vec::new();
    let whole = matches!(call.attrs.get(dim_attr), None | Some(Attr::None));
    if whole {
        // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee
        // asks for.
        x = unsafe { flattened(&x, &mut memory, call.threads) };
    }
    let d = if whole { 0 } else { dim(call, dim_attr) };
    // Outputs without the dim get it back with size 1, so that rows have the same dims.
    let with_dim = |view: &RawView| {
        let mut view = view.clone();
        if view.shape.len() < x.shape.len() {
            view.shape.insert(d, 1);
            view.strides.insert(d, 0);
        }
        view
    };
    let outputs = [with_dim(values), with_dim(indices.unwrap_or(values))];
    let mut fill = [0u8; 8];
    if x.dtype.is_float() {
        fill = scalar_bytes(Scalar::Float(f64::NAN), x.dtype);
    }
    let size = x.dtype.size_bytes();
    by_key!(x.dtype, kind => {
        each_row(kind, &x, [&outputs[0], &outputs[1]], d, call.threads, &|row, at, [pairs, _], _| {
            // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; rows of the outputs are
            // distinct.
            unsafe {
                let to = Ptr::<u8>::of(values).at(at[0] * size as isize);
                let (from, position) = if row.length == 0 {
                    (fill.as_ptr(), 0)
                } else {
                    let position = chosen(row, rank, pairs);
                    (row.first.at(position as isize * row.stride * size as isize).cast_const(), position)
                };
                std::ptr::copy_nonoverlapping(from, to, size);
                if let Some(indices) = indices {
                    *Ptr::<i64>::of(indices).at(at[1]) = position as i64;
                }
            }
        })
    })
}

unsafe fn chosen<K: Key>(row: &Row<'_, K>, rank: Rank, pairs: &mut Vec<K::Pair>) -> usize {
    let n = row.length;
    let is_nan = |key: K| row.kind.nan == Some(key);
    if let Rank::Mode = rank {
        pairs.clear();
        // SAFETY: the row has `n` elements, and all of them are read.
        unsafe { row.load(0..n, false, pairs) };
        ties::sort(pairs, less::<K>);
        let (mut mode, mut longest, mut start) = (0, 0, 0);
        for end in 1..=n {
            let (key, _) = K::unpair(pairs[start]);
            if end == n || K::unpair(pairs[end]).0 != key || is_nan(key) {
                if end - start > longest {
                    (mode, longest) = (K::unpair(pairs[end - 1]).1 as usize, end - start);
                }
                start = end;
            }
        }
        return mode;
    }
    pairs.clear();
    // SAFETY: the row has `n` elements, and all of them are read.
    unsafe { row.load(0..n, false, pairs) };
    let nans = if row.kind.nan.is_some() { pairs.iter().filter(|&&pair| is_nan(K::unpair(pair).0)).count() } else { 0 };
    let k = match rank {
        Rank::Kth(k) => Ord::min(k, n - 1),
        Rank::NanMedian if nans < n => (n - nans - 1) / 2,
        // NaNs are last, in order of position: this is the first of them.
        Rank::Median | Rank::NanMedian if nans > 0 => n - nans,
        _ => (n - 1) / 2,
    };
    let chosen = *pairs.select_nth_unstable(k).1;
    let key = K::unpair(chosen).0;
    if matches!(rank, Rank::Kth(_)) && pairs.iter().filter(|&&pair| K::unpair(pair).0 == key).count() > 1 {
        pairs.clear();
        // SAFETY: the row has `n` elements, and all of them are read.
        unsafe { row.load(0..n, false, pairs) };
        ties::quick_select(pairs, k, less::<K>);
        return K::unpair(pairs[k]).1 as usize;
    }
    K::unpair(chosen).1 as usize
}

/// The elements in row-major order: the view itself if it is contiguous, else a copy in `memory`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], for the one input.
pub(super) unsafe fn flattened(x: &RawView, memory: &mut Vec<u64>, threads: &Threads) -> RawView {
    let mut flat = RawView::contiguous(x.ptr, x.dtype, &[x.numel()]);
    if !x.is_contiguous() {
        let words = x.numel() * x.dtype.size_bytes() / 8 + 1;
        guard::reserve(memory, words.saturating_sub(memory.len()));
        memory.resize(words, 0);
        flat.ptr = memory.as_mut_ptr().cast();
        let to = RawView { shape: x.shape.clone(), strides: contiguous_strides(&x.shape), ..flat.clone() };
        // SAFETY: `x` is valid for reading (this function's contract); `memory` is ours and large enough.
        unsafe { copy_view(x, &to, threads) };
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::abi::HostFn;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, values};

    const NAN: f64 = f64::NAN;

    #[test]
    fn topk_agrees_with_a_sort() {
        let mut dice = Dice(81);
        for threads in [&Threads::ONE, &Threads::new(3)] {
            for (rows, n, k) in [(1, 200_000, 100), (1, 100_000, 60_000), (5, 40, 40), (3, 3000, 1), (4, 7, 0)] {
                let xs: Vec<f64> = (0..rows * n).map(|_| dice.below(1 << 16) as f64).collect();
                let x = Owned::strided_from(DType::F32, &[rows, n], &xs, &mut dice);
                let (v, i) = (
                    Owned::strided(DType::F32, &[rows, k], &mut dice),
                    Owned::strided(DType::I64, &[rows, k], &mut dice),
                );
                for largest in [true, false] {
                    let attrs = [Attr::Int(k as i64), Attr::Int(1), Attr::Bool(largest)];
                    assert_eq!(call_on(threads, topk, &[&x], &[&v, &i], &attrs), None);
                    for r in 0..rows {
                        let row = &xs[r * n..][..n];
                        let mut order: Vec<usize> = (0..n).collect();
                        order.sort_by(|&a, &b| {
                            let order = row[a].total_cmp(&row[b]);
                            if largest { order.reverse() } else { order }
                        });
                        let mut positions: Vec<usize> = i.get()[r * k..][..k].iter().map(|&i| i as usize).collect();
                        assert!(positions.iter().zip(&order).all(|(&place, &i)| row[place] == row[i]));
                        positions.sort();
                        positions.dedup();
                        assert_eq!(positions.len(), k);
                        assert!(v.get()[r * k..][..k].iter().zip(&order).all(|(v, &i)| *v == row[i]));
                    }
                }
            }
        }
    }

    #[test]
    fn picks_are_pytorchs() {
        let check = |kernel: HostFn, x: &[f64], attrs: &[Attr], value: f64, index: f64| {
            let input = Owned::from(DType::F32, &[x.len()], x);
            let (v, i) = (Owned::dense(DType::F32, &[]), Owned::dense(DType::I64, &[1]));
            sample::call(kernel, &[&input], &[&v, &i], attrs);
            assert!(v.get()[0] == value || (value.is_nan() && v.get()[0].is_nan()), "{x:?}");
            assert_eq!(i.get(), [index], "{x:?}");
        };
        let d0 = [Attr::Int(0)];
        check(median, &[1., 1., 1., 1.], &d0, 1., 1.);
        check(median, &[3., 1., 1., 2., 1., 5., 2.], &d0, 2., 3.);
        check(median, &[1., NAN, 2., NAN], &d0, NAN, 1.);
        check(nanmedian, &[NAN, 1., 2., NAN, 3., 4.], &d0, 2., 2.);
        check(nanmedian, &[NAN, NAN], &d0, NAN, 0.);
        check(mode, &[3., 1., 1., 2., 3., 5.], &d0, 1., 2.);
        check(mode, &[2., 2., 1., 1.], &d0, 1., 3.);
        check(kthvalue, &[3., NAN, 1., 2., 3., 5.], &[Attr::Int(6), Attr::Int(0)], NAN, 1.);
        check(kthvalue, &[3., NAN, 1., 2., 3., 5.], &[Attr::Int(2), Attr::Int(0)], 2., 3.);
        check(median, &[], &[Attr::None], NAN, 0.);
    }

    #[test]
    fn median_of_everything_and_of_columns() {
        let mut dice = Dice(82);
        let xs = values(35, &mut dice);
        let x = Owned::strided_from(DType::I32, &[5, 7], &xs, &mut dice);
        let (all, columns) = (Owned::dense(DType::I32, &[]), Owned::strided(DType::I32, &[7], &mut dice));
        sample::call(median, &[&x], &[&all], &[Attr::None]);
        let middle = |mut list: Vec<f64>| {
            list.sort_by(f64::total_cmp);
            list[(list.len() - 1) / 2]
        };
        assert_eq!(all.get(), [middle(xs.clone())]);
        sample::call(median, &[&x], &[&columns], &[Attr::Int(0)]);
        let expected: Vec<f64> = (0..7).map(|c| middle((0..5).map(|r| xs[r * 7 + c]).collect())).collect();
        assert_eq!(columns.get(), expected);
    }
}
