//! Convolution of stride 1 in `f32` with AVX-512, from a padded image read in place.
//!
//! In an image padded to rows of `w` elements, output position p (rows flattened at that same width) needs, for each
//! kernel position, the element at p plus a constant. So every row of the im2col matrix is the image itself at an
//! offset, and the matrix is not built. The few positions past a row's end are computed and discarded. Without AVX-512
//! and for other dtypes functions return `false`, and `im2col` is used. The gradient of the weight is in `wgrad`.

use super::{Geometry, for_units};
use crate::kernel::abi::Threads;
use crate::kernel::host::real::Real;
use crate::kernel::host::staging::{Scratch, Shared};
use smallvec::SmallVec;
use std::ops::Range;

/// Filters that a register tile holds.
const FILTERS: usize = 8;
/// Positions that a register tile holds: three vectors.
const POSITIONS: usize = 48;

/// A correlation of stride 1: `out[o, p] = sum over c, t of weight(o, c, t) * image[c, p + t * dilation - low]`.
pub(super) struct Correlation {
    channels: usize,
    filters: usize,
    image: [usize; 3],
    pub out: [usize; 3],
    kernel: [usize; 3],
    dilation: [usize; 3],
    /// Padding before the image along each dim; negative values crop.
    low: [isize; 3],
}

impl Correlation {
    /// The convolution itself.
    pub fn forward(g: &Geometry) -> Correlation {
        Correlation {
            channels: g.channels,
            filters: g.filters,
            image: g.input,
            out: g.output,
            kernel: g.kernel,
            dilation: g.dilation,
            low: g.padding,
        }
    }

    pub fn padded(&self) -> [usize; 3] {
        std::array::from_fn(|i| self.out[i] + (self.kernel[i] - 1) * self.dilation[i])
    }

    pub fn padded_plane(&self) -> usize {
        self.padded().iter().product()
    }

    /// One past the last flattened position that is an output.
    pub fn positions(&self) -> usize {
        let [_, h, w] = self.padded();
        ((self.out[0] - 1) * h + self.out[1] - 1) * w + self.out[2]
    }

    /// Elements of the padded image, including those that a register tile may read past its end.
    pub fn padded_len(&self) -> usize {
        self.channels * self.padded_plane() + POSITIONS
    }

    /// Offsets into the padded image, one for each channel and kernel position.
    pub fn offsets(&self) -> Vec<usize> {
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

    /// Copies some channels of the image into the padded image.
    pub fn pad(&self, image: &[f32], channels: Range<usize>, to: &mut [f32]) {
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

    /// The outputs among flattened positions `at..at + POSITIONS`.
    fn segments(&self, at: usize) -> SmallVec<[Segment; 8]> {
        let [_, h, w] = self.padded();
        let mut segments = SmallVec::new();
        let mut done = 0;
        while done < POSITIONS {
            let (row, col) = ((at + done) / w, (at + done) % w);
            let n = (w - col).min(POSITIONS - done);
            let (d, i) = (row / h, row % h);
            if d >= self.out[0] {
                break;
            }
            if i < self.out[1] && col < self.out[2] {
                let to = (d * self.out[1] + i) * self.out[2] + col;
                segments.push(Segment { from: done, to, length: n.min(self.out[2] - col) });
            }
            done += n;
        }
        segments
    }
}

/// Adjacent outputs: their start in a register tile and in the output plane, and their number.
struct Segment {
    from: usize,
    to: usize,
    length: usize,
}

/// `true` when `T` is `f32` and the processor has AVX-512.
pub(super) fn applies<T: Real>() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        T::DTYPE == crate::base::dtype::DType::F32 && std::arch::is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// The slice as `&[f32]`; the caller has checked that `T` is `f32`.
pub(super) fn as_f32<T: Real>(x: &[T]) -> &[f32] {
    debug_assert!(applies::<T>());
    // SAFETY: `applies` has said that `T` is `f32`.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

pub(super) fn as_f32_mut<T: Real>(x: &mut [T]) -> &mut [f32] {
    debug_assert!(applies::<T>());
    // SAFETY: `applies` has said that `T` is `f32`.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) }
}

/// `false` if this algorithm does not apply. `bias` has one number for each filter.
pub fn forward<T: Real>(threads: &Threads, g: &Geometry, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) -> bool {
    if !applies::<T>() {
        return false;
    }
    let c = Correlation::forward(g);
    let depth = g.depth();
    let at = |group: usize, filter: usize, k: usize| (group * g.filters + filter) * depth + k;
    let weights = Packed::new(g.groups, &c, as_f32(w), bias.map(as_f32), at);
    let out = Shared::new(as_f32_mut(y));
    let x = as_f32(x);
    for_units(threads, g, |unit, threads| {
        run(threads, &c, &x[g.input_unit(unit)], &weights, unit % g.groups, out, g.output_unit(unit).start);
    });
    true
}

/// The gradient is the correlation of `dy` with the kernel rotated by 180°; `false` if this algorithm does not apply.
/// `bias` has one number for each channel.
pub fn grad_input<T: Real>(
    threads: &Threads,
    g: &Geometry,
    dy: &[T],
    w: &[T],
    bias: Option<&[T]>,
    dx: &mut [T],
) -> bool {
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
    let at = |group: usize, channel: usize, k: usize| {
        let (filter, tap) = (k / taps, k % taps);
        (group * g.filters + filter) * depth + channel * taps + (taps - 1 - tap)
    };
    let weights = Packed::new(g.groups, &c, as_f32(w), bias.map(as_f32), at);
    let out = Shared::new(as_f32_mut(dx));
    let dy = as_f32(dy);
    for_units(threads, g, |unit, threads| {
        run(threads, &c, &dy[g.output_unit(unit)], &weights, unit % g.groups, out, g.input_unit(unit).start);
    });
    true
}

/// Weights and biases in the order of register tiles, zeros past the last filter.
struct Packed {
    /// `[group, block of filters, channel and kernel position, filter of the block]`.
    weights: Scratch<f32>,
    /// `[group, block of filters, filter of the block]`.
    bias: Scratch<f32>,
}

impl Packed {
    /// `at(group, filter, channel and kernel position)` is a weight's place in `w`.
    fn new(
        groups: usize,
        c: &Correlation,
        w: &[f32],
        bias: Option<&[f32]>,
        at: impl Fn(usize, usize, usize) -> usize,
    ) -> Packed {
        let depth = c.channels * c.kernel.iter().product::<usize>();
        let blocks = c.filters.div_ceil(FILTERS);
        let mut weights = Scratch::zeroed(groups * blocks * depth * FILTERS);
        let mut biases = Scratch::zeroed(groups * blocks * FILTERS);
        for group in 0..groups {
            for filter in 0..c.filters {
                let block = group * blocks + filter / FILTERS;
                for k in 0..depth {
                    weights[(block * depth + k) * FILTERS + filter % FILTERS] = w[at(group, filter, k)];
                }
                if let Some(bias) = bias {
                    biases[block * FILTERS + filter % FILTERS] = bias[group * c.filters + filter];
                }
            }
        }
        Packed { weights, bias: biases }
    }
}

fn run(
    threads: &Threads,
    c: &Correlation,
    image: &[f32],
    packed: &Packed,
    group: usize,
    out: Shared<f32>,
    start: usize,
) {
    let plane = c.padded_plane();
    let mut padded = Scratch::<f32>::new(c.padded_len());
    padded[c.channels * plane..].fill(0.0);
    let shared = Shared::new(&mut padded);
    threads.split(c.channels, (16 * 1024 / plane.max(1)).max(1), |channels| {
        // SAFETY: each task has a range of channels of its own, whose padded planes do not overlap.
        let to = unsafe { shared.range(channels.start * plane..channels.end * plane) };
        c.pad(image, channels, to);
    });
    let offsets = c.offsets();
    let depth = offsets.len();
    let blocks = c.filters.div_ceil(FILTERS);
    let weights = &packed.weights[group * blocks * depth * FILTERS..][..blocks * depth * FILTERS];
    let bias = &packed.bias[group * blocks * FILTERS..][..blocks * FILTERS];
    let out_plane: usize = c.out.iter().product();
    let padded = &padded;
    threads.split(c.positions().div_ceil(POSITIONS), 4, |tiles| {
        let mut tile = [[0f32; POSITIONS]; FILTERS];
        for t in tiles {
            let at = t * POSITIONS;
            let segments = c.segments(at);
            let blocks = weights.chunks_exact(depth * FILTERS).zip(bias.chunks_exact(FILTERS)).enumerate();
            for (block, (weights, bias)) in blocks {
                // SAFETY: `applies` has said that the processor has AVX-512. Offsets plus any position stay
                // below `padded_len`: the last position is an output, tiles pass it by less than a tile.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    register_tile(&padded[at..], &offsets, weights, bias, &mut tile);
                }
                for (r, row) in tile.iter().enumerate().take(c.filters - block * FILTERS) {
                    let to = out.at(start + (block * FILTERS + r) * out_plane);
                    // SAFETY: `applies` has said that the processor has AVX-512; `out` holds the plane, and no two
                    // tiles share a position.
                    #[cfg(target_arch = "x86_64")]
                    unsafe {
                        store(row, &segments, to);
                    }
                }
            }
        }
    });
}

/// Stores the outputs of a tile's row to their plane. Not: `memcpy` of each segment, which is a call for a few
/// elements.
///
/// # Safety
/// The processor has AVX-512; the plane at `to` has these outputs, and nobody else touches them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn store(row: &[f32; POSITIONS], segments: &[Segment], to: *mut f32) {
    use std::arch::x86_64::*;
    for run in segments {
        for done in (0..run.length).step_by(16) {
            let mask = if run.length - done >= 16 { u16::MAX } else { (1 << (run.length - done)) - 1 };
            // SAFETY: the processor has AVX-512 and the plane is ours to write (this function's contract); the run lies
            // in the row.
            unsafe {
                let x = _mm512_maskz_loadu_ps(mask, row.as_ptr().add(run.from + done));
                _mm512_mask_storeu_ps(to.add(run.to + done), mask, x);
            }
        }
    }
}

/// `tile[r][p] = bias[r] + sum over k of weights[k][r] * image[offsets[k] + p]`.
///
/// # Safety
/// The processor has AVX-512, and `image` has `POSITIONS` elements from every offset on.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn register_tile(
    image: &[f32],
    offsets: &[usize],
    weights: &[f32],
    bias: &[f32],
    tile: &mut [[f32; POSITIONS]; FILTERS],
) {
    use std::arch::x86_64::*;
    debug_assert!(offsets.last().is_none_or(|&last| last + POSITIONS <= image.len()));
    // SAFETY: the processor has AVX-512 and `image` reaches far enough (this function's contract); `weights` has
    // `FILTERS` for each offset.
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
        for ((sums, row), &bias) in sums.iter().zip(tile).zip(bias) {
            let bias = _mm512_set1_ps(bias);
            for (v, &sum) in sums.iter().enumerate() {
                _mm512_storeu_ps(row.as_mut_ptr().add(16 * v), _mm512_add_ps(sum, bias));
            }
        }
    }
}
