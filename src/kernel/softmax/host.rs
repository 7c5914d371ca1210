//! Softmax and log-softmax along one dim: row by row along the last dim, many columns at a time along others.

use crate::kernel::abi::{Call, Threads};
use crate::kernel::copy::host::non_temporal_fence;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::rows::Through;
use crate::kernel::host::staging::{Scratch, Shared, Sink, around, read};
use crate::kernel::host::vector::Vector;
use std::ops::Range;

/// Softmax or log-softmax, which differ only in the first and last step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Log,
}

/// Softmax along a dim. Inputs: `x`, float, any strides. Output: the same shape and dtype.
/// Attributes: `dim` (Int, not negative; 0 for a 0-dimensional `x`).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn softmax(call: &Call<'_>) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { forward(call, Form::Plain) }
}

/// Logarithm of the softmax. Inputs, output and attributes as `softmax`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn log_softmax(call: &Call<'_>) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { forward(call, Form::Log) }
}

/// Gradient of `softmax`. Inputs: gradient of the output, the output. Output: gradient of the input.
/// Attributes: `dim` (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn softmax_grad(call: &Call<'_>) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { backward(call, Form::Plain) }
}

/// Gradient of `log_softmax`. Inputs: gradient of the output, the output. Output: gradient of the input.
/// Attributes: `dim` (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn log_softmax_grad(call: &Call<'_>) {
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { backward(call, Form::Log) }
}

/// Columns that are processed together if the dim is not the last: a few cache lines, in registers and the L1 cache.
const COLUMNS: usize = 128;

unsafe fn forward(call: &Call<'_>, form: Form) {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let (outer, n, inner) = around(&x.shape, attributes::size(call, 0));
    if outer * n * inner == 0 {
        return;
    }
    real!(y.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        let (x, mut sink) = unsafe { (read::<T>(x, call.threads), Sink::<T>::new(y)) };
        let out = Shared::new(sink.slice());
        if inner == 1 {
            let through = Through::for_bytes(outer * n * size_of::<T>());
            call.threads.split(outer, (8192 / n).max(1), |rows| {
                let range = rows.start * n..rows.end * n;
                // SAFETY: each thread has a range of rows of its own, and rows do not overlap.
                forward_rows(&x[range.clone()], unsafe { out.range(range) }, n, form, through);
            });
        } else {
            split_columns(call.threads, outer, n, inner, |start, columns| {
                forward_columns(&x[start..], out, start, n, inner, columns, form);
            });
        }
        sink.finish(call.threads);
    });
}

/// Calls `each(offset of the first column, number of columns)` for blocks of columns.
fn split_columns(threads: &Threads, outer: usize, n: usize, inner: usize, each: impl Fn(usize, usize) + Sync) {
    let blocks = inner.div_ceil(COLUMNS);
    let grain = (8192 / (n * inner.min(COLUMNS))).max(1);
    threads.split(outer * blocks, grain, |range: Range<usize>| {
        for i in range {
            let first = i % blocks * COLUMNS;
            each(i / blocks * n * inner + first, COLUMNS.min(inner - first));
        }
    });
}

widths! {
    fn forward_rows<T, S>(x: &[T], y: &mut [T], n: usize, form: Form, through: Through) {
        let mut powers = Scratch::<T>::new(n);
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            // SAFETY: `S` is the machine's; the rows are equally long.
            unsafe {
                // The maximum ignores NaN, but the sum becomes NaN.
                let max = rows::largest::<T, T::In<S>>(x);
                let sum = rows::exp_sum::<T, S>(x.as_ptr(), max, powers.as_mut_ptr(), n, n);
                match form {
                    Form::Plain => {
                        let scale = T::In::<S>::splat(T::ONE / sum);
                        rows::map::<T, T::In<S>>(powers.as_ptr(), y.as_mut_ptr(), n, through, |y| y.mul(scale));
                    }
                    Form::Log => {
                        let shift = T::In::<S>::splat(max + sum.ln());
                        rows::map::<T, T::In<S>>(x.as_ptr(), y.as_mut_ptr(), n, through, |x| x.sub(shift));
                    }
                }
            }
        }
        non_temporal_fence();
    }
}

widths! {
    fn forward_columns<T>(
        x: &[T], out: Shared<T>, start: usize, n: usize, inner: usize, columns: usize, form: Form,
    ) {
        let (mut max, mut sum) = ([T::NEG_INF; COLUMNS], [T::ZERO; COLUMNS]);
        let (max, sum) = (&mut max[..columns], &mut sum[..columns]);
        let row = |i: usize| &x[i * inner..i * inner + columns];
        // SAFETY: blocks of columns are disjoint.
        let row_out = |i: usize| unsafe { out.range(start + i * inner..start + i * inner + columns) };
        for i in 0..n {
            max.iter_mut().zip(row(i)).for_each(|(max, &x)| *max = x.max_nan(*max));
        }
        for i in 0..n {
            for (((y, &x), &max), sum) in row_out(i).iter_mut().zip(row(i)).zip(&*max).zip(&mut *sum) {
                let e = (x - max).exp();
                *sum += e;
                *y = e;
            }
        }
        match form {
            Form::Plain => {
                sum.iter_mut().for_each(|sum| *sum = T::ONE / *sum);
                for i in 0..n {
                    row_out(i).iter_mut().zip(&*sum).for_each(|(y, &scale)| *y *= scale);
                }
            }
            Form::Log => {
                sum.iter_mut().zip(&*max).for_each(|(sum, &max)| *sum = max + sum.ln());
                for i in 0..n {
                    row_out(i).iter_mut().zip(row(i)).zip(&*sum).for_each(|((y, &x), &shift)| *y = x - shift);
                }
            }
        }
    }
}

unsafe fn backward(call: &Call<'_>, form: Form) {
    let (g, y, dx) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let (outer, n, inner) = around(&dx.shape, attributes::size(call, 0));
    if outer * n * inner == 0 {
        return;
    }
    real!(dx.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        let (g, y, mut sink) =
            unsafe { (read::<T>(g, call.threads), read::<T>(y, call.threads), Sink::<T>::new(dx)) };
        let out = Shared::new(sink.slice());
        if inner == 1 {
            call.threads.split(outer, (8192 / n).max(1), |rows| {
                let range = rows.start * n..rows.end * n;
                // SAFETY: each thread has a range of rows of its own, and rows do not overlap.
                backward_rows(&g[range.clone()], &y[range.clone()], unsafe { out.range(range) }, n, form);
            });
        } else {
            split_columns(call.threads, outer, n, inner, |start, columns| {
                backward_columns(&g[start..], &y[start..], out, start, n, inner, columns, form);
            });
        }
        sink.finish(call.threads);
    });
}

widths! {
    fn backward_rows<T, S>(g: &[T], y: &[T], dx: &mut [T], n: usize, form: Form) {
        for ((g, y), dx) in g.chunks_exact(n).zip(y.chunks_exact(n)).zip(dx.chunks_exact_mut(n)) {
            match form {
                // SAFETY: `widths!` calls this with the level of the machine; `g`, `y` and `dx` have the same length.
                Form::Plain => unsafe {
                    let dot = T::In::<S>::splat(rows::sum2::<T, T::In<S>>(g, y, |g, y| g.mul(y)));
                    let from = [g.as_ptr(), y.as_ptr(), y.as_ptr()];
                    rows::map3::<T, T::In<S>>(from, dx.as_mut_ptr(), n, Through::Cache, |g, y, _| y.mul(g.sub(dot)));
                },
                // SAFETY: `widths!` calls this with the level of the machine; `g`, `y` and `dx` have the same length.
                Form::Log => unsafe {
                    let sum = rows::sum::<T, T::In<S>>(g, |g| g);
                    let (g, to) = (g.as_ptr(), dx.as_mut_ptr());
                    rows::exp_map::<T, S>(y.as_ptr(), T::ZERO, sum, to, n);
                    rows::map3::<T, T::In<S>>([g, to, to], to, n, Through::Cache, |g, share, _| g.sub(share));
                },
            }
        }
    }
}

widths! {
    fn backward_columns<T>(
        g: &[T], y: &[T], out: Shared<T>, start: usize, n: usize, inner: usize, columns: usize, form: Form,
    ) {
        let mut sum = [T::ZERO; COLUMNS];
        let sum = &mut sum[..columns];
        let part = |i: usize| i * inner..i * inner + columns;
        for i in 0..n {
            for ((sum, &g), &y) in sum.iter_mut().zip(&g[part(i)]).zip(&y[part(i)]) {
                *sum += if form == Form::Plain { g * y } else { g };
            }
        }
        for i in 0..n {
            // SAFETY: blocks of columns are disjoint.
            let dx = unsafe { out.range(start + i * inner..start + i * inner + columns) };
            for (((dx, &g), &y), &sum) in dx.iter_mut().zip(&g[part(i)]).zip(&y[part(i)]).zip(&*sum) {
                *dx = if form == Form::Plain { y * (g - sum) } else { g - y.exp() * sum };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::staging::testing::*;

    fn naive(x: &[f64], (outer, n, inner): (usize, usize, usize)) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for o in 0..outer {
            for i in 0..inner {
                let at = |k: usize| (o * n + k) * inner + i;
                let sum: f64 = (0..n).map(|k| x[at(k)].exp()).sum();
                (0..n).for_each(|k| y[at(k)] = x[at(k)].exp() / sum);
            }
        }
        y
    }

    #[test]
    fn every_dim_in_every_layout() {
        for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::F16, 1e-3), (DType::BF16, 1e-2)] {
            for dim in 0..3 {
                let x = Array::wave(dtype, &[141, 37, 3], 0.3).permute(&[2, 1, 0]);
                let (y, z) = (Array::empty(dtype, &[3, 37, 141]), Array::empty(dtype, &[3, 37, 141]));
                let attrs = [Attr::Int(dim as i64)];
                call(softmax, &[&x], &[&y], &attrs);
                call(log_softmax, &[&x], &[&z], &attrs);
                let expected = naive(&x.get(), around(&[3, 37, 141], dim));
                close(&y.get(), &expected, tolerance);
                close(&z.get(), &expected.iter().map(|y| y.ln()).collect::<Vec<_>>(), tolerance);
            }
        }
    }

    #[test]
    fn gradients_are_differences() {
        let shape = [2, 7, 35];
        for dim in 0..3i64 {
            for (forward, backward) in [
                (softmax as crate::kernel::abi::HostFn, softmax_grad as crate::kernel::abi::HostFn),
                (log_softmax, log_softmax_grad),
            ] {
                let attrs = [Attr::Int(dim)];
                let x = Array::wave(DType::F64, &shape, 0.1);
                let g = Array::wave(DType::F64, &shape, 0.9);
                let (y, dx) = (Array::empty(DType::F64, &shape), Array::empty(DType::F64, &shape));
                call(forward, &[&x], &[&y], &attrs);
                call(backward, &[&g, &y], &[&dx], &attrs);
                let loss = |data: &[f64]| -> f64 {
                    let y = Array::empty(DType::F64, &shape);
                    call(forward, &[&Array::of(DType::F64, &shape, data)], &[&y], &attrs);
                    y.get().iter().zip(g.get()).map(|(y, g)| y * g).sum()
                };
                differences(&x.get(), &dx.get(), loss);
            }
        }
    }

    #[test]
    fn minus_infinity_and_nan() {
        let x = Array::of(
            DType::F32,
            &[3, 2],
            &[f64::NEG_INFINITY, 0., f64::NAN, 1., f64::NEG_INFINITY, f64::NEG_INFINITY],
        );
        let y = Array::empty(DType::F32, &[3, 2]);
        call(softmax, &[&x], &[&y], &[Attr::Int(1)]);
        close(&y.get(), &[0., 1., f64::NAN, f64::NAN, f64::NAN, f64::NAN], 0.0);
        let (x, y) = (Array::of(DType::F32, &[], &[3.]), Array::empty(DType::F32, &[]));
        call(softmax, &[&x], &[&y], &[Attr::Int(0)]);
        assert_eq!(y.get(), [1.]);
    }
}
