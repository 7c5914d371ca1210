//! The maximum of each window of a plane, and its index.
//!
//! Most windows along a row of outputs have the same size: those are processed together, one kernel position after the
//! other, so that the loop over outputs has no branches (which element is the maximum cannot be predicted) and is
//! vectorized.

use super::Planes;
use super::window::{Window, Windows};
use crate::kernel::guard;
use crate::kernel::host::real::{Real, widths};
use std::ops::Range;

/// Bound: comparisons between two calls of `guard::check` in wide windows; a few microseconds.
const LONG: usize = 16 * 1024;

/// Consecutive outputs of a row whose windows have the same number of elements and the same distance.
pub struct Even {
    outputs: Range<usize>,
    /// Distance between windows, and elements of each.
    stride: usize,
    taps: usize,
}

impl Even {
    /// The longest such run around the middle of the row.
    pub fn of(windows: &[Window]) -> Even {
        let middle = windows.len() / 2;
        let Some(model) = windows.get(middle) else { return Even { outputs: 0..0, stride: 1, taps: 0 } };
        let stride = windows.get(middle + 1).map_or(1, |next| next.start.saturating_sub(model.start));
        let like = |a: &Window, b: &Window| {
            b.start == a.start + stride && (a.span(), a.step) == (model.span(), model.step) && b.span() == a.span()
        };
        let (mut first, mut end) = (middle, middle + 1);
        while first > 0 && like(&windows[first - 1], &windows[first]) {
            first -= 1;
        }
        while end < windows.len() && like(&windows[end - 1], &windows[end]) {
            end += 1;
        }
        Even { outputs: first..end, stride, taps: model.span().div_ceil(model.step) }
    }
}

/// The outputs of one plane, with flat positions. NaN is the largest; of several NaNs the last is taken, as in PyTorch.
pub fn max_pool_plane<T: Real>(from: Planes, windows: &Windows, even: &Even, x: &[T], y: &mut [T], at: &mut [i64]) {
    let place = |d: usize, h: usize, w: usize| (d * from.size[1] + h) * from.size[2] + w;
    let [ds, hs, ws] = windows.dims();
    if ws.is_empty() {
        return;
    }
    // A few wide windows are compared one after the other.
    let columns = if even.outputs.len() < 4 && even.taps > 16 { 0..0 } else { even.outputs.clone() };
    let (mut max, mut tap) = (guard::filled(columns.len(), T::ZERO), guard::filled(columns.len(), T::ZERO));
    let mut positions = Vec::new();
    let rows = ds.iter().flat_map(|d| hs.iter().map(move |h| (d, h)));
    for ((d, h), (y, at)) in rows.zip(y.chunks_exact_mut(ws.len()).zip(at.chunks_exact_mut(ws.len()))) {
        guard::check();
        for o in (0..columns.start).chain(columns.end..ws.len()) {
            let (value, position) = largest_of(x, from.size, [d, h, &ws[o]]);
            (y[o], at[o]) = (value, position as i64);
        }
        let Some(first) = ws.get(columns.start).filter(|_| !columns.is_empty()) else { continue };
        max.fill(T::NEG_INF);
        tap.fill(T::ZERO);
        positions.clear();
        for i in d.positions() {
            for j in h.positions() {
                if even.taps * columns.len() > LONG {
                    guard::check();
                }
                for k in 0..even.taps {
                    let start = place(i, j, first.start + k * first.step);
                    let end = start + (columns.len() - 1) * even.stride + 1;
                    let number = T::from_usize(positions.len());
                    take(&x[start..end], even.stride, number, &mut max, &mut tap);
                    positions.push(place(i, j, k * first.step));
                }
            }
        }
        if positions.is_empty() {
            positions.push(place(d.start, h.start, 0));
        }
        y[columns.clone()].copy_from_slice(&max);
        let at = &mut at[columns.clone()];
        if positions.len() == even.taps {
            // One row of the plane: the positions of the kernel are as far apart as its steps.
            place_in_row(&tap, positions[0] + first.start, first.step, even.stride, at);
        } else {
            place_of(&tap, &positions, first.start, even.stride, at);
        }
    }
}

widths! {
    without_highest:
    /// Whether an element is larger than `max`, or NaN.
    fn beats<T>(row: &[T], max: T) -> bool {
        for part in row.chunks(64) {
            let mut beats = false;
            for &x in part {
                beats |= (x > max) | x.is_nan();
            }
            if beats {
                return true;
            }
        }
        false
    }
}

fn largest_of<T: Real>(x: &[T], size: [usize; 3], [d, h, w]: [&Window; 3]) -> (T, usize) {
    let at = |d: usize, h: usize, w: usize| (d * size[1] + h) * size[2] + w;
    let (mut max, mut position) = (T::NEG_INF, at(d.start, h.start, w.start));
    for i in d.positions() {
        for j in h.positions() {
            if w.span() > LONG {
                guard::check();
            }
            let first = at(i, j, w.start);
            if w.step == 1 && w.span() > 0 && !beats(&x[first..first + w.span()], max) {
                continue;
            }
            for k in w.positions() {
                let p = at(i, j, k);
                if x[p] > max || x[p].is_nan() {
                    (max, position) = (x[p], p);
                }
            }
        }
    }
    (max, position)
}

widths! {
    without_highest:
    /// The positions of maxima from those of the kernel, of windows that begin at `start` and `stride` apart.
    fn place_of<T>(tap: &[T], positions: &[usize], start: usize, stride: usize, at: &mut [i64]) {
        for (i, (at, &tap)) in at.iter_mut().zip(tap).enumerate() {
            let number = tap.to_f64();
            debug_assert!(number >= 0.0 && (number as usize) < positions.len());
            // SAFETY: `take` wrote the numbers of positions that are in the table.
            let position = unsafe { *positions.get_unchecked(number.to_int_unchecked::<i32>() as usize) };
            *at = (position + start + i * stride) as i64;
        }
    }
}

widths! {
    without_highest:
    /// As `place_of`, for positions that begin with `first` and are `step` apart.
    fn place_in_row<T>(tap: &[T], first: usize, step: usize, stride: usize, at: &mut [i64]) {
        for (i, (at, &tap)) in at.iter_mut().zip(tap).enumerate() {
            // SAFETY: `take` wrote the numbers of positions, which are few.
            let number = unsafe { tap.to_f64().to_int_unchecked::<i32>() };
            *at = (first + i * stride) as i64 + i64::from(number) * step as i64;
        }
    }
}

widths! {
    without_highest:
    /// Compares every `stride`th element of `x` with the maxima so far: a larger one becomes the maximum, and `number`
    /// its kernel position.
    fn take<T>(x: &[T], stride: usize, number: T, max: &mut [T], tap: &mut [T]) {
        match stride {
            1 => each::<T, 1>(x, 1, number, max, tap),
            2 => each::<T, 2>(x, 2, number, max, tap),
            _ => each::<T, 0>(x, stride, number, max, tap),
        }
    }
}

/// `STRIDE`: the stride, or 0 for any. With a constant stride the compiler uses shuffles.
#[inline(always)]
fn each<T: Real, const STRIDE: usize>(x: &[T], stride: usize, number: T, max: &mut [T], tap: &mut [T]) {
    let stride = if STRIDE > 0 { STRIDE } else { stride };
    assert!(max.is_empty() || x.len() > (max.len() - 1) * stride);
    for (i, (max, tap)) in max.iter_mut().zip(tap).enumerate() {
        // SAFETY: `i` is below the length of `max`, and the assertion above says that so many steps of `stride` stay
        // inside `x`.
        let value = unsafe { *x.get_unchecked(i * stride) };
        let better = (value > *max) | value.is_nan();
        *max = if better { value } else { *max };
        *tap = if better { number } else { *tap };
    }
}
