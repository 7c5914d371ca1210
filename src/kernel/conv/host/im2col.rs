//! Convolution as a product with the im2col matrix, of which only a tile that fits into the L2 cache exists at a time.

use super::{Geometry, for_units};
use crate::kernel::abi::Threads;
use crate::kernel::host::real::Real;
use crate::kernel::host::staging::{Scratch, Shared};
use crate::kernel::matmul::host::product::{Accum, Matrix, Sizes, product};
use std::ops::Range;

/// Bytes of a tile of columns: half of a typical L2 cache; the rest is for the packed operands of the product.
const TILE_BYTES: usize = 384 * 1024;

/// Output rows (of `output[2]` elements) whose columns of `depth` fit a tile.
fn rows_per_tile<T>(g: &Geometry, depth: usize) -> usize {
    (TILE_BYTES / (depth * g.output[2] * size_of::<T>()).max(1)).max(1)
}

/// Output positions along the last dim whose input lies inside it, for a kernel position.
pub fn valid_outputs(g: &Geometry, dim: usize, tap: usize) -> Range<usize> {
    let (size, stride) = (g.input[dim] as isize, g.stride[dim] as isize);
    let offset = (tap * g.dilation[dim]) as isize - g.padding[dim];
    let start = if offset >= 0 { 0 } else { (-offset + stride - 1) / stride };
    let end = if size - offset <= 0 { 0 } else { (size - offset + stride - 1) / stride };
    let end = end.min(g.output[dim] as isize).max(0);
    start.min(end) as usize..end as usize
}

/// The input position of an output position and a kernel position along one dim; `None` in the padding.
pub fn input_position(g: &Geometry, dim: usize, out: usize, tap: usize) -> Option<usize> {
    let at = (out * g.stride[dim] + tap * g.dilation[dim]) as isize - g.padding[dim];
    (at >= 0 && at < g.input[dim] as isize).then_some(at as usize)
}

/// For rows `depths` of the im2col matrix and output rows `rows`: calls `each(position in the tile of the row's first
/// column, valid columns, start of the input row, position in it of the first valid)`. An input row outside the input
/// has no valid columns.
fn for_each_row(
    g: &Geometry,
    depths: Range<usize>,
    rows: Range<usize>,
    mut each: impl FnMut(usize, Range<usize>, usize, usize),
) {
    let [_, kh, kw] = g.kernel;
    let [_, oh, ow] = g.output;
    let mut at = 0;
    for depth in depths {
        let (tap, channel) = (depth % g.taps(), depth / g.taps());
        let (td, th, tw) = (tap / (kh * kw), tap / kw % kh, tap % kw);
        let valid = valid_outputs(g, 2, tw);
        let first = (valid.start * g.stride[2] + tw * g.dilation[2]) as isize - g.padding[2];
        for row in rows.clone() {
            match (input_position(g, 0, row / oh, td), input_position(g, 1, row % oh, th)) {
                (Some(d), Some(h)) => {
                    let start = (channel * g.input[0] + d) * g.input[1] + h;
                    each(at, valid.clone(), start * g.input[2], first.max(0) as usize);
                }
                _ => each(at, 0..0, 0, 0),
            }
            at += ow;
        }
    }
}

fn im2col<T: Real>(g: &Geometry, depths: Range<usize>, rows: Range<usize>, x: &[T], tile: &mut [T]) {
    let (ow, stride) = (g.output[2], g.stride[2]);
    for_each_row(g, depths, rows, |at, valid, start, first| {
        let to = &mut tile[at..at + ow];
        to[..valid.start].fill(T::ZERO);
        to[valid.end..].fill(T::ZERO);
        let n = valid.len();
        if n == 0 {
            return;
        }
        let from = &x[start + first..];
        let to = &mut to[valid];
        if stride == 1 {
            to.copy_from_slice(&from[..n]);
        } else {
            to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &from)| *to = from);
        }
    });
}

fn col2im<T: Real>(g: &Geometry, depths: Range<usize>, rows: Range<usize>, tile: &[T], x: &mut [T]) {
    let stride = g.stride[2];
    for_each_row(g, depths, rows, |at, valid, start, first| {
        if valid.is_empty() {
            return;
        }
        let from = &tile[at + valid.start..at + valid.end];
        let to = &mut x[start + first..];
        if stride == 1 {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
        } else {
            to.iter_mut().step_by(stride).zip(from).for_each(|(to, &from)| *to += from);
        }
    });
}

pub fn forward<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], y: &mut [T]) {
    let (depth, plane, ow) = (g.depth(), g.output_plane(), g.output[2]);
    let rows = g.output[0] * g.output[1];
    let per_tile = rows_per_tile::<T>(g, depth).min(rows);
    let out = Shared::new(y);
    for_units(threads, g, |unit, threads| {
        let x = &x[g.input_unit(unit)];
        let a = Matrix::packed(&w[g.filters_of(unit)], depth);
        threads.split(rows, per_tile, |range| {
            let mut tile = Scratch::<T>::new(depth * per_tile * ow);
            for first in range.clone().step_by(per_tile) {
                let rows = first..(first + per_tile).min(range.end);
                let n = rows.len() * ow;
                im2col(g, 0..depth, rows, x, &mut tile);
                let b = Matrix::packed(&tile, n);
                let c = Matrix { ptr: out.at(g.output_unit(unit).start + first * ow), row: plane as isize, col: 1 };
                // SAFETY: the tile is `[depth, n]`; tiles write to their own columns of the unit.
                unsafe {
                    product(&Threads::ONE, Sizes { m: g.filters, n, k: depth }, a, b, c, Accum::Replace);
                }
            }
        });
    });
}

/// Each task owns some channels of one unit, so that overlapping windows are added by one thread.
pub fn grad_input<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], w: &[T], dx: &mut [T]) {
    let (depth, plane, taps, ow) = (g.depth(), g.output_plane(), g.taps(), g.output[2]);
    let rows = g.output[0] * g.output[1];
    let parts = if g.units() >= threads.count() { 1 } else { (4 * threads.count()).min(g.channels) };
    let out = Shared::new(dx);
    threads.split(g.units() * parts, 1, |tasks| {
        for task in tasks {
            let (unit, part) = (task / parts, task % parts);
            let channels = g.channels * part / parts..g.channels * (part + 1) / parts;
            if channels.is_empty() {
                continue;
            }
            let depths = channels.start * taps..channels.end * taps;
            let base = g.input_unit(unit).start;
            // SAFETY: each task has a range of channels of its own, so that no two write the same part of `dx`.
            let own =
                unsafe { out.range(base + channels.start * g.input_plane()..base + channels.end * g.input_plane()) };
            own.fill(T::ZERO);
            let per_tile = rows_per_tile::<T>(g, depths.len()).min(rows);
            let mut tile = Scratch::<T>::new(depths.len() * per_tile * ow);
            let a = Matrix::packed(&w[g.filters_of(unit)], depth).from(0, depths.start).transposed();
            let dy = Matrix::packed(&dy[g.output_unit(unit)], plane);
            for first in (0..rows).step_by(per_tile) {
                let rows = first..(first + per_tile).min(rows);
                let n = rows.len() * ow;
                let s = Sizes { m: depths.len(), n, k: g.filters };
                let c = Matrix::packed_mut(&mut tile, n);
                // SAFETY: sizes are the geometry's; the tile is this task's.
                unsafe { product(&Threads::ONE, s, a, dy.from(0, first * ow), c, Accum::Replace) };
                col2im(g, 0..depths.len(), rows, &tile, own);
            }
        }
    });
}

/// Each task owns some columns of the weight's gradient and sums over all images: the order of additions does
/// not depend on the number of threads within a task.
pub fn grad_weight<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], x: &[T], dw: &mut [T]) {
    let (depth, plane, ow) = (g.depth(), g.output_plane(), g.output[2]);
    let rows = g.output[0] * g.output[1];
    let parts = if g.groups >= threads.count() { 1 } else { threads.count().min(depth) };
    let out = Shared::new(dw);
    threads.split(g.groups * parts, 1, |tasks| {
        for task in tasks {
            let (group, part) = (task / parts, task % parts);
            let depths = depth * part / parts..depth * (part + 1) / parts;
            let per_tile = rows_per_tile::<T>(g, depths.len()).min(rows);
            let mut tile = Scratch::<T>::new(depths.len() * per_tile * ow);
            let start = g.filters_of(group).start + depths.start;
            let c = Matrix { ptr: out.at(start), row: depth as isize, col: 1 };
            let mut accum = Accum::Replace;
            for image in 0..g.batch {
                let unit = image * g.groups + group;
                let x = &x[g.input_unit(unit)];
                let dy = Matrix::packed(&dy[g.output_unit(unit)], plane);
                for first in (0..rows).step_by(per_tile) {
                    let rows = first..(first + per_tile).min(rows);
                    let k = rows.len() * ow;
                    im2col(g, depths.clone(), rows, x, &mut tile);
                    let s = Sizes { m: g.filters, n: depths.len(), k };
                    let b = Matrix::packed(&tile, k).transposed();
                    // SAFETY: sizes are the geometry's; tasks own their columns of `dw`.
                    unsafe { product(&Threads::ONE, s, dy.from(0, first * ow), b, c, accum) };
                    accum = Accum::Add;
                }
            }
        }
    });
}
