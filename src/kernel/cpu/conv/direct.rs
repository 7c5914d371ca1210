//! Convolution of stride 1 in `f32` with AVX-512, from a padded image read in place.
//!
//! In an image padded to rows of `w` elements, output position p (rows flattened at that same width) needs,
//! for each kernel position, the element at p plus a constant. So every row of the unfolded input is the
//! image itself at an offset, and nothing is unfolded. The few positions past a row's end are computed and
//! thrown away. Machines without AVX-512 and other dtypes are told `false`, and take `columns`.

use super::{Geometry, for_units};
use crate::kernel::abi::Threads;
use crate::kernel::cpu::real::Real;
use crate::kernel::cpu::staging::{Scratch, Shared};
use std::ops::Range;

/// Filters that a register tile holds.
const FILTERS: usize = 8;
/// Positions that a register tile holds: three vectors.
const POSITIONS: usize = 48;

/// A correlation of stride 1: `out[o, p] = sum over c, t of weight(o, c, t) * image[c, p + t * dilation - low]`.
struct Correlation {
    channels: usize,
    filters: usize,
    image: [usize; 3],
    out: [usize; 3],
    kernel: [usize; 3],
    dilation: [usize; 3],
    /// Zeros before the image along each dim; negative cuts.
    low: [isize; 3],
}

impl Correlation {
    fn padded(&self) -> [usize; 3] {
        std::array::from_fn(|i| self.out[i] + (self.kernel[i] - 1) * self.dilation[i])
    }

    fn padded_plane(&self) -> usize {
        self.padded().iter().product()
    }

    /// One past the last flattened position that is an output.
    fn positions(&self) -> usize {
        let [_, h, w] = self.padded();
        ((self.out[0] - 1) * h + self.out[1] - 1) * w + self.out[2]
    }

    /// Elements of the padded image, and what a register tile may read past it.
    fn padded_len(&self) -> usize {
        self.channels * self.padded_plane() + POSITIONS
    }

    /// Offsets into the padded image, one for each channel and kernel position.
    fn offsets(&self) -> Vec<usize> {
        let [_, h, w] = self.padded();
        let [kd, kh, kw] = self.kernel;
        let mut offsets = Vec::with_capacity(self.channels * kd * kh * kw);
        for c in 0..self.channels {
            for d in 0..kd {
                for i in 0..kh {
                    for j in 0..kw {
                        let row = d * self.dilation[0] * h + i * self.dilation[1];
                        offsets.push(c * self.padded_plane() + row * w + j * self.dilation[2]);
                    }
                }
            }
        }
        offsets
    }

    /// Copies some channels of the image between its zeros.
    fn pad(&self, image: &[f32], channels: Range<usize>, to: &mut [f32]) {
        let [d, h, w] = self.padded();
        let [sd, sh, sw] = self.image;
        let inside = |at: usize, dim: usize, size: usize| {
            let at = at as isize - self.low[dim];
            (at >= 0 && at < size as isize).then_some(at as usize)
        };
        let start = self.low[2].clamp(0, w as isize) as usize;
        let end = (self.low[2] + sw as isize).clamp(start as isize, w as isize) as usize;
        let first = (start as isize - self.low[2]) as usize;
        let mut rows = to.chunks_exact_mut(w);
        for c in channels {
            for i in 0..d {
                for j in 0..h {
                    let Some(row) = rows.next() else { return };
                    match (inside(i, 0, sd), inside(j, 1, sh)) {
                        (Some(i), Some(j)) if start < end => {
                            let from = ((c * sd + i) * sh + j) * sw + first;
                            row[..start].fill(0.0);
                            row[start..end].copy_from_slice(&image[from..from + end - start]);
                            row[end..].fill(0.0);
                        }
                        _ => row.fill(0.0),
                    }
                }
            }
        }
    }

    /// Takes the outputs among flattened positions `at..at + POSITIONS` from `tile` to the plane at `start`.
    ///
    /// # Safety
    /// `out` holds the plane, and no other thread touches these outputs.
    unsafe fn store(&self, tile: &[f32; POSITIONS], at: usize, out: Shared<f32>, start: usize) {
        let [_, h, w] = self.padded();
        let mut done = 0;
        while done < POSITIONS {
            let (row, col) = ((at + done) / w, (at + done) % w);
            let n = (w - col).min(POSITIONS - done);
            let (d, i) = (row / h, row % h);
            if d >= self.out[0] {
                return;
            }
            if i < self.out[1] && col < self.out[2] {
                let keep = n.min(self.out[2] - col);
                let to = start + (d * self.out[1] + i) * self.out[2] + col;
                // SAFETY: the caller's promise.
                unsafe { out.range(to..to + keep) }.copy_from_slice(&tile[done..done + keep]);
            }
            done += n;
        }
    }
}

/// `true` when `T` is `f32` and the processor has AVX-512.
fn applies<T: Real>() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        T::DTYPE == crate::base::dtype::DType::F32 && std::arch::is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// The same slice, as the type that it is.
fn as_f32<T: Real>(x: &[T]) -> &[f32] {
    debug_assert!(applies::<T>());
    // SAFETY: `applies` has said that `T` is `f32`.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

fn as_f32_mut<T: Real>(x: &mut [T]) -> &mut [f32] {
    debug_assert!(applies::<T>());
    // SAFETY: `applies` has said that `T` is `f32`.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) }
}

/// `false` when this way does not apply.
pub fn forward<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], y: &mut [T]) -> bool {
    if !applies::<T>() {
        return false;
    }
    let c = Correlation {
        channels: g.channels,
        filters: g.filters,
        image: g.input,
        out: g.output,
        kernel: g.kernel,
        dilation: g.dilation,
        low: g.padding,
    };
    let depth = g.depth();
    let weights = pack(g.groups, &c, as_f32(w), |group, filter, k| (group * g.filters + filter) * depth + k);
    let out = Shared::new(as_f32_mut(y));
    let x = as_f32(x);
    for_units(threads, g, |unit, threads| {
        run(threads, &c, &x[g.input_unit(unit)], &weights, unit % g.groups, out, g.output_unit(unit).start);
    });
    true
}

/// The gradient is the correlation of `dy` with the kernel turned round; `false` when this way does not apply.
pub fn grad_input<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], w: &[T], dx: &mut [T]) -> bool {
    if !applies::<T>() {
        return false;
    }
    let c = Correlation {
        channels: g.filters,
        filters: g.channels,
        image: g.output,
        out: g.input,
        kernel: g.kernel,
        dilation: g.dilation,
        low: std::array::from_fn(|i| ((g.kernel[i] - 1) * g.dilation[i]) as isize - g.padding[i]),
    };
    let (depth, taps) = (g.depth(), g.taps());
    let weights = pack(g.groups, &c, as_f32(w), |group, channel, k| {
        let (filter, tap) = (k / taps, k % taps);
        (group * g.filters + filter) * depth + channel * taps + (taps - 1 - tap)
    });
    let out = Shared::new(as_f32_mut(dx));
    let dy = as_f32(dy);
    for_units(threads, g, |unit, threads| {
        run(threads, &c, &dy[g.output_unit(unit)], &weights, unit % g.groups, out, g.input_unit(unit).start);
    });
    true
}

/// Weights as `[group, block of filters, channel and kernel position, filter of the block]`, zeros at the end.
fn pack(groups: usize, c: &Correlation, w: &[f32], at: impl Fn(usize, usize, usize) -> usize) -> Scratch<f32> {
    let depth = c.channels * c.kernel.iter().product::<usize>();
    let blocks = c.filters.div_ceil(FILTERS);
    let mut packed = Scratch::zeroed(groups * blocks * depth * FILTERS);
    for group in 0..groups {
        for filter in 0..c.filters {
            let block = group * blocks + filter / FILTERS;
            for k in 0..depth {
                packed[(block * depth + k) * FILTERS + filter % FILTERS] = w[at(group, filter, k)];
            }
        }
    }
    packed
}

fn run(
    threads: &Threads,
    c: &Correlation,
    image: &[f32],
    weights: &[f32],
    group: usize,
    out: Shared<f32>,
    start: usize,
) {
    let plane = c.padded_plane();
    let mut padded = Scratch::<f32>::new(c.padded_len());
    padded[c.channels * plane..].fill(0.0);
    let shared = Shared::new(&mut padded);
    threads.split(c.channels, (16 * 1024 / plane.max(1)).max(1), |channels| {
        // SAFETY: channels are disjoint.
        let to = unsafe { shared.range(channels.start * plane..channels.end * plane) };
        c.pad(image, channels, to);
    });
    let offsets = c.offsets();
    let depth = offsets.len();
    let blocks = c.filters.div_ceil(FILTERS);
    let weights = &weights[group * blocks * depth * FILTERS..][..blocks * depth * FILTERS];
    let out_plane: usize = c.out.iter().product();
    let padded = &padded;
    threads.split(c.positions().div_ceil(POSITIONS), 4, |tiles| {
        let mut tile = [[0f32; POSITIONS]; FILTERS];
        for t in tiles {
            let at = t * POSITIONS;
            for (block, weights) in weights.chunks_exact(depth * FILTERS).enumerate() {
                // SAFETY: `applies` has said that the processor has AVX-512. Offsets plus any position stay
                // below `padded_len`: the last position is an output, tiles pass it by less than a tile.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    register_tile(&padded[at..], &offsets, weights, &mut tile);
                }
                for (r, row) in tile.iter().enumerate().take(c.filters - block * FILTERS) {
                    // SAFETY: no two tiles share a position.
                    unsafe { c.store(row, at, out, start + (block * FILTERS + r) * out_plane) };
                }
            }
        }
    });
}

/// `tile[r][p] = sum over k of weights[k][r] * image[offsets[k] + p]`.
///
/// # Safety
/// The processor has AVX-512, and `image` has `POSITIONS` elements from every offset on.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn register_tile(image: &[f32], offsets: &[usize], weights: &[f32], tile: &mut [[f32; POSITIONS]; FILTERS]) {
    use std::arch::x86_64::*;
    debug_assert!(offsets.last().is_none_or(|&last| last + POSITIONS <= image.len()));
    // SAFETY: the caller's promise about the image; `weights` has `FILTERS` for each offset.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); 3]; FILTERS];
        let mut w = weights.as_ptr();
        for &offset in offsets {
            let p = image.as_ptr().add(offset);
            let x = [_mm512_loadu_ps(p), _mm512_loadu_ps(p.add(16)), _mm512_loadu_ps(p.add(32))];
            for (r, sums) in sums.iter_mut().enumerate() {
                let w = _mm512_set1_ps(*w.add(r));
                sums[0] = _mm512_fmadd_ps(w, x[0], sums[0]);
                sums[1] = _mm512_fmadd_ps(w, x[1], sums[1]);
                sums[2] = _mm512_fmadd_ps(w, x[2], sums[2]);
            }
            w = w.add(FILTERS);
        }
        for (sums, row) in sums.iter().zip(tile) {
            for (v, &sum) in sums.iter().enumerate() {
                _mm512_storeu_ps(row.as_mut_ptr().add(16 * v), sum);
            }
        }
    }
}

/// Flattened positions that a pass over the weights' gradient takes: the rows in use stay in the first-level cache.
const CHUNK: usize = 1024;
/// Filters and kernel positions whose sums are in registers at a time.
const ROWS: usize = 4;
const TAPS: usize = 6;
/// Images are summed in this many parts, in order: the result does not depend on the number of threads.
const PARTS: usize = 8;

/// dw[o, k] is the dot product of `dy`, spread to the padded width with zeros between, and the padded image at
/// the offset of k; `false` when this way does not apply.
pub fn grad_weight<T: Real>(threads: &Threads, g: &Geometry, dy: &[T], x: &[T], dw: &mut [T]) -> bool {
    if !applies::<T>() {
        return false;
    }
    let (dy, x, dw) = (as_f32(dy), as_f32(x), as_f32_mut(dw));
    let c = Correlation {
        channels: g.channels,
        filters: g.filters,
        image: g.input,
        out: g.output,
        kernel: g.kernel,
        dilation: g.dilation,
        low: g.padding,
    };
    let offsets = c.offsets();
    let size = g.filters * g.depth();
    let parts = g.batch.min(PARTS);
    // With few images, filters are shared out instead; each task then pads the image for itself.
    let splits = if parts * g.groups >= 4 { 1 } else { g.filters.div_ceil(ROWS).min(4) };
    let mut sums = Scratch::<f32>::zeroed(parts * g.groups * size);
    let shared = Shared::new(&mut sums);
    threads.split(parts * g.groups * splits, 1, |tasks| {
        let mut padded = Scratch::<f32>::new(c.padded_len());
        let length = c.positions().next_multiple_of(16);
        for task in tasks {
            let (split, part, group) = (task % splits, task / splits / g.groups, task / splits % g.groups);
            let filters = g.filters * split / splits..g.filters * (split + 1) / splits;
            let mut spread = Scratch::<f32>::new(filters.len() * length);
            let start = (part * g.groups + group) * size;
            // SAFETY: tasks have their own filters of their own part.
            let sums = unsafe { shared.range(start + filters.start * g.depth()..start + filters.end * g.depth()) };
            for image in g.batch * part / parts..g.batch * (part + 1) / parts {
                let unit = image * g.groups + group;
                padded[c.channels * c.padded_plane()..].fill(0.0);
                c.pad(&x[g.input_unit(unit)], 0..c.channels, &mut padded);
                c.spread(&dy[g.output_unit(unit)], filters.clone(), length, &mut spread);
                dot_all(&spread, length, &padded, &offsets, sums);
            }
        }
    });
    dw.fill(0.0);
    for part in sums.chunks_exact(g.groups * size) {
        dw.iter_mut().zip(part).for_each(|(dw, &x)| *dw += x);
    }
    true
}

impl Correlation {
    /// Output planes laid out at the padded width, zeros between rows and at the end.
    fn spread(&self, out: &[f32], filters: Range<usize>, length: usize, to: &mut [f32]) {
        let [_, h, w] = self.padded();
        let [od, oh, ow] = self.out;
        for (filter, to) in filters.zip(to.chunks_exact_mut(length)) {
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

fn dot_all(dy: &[f32], length: usize, image: &[f32], offsets: &[usize], sums: &mut [f32]) {
    let (filters, depth) = (dy.len() / length.max(1), offsets.len());
    for from in (0..length).step_by(CHUNK) {
        let n = CHUNK.min(length - from);
        for k in (0..depth).step_by(TAPS) {
            // Past the end the last one is computed again, and not used.
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
                        sums[(o + r) * depth + k + t] += dot;
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
    for i in (0..n).step_by(16) {
        // SAFETY: the caller's promise.
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
