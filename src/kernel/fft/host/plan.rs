//! Plans of Fourier transforms of one length: passes of small radices, a matrix of two shorter transforms for long
//! signals, or a convolution where the length has a large prime factor (Bluestein). Plans are kept.
//!
//! All are forward transforms; the inverse is the same with real and imaginary parts exchanged.

use super::radix::{Part, Parts, Pass, RADICES};
use crate::kernel::abi::Threads;
use crate::kernel::guard;
use crate::kernel::host::staging::{Scratch, Shared};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Bound: elements of a block, whose two copies then lie in the second-level cache.
const BLOCK: usize = 16 * 1024;
/// Signals that are transformed beside each other: two of the widest vectors of f32.
pub const LANES: usize = 16;
/// Bound: elements in the tables of all plans that are kept.
const KEPT: usize = 1 << 22;

/// A transform of one length.
pub struct Plan<T> {
    pub n: usize,
    way: Way<T>,
    turns: OnceLock<Vec<T>>,
}

enum Way<T> {
    Passes(Vec<Pass<T>>),
    /// The signal as a matrix: transforms of its columns, factors, transforms of its rows.
    Matrix {
        columns: Arc<Plan<T>>,
        rows: Arc<Plan<T>>,
        /// Powers of the n-th root of one: of the numbers below `fine.len() / 2`, and of their multiples.
        fine: Vec<T>,
        coarse: Vec<T>,
    },
    /// A convolution with a chirp, by transforms of another length.
    Chirp {
        inner: Arc<Plan<T>>,
        chirp: Vec<T>,
        /// The transform of the other chirp, divided by the length.
        response: Vec<T>,
    },
}

/// e^(-2 pi i k / n), exact at multiples of an eighth of a turn.
pub fn root(k: usize, n: usize) -> [f64; 2] {
    let (k, n) = ((k % n) as u128, n as u128);
    // Within an eighth of a turn around one of the four axes.
    let quarter = (8 * k + n) / (2 * n) % 4;
    let rest = (4 * k) as i128 - (quarter * n) as i128;
    let rest = if quarter == 0 && 8 * k > 4 * n { rest - 4 * n as i128 } else { rest };
    let (s, c) = (rest as f64 / n as f64 * std::f64::consts::FRAC_PI_2).sin_cos();
    match quarter {
        0 => [c, -s],
        1 => [-s, -c],
        2 => [-c, s],
        _ => [s, c],
    }
}

/// Roots of one as cosines and sines beside each other.
pub fn roots<T: Part>(n: usize, exponents: impl ExactSizeIterator<Item = usize>) -> Vec<T> {
    let mut table = guard::with_capacity(2 * exponents.len());
    for k in exponents {
        let [c, s] = root(k, n);
        table.extend([T::from_f64(c), T::from_f64(s)]);
    }
    table
}

/// The radices of a length, or none if it has another prime factor.
fn radices(mut n: usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for radix in RADICES {
        while n.is_multiple_of(radix) {
            all.push(radix);
            n /= radix;
        }
    }
    (n == 1).then_some(all)
}

/// A length of small factors that is not below `n`.
fn smooth(n: usize) -> usize {
    let powers = |odd: usize| odd * n.div_ceil(odd).next_power_of_two();
    [1, 3, 5, 9, 15].into_iter().map(powers).min().unwrap_or(n)
}

/// Two blocks: what a plan is given and gives back, and the one to and from which passes go.
pub struct Blocks<T> {
    pub data: [Scratch<T>; 2],
    other: [Scratch<T>; 2],
}

impl<T: Part> Blocks<T> {
    /// For so many signals beside each other.
    pub fn new(plan: &Plan<T>, lanes: usize) -> Blocks<T> {
        let make = || [Scratch::new(plan.room() * lanes), Scratch::new(plan.room() * lanes)];
        Blocks { data: make(), other: make() }
    }

    fn exchange(&mut self) {
        self.data.swap(0, 1);
    }
}

fn parts<T: Copy + Default>(block: &mut [Scratch<T>; 2]) -> Parts<T> {
    block.each_mut().map(|part| part.as_mut_ptr())
}

impl<T: Part> Plan<T> {
    fn new(n: usize) -> Plan<T> {
        let way = match radices(n) {
            Some(all) if n > 2 * BLOCK => Self::matrix(n, &all),
            Some(all) => Self::passes(n, &all),
            None => Self::chirp(n),
        };
        Plan { n, way, turns: OnceLock::new() }
    }

    fn passes(n: usize, radices: &[usize]) -> Way<T> {
        let mut length = n;
        let pass = |&radix: &usize| {
            let (whole, m) = (length, length / radix);
            length = m;
            let twiddles = roots_of_groups(whole, m, radix);
            Pass { radix, m, twiddles, roots: roots(radix, 0..radix) }
        };
        Way::Passes(radices.iter().map(pass).collect())
    }

    fn matrix(n: usize, radices: &[usize]) -> Way<T> {
        // Greatest first, each to the smaller side.
        let mut sides = [1, 1];
        for radix in radices.iter().rev() {
            let smaller = (sides[1] < sides[0]) as usize;
            sides[smaller] *= radix;
        }
        let fine = (n as f64).sqrt().ceil() as usize;
        let coarse = n.div_ceil(fine);
        Way::Matrix {
            columns: plan(sides[0]),
            rows: plan(sides[1]),
            fine: roots(n, 0..fine),
            coarse: roots(n, (0..coarse).map(|k| k * fine).collect::<Vec<_>>().into_iter()),
        }
    }

    fn chirp(n: usize) -> Way<T> {
        let m = smooth(2 * n - 1);
        let inner = plan::<T>(m);
        // e^(-pi i k² / n): the angle repeats after 2n.
        let square = |k: usize| ((k as u128 * k as u128) % (2 * n as u128)) as usize;
        let mut chirp = guard::with_capacity(2 * n);
        let mut blocks = Blocks::new(&inner, 1);
        blocks.data.iter_mut().for_each(|part| part.fill(T::ZERO));
        for k in 0..n {
            let [c, s] = root(square(k), 2 * n);
            chirp.extend([T::from_f64(c), T::from_f64(s)]);
            for at in [k, (m - k) % m] {
                blocks.data[0][at] = T::from_f64(c / m as f64);
                blocks.data[1][at] = T::from_f64(-s / m as f64);
            }
        }
        inner.run(&mut blocks, 1, &Threads::ONE);
        let mut response = guard::with_capacity(2 * m);
        (0..m).for_each(|k| response.extend([blocks.data[0][k], blocks.data[1][k]]));
        Way::Chirp { inner, chirp, response }
    }

    /// Elements of a block for one signal.
    fn room(&self) -> usize {
        match &self.way {
            Way::Chirp { inner, .. } => inner.room(),
            _ => self.n,
        }
    }

    /// Signals to transform beside each other: a long one takes the threads for itself.
    pub fn lanes(&self) -> usize {
        if self.is_long() { 1 } else { (BLOCK / self.room().max(1)).clamp(1, LANES) }
    }

    /// Whether one transform is divided among the threads.
    pub fn is_long(&self) -> bool {
        match &self.way {
            Way::Passes(_) => false,
            Way::Matrix { .. } => true,
            Way::Chirp { inner, .. } => inner.is_long(),
        }
    }

    /// Roots of one for real signals of twice the length, whose pairs are the complex numbers of this plan.
    pub fn turns(&self) -> &[T] {
        self.turns.get_or_init(|| roots(2 * self.n, 0..self.n + 1))
    }

    /// Elements in its tables.
    fn size(&self) -> usize {
        match &self.way {
            Way::Passes(passes) => passes.iter().map(|pass| pass.twiddles.len()).sum(),
            Way::Matrix { fine, coarse, .. } => fine.len() + coarse.len(),
            Way::Chirp { chirp, response, .. } => chirp.len() + response.len(),
        }
    }

    /// Transforms `lanes` signals; element k of signal l is at `k * lanes + l`. A long plan takes one.
    pub fn run(&self, blocks: &mut Blocks<T>, lanes: usize, threads: &Threads) {
        debug_assert!(lanes == 1 || !self.is_long());
        match &self.way {
            Way::Passes(passes) => {
                let mut step = lanes;
                for pass in passes {
                    // SAFETY: blocks have room for `n` elements of each signal, and are of their own memory.
                    unsafe { pass.run(step, parts(&mut blocks.data), parts(&mut blocks.other)) };
                    std::mem::swap(&mut blocks.data, &mut blocks.other);
                    step *= pass.radix;
                }
            }
            Way::Matrix { columns, rows, fine, coarse } => {
                let factor = |exponent: usize| {
                    let each = fine.len() / 2;
                    let (f, c) = (2 * (exponent % each), 2 * (exponent / each));
                    let (fr, fi, cr, ci) = (fine[f], fine[f + 1], coarse[c], coarse[c + 1]);
                    [fr * cr - fi * ci, fr * ci + fi * cr]
                };
                turn(columns, rows.n, &mut blocks.data, &mut blocks.other, Some(&factor), threads);
                turn(rows, columns.n, &mut blocks.other, &mut blocks.data, None, threads);
            }
            Way::Chirp { inner, chirp, response } => {
                multiply(&mut blocks.data, chirp, lanes);
                blocks.data.iter_mut().for_each(|part| part[self.n * lanes..].fill(T::ZERO));
                inner.run(blocks, lanes, threads);
                multiply(&mut blocks.data, response, lanes);
                blocks.exchange();
                inner.run(blocks, lanes, threads);
                blocks.exchange();
                multiply(&mut blocks.data, chirp, lanes);
            }
        }
    }
}

/// For each group the factors of its results 1 to radix - 1.
fn roots_of_groups<T: Part>(n: usize, m: usize, radix: usize) -> Vec<T> {
    let mut table = guard::with_capacity(2 * m * (radix - 1));
    for p in 0..m {
        for k in 1..radix {
            let [c, s] = root(p * k, n);
            table.extend([T::from_f64(c), T::from_f64(s)]);
        }
    }
    table
}

/// Multiplies the first elements of each signal by those of a table.
fn multiply<T: Part>(block: &mut [Scratch<T>; 2], table: &[T], lanes: usize) {
    let [re, im] = block;
    for ((re, im), w) in re.chunks_exact_mut(lanes).zip(im.chunks_exact_mut(lanes)).zip(table.chunks_exact(2)) {
        for (re, im) in re.iter_mut().zip(im) {
            (*re, *im) = (*re * w[0] - *im * w[1], *re * w[1] + *im * w[0]);
        }
    }
}

/// Transforms the columns of a matrix with `width` of them. With factors, column by column as rows of the result, each
/// element multiplied by the factor of its column times its row; without, the result lies as the matrix.
fn turn<T: Part>(
    plan: &Plan<T>,
    width: usize,
    from: &mut [Scratch<T>; 2],
    to: &mut [Scratch<T>; 2],
    factor: Option<&(dyn Fn(usize) -> [T; 2] + Sync)>,
    threads: &Threads,
) {
    let lanes = plan.lanes();
    let from = from.each_mut().map(|part| Shared::new(part));
    let to = to.each_mut().map(|part| Shared::new(part));
    threads.split(width, lanes, |columns| {
        let mut blocks = Blocks::new(plan, lanes);
        for first in columns.clone().step_by(lanes) {
            let count = lanes.min(columns.end - first);
            for (part, from) in blocks.data.iter_mut().zip(from) {
                for (j, row) in part[..plan.n * lanes].chunks_exact_mut(lanes).enumerate() {
                    // SAFETY: row `j` has columns up to `first + count`; nobody writes the matrix meanwhile.
                    row[..count].copy_from_slice(unsafe { from.range(j * width + first..j * width + first + count) });
                    row[count..].fill(T::ZERO);
                }
            }
            plan.run(&mut blocks, lanes, &Threads::ONE);
            let [re, im] = &blocks.data;
            for k in 0..plan.n {
                for lane in 0..count {
                    let (column, at) = (first + lane, k * lanes + lane);
                    let (value, place) = match factor {
                        Some(factor) => {
                            let [c, s] = factor(column * k);
                            ([re[at] * c - im[at] * s, re[at] * s + im[at] * c], column * plan.n + k)
                        }
                        None => ([re[at], im[at]], k * width + column),
                    };
                    // SAFETY: the place is inside the other block, and of columns that this thread alone has.
                    unsafe { (*to[0].at(place), *to[1].at(place)) = (value[0], value[1]) };
                }
            }
        }
    });
}

/// The plan of a length, made at the first call.
pub fn plan<T: Part>(n: usize) -> Arc<Plan<T>> {
    type Kept = HashMap<(usize, bool), Arc<dyn std::any::Any + Send + Sync>>;
    static PLANS: Mutex<Option<(Kept, usize)>> = Mutex::new(None);
    let key = (n, T::DTYPE == crate::base::dtype::DType::F64);
    let known = PLANS.lock().as_ref().and_then(|(kept, _)| kept.get(&key).cloned());
    if let Some(Ok(plan)) = known.map(|plan| plan.downcast::<Plan<T>>()) {
        return plan;
    }
    let made = Arc::new(Plan::<T>::new(n));
    let mut plans = PLANS.lock();
    let (kept, size) = plans.get_or_insert_default();
    if *size + made.size() > KEPT {
        kept.clear();
        *size = 0;
    }
    *size += made.size();
    kept.insert(key, made.clone());
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(k: usize) -> [f64; 2] {
        let x = k as f64;
        [(x * 1.7 + 0.3).sin() + 0.2, (x * x * 0.37).cos()]
    }

    /// Signals whose element k is that of another place, for each lane.
    fn transformed<T: Part>(n: usize) -> Vec<Vec<[f64; 2]>> {
        let plan = plan::<T>(n);
        let lanes = plan.lanes();
        let mut blocks = Blocks::new(&plan, lanes);
        for k in 0..n {
            for lane in 0..lanes {
                for part in 0..2 {
                    blocks.data[part][k * lanes + lane] = T::from_f64(wave(k + 100 * lane)[part]);
                }
            }
        }
        plan.run(&mut blocks, lanes, &Threads::new(2));
        let value = |k: usize, lane: usize| [0, 1].map(|part| blocks.data[part][k * lanes + lane].to_f64());
        (0..lanes).map(|lane| (0..n).map(|k| value(k, lane)).collect()).collect()
    }

    fn directly(n: usize, k: usize, lane: usize) -> [f64; 2] {
        (0..n).fold([0.0; 2], |[re, im], j| {
            let ([c, s], [x, y]) = (root(j * k, n), wave(j + 100 * lane));
            [re + x * c - y * s, im + x * s + y * c]
        })
    }

    #[test]
    fn every_way_gives_the_sum_that_defines_it() {
        // Radices alone and mixed, primes, twice a prime, the longest of passes.
        for n in (1..=40).chain([64, 97, 98, 121, 128, 143, 169, 360, 1000, 1021, 1024, 2187, 4096]) {
            for (lane, signal) in transformed::<f64>(n).iter().enumerate() {
                for k in [0, 1, n / 3, n / 2, n - 1].map(|k| k % n) {
                    let (found, expected) = (signal[k], directly(n, k, lane));
                    let off = (found[0] - expected[0]).hypot(found[1] - expected[1]);
                    assert!(off < 1e-12 * n as f64, "n = {n}, k = {k}, lane {lane}: {found:?}, {expected:?}");
                }
            }
            let (single, k) = (transformed::<f32>(n), n / 2);
            let (found, expected) = (single[0][k], directly(n, k, 0));
            assert!((found[0] - expected[0]).hypot(found[1] - expected[1]) < 3e-6 * n as f64, "f32, n = {n}");
        }
    }

    #[test]
    fn long_signals_are_matrices() {
        for n in [1 << 16, 3 * 5 * 7 * 11 * 64, 20_011] {
            assert!(plan::<f64>(n).is_long(), "{n}");
            let signal = &transformed::<f64>(n)[0];
            for k in [0, 1, 12_345, n - 1] {
                let (found, expected) = (signal[k], directly(n, k, 0));
                let off = (found[0] - expected[0]).hypot(found[1] - expected[1]);
                assert!(off < 1e-9, "n = {n}, k = {k}: {found:?}, {expected:?}");
            }
        }
    }

    #[test]
    fn roots_are_exact_on_the_axes() {
        assert_eq!([0, 1, 2, 3].map(|k| root(k, 4)), [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]]);
        for n in [3, 7, 8, 24, 1000] {
            for k in 0..n {
                let (s, c) = (-2.0 * std::f64::consts::PI * k as f64 / n as f64).sin_cos();
                let [re, im] = root(k, n);
                assert!((re - c).abs() < 1e-15 && (im - s).abs() < 1e-15, "{k} of {n}: {re} {im}, {c} {s}");
            }
        }
    }
}
