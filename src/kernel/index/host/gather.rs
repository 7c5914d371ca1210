//! Gather and the scatters along a dim.
//!
//! A gather has no conflicts. A scatter is divided over the other dims if there are enough elements in them; else each
//! thread owns a range of target indices and reads all sources in order. So sums never depend on the number of threads.

use super::{BLOCK, Bounded, begin};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, FaultKind, RawView, Threads};
use crate::kernel::copy::host::expanded;
use crate::kernel::guard;
use crate::kernel::host::element::{Element, by_dtype, by_size};
use crate::kernel::host::walk::{Ptr, StridedIter, dim, extent, flag, without, word};
use std::ops::Range;

/// `y[i][j] = x[index[i][j]][j]` for `dim` 0, and so on. Inputs `[x, index]` with as many dims (0-dimensional counts as
/// `[1]`), index no larger than `x` in the other dims; outputs `[y]` of the index's shape, dtype of `x`. Attrs `[dim]`, and
/// true where indices are labels. Negative indices do not count from the end; a bad one is an `Index` fault, or `Label`, and reads 0.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`].
pub unsafe fn gather(call: &Call<'_>) {
    let (x, index, y, d) = (&call.inputs[0], &call.inputs[1], &call.outputs[0], dim(call, 0));
    let (size, stride) = extent(x, d);
    let mut still = x.strides.clone();
    if let Some(stride) = still.get_mut(d) {
        *stride = 0;
    }
    // One operand is 0-dimensional, the other one-dimensional.
    still.resize(index.shape.len(), 0);
    let walk = StridedIter::<3>::new(&index.shape, [&index.strides, &y.strides, &still]);
    let kind = if flag(call, 1) { FaultKind::Label } else { FaultKind::Index { dim: d as u8 } };
    let bounded = Bounded { kind, ..along(call, index, size, d) };
    by_size!(x.dtype, T => {
        let (from, to) = (Ptr::<T>::of(x), Ptr::<T>::of(y));
        call.threads.split(walk.numel, 16 * 1024, |range| {
            let [step_index, step_to, step_from] = walk.inner();
            let mut buffer = [0i64; BLOCK];
            walk.pieces(range, |position, [g, t, f], n| {
                for start in (0..n).step_by(BLOCK) {
                    let values = &mut buffer[..BLOCK.min(n - start)];
                    let s = start as isize;
                    let (t, f) = (t + s * step_to, f + s * step_from);
                    // SAFETY: good indices name elements of `x`; each element of `y` is written once.
                    unsafe {
                        let good = bounded.read((g + s * step_index, step_index), values, |k| position + start + k);
                        if good && step_to == 1 && step_from == 0 && stride == 1 {
                            let to = std::slice::from_raw_parts_mut(to.at(t), values.len());
                            to.iter_mut().zip(values.iter()).for_each(|(to, &i)| *to = *from.at(f + i as isize));
                        } else {
                            for (i, &value) in values.iter().enumerate() {
                                let i = i as isize;
                                let at = from.at(f + i * step_from + value as isize * stride);
                                *to.at(t + i * step_to) = if value >= 0 { *at } else { 0 };
                            }
                        }
                    }
                }
            });
        });
    });
}

fn along<'a>(call: &'a Call<'_>, index: &'a RawView, size: usize, d: usize) -> Bounded<'a> {
    Bounded { index, size, kind: FaultKind::Index { dim: d as u8 }, wraps: false, faults: call.faults }
}

/// `y = x; y[index[i][j]][j] = src[i][j]` for `dim` 0, and so on; the last of duplicates stays. Inputs `[x, index, src]`, src of
/// the index's shape (or larger: only that part is read; stride 0 for a number) and the dtype of `x`; outputs `[y]` like `x`,
/// which may be `x`. Attrs `[dim]`. A bad index is an `Index` fault and writes nothing.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn scatter(call: &Call<'_>) {
    let y = &call.outputs[0];
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        begin(&call.inputs[0], y, call.threads);
        scatter_to(call, y, &call.inputs[1], &call.inputs[2], dim(call, 0), setting(y.dtype));
    }
}

/// As [`scatter`], adding; duplicates add in row-major order of the index.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn scatter_add(call: &Call<'_>) {
    let y = &call.outputs[0];
    // SAFETY: `call` is one of `HostFn`: its views are valid and nobody else touches them, which is all the callee asks
    // for.
    unsafe {
        begin(&call.inputs[0], y, call.threads);
        scatter_to(call, y, &call.inputs[1], &call.inputs[2], dim(call, 0), adding(y.dtype));
    }
}

/// As [`scatter`], reducing. Attrs `[dim, reduce, include_self]`: reduce is `"sum"`, `"prod"`, `"mean"`, `"amin"` or
/// `"amax"`; without `include_self` the old value of an element that is scattered to does not count. NaN propagates in
/// `amin` and `amax`; the mean of integers is rounded down.
///
/// # Safety
/// As [`crate::kernel::abi::HostFn`], except that `y` may be `x`.
pub unsafe fn scatter_reduce(call: &Call<'_>) {
    let (index, src, y, d) = (&call.inputs[1], &call.inputs[2], &call.outputs[0], dim(call, 0));
    let (reduce, include_self) = (word(call, 1), flag(call, 2));
    let mut neutral = by_dtype!(y.dtype, T => {
        let value = match reduce {
            "prod" => T::ONE,
            "amin" => T::HIGHEST,
            "amax" => T::LOWEST,
            _ => T::ZERO,
        };
        let mut bytes = [0u8; 8];
        // SAFETY: eight bytes hold any element.
        unsafe { bytes.as_mut_ptr().cast::<T>().write_unaligned(value) };
        // An integer, so that it is aligned for any element.
        u64::from_ne_bytes(bytes)
    });
    let combine: Combine = match reduce {
        "prod" => by_dtype!(y.dtype, T => combine::<T, Times>),
        "amin" => by_dtype!(y.dtype, T => combine::<T, Lower>),
        "amax" => by_dtype!(y.dtype, T => combine::<T, Upper>),
        _ => adding(y.dtype),
    };
    // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the neutral value lies on our stack
    // until the call ends.
    unsafe {
        begin(&call.inputs[0], y, call.threads);
        if !include_self {
            let value = RawView::contiguous((&raw mut neutral).cast(), y.dtype, &[]);
            scatter_to(call, y, index, &expanded(&value, &index.shape), d, setting(y.dtype));
        }
        scatter_to(call, y, index, src, d, combine);
        if reduce == "mean" {
            let mut counts = guard::filled(y.numel(), include_self as i32);
            let view = RawView::contiguous(counts.as_mut_ptr().cast(), DType::I32, &y.shape);
            let mut one = 1i32;
            let one = RawView::contiguous((&raw mut one).cast(), DType::I32, &[]);
            scatter_to(call, &view, index, &expanded(&one, &index.shape), d, adding(DType::I32));
            by_dtype!(y.dtype, T => divide_by_count::<T>(call, y, &view));
        }
    }
}

unsafe fn divide_by_count<T: Element>(call: &Call<'_>, y: &RawView, counts: &RawView) {
    let walk = StridedIter::<2>::new(&y.shape, [&y.strides, &counts.strides]);
    let (to, counts) = (Ptr::<T>::of(y), Ptr::<i32>::of(counts));
    call.threads.split(walk.numel, 16 * 1024, |range| {
        let [step, step_count] = walk.inner();
        walk.pieces(range, |_, [t, c], n| {
            for i in 0..n as isize {
                // SAFETY: each element belongs to one range.
                let (value, count) = unsafe { (&mut *to.at(t + i * step), *counts.at(c + i * step_count)) };
                if count > 1 && T::DTYPE.is_float() {
                    *value = T::from_f64(value.to_f64() / count as f64);
                } else if count > 1 {
                    *value = T::from_i64(value.to_i64().div_euclid(count as i64));
                }
            }
        });
    });
}

/// Combines `out[k * step + values[k] * dim]` with `src[k * step]` for the values that the thread owns: one loop for
/// each dtype and operation, so that the code around it is compiled once.
pub(crate) type Combine =
    unsafe fn(out: *mut u8, out_steps: (isize, isize), src: *const u8, step: isize, values: &[i64], owned: &Range<i64>);

trait Fold<T> {
    fn fold(old: T, value: T) -> T;
}
struct Last;
struct Plus;
struct Times;
struct Lower;
struct Upper;
impl<T> Fold<T> for Last {
    #[inline(always)]
    fn fold(_: T, value: T) -> T {
        value
    }
}
impl<T: Element> Fold<T> for Plus {
    #[inline(always)]
    fn fold(old: T, value: T) -> T {
        old.plus(value)
    }
}
impl<T: Element> Fold<T> for Times {
    #[inline(always)]
    fn fold(old: T, value: T) -> T {
        old.times(value)
    }
}
impl<T: Element> Fold<T> for Lower {
    #[inline(always)]
    fn fold(old: T, value: T) -> T {
        old.lower(value)
    }
}
impl<T: Element> Fold<T> for Upper {
    #[inline(always)]
    fn fold(old: T, value: T) -> T {
        old.upper(value)
    }
}

unsafe fn combine<T: Copy, F: Fold<T>>(
    out: *mut u8,
    (step_out, dim_out): (isize, isize),
    src: *const u8,
    step: isize,
    values: &[i64],
    owned: &Range<i64>,
) {
    let (out, src) = (out.cast::<T>(), src.cast::<T>());
    for (k, &value) in values.iter().enumerate() {
        if owned.contains(&value) {
            let k = k as isize;
            // SAFETY: good indices name elements of `out`, which this thread owns.
            unsafe {
                let to = out.offset(k * step_out + value as isize * dim_out);
                *to = F::fold(*to, *src.offset(k * step));
            }
        }
    }
}

fn setting(dtype: DType) -> Combine {
    by_size!(dtype, T => combine::<T, Last>)
}

pub(crate) fn adding(dtype: DType) -> Combine {
    by_dtype!(dtype, T => combine::<T, Plus>)
}

/// Combines every element of `src` into the element of `out` that the index gives along `d`; each element of `out` is
/// updated by one thread, in order along the dim.
///
/// # Safety
/// `out` and `src` have the dtype of `combine`; the views are as [`crate::kernel::abi::HostFn`] says.
pub(crate) unsafe fn scatter_to(
    call: &Call<'_>,
    out: &RawView,
    index: &RawView,
    src: &RawView,
    d: usize,
    combine: Combine,
) {
    if index.numel() == 0 {
        return;
    }
    let (size, _) = extent(out, d);
    let (length, _) = extent(index, d);
    let ndim = index.shape.len();
    let others = |view: &RawView| {
        let mut strides = without(&view.strides, d);
        strides.resize(ndim.saturating_sub(1), 0);
        strides
    };
    let walk = StridedIter::<3>::new(&without(&index.shape, d), [&others(out), &others(index), &others(src)]);
    let job = Job {
        bounded: along(call, index, size, d),
        length,
        after: index.shape.iter().skip(d + 1).product(),
        steps: [out, index, src].map(|view| extent(view, d).1),
        walk: &walk,
        out: Ptr::of(out),
        src: Ptr::of(src),
        bytes: out.dtype.size_bytes() as isize,
        combine,
    };
    let threads: &Threads = call.threads;
    let parts = threads.count();
    if parts == 1 || walk.numel >= 4 * parts {
        // SAFETY: different other indices are different elements of `out`.
        threads.split(walk.numel, (16 * 1024 / length).max(1), |range| unsafe { job.run(range, 0..size as i64) });
    } else if index.numel() < 16 * 1024 {
        // SAFETY: the views are as `HostFn` says (this function's contract), and this thread alone writes all of `out`.
        unsafe { job.run(0..walk.numel, 0..size as i64) };
    } else {
        threads.split(parts, 1, |range| {
            for part in range {
                let owned = (size * part / parts) as i64..(size * (part + 1) / parts) as i64;
                // SAFETY: each thread writes only to the indices that it owns.
                unsafe { job.run(0..walk.numel, owned) };
            }
        });
    }
}

struct Job<'a> {
    bounded: Bounded<'a>,
    /// Size of the index in the dim, and product of the sizes after it.
    length: usize,
    after: usize,
    /// Strides in the dim of the output, the index and the source; `walk` has those of the other dims.
    steps: [isize; 3],
    walk: &'a StridedIter<3>,
    out: Ptr<u8>,
    src: Ptr<u8>,
    bytes: isize,
    combine: Combine,
}

impl Job<'_> {
    unsafe fn run(&self, range: Range<usize>, owned: Range<i64>) {
        let [dim_out, dim_index, dim_src] = self.steps;
        let [step_out, step_index, step_src] = self.walk.inner();
        // Row-major position in the index of place `l` of the dim and place `other` of the others.
        let position =
            |other: usize, l: usize| (other / self.after * self.length + l) * self.after + other % self.after;
        let mut buffer = [0i64; BLOCK];
        let mut blocks = 0;
        let mut block = |first: usize, l: usize, [o, g, s]: [isize; 3], n: usize, along_dim: bool| {
            blocks += 1;
            guard::check_every(blocks, 64);
            let values = &mut buffer[..n];
            let steps = if along_dim { (0, dim_index, dim_src) } else { (step_out, step_index, step_src) };
            let place = |k| if along_dim { position(first, l + k) } else { position(first + k, l) };
            // SAFETY: the walk stays inside the index and the source; good indices lie in `out`.
            unsafe {
                self.bounded.read((g, steps.1), values, place);
                let (out, src) = (self.out.at(o * self.bytes), self.src.at(s * self.bytes));
                (self.combine)(out, (steps.0, dim_out), src, steps.2, values, &owned);
            }
        };
        self.walk.pieces(range, |first, [o, g, s], n| {
            if n == 1 || dim_index.unsigned_abs() < step_index.unsigned_abs() {
                for i in 0..n {
                    let k = i as isize;
                    for l in (0..self.length).step_by(BLOCK) {
                        let (m, k2) = (BLOCK.min(self.length - l), l as isize);
                        let at =
                            [o + k * step_out, g + k * step_index + k2 * dim_index, s + k * step_src + k2 * dim_src];
                        block(first + i, l, at, m, true);
                    }
                }
                return;
            }
            for l in 0..self.length {
                let k2 = l as isize;
                for i in (0..n).step_by(BLOCK) {
                    let (m, k) = (BLOCK.min(n - i), i as isize);
                    let at = [o + k * step_out, g + k * step_index + k2 * dim_index, s + k * step_src + k2 * dim_src];
                    block(first + i, l, at, m, false);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::kernel::abi::{Fault, HostFn};
    use crate::kernel::host::walk::sample::{Dice, Owned, call_on, coords, flat, values};

    #[test]
    fn gather_and_scatters_agree_with_loops() {
        let mut dice = Dice(31);
        let cases: [(&[usize], &[usize], usize); 6] = [
            (&[3, 4, 5], &[2, 4, 3], 0),
            (&[3, 4, 5], &[3, 6, 5], 1),
            (&[3, 4, 5], &[3, 3, 9], 2),
            (&[50], &[40000], 0),
            (&[60, 30], &[60, 700], 1),
            (&[40, 600], &[90, 600], 0),
        ];
        for threads in [&Threads::ONE, &Threads::new(3)] {
            for (shape, index_shape, d) in cases {
                for dtype in [DType::F64, DType::I32, DType::F32] {
                    let (xs, n) = (values(shape.iter().product(), &mut dice), index_shape.iter().product());
                    let ids: Vec<f64> = (0..n).map(|_| dice.below(shape[d]) as f64).collect();
                    let x = Owned::strided_from(dtype, shape, &xs, &mut dice);
                    let index = Owned::strided_from(DType::I64, index_shape, &ids, &mut dice);
                    let place = |i: usize| {
                        let mut c = coords(i, index_shape);
                        c[d] = ids[i] as usize;
                        flat(&c, shape)
                    };
                    let y = Owned::strided(dtype, index_shape, &mut dice);
                    let attrs =
                        |reduce: &'static str, own| [Attr::Int(d as i64), Attr::Str(reduce.into()), Attr::Bool(own)];
                    assert_eq!(call_on(threads, gather, &[&x, &index], &[&y], &attrs("", false)), None);
                    assert!(y.get() == (0..n).map(|i| xs[place(i)]).collect::<Vec<_>>(), "gather {shape:?}");
                    let vs: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7) % 5 == 0) as u8 as f64).collect();
                    y.set(&vs);
                    let z = Owned::strided(dtype, shape, &mut dice);
                    type Fold = fn(f64, f64) -> f64;
                    let folds: [(HostFn, &str, Fold, f64); 6] = [
                        (scatter, "", |_, v| v, 0.0),
                        (scatter_add, "", |a, v| a + v, 0.0),
                        (scatter_reduce, "sum", |a, v| a + v, 0.0),
                        (scatter_reduce, "amin", f64::min, f64::INFINITY),
                        (scatter_reduce, "amax", f64::max, f64::NEG_INFINITY),
                        (scatter_reduce, "mean", |a, v| a + v, 0.0),
                    ];
                    for (kernel, reduce, fold, neutral) in folds {
                        for own in [true, false] {
                            let mut expected = xs.clone();
                            let mut counts = vec![own as usize; xs.len()];
                            if !own && !reduce.is_empty() {
                                (0..n).for_each(|i| expected[place(i)] = neutral);
                            }
                            for (i, &v) in vs.iter().enumerate() {
                                expected[place(i)] = fold(expected[place(i)], v);
                                counts[place(i)] += 1;
                            }
                            if reduce == "mean" {
                                for (e, &count) in expected.iter_mut().zip(&counts).filter(|(_, c)| **c > 1) {
                                    *e /= count as f64;
                                    *e = if dtype == DType::I32 { e.floor() } else { *e };
                                    *e = if dtype == DType::F32 { *e as f32 as f64 } else { *e };
                                }
                            }
                            assert_eq!(call_on(threads, kernel, &[&x, &index, &y], &[&z], &attrs(reduce, own)), None);
                            assert!(z.get() == expected, "{reduce} {shape:?} {d} {own} {dtype}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn scatter_products_and_faults() {
        let x = Owned::from(DType::F32, &[2, 2], &[2., 3., 4., 5.]);
        let index = Owned::from(DType::I64, &[2, 2], &[0., 1., 0., 2.]);
        let src = Owned::from(DType::F32, &[1, 1], &[3.]).expanded(0, 2).expanded(1, 2);
        let y = Owned::dense(DType::F32, &[2, 2]);
        let attrs = [Attr::Int(0), Attr::Str("prod".into()), Attr::Bool(true)];
        let fault = Fault { kind: FaultKind::Index { dim: 0 }, position: 3, value: 2, bound: 2 };
        assert_eq!(call_on(&Threads::ONE, scatter_reduce, &[&x, &index, &src], &[&y], &attrs), Some(fault));
        assert_eq!(y.get(), [18., 3., 4., 15.]);
        let index = Owned::from(DType::I64, &[2, 2], &[0., 1., -1., 0.]);
        let fault = Fault { kind: FaultKind::Index { dim: 1 }, position: 2, value: -1, bound: 2 };
        assert_eq!(call_on(&Threads::ONE, gather, &[&x, &index], &[&y], &[Attr::Int(1)]), Some(fault));
        assert_eq!(y.get(), [2., 3., 0., 4.]);
    }

    #[test]
    fn scalars_gather_and_scatter() {
        let x = Owned::from(DType::F32, &[], &[7.]);
        let index = Owned::from(DType::I64, &[], &[0.]);
        let y = Owned::dense(DType::F32, &[]);
        assert_eq!(call_on(&Threads::ONE, gather, &[&x, &index], &[&y], &[Attr::Int(0)]), None);
        assert_eq!(y.get(), [7.]);
        assert_eq!(call_on(&Threads::ONE, scatter_add, &[&x, &index, &x], &[&y], &[Attr::Int(0)]), None);
        assert_eq!(y.get(), [14.]);
    }
}
