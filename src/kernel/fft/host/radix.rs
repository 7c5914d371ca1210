//! One pass of Stockham's Fourier transform: butterflies of one radix over a whole block, which leave their results in
//! the order that the next pass wants. Real and imaginary parts lie apart, and several signals beside each other, so
//! that the innermost loop is over consecutive memory.

use crate::kernel::host::real::Real;
use crate::kernel::host::simd::{Portable, Simd, level, levels};
use crate::kernel::host::vector::Vector;

/// Radices with a pass of their own. Lengths with other prime factors are convolutions (`plan.rs`).
pub const RADICES: [usize; 7] = [4, 2, 3, 5, 7, 11, 13];

/// Real and imaginary parts of a block.
pub type Parts<T> = [*mut T; 2];

/// The butterflies of one radix.
pub struct Pass<T> {
    pub radix: usize,
    /// The length that this pass takes apart, divided by the radix.
    pub m: usize,
    /// For each of the `m` groups the cosines and sines of the factors of results 1 to radix - 1.
    pub twiddles: Vec<T>,
    /// Cosines and sines of the multiples of a turn divided by the radix.
    pub roots: Vec<T>,
}

/// The place of the portable passes among the levels.
const PLAIN: usize = 2;

type PassFn<T> = unsafe fn(&Pass<T>, usize, Parts<T>, Parts<T>);

/// A float with passes for each level of vector instructions.
pub trait Part: Real + 'static {
    const PASSES: [PassFn<Self>; 3];
}

macro_rules! part {
    ($T:ty) => {
        impl Part for $T {
            const PASSES: [PassFn<$T>; 3] = levels!(<S> fn(
                pass: &Pass<$T>, step: usize, from: Parts<$T>, to: Parts<$T>,
            ) {
                butterflies::<S, $T>(pass, step, from, to)
            });
        }
    };
}
part!(f32);
part!(f64);

impl<T: Part> Pass<T> {
    /// From one block to another; `step` is the number of signals times the product of the radices before.
    ///
    /// # Safety
    /// Both blocks have `radix * m * step` elements for each part, and do not overlap.
    pub unsafe fn run(&self, step: usize, from: Parts<T>, to: Parts<T>) {
        // SAFETY: the machine has the level's instructions, and the blocks are as large as this function's contract says.
        unsafe { T::PASSES[level()](self, step, from, to) }
    }
}

/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn butterflies<S: Simd, T: Part>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    // SAFETY: the contract of this function is that of each.
    unsafe {
        match pass.radix {
            radix if S::LEVEL != Portable::LEVEL && radix < 11 && step.is_multiple_of(T::In::<S>::N) => match radix {
                2 => two_wide::<S, T>(pass, step, from, to),
                3 => odd_wide::<S, T, 3>(pass, step, from, to),
                4 => four_wide::<S, T>(pass, step, from, to),
                5 => odd_wide::<S, T, 5>(pass, step, from, to),
                _ => odd_wide::<S, T, 7>(pass, step, from, to),
            },
            // Number by number, wider instructions gain nothing: this code is there once.
            3 | 5 | 7 | 11 | 13 if S::LEVEL != Portable::LEVEL => T::PASSES[PLAIN](pass, step, from, to),
            2 => two(pass, step, from, to),
            3 => odd::<T, 3>(pass, step, from, to),
            4 => four(pass, step, from, to),
            5 => odd::<T, 5>(pass, step, from, to),
            7 => odd::<T, 7>(pass, step, from, to),
            11 => odd::<T, 11>(pass, step, from, to),
            _ => odd::<T, 13>(pass, step, from, to),
        }
    }
}

/// The addresses of one part of the inputs and of the results of group `p`.
#[inline(always)]
fn rows<T, const R: usize>(m: usize, step: usize, p: usize, from: *mut T, to: *mut T) -> ([*const T; R], [*mut T; R]) {
    let input = std::array::from_fn(|j| from.wrapping_add(step * (p + m * j)).cast_const());
    let output = std::array::from_fn(|k| to.wrapping_add(step * (R * p + k)));
    (input, output)
}

/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn two<T: Part>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    for (p, w) in pass.twiddles.chunks_exact(2).enumerate() {
        let (xr, yr) = rows::<T, 2>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, 2>(pass.m, step, p, from[1], to[1]);
        let (c, s) = (w[0], w[1]);
        for q in 0..step {
            // SAFETY: `q` is below `step`, and each row has `step` elements (this function's contract).
            unsafe {
                let (ar, ai, br, bi) = (*xr[0].add(q), *xi[0].add(q), *xr[1].add(q), *xi[1].add(q));
                let (dr, di) = (ar - br, ai - bi);
                *yr[0].add(q) = ar + br;
                *yi[0].add(q) = ai + bi;
                *yr[1].add(q) = dr * c - di * s;
                *yi[1].add(q) = dr * s + di * c;
            }
        }
    }
}

/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn four<T: Part>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    for (p, w) in pass.twiddles.chunks_exact(6).enumerate() {
        let (xr, yr) = rows::<T, 4>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, 4>(pass.m, step, p, from[1], to[1]);
        for q in 0..step {
            // SAFETY: `q` is below `step`, and each row has `step` elements (this function's contract).
            unsafe {
                let (r0, r1, r2, r3) = (*xr[0].add(q), *xr[1].add(q), *xr[2].add(q), *xr[3].add(q));
                let (i0, i1, i2, i3) = (*xi[0].add(q), *xi[1].add(q), *xi[2].add(q), *xi[3].add(q));
                let (er, ei, or, oi) = (r0 + r2, i0 + i2, r1 + r3, i1 + i3);
                let (fr, fi, gr, gi) = (r0 - r2, i0 - i2, r1 - r3, i1 - i3);
                *yr[0].add(q) = er + or;
                *yi[0].add(q) = ei + oi;
                let (br, bi) = (fr + gi, fi - gr);
                *yr[1].add(q) = br * w[0] - bi * w[1];
                *yi[1].add(q) = br * w[1] + bi * w[0];
                let (br, bi) = (er - or, ei - oi);
                *yr[2].add(q) = br * w[2] - bi * w[3];
                *yi[2].add(q) = br * w[3] + bi * w[2];
                let (br, bi) = (fr - gi, fi + gr);
                *yr[3].add(q) = br * w[4] - bi * w[5];
                *yi[3].add(q) = br * w[5] + bi * w[4];
            }
        }
    }
}

/// A vector of numbers times one of a table.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn turned<V: Vector>(re: V, im: V, w: &[V::Elem]) -> [V; 2]
where
    V::Elem: std::ops::Neg<Output = V::Elem>,
{
    // SAFETY: the machine has the instructions of `V` (`Vector`), and registers alone are touched.
    unsafe {
        let (c, s) = (V::splat(w[0]), V::splat(w[1]));
        [re.fma(c, im.mul(V::splat(-w[1]))), re.fma(s, im.mul(c))]
    }
}

/// As `four`, for whole vectors. Not: leaving it to the compiler, whose tests for overlaps of sixteen rows cost more than
/// the few vectors of a row.
///
/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn four_wide<S: Simd, T: Part>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    for (p, w) in pass.twiddles.chunks_exact(6).enumerate() {
        let (xr, yr) = rows::<T, 4>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, 4>(pass.m, step, p, from[1], to[1]);
        for q in (0..step).step_by(T::In::<S>::N) {
            // SAFETY: `q` is below `step`, a multiple of the width; each row has `step` elements (this function's
            // contract).
            unsafe {
                type V<S, T> = <T as Real>::In<S>;
                let (r0, r1) = (V::<S, T>::load(xr[0].add(q)), V::<S, T>::load(xr[1].add(q)));
                let (r2, r3) = (V::<S, T>::load(xr[2].add(q)), V::<S, T>::load(xr[3].add(q)));
                let (i0, i1) = (V::<S, T>::load(xi[0].add(q)), V::<S, T>::load(xi[1].add(q)));
                let (i2, i3) = (V::<S, T>::load(xi[2].add(q)), V::<S, T>::load(xi[3].add(q)));
                let (er, ei, or, oi) = (r0.add(r2), i0.add(i2), r1.add(r3), i1.add(i3));
                let (fr, fi, gr, gi) = (r0.sub(r2), i0.sub(i2), r1.sub(r3), i1.sub(i3));
                er.add(or).store(yr[0].add(q));
                ei.add(oi).store(yi[0].add(q));
                let [re, im] = turned(fr.add(gi), fi.sub(gr), &w[..2]);
                re.store(yr[1].add(q));
                im.store(yi[1].add(q));
                let [re, im] = turned(er.sub(or), ei.sub(oi), &w[2..4]);
                re.store(yr[2].add(q));
                im.store(yi[2].add(q));
                let [re, im] = turned(fr.sub(gi), fi.add(gr), &w[4..6]);
                re.store(yr[3].add(q));
                im.store(yi[3].add(q));
            }
        }
    }
}

/// As `two`, for whole vectors.
///
/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn two_wide<S: Simd, T: Part>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    for (p, w) in pass.twiddles.chunks_exact(2).enumerate() {
        let (xr, yr) = rows::<T, 2>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, 2>(pass.m, step, p, from[1], to[1]);
        for q in (0..step).step_by(T::In::<S>::N) {
            // SAFETY: as for `four_wide`.
            unsafe {
                type V<S, T> = <T as Real>::In<S>;
                let (ar, ai) = (V::<S, T>::load(xr[0].add(q)), V::<S, T>::load(xi[0].add(q)));
                let (br, bi) = (V::<S, T>::load(xr[1].add(q)), V::<S, T>::load(xi[1].add(q)));
                ar.add(br).store(yr[0].add(q));
                ai.add(bi).store(yi[0].add(q));
                let [re, im] = turned(ar.sub(br), ai.sub(bi), w);
                re.store(yr[1].add(q));
                im.store(yi[1].add(q));
            }
        }
    }
}

/// As `odd`, for whole vectors.
///
/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn odd_wide<S: Simd, T: Part, const R: usize>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    type V<S, T> = <T as Real>::In<S>;
    let root: [[T; 2]; R] = std::array::from_fn(|j| [pass.roots[2 * j], pass.roots[2 * j + 1]]);
    for (p, w) in pass.twiddles.chunks_exact(2 * (R - 1)).enumerate() {
        let (xr, yr) = rows::<T, R>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, R>(pass.m, step, p, from[1], to[1]);
        for q in (0..step).step_by(T::In::<S>::N) {
            // SAFETY: as for `four_wide`.
            unsafe {
                let first = [V::<S, T>::load(xr[0].add(q)), V::<S, T>::load(xi[0].add(q))];
                let (mut sum, mut difference, mut total) = ([first; R], [first; R], first);
                for j in 1..=R / 2 {
                    for (part, x) in [&xr, &xi].into_iter().enumerate() {
                        let (a, b) = (V::<S, T>::load(x[j].add(q)), V::<S, T>::load(x[R - j].add(q)));
                        (sum[j][part], difference[j][part]) = (a.add(b), a.sub(b));
                        total[part] = total[part].add(sum[j][part]);
                    }
                }
                total[0].store(yr[0].add(q));
                total[1].store(yi[0].add(q));
                for k in 1..=R / 2 {
                    let (mut even, mut sine) = (first, [V::<S, T>::splat(T::ZERO); 2]);
                    for j in 1..=R / 2 {
                        let [c, s] = root[j * k % R].map(|x| V::<S, T>::splat(x));
                        even = [sum[j][0].fma(c, even[0]), sum[j][1].fma(c, even[1])];
                        sine = [difference[j][0].fma(s, sine[0]), difference[j][1].fma(s, sine[1])];
                    }
                    let results = [
                        (k, even[0].sub(sine[1]), even[1].add(sine[0])),
                        (R - k, even[0].add(sine[1]), even[1].sub(sine[0])),
                    ];
                    for (k, re, im) in results {
                        let [re, im] = turned(re, im, &w[2 * k - 2..2 * k]);
                        re.store(yr[k].add(q));
                        im.store(yi[k].add(q));
                    }
                }
            }
        }
    }
}

/// An odd radix: results k and R - k are sums and differences of the same two terms.
///
/// # Safety
/// As `Pass::run`.
#[inline(always)]
unsafe fn odd<T: Part, const R: usize>(pass: &Pass<T>, step: usize, from: Parts<T>, to: Parts<T>) {
    let root: [[T; 2]; R] = std::array::from_fn(|j| [pass.roots[2 * j], pass.roots[2 * j + 1]]);
    for (p, w) in pass.twiddles.chunks_exact(2 * (R - 1)).enumerate() {
        let (xr, yr) = rows::<T, R>(pass.m, step, p, from[0], to[0]);
        let (xi, yi) = rows::<T, R>(pass.m, step, p, from[1], to[1]);
        for q in 0..step {
            // SAFETY: `q` is below `step`, and each row has `step` elements (this function's contract).
            unsafe {
                let (mut sum, mut difference) = ([[T::ZERO; 2]; R], [[T::ZERO; 2]; R]);
                let first = [*xr[0].add(q), *xi[0].add(q)];
                let mut total = first;
                for j in 1..=R / 2 {
                    let (a, b) = ([*xr[j].add(q), *xi[j].add(q)], [*xr[R - j].add(q), *xi[R - j].add(q)]);
                    sum[j] = [a[0] + b[0], a[1] + b[1]];
                    difference[j] = [a[0] - b[0], a[1] - b[1]];
                    total = [total[0] + sum[j][0], total[1] + sum[j][1]];
                }
                *yr[0].add(q) = total[0];
                *yi[0].add(q) = total[1];
                for k in 1..=R / 2 {
                    let (mut even, mut sine) = (first, [T::ZERO; 2]);
                    for j in 1..=R / 2 {
                        let [c, s] = root[j * k % R];
                        even = [even[0] + sum[j][0] * c, even[1] + sum[j][1] * c];
                        sine = [sine[0] + difference[j][0] * s, sine[1] + difference[j][1] * s];
                    }
                    // even + i sine, and even - i sine: the table's sines are those of a negative angle.
                    for (k, r, i) in
                        [(k, even[0] - sine[1], even[1] + sine[0]), (R - k, even[0] + sine[1], even[1] - sine[0])]
                    {
                        let (c, s) = (w[2 * k - 2], w[2 * k - 1]);
                        *yr[k].add(q) = r * c - i * s;
                        *yi[k].add(q) = r * s + i * c;
                    }
                }
            }
        }
    }
}
