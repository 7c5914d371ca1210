//! Running sums, products, maxima, minima and log-sum-exps along a dim.
//!
//! A row is cut into units of fixed length; the totals of the units come first, then every unit is scanned from the
//! total before it. So one long row runs in parallel, and the result does not depend on the number of threads.

use super::copy::copy_view;
use super::element::{Acc, Element, by_dtype};
use super::walk::{Ptr, Walk, dim, extent, flag, reversed, without};
use crate::kernel::abi::{Call, RawView, Threads};

/// Elements of a unit.
const UNIT: usize = 1024;
/// Columns that are scanned side by side when the dim is not the innermost.
const COLUMNS: usize = 64;

/// An associative operation with a state, on elements and their positions along the dim.
trait Scan<T: Element>: Sync {
    type State: Copy + Send + Sync;
    const START: Self::State;
    fn load(value: T, position: usize) -> Self::State;
    fn join(left: Self::State, right: Self::State) -> Self::State;
    fn value(state: Self::State) -> T;
    /// Position of the element that the state shows; only for maxima and minima.
    fn position(_: Self::State) -> i64 {
        0
    }
}

struct Sum;
impl<T: Element> Scan<T> for Sum {
    type State = T::Acc;
    const START: T::Acc = <T::Acc as Acc>::ZERO;
    #[inline(always)]
    fn load(value: T, _: usize) -> T::Acc {
        value.to_acc()
    }
    #[inline(always)]
    fn join(left: T::Acc, right: T::Acc) -> T::Acc {
        left.add(right)
    }
    #[inline(always)]
    fn value(state: T::Acc) -> T {
        T::from_acc(state)
    }
}

struct Product;
impl<T: Element> Scan<T> for Product {
    type State = T::Acc;
    const START: T::Acc = <T::Acc as Acc>::ONE;
    #[inline(always)]
    fn load(value: T, _: usize) -> T::Acc {
        value.to_acc()
    }
    #[inline(always)]
    fn join(left: T::Acc, right: T::Acc) -> T::Acc {
        left.mul(right)
    }
    #[inline(always)]
    fn value(state: T::Acc) -> T {
        T::from_acc(state)
    }
}

/// Maximum or minimum with its position. As PyTorch: of equal elements the later one, and NaN stays once seen, at the
/// position of the latest NaN.
struct Extreme<const LARGEST: bool>;
impl<T: Element, const LARGEST: bool> Scan<T> for Extreme<LARGEST> {
    /// The position is -1 before the first element.
    type State = (T, i64);
    const START: (T, i64) = (T::ZERO, -1);
    #[inline(always)]
    fn load(value: T, position: usize) -> (T, i64) {
        (value, position as i64)
    }
    #[inline(always)]
    fn join(left: (T, i64), right: (T, i64)) -> (T, i64) {
        let passes = if LARGEST { right.0 >= left.0 } else { right.0 <= left.0 };
        if left.1 < 0 || right.0.is_nan() || (!left.0.is_nan() && passes) { right } else { left }
    }
    #[inline(always)]
    fn value(state: (T, i64)) -> T {
        state.0
    }
    #[inline(always)]
    fn position(state: (T, i64)) -> i64 {
        state.1
    }
}

/// `log(exp a + exp b)`, shifted by the larger; computed in f64.
struct LogSumExp;
impl<T: Element> Scan<T> for LogSumExp {
    type State = f64;
    const START: f64 = f64::NEG_INFINITY;
    #[inline(always)]
    fn load(value: T, _: usize) -> f64 {
        value.to_f64()
    }
    #[inline(always)]
    fn join(left: f64, right: f64) -> f64 {
        if left.is_nan() || right.is_nan() {
            return f64::NAN;
        }
        let (low, high) = if left < right { (left, right) } else { (right, left) };
        // Equal infinities would give NaN.
        if low == high && high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
    }
    #[inline(always)]
    fn value(state: f64) -> T {
        T::from_f64(state)
    }
}

/// Inputs `[x]`, outputs `[y]` of the same shape; `x` is converted to the dtype of `y` first (integers sum as i64 and wrap to it).
/// f32 accumulates in f64, 16-bit floats in f32. Attrs `[dim, reverse]`; reverse sums from the end, as the gradient does.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cumsum(call: &Call<'_>) {
    let y = &call.outputs[0];
    // SAFETY: passed on.
    by_dtype!(y.dtype, T => unsafe { values::<T, Sum>(call) })
}

/// Running products; arguments as [`cumsum`].
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cumprod(call: &Call<'_>) {
    let y = &call.outputs[0];
    // SAFETY: passed on.
    by_dtype!(y.dtype, T => unsafe { values::<T, Product>(call) })
}

/// Running `log(sum(exp x))`; arguments as [`cumsum`], floats only.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn logcumsumexp(call: &Call<'_>) {
    let y = &call.outputs[0];
    // SAFETY: passed on.
    by_dtype!(y.dtype, T => unsafe { values::<T, LogSumExp>(call) })
}

/// Running maxima and where they are. Inputs `[x]`; outputs `[values, indices]`: dtype of `x`, i64. Attrs `[dim]`. Of equal elements
/// the later index; NaN stays once seen.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cummax(call: &Call<'_>) {
    let (x, y, indices) = (&call.inputs[0], &call.outputs[0], call.outputs.get(1));
    // SAFETY: passed on.
    by_dtype!(x.dtype, T => unsafe { along::<T, Extreme<true>>(x, y, indices, dim(call, 0), call.threads) })
}

/// Running minima; arguments as [`cummax`].
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cummin(call: &Call<'_>) {
    let (x, y, indices) = (&call.inputs[0], &call.outputs[0], call.outputs.get(1));
    // SAFETY: passed on.
    by_dtype!(x.dtype, T => unsafe { along::<T, Extreme<false>>(x, y, indices, dim(call, 0), call.threads) })
}

unsafe fn values<T: Element, S: Scan<T>>(call: &Call<'_>) {
    let (mut x, mut y, d) = (call.inputs[0].clone(), call.outputs[0].clone(), dim(call, 0));
    // SAFETY: passed on; a scan reads each element before it writes it, so that it can run in place.
    unsafe {
        if x.dtype != y.dtype {
            copy_view(&x, &y, call.threads);
            x = y.clone();
        }
        if flag(call, 1) && y.numel() > 0 && !y.shape.is_empty() {
            (x, y) = (reversed(&x, d), reversed(&y, d));
        }
        along::<T, S>(&x, &y, None, d, call.threads);
    }
}

/// A row of the input, of the output and of the indices: offsets and strides.
#[derive(Clone, Copy)]
struct Row<T> {
    from: *const T,
    to: *mut T,
    indices: Option<*mut i64>,
    steps: [isize; 3],
}

unsafe fn along<T: Element, S: Scan<T>>(
    x: &RawView,
    y: &RawView,
    indices: Option<&RawView>,
    d: usize,
    threads: &Threads,
) {
    if y.numel() == 0 {
        return;
    }
    let (length, step) = extent(x, d);
    let third = indices.unwrap_or(y);
    let steps = [step, extent(y, d).1, extent(third, d).1];
    let others = |view: &RawView| without(&view.strides, d);
    let walk = Walk::<3>::new(&without(&y.shape, d), [&others(x), &others(y), &others(third)]);
    let (from, to) = (Ptr::<T>::of(x), Ptr::<T>::of(y));
    let places = indices.map(Ptr::<i64>::of);
    let row =
        |[f, t, i]: [isize; 3]| Row::<T> { from: from.at(f), to: to.at(t), indices: places.map(|p| p.at(i)), steps };
    let inner = walk.inner();
    if length <= 2 * UNIT || walk.numel >= 4 * threads.count() {
        threads.split(walk.numel, (16 * 1024 / length).max(1), |range| {
            walk.pieces(range, |_, at, n| {
                // Rows that lie side by side are scanned together, line by line.
                let together = inner[1].unsigned_abs() < steps[1].unsigned_abs();
                let width = if together && length <= 2 * UNIT { COLUMNS } else { 1 };
                for start in (0..n).step_by(width) {
                    let at = std::array::from_fn(|k| at[k] + start as isize * inner[k]);
                    // SAFETY: rows belong to one thread each.
                    unsafe {
                        if width > 1 && n - start > 1 {
                            columns::<T, S>(row(at), inner, Ord::min(width, n - start), length);
                        } else {
                            one::<T, S>(row(at), length, &Threads::ONE);
                        }
                    }
                }
            });
        });
    } else {
        for which in 0..walk.numel {
            // SAFETY: one row after the other.
            unsafe { one::<T, S>(row(walk.offsets(which)), length, threads) };
        }
    }
}

/// Rows side by side, as many as `width`.
unsafe fn columns<T: Element, S: Scan<T>>(row: Row<T>, inner: [isize; 3], width: usize, length: usize) {
    let mut states = [S::START; COLUMNS];
    for l in 0..length {
        let k = l as isize;
        for (c, state) in states[..width].iter_mut().enumerate() {
            let c = c as isize;
            // SAFETY: inside the rows.
            unsafe {
                *state = S::join(*state, S::load(*row.from.offset(k * row.steps[0] + c * inner[0]), l));
                *row.to.offset(k * row.steps[1] + c * inner[1]) = S::value(*state);
                if let Some(indices) = row.indices {
                    *indices.offset(k * row.steps[2] + c * inner[2]) = S::position(*state);
                }
            }
        }
    }
}

/// One row, in units when it is long.
unsafe fn one<T: Element, S: Scan<T>>(row: Row<T>, length: usize, threads: &Threads) {
    if length <= 2 * UNIT {
        // SAFETY: the whole row.
        unsafe { unit::<T, S>(row, 0, length, S::START) };
        return;
    }
    let units = length.div_ceil(UNIT);
    let mut totals = vec![S::START; units];
    let slots = Ptr::new(totals.as_mut_ptr());
    let shared = [Ptr::new(row.from.cast_mut()), Ptr::new(row.to)];
    let indices = row.indices.map(Ptr::new);
    let row = move || Row {
        from: shared[0].at(0),
        to: shared[1].at(0),
        indices: indices.map(|p| p.at(0)),
        ..Row { steps: row.steps, from: std::ptr::null(), to: std::ptr::null_mut(), indices: None }
    };
    threads.split(units, 8, |range| {
        for u in range {
            // SAFETY: a unit of the row, and its own slot.
            unsafe { *slots.at(u as isize) = total::<T, S>(row(), u * UNIT, Ord::min(length, (u + 1) * UNIT)) };
        }
    });
    let mut before = S::START;
    for total in totals.iter_mut() {
        (*total, before) = (before, S::join(before, *total));
    }
    threads.split(units, 8, |range| {
        let mut u = range.start;
        while u < range.end {
            // SAFETY: units of the row belong to one thread each.
            unsafe {
                if u + 4 <= range.end && (u + 4) * UNIT <= length {
                    four::<T, S>(row(), u, [totals[u], totals[u + 1], totals[u + 2], totals[u + 3]]);
                    u += 4;
                } else {
                    unit::<T, S>(row(), u * UNIT, Ord::min(length, (u + 1) * UNIT), totals[u]);
                    u += 1;
                }
            }
        }
    });
}

/// The total of a unit, in eight strands whose order is fixed by the unit: each joins a consecutive part.
unsafe fn total<T: Element, S: Scan<T>>(row: Row<T>, start: usize, end: usize) -> S::State {
    let part = (end - start).div_ceil(8);
    let mut strands = [S::START; 8];
    for k in 0..part {
        for (s, strand) in strands.iter_mut().enumerate() {
            let at = start + s * part + k;
            if at < end {
                // SAFETY: inside the row.
                *strand = S::join(*strand, S::load(unsafe { *row.from.offset(at as isize * row.steps[0]) }, at));
            }
        }
    }
    strands.into_iter().fold(S::START, S::join)
}

#[inline(always)]
unsafe fn step<T: Element, S: Scan<T>>(row: &Row<T>, at: usize, state: &mut S::State) {
    let k = at as isize;
    // SAFETY: the caller names an element of the row.
    unsafe {
        *state = S::join(*state, S::load(*row.from.offset(k * row.steps[0]), at));
        *row.to.offset(k * row.steps[1]) = S::value(*state);
        if let Some(indices) = row.indices {
            *indices.offset(k * row.steps[2]) = S::position(*state);
        }
    }
}

unsafe fn unit<T: Element, S: Scan<T>>(row: Row<T>, start: usize, end: usize, mut state: S::State) {
    for at in start..end {
        // SAFETY: inside the row.
        unsafe { step::<T, S>(&row, at, &mut state) };
    }
}

/// Four units at once: the chains of dependent additions overlap.
unsafe fn four<T: Element, S: Scan<T>>(row: Row<T>, first: usize, mut states: [S::State; 4]) {
    for k in 0..UNIT {
        for (u, state) in states.iter_mut().enumerate() {
            // SAFETY: inside the row.
            unsafe { step::<T, S>(&row, (first + u) * UNIT + k, state) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::HostFn;
    use crate::kernel::cpu::walk::sample::{self, Dice, Owned, call_on, coords, flat, values};

    /// The loop that each scan is: `fold(state, value, position) -> state`.
    fn naive(xs: &[f64], shape: &[usize], d: usize, reverse: bool, fold: impl Fn(Option<f64>, f64) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; xs.len()];
        for i in (0..xs.len()).filter(|&i| coords(i, shape)[d] == 0) {
            let mut state = None;
            for l in 0..shape[d] {
                let mut c = coords(i, shape);
                c[d] = if reverse { shape[d] - 1 - l } else { l };
                let at = flat(&c, shape);
                state = Some(fold(state, xs[at]));
                out[at] = state.unwrap_or(0.0);
            }
        }
        out
    }

    #[test]
    fn sums_and_products_agree_with_loops() {
        let mut dice = Dice(61);
        for threads in [&Threads::ONE, &Threads::new(3)] {
            for (shape, d) in
                [(&[9][..], 0), (&[9000], 0), (&[3, 4, 5], 1), (&[3000, 3], 0), (&[70, 6], 0), (&[5, 0], 1)]
            {
                for (from, to) in [
                    (DType::F32, DType::F32),
                    (DType::Bool, DType::I64),
                    (DType::I16, DType::I64),
                    (DType::F64, DType::F64),
                ] {
                    let xs: Vec<f64> = (0..shape.iter().product()).map(|_| dice.below(2) as f64).collect();
                    let x = Owned::strided_from(from, shape, &xs, &mut dice);
                    let y = Owned::strided(to, shape, &mut dice);
                    for reverse in [false, true] {
                        let attrs = [Attr::Int(d as i64), Attr::Bool(reverse)];
                        assert_eq!(call_on(threads, cumsum, &[&x], &[&y], &attrs), None);
                        assert!(y.get() == naive(&xs, shape, d, reverse, |s, v| s.unwrap_or(0.0) + v), "{shape:?} {d}");
                        assert_eq!(call_on(threads, cumprod, &[&x], &[&y], &attrs), None);
                        assert!(y.get() == naive(&xs, shape, d, reverse, |s, v| s.unwrap_or(1.0) * v), "{shape:?} {d}");
                    }
                }
            }
        }
    }

    #[test]
    fn extremes_are_pytorchs() {
        let x = Owned::from(DType::F32, &[6], &[1., 3., 3., f64::NAN, 5., f64::NAN]);
        let (v, i) = (Owned::dense(DType::F32, &[6]), Owned::dense(DType::I64, &[6]));
        sample::call(cummax, &[&x], &[&v, &i], &[Attr::Int(0)]);
        // torch.cummax(tensor([1., 3, 3, nan, 5, nan]), 0)
        assert_eq!(v.get()[..3], [1., 3., 3.]);
        assert!(v.get()[3..].iter().all(|v| v.is_nan()));
        assert_eq!(i.get(), [0., 1., 2., 3., 3., 5.]);
        let mut dice = Dice(62);
        for (kernel, sign) in [(cummax as HostFn, 1.0), (cummin, -1.0)] {
            for (shape, d) in [(&[9000][..], 0), (&[4, 3, 5], 1), (&[5000, 2], 0)] {
                let xs = values(shape.iter().product(), &mut dice);
                let x = Owned::strided_from(DType::I32, shape, &xs, &mut dice);
                let (v, i) =
                    (Owned::strided(DType::I32, shape, &mut dice), Owned::strided(DType::I64, shape, &mut dice));
                assert_eq!(call_on(&Threads::new(2), kernel, &[&x], &[&v, &i], &[Attr::Int(d as i64)]), None);
                let expected = naive(&xs, shape, d, false, |s, v| {
                    if s.is_none_or(|s| v * sign >= s * sign) { v } else { s.unwrap_or(v) }
                });
                assert!(v.get() == expected);
                for (at, &place) in i.get().iter().enumerate() {
                    let mut c = coords(at, shape);
                    assert!(place as usize <= c[d]);
                    let later: Vec<f64> = (place as usize + 1..=c[d])
                        .map(|l| {
                            c[d] = l;
                            xs[flat(&c, shape)]
                        })
                        .collect();
                    c[d] = place as usize;
                    assert_eq!(xs[flat(&c, shape)], expected[at]);
                    assert!(later.iter().all(|&v| v != expected[at]), "the latest of equals");
                }
            }
        }
    }

    #[test]
    fn logcumsumexp_and_its_edges() {
        let mut dice = Dice(63);
        let xs: Vec<f64> = values(5000, &mut dice);
        let x = Owned::from(DType::F64, &[5000], &xs);
        let y = Owned::dense(DType::F64, &[5000]);
        assert_eq!(call_on(&Threads::new(2), logcumsumexp, &[&x], &[&y], &[Attr::Int(0)]), None);
        let mut sum = 0.0;
        for (v, x) in y.get().iter().zip(&xs) {
            sum += x.exp();
            assert!((v - sum.ln()).abs() < 1e-11);
        }
        let x = Owned::from(DType::F32, &[4], &[f64::NEG_INFINITY, 0.0, f64::INFINITY, f64::NAN]);
        let y = Owned::dense(DType::F32, &[4]);
        sample::call(logcumsumexp, &[&x], &[&y], &[Attr::Int(0)]);
        assert_eq!(y.get()[..3], [f64::NEG_INFINITY, 0.0, f64::INFINITY]);
        assert!(y.get()[3].is_nan());
    }

    #[test]
    fn threads_do_not_change_bits() {
        let xs: Vec<f64> = (0..100_000).map(|i| (i as f64 * 0.37).sin()).collect();
        let x = Owned::from(DType::F32, &[100_000], &xs);
        let run = |threads: &Threads| {
            let y = Owned::dense(DType::F32, &[100_000]);
            assert_eq!(call_on(threads, cumsum, &[&x], &[&y], &[Attr::Int(0)]), None);
            y.get()
        };
        assert!(run(&Threads::ONE) == run(&Threads::new(3)));
    }
}
