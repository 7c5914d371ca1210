//! Unique elements, or unique slices along a dim.
//!
//! The size of the result depends on data. Outputs have the size of the worst case, and the number of valid elements is
//! an output too: a separate count phase would have to sort, too.

use super::select::flattened;
use super::{Row, by_key};
use crate::base::attr::Attr;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::copy::host::copy_view;
use crate::kernel::guard;
use crate::kernel::host::element::{Element, Key, by_dtype};
use crate::kernel::host::staging::Scratch;
use crate::kernel::host::walk::{Ptr, dim, flag, narrow, shifted};

/// Bound: comparisons, or copies of slices, between two calls of `guard::check`.
const LOOKS: usize = 4096;

/// `torch.unique` and `torch.unique_consecutive`. Inputs `[x]`; outputs `[values, inverse, counts, number]`, contiguous, the last three i64.
/// Attrs `[dim, consecutive]`.
///
/// Without a dim (`None`): values `[n]` for the n elements of `x`, inverse of the shape of `x`, counts `[n]`; of the last two
/// `[0]` where they are not wanted. With a dim of
/// size n: values of the shape of `x`, inverse `[n]`, counts `[n]`; slices are compared element by element in row-major order.
/// `number` has shape `[1]`: as many entries of values (along the dim) and counts are valid. Ascending order, or with
/// `consecutive` the order of `x`, in which only neighbors are compared. Each NaN is distinct.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn unique(call: &Call<'_>) {
    let (x, consecutive) = (&call.inputs[0], flag(call, 1));
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(|k| &call.outputs[k]);
    let mut memory = Vec::new();
    let whole = matches!(call.attrs.first(), None | Some(Attr::None)) || x.shape.is_empty();
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the outputs are as large as the worst
    // case.
    unsafe {
        // Of elements, those of the two that nobody wants have no size.
        let unwanted = |view: &RawView| Scratch::<i64>::new(if whole && view.numel() == 0 { x.numel() } else { 0 });
        let (mut no_inverse, mut no_counts) = (unwanted(inverse), unwanted(counts));
        let inverse = if no_inverse.is_empty() { inverse.slice_mut::<i64>() } else { &mut no_inverse[..] };
        let counts = if no_counts.is_empty() { counts.slice_mut::<i64>() } else { &mut no_counts[..] };
        if whole && consecutive {
            let flat = flattened(x, &mut memory, call.threads);
            let found = by_dtype!(x.dtype, T => neighbors(flat.slice::<T>(), values.slice_mut::<T>(), inverse, counts));
            *number.ptr.cast::<i64>() = found as i64;
            return;
        }
        let firsts = if whole {
            let flat = flattened(x, &mut memory, call.threads);
            let (firsts, size) = (elements(&flat, call.threads, inverse, counts), x.dtype.size_bytes());
            let (from, to) = (Ptr::<u8>::of(&flat), Ptr::<u8>::of(values));
            for (place, &first) in firsts.iter().enumerate() {
                std::ptr::copy_nonoverlapping(from.at((first * size) as isize), to.at((place * size) as isize), size);
            }
            firsts
        } else {
            slices(call, x, values, inverse, counts, consecutive)
        };
        *number.ptr.cast::<i64>() = firsts.len() as i64;
    }
}

/// Numbers the distinct elements of a contiguous row; returns the first position of each.
unsafe fn elements(flat: &RawView, threads: &Threads, inverse: &mut [i64], counts: &mut [i64]) -> Vec<usize> {
    by_key!(flat.dtype, kind => {
        let row = Row { kind, first: Ptr::of(flat), stride: 1, length: flat.numel() };
        let (mut pairs, mut spare) = (Vec::new(), Vec::new());
        // SAFETY: the row has `length` elements, all of which are read.
        unsafe { row.order(false, &mut pairs, &mut spare, threads) };
        let keys: Vec<_> = pairs.iter().map(|&pair| unpair(&row, pair)).collect();
        let same = |a: usize, b: usize| keys[a].0 == keys[b].0 && row.kind.nan != Some(keys[a].0);
        runs(keys.len(), |rank| keys[rank].1 as usize, same, inverse, counts)
    })
}

/// Elements without those that equal their neighbor before, of which the first is kept; where each went, and how many did; returns
/// their number. The loop has no branches, which data would mislead.
fn neighbors<T: Element>(x: &[T], values: &mut [T], inverse: &mut [i64], counts: &mut [i64]) -> usize {
    let Some(&first) = x.first() else { return 0 };
    (values[0], inverse[0], counts[0]) = (first, 0, 1);
    let (mut place, mut kept) = (0, first);
    for start in (1..x.len()).step_by(1 << 16) {
        guard::check();
        for i in start..x.len().min(start + (1 << 16)) {
            let is_new = x[i] != x[i - 1];
            place += is_new as usize;
            kept = if is_new { x[i] } else { kept };
            values[place] = kept;
            inverse[i] = place as i64;
            // The end of the run, as far as it is known.
            counts[place] = i as i64 + 1;
        }
    }
    for at in (1..=place).rev() {
        counts[at] -= counts[at - 1];
    }
    place + 1
}

fn unpair<K: Key>(_: &Row<'_, K>, pair: K::Pair) -> (K, u32) {
    K::unpair(pair)
}

unsafe fn slices(
    call: &Call<'_>,
    x: &RawView,
    values: &RawView,
    inverse: &mut [i64],
    counts: &mut [i64],
    consecutive: bool,
) -> Vec<usize> {
    let d = dim(call, 0);
    let n = x.shape[d];
    let mut front = shifted(x, 0, x.shape.clone(), x.strides.clone());
    let (size, stride) = (front.shape.remove(d), front.strides.remove(d));
    front.shape.insert(0, size);
    front.strides.insert(0, stride);
    let mut memory = Vec::new();
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; a slice of the output is written from a
    // slice of the input.
    unsafe {
        let flat = flattened(&front, &mut memory, call.threads);
        let m = flat.numel() / Ord::max(n, 1);
        let firsts = by_key!(x.dtype, kind => {
            let row = Row { kind, first: Ptr::of(&flat), stride: 1, length: flat.numel() };
            let mut pairs = Vec::new();
            row.load(0..row.length, false, &mut pairs);
            let slice = |i: usize| pairs[i * m..][..m].iter().map(|&pair| unpair(&row, pair).0);
            let mut order = guard::with_capacity(n);
            order.extend(0..n);
            if !consecutive {
                let mut compared = 0usize;
                // Not: a stable sort, which allocates memory without admission.
                order.sort_unstable_by(|&a, &b| {
                    compared += 1;
                    guard::check_every(compared, LOOKS);
                    slice(a).cmp(slice(b)).then(a.cmp(&b))
                });
            }
            let same = |a: usize, b: usize| {
                slice(order[a]).zip(slice(order[b])).all(|(a, b)| a == b && row.kind.nan != Some(a))
            };
            runs(n, |rank| order[rank], same, inverse, counts)
        });
        for (place, &first) in firsts.iter().enumerate() {
            guard::check_every(place, LOOKS);
            copy_view(&narrow(x, d, first, 1), &narrow(values, d, place, 1), call.threads);
        }
        firsts
    }
}

/// Numbers the runs of equal adjacent ranks; `at` is the position of a rank. Returns the first position of each run.
fn runs(
    n: usize,
    at: impl Fn(usize) -> usize,
    equal: impl Fn(usize, usize) -> bool,
    inverse: &mut [i64],
    counts: &mut [i64],
) -> Vec<usize> {
    let mut firsts: Vec<usize> = Vec::new();
    for rank in 0..n {
        guard::check_every(rank, LOOKS);
        guard::reserve(&mut firsts, 1);
        if rank == 0 || !equal(rank - 1, rank) {
            counts[firsts.len()] = 0;
            firsts.push(at(rank));
        }
        counts[firsts.len() - 1] += 1;
        inverse[at(rank)] = firsts.len() as i64 - 1;
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample::{Dice, Owned, call};

    fn check(x: &Owned, d: Option<usize>, consecutive: bool, values: &[f64], inverse: &[f64], counts: &[f64]) {
        let n = d.map_or(x.view.numel(), |d| x.view.shape[d]);
        let whole = [n];
        let shape: &[usize] = if d.is_some() { &x.view.shape } else { &whole };
        let inverse_shape: &[usize] = if d.is_some() { &whole } else { &x.view.shape };
        let v = Owned::dense(x.view.dtype, shape);
        let (i, c) = (Owned::dense(DType::I64, inverse_shape), Owned::dense(DType::I64, &whole));
        let number = Owned::dense(DType::I64, &[1]);
        let attrs = [d.map_or(Attr::None, |d| Attr::Int(d as i64)), Attr::Bool(consecutive)];
        call(unique, &[x], &[&v, &i, &c, &number], &attrs);
        assert_eq!(number.get(), [counts.len() as f64]);
        assert_eq!(format!("{:?}", &v.get()[..values.len()]), format!("{values:?}"));
        assert_eq!((&i.get()[..], &c.get()[..counts.len()]), (inverse, counts));
    }

    #[test]
    fn distinct_elements_are_pytorchs() {
        let nan = f64::NAN;
        let x = Owned::from(DType::F32, &[4], &[nan, 1., nan, 1.]);
        check(&x, None, false, &[1., nan, nan], &[1., 0., 2., 0.], &[2., 1., 1.]);
        let x = Owned::from(DType::F32, &[6], &[nan, nan, 1., 1., -0.0, 0.0]);
        check(&x, None, true, &[nan, nan, 1., -0.0], &[0., 1., 2., 2., 3., 3.], &[1., 1., 2., 2.]);
        let x = Owned::strided_from(DType::U8, &[2, 3], &[3., 1., 3., 2., 1., 3.], &mut Dice(91));
        check(&x, None, false, &[1., 2., 3.], &[2., 0., 2., 1., 0., 2.], &[2., 1., 3.]);
        check(&Owned::dense(DType::F32, &[0]), None, false, &[], &[], &[]);
    }

    #[test]
    fn distinct_slices_are_pytorchs() {
        let rows = Owned::from(DType::I64, &[3, 2], &[1., 2., 1., 2., 0., 3.]);
        check(&rows, Some(0), false, &[0., 3., 1., 2.], &[1., 1., 0.], &[1., 2.]);
        let columns = Owned::strided_from(DType::F32, &[2, 3], &[1., 1., 0., 2., 2., 3.], &mut Dice(92));
        // Values stay [2, 3] in memory, two columns valid; row-major they interleave with the unused third.
        let v = Owned::dense(DType::F32, &[2, 3]);
        v.set(&[-1.0; 6]);
        let (i, c, number) =
            (Owned::dense(DType::I64, &[3]), Owned::dense(DType::I64, &[3]), Owned::dense(DType::I64, &[1]));
        call(unique, &[&columns], &[&v, &i, &c, &number], &[Attr::Int(1), Attr::Bool(true)]);
        assert_eq!(v.get(), [1., 0., -1., 2., 3., -1.]);
        assert_eq!(number.get(), [2.]);
    }
}
