//! Cumulative sums, products, maxima, minima and log-sum-exps along a dim.
//!
//! A row is divided into units of fixed length: first the totals of the units are computed, then every unit is scanned
//! from the exclusive prefix of the totals. So one long row is scanned in parallel, and the result does not depend on
//! the number of threads. Only the loops that load a few elements to a wider type and store them are compiled for each
//! dtype.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::copy::host::copy_view;
use crate::kernel::guard;
use crate::kernel::host::element::{Acc, Element, Truth, by_integer};
use crate::kernel::host::walk::{Ptr, StridedIter, dim, extent, flag, reversed, without};

/// Elements of a unit.
const UNIT: usize = 1024;
/// Elements that are read, scanned and written at a time; also columns that are scanned in parallel.
const BLOCK: usize = 64;
/// Rows or units that are scanned at once: their chains of dependent operations overlap in time.
const STRANDS: usize = 4;

/// The loops between a dtype and the type `V` that it is scanned in.
struct Kind<V> {
    bytes: isize,
    load: unsafe fn(from: *const u8, stride: isize, out: &mut [V]),
    store: unsafe fn(values: &[V], to: *mut u8, stride: isize),
}

fn kind<T: Element>() -> Kind<T::Acc> {
    unsafe fn load<T: Element>(from: *const u8, stride: isize, out: &mut [T::Acc]) {
        let from = from.cast::<T>();
        // SAFETY: `Row::load` names `out.len()` elements of `T` with this stride.
        unsafe {
            if stride == 1 {
                let from = std::slice::from_raw_parts(from, out.len());
                out.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_acc());
            } else {
                out.iter_mut().enumerate().for_each(|(i, to)| *to = (*from.offset(i as isize * stride)).to_acc());
            }
        }
    }
    unsafe fn store<T: Element>(values: &[T::Acc], to: *mut u8, stride: isize) {
        let to = to.cast::<T>();
        // SAFETY: `Row::store` names `values.len()` elements of `T` with this stride.
        unsafe {
            if stride == 1 {
                let to = std::slice::from_raw_parts_mut(to, values.len());
                to.iter_mut().zip(values).for_each(|(to, &value)| *to = T::from_acc(value));
            } else {
                values.iter().enumerate().for_each(|(i, &v)| *to.offset(i as isize * stride) = T::from_acc(v));
            }
        }
    }
    Kind { bytes: size_of::<T>() as isize, load: load::<T>, store: store::<T> }
}

fn integral(dtype: DType) -> Kind<i64> {
    by_integer!(dtype, T => kind::<T>(), else kind::<Truth>())
}

fn half(dtype: DType) -> Kind<f32> {
    if dtype == DType::F16 { kind::<half::f16>() } else { kind::<half::bf16>() }
}

fn float(dtype: DType) -> Kind<f64> {
    if dtype == DType::F32 { kind::<f32>() } else { kind::<f64>() }
}

/// A type in which dtypes are scanned.
trait Value: Acc + PartialOrd {
    fn is_nan(self) -> bool;
    fn log_add(self, other: Self) -> Self;
    const LOWEST: Self;
}

impl Value for i64 {
    fn is_nan(self) -> bool {
        false
    }
    /// Not reached: logcumsumexp supports floats only.
    fn log_add(self, other: i64) -> i64 {
        self.max(other)
    }
    const LOWEST: i64 = i64::MIN;
}

macro_rules! value {
    ($V:ty) => {
        impl Value for $V {
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$V>::is_nan(self)
            }
            /// `log(exp a + exp b)`, shifted by the larger; computed in f64.
            fn log_add(self, other: $V) -> $V {
                let (low, high) = if self < other { (self as f64, other as f64) } else { (other as f64, self as f64) };
                if low.is_nan() || high.is_nan() {
                    return <$V>::NAN;
                }
                // inf - inf would give NaN.
                (if low == high && high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }) as $V
            }
            const LOWEST: $V = <$V>::NEG_INFINITY;
        }
    };
}
value!(f32);
value!(f64);

/// An associative operation with a state.
trait Scan<V: Value>: 'static {
    type State: Copy + Send + Sync + 'static;
    const START: Self::State;
    /// The state after the element at a position along the dim.
    fn next(state: Self::State, value: V, position: usize) -> Self::State;
    fn join(left: Self::State, right: Self::State) -> Self::State;
    fn value(state: Self::State) -> V;
    /// Position of the element that is the state's value; only for maxima and minima.
    fn position(_: Self::State) -> i64 {
        0
    }
}

/// A scan whose state is a value.
macro_rules! plain {
    ($name:ident, $start:expr, $join:expr) => {
        struct $name;
        impl<V: Value> Scan<V> for $name {
            type State = V;
            const START: V = $start;
            #[inline(always)]
            fn next(state: V, value: V, _: usize) -> V {
                $join(state, value)
            }
            #[inline(always)]
            fn join(left: V, right: V) -> V {
                $join(left, right)
            }
            #[inline(always)]
            fn value(state: V) -> V {
                state
            }
        }
    };
}
plain!(Sum, V::ZERO, V::add);
plain!(Product, V::ONE, V::mul);
plain!(LogSumExp, V::LOWEST, V::log_add);

/// Maximum or minimum with its position. As PyTorch: of equal elements the later one; after a NaN the result stays NaN,
/// at the position of the latest NaN.
struct Extreme<const LARGEST: bool>;
impl<V: Value, const LARGEST: bool> Scan<V> for Extreme<LARGEST> {
    /// The position is -1 before the first element.
    type State = (V, i64);
    const START: (V, i64) = (V::ZERO, -1);
    #[inline(always)]
    fn next(state: (V, i64), value: V, position: usize) -> (V, i64) {
        <Self as Scan<V>>::join(state, (value, position as i64))
    }
    #[inline(always)]
    fn join(left: (V, i64), right: (V, i64)) -> (V, i64) {
        if right.1 < 0 {
            return left;
        }
        let passes = if LARGEST { right.0 >= left.0 } else { right.0 <= left.0 };
        if left.1 < 0 || right.0.is_nan() || (!left.0.is_nan() && passes) { right } else { left }
    }
    #[inline(always)]
    fn value(state: (V, i64)) -> V {
        state.0
    }
    #[inline(always)]
    fn position(state: (V, i64)) -> i64 {
        state.1
    }
}

/// Inputs `[x]`, outputs `[y]` of the same shape; `x` is converted to the dtype of `y` first (integers sum as i64 and wrap to it).
/// f32 accumulates in f64, 16-bit floats in f32. Attrs `[dim, reverse]`; reverse sums from the end, as the gradient does.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cumsum(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { values::<Sum>(call) }
}

/// Cumulative products; arguments as [`cumsum`].
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cumprod(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { values::<Product>(call) }
}

/// Cumulative `log(sum(exp x))`; arguments as [`cumsum`], floats only.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn logcumsumexp(call: &Call<'_>) {
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { values::<LogSumExp>(call) }
}

/// Cumulative maxima and their indices. Inputs `[x]`; outputs `[values, indices]`: dtype of `x`, i64. Attrs `[dim]`. Of
/// equal elements the later index; after a NaN the result stays NaN.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cummax(call: &Call<'_>) {
    let (x, y, indices) = (&call.inputs[0], &call.outputs[0], call.outputs.get(1));
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { each_dtype::<Extreme<true>>(x, y, indices, dim(call, 0), call.threads) }
}

/// Cumulative minima; arguments as [`cummax`].
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn cummin(call: &Call<'_>) {
    let (x, y, indices) = (&call.inputs[0], &call.outputs[0], call.outputs.get(1));
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe { each_dtype::<Extreme<false>>(x, y, indices, dim(call, 0), call.threads) }
}

unsafe fn values<S: Scan<i64> + Scan<f32> + Scan<f64>>(call: &Call<'_>) {
    let (mut x, mut y, d) = (call.inputs[0].clone(), call.outputs[0].clone(), dim(call, 0));
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; a scan reads elements before it writes
    // them, so that it can run in place.
    unsafe {
        if x.dtype != y.dtype {
            copy_view(&x, &y, call.threads);
            x = y.clone();
        }
        if flag(call, 1) && y.numel() > 0 && !y.shape.is_empty() {
            (x, y) = (reversed(&x, d), reversed(&y, d));
        }
        each_dtype::<S>(&x, &y, None, d, call.threads);
    }
}

unsafe fn each_dtype<S: Scan<i64> + Scan<f32> + Scan<f64>>(
    x: &RawView,
    y: &RawView,
    indices: Option<&RawView>,
    d: usize,
    threads: &Threads,
) {
    // SAFETY: the views are those of a `HostFn` call, valid and not shared; each arm reads them as their own dtype.
    unsafe {
        match x.dtype {
            DType::F32 | DType::F64 => along::<f64, S>(&float(x.dtype), x, y, indices, d, threads),
            DType::F16 | DType::BF16 => along::<f32, S>(&half(x.dtype), x, y, indices, d, threads),
            _ => along::<i64, S>(&integral(x.dtype), x, y, indices, d, threads),
        }
    }
}

/// A row of the input, of the output and of the indices: first elements, and strides in elements.
#[derive(Clone, Copy)]
struct Row<'a, V> {
    kind: &'a Kind<V>,
    from: Ptr<u8>,
    to: Ptr<u8>,
    indices: Option<Ptr<i64>>,
    steps: [isize; 3],
}

impl<V: Value> Row<'_, V> {
    /// Reads elements from position `at` on, with a stride of `stride`.
    #[inline(always)]
    unsafe fn load(&self, at: isize, stride: isize, out: &mut [V]) {
        // SAFETY: whoever calls this names elements of this row, or of rows beside it that are the same thread's.
        unsafe { (self.kind.load)(self.from.at(at * self.kind.bytes), stride, out) }
    }

    #[inline(always)]
    unsafe fn store(&self, values: &[V], at: isize, stride: isize) {
        // SAFETY: whoever calls this names elements of this row, or of rows beside it that are the same thread's.
        unsafe { (self.kind.store)(values, self.to.at(at * self.kind.bytes), stride) }
    }
}

unsafe fn along<V: Value, S: Scan<V>>(
    kind: &Kind<V>,
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
    let walk = StridedIter::<3>::new(&without(&y.shape, d), [&others(x), &others(y), &others(third)]);
    let (from, to) = (Ptr::<u8>::of(x), Ptr::<u8>::of(y));
    let indices = indices.map(Ptr::<i64>::of);
    let row = |[f, t, i]: [isize; 3]| {
        let (from, to) = (Ptr::new(from.at(f * kind.bytes)), Ptr::new(to.at(t * kind.bytes)));
        Row { kind, from, to, indices: indices.map(|p| Ptr::new(p.at(i))), steps }
    };
    let inner = walk.inner();
    // Adjacent rows are scanned together, so that memory is read sequentially.
    let together = inner[1].unsigned_abs() < steps[1].unsigned_abs() && length <= 2 * UNIT;
    if length <= 2 * UNIT || walk.numel >= 4 * threads.count() {
        threads.split(walk.numel, (16 * 1024 / length).max(1), |range| {
            walk.pieces(range, |_, at, n| {
                let row = |start: usize| row(std::array::from_fn(|k| at[k] + start as isize * inner[k]));
                let width = if together { BLOCK } else { STRANDS };
                for start in (0..n).step_by(width) {
                    let width = Ord::min(width, n - start);
                    // SAFETY: rows belong to one thread each.
                    unsafe {
                        if together {
                            columns::<V, S>(&row(start), inner, width, length);
                        } else if width == STRANDS && length <= 2 * UNIT {
                            let rows = std::array::from_fn(|u| row(start + u));
                            units::<V, S, STRANDS>(&rows, [0; STRANDS], length, [S::START; STRANDS]);
                        } else {
                            (start..start + width).for_each(|at| one::<V, S>(&row(at), length, &Threads::ONE));
                        }
                    }
                }
            });
        });
    } else {
        for which in 0..walk.numel {
            // SAFETY: `which` is below the number of rows, and one row is done after the other.
            unsafe { one::<V, S>(&row(walk.offsets(which)), length, threads) };
        }
    }
}

/// Scans `width` adjacent rows.
unsafe fn columns<V: Value, S: Scan<V>>(row: &Row<'_, V>, inner: [isize; 3], width: usize, length: usize) {
    let mut states = [S::START; BLOCK];
    let mut buffer = [V::ZERO; BLOCK];
    let (states, values) = (&mut states[..width], &mut buffer[..width]);
    for l in 0..length {
        let k = l as isize;
        // SAFETY: `l` is below the length, and the `width` rows from this one on are this thread's.
        unsafe {
            row.load(k * row.steps[0], inner[0], values);
            for (state, value) in states.iter_mut().zip(values.iter_mut()) {
                *state = S::next(*state, *value, l);
                *value = S::value(*state);
            }
            row.store(values, k * row.steps[1], inner[1]);
            if let Some(indices) = row.indices {
                for (c, &state) in states.iter().enumerate() {
                    *indices.at(k * row.steps[2] + c as isize * inner[2]) = S::position(state);
                }
            }
        }
    }
}

/// Scans one row, in units if it is long.
unsafe fn one<V: Value, S: Scan<V>>(row: &Row<'_, V>, length: usize, threads: &Threads) {
    if length <= 2 * UNIT {
        // SAFETY: the row has `length` elements, all of which are scanned.
        unsafe { units::<V, S, 1>(&[*row], [0], length, [S::START]) };
        return;
    }
    let count = length.div_ceil(UNIT);
    let end = |u: usize| Ord::min(length, (u + 1) * UNIT);
    let mut totals = guard::filled(count, S::START);
    let slots = Ptr::new(totals.as_mut_ptr());
    threads.split(count, 8, |range| {
        for u in range {
            // SAFETY: `u` is below the number of units, so it is inside the row; only this task writes slot `u`.
            unsafe { *slots.at(u as isize) = total::<V, S>(row, u * UNIT, end(u)) };
        }
    });
    let mut before = S::START;
    for total in totals.iter_mut() {
        (*total, before) = (before, S::join(before, *total));
    }
    threads.split(count, 8, |range| {
        let mut u = range.start;
        while u < range.end {
            // SAFETY: units of the row belong to one thread each.
            unsafe {
                if u + STRANDS <= range.end && (u + STRANDS) * UNIT <= length {
                    let starts = std::array::from_fn(|k| (u + k) * UNIT);
                    units::<V, S, STRANDS>(&[*row; STRANDS], starts, UNIT, std::array::from_fn(|k| totals[u + k]));
                    u += STRANDS;
                } else {
                    units::<V, S, 1>(&[*row], [u * UNIT], end(u) - u * UNIT, [totals[u]]);
                    u += 1;
                }
            }
        }
    });
}

/// The total of a unit, in eight independent chains over consecutive parts (their order decides the position among equal
/// elements), which overlap in time.
unsafe fn total<V: Value, S: Scan<V>>(row: &Row<'_, V>, start: usize, end: usize) -> S::State {
    let mut buffer = [V::ZERO; UNIT];
    let values = &mut buffer[..end - start];
    // SAFETY: the unit from `start` to `end` lies inside the row.
    unsafe { row.load(start as isize * row.steps[0], row.steps[0], values) };
    let part = values.len() / 8;
    let mut strands = [S::START; 8];
    for k in 0..part {
        for (s, strand) in strands.iter_mut().enumerate() {
            *strand = S::next(*strand, values[s * part + k], start + s * part + k);
        }
    }
    let mut total = strands.into_iter().fold(S::START, S::join);
    for (k, &value) in values.iter().enumerate().skip(8 * part) {
        total = S::next(total, value, start + k);
    }
    total
}

/// Scans `length` elements of each of `N` rows, or of one at `N` places, each from its own state.
#[inline(never)]
unsafe fn units<V: Value, S: Scan<V>, const N: usize>(
    rows: &[Row<'_, V>; N],
    starts: [usize; N],
    length: usize,
    mut states: [S::State; N],
) {
    let mut values = [[V::ZERO; BLOCK]; N];
    let mut extreme_indices = [[0i64; BLOCK]; N];
    let places = rows[0].indices.is_some();
    for first in (0..length).step_by(BLOCK) {
        let n = Ord::min(BLOCK, length - first);
        let at = |u: usize, step: isize| (starts[u] + first) as isize * step;
        // SAFETY: the `length` elements from each start on lie inside their row.
        unsafe {
            for (u, values) in values.iter_mut().enumerate() {
                rows[u].load(at(u, rows[u].steps[0]), rows[u].steps[0], &mut values[..n]);
            }
            for k in 0..n {
                for u in 0..N {
                    states[u] = S::next(states[u], values[u][k], starts[u] + first + k);
                    values[u][k] = S::value(states[u]);
                    if places {
                        extreme_indices[u][k] = S::position(states[u]);
                    }
                }
            }
            for (u, values) in values.iter().enumerate() {
                rows[u].store(&values[..n], at(u, rows[u].steps[1]), rows[u].steps[1]);
            }
            for (u, block) in extreme_indices.iter().enumerate() {
                let Some(indices) = rows[u].indices else { break };
                for (k, &index) in block[..n].iter().enumerate() {
                    *indices.at(at(u, rows[u].steps[2]) + k as isize * rows[u].steps[2]) = index;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::abi::HostFn;
    use crate::kernel::host::walk::sample;
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, flat, values};

    /// A scan as a simple loop: `fold(state, value, position) -> state`.
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
            for (shape, d) in [
                (&[9][..], 0),
                (&[9000], 0),
                (&[3, 4, 5], 1),
                (&[3000, 3], 0),
                (&[70, 6], 0),
                (&[7, 150], 1),
                (&[5, 0], 1),
            ] {
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
