//! Layer, group and RMS normalization: statistics of a contiguous row, then an affine map of it.
//!
//! Group norm is layer norm of rows `[channels of the group, positions]` whose weight belongs to the channel.

use super::sum_in_parts;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::copy::host::non_temporal_fence;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::rows::Through;
use crate::kernel::host::staging::{Packed, Shared, Sink, read};
use crate::kernel::host::vector::Vector;

/// The rows, and the weights of their elements.
#[derive(Clone, Copy)]
struct Rows {
    rows: usize,
    n: usize,
    /// Consecutive elements with the same weight: 1 for layer norm, positions for group norm.
    span: usize,
    /// Rows after which the weights repeat: 1 for layer norm, groups for group norm.
    period: usize,
}

impl Rows {
    fn weights_per_row(&self) -> usize {
        self.n / self.span.max(1)
    }

    /// The first weight of a row.
    fn first_weight(&self, row: usize) -> usize {
        row % self.period * self.weights_per_row()
    }
}

/// Whether the mean is subtracted first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Center {
    Mean,
    Zero,
}

fn trailing(x: &RawView, dims: usize) -> Rows {
    let lead = x.shape.len().saturating_sub(dims);
    Rows { rows: x.shape[..lead].iter().product(), n: x.shape[lead..].iter().product(), span: 1, period: 1 }
}

fn grouped(x: &RawView, groups: usize) -> Rows {
    let (batch, channels) = (x.shape[0], x.shape[1]);
    let span: usize = x.shape[2..].iter().product();
    Rows { rows: batch * groups, n: channels / groups.max(1) * span, span, period: groups }
}

/// Layer norm. Inputs: `x` `[.., d..]`; `weight` `[d..]` if the third attribute says so; `bias` `[d..]` if the
/// fourth does. Outputs: `y` like `x`; `mean` and `rstd`, one a row (`f32` or `f64` recommended).
/// Attributes: number of trailing dims (Int), `eps` (Float), has weight (Bool), has bias (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn layer_norm(call: &Call<'_>) {
    let rows = trailing(&call.inputs[0], attributes::size(call, 0));
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { forward(call, rows, attributes::float(call, 1), Center::Mean) }
}

/// Group norm. Inputs: `x` `[N, C, ..]`, `weight` `[C]` and `bias` `[C]` as the attributes say.
/// Outputs: `y` like `x`; `mean` and `rstd` `[N, groups]`.
/// Attributes: groups (Int, divides C), `eps` (Float), has weight (Bool), has bias (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn group_norm(call: &Call<'_>) {
    let rows = grouped(&call.inputs[0], attributes::size(call, 0));
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { forward(call, rows, attributes::float(call, 1), Center::Mean) }
}

/// RMS norm. Inputs: `x` `[.., d..]`, `weight` `[d..]` as the attribute says. Outputs: `y` like `x`; `rstd`, one
/// a row. Attributes: number of trailing dims (Int), `eps` (Float, or None: the dtype's epsilon), has
/// weight (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn rms_norm(call: &Call<'_>) {
    let x = &call.inputs[0];
    let eps = attributes::float_or_none(call, 1).unwrap_or(match x.dtype.compute() {
        crate::base::dtype::DType::F64 => f64::EPSILON,
        _ => f32::EPSILON as f64,
    });
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { forward(call, trailing(x, attributes::size(call, 0)), eps, Center::Zero) }
}

/// Optional inputs follow the fixed ones in order; the attributes from `first` on say which exist.
unsafe fn weights<'a, T: Real>(
    call: &'a Call<'_>,
    fixed: usize,
    first: usize,
) -> (Option<Packed<'a, T>>, Option<Packed<'a, T>>) {
    let mut next = fixed;
    let mut take = |i: usize| {
        let given = i < call.attrs.len() && attributes::flag(call, i);
        // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee
        // asks for.
        given.then(|| unsafe {
            next += 1;
            read::<T>(&call.inputs[next - 1], call.threads)
        })
    };
    (take(first), take(first + 1))
}

unsafe fn forward(call: &Call<'_>, r: Rows, eps: f64, center: Center) {
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let (weight, bias) = weights::<T>(call, 1, 2);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let mut mean = (center == Center::Mean).then(|| Sink::<T>::new(&call.outputs[1]));
            let mut rstd = Sink::<T>::new(&call.outputs[call.outputs.len() - 1]);
            let (y_out, rstd_out) = (Shared::new(y.slice()), Shared::new(rstd.slice()));
            let mean_out = mean.as_mut().map(|mean| Shared::new(mean.slice()));
            let through = Through::for_bytes(r.rows * r.n * size_of::<T>());
            call.threads.split(r.rows, (8192 / r.n.max(1)).max(1), |range| {
                for row in range {
                    let part = row * r.n..(row + 1) * r.n;
                    let first = r.first_weight(row);
                    let of = |w: &'_ Option<Packed<'_, T>>| {
                        w.as_ref().map(|w| std::ptr::from_ref(&w[first..first + r.weights_per_row()]))
                    };
                    let (weight, bias) = (of(&weight).map(|w| &*w), of(&bias).map(|b| &*b));
                    let y = y_out.range(part.clone());
                    let eps = T::from_f64(eps);
                    let (m, s) = normalize_row(&x[part], weight, bias, y, r.span, eps, center, through);
                    if let Some(mean) = mean_out {
                        *mean.at(row) = m;
                    }
                    *rstd_out.at(row) = s;
                }
                non_temporal_fence();
            });
            y.finish(call.threads);
            rstd.finish(call.threads);
            if let Some(mean) = mean {
                mean.finish(call.threads);
            }
        }
    });
}

widths! {
    /// Normalizes one row; returns its mean and rstd.
    fn normalize_row<T, S>(
        x: &[T], weight: Option<&[T]>, bias: Option<&[T]>, y: &mut [T], span: usize, eps: T, center: Center,
        through: Through,
    ) -> (T, T) {
        let n = x.len();
        let count = T::from_usize(n);
        // SAFETY: `widths!` calls this with the level of the machine; rows, weights and biases of span 1 are equally
        // long.
        let (mean, variance) = unsafe {
            let mean = if center == Center::Mean { rows::sum::<T, T::In<S>>(x, |x| x) / count } else { T::ZERO };
            let from = T::In::<S>::splat(mean);
            let variance = rows::sum::<T, T::In<S>>(x, |x| {
                let d = x.sub(from);
                d.mul(d)
            });
            (mean, variance / count)
        };
        let rstd = T::ONE / Real::sqrt(variance + eps);
        if span == 1 {
            // SAFETY: `widths!` calls this with the level of the machine; rows, weights and biases of span 1 are
            // equally long.
            unsafe {
                let (m, s) = (T::In::<S>::splat(mean), T::In::<S>::splat(rstd));
                let (x, y) = (x.as_ptr(), y.as_mut_ptr());
                match (weight.map(<[T]>::as_ptr), bias.map(<[T]>::as_ptr)) {
                    (Some(w), Some(b)) => {
                        rows::map3::<T, T::In<S>>([x, w, b], y, n, through, |x, w, b| x.sub(m).mul(s).fma(w, b));
                    }
                    (Some(w), None) => {
                        rows::map3::<T, T::In<S>>([x, w, w], y, n, through, |x, w, _| x.sub(m).mul(s).mul(w));
                    }
                    (None, Some(b)) => {
                        rows::map3::<T, T::In<S>>([x, b, b], y, n, through, |x, b, _| x.sub(m).fma(s, b));
                    }
                    (None, None) => rows::map::<T, T::In<S>>(x, y, n, through, |x| x.sub(m).mul(s)),
                }
            }
        } else if span > 0 {
            for (c, (y, x)) in y.chunks_exact_mut(span).zip(x.chunks_exact(span)).enumerate() {
                let scale = weight.map_or(T::ONE, |w| w[c]) * rstd;
                let shift = bias.map_or(T::ZERO, |b| b[c]);
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - mean).fma(scale, shift));
            }
        }
        (mean, rstd)
    }
}

/// Gradient of `layer_norm`. Inputs: gradient of `y`, `x`, `mean`, `rstd`, `weight` if the second attribute says
/// so. Outputs: gradients of `x`, and optionally of `weight` and of `bias`.
/// Attributes: number of trailing dims (Int), has weight (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn layer_norm_grad(call: &Call<'_>) {
    let rows = trailing(&call.inputs[0], attributes::size(call, 0));
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { backward(call, rows, Center::Mean) }
}

/// Gradient of `group_norm`. Inputs, outputs as `layer_norm_grad`. Attributes: groups (Int), has weight (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn group_norm_grad(call: &Call<'_>) {
    let rows = grouped(&call.inputs[0], attributes::size(call, 0));
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { backward(call, rows, Center::Mean) }
}

/// Gradient of `rms_norm`. Inputs: gradient of `y`, `x`, `rstd`, `weight` if the second attribute says so.
/// Outputs: gradients of `x`, and optionally of `weight`. Attributes: number of trailing dims (Int), has
/// weight (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn rms_norm_grad(call: &Call<'_>) {
    let rows = trailing(&call.inputs[0], attributes::size(call, 0));
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe { backward(call, rows, Center::Zero) }
}

unsafe fn backward(call: &Call<'_>, r: Rows, center: Center) {
    let fixed = if center == Center::Mean { 4 } else { 3 };
    let threads = call.threads;
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], threads);
            let x = read::<T>(&call.inputs[1], threads);
            let mean = (center == Center::Mean).then(|| read::<T>(&call.inputs[2], threads));
            let rstd = read::<T>(&call.inputs[fixed - 1], threads);
            let (weight, _) = weights::<T>(call, fixed, 1);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(dx.slice());
            let wants_sums = call.outputs.len() > 1;
            let width = r.weights_per_row() * r.period;
            let each = |range: std::ops::Range<usize>, sums: &mut [T]| {
                for row in range {
                    let part = row * r.n..(row + 1) * r.n;
                    let first = r.first_weight(row);
                    let weight = weight.as_ref().map(|w| &w[first..first + r.weights_per_row()]);
                    let mean = mean.as_ref().map_or(T::ZERO, |mean| mean[row]);
                    let (dw, db) = sums.split_at_mut(if wants_sums { width } else { 0 });
                    let last = if wants_sums { first + r.weights_per_row() } else { first };
                    let (dw, db) = if wants_sums { (&mut dw[first..last], &mut db[first..last]) } else { (dw, db) };
                    grad_row(&g[part.clone()], &x[part.clone()], weight, mean, rstd[row], out.range(part), r.span,
                        center, dw, db);
                }
            };
            if wants_sums {
                let sums = sum_in_parts(threads, r.rows, 2 * width, each);
                store(&call.outputs[1], &sums[..width], threads);
                if let Some(db) = call.outputs.get(2) {
                    store(db, &sums[width..], threads);
                }
            } else {
                threads.split(r.rows, (8192 / r.n.max(1)).max(1), |range| each(range, &mut []));
            }
            dx.finish(threads);
        }
    });
}

/// # Safety
/// As `Sink::new`.
pub(super) unsafe fn store<T: Real>(view: &RawView, values: &[T], threads: &Threads) {
    // SAFETY: the view is valid for writing and nobody else touches it (this function's contract).
    let mut sink = unsafe { Sink::<T>::new(view) };
    sink.slice().copy_from_slice(values);
    sink.finish(threads);
}

widths! {
    /// With h = (x - mean) * rstd and g' = g * weight:
    /// dx = rstd * (g' - mean(g') - h * mean(g' * h)); dw += g * h; db += g.
    fn grad_row<T, S>(
        g: &[T], x: &[T], weight: Option<&[T]>, mean: T, rstd: T, dx: &mut [T], span: usize, center: Center,
        dw: &mut [T], db: &mut [T],
    ) {
        let n = x.len();
        let count = T::from_usize(n);
        if span == 1 {
            let ones;
            let w = match weight {
                Some(w) => w,
                None => {
                    ones = vec![T::ONE; n];
                    &ones
                }
            };
            // SAFETY: `S` is the machine's; rows and weights are equally long.
            unsafe {
                let (m, s) = (T::In::<S>::splat(mean), T::In::<S>::splat(rstd));
                // The first pass stores g' to dx; the second replaces it.
                let (g, w, to) = (g.as_ptr(), w.as_ptr(), dx.as_mut_ptr());
                rows::map3::<T, T::In<S>>([g, w, w], to, n, Through::Cache, |g, w, _| g.mul(w));
                let sum = if center == Center::Mean { rows::sum::<T, T::In<S>>(dx, |g| g) / count } else { T::ZERO };
                let dot = rows::sum2::<T, T::In<S>>(dx, x, |g, x| g.mul(x.sub(m))) * rstd / count;
                let (sum, factor) = (T::In::<S>::splat(sum), T::In::<S>::splat(-(rstd * dot)));
                let (to, x) = (dx.as_mut_ptr(), x.as_ptr());
                rows::map3::<T, T::In<S>>([to, x, x], to, n, Through::Cache, |g, x, _| {
                    x.sub(m).fma(factor, g.sub(sum)).mul(s)
                });
                if !dw.is_empty() {
                    let (dw, db) = (dw.as_mut_ptr(), db.as_mut_ptr());
                    rows::map3::<T, T::In<S>>([g, x, dw], dw, n, Through::Cache, |g, x, dw| g.mul(x.sub(m)).fma(s, dw));
                    rows::map3::<T, T::In<S>>([g, db, db], db, n, Through::Cache, |g, db, _| db.add(g));
                }
            }
            return;
        }
        let (mut sum, mut dot) = (T::ZERO, T::ZERO);
        for c in 0..n / span.max(1) {
            let (g, x) = (&g[c * span..(c + 1) * span], &x[c * span..(c + 1) * span]);
            let w = weight.map_or(T::ONE, |w| w[c]);
            // SAFETY: `widths!` calls this with the level of the machine; all rows are equally long.
            let (s, d) = unsafe {
                let m = T::In::<S>::splat(mean);
                let d = rows::sum2::<T, T::In<S>>(g, x, |g, x| g.mul(x.sub(m))) * rstd;
                (rows::sum::<T, T::In<S>>(g, |g| g), d)
            };
            sum += w * s;
            dot += w * d;
            if !dw.is_empty() {
                dw[c] += d;
                db[c] += s;
            }
        }
        (sum, dot) = (sum / count, dot / count);
        for c in 0..n / span.max(1) {
            let part = c * span..(c + 1) * span;
            let w = weight.map_or(T::ONE, |w| w[c]);
            for ((dx, &g), &x) in dx[part.clone()].iter_mut().zip(&g[part.clone()]).zip(&x[part]) {
                *dx = rstd * (g * w - sum - (x - mean) * rstd * dot);
            }
        }
    }
}
