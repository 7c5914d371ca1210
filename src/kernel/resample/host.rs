//! Resampling (`interpolate`): nearest, linear and cubic along one to three dims, and the gradient.
//!
//! Every mode is separable: each output reads up to four inputs along each dim, with weights from a table. Formulas are
//! those of PyTorch's `UpSample.h`, computed in the same precision. `area` is adaptive average pooling; antialiasing is
//! sums of the windows of `antialias.rs`.

use crate::kernel::abi::Call;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Shared, Sink, read};
use crate::kernel::pool::host::{Planes, for_planes};
use crate::kernel::resample::antialias;

/// Input indices and weights of the outputs along one dim, `taps` for each.
struct Table<T> {
    taps: usize,
    at: Vec<usize>,
    weight: Vec<T>,
}

impl<T: Real> Table<T> {
    fn of(&self, out: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = out * self.taps..(out + 1) * self.taps;
        self.at[range.clone()].iter().copied().zip(self.weight[range].iter().copied())
    }
}

/// Distance between outputs, in units of inputs.
fn scale<T: Real>(size: usize, out: usize, align_corners: bool, given: Option<f64>) -> T {
    if align_corners {
        return if out > 1 { T::from_usize(size - 1) / T::from_usize(out - 1) } else { T::ZERO };
    }
    match given {
        Some(factor) if factor > 0.0 => T::from_f64(1.0 / factor),
        _ => T::from_usize(size) / T::from_usize(out),
    }
}

/// Position of an output, in units of inputs.
fn source<T: Real>(scale: T, out: usize, align_corners: bool) -> T {
    if align_corners {
        return scale * T::from_usize(out);
    }
    let half = T::from_f64(0.5);
    scale * (T::from_usize(out) + half) - half
}

/// PyTorch's fixed-point weights for u8.
fn coarse<T: Real>(fine: Table<f64>) -> Table<T> {
    let mut weight = fine.weight;
    let (ats, weights) = (fine.at.chunks_exact(fine.taps), weight.chunks_exact_mut(fine.taps));
    for (at, weight) in ats.zip(weights) {
        // At an edge one input can occur twice: its weights are added.
        for tap in (1..at.len()).rev().filter(|&tap| at[tap] == at[tap - 1]) {
            weight[tap - 1] += std::mem::take(&mut weight[tap]);
        }
    }
    antialias::coarse(&mut weight);
    Table { taps: fine.taps, at: fine.at, weight: weight.into_iter().map(T::from_f64).collect() }
}

fn table<T: Real>(mode: &str, size: usize, out: usize, align_corners: bool, given: Option<f64>) -> Table<T> {
    if let Some(mode) = mode.strip_suffix(" of bytes") {
        return coarse(table(mode, size, out, align_corners, given));
    }
    let last = size.saturating_sub(1);
    match mode {
        "nearest" | "nearest-exact" => {
            // PyTorch computes this in `f32` for any dtype.
            let step: f32 = scale(size, out, false, given);
            let shift = if mode == "nearest" { 0.0 } else { 0.5 };
            let at = (0..out).map(|o| (((o as f32 + shift) * step).floor() as usize).min(last)).collect();
            Table { taps: 1, at, weight: vec![T::ONE; out] }
        }
        "bicubic" | "cubic" => {
            let step: T = scale(size, out, align_corners, given);
            let mut table = Table { taps: 4, at: Vec::new(), weight: Vec::new() };
            for o in 0..out {
                let real = source(step, o, align_corners);
                let base = real.to_f64().floor().min(last as f64);
                let t = (real - T::from_f64(base)).to_f64().clamp(0.0, 1.0);
                for tap in 0..4 {
                    table.at.push((base as i64 - 1 + tap).clamp(0, last as i64) as usize);
                }
                table.weight.extend(cubic::<T>(T::from_f64(t)));
            }
            table
        }
        // linear, bilinear, trilinear
        _ => {
            let step: T = scale(size, out, align_corners, given);
            let mut table = Table { taps: 2, at: Vec::new(), weight: Vec::new() };
            for o in 0..out {
                let real = source(step, o, align_corners);
                let real = if real < T::ZERO { T::ZERO } else { real };
                let base = (real.to_f64() as usize).min(last);
                let t = real - T::from_usize(base);
                let t = if t > T::ONE { T::ONE } else { t };
                table.at.extend([base, (base + 1).min(last)]);
                table.weight.extend([T::ONE - t, t]);
            }
            table
        }
    }
}

/// Keys' cubic convolution with A = -0.75, at distances 1 + t, t, 1 - t and 2 - t.
fn cubic<T: Real>(t: T) -> [T; 4] {
    let n = T::from_f64;
    let a = n(-0.75);
    let near = |x: T| ((a + n(2.0)) * x - (a + n(3.0))) * x * x + T::ONE;
    let far = |x: T| ((a * x - n(5.0) * a) * x + n(8.0) * a) * x - n(4.0) * a;
    [far(t + T::ONE), near(t), near(T::ONE - t), far(n(2.0) - t)]
}

/// Tables from the attributes of `interpolate`.
fn tables<T: Real>(call: &Call<'_>, from: Planes, to: Planes, dims: usize) -> [Table<T>; 3] {
    let mode = attributes::text(call, 1);
    let align = attributes::flag(call, 2);
    let factors: &[f64] = match &call.attrs[3] {
        crate::base::attr::Attr::Floats(factors) => factors,
        _ => &[],
    };
    std::array::from_fn(|dim| {
        if dim + dims < 3 {
            return Table { taps: 1, at: vec![0], weight: vec![T::ONE] };
        }
        let given = factors.get(dim + dims - 3).copied();
        table(mode, from.size[dim], to.size[dim], align, given)
    })
}

/// For every output row: `each(start of the output row, [(start of an input row, weight)])`.
fn for_rows<T: Real>(from: Planes, to: Planes, t: &[Table<T>; 3], mut each: impl FnMut(usize, &[(usize, T)])) {
    let mut rows = Vec::with_capacity(16);
    for d in 0..to.size[0] {
        for h in 0..to.size[1] {
            rows.clear();
            for (i, wi) in t[0].of(d) {
                rows.extend(t[1].of(h).map(|(j, wj)| ((i * from.size[1] + j) * from.size[2], wi * wj)));
            }
            each((d * to.size[1] + h) * to.size[2], &rows);
        }
    }
}

/// Resamples the last one to three dims. Inputs: `x` `[.., d..]`, float. Output: `[.., o..]`; its shape determines the
/// size. Attributes: number of spatial dims (Int); mode (Str: nearest, nearest-exact, linear, bilinear, trilinear,
/// bicubic; the suffix " of bytes" rounds weights as PyTorch does for u8); align_corners (Bool); scale factors (Floats,
/// one for each spatial dim, if the caller gave them and did not set recompute_scale_factor; else None).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn interpolate(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.inputs[0], dims), Planes::of(&call.outputs[0], dims));
    if from.len() == 0 || to.len() == 0 {
        return;
    }
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(y.slice());
            let t = tables::<T>(call, from, to, dims);
            for_planes(call.threads, to.count, 4 * to.len(), |plane| {
                let x = &x[plane * from.len()..(plane + 1) * from.len()];
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                let y = out.range(plane * to.len()..(plane + 1) * to.len());
                for_rows(from, to, &t, |start, rows| {
                    for (w, y) in y[start..start + to.size[2]].iter_mut().enumerate() {
                        let mut sum = T::ZERO;
                        for &(row, wr) in rows {
                            let mut along = T::ZERO;
                            t[2].of(w).for_each(|(k, wk)| along += wk * x[row + k]);
                            sum += wr * along;
                        }
                        *y = sum;
                    }
                });
            });
            y.finish(call.threads);
        }
    });
}

/// Gradient of `interpolate`. Inputs: gradient of the output. Output: gradient of `x`; its shape is `x`'s.
/// Attributes: as `interpolate`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn interpolate_grad(call: &Call<'_>) {
    let dims = attributes::size(call, 0);
    let (from, to) = (Planes::of(&call.outputs[0], dims), Planes::of(&call.inputs[0], dims));
    if from.len() == 0 {
        return;
    }
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], call.threads);
            let mut dx = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(dx.slice());
            let t = tables::<T>(call, from, to, dims);
            for_planes(call.threads, from.count, 4 * to.len(), |plane| {
                let g = &g[plane * to.len()..(plane + 1) * to.len()];
                // SAFETY: `plane` is a different plane of the output for each call, and planes do not overlap.
                let dx = out.range(plane * from.len()..(plane + 1) * from.len());
                dx.fill(T::ZERO);
                for_rows(from, to, &t, |start, rows| {
                    for (w, &g) in g[start..start + to.size[2]].iter().enumerate() {
                        for &(row, wr) in rows {
                            t[2].of(w).for_each(|(k, wk)| dx[row + k] += g * wr * wk);
                        }
                    }
                });
            });
            dx.finish(call.threads);
        }
    });
}
