//! Transforms of all lines of a tensor along one dim: lines are gathered into blocks, transformed, and stored with a
//! factor. A line is cut or filled up with zeros to the length of the transform, and so is its result.

use super::plan::{Blocks, LANES, Plan, plan};
use super::radix::Part;
use crate::base::layout::{Shape, Strides};
use crate::kernel::abi::Threads;
use crate::kernel::host::real::widths;
use std::sync::Arc;

/// A tensor of real or complex numbers; strides count parts.
#[derive(Clone)]
pub struct Side<T> {
    pub at: *mut T,
    /// From a real part to its imaginary part, of complex numbers.
    pub second: Option<isize>,
    pub shape: Shape,
    pub strides: Strides,
}

// SAFETY: an address; whoever makes a side guarantees that its memory is valid for the call of the kernel, and each
// thread has lines of its own.
unsafe impl<T: Send> Send for Side<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for Side<T> {}

/// Which half of a transform of real signals is stored; its mirror image follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// All of it, of complex or real numbers; of a real result the imaginary part is left out.
    Whole,
    /// From real numbers to the first half of their spectrum.
    ToHalf,
    /// From the first half of a spectrum to real numbers.
    FromHalf,
}

/// The transform of one dim.
#[derive(Clone, Copy, Debug)]
pub struct Along {
    pub kind: Kind,
    pub dim: usize,
    /// The length of the transform.
    pub n: usize,
    /// Of `Whole`.
    pub inverse: bool,
    /// The half spectrum is conjugate.
    pub conjugate: bool,
    pub scale: f64,
    /// A factor of those elements of the half spectrum that have a mirror image.
    pub middle: f64,
}

/// A line of numbers.
#[derive(Clone, Copy)]
struct Line<T> {
    at: *mut T,
    second: Option<isize>,
    len: usize,
    stride: isize,
}

impl<T: Part> Line<T> {
    /// 0 beyond the end.
    ///
    /// # Safety
    /// The line may be read.
    #[inline(always)]
    unsafe fn get(&self, k: usize) -> [T; 2] {
        if k >= self.len {
            return [T::ZERO; 2];
        }
        let at = self.at.wrapping_offset(k as isize * self.stride);
        // SAFETY: the element is inside the line, and the second part where `second` says.
        unsafe { [*at, self.second.map_or(T::ZERO, |second| *at.offset(second))] }
    }

    /// Nothing beyond the end.
    ///
    /// # Safety
    /// The line may be written.
    #[inline(always)]
    unsafe fn set(&self, k: usize, value: [T; 2]) {
        if k >= self.len {
            return;
        }
        let at = self.at.wrapping_offset(k as isize * self.stride);
        // SAFETY: the element is inside the line, and the second part where `second` says.
        unsafe {
            *at = value[0];
            if let Some(second) = self.second {
                *at.offset(second) = value[1];
            }
        }
    }

    /// Zeros from an element on.
    ///
    /// # Safety
    /// The line may be written.
    unsafe fn clear(&self, from: usize) {
        // SAFETY: as this function.
        (from..self.len).for_each(|k| unsafe { self.set(k, [T::ZERO; 2]) });
    }
}

impl<T: Part> Side<T> {
    fn line(&self, dim: usize, number: usize) -> Line<T> {
        let (mut rest, mut offset) = (number, 0);
        for d in (0..self.shape.len()).rev().filter(|&d| d != dim) {
            offset += (rest % self.shape[d]) as isize * self.strides[d];
            rest /= self.shape[d];
        }
        Line {
            at: self.at.wrapping_offset(offset),
            second: self.second,
            len: self.shape[dim],
            stride: self.strides[dim],
        }
    }

    fn lines(&self, dim: usize) -> usize {
        self.shape.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, n)| n).product()
    }
}

/// What a block of lines is computed with.
struct Work<T> {
    along: Along,
    plan: Arc<Plan<T>>,
    /// An even length of real numbers is computed as half as many complex ones.
    packed: bool,
}

/// Transforms all lines. The sides have the same sizes but for the dim; they may be the same tensor.
///
/// # Safety
/// `from` may be read and `to` written, by nobody else meanwhile.
pub unsafe fn transform<T: Part>(along: Along, from: &Side<T>, to: &Side<T>, threads: &Threads) {
    let count = from.lines(along.dim);
    if count == 0 || to.shape[along.dim] == 0 {
        return;
    }
    let packed = along.kind != Kind::Whole && along.n.is_multiple_of(2);
    let plan = plan::<T>(if packed { along.n / 2 } else { along.n });
    let work = Work { along, plan, packed };
    let lanes = work.plan.lanes();
    let one = |blocks: &mut Blocks<T>, first: usize, count: usize, threads: &Threads| {
        let lines: Vec<(Line<T>, Line<T>)> =
            (first..first + count).map(|n| (from.line(along.dim, n), to.line(along.dim, n))).collect();
        // SAFETY: lines are inside the sides, and those of `to` are written by this call alone.
        unsafe { work.block(blocks, lanes, &lines, threads) };
    };
    if work.plan.is_long() {
        let mut blocks = Blocks::new(&work.plan, 1);
        (0..count).for_each(|line| one(&mut blocks, line, 1, threads));
        return;
    }
    threads.split(count, lanes, |range| {
        let mut blocks = Blocks::new(&work.plan, lanes);
        for first in range.clone().step_by(lanes) {
            one(&mut blocks, first, lanes.min(range.end - first), &Threads::ONE);
        }
    });
}

impl<T: Part> Work<T> {
    /// # Safety
    /// The first of each pair of lines may be read, and the second written.
    unsafe fn block(&self, blocks: &mut Blocks<T>, lanes: usize, lines: &[(Line<T>, Line<T>)], threads: &Threads) {
        // Real and imaginary parts are exchanged for the inverse.
        let inverse = match self.along.kind {
            Kind::Whole => self.along.inverse,
            Kind::ToHalf => false,
            Kind::FromHalf => true,
        };
        let [first, second] = &mut blocks.data;
        let (re, im) = if inverse { (second, first) } else { (first, second) };
        // SAFETY: the lines may be read (this function's contract).
        if !unsafe { self.gather_rows(lines, lanes, re, im) } {
            if lines.len() < lanes {
                re.fill(T::ZERO);
                im.fill(T::ZERO);
            }
            for (lane, (from, _)) in lines.iter().enumerate() {
                let mut put = |k: usize, value: [T; 2]| {
                    re[k * lanes + lane] = value[0];
                    im[k * lanes + lane] = value[1];
                };
                // SAFETY: the line may be read (this function's contract).
                unsafe { self.gather(from, &mut put) };
            }
        }
        self.plan.run(blocks, lanes, threads);
        let [first, second] = &blocks.data;
        let (re, im) = if inverse { (second, first) } else { (first, second) };
        // SAFETY: the lines may be written (this function's contract).
        if unsafe { self.store_rows(lines, lanes, re, im) } {
            return;
        }
        for (lane, (_, to)) in lines.iter().enumerate() {
            let get = |k: usize| [re[k * lanes + lane], im[k * lanes + lane]];
            // SAFETY: the line may be written (this function's contract).
            unsafe { self.store(to, &get) };
        }
    }

    /// As `gather`, for lines that are not shorter than the transform: element by element, all lines at once, so that rows
    /// of the block are written whole; where there are fewer lines than lanes, the first one again. Returns false if they
    /// are shorter.
    ///
    /// # Safety
    /// The first of each pair of lines may be read.
    unsafe fn gather_rows(&self, lines: &[(Line<T>, Line<T>)], lanes: usize, re: &mut [T], im: &mut [T]) -> bool {
        let (n, half) = (self.along.n, self.along.n / 2);
        let from = &lines[0].0;
        let starts = starts(lines.iter().map(|pair| pair.0.at));
        let rows = re.chunks_exact_mut(lanes).zip(im.chunks_exact_mut(lanes));
        match (self.along.kind, self.packed, from.second) {
            (Kind::Whole | Kind::ToHalf, false, second) if from.len >= n => {
                for (k, (re, im)) in rows.take(n).enumerate() {
                    // SAFETY: element `k` is inside each line.
                    unsafe { load_row(&starts, k as isize * from.stride, second, re, im) };
                }
            }
            (Kind::ToHalf, true, None) if from.len >= n => {
                for (k, (re, im)) in rows.take(half).enumerate() {
                    // SAFETY: elements `2 k` and `2 k + 1` are inside each line.
                    unsafe { load_row(&starts, 2 * k as isize * from.stride, Some(from.stride), re, im) };
                }
            }
            (Kind::FromHalf, true, Some(second)) if from.len > half => {
                let turns = self.plan.turns();
                let mut ends = [[T::ZERO; LANES]; 4];
                for (k, (re, im)) in rows.take(half).enumerate() {
                    let [ar, ai, br, bi] = ends.each_mut().map(|row| &mut row[..lanes]);
                    // SAFETY: elements up to `half` are inside each line.
                    unsafe {
                        load_row(&starts, k as isize * from.stride, Some(second), ar, ai);
                        load_row(&starts, (half - k) as isize * from.stride, Some(second), br, bi);
                    }
                    let weight = if k == 0 { T::ONE } else { T::from_f64(self.along.middle) };
                    let imaginary = if k == 0 { T::ZERO } else { weight };
                    let imaginary = if self.along.conjugate { -imaginary } else { imaginary };
                    pack(&ends, [turns[2 * k], -turns[2 * k + 1]], [weight, imaginary], re, im);
                }
            }
            _ => return false,
        }
        true
    }

    /// As `store`, likewise.
    ///
    /// # Safety
    /// The second of each pair of lines may be written.
    unsafe fn store_rows(&self, lines: &[(Line<T>, Line<T>)], lanes: usize, re: &[T], im: &[T]) -> bool {
        let (n, count, half) = (self.along.n, lines.len(), self.along.n / 2);
        let to = &lines[0].1;
        let starts = starts(lines.iter().map(|pair| pair.1.at));
        let scale = T::from_f64(self.along.scale);
        let row = |k: usize| (&re[k * lanes..k * lanes + count], &im[k * lanes..k * lanes + count]);
        match (self.along.kind, self.packed, to.second) {
            (Kind::Whole, _, second) if to.len <= n => {
                for k in 0..to.len {
                    // SAFETY: element `k` is inside each line.
                    unsafe { store_row(&starts, k as isize * to.stride, second, row(k), scale) };
                }
            }
            (Kind::FromHalf, true, None) if to.len == n => {
                for k in 0..half {
                    // SAFETY: elements `2 k` and `2 k + 1` are inside each line.
                    unsafe { store_row(&starts, 2 * k as isize * to.stride, Some(to.stride), row(k), scale) };
                }
            }
            (Kind::ToHalf, true, Some(second)) if to.len <= half + 1 => {
                let turns = self.plan.turns();
                let mut out = [[T::ZERO; LANES]; 2];
                for k in 0..to.len {
                    let ((zr, zi), (yr, yi)) = (row(k % half), row((half - k) % half));
                    let has_mirror = k > 0 && k < half;
                    let weight = if has_mirror { T::from_f64(self.along.scale * self.along.middle) } else { scale };
                    let imaginary = if has_mirror { weight } else { T::ZERO };
                    let imaginary = if self.along.conjugate { -imaginary } else { imaginary };
                    unpack([zr, zi, yr, yi], [turns[2 * k], turns[2 * k + 1]], [weight, imaginary], &mut out);
                    // SAFETY: element `k` is inside each line.
                    unsafe {
                        let row = (&out[0][..count], &out[1][..count]);
                        store_row(&starts, k as isize * to.stride, Some(second), row, T::ONE);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// # Safety
    /// The line may be read.
    #[inline(always)]
    unsafe fn gather(&self, from: &Line<T>, put: &mut impl FnMut(usize, [T; 2])) {
        let n = self.along.n;
        // SAFETY: the line may be read (this function's contract).
        unsafe {
            match (self.along.kind, self.packed) {
                (Kind::ToHalf, true) => {
                    (0..n / 2).for_each(|k| put(k, [from.get(2 * k)[0], from.get(2 * k + 1)[0]]));
                }
                (Kind::FromHalf, true) => {
                    let half = n / 2;
                    for k in 0..half {
                        let ([ar, ai], [br, bi]) = (self.weighted(from, k), self.weighted(from, half - k));
                        // The sum with the mirror image, and i times the difference turned back.
                        let (sum, difference) = ([ar + br, ai - bi], [ar - br, ai + bi]);
                        let turns = self.plan.turns();
                        let (c, s) = (turns[2 * k], -turns[2 * k + 1]);
                        let turned = [difference[0] * c - difference[1] * s, difference[0] * s + difference[1] * c];
                        put(k, [sum[0] - turned[1], sum[1] + turned[0]]);
                    }
                }
                (Kind::FromHalf, false) => {
                    put(0, self.weighted(from, 0));
                    for k in 1..=n / 2 {
                        let [re, im] = self.weighted(from, k);
                        put(k, [re, im]);
                        put(n - k, [re, -im]);
                    }
                }
                (Kind::Whole | Kind::ToHalf, _) => (0..n).for_each(|k| put(k, from.get(k))),
            }
        }
    }

    /// An element of a half spectrum, without the imaginary part where it must be real.
    ///
    /// # Safety
    /// The line may be read.
    #[inline(always)]
    unsafe fn weighted(&self, from: &Line<T>, k: usize) -> [T; 2] {
        // SAFETY: the line may be read (this function's contract).
        let [re, im] = unsafe { from.get(k) };
        if k == 0 || 2 * k == self.along.n {
            return [re, T::ZERO];
        }
        let weight = T::from_f64(self.along.middle);
        [re * weight, if self.along.conjugate { -im * weight } else { im * weight }]
    }

    /// # Safety
    /// The line may be written.
    #[inline(always)]
    unsafe fn store(&self, to: &Line<T>, get: &impl Fn(usize) -> [T; 2]) {
        let (n, scale) = (self.along.n, T::from_f64(self.along.scale));
        // SAFETY: the line may be written (this function's contract).
        unsafe {
            match (self.along.kind, self.packed) {
                (Kind::ToHalf, packed) => {
                    for k in 0..to.len.min(n / 2 + 1) {
                        let [re, im] = if packed { self.unpacked(k, get) } else { get(k) };
                        let has_mirror = k > 0 && 2 * k < n;
                        let weight = if has_mirror { T::from_f64(self.along.scale * self.along.middle) } else { scale };
                        let im = if has_mirror { im } else { T::ZERO };
                        to.set(k, [re * weight, if self.along.conjugate { -im * weight } else { im * weight }]);
                    }
                    to.clear(n / 2 + 1);
                }
                (Kind::FromHalf, true) => {
                    for k in 0..n / 2 {
                        let [even, odd] = get(k);
                        to.set(2 * k, [even * scale, T::ZERO]);
                        to.set(2 * k + 1, [odd * scale, T::ZERO]);
                    }
                    to.clear(n);
                }
                (Kind::FromHalf, false) | (Kind::Whole, _) => {
                    for k in 0..to.len.min(n) {
                        let [re, im] = get(k);
                        to.set(k, [re * scale, im * scale]);
                    }
                    to.clear(n);
                }
            }
        }
    }

    /// An element of the spectrum of a real signal, from the spectrum of its pairs.
    #[inline(always)]
    fn unpacked(&self, k: usize, get: &impl Fn(usize) -> [T; 2]) -> [T; 2] {
        let half = self.along.n / 2;
        let ([zr, zi], [yr, yi]) = (get(k % half), get((half - k) % half));
        let two = T::from_f64(0.5);
        let (even, odd) = ([(zr + yr) * two, (zi - yi) * two], [(zi + yi) * two, (yr - zr) * two]);
        let turns = self.plan.turns();
        let (c, s) = (turns[2 * k], turns[2 * k + 1]);
        [even[0] + odd[0] * c - odd[1] * s, even[1] + odd[0] * s + odd[1] * c]
    }
}

/// The first elements of lines; where there are no more, that of the first line.
#[inline(always)]
fn starts<T>(mut each: impl Iterator<Item = *mut T>) -> [*mut T; LANES] {
    let mut starts = [each.next().unwrap_or(std::ptr::null_mut()); LANES];
    starts[1..].iter_mut().zip(each).for_each(|(to, at)| *to = at);
    starts
}

/// One element of each line, at this offset: its parts, or zeros for imaginary ones that it lacks.
///
/// # Safety
/// The elements may be read.
#[inline(always)]
unsafe fn load_row<T: Part>(
    starts: &[*mut T; LANES],
    offset: isize,
    second: Option<isize>,
    re: &mut [T],
    im: &mut [T],
) {
    match second {
        Some(second) => {
            for ((&at, re), im) in starts.iter().zip(re).zip(im) {
                // SAFETY: the element is inside each line (this function's contract).
                unsafe { (*re, *im) = (*at.offset(offset), *at.offset(offset + second)) };
            }
        }
        None => {
            // SAFETY: the element is inside each line (this function's contract).
            starts.iter().zip(re).for_each(|(&at, re)| unsafe { *re = *at.offset(offset) });
            im.fill(T::ZERO);
        }
    }
}

/// Stores an element of each line, multiplied by `scale`.
///
/// # Safety
/// The elements may be written.
#[inline(always)]
unsafe fn store_row<T: Part>(
    starts: &[*mut T; LANES],
    offset: isize,
    second: Option<isize>,
    (re, im): (&[T], &[T]),
    scale: T,
) {
    for ((&at, &re), &im) in starts.iter().zip(re).zip(im) {
        // SAFETY: the element is inside each line (this function's contract).
        unsafe {
            *at.offset(offset) = re * scale;
            if let Some(second) = second {
                *at.offset(offset + second) = im * scale;
            }
        }
    }
}

widths! {
    without_highest:
    /// Elements k of spectra of real signals, from elements k and n - k of the spectra of their pairs: of `ends`
    /// their parts. `weights` multiply the parts of the results.
    fn unpack<T>(ends: [&[T]; 4], turn: [T; 2], weights: [T; 2], out: &mut [[T; LANES]; 2]) {
        let [zr, zi, yr, yi] = ends;
        let (half, lanes) = (T::from_f64(0.5), zr.len().min(LANES));
        let (zi, yr, yi) = (&zi[..lanes], &yr[..lanes], &yi[..lanes]);
        for l in 0..lanes {
            let (even, odd) = ([(zr[l] + yr[l]) * half, (zi[l] - yi[l]) * half], [(zi[l] + yi[l]) * half, (yr[l] - zr[l]) * half]);
            out[0][l] = (even[0] + odd[0] * turn[0] - odd[1] * turn[1]) * weights[0];
            out[1][l] = (even[1] + odd[0] * turn[1] + odd[1] * turn[0]) * weights[1];
        }
    }
}

widths! {
    without_highest:
    /// The reverse: elements k of the spectra of pairs, from elements k and n - k of the spectra of real signals.
    fn pack<T>(ends: &[[T; LANES]; 4], turn: [T; 2], weights: [T; 2], re: &mut [T], im: &mut [T]) {
        let [ar, ai, br, bi] = ends;
        let lanes = re.len().min(LANES);
        let (re, im) = (&mut re[..lanes], &mut im[..lanes]);
        for l in 0..lanes {
            let sum = [(ar[l] + br[l]) * weights[0], (ai[l] - bi[l]) * weights[1]];
            let difference = [(ar[l] - br[l]) * weights[0], (ai[l] + bi[l]) * weights[1]];
            let turned = [difference[0] * turn[0] - difference[1] * turn[1], difference[0] * turn[1] + difference[1] * turn[0]];
            re[l] = sum[0] - turned[1];
            im[l] = sum[1] + turned[0];
        }
    }
}
