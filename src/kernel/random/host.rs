//! Random values by element index: uniform, normal, integers, permutations.
//!
//! An element's value depends only on the seed, the first counter and its index (`base::rng` defines how), so results
//! are the same for any tiles, threads and devices. Words are computed for 64 counters at a time, which is vectorized.

use crate::base::rng::{self, SECOND};
use crate::kernel::abi::Call;
use crate::kernel::fused::host::{cast, store};
use crate::kernel::guard;
use crate::kernel::host::rows::prefetch;
use crate::kernel::host::simd;
use crate::kernel::host::simd::{Simd, levels, without_highest};
use crate::kernel::math::Math;
use crate::kernel::program::{Class, Draw};

/// Counters whose words are computed at once.
const BLOCK: usize = 64;
const VALUES: usize = 4 * BLOCK;

/// A random operation: how words become values, its seed and its first counter.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    draw: Draw,
    seed: u64,
    first: u64,
    low: i64,
    range: u64,
}

impl Source {
    /// `scalars`: seed and first counter; for `Integer` also low and range.
    pub fn new(draw: Draw, scalars: &[u64]) -> Source {
        let integer = matches!(draw, Draw::Integer);
        let entry = |i: usize| if integer { scalars[i] } else { 0 };
        Source { draw, seed: scalars[0], first: scalars[1], low: entry(2) as i64, range: entry(3) }
    }

    /// Values of elements `start`, `start + step`, ...
    ///
    /// # Safety
    /// `out` has room for `n` elements of `class`.
    pub unsafe fn fill(&self, class: Class, start: u64, step: u64, n: usize, out: *mut u8) {
        let make = block(self.draw, class)[simd::level()];
        let size = class.size_bytes();
        let mut values = [0u64; VALUES];
        let block = values.as_mut_ptr().cast::<u8>();
        let mut done = 0;
        while done < n {
            let index = start.wrapping_add(step.wrapping_mul(done as u64));
            let lane = (index % 4) as usize;
            let take = if step == 1 { (n - done).min(VALUES - lane) } else { 1 };
            // SAFETY: a block has room for its counters' values, and `out` for `n` (this function's contract).
            unsafe {
                make(self, self.first.wrapping_add(index / 4), (lane + take).div_ceil(4), block);
                std::ptr::copy_nonoverlapping(block.add(lane * size), out.add(done * size), take * size);
            }
            done += take;
        }
    }
}

/// Values of all lanes of some counters: (source, first counter, counters, out).
type BlockFn = unsafe fn(&Source, u64, usize, *mut u8);

/// The words of `count` counters, lane by lane.
#[inline(always)]
fn words(seed: u64, first: u64, count: usize) -> [[u32; BLOCK]; 4] {
    let mut words = [[0; BLOCK]; 4];
    let [w0, w1, w2, w3] = &mut words;
    for j in 0..count.min(BLOCK) {
        let words = rng::philox(seed, first.wrapping_add(j as u64));
        (w0[j], w1[j], w2[j], w3[j]) = (words[0], words[1], words[2], words[3]);
    }
    words
}

/// `(cos 2 pi u, sin 2 pi u)` for u in [0, 1): the quadrant is exact, the rest Cephes' `sinf` and `cosf`.
#[inline(always)]
fn cos_sin_2pi_f32<S: Simd>(u: f32) -> (f32, f32) {
    let quarter = (4.0 * u + 0.5) as i32;
    let r = (u - 0.25 * quarter as f32) * std::f32::consts::TAU;
    let z = r * r;
    let s = S::fma32(S::fma32(-1.951_529_6e-4, z, 8.332_161e-3), z, -1.666_665_5e-1);
    let s = S::fma32(s * z, r, r);
    let c = S::fma32(S::fma32(2.443_315_7e-5, z, -1.388_731_6e-3), z, 4.166_664_6e-2);
    let c = S::fma32(c * z, z, 1.0 - 0.5 * z);
    let (x, y) = if quarter & 1 == 0 { (c, s) } else { (s, c) };
    let x = if (quarter + 1) & 2 == 0 { x } else { -x };
    (x, if quarter & 2 == 0 { y } else { -y })
}

#[inline(always)]
fn normal_f32<S: Simd>(even: u32, odd: u32) -> (f32, f32) {
    // u in (0, 1], so that the logarithm is finite.
    let u = ((even >> 8) + 1) as f32 * (1.0 / 16_777_216.0);
    let radius = (-2.0 * Math::log::<S>(u)).sqrt();
    let (c, s) = cos_sin_2pi_f32::<S>(rng::uniform_f32(odd));
    (radius * c, radius * s)
}

#[inline(always)]
fn normal_f64<S: Simd>(even: u64, odd: u64) -> (f64, f64) {
    let u = ((even >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0);
    let radius = (-2.0 * Math::log::<S>(u)).sqrt();
    let angle = rng::uniform_f64(odd) * std::f64::consts::TAU;
    (radius * Math::cos::<S>(angle), radius * Math::sin::<S>(angle))
}

fn block(draw: Draw, class: Class) -> &'static [BlockFn; 3] {
    match (draw, class) {
        (Draw::Uniform, Class::F64) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let (high, low) = (words(source.seed, first, count), words(source.seed ^ SECOND, first, count));
                    for l in 0..4 {
                        for j in 0..count {
                            let word = (high[l][j] as u64) << 32 | low[l][j] as u64;
                            *out.cast::<f64>().add(4 * j + l) = rng::uniform_f64(word);
                        }
                    }
                }));
            &ALL
        }
        (Draw::Uniform, _) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let [w0, w1, w2, w3] = words(source.seed, first, count);
                    let out = out.cast::<[f32; 4]>();
                    for j in 0..count {
                        *out.add(j) = [w0[j], w1[j], w2[j], w3[j]].map(rng::uniform_f32);
                    }
                }));
            &ALL
        }
        (Draw::Normal, Class::F64) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let (high, low) = (words(source.seed, first, count), words(source.seed ^ SECOND, first, count));
                    let word = |l: usize, j: usize| (high[l][j] as u64) << 32 | low[l][j] as u64;
                    let out = out.cast::<[f64; 4]>();
                    for j in 0..count {
                        let (a, b) = normal_f64::<S>(word(0, j), word(1, j));
                        let (c, d) = normal_f64::<S>(word(2, j), word(3, j));
                        *out.add(j) = [a, b, c, d];
                    }
                }));
            &ALL
        }
        (Draw::Normal, _) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let [w0, w1, w2, w3] = words(source.seed, first, count);
                    let out = out.cast::<[f32; 4]>();
                    for j in 0..count {
                        let (a, b) = normal_f32::<S>(w0[j], w1[j]);
                        let (c, d) = normal_f32::<S>(w2[j], w3[j]);
                        *out.add(j) = [a, b, c, d];
                    }
                }));
            &ALL
        }
        (Draw::Word, _) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let [w0, w1, w2, w3] = words(source.seed, first, count);
                    let out = out.cast::<[i64; 4]>();
                    for j in 0..count {
                        *out.add(j) = [w0[j] as i64, w1[j] as i64, w2[j] as i64, w3[j] as i64];
                    }
                }));
            &ALL
        }
        (Draw::Integer, _) => {
            const ALL: [BlockFn; 3] =
                without_highest(levels!(<S> fn(source: &Source, first: u64, count: usize, out: *mut u8) {
                    let (high, low) = (words(source.seed, first, count), words(source.seed ^ SECOND, first, count));
                    for j in 0..count {
                        for l in 0..4 {
                            let word = (high[l][j] as u64) << 32 | low[l][j] as u64;
                            *out.cast::<i64>().add(4 * j + l) = rng::below(word, source.low, source.range);
                        }
                    }
                }));
            &ALL
        }
    }
}

/// Entries whose partners are chosen before they are exchanged: their words do not depend on each other, and the cache
/// lines of the partners are on the way meanwhile.
const PARTNERS: usize = VALUES;

/// The elements of `all`, which `order` has room for, in a random order.
fn shuffled<T>(call: &Call<'_>, mut order: Vec<T>, all: impl Iterator<Item = T>) -> Vec<T> {
    order.extend(all);
    let halves = [call.seed, call.seed ^ SECOND].map(|seed| Source::new(Draw::Word, &[seed, call.offset]));
    let (mut words, mut partners) = ([[0i64; PARTNERS]; 2], [0usize; PARTNERS]);
    let mut end = order.len();
    while end > 1 {
        let first = (end - 1) / PARTNERS * PARTNERS;
        for (half, words) in halves.iter().zip(&mut words) {
            // SAFETY: there is room for `PARTNERS` words.
            unsafe { half.fill(Class::I64, first as u64, 1, end - first, words.as_mut_ptr().cast()) };
        }
        for (k, partner) in partners[..end - first].iter_mut().enumerate() {
            let word = (words[0][k] as u64) << 32 | words[1][k] as u64;
            *partner = rng::below(word, 0, (first + k) as u64 + 1) as usize;
            prefetch(order.as_ptr().wrapping_add(*partner));
        }
        // Bound: blocks between two calls of `guard::check`; each exchange may miss the caches.
        guard::check_every(first / PARTNERS, 64);
        for (i, &partner) in (first..end).zip(&partners).rev() {
            order.swap(i, partner);
        }
        end = first;
    }
    order
}

/// A random permutation of 0 to n - 1, by the Fisher-Yates shuffle from the end: entry i is exchanged with an entry in
/// 0 to i that the 64-bit word of element i selects. Uses the counters of n values.
///
/// # Safety
/// As `HostFn`; the output has one dim.
pub unsafe fn randperm(call: &Call<'_>) {
    let Some(view) = call.outputs.first() else { return };
    let n = view.numel();
    let mut order = if n <= u32::MAX as usize {
        // Half the memory, of which each exchange reads a line anywhere.
        let narrow = shuffled(call, guard::with_capacity::<u32>(n), 0..n as u32);
        let mut order = guard::with_capacity(n);
        order.extend(narrow.iter().map(|&i| i as i64));
        order
    } else {
        shuffled(call, guard::with_capacity(n), 0..n as i64)
    };
    let size = view.dtype.size_bytes() as isize;
    let stride = view.strides.first().map_or(0, |&stride| stride * size);
    // SAFETY: a vector of `n` integers goes into a view of `n` elements, a tile at a time where a cast changes
    // them in place (no element grows).
    unsafe {
        for (k, tile) in order.chunks_mut(crate::kernel::program::TILE).enumerate() {
            let source = tile.as_mut_ptr().cast::<u8>();
            if let Some(tiles) = cast(Class::I64, view.dtype) {
                tiles[simd::level()](&[source.cast_const(); 4], source, tile.len());
            }
            let to = view.ptr.offset((k * crate::kernel::program::TILE) as isize * stride);
            store(view.dtype)(to, [0, 0, stride], [1, 1, tile.len()], source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Faults, RawView, Threads};

    fn draw<T: Copy + Default>(draw: Draw, class: Class, scalars: &[u64], start: u64, step: u64, n: usize) -> Vec<T> {
        let mut out = vec![T::default(); n];
        // SAFETY: `out` has room for `n` values of the class.
        unsafe { Source::new(draw, scalars).fill(class, start, step, n, out.as_mut_ptr().cast()) };
        out
    }

    /// Element i depends only on i, for any start and step.
    #[test]
    fn by_index() {
        for kind in [Draw::Uniform, Draw::Normal] {
            let all: Vec<f32> = draw(kind, Class::F32, &[42, 7], 0, 1, 1000);
            assert_eq!(all[5..900], draw::<f32>(kind, Class::F32, &[42, 7], 5, 1, 895));
            assert_eq!(all[400..], draw::<f32>(kind, Class::F32, &[42, 107], 0, 1, 600));
            let every_third: Vec<f32> = all.iter().skip(1).step_by(3).copied().collect();
            assert_eq!(every_third, draw::<f32>(kind, Class::F32, &[42, 7], 1, 3, every_third.len()));
        }
        let all: Vec<f32> = draw(Draw::Uniform, Class::F32, &[42, 7], 0, 1, 1000);
        assert!((0..1000).all(|i| all[i] == rng::uniform_f32(rng::word(42, 7, i as u64))));
        let words: Vec<i64> = draw(Draw::Word, Class::I64, &[42, 7], 3, 1, 50);
        assert!((0..50).all(|i| words[i] == rng::word(42, 7, i as u64 + 3) as i64));
    }

    /// Box-Muller in f64 from the same words.
    #[test]
    fn normal_by_definition() {
        let got: Vec<f32> = draw(Draw::Normal, Class::F32, &[3, 0], 0, 1, 4000);
        for (i, &x) in got.iter().enumerate() {
            let pair = (i & !1) as u64;
            let u = ((rng::word(3, 0, pair) >> 8) + 1) as f64 / 16_777_216.0;
            let angle = rng::uniform_f32(rng::word(3, 0, pair + 1)) as f64 * std::f64::consts::TAU;
            let want = (-2.0 * u.ln()).sqrt() * if i % 2 == 0 { angle.cos() } else { angle.sin() };
            assert!((x as f64 - want).abs() < 1e-6, "{i}: {x} {want}");
        }
    }

    #[test]
    fn moments() {
        let n = 200_000;
        let x: Vec<f64> = draw(Draw::Normal, Class::F64, &[1, 0], 0, 1, n);
        let moment = |k: i32| x.iter().map(|v| v.powi(k)).sum::<f64>() / n as f64;
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.1);
        let k: Vec<i64> = draw(Draw::Integer, Class::I64, &[1, 0, (-3i64) as u64, 7], 0, 1, n);
        let mut counts = [0; 7];
        k.iter().for_each(|&v| counts[(v + 3) as usize] += 1);
        assert!(counts.iter().all(|&c| (c - n as i32 / 7).abs() < 1000), "{counts:?}");
    }

    #[test]
    fn permutation() {
        let mut out = vec![0i32; 5000];
        let outputs = [RawView::contiguous(out.as_mut_ptr().cast(), DType::I32, &[5000])];
        let (threads, faults) = (Threads::ONE, Faults::default());
        let call =
            Call { inputs: &[], outputs: &outputs, attrs: &[], threads: &threads, faults: &faults, seed: 9, offset: 0 };
        // SAFETY: the view names the elements of a vector that lives until the end of the test.
        unsafe { randperm(&call) };
        let mut seen = vec![false; 5000];
        out.iter().for_each(|&i| seen[i as usize] = true);
        assert!(seen.iter().all(|&s| s));
        assert!(out.windows(2).filter(|w| w[0] < w[1]).count().abs_diff(2500) < 150);
        let mut order: Vec<i32> = (0..5000).collect();
        for i in (1..5000).rev() {
            order.swap(i, rng::below(rng::word64(9, 0, i as u64), 0, i as u64 + 1) as usize);
        }
        assert_eq!(out, order);
    }
}
