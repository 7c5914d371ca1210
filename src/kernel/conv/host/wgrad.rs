//! wgrad: the gradient of a convolution's weight. Stride 1, `f32`, AVX-512, from a padded image read in place.
//!
//! dw[o, k] is the sum over output positions p of dy[o, p] times the padded image at p plus the offset of k. Filters
//! are the vector lanes: `dy` is transposed to rows of filters, a piece at a time, and each element of the image is
//! multiplied by such a row, so that sums stay in registers over the piece. Few filters would leave most lanes empty:
//! then positions are the lanes, and every sum is a dot product. Without AVX-512 and for other dtypes functions return
//! `false`.

use super::Geometry;
use super::direct::{Correlation, applies, as_f32, as_f32_mut};
use crate::kernel::abi::Threads;
use crate::kernel::copy::host::transpose;
use crate::kernel::host::real::Real;
use crate::kernel::host::staging::{Scratch, Shared};

/// Lanes of a vector.
const LANES: usize = 16;
/// Maximal number of filters in a block: four vectors.
const MAX_FILTERS: usize = 64;
/// Positions of a piece: transposed, a piece of 64 filters fills the L1 cache. Sums of a piece begin at zero and are
/// added to the total afterwards, so that sums over large images stay accurate.
const PIECE: usize = 128;
/// Cost: with fewer filters than this, dot products are faster.
const FEW_FILTERS: usize = 9;
/// Images are summed in this many parts, in order, so that the result does not depend on the number of threads.
const PARTS: usize = 8;
/// Bound: tasks into which the channels are divided if there are few images.
const SPLITS: usize = 4;

/// `false` if this algorithm does not apply.
pub fn grad_weight<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], x: &[T], dw: &mut [T]) -> bool {
    if !applies::<T>() {
        return false;
    }
    let (dy, x, dw) = (as_f32(dy), as_f32(x), as_f32_mut(dw));
    let c = Correlation::forward(g);
    let offsets = c.offsets();
    let taps = g.taps();
    let parts = g.batch.min(PARTS);
    // With few images, channels are divided among threads as well.
    let splits = if parts * g.groups >= SPLITS { 1 } else { g.channels.min(SPLITS) };
    let few = g.filters < FEW_FILTERS;
    let width = if few { g.filters } else { g.filters.next_multiple_of(LANES) };
    let size = width * g.depth();
    if size == 0 {
        return true;
    }
    let channels_of = |split: usize| g.channels * split / splits..g.channels * (split + 1) / splits;
    let mut sums = Scratch::<f32>::zeroed(parts * g.groups * size);
    let shared = Shared::new(&mut sums);
    threads.split(parts * g.groups * splits, 1, |tasks| {
        for task in tasks {
            let (split, part, group) = (task % splits, task / splits / g.groups, task / splits % g.groups);
            let channels = channels_of(split);
            let start = (part * g.groups + group) * size + channels.start * taps * width;
            // SAFETY: tasks have their own channels of their own part.
            let sums = unsafe { shared.range(start..start + channels.len() * taps * width) };
            let offsets = &offsets[..channels.len() * taps];
            let images = g.batch * part / parts..g.batch * (part + 1) / parts;
            let units = images.map(|image| image * g.groups + group);
            let mut padded = Scratch::<f32>::new(c.padded_len());
            let end = channels.len() * c.padded_plane();
            padded[end..].fill(0.0);
            let mut each = |each: &mut dyn FnMut(&[f32], &[f32])| {
                for unit in units.clone() {
                    c.pad(&x[g.input_unit(unit)], channels.clone(), &mut padded[..end]);
                    each(&padded, &dy[g.output_unit(unit)]);
                }
            };
            if few {
                let length = c.positions().next_multiple_of(LANES);
                let mut padded = Scratch::<f32>::new(g.filters * length);
                each(&mut |image, dy| {
                    c.pad_rows(dy, length, &mut padded);
                    dot_all(&padded, length, image, offsets, sums);
                });
            } else {
                let pieces = c.pieces();
                let mut transposed = Scratch::<f32>::new(PIECE * MAX_FILTERS);
                each(&mut |image, dy| outer_all(&c, &pieces, dy, image, offsets, &mut transposed, sums));
            }
        }
    });
    let (first, others) = sums.split_at_mut(g.groups * size);
    for part in others.chunks_exact(g.groups * size) {
        first.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x);
    }
    let depth = g.depth();
    for (sums, dw) in first.chunks_exact(size).zip(dw.chunks_exact_mut(g.filters * depth)) {
        for split in 0..splits {
            let channels = channels_of(split);
            let (from, n) = (channels.start * taps, channels.len() * taps);
            for (filter, dw) in dw.chunks_exact_mut(depth).enumerate() {
                // Blocks of filters lie one after the other, each as `[n, filters of the block]`.
                let block = if few { 0 } else { filter / MAX_FILTERS * MAX_FILTERS };
                let wide = (width - block).min(MAX_FILTERS);
                let sums = &sums[from * width + block * n + filter - block..];
                dw[from..from + n].iter_mut().zip(sums.iter().step_by(wide)).for_each(|(dw, &sum)| *dw = sum);
            }
        }
    }
    true
}

/// Output positions that are contiguous in the output and, at their offset, in the padded image.
#[derive(Clone, Copy)]
struct Run {
    /// Its start in a plane of the output, and in the padded image.
    out: usize,
    image: usize,
    length: usize,
}

impl Correlation {
    /// The outputs of a plane as pieces of at most `PIECE` positions, in order.
    fn pieces(&self) -> Vec<Vec<Run>> {
        let [_, h, w] = self.padded();
        let [od, oh, ow] = self.out;
        let mut pieces: Vec<Vec<Run>> = Vec::new();
        let mut room = 0;
        for row in 0..od * oh {
            let image = (row / oh * h + row % oh) * w;
            let mut done = 0;
            while done < ow {
                // A row that fits into a piece is not cut.
                if room == 0 || (room < ow - done && ow <= PIECE) {
                    pieces.push(Vec::new());
                    room = PIECE;
                }
                let length = room.min(ow - done);
                if let Some(piece) = pieces.last_mut() {
                    piece.push(Run { out: row * ow + done, image: image + done, length });
                }
                (room, done) = (room - length, done + length);
            }
        }
        pieces
    }

    /// Copies output planes to rows of the padded width, with zeros between rows and at the end.
    fn pad_rows(&self, out: &[f32], length: usize, to: &mut [f32]) {
        let [_, h, w] = self.padded();
        let [od, oh, ow] = self.out;
        for (filter, to) in to.chunks_exact_mut(length).enumerate() {
            to.fill(0.0);
            for d in 0..od {
                for i in 0..oh {
                    let (from, at) = (((filter * od + d) * oh + i) * ow, (d * h + i) * w);
                    to[at..at + ow].copy_from_slice(&out[from..from + ow]);
                }
            }
        }
    }
}

/// Adds the gradient of an image to `sums`: blocks of up to 64 filters, each `[kernel positions, filters of the
/// block]`.
fn outer_all(
    c: &Correlation,
    pieces: &[Vec<Run>],
    dy: &[f32],
    image: &[f32],
    offsets: &[usize],
    transposed: &mut [f32],
    sums: &mut [f32],
) {
    let plane: usize = c.out.iter().product();
    for (dy, sums) in dy.chunks(MAX_FILTERS * plane).zip(sums.chunks_mut(MAX_FILTERS * offsets.len())) {
        let width = sums.len() / offsets.len().max(1);
        for piece in pieces {
            transpose(dy, plane, piece, width, transposed);
            // SAFETY: `applies` has said that the processor has AVX-512. `transposed` holds the piece's rows of `width`
            // filters, `sums` as many for each offset; an offset plus an output's place lies in the padded image.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                match width / LANES {
                    1 => outer_1(transposed, piece, image, offsets, sums),
                    2 => outer_2(transposed, piece, image, offsets, sums),
                    3 => outer_3(transposed, piece, image, offsets, sums),
                    _ => outer_4(transposed, piece, image, offsets, sums),
                }
            }
        }
    }
}

/// A piece of some filters' planes as `[positions, width]`, zeros past the last filter.
fn transpose(dy: &[f32], plane: usize, piece: &[Run], width: usize, to: &mut [f32]) {
    let filters = dy.len() / plane;
    let none = [0f32; 8];
    for first in (0..width).step_by(8) {
        let last = (first + 7).min(filters - 1);
        let mut at = first;
        for run in piece {
            for done in (0..run.length).step_by(8) {
                let start = run.out + done;
                let positions = (run.length - done).min(8);
                if start + 8 <= dy.len() - last * plane {
                    let row = |i: usize| match dy.get((first + i) * plane + start..) {
                        Some(row) if first + i <= last => row.as_ptr(),
                        _ => none.as_ptr(),
                    };
                    // SAFETY: eight elements follow each place; `applies` has said that the processor has AVX-512.
                    let lines = unsafe { square(std::array::from_fn(row)) };
                    for (j, line) in lines.iter().enumerate().take(positions) {
                        to[at + j * width..][..8].copy_from_slice(line);
                    }
                } else {
                    // The last positions one by one: loading eight elements would read past the end of the plane.
                    for j in 0..positions {
                        let column = |i: usize| dy.get((first + i) * plane + start + j).copied().unwrap_or(0.0);
                        to[at + j * width..][..8].copy_from_slice(&std::array::from_fn::<f32, 8, _>(column));
                    }
                }
                at += positions * width;
            }
        }
    }
}

/// Eight rows of eight elements, transposed.
///
/// # Safety
/// The elements exist; the processor has AVX-512, and so AVX2.
#[inline]
unsafe fn square(rows: [*const f32; 8]) -> [[f32; 8]; 8] {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: eight floats can be read from each row, and the processor has AVX2 (this function's contract).
        unsafe { transpose::eight_avx2(rows.map(<*const f32>::cast)) }.map(|line| line.map(f32::from_bits))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: eight floats can be read from each row (this function's contract).
        std::array::from_fn(|j| std::array::from_fn(|i| unsafe { *rows[i].add(j) }))
    }
}

macro_rules! outer {
    ($name:ident, $vectors:literal, $taps:literal) => {
        /// # Safety
        /// The processor has AVX-512; `outer_all` says what the slices hold.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        unsafe fn $name(transposed: &[f32], piece: &[Run], image: &[f32], offsets: &[usize], sums: &mut [f32]) {
            // SAFETY: the processor has AVX-512, and the slices hold what `outer_all` says (this function's contract).
            unsafe { outer::<$vectors, $taps>(transposed, piece, image, offsets, sums) }
        }
    };
}
// Kernel positions at a time: enough sums to hide the latency of additions, and no more than there are registers.
outer!(outer_1, 1, 12);
outer!(outer_2, 2, 8);
outer!(outer_3, 3, 8);
outer!(outer_4, 4, 6);

/// `sums[k] += sum over positions p of image[offsets[k] + p] * transposed[p]`, rows of `V` vectors.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn outer<const V: usize, const T: usize>(
    transposed: &[f32],
    piece: &[Run],
    image: &[f32],
    offsets: &[usize],
    sums: &mut [f32],
) {
    use std::arch::x86_64::*;
    // SAFETY: the processor has AVX-512, and the slices hold what `outer_all` says, which is the contract of all that
    // call this.
    unsafe {
        for (tile, offsets) in offsets.chunks(T).enumerate() {
            // Past the end the last one is computed again and discarded.
            let from: [*const f32; T] =
                std::array::from_fn(|t| image.as_ptr().add(offsets[if t < offsets.len() { t } else { 0 }]));
            let mut found = [[_mm512_setzero_ps(); V]; T];
            let mut row = transposed.as_ptr();
            for run in piece {
                for p in run.image..run.image + run.length {
                    let lanes: [__m512; V] = std::array::from_fn(|v| _mm512_loadu_ps(row.add(v * LANES)));
                    for t in 0..T {
                        let x = _mm512_set1_ps(*from[t].add(p));
                        for v in 0..V {
                            found[t][v] = _mm512_fmadd_ps(lanes[v], x, found[t][v]);
                        }
                    }
                    row = row.add(V * LANES);
                }
            }
            let sums = sums.as_mut_ptr().add(tile * T * V * LANES);
            for (t, found) in found.iter().enumerate().take(offsets.len()) {
                for (v, &found) in found.iter().enumerate() {
                    let sum = sums.add((t * V + v) * LANES);
                    _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), found));
                }
            }
        }
    }
}

/// Flattened positions of a pass of dot products: its rows stay in the L1 cache.
const CHUNK: usize = 1024;
/// Filters and kernel positions whose dot products are in registers at a time.
const ROWS: usize = 4;
const TAPS: usize = 6;

/// Adds the gradient of an image to `sums`, `[kernel positions, filters]`.
fn dot_all(dy: &[f32], length: usize, image: &[f32], offsets: &[usize], sums: &mut [f32]) {
    let (filters, depth) = (dy.len() / length.max(1), offsets.len());
    for from in (0..length).step_by(CHUNK) {
        let n = CHUNK.min(length - from);
        for k in (0..depth).step_by(TAPS) {
            // Past the end the last one is computed again and discarded.
            let x: [&[f32]; TAPS] = std::array::from_fn(|t| {
                let at = offsets[(k + t).min(depth - 1)] + from;
                &image[at..at + n]
            });
            for o in (0..filters).step_by(ROWS) {
                let rows: [&[f32]; ROWS] = std::array::from_fn(|r| {
                    let at = (o + r).min(filters - 1) * length + from;
                    &dy[at..at + n]
                });
                // SAFETY: `applies` has said that the processor has AVX-512; all slices have `n` elements, a
                // multiple of 16.
                #[cfg(target_arch = "x86_64")]
                let dots = unsafe { dot_tile(&rows, &x, n) };
                #[cfg(not(target_arch = "x86_64"))]
                let dots: [[f32; TAPS]; ROWS] = rows.map(|row| x.map(|x| row.iter().zip(x).map(|(a, b)| a * b).sum()));
                for (r, dots) in dots.iter().enumerate().take(filters - o) {
                    for (t, &dot) in dots.iter().enumerate().take(depth - k) {
                        sums[(k + t) * filters + o + r] += dot;
                    }
                }
            }
        }
    }
}

/// # Safety
/// The processor has AVX-512; every slice has `n` elements, and `n` is a multiple of 16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn dot_tile(rows: &[&[f32]; ROWS], x: &[&[f32]; TAPS], n: usize) -> [[f32; TAPS]; ROWS] {
    use std::arch::x86_64::*;
    let mut sums = [[_mm512_setzero_ps(); TAPS]; ROWS];
    for i in (0..n).step_by(LANES) {
        // SAFETY: the processor has AVX-512, and all slices have `n` elements, whole vectors (this function's
        // contract).
        unsafe {
            let x: [__m512; TAPS] = [
                _mm512_loadu_ps(x[0].as_ptr().add(i)),
                _mm512_loadu_ps(x[1].as_ptr().add(i)),
                _mm512_loadu_ps(x[2].as_ptr().add(i)),
                _mm512_loadu_ps(x[3].as_ptr().add(i)),
                _mm512_loadu_ps(x[4].as_ptr().add(i)),
                _mm512_loadu_ps(x[5].as_ptr().add(i)),
            ];
            for (row, sums) in rows.iter().zip(&mut sums) {
                let row = _mm512_loadu_ps(row.as_ptr().add(i));
                for (sum, &x) in sums.iter_mut().zip(&x) {
                    *sum = _mm512_fmadd_ps(row, x, *sum);
                }
            }
        }
    }
    let mut dots = [[0.0; TAPS]; ROWS];
    for (dots, sums) in dots.iter_mut().zip(&sums) {
        for (dot, &sum) in dots.iter_mut().zip(sums) {
            *dot = _mm512_reduce_add_ps(sum);
        }
    }
    dots
}
