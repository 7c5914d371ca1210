//! Sampling of images at given places (`grid_sample`), and the gradients of the image and of the places.
//!
//! A place reads up to four inputs along each dim, with weights. The positions and weights of a few places are worked out
//! at once, by loops that become vectors, and serve all channels. Formulas are those of PyTorch's `GridSampler.h`; a position
//! that is not finite, or beyond the integers, lies outside, as on its GPUs.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::guard;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real};
#[cfg(target_arch = "x86_64")]
use crate::kernel::host::simd;
use crate::kernel::host::staging::{Shared, Sink, read};
use crate::kernel::pool::host::Planes;
use half::{bf16, f16};
use std::ops::{Add, Mul, Range};

/// Values of the first attribute.
pub const LINEAR: i64 = 0;
pub const NEAREST: i64 = 1;
pub const CUBIC: i64 = 2;
/// Values of the second.
pub const ZEROS: i64 = 0;
pub const BORDER: i64 = 1;
pub const REFLECTION: i64 = 2;

/// Places that are worked out at once.
const CHUNK: usize = 64;

/// Inputs that a place reads along a dim, at most.
const MAX_TAPS: usize = 4;

/// Work of a thread, in reads of an input.
const GRAIN: usize = 16 * 1024;

/// A position in a plane: `i32`, or `i64` for planes of 2^31 elements and more. -1: outside.
trait Index: Copy + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Send + Sync {
    const NONE: Self;
    const ZERO: Self;
    fn of(n: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! index {
    ($($type:ident)*) => { $(
        impl Index for $type {
            const NONE: $type = -1;
            const ZERO: $type = 0;
            #[inline(always)]
            fn of(n: usize) -> $type {
                n as $type
            }
            #[inline(always)]
            fn get(self) -> usize {
                self as usize
            }
        }
    )* };
}
index! { i32 i64 }

/// How to sample, and the shapes.
#[derive(Clone, Copy)]
struct Sampler {
    between: i64,
    outside: i64,
    align: bool,
    samples: usize,
    channels: usize,
    /// Places of a sample.
    places: usize,
    /// Spatial dims, 2 or 3, and the sizes of three.
    dims: usize,
    size: [usize; 3],
    dtype: DType,
}

impl Sampler {
    /// Attributes: mode and padding (Int, the constants here), align_corners (Bool).
    fn of(call: &Call<'_>, x: &RawView, grid: &RawView) -> Sampler {
        let dims = x.shape.len().saturating_sub(2);
        Sampler {
            between: attributes::int(call, 0),
            outside: attributes::int(call, 1),
            align: attributes::flag(call, 2),
            samples: x.shape[0],
            channels: x.shape[1],
            places: grid.shape[1..=dims].iter().product(),
            dims,
            size: Planes::of(x, dims).size,
            dtype: x.dtype,
        }
    }

    fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// f32 or f64. f32 only where the form of `Chunks` for it serves.
    fn computes_in(&self) -> DType {
        #[cfg(target_arch = "x86_64")]
        let vectors = simd::has_avx2();
        #[cfg(not(target_arch = "x86_64"))]
        let vectors = true;
        if vectors && self.plane() <= i32::MAX as usize { self.dtype.compute() } else { DType::F64 }
    }

    /// Inputs that a place reads along dim `d`.
    fn taps(&self, d: usize) -> usize {
        match self.between {
            _ if d + self.dims < 3 => 1,
            LINEAR => 2,
            CUBIC => 4,
            _ => 1,
        }
    }

    fn all_taps(&self) -> usize {
        (0..3).map(|d| self.taps(d)).product()
    }

    /// Rounds as the operands' dtype does; cubic weights are worked out in `f32` at least, as PyTorch does it.
    #[inline(always)]
    fn round<T: Real, const ROUNDS: bool>(&self, x: T) -> T {
        if ROUNDS { T::from_f64(self.narrowed(x.to_f64())) } else { x }
    }

    fn rounds(&self) -> bool {
        matches!(self.dtype, DType::F16 | DType::BF16) && self.between != CUBIC
    }

    #[inline(never)]
    fn narrowed(&self, x: f64) -> f64 {
        if self.dtype == DType::F16 { f16::from_f64(x).to_f64() } else { bf16::from_f64(x).to_f64() }
    }

    /// From -1..1 to pixels of dim `d`.
    #[inline(always)]
    fn pixel<T: Real, const ROUNDS: bool>(&self, place: T, d: usize) -> T {
        let step: T = self.step(d);
        let x = self.round::<T, ROUNDS>(self.round::<T, ROUNDS>(place + T::ONE) * step);
        if self.align { x } else { self.round::<T, ROUNDS>(x - T::from_f64(0.5)) }
    }

    /// Pixels of dim `d` for a step of 1 of the place.
    #[inline(always)]
    fn step<T: Real>(&self, d: usize) -> T {
        let size = if self.align { self.size[d] - 1 } else { self.size[d] };
        T::from_usize(size) * T::from_f64(0.5)
    }

    /// A position held or mirrored into the image, and its derivative.
    #[inline(always)]
    fn inside<T: Real, const ROUNDS: bool, const OUTSIDE: i64>(&self, x: T, d: usize) -> (T, T) {
        let last = T::from_usize(self.size[d] - 1);
        let (mut x, mut turn) = (x, T::ONE);
        if OUTSIDE == ZEROS {
            return (x, turn);
        }
        if OUTSIDE == REFLECTION {
            let shift = T::from_f64(if self.align { 0.0 } else { 0.5 });
            let span = last + shift + shift;
            if span == T::ZERO {
                return (T::ZERO, T::ZERO);
            }
            let twice = span + span;
            x = self.round::<T, ROUNDS>(x + shift);
            if x < T::ZERO {
                (x, turn) = (-x, -turn);
            }
            x = x - (x / twice).floor() * twice;
            if x > span {
                (x, turn) = (self.round::<T, ROUNDS>(twice - x), -turn);
            }
            x = self.round::<T, ROUNDS>(x - shift);
        }
        // NaN becomes 0.
        let (low, high) = (x <= T::ZERO || Real::is_nan(x), x >= last);
        let held = if high { last } else { x };
        (if low { T::ZERO } else { held }, if low || high { T::ZERO } else { turn })
    }

    /// A position far from all images, where there is none among the integers.
    #[inline(always)]
    fn tame<T: Real>(&self, x: T) -> T {
        // The largest `f32` below 2^31.
        let most = T::from_f64(2_147_483_520.0);
        if x < most && x > -most { x } else { T::from_f64(-100.0) }
    }

    /// The index of a whole position of dim `d`.
    #[inline(always)]
    fn index<T: Chunks>(&self, x: T, d: usize) -> T::At {
        let known = x >= T::ZERO && x <= T::from_usize(self.size[d] - 1);
        // SAFETY: no element of a plane is beyond the integers, of f32 those of `i32` (`computes_in`).
        let index = unsafe { T::whole(if known { x } else { T::ZERO }) };
        if known { index } else { T::At::NONE }
    }
}

/// What a chunk of places reads along one dim: indices, weights, and the derivatives of these by the place.
struct Line<T: Chunks> {
    at: [[T::At; CHUNK]; MAX_TAPS],
    weight: [[T; CHUNK]; MAX_TAPS],
    slope: [[T; CHUNK]; MAX_TAPS],
}

impl<T: Chunks> Line<T> {
    /// One tap at 0, for dims that are not there.
    fn new() -> Line<T> {
        Line {
            at: [[T::At::ZERO; CHUNK]; MAX_TAPS],
            weight: [[T::ONE; CHUNK]; MAX_TAPS],
            slope: [[T::ZERO; CHUNK]; MAX_TAPS],
        }
    }

    /// The loops are compiled for what they do at each place, so that they become vectors.
    #[inline(always)]
    fn fill(&mut self, s: &Sampler, d: usize, place: &[T; CHUNK]) {
        match (s.rounds(), s.outside) {
            (false, ZEROS) => self.fill_by::<false, ZEROS>(s, d, place),
            (false, BORDER) => self.fill_by::<false, BORDER>(s, d, place),
            (false, _) => self.fill_by::<false, REFLECTION>(s, d, place),
            (true, ZEROS) => self.fill_by::<true, ZEROS>(s, d, place),
            (true, BORDER) => self.fill_by::<true, BORDER>(s, d, place),
            (true, _) => self.fill_by::<true, REFLECTION>(s, d, place),
        }
    }

    #[inline(always)]
    fn fill_by<const ROUNDS: bool, const OUTSIDE: i64>(&mut self, s: &Sampler, d: usize, place: &[T; CHUNK]) {
        match s.between {
            LINEAR => self.linear::<ROUNDS, OUTSIDE>(s, d, place),
            NEAREST => self.nearest::<ROUNDS, OUTSIDE>(s, d, place),
            _ => self.cubic::<OUTSIDE>(s, d, place),
        }
    }

    #[inline(always)]
    fn linear<const ROUNDS: bool, const OUTSIDE: i64>(&mut self, s: &Sampler, d: usize, place: &[T; CHUNK]) {
        for (p, &place) in place.iter().enumerate() {
            let (x, turn) = s.inside::<T, ROUNDS, OUTSIDE>(s.pixel::<T, ROUNDS>(place, d), d);
            let x = s.tame(x);
            let low = x.floor();
            let up = x - low;
            let step: T = s.step(d);
            let slope = turn * step;
            (self.at[0][p], self.at[1][p]) = (s.index(low, d), s.index(low + T::ONE, d));
            (self.weight[0][p], self.weight[1][p]) = (T::ONE - up, up);
            (self.slope[0][p], self.slope[1][p]) = (-slope, slope);
        }
    }

    #[inline(always)]
    fn nearest<const ROUNDS: bool, const OUTSIDE: i64>(&mut self, s: &Sampler, d: usize, place: &[T; CHUNK]) {
        for (p, &place) in place.iter().enumerate() {
            let (x, _) = s.inside::<T, ROUNDS, OUTSIDE>(s.pixel::<T, ROUNDS>(place, d), d);
            self.at[0][p] = s.index(s.tame(x).round_even(), d);
        }
    }

    /// Keys' kernel with a = -3/4 at distances 1 + t, t, 1 - t and 2 - t.
    #[inline(always)]
    fn cubic<const OUTSIDE: i64>(&mut self, s: &Sampler, d: usize, place: &[T; CHUNK]) {
        let n = T::from_f64;
        let (a, b, c) = (n(-0.75), n(1.25), n(2.25));
        for (p, &place) in place.iter().enumerate() {
            let x = s.pixel::<T, false>(place, d);
            let low = x.floor();
            let t = x - low;
            let step: T = s.step(d);
            let (t0, t2, t3) = (t + T::ONE, T::ONE - t, n(2.0) - t);
            let far = |x: T| ((a * x - n(5.0) * a) * x + n(8.0) * a) * x - n(4.0) * a;
            let near = |x: T| (b * x - c) * x * x + T::ONE;
            let far_slope = |x: T| (n(3.0) * a * x - n(10.0) * a) * x + n(8.0) * a;
            let near_slope = |x: T| (n(3.0) * b * x - n(2.0) * c) * x;
            let weights = [far(t0), near(t), near(t2), far(t3)];
            let slopes = [far_slope(t0), near_slope(t), -near_slope(t2), -far_slope(t3)];
            for tap in 0..4 {
                let (x, _) = s.inside::<T, false, OUTSIDE>(low + T::from_usize(tap) - T::ONE, d);
                self.at[tap][p] = s.index(x, d);
                self.weight[tap][p] = weights[tap];
                self.slope[tap][p] = slopes[tap] * step;
            }
        }
    }
}

/// What a chunk of places reads: by tap, indices in the plane and weights. The taps of the last dim alternate fastest.
struct Reads<T: Chunks> {
    lines: [Line<T>; 3],
    at: Vec<[T::At; CHUNK]>,
    weight: Vec<[T; CHUNK]>,
}

impl<T: Chunks> Reads<T> {
    fn new(s: &Sampler) -> Reads<T> {
        Reads {
            lines: [Line::new(), Line::new(), Line::new()],
            at: vec![[T::At::NONE; CHUNK]; s.all_taps()],
            weight: vec![[T::ZERO; CHUNK]; s.all_taps()],
        }
    }

    /// For places of `grid`, at most a chunk; the others of the chunk are somewhere.
    #[inline(always)]
    fn fill_with(&mut self, s: &Sampler, grid: &[T]) {
        let mut place = [T::ZERO; CHUNK];
        for d in 3 - s.dims..3 {
            // Places name the last dim first.
            let from = grid.chunks_exact(s.dims);
            place.iter_mut().zip(from).for_each(|(place, from)| *place = from[2 - d]);
            self.lines[d].fill(s, d, &place);
        }
        let mut tap = 0;
        for i in 0..s.taps(0) {
            for j in 0..s.taps(1) {
                for k in 0..s.taps(2) {
                    self.join(s, tap, [i, j, k]);
                    tap += 1;
                }
            }
        }
    }

    #[inline(always)]
    fn join(&mut self, s: &Sampler, tap: usize, taps: [usize; 3]) {
        let [a, b, c] = &self.lines;
        let [i, j, k] = taps;
        let (height, width) = (T::At::of(s.size[1]), T::At::of(s.size[2]));
        let (at, weight) = (&mut self.at[tap], &mut self.weight[tap]);
        for p in 0..CHUNK {
            let known = a.at[i][p] >= T::At::ZERO && b.at[j][p] >= T::At::ZERO && c.at[k][p] >= T::At::ZERO;
            let index = (a.at[i][p] * height + b.at[j][p]) * width + c.at[k][p];
            at[p] = if known { index } else { T::At::NONE };
            weight[p] = c.weight[k][p] * b.weight[j][p] * a.weight[i][p];
        }
    }

    /// The derivatives of the weights of a tap by the places, the last dim first.
    #[inline(always)]
    fn slopes(&self, taps: [usize; 3], p: usize) -> [T; 3] {
        let [a, b, c] = &self.lines;
        let [i, j, k] = taps;
        let (wa, wb, wc) = (a.weight[i][p], b.weight[j][p], c.weight[k][p]);
        [c.slope[k][p] * wb * wa, b.slope[j][p] * wc * wa, a.slope[i][p] * wc * wb]
    }
}

/// Inputs of a chunk in a plane; 0 outside.
///
/// # Safety
/// What `at` names lies in the plane.
#[inline(always)]
unsafe fn fetch<T: Chunks>(plane: &[T], at: &[T::At; CHUNK], p: usize) -> T {
    let known = at[p] >= T::At::ZERO;
    // SAFETY: a plane has an element, and an index that is not -1 is one of the plane.
    let x = unsafe { *plane.get_unchecked(if known { at[p].get() } else { 0 }) };
    if known { x } else { T::ZERO }
}

/// Compiled for f64 and, once, for f32 with AVX2 and planes whose elements i32 counts: all forms at all levels of vectors would
/// be a fiftieth of the program.
trait Chunks: Real {
    /// A position in a plane.
    type At: Index;
    /// Of a whole number.
    ///
    /// # Safety
    /// It is one of the type's.
    unsafe fn whole(x: Self) -> Self::At;
    /// What a chunk of places reads.
    fn fill(reads: &mut Reads<Self>, s: &Sampler, grid: &[Self]);
    /// Reads at the places of the chunks of `range`, counted over all samples.
    fn sample(s: &Sampler, x: &[Self], grid: &[Self], out: Shared<Self>, range: Range<usize>);
    /// Makes the gradients of the places of the chunks of `range`.
    fn grade(s: &Sampler, operands: [&[Self]; 3], out: Shared<Self>, range: Range<usize>);
}

impl Chunks for f64 {
    type At = i64;
    #[inline(always)]
    unsafe fn whole(x: f64) -> i64 {
        // SAFETY: the caller's.
        unsafe { x.to_int_unchecked() }
    }
    fn fill(reads: &mut Reads<f64>, s: &Sampler, grid: &[f64]) {
        reads.fill_with(s, grid)
    }
    fn sample(s: &Sampler, x: &[f64], grid: &[f64], out: Shared<f64>, range: Range<usize>) {
        sample(s, x, grid, out, range)
    }
    fn grade(s: &Sampler, operands: [&[f64]; 3], out: Shared<f64>, range: Range<usize>) {
        grade(s, operands, out, range)
    }
}

impl Chunks for f32 {
    type At = i32;
    #[inline(always)]
    unsafe fn whole(x: f32) -> i32 {
        // SAFETY: the caller's.
        unsafe { x.to_int_unchecked() }
    }
    fn fill(reads: &mut Reads<f32>, s: &Sampler, grid: &[f32]) {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi2"))]
        unsafe fn wide(reads: &mut Reads<f32>, s: &Sampler, grid: &[f32]) {
            reads.fill_with(s, grid)
        }
        // SAFETY: `Sampler::computes_in` names f32 where the processor has the features.
        unsafe { wide(reads, s, grid) }
    }
    fn sample(s: &Sampler, x: &[f32], grid: &[f32], out: Shared<f32>, range: Range<usize>) {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi2"))]
        unsafe fn wide(s: &Sampler, x: &[f32], grid: &[f32], out: Shared<f32>, range: Range<usize>) {
            sample(s, x, grid, out, range)
        }
        // SAFETY: `Sampler::computes_in` names f32 where the processor has the features.
        unsafe { wide(s, x, grid, out, range) }
    }
    fn grade(s: &Sampler, operands: [&[f32]; 3], out: Shared<f32>, range: Range<usize>) {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi2"))]
        unsafe fn wide(s: &Sampler, operands: [&[f32]; 3], out: Shared<f32>, range: Range<usize>) {
            grade(s, operands, out, range)
        }
        // SAFETY: `Sampler::computes_in` names f32 where the processor has the features.
        unsafe { wide(s, operands, out, range) }
    }
}

#[inline(always)]
fn sample<T: Chunks>(s: &Sampler, x: &[T], grid: &[T], out: Shared<T>, range: Range<usize>) {
    let (chunks, plane) = (s.places.div_ceil(CHUNK), s.plane());
    let mut reads = Reads::<T>::new(s);
    for chunk in range {
        let (n, first) = (chunk / chunks, chunk % chunks * CHUNK);
        let len = CHUNK.min(s.places - first);
        let start = n * s.places + first;
        T::fill(&mut reads, s, &grid[start * s.dims..(start + len) * s.dims]);
        for c in n * s.channels..(n + 1) * s.channels {
            let x = &x[c * plane..(c + 1) * plane];
            let mut sum = [T::ZERO; CHUNK];
            for (at, weight) in reads.at.iter().zip(&reads.weight) {
                for p in 0..CHUNK {
                    // SAFETY: `fill` names elements of the plane.
                    sum[p] += unsafe { fetch(x, at, p) } * weight[p];
                }
            }
            let start = c * s.places + first;
            // SAFETY: a part of the output that no other chunk has.
            unsafe { out.range(start..start + len) }.copy_from_slice(&sum[..len]);
        }
    }
}

/// Reads images at places. Inputs: `x` `[N, C, d..]`, float, of 2 or 3 spatial dims, not empty; `grid` `[N, o.., dims]` of its
/// dtype, which names the last dim first. Output: `[N, C, o..]`. Attributes: how to read between pixels and what is outside
/// (Int, the constants of this module), align_corners (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn grid_sample(call: &Call<'_>) {
    let s = Sampler::of(call, &call.inputs[0], &call.inputs[1]);
    if s.samples * s.channels * s.places == 0 {
        return;
    }
    real!(s.computes_in(), T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let grid = read::<T>(&call.inputs[1], call.threads);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(y.slice());
            let work = CHUNK * s.all_taps() * (s.channels + 2);
            call.threads.split(s.samples * s.places.div_ceil(CHUNK), GRAIN.div_ceil(work), |range| {
                T::sample(&s, &x, &grid, out, range);
            });
            y.finish(call.threads);
        }
    });
}

/// Adds the gradients of the planes of `range`, counted over all samples, to `dx`.
fn spread<T: Chunks>(s: &Sampler, g: &[T], grid: &[T], dx: Shared<T>, range: Range<usize>) {
    let plane = s.plane();
    let mut reads = Reads::<T>::new(s);
    let mut begin = range.start;
    while begin < range.end {
        let n = begin / s.channels;
        let end = ((n + 1) * s.channels).min(range.end);
        // SAFETY: planes that no other thread has.
        let dx = unsafe { dx.range(begin * plane..end * plane) };
        dx.fill(T::ZERO);
        for first in (0..s.places).step_by(CHUNK) {
            guard::check_every(first / CHUNK, 256);
            let len = CHUNK.min(s.places - first);
            let start = n * s.places + first;
            T::fill(&mut reads, s, &grid[start * s.dims..(start + len) * s.dims]);
            for (c, dx) in (begin..end).zip(dx.chunks_exact_mut(plane)) {
                let start = c * s.places + first;
                let g = &g[start..start + len];
                for (at, weight) in reads.at.iter().zip(&reads.weight) {
                    for (p, &g) in g.iter().enumerate() {
                        if at[p] >= T::At::ZERO {
                            dx[at[p].get()] += g * weight[p];
                        }
                    }
                }
            }
        }
        begin = end;
    }
}

#[inline(always)]
fn grade<T: Chunks>(s: &Sampler, [g, x, grid]: [&[T]; 3], out: Shared<T>, range: Range<usize>) {
    let (chunks, plane) = (s.places.div_ceil(CHUNK), s.plane());
    let mut reads = Reads::<T>::new(s);
    // By tap, the sum over the channels of the gradient times what was read.
    let mut shares = vec![[T::ZERO; CHUNK]; s.all_taps()];
    for chunk in range {
        let (n, first) = (chunk / chunks, chunk % chunks * CHUNK);
        let len = CHUNK.min(s.places - first);
        let start = n * s.places + first;
        T::fill(&mut reads, s, &grid[start * s.dims..(start + len) * s.dims]);
        shares.fill([T::ZERO; CHUNK]);
        for c in n * s.channels..(n + 1) * s.channels {
            let x = &x[c * plane..(c + 1) * plane];
            let start = c * s.places + first;
            let mut along = [T::ZERO; CHUNK];
            along[..len].copy_from_slice(&g[start..start + len]);
            for (at, share) in reads.at.iter().zip(&mut shares) {
                for p in 0..CHUNK {
                    // SAFETY: `fill` names elements of the plane.
                    share[p] += along[p] * unsafe { fetch(x, at, p) };
                }
            }
        }
        // SAFETY: a part of the output that no other chunk has.
        let out = unsafe { out.range(start * s.dims..(start + len) * s.dims) };
        out.fill(T::ZERO);
        let mut shares = shares.iter();
        for i in 0..s.taps(0) {
            for j in 0..s.taps(1) {
                for (k, share) in (0..s.taps(2)).zip(&mut shares) {
                    for (p, out) in out.chunks_exact_mut(s.dims).enumerate() {
                        let slopes = reads.slopes([i, j, k], p);
                        out.iter_mut().zip(slopes).for_each(|(out, slope)| *out += share[p] * slope);
                    }
                }
            }
        }
    }
}

/// The outputs of `grid_sample_grad`, those for `x` and for `grid`, as its flags say.
pub fn wanted<'a>(call: &Call<'a>) -> [Option<&'a RawView>; 2] {
    let mut outputs = call.outputs.iter();
    let mut next = |flag: usize| if attributes::flag(call, flag) { outputs.next() } else { None };
    let dx = next(3);
    [dx, next(4)]
}

/// Gradients of `grid_sample`. Attributes: as `grid_sample`, and two flags, which gradients are made: of `x`, of `grid`. Outputs:
/// those. Inputs: gradient of the output; `grid`; `x` where the gradient of `grid` is made.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn grid_sample_grad(call: &Call<'_>) {
    let [dx, dgrid] = wanted(call);
    let Some(image) = dx.or(call.inputs.get(2)) else { return };
    let s = Sampler::of(call, image, &call.inputs[1]);
    let work = CHUNK * s.all_taps() * (s.channels + 2);
    real!(s.computes_in(), T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let g = read::<T>(&call.inputs[0], call.threads);
            let grid = read::<T>(&call.inputs[1], call.threads);
            if let Some(dx) = dx {
                let mut sink = Sink::<T>::new(dx);
                let out = Shared::new(sink.slice());
                let work = s.places * s.all_taps() + s.plane();
                call.threads.split(s.samples * s.channels, GRAIN.div_ceil(work.max(1)), |range| {
                    spread(&s, &g, &grid, out, range);
                });
                sink.finish(call.threads);
            }
            if let Some(dgrid) = dgrid {
                let x = read::<T>(&call.inputs[2], call.threads);
                let mut sink = Sink::<T>::new(dgrid);
                let out = Shared::new(sink.slice());
                call.threads.split(s.samples * s.places.div_ceil(CHUNK), GRAIN.div_ceil(work), |range| {
                    T::grade(&s, [&g, &x, &grid], out, range);
                });
                sink.finish(call.threads);
            }
        }
    });
}
