//! Depthwise convolution: one input plane for each output plane, so a matrix product does not help.

use super::Geometry;
use super::im2col::{input_position, valid_outputs};
use crate::kernel::abi::Threads;
use crate::kernel::host::real::{Real, widths};
use crate::kernel::host::rows;
use crate::kernel::host::staging::Shared;
use crate::kernel::host::vector::Vector;

/// For every kernel position and output row inside the input: `each(tap, output row's valid range, matching
/// start in the input plane)`.
#[inline(always)]
fn for_each_row(g: &Geometry, mut each: impl FnMut(usize, std::ops::Range<usize>, usize)) {
    let [_, kh, kw] = g.kernel;
    let [od, oh, ow] = g.output;
    for tap in 0..g.taps() {
        let (td, th, tw) = (tap / (kh * kw), tap / kw % kh, tap % kw);
        let valid = valid_outputs(g, 2, tw);
        if valid.is_empty() {
            continue;
        }
        // Not negative: the range starts where the input does.
        let first = valid.start * g.stride[2] + tw * g.dilation[2];
        let first = (first as isize - g.padding[2]) as usize;
        for d in 0..od {
            let Some(id) = input_position(g, 0, d, td) else { continue };
            for h in 0..oh {
                let Some(ih) = input_position(g, 1, h, th) else { continue };
                let row = (d * oh + h) * ow;
                each(tap, row + valid.start..row + valid.end, (id * g.input[1] + ih) * g.input[2] + first);
            }
        }
    }
}

/// Runs `each(unit, filter in the group)` for every output plane.
fn for_planes(threads: &Threads, count: usize, plane: usize, each: impl Fn(usize) + Sync) {
    threads.split(count, (16 * 1024 / plane.max(1)).max(1), |range| range.for_each(&each));
}

pub fn forward<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], y: &mut [T]) {
    let (plane, taps) = (g.output_plane(), g.taps());
    let out = Shared::new(y);
    for_planes(threads, g.units() * g.filters, plane * taps, |i| {
        let (unit, filter) = (i / g.filters, i % g.filters);
        let start = g.filters_of(unit).start + filter * taps;
        // SAFETY: `i` is a different plane of the output for each call, and planes do not overlap.
        let y = unsafe { out.range(i * plane..(i + 1) * plane) };
        correlate(g, &x[g.input_unit(unit)], &w[start..start + taps], y);
    });
}

widths! {
    fn correlate<T>(g: &Geometry, x: &[T], w: &[T], y: &mut [T]) {
        y.fill(T::ZERO);
        let stride = g.stride[2];
        for_each_row(g, |tap, range, from| {
            let w = w[tap];
            let y = &mut y[range];
            if stride == 1 {
                y.iter_mut().zip(&x[from..]).for_each(|(y, &x)| *y = x.fma(w, *y));
            } else {
                y.iter_mut().zip(x[from..].iter().step_by(stride)).for_each(|(y, &x)| *y = x.fma(w, *y));
            }
        });
    }
}

pub fn grad_input<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], w: &[T], dx: &mut [T]) {
    let (plane, taps) = (g.output_plane(), g.taps());
    let out = Shared::new(dx);
    for_planes(threads, g.units(), plane * taps * g.filters, |unit| {
        // SAFETY: `unit` is a different plane of `dx` for each call, and planes do not overlap.
        let dx = unsafe { out.range(g.input_unit(unit)) };
        dx.fill(T::ZERO);
        let dy = &dy[g.output_unit(unit)];
        let w = &w[g.filters_of(unit)];
        for (dy, w) in dy.chunks_exact(plane).zip(w.chunks_exact(taps)) {
            correlate_transposed(g, dy, w, dx);
        }
    });
}

widths! {
    fn correlate_transposed<T>(g: &Geometry, dy: &[T], w: &[T], dx: &mut [T]) {
        let stride = g.stride[2];
        for_each_row(g, |tap, range, from| {
            let w = w[tap];
            let dy = &dy[range];
            if stride == 1 {
                dx[from..].iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = dy.fma(w, *dx));
            } else {
                dx[from..].iter_mut().step_by(stride).zip(dy).for_each(|(dx, &dy)| *dx = dy.fma(w, *dx));
            }
        });
    }
}

pub fn grad_weight<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], x: &[T], dw: &mut [T]) {
    let (plane, taps) = (g.output_plane(), g.taps());
    let out = Shared::new(dw);
    for_planes(threads, g.groups * g.filters, g.batch * plane * taps, |i| {
        let (group, filter) = (i / g.filters, i % g.filters);
        // SAFETY: `i` is a different filter for each call, and filters do not overlap.
        let dw = unsafe { out.range(i * taps..(i + 1) * taps) };
        dw.fill(T::ZERO);
        for image in 0..g.batch {
            let unit = image * g.groups + group;
            let start = g.output_unit(unit).start + filter * plane;
            dots(g, &dy[start..start + plane], &x[g.input_unit(unit)], dw);
        }
    });
}

widths! {
    fn dots<T, S>(g: &Geometry, dy: &[T], x: &[T], dw: &mut [T]) {
        let stride = g.stride[2];
        for_each_row(g, |tap, range, from| {
            let dy = &dy[range];
            dw[tap] += if stride == 1 {
                let x = &x[from..from + dy.len()];
                // SAFETY: `widths!` calls this with the level of the machine; both slices are of the same length.
                unsafe { rows::sum2::<T, T::In<S>>(dy, x, |dy, x| dy.mul(x)) }
            } else {
                dy.iter().zip(x[from..].iter().step_by(stride)).map(|(&dy, &x)| dy * x).sum()
            };
        });
    }
}
