//! Padding: constant, reflect, replicate and circular; and its gradient.
//!
//! Each mode is a table for each padded dim: the input index that an output index reads. The gradient gathers: for each
//! input it sums over the outputs that read it, so that no two threads add to one element.

use crate::base::dtype::Scalar;
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::copy::host::{copy_bytes, copy_view, expanded, scalar_bytes};
use crate::kernel::guard;
use crate::kernel::host::element::{Acc, Element, by_dtype, by_size};
use crate::kernel::host::walk::{Ptr, StridedIter, ints, scalar, shifted, word};

/// Before and after each dim; `pads` is PyTorch's list, last dim first.
pub fn pads_of(call: &Call<'_>, ndim: usize) -> Vec<(i64, i64)> {
    let mut pads = vec![(0, 0); ndim];
    for (k, pair) in ints(call, 0).chunks_exact(2).enumerate().take(ndim) {
        pads[ndim - 1 - k] = (pair[0], pair[1]);
    }
    pads
}

/// The part of `x` that is copied, and its window in `y`.
pub fn windows(x: &RawView, y: &RawView, pads: &[(i64, i64)]) -> (RawView, RawView) {
    let (mut from, mut to) = (0, 0);
    let mut shape = Shape::new();
    for (d, &(before, after)) in pads.iter().enumerate() {
        from += (-before).max(0) as isize * x.strides[d];
        to += before.max(0) as isize * y.strides[d];
        shape.push((x.shape[d] as i64 + before.min(0) + after.min(0)).max(0) as usize);
    }
    (shifted(x, from, shape.clone(), x.strides.clone()), shifted(y, to, shape, y.strides.clone()))
}

/// Pads `x` with a constant, or crops where a pad is negative. Inputs `[x]`, outputs `[y]` of the same dtype. Attrs
/// `[pads, value]`: PyTorch's list (last dim first: before, after, ..) and a scalar (0 when absent). Its gradient is
/// the same kernel with the pads negated.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn pad_constant(call: &Call<'_>) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let pads = pads_of(call, x.shape.len());
    let mut bytes = scalar_bytes(scalar(call, 1).unwrap_or(Scalar::Int(0)), y.dtype);
    let value = RawView { ptr: bytes.as_mut_ptr(), ..shifted(y, 0, Shape::new(), Strides::new()) };
    let is_dense = |view: &RawView| view.strides.last() == Some(&1);
    if is_dense(x) && is_dense(y) && y.numel() > 0 {
        // SAFETY: `HostFn`: the views are valid; the value has the size of an element.
        return by_size!(y.dtype, T => unsafe { rows_around(x, y, &pads, bytes.as_ptr().cast::<T>().read_unaligned(), call.threads) });
    }
    if pads.iter().any(|&(before, after)| before > 0 || after > 0) {
        // SAFETY: the value lies on our stack until the call ends.
        unsafe { copy_view(&expanded(&value, &y.shape), y, call.threads) };
    }
    let (from, to) = windows(x, y, &pads);
    if from.shape.contains(&0) {
        return;
    }
    // SAFETY: both windows lie inside their tensors.
    unsafe { copy_view(&from, &to, call.threads) }
}

/// `pad_constant` in one pass, for rows whose elements lie beside each other.
///
/// # Safety
/// As `pad_constant`; both views have rows, and `y` has elements.
unsafe fn rows_around<T: Copy + Send + Sync>(
    x: &RawView,
    y: &RawView,
    pads: &[(i64, i64)],
    value: T,
    threads: &Threads,
) {
    let (last, cols) = (y.shape.len() - 1, y.shape[y.shape.len() - 1]);
    let (window, _) = windows(x, y, pads);
    let (first, len) = (pads[last].0.clamp(0, cols as i64) as usize, window.shape[last]);
    let (from, to) = (Ptr::<T>::of(&window), Ptr::<T>::of(y));
    threads.split(y.numel() / cols, (16 * 1024 / cols).max(1), |range| {
        for row in range {
            let (mut rest, mut t, mut f, mut shown) = (row, 0, 0, len > 0);
            for d in (0..last).rev() {
                let i = rest % y.shape[d];
                rest /= y.shape[d];
                t += i as isize * y.strides[d];
                let i = i as i64 - pads[d].0.max(0);
                shown &= (0..window.shape[d] as i64).contains(&i);
                f += i as isize * window.strides[d];
            }
            // SAFETY: one row of the output, and where it shows the window, one of that.
            unsafe {
                let to = std::slice::from_raw_parts_mut(to.at(t), cols);
                if shown {
                    to[..first].fill(value);
                    let shown = &mut to[first..first + len];
                    copy_bytes(from.at(f).cast(), shown.as_mut_ptr().cast(), size_of_val(shown));
                    to[first + len..].fill(value);
                } else {
                    to.fill(value);
                }
            }
        }
    });
}

/// The input index that each output index of a dim reads.
fn table(mode: &str, size: usize, before: i64, out: usize) -> Vec<usize> {
    let n = size as i64;
    let source = |o: usize| {
        let i = o as i64 - before;
        match mode {
            "reflect" => {
                let period = (2 * n - 2).max(1);
                let i = i.rem_euclid(period);
                if i < n { i } else { period - i }
            }
            "circular" => i.rem_euclid(n.max(1)),
            _ => i.clamp(0, (n - 1).max(0)),
        }
    };
    (0..out).map(|o| source(o) as usize).collect()
}

/// Pads `x` with its own elements. Inputs `[x]`, outputs `[y]` of the same dtype. Attrs `[pads, mode]`: PyTorch's list
/// (last dim first: before, after, ..) and `"reflect"`, `"replicate"` or `"circular"`. No dim of `x` that is padded is
/// empty.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn pad(call: &Call<'_>) {
    let (x, y, mode) = (&call.inputs[0], &call.outputs[0], word(call, 1));
    let ndim = x.shape.len();
    if y.numel() == 0 || x.numel() == 0 {
        return;
    }
    let pads = pads_of(call, ndim);
    let tables: Vec<Vec<isize>> = (0..ndim)
        .map(|d| {
            let table = table(mode, x.shape[d], pads[d].0, y.shape[d]);
            table.into_iter().map(|i| i as isize * x.strides[d]).collect()
        })
        .collect();
    let (last, rows) = (ndim - 1, y.numel() / y.shape[ndim - 1]);
    let inner = &tables[last];
    // The outputs of a row that are a row of the input, if both lie beside each other.
    let before = pads[last].0;
    let end = (before + x.shape[last] as i64).clamp(0, inner.len() as i64) as usize;
    let dense = x.strides[last] == 1 && y.strides[last] == 1;
    let run = if dense { (before.max(0) as usize).min(end)..end } else { 0..0 };
    by_size!(y.dtype, T => {
        let (from, to) = (Ptr::<T>::of(x), Ptr::<T>::of(y));
        call.threads.split(rows, (16 * 1024 / inner.len()).max(1), |range| {
            for row in range {
                let (mut rest, mut t, mut f) = (row, 0, 0);
                for d in (0..last).rev() {
                    let i = rest % y.shape[d];
                    rest /= y.shape[d];
                    t += i as isize * y.strides[d];
                    f += tables[d][i];
                }
                // SAFETY: one row of the output; the tables stay inside the input.
                unsafe {
                    if let Some(&first) = inner.get(run.start) {
                        let (from, to) = (from.at(f + first), to.at(t + run.start as isize));
                        copy_bytes(from.cast(), to.cast(), run.len() * size_of::<T>());
                    }
                    for i in (0..run.start).chain(run.end..inner.len()) {
                        *to.at(t + i as isize * y.strides[last]) = *from.at(f + inner[i]);
                    }
                }
            }
        });
    });
}

/// For each input index i of a dim, the offsets of the outputs that read it: `offsets[starts[i]..starts[i + 1]]`.
struct Inverse {
    starts: Vec<usize>,
    offsets: Vec<isize>,
}

impl Inverse {
    fn new(table: &[usize], size: usize, stride: isize) -> Inverse {
        let mut starts = guard::filled(size + 1, 0);
        table.iter().for_each(|&i| starts[i + 1] += 1);
        (0..size).for_each(|i| starts[i + 1] += starts[i]);
        let (mut next, mut offsets) = (starts.clone(), guard::filled(table.len(), 0));
        for (o, &i) in table.iter().enumerate() {
            offsets[next[i]] = o as isize * stride;
            next[i] += 1;
        }
        Inverse { starts, offsets }
    }

    fn of(&self, i: usize) -> &[isize] {
        &self.offsets[self.starts[i]..self.starts[i + 1]]
    }
}

/// Gradient of [`pad`]. Inputs `[g]` of the padded shape, outputs `[gx]` of the input's, same dtype. Attrs as `pad`.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn pad_grad(call: &Call<'_>) {
    let (g, gx, mode) = (&call.inputs[0], &call.outputs[0], word(call, 1));
    let ndim = gx.shape.len();
    if gx.numel() == 0 {
        return;
    }
    let pads = pads_of(call, ndim);
    let inverses: Vec<Inverse> = (0..ndim)
        .map(|d| Inverse::new(&table(mode, gx.shape[d], pads[d].0, g.shape[d]), gx.shape[d], g.strides[d]))
        .collect();
    let (last, cols) = (ndim - 1, gx.shape[ndim - 1]);
    let rows = StridedIter::<1>::new(&gx.shape[..last], [&gx.strides[..last]]);
    by_dtype!(gx.dtype, T => {
        let (from, to) = (Ptr::<T>::of(g), Ptr::<T>::of(gx));
        call.threads.split(rows.numel, (4 * 1024 / cols).max(1), |range| {
            // Offsets of the output rows that read the current input row: all combinations of the outer dims' offsets.
            let (mut shown, mut longer) = (Vec::new(), Vec::new());
            for row in range {
                shown.clear();
                shown.push(0isize);
                let mut rest = row;
                for d in (0..last).rev() {
                    let offsets = inverses[d].of(rest % gx.shape[d]);
                    rest /= gx.shape[d];
                    longer.clear();
                    offsets.iter().for_each(|&p| longer.extend(shown.iter().map(|&s| s + p)));
                    std::mem::swap(&mut shown, &mut longer);
                }
                shown.sort_unstable();
                let [t] = rows.offsets(row);
                for i in 0..cols {
                    let mut sum = <<T as Element>::Acc as Acc>::ZERO;
                    for &s in &shown {
                        for &p in inverses[last].of(i) {
                            // SAFETY: the lists name elements of `g`.
                            sum = sum.add(unsafe { *from.at(s + p) }.to_acc());
                        }
                    }
                    // SAFETY: one row of the output, which no other thread has.
                    unsafe { *to.at(t + i as isize * gx.strides[last]) = T::from_acc(sum) };
                }
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, coords, dims, flat, values};

    #[test]
    fn constant_pads_and_cuts() {
        let mut dice = Dice(7);
        let x = Owned::strided_from(DType::I32, &[2, 3], &[1., 2., 3., 4., 5., 6.], &mut dice);
        let y = Owned::strided(DType::I32, &[3, 3], &mut dice);
        // torch.nn.functional.pad(x, (-1, 1, 1, 0), value=9)
        sample::call(pad_constant, &[&x], &[&y], &[dims(&[-1, 1, 1, 0]), Attr::Int(9)]);
        assert_eq!(y.get(), [9., 9., 9., 2., 3., 9., 5., 6., 9.]);
    }

    /// Rows beside each other and rows with gaps: the first are written in one pass.
    #[test]
    fn rows_are_padded_as_elements_are() {
        let mut dice = Dice(9);
        let xs = values(2 * 3 * 4, &mut dice);
        for pads in
            [[1, 2, 1, 0, 0, 1], [-1, 0, 2, -1, 0, 0], [0, -2, -1, -1, 1, 1], [3, -4, 0, 0, 0, 0], [1, 1, -3, 2, 0, 0]]
        {
            for dtype in [DType::U8, DType::BF16, DType::F32, DType::I64] {
                let shape: Vec<usize> =
                    (0..3).map(|d| ([2, 3, 4][d] + pads[4 - 2 * d] + pads[5 - 2 * d]) as usize).collect();
                let n = shape.iter().product();
                let (dense, gaps) = (Owned::dense(dtype, &shape), Owned::strided(dtype, &shape, &mut dice));
                let x = Owned::from(dtype, &[2, 3, 4], &xs);
                for y in [&dense, &gaps] {
                    assert_eq!(
                        sample::call_on(&Threads::new(2), pad_constant, &[&x], &[y], &[dims(&pads), Attr::Int(9)]),
                        None
                    );
                }
                let expected: Vec<f64> = (0..n)
                    .map(|i| {
                        let c = coords(i, &shape);
                        let from: Vec<i64> = (0..3).map(|d| c[d] as i64 - pads[4 - 2 * d]).collect();
                        let inside = (0..3).all(|d| (0..[2, 3, 4][d]).contains(&from[d]));
                        let at: Vec<usize> = from.iter().map(|&i| i.max(0) as usize).collect();
                        if inside { xs[flat(&at, &[2, 3, 4])] } else { 9.0 }
                    })
                    .collect();
                assert_eq!(dense.get(), expected, "{pads:?} {dtype}");
                assert_eq!(gaps.get(), expected, "{pads:?} {dtype}");
            }
        }
    }

    #[test]
    fn modes_are_pytorchs() {
        let x = Owned::from(DType::F32, &[4], &[0., 1., 2., 3.]);
        let y = Owned::dense(DType::F32, &[9]);
        let check = |mode: &'static str, expected: [f64; 9]| {
            sample::call(pad, &[&x], &[&y], &[dims(&[3, 2]), Attr::Str(mode.into())]);
            assert_eq!(y.get(), expected, "{mode}");
        };
        check("reflect", [3., 2., 1., 0., 1., 2., 3., 2., 1.]);
        check("replicate", [0., 0., 0., 0., 1., 2., 3., 3., 3.]);
        check("circular", [1., 2., 3., 0., 1., 2., 3., 0., 1.]);
    }

    #[test]
    fn the_gradient_is_the_transpose() {
        // <pad(x), g> = <x, pad_grad(g)>, exact with small integers.
        let mut dice = Dice(8);
        let (shape, out, pads) = ([2, 4, 5], [2, 7, 7], dims(&[-1, 3, 2, 1]));
        for mode in ["reflect", "replicate", "circular"] {
            for dtype in [DType::F32, DType::F64, DType::BF16] {
                let attrs = [pads.clone(), Attr::Str(mode.into())];
                let xs = values(40, &mut dice);
                let gs = values(98, &mut dice);
                let x = Owned::strided_from(dtype, &shape, &xs, &mut dice);
                let g = Owned::strided_from(dtype, &out, &gs, &mut dice);
                let (y, gx) = (Owned::strided(dtype, &out, &mut dice), Owned::strided(dtype, &shape, &mut dice));
                sample::call(pad, &[&x], &[&y], &attrs);
                sample::call(pad_grad, &[&g], &[&gx], &attrs);
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                assert_eq!(dot(&y.get(), &gs), dot(&xs, &gx.get()), "{mode} {dtype}");
                // Each position separately.
                let rows = table(mode, 4, 2, 7);
                let cols = table(mode, 5, -1, 7);
                let at = |i| {
                    let c = coords(i, &out);
                    flat(&[c[0], rows[c[1]], cols[c[2]]], &shape)
                };
                assert_eq!(y.get(), (0..98).map(|i| xs[at(i)]).collect::<Vec<_>>());
            }
        }
    }
}
