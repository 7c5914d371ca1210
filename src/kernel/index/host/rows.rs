//! Indexing by a list of positions along one dim: `index_select` and its writing forms, embeddings, one-hot.
//!
//! All use `AdvancedIndex` of the parent module with one index tensor; negative indices are invalid, as in PyTorch.

use super::{AdvancedIndex, Table, begin, index_accumulate, index_read, index_write};
use crate::base::attr::Attr;
use crate::base::dtype::Scalar;
use crate::kernel::abi::{Call, FaultKind, RawView};
use crate::kernel::copy::host::{expanded, scalar_bytes, zero};
use crate::kernel::host::element::{Element, by_dtype};
use crate::kernel::host::walk::{Ptr, StridedIter, dim, flag, read_ints, scalar, shifted};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicI64, Ordering};

/// A 0-dimensional index or tensor counts as one of size 1.
fn at_least_1d(view: &RawView) -> RawView {
    let mut view = view.clone();
    if view.shape.is_empty() {
        view.shape.push(1);
        view.strides.push(1);
    }
    view
}

/// Inputs `[x, index]`, index of shape `[n]` or `[]`; outputs `[y]` like `x` with `n` in `dim`. Attrs `[dim]`. A bad index is an
/// `Index` fault and reads 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn index_select(call: &Call<'_>) {
    let [x, index, y] = [&call.inputs[0], &call.inputs[1], &call.outputs[0]].map(at_least_1d);
    let d = dim(call, 0);
    let index = [index];
    let table = Table::new(call, &x, &index, &[d as i64], false);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { index_read(&AdvancedIndex::new(table, &x, &y, &[d as i64], d), &x, &y, call.threads) }
}

/// `y = x; y[.., index, ..] += alpha * src`. Inputs `[x, index, src]`, index of shape `[n]` or `[]`, src like `x` with `n` in
/// `dim`, same dtype; outputs `[y]` like `x`, which may be `x`. Attrs `[dim, alpha]` (alpha 1 when absent). Duplicates add in
/// order.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn index_add(call: &Call<'_>) {
    let alpha = scalar(call, 1).unwrap_or(Scalar::Int(1));
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        write(call, &call.inputs[2], |indexed, y, src| {
            let factor = (alpha.to_f64() != 1.0).then(|| scalar_bytes(alpha, y.dtype));
            index_accumulate(indexed, y, src, factor, call.threads)
        })
    }
}

/// `y = x; y[.., index, ..] = src`, the last of duplicates staying; arguments as [`index_add`]. Attrs `[dim]`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn index_copy(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { write(call, &call.inputs[2], |indexed, y, src| index_write(indexed, y, src, call.threads)) }
}

/// `y = x; y[.., index, ..] = value`. Inputs `[x, index]` or `[x, index, value]`, value 0-dimensional of the dtype of `x`;
/// outputs `[y]` like `x`, which may be `x`. Attrs `[dim, value]`; the attribute counts when there is no third input.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn index_fill(call: &Call<'_>) {
    let (x, index) = (at_least_1d(&call.inputs[0]), &call.inputs[1]);
    let mut bytes = scalar_bytes(scalar(call, 1).unwrap_or(Scalar::Int(0)), x.dtype);
    let mut value = shifted(&x, 0, SmallVec::new(), SmallVec::new());
    value.ptr = call.inputs.get(2).map_or(bytes.as_mut_ptr(), |input| input.ptr);
    let mut shape = x.shape.clone();
    shape[dim(call, 0)] = index.numel();
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; a value on our stack lives until the
    // call ends.
    unsafe { write(call, &expanded(&value, &shape), |indexed, y, src| index_write(indexed, y, src, call.threads)) }
}

unsafe fn write(call: &Call<'_>, src: &RawView, act: impl FnOnce(&AdvancedIndex<'_>, &RawView, &RawView)) {
    let [x, index, y, src] = [&call.inputs[0], &call.inputs[1], &call.outputs[0], src].map(at_least_1d);
    let d = dim(call, 0);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { begin(&x, &y, call.threads) };
    let index = [index];
    let table = Table::new(call, &y, &index, &[d as i64], false);
    act(&AdvancedIndex::new(table, &y, &src, &[d as i64], d), &y, &src);
}

/// Rows of a table: inputs `[weight, index]`, weight `[v, ..]`; outputs `[y]` of shape `index.shape + weight.shape[1..]`, dtype of
/// the weight. A bad index is an `Index` fault of dim 0 and reads 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn embedding(call: &Call<'_>) {
    let (weight, y) = (&call.inputs[0], &call.outputs[0]);
    let table = Table::new(call, weight, &call.inputs[1..2], &[0], false);
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { index_read(&AdvancedIndex::new(table, weight, y, &[0], 0), weight, y, call.threads) }
}

/// Gradient of [`embedding`] for the weight. Inputs `[g, index]`, g of shape `index.shape + [..]`; outputs `[gw]` of the weight's
/// shape, dtype of `g`. Attrs `[padding_idx, scale_grad_by_freq]`: a row that gets no gradient (`None`: none), and whether a
/// row's gradient is divided by how often it was looked up. Rows add in the order of the index.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn embedding_grad(call: &Call<'_>) {
    let (g, index, gw) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let mut table = Table::new(call, gw, &call.inputs[1..2], &[0], false);
    if let Some(Attr::Int(padding)) = call.attrs.first() {
        table.skips = Some(*padding);
    }
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        zero(gw, call.threads);
        index_accumulate(&AdvancedIndex::new(table, gw, g, &[0], 0), gw, g, None, call.threads);
        if flag(call, 1) {
            divide_by_frequency(call, index, gw);
        }
    }
}

unsafe fn divide_by_frequency(call: &Call<'_>, index: &RawView, gw: &RawView) {
    let counts: Vec<AtomicI64> = (0..gw.shape[0]).map(|_| AtomicI64::new(0)).collect();
    let walk = StridedIter::new(&index.shape, [&index.strides]);
    call.threads.split(index.numel(), 16 * 1024, |range| {
        let [stride] = walk.inner();
        walk.pieces(range, |_, [offset], n| {
            for i in 0..n as isize {
                let mut value = [0];
                // SAFETY: the walk stays inside the index. Counts are sums of ones: their order does not matter.
                unsafe { read_ints(index, offset + i * stride, stride, &mut value) };
                if let Some(count) = usize::try_from(value[0]).ok().and_then(|v| counts.get(v)) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    });
    let rows = StridedIter::<1>::new(&gw.shape[1..], [&gw.strides[1..]]);
    by_dtype!(gw.dtype, T => {
        let to = Ptr::<T>::of(gw);
        call.threads.split(counts.len(), (16 * 1024 / rows.numel.max(1)).max(1), |range| {
            for row in range {
                let count = counts[row].load(Ordering::Relaxed);
                if count > 1 {
                    let [step] = rows.inner();
                    rows.pieces(0..rows.numel, |_, [offset], n| {
                        for i in 0..n as isize {
                            let at = to.at(row as isize * gw.strides[0] + offset + i * step);
                            // SAFETY: `row` is below the number of rows of `gw`, and each row belongs to one thread.
                            unsafe { *at = T::from_f64((*at).to_f64() / count as f64) };
                        }
                    });
                }
            }
        });
    });
}

/// Inputs `[labels]`; outputs `[y]` of shape `labels.shape + [classes]`, any dtype: 1 at the label, 0 elsewhere. A label that
/// is not in `0..classes` is a `Label` fault and leaves its row 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn one_hot(call: &Call<'_>) {
    let (labels, y) = (&call.inputs[0], &call.outputs[0]);
    let mut one = scalar_bytes(Scalar::Int(1), y.dtype);
    let last = y.shape.len() - 1;
    let value = RawView { ptr: one.as_mut_ptr(), ..shifted(y, 0, SmallVec::new(), SmallVec::new()) };
    let value = expanded(&value, &labels.shape);
    // A view of `y` whose last dim is indexed; its other dims are those of the labels.
    let walk = StridedIter::<2>::new(&labels.shape, [&y.strides[..last], &labels.strides]);
    let bounded = super::Bounded {
        index: labels,
        size: y.shape[last],
        kind: FaultKind::Label,
        wraps: false,
        faults: call.faults,
    };
    // SAFETY: `call` is one of `HostFn`: the output is valid, and nobody else touches it.
    unsafe { zero(y, call.threads) };
    by_dtype!(y.dtype, T => {
        let (to, one) = (Ptr::<T>::of(y), Ptr::<T>::of(&value));
        call.threads.split(labels.numel(), 16 * 1024, |range| {
            let [step_to, step_from] = walk.inner();
            walk.pieces(range, |position, [t, f], n| {
                for i in 0..n as isize {
                    let mut label = [0];
                    // SAFETY: each label has a row of the output to itself.
                    unsafe {
                        if bounded.read((f + i * step_from, 0), &mut label, |_| position + i as usize) {
                            *to.at(t + i * step_to + label[0] as isize * y.strides[last]) = *one.at(0);
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
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Fault, Threads};
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, flat, values};

    #[test]
    fn select_add_copy_and_fill_along_each_dim() {
        let mut dice = Dice(21);
        let shape = [3, 4, 5];
        for threads in [&Threads::ONE, &Threads::new(2)] {
            for d in 0..3 {
                for dtype in [DType::F32, DType::I64, DType::F16] {
                    let xs = values(60, &mut dice);
                    let positions: Vec<f64> = (0..6).map(|_| dice.below(shape[d]) as f64).collect();
                    let x = Owned::strided_from(dtype, &shape, &xs, &mut dice);
                    let index = Owned::strided_from(DType::I64, &[6], &positions, &mut dice);
                    let mut out = shape;
                    out[d] = 6;
                    let total = out.iter().product();
                    let source = |o: usize| {
                        let mut c = coords(o, &out);
                        c[d] = positions[c[d]] as usize;
                        flat(&c, &shape)
                    };
                    let attrs = [Attr::Int(d as i64), Attr::Scalar(Scalar::Int(2))];
                    let y = Owned::strided(dtype, &out, &mut dice);
                    assert_eq!(call_on(threads, index_select, &[&x, &index], &[&y], &attrs), None);
                    assert_eq!(y.get(), (0..total).map(|o| xs[source(o)]).collect::<Vec<_>>());
                    let vs = values(total, &mut dice);
                    y.set(&vs);
                    let z = Owned::strided(dtype, &shape, &mut dice);
                    let (mut sums, mut copies, mut fills) = (xs.clone(), xs.clone(), xs.clone());
                    for (o, &v) in vs.iter().enumerate() {
                        sums[source(o)] += 2.0 * v;
                        copies[source(o)] = v;
                        fills[source(o)] = 2.0;
                    }
                    assert_eq!(call_on(threads, index_add, &[&x, &index, &y], &[&z], &attrs), None);
                    assert_eq!(z.get(), sums);
                    assert_eq!(call_on(threads, index_copy, &[&x, &index, &y], &[&z], &attrs), None);
                    assert_eq!(z.get(), copies);
                    assert_eq!(call_on(threads, index_fill, &[&x, &index], &[&z], &attrs), None);
                    assert_eq!(z.get(), fills);
                }
            }
        }
    }

    #[test]
    fn no_negative_indices_here() {
        let x = Owned::from(DType::F32, &[3], &[1., 2., 3.]);
        let index = Owned::from(DType::I64, &[2], &[0., -1.]);
        let y = Owned::dense(DType::F32, &[2]);
        let fault = Fault { kind: FaultKind::Index { dim: 0 }, position: 1, value: -1, bound: 3 };
        assert_eq!(call_on(&Threads::ONE, index_select, &[&x, &index], &[&y], &[Attr::Int(0)]), Some(fault));
    }

    #[test]
    fn embedding_and_its_gradient() {
        let mut dice = Dice(22);
        for threads in [&Threads::ONE, &Threads::new(3)] {
            let (v, d, n) = (40, 16, 3000);
            let ws = values(v * d, &mut dice);
            let ids: Vec<f64> = (0..n).map(|_| dice.below(v) as f64).collect();
            let w = Owned::strided_from(DType::F32, &[v, d], &ws, &mut dice);
            let index = Owned::strided_from(DType::I32, &[30, 100], &ids, &mut dice);
            let y = Owned::dense(DType::F32, &[30, 100, d]);
            assert_eq!(call_on(threads, embedding, &[&w, &index], &[&y], &[]), None);
            assert!(y.get() == (0..n * d).map(|i| ws[ids[i / d] as usize * d + i % d]).collect::<Vec<_>>());
            let gs = values(n * d, &mut dice);
            let g = Owned::from(DType::F32, &[30, 100, d], &gs);
            let gw = Owned::strided(DType::F32, &[v, d], &mut dice);
            for scaled in [false, true] {
                let mut expected = vec![0f64; v * d];
                (0..n * d)
                    .filter(|i| ids[i / d] != 7.0)
                    .for_each(|i| expected[ids[i / d] as usize * d + i % d] += gs[i]);
                if scaled {
                    let frequency = |row: usize| ids.iter().filter(|&&i| i == row as f64).count() as f64;
                    expected.iter_mut().enumerate().for_each(|(i, e)| *e = (*e / frequency(i / d)) as f32 as f64);
                }
                let attrs = [Attr::Int(7), Attr::Bool(scaled)];
                assert_eq!(call_on(threads, embedding_grad, &[&g, &index], &[&gw], &attrs), None);
                assert!(gw.get() == expected);
            }
        }
    }

    #[test]
    fn one_hot_faults_by_label() {
        let labels = Owned::from(DType::I64, &[2, 2], &[1., 0., 3., 2.]);
        let y = Owned::strided(DType::I64, &[2, 2, 3], &mut Dice(23));
        let fault = Fault { kind: FaultKind::Label, position: 2, value: 3, bound: 3 };
        assert_eq!(call_on(&Threads::ONE, one_hot, &[&labels], &[&y], &[]), Some(fault));
        assert_eq!(y.get(), [0., 1., 0., 1., 0., 0., 0., 0., 0., 0., 0., 1.]);
        let y = Owned::dense(DType::F16, &[2, 2, 4]);
        sample::call(one_hot, &[&labels], &[&y], &[]);
        assert_eq!(y.get().iter().sum::<f64>(), 4.0);
    }
}
