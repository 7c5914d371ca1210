//! Convolutions of one to three dims with stride, padding, dilation and groups, and their gradients.
//!
//! There are four algorithms: a matrix product for 1×1, a direct kernel that reads a padded image in place (stride 1),
//! im2col by cache-sized tiles, and loops over planes for depthwise convolutions. A transposed convolution is the
//! gradient with respect to the input. `padding="same"` is resolved before, by the row of the op table.

pub mod depthwise;
pub mod direct;
pub mod im2col;
pub mod wgrad;

use super::geometry::Geometry;
use crate::kernel::abi::{Call, Threads};
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Shared, Sink, read};
use crate::kernel::matmul::host::product::{Accum, Matrix, Sizes, product};
use std::ops::Range;

impl Geometry {
    /// Images times groups: the units of parallel work.
    pub fn units(&self) -> usize {
        self.batch * self.groups
    }

    /// The group's channels of an image, in the input.
    pub fn input_unit(&self, unit: usize) -> Range<usize> {
        let size = self.channels * self.input_plane();
        unit * size..(unit + 1) * size
    }

    pub fn output_unit(&self, unit: usize) -> Range<usize> {
        let size = self.filters * self.output_plane();
        unit * size..(unit + 1) * size
    }

    pub fn filters_of(&self, unit: usize) -> Range<usize> {
        let size = self.filters * self.depth();
        let group = unit % self.groups;
        group * size..(group + 1) * size
    }

    fn flops(&self) -> usize {
        2 * self.units() * self.filters * self.depth() * self.output_plane()
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.filters < 4
    }

    fn is_dense(&self) -> bool {
        self.stride == [1; 3]
    }

    fn is_empty(&self) -> bool {
        self.units() * self.filters * self.output_plane() == 0
    }
}

/// Cost: below this much arithmetic the pool is slower than the calling thread.
const PARALLEL_FLOPS: usize = 500_000;

/// Calls `each` for every image and group: in parallel if there are enough to occupy the threads, else one after the
/// other with all threads.
pub fn for_units(threads: &Threads, g: &Geometry, each: impl Fn(usize, &Threads) + Sync) {
    if g.flops() < PARALLEL_FLOPS {
        (0..g.units()).for_each(|unit| each(unit, &Threads::ONE));
    } else if g.units() >= threads.count() {
        threads.split(g.units(), 1, |units| units.for_each(|unit| each(unit, &Threads::ONE)));
    } else {
        (0..g.units()).for_each(|unit| each(unit, threads));
    }
}

/// Convolution (cross-correlation). Inputs: `x` `[N, C, d..]`, `weight` `[O, C / groups, k..]`, and optionally
/// `bias` `[O]`; one to three spatial dims, any strides. Output: `[N, O, o..]`.
/// Attributes: stride (Ints), padding on both sides (Ints), dilation (Ints), one for each spatial dim;
/// groups (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn conv_forward(call: &Call<'_>) {
    let (x, weight, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, weight, y);
    real!(y.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (x, w) = (read::<T>(x, call.threads), read::<T>(weight, call.threads));
            let mut sink = Sink::<T>::new(y);
            let out = sink.slice();
            let bias = call.inputs.get(2).map(|bias| read::<T>(bias, call.threads));
            let empty = g.depth() == 0 || g.input_plane() == 0;
            if empty {
                out.fill(T::ZERO);
            }
            let with_bias = !empty && !g.is_empty() && forward(call.threads, &g, &x, &w, bias.as_deref(), out);
            if let Some(bias) = bias && !with_bias {
                add_bias(call.threads, &bias, g.output_plane(), out);
            }
            sink.finish(call.threads);
        }
    });
}

/// Returns whether the bias was added.
fn forward<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) -> bool {
    if g.is_depthwise() {
        depthwise::forward(threads, g, x, w, y);
    } else if g.is_pointwise() {
        pointwise(threads, g, x, w, y);
    } else if g.is_dense() && direct::forward(threads, g, x, w, bias, y) {
        return true;
    } else {
        im2col::forward(threads, g, x, w, y);
    }
    false
}

/// `y = w @ x` for every image.
fn pointwise<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], y: &mut [T]) {
    let out = Shared::new(y);
    let plane = g.output_plane();
    for_units(threads, g, |unit, threads| {
        let a = Matrix::packed(&w[g.filters_of(unit)], g.channels);
        let b = Matrix::packed(&x[g.input_unit(unit)], plane);
        let c = Matrix { ptr: out.at(g.output_unit(unit).start), row: plane as isize, col: 1 };
        // SAFETY: the slices have the sizes that the geometry says; units write apart.
        unsafe { product(threads, Sizes { m: g.filters, n: plane, k: g.channels }, a, b, c, Accum::Replace) };
    });
}

/// Adds the bias of its channel to every plane of `[N, C, plane]`.
fn add_bias<T: Real>(threads: &Threads, bias: &[T], plane: usize, y: &mut [T]) {
    if y.is_empty() || bias.is_empty() {
        return;
    }
    let planes = y.len() / plane;
    let out = Shared::new(y);
    threads.split(planes, (32 * 1024 / plane).max(1), |range| {
        for i in range {
            let b = bias[i % bias.len()];
            // SAFETY: `i` is a different plane for each call, and planes do not overlap.
            unsafe { out.range(i * plane..(i + 1) * plane) }.iter_mut().for_each(|y| *y += b);
        }
    });
}

/// Gradient of a convolution with respect to its input, and transposed convolution. Inputs: gradient of the output `[N,
/// O, o..]`, `weight` `[O, C / groups, k..]`, and optionally a bias `[C]` to add (transposed convolution's). Output:
/// `[N, C, d..]`; its shape determines the input size. Attributes: as `conv_forward`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn conv_grad_input(call: &Call<'_>) {
    let (dy, weight, dx) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, dx, weight, dy);
    real!(dx.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (dy, w) = (read::<T>(dy, call.threads), read::<T>(weight, call.threads));
            let mut sink = Sink::<T>::new(dx);
            let out = sink.slice();
            let bias = call.inputs.get(2).map(|bias| read::<T>(bias, call.threads));
            let empty = g.is_empty() || g.depth() == 0;
            if empty {
                out.fill(T::ZERO);
            }
            let with_bias = !empty && !out.is_empty() && grad_input(call.threads, &g, &dy, &w, bias.as_deref(), out);
            if let Some(bias) = bias && !with_bias {
                add_bias(call.threads, &bias, g.input_plane(), out);
            }
            sink.finish(call.threads);
        }
    });
}

/// Returns whether the bias was added.
fn grad_input<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], w: &[T], bias: Option<&[T]>, dx: &mut [T]) -> bool {
    if g.is_depthwise() {
        depthwise::grad_input(threads, g, dy, w, dx);
    } else if g.is_dense() && direct::grad_input(threads, g, dy, w, bias, dx) {
        return true;
    } else {
        im2col::grad_input(threads, g, dy, w, dx);
    }
    false
}

/// Gradient of a convolution with respect to its weight. Inputs: gradient of the output `[N, O, o..]`, `x`
/// `[N, C, d..]`. Output: `[O, C / groups, k..]`. Attributes: as `conv_forward`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn conv_grad_weight(call: &Call<'_>) {
    let (dy, x, dw) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, dw, dy);
    real!(dw.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let (dy, x) = (read::<T>(dy, call.threads), read::<T>(x, call.threads));
            let mut sink = Sink::<T>::new(dw);
            let out = sink.slice();
            if g.is_empty() || g.input_plane() == 0 {
                out.fill(T::ZERO);
            } else if g.is_depthwise() {
                depthwise::grad_weight(call.threads, &g, &dy, &x, out);
            } else if !(g.is_dense() && wgrad::grad_weight(call.threads, &g, &dy, &x, out)) {
                im2col::grad_weight(call.threads, &g, &dy, &x, out);
            }
            sink.finish(call.threads);
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::staging::testing::*;

    struct Case {
        x: &'static [usize],
        w: &'static [usize],
        stride: &'static [i64],
        padding: &'static [i64],
        dilation: &'static [i64],
        groups: usize,
    }

    const fn case(
        x: &'static [usize],
        w: &'static [usize],
        [stride, padding, dilation]: [&'static [i64]; 3],
        groups: usize,
    ) -> Case {
        Case { x, w, stride, padding, dilation, groups }
    }

    const CASES: &[Case] = &[
        case(&[2, 3, 9], &[5, 3, 3], [&[1], &[1], &[1]], 1),
        case(&[2, 3, 9], &[4, 3, 2], [&[2], &[0], &[2]], 1),
        case(&[3, 8, 11, 7], &[10, 8, 3, 3], [&[1, 1], &[1, 1], &[1, 1]], 1),
        case(&[1, 5, 30, 41], &[9, 5, 5, 3], [&[1, 1], &[2, 0], &[1, 2]], 1),
        case(&[2, 2, 6, 5], &[70, 2, 3, 3], [&[1, 1], &[1, 1], &[1, 1]], 1),
        case(&[1, 6, 5, 6], &[70, 3, 2, 3], [&[1, 1], &[0, 1], &[1, 1]], 2),
        case(&[9, 3, 150], &[20, 3, 5], [&[1], &[2], &[1]], 1),
        case(&[2, 4, 8, 8], &[6, 4, 1, 1], [&[1, 1], &[0, 0], &[1, 1]], 1),
        case(&[2, 4, 8, 8], &[6, 4, 1, 1], [&[1, 1], &[2, 1], &[1, 1]], 1),
        case(&[2, 6, 13, 10], &[8, 3, 3, 3], [&[2, 3], &[1, 2], &[2, 1]], 2),
        case(&[2, 6, 9, 9], &[6, 1, 3, 3], [&[1, 1], &[1, 1], &[1, 1]], 6),
        case(&[2, 6, 9, 10], &[12, 1, 5, 3], [&[2, 2], &[2, 0], &[1, 3]], 6),
        case(&[2, 2, 5, 6, 7], &[9, 2, 2, 3, 2], [&[1, 1, 1], &[1, 1, 0], &[1, 1, 2]], 1),
        case(&[1, 2, 5, 6, 7], &[4, 2, 2, 3, 2], [&[2, 1, 2], &[1, 0, 1], &[1, 1, 2]], 1),
        case(&[1, 1, 3, 3], &[1, 1, 3, 3], [&[1, 1], &[5, 5], &[1, 1]], 1),
        case(&[0, 3, 9], &[5, 3, 3], [&[1], &[1], &[1]], 1),
    ];

    fn output(c: &Case) -> Vec<usize> {
        let mut shape = vec![c.x[0], c.w[0]];
        for i in 0..c.stride.len() {
            let reach = c.dilation[i] * (c.w[2 + i] as i64 - 1) + 1;
            shape.push(((c.x[2 + i] as i64 + 2 * c.padding[i] - reach) / c.stride[i] + 1) as usize);
        }
        shape
    }

    /// Calls `each(position in y, in x, in w)` for every term of the definition.
    fn terms(c: &Case, mut each: impl FnMut(usize, usize, usize)) {
        let y = output(c);
        let unravel = |mut at: usize, shape: &[usize]| {
            let mut index = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                (index[d], at) = (at % shape[d], at / shape[d]);
            }
            index
        };
        for at in 0..y.iter().product() {
            let yi = unravel(at, &y);
            let group = yi[1] / (c.w[0] / c.groups);
            'taps: for tap in 0..c.w[1..].iter().product() {
                let wi = unravel(tap, &c.w[1..]);
                let mut from = yi[0] * c.x[1] + group * c.w[1] + wi[0];
                for d in 0..c.stride.len() {
                    let i = yi[2 + d] as i64 * c.stride[d] + wi[1 + d] as i64 * c.dilation[d] - c.padding[d];
                    if i < 0 || i >= c.x[2 + d] as i64 {
                        continue 'taps;
                    }
                    from = from * c.x[2 + d] + i as usize;
                }
                each(at, from, yi[1] * c.w[1..].iter().product::<usize>() + tap);
            }
        }
    }

    #[test]
    fn forward_and_gradients_are_their_definitions() {
        // Tolerances relative to the sum of the terms' magnitudes: cancellation does not reduce the rounding error.
        for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-13), (DType::BF16, 1e-2)] {
            for (i, c) in CASES.iter().enumerate() {
                let shape = output(c);
                let (x, w) = (Array::wave(dtype, c.x, 0.1), Array::wave(dtype, c.w, 0.2));
                let (dy, bias) = (Array::wave(dtype, &shape, 0.3), Array::wave(dtype, &[c.w[0]], 0.4));
                let (xs, ws, dys, bs) = (x.get(), w.get(), dy.get(), bias.get());
                let plane: usize = shape[2..].iter().product();
                let mut y: Vec<f64> = (0..dys.len()).map(|i| bs[i / plane % c.w[0]]).collect();
                let (mut dx, mut dw) = (vec![0.0; xs.len()], vec![0.0; ws.len()]);
                let mut sizes = [vec![1.0; y.len()], vec![1.0; xs.len()], vec![1.0; ws.len()]];
                terms(c, |yi, xi, wi| {
                    let (to_y, to_x, to_w) = (xs[xi] * ws[wi], dys[yi] * ws[wi], dys[yi] * xs[xi]);
                    y[yi] += to_y;
                    dx[xi] += to_x;
                    dw[wi] += to_w;
                    for (what, at, term) in [(0, yi, to_y), (1, xi, to_x), (2, wi, to_w)] {
                        sizes[what][at] += term.abs();
                    }
                });
                let attrs = [ints(c.stride), ints(c.padding), ints(c.dilation), Attr::Int(c.groups as i64)];
                let out = [Array::empty(dtype, &shape), Array::empty(dtype, c.x), Array::empty(dtype, c.w)];
                call(super::conv_forward, &[&x, &w, &bias], &[&out[0]], &attrs);
                call(super::conv_grad_input, &[&dy, &w], &[&out[1]], &attrs);
                call(super::conv_grad_weight, &[&dy, &x], &[&out[2]], &attrs);
                let all = out.iter().zip([&y, &dx, &dw]).zip(&sizes);
                for (what, ((out, expected), sizes)) in ["y", "dx", "dw"].iter().zip(all) {
                    let off = out.get().into_iter().zip(expected).zip(sizes).map(|((a, b), size)| (a - b).abs() / size);
                    let worst = off.fold(0.0, f64::max);
                    assert!(worst < tolerance && out.get().len() == expected.len(), "case {i} {dtype} {what}: {worst}");
                }
            }
        }
    }

    #[test]
    fn columns_agree_with_the_direct_way() {
        // f64 has no direct kernel, so the same case in both types compares the algorithms on a size of several tiles.
        let (x, w) = ([2, 20, 40, 37], [19, 20, 3, 3]);
        let y = [2, 19, 40, 37];
        let attrs = [ints(&[1, 1]), ints(&[1, 1]), ints(&[1, 1]), Attr::Int(1)];
        let run = |dtype: DType| {
            let (x, w, dy) = (Array::wave(dtype, &x, 0.1), Array::wave(dtype, &w, 0.2), Array::wave(dtype, &y, 0.3));
            let out = [Array::empty(dtype, &y), Array::empty(dtype, &x.view.shape), Array::empty(dtype, &w.view.shape)];
            call(super::conv_forward, &[&x, &w], &[&out[0]], &attrs);
            call(super::conv_grad_input, &[&dy, &w], &[&out[1]], &attrs);
            call(super::conv_grad_weight, &[&dy, &x], &[&out[2]], &attrs);
            out.map(|out| out.get())
        };
        // The last are sums over 2960 positions with cancellation: the tolerance is relative to the sum of magnitudes.
        for ((narrow, wide), tolerance) in run(DType::F32).iter().zip(run(DType::F64)).zip([3e-5, 3e-5, 1e-4]) {
            close(narrow, &wide, tolerance);
        }
    }
}
