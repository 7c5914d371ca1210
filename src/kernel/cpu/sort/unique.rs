//! Distinct elements, or distinct slices along a dim.
//!
//! The result's size depends on data. Outputs are made for the worst case, and the number that is valid is an
//! output too: a count phase would have to sort, and sort again for the fill.

use super::Row;
use super::pick::flattened;
use crate::base::attr::Attr;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::cpu::copy::copy_view;
use crate::kernel::cpu::element::{Element, by_dtype};
use crate::kernel::cpu::walk::{Ptr, dim, flag, narrow, shifted};

/// `torch.unique` and `torch.unique_consecutive`. Inputs `[x]`; outputs `[values, inverse, counts, number]`, contiguous, the last three i64.
/// Attrs `[dim, consecutive]`.
///
/// Without a dim (`None`): values `[n]` for the n elements of `x`, inverse of the shape of `x`, counts `[n]`. With a dim of
/// size n: values of the shape of `x`, inverse `[n]`, counts `[n]`; slices are compared element by element in row-major order.
/// `number` has shape `[1]`: as many entries of values (along the dim) and counts are valid. Ascending order, or with
/// `consecutive` the order of `x`, in which only neighbours are compared. Each NaN is distinct.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn unique(call: &Call<'_>) {
    let (x, consecutive) = (&call.inputs[0], flag(call, 1));
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(|k| &call.outputs[k]);
    let mut memory = Vec::new();
    let whole = matches!(call.attrs.first(), None | Some(Attr::None)) || x.shape.is_empty();
    // SAFETY: passed on; the outputs are as large as the worst case.
    unsafe {
        let (inverse, counts) = (inverse.slice_mut::<i64>(), counts.slice_mut::<i64>());
        let firsts = if whole {
            let flat = flattened(x, &mut memory, call.threads);
            by_dtype!(x.dtype, T => {
                let row = Row::<T> { first: Ptr::of(&flat), stride: 1, length: flat.numel() };
                let order = if consecutive { None } else { Some(positions(&row, call.threads)) };
                let all = flat.slice::<T>();
                let firsts = runs(all.len(), order, |a, b| all[a] == all[b], inverse, counts);
                let to = values.slice_mut::<T>();
                firsts.iter().zip(to).for_each(|(&first, to)| *to = all[first]);
                firsts
            })
        } else {
            slices(call, x, values, inverse, counts, consecutive)
        };
        *number.ptr.cast::<i64>() = firsts.len() as i64;
    }
}

/// Positions of a row in ascending order of its elements.
unsafe fn positions<T: Element>(row: &Row<T>, threads: &Threads) -> Vec<usize> {
    let (mut pairs, mut spare) = (Vec::new(), Vec::new());
    // SAFETY: passed on.
    unsafe { row.order(false, &mut pairs, &mut spare, threads) };
    pairs.into_iter().map(|pair| super::unpair::<T>(pair).1 as usize).collect()
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
    // SAFETY: passed on; a slice of the output is written from a slice of the input.
    unsafe {
        let flat = flattened(&front, &mut memory, call.threads);
        let m = flat.numel() / Ord::max(n, 1);
        let firsts = by_dtype!(x.dtype, T => {
            let all = flat.slice::<T>();
            let slice = |i: usize| &all[i * m..][..m];
            let order = (!consecutive).then(|| {
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| {
                    let differ = slice(a).iter().zip(slice(b)).map(|(x, y)| x.key().cmp(&y.key()));
                    differ.into_iter().find(|c| c.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
                });
                order
            });
            runs(n, order, |a, b| slice(a) == slice(b), inverse, counts)
        });
        for (place, &first) in firsts.iter().enumerate() {
            copy_view(&narrow(x, d, first, 1), &narrow(values, d, place, 1), call.threads);
        }
        firsts
    }
}

/// Numbers the runs of equal neighbours in `order` (that of the positions when `None`); the first position of each run.
fn runs(
    n: usize,
    order: Option<Vec<usize>>,
    equal: impl Fn(usize, usize) -> bool,
    inverse: &mut [i64],
    counts: &mut [i64],
) -> Vec<usize> {
    let at = |rank: usize| order.as_ref().map_or(rank, |order| order[rank]);
    let mut firsts: Vec<usize> = Vec::new();
    for rank in 0..n {
        let position = at(rank);
        if rank == 0 || !equal(at(rank - 1), position) {
            counts[firsts.len()] = 0;
            firsts.push(position);
        }
        counts[firsts.len() - 1] += 1;
        inverse[position] = firsts.len() as i64 - 1;
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::cpu::walk::sample::{Dice, Owned, call};

    fn check(x: &Owned, d: Option<usize>, consecutive: bool, values: &[f64], inverse: &[f64], counts: &[f64]) {
        let n = d.map_or(x.view.numel(), |d| x.view.shape[d]);
        let whole = [n];
        let shape: &[usize] = if d.is_some() { &x.view.shape } else { &whole };
        let places: &[usize] = if d.is_some() { &whole } else { &x.view.shape };
        let v = Owned::dense(x.view.dtype, shape);
        let (i, c) = (Owned::dense(DType::I64, places), Owned::dense(DType::I64, &whole));
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
