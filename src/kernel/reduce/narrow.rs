//! Reductions of elements that are shorter than registers, in their own width, over contiguous memory: integers, 16-bit floats, and
//! whether integers are 0.
//!
//! Knows nothing of shapes, layouts or threads.

use super::kernels::{Wide, foresee};
use crate::base::dtype::DType;
use crate::kernel::fused::host::bf16_to_f32;
use crate::kernel::host::simd::{self, Simd, levels};
use crate::kernel::program::ReduceKind;

/// Bound: elements of a call of `fold`, and rows of a call of `join_rows`; sums of so many are no longer than 32 bits.
pub(super) const MOST: usize = 1 << 15;

/// The arithmetic of one kind over elements of one dtype.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    /// Reduces `n` elements to one.
    pub fold: unsafe fn(*const u8, usize) -> Wide,
    /// Combines rows of `c` elements with accumulators of the class: (accumulators, source, row stride in bytes, rows, c).
    pub join_rows: unsafe fn(*mut u8, *const u8, isize, usize, usize),
}

/// Four vectors of AVX2. Not: fewer than 32, whose loop is unrolled before it becomes vectors.
const fn lanes_of(size: usize) -> usize {
    if size > 4 { 32 } else { 128 / size }
}

/// `narrow!(<S> element, lane, lanes, accumulator, identity, |x| elements as lanes, |x, y| combination, |x| an accumulator,
/// |x| its wide value)`. AVX-512 runs what is compiled for AVX2, which takes half of the code.
macro_rules! narrow {
    (<$S:ident> $T:ty, $L:ty, $LANES:expr, $A:ty, $identity:expr, |$from:ident, $to:ident| $load:expr, |$x:ident, $y:ident| $join:expr,
     |$lane:ident| $accumulator:expr, |$total:ident| $wide:expr) => {{
        const LANES: usize = $LANES;
        const IDENTITY: $L = $identity;
        #[inline(always)]
        fn join($x: $L, $y: $L) -> $L {
            $join
        }
        #[inline(always)]
        fn join_wide($x: $A, $y: $A) -> $A {
            $join
        }
        /// Adds the elements from `$from` on to lanes.
        #[inline(always)]
        unsafe fn add<$S: Simd>(lanes: &mut [$L; LANES], $from: *const $T) {
            let mut $to = [IDENTITY; LANES];
            // SAFETY: `LANES` elements are there.
            unsafe { $load };
            for l in 0..LANES {
                lanes[l] = join(lanes[l], $to[l]);
            }
        }
        /// The same of fewer elements.
        #[inline(always)]
        unsafe fn add_some<$S: Simd>(lanes: &mut [$L; LANES], source: *const $T, n: usize) {
            let mut whole = [<$T>::default(); LANES];
            let mut all = *lanes;
            // SAFETY: `n` elements are there, fewer than lanes.
            unsafe {
                std::ptr::copy_nonoverlapping(source, whole.as_mut_ptr(), n);
                add::<$S>(&mut all, whole.as_ptr());
            }
            lanes[..n].copy_from_slice(&all[..n]);
        }
        const FOLD: [unsafe fn(*const u8, usize) -> Wide; 3] = levels!(<S> fn(source: *const u8, n: usize) -> Wide {
            let source = source.cast::<$T>();
            let mut lanes = [IDENTITY; LANES];
            let mut done = 0;
            while done + LANES <= n {
                foresee::<{ LANES * size_of::<$T>() }>(source.add(done).cast());
                add::<S>(&mut lanes, source.add(done));
                done += LANES;
            }
            if done < n {
                add_some::<S>(&mut lanes, source.add(done), n - done);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for l in 0..width {
                    lanes[l] = join(lanes[l], lanes[l + width]);
                }
                width /= 2;
            }
            let $lane = lanes[0];
            let $total: $A = $accumulator;
            $wide
        });
        const JOIN_ROWS: [unsafe fn(*mut u8, *const u8, isize, usize, usize); 3] =
            levels!(<S> fn(to: *mut u8, source: *const u8, step: isize, rows: usize, c: usize) {
                let to = to.cast::<$A>();
                let mut first = 0;
                while first < c {
                    let width = if c - first < LANES { c - first } else { LANES };
                    let mut lanes = [IDENTITY; LANES];
                    for row in 0..rows {
                        let source = source.offset(row as isize * step).cast::<$T>().add(first);
                        if width == LANES {
                            add::<S>(&mut lanes, source);
                        } else {
                            add_some::<S>(&mut lanes, source, width);
                        }
                    }
                    for l in 0..width {
                        let $lane = lanes[l];
                        *to.add(first + l) = join_wide(*to.add(first + l), $accumulator);
                    }
                    first += LANES;
                }
            });
        const NARROW: Narrow = Narrow { fold: FOLD[1], join_rows: JOIN_ROWS[1] };
        NARROW
    }};
    // Integers, whose wide values are of 64 bits.
    ($T:ty, $L:ty, $identity:expr, |$x:ident, $y:ident| $join:expr) => {
        narrow!(<S> $T, $L, lanes_of(size_of::<$L>()), i64, $identity, |from, to| for l in 0..LANES {
            to[l] = *from.add(l) as $L;
        }, |$x, $y| $join, |lane| lane as i64, |total| total as Wide)
    };
    // Whether integers are 0; truth values are accumulated in bytes.
    (truth $T:ty, $identity:expr, |$element:ident| $load:expr, |$x:ident, $y:ident| $join:expr) => {
        narrow!(<S> $T, $T, lanes_of(size_of::<$T>()), u8, $identity, |from, to| for l in 0..LANES {
            let $element = *from.add(l);
            to[l] = $load;
        }, |$x, $y| $join, |lane| (lane != 0) as u8, |total| total as Wide)
    };
    (bf16 $identity:expr, |$x:ident, $y:ident| $join:expr) => {
        narrow!(<S> u16, f32, 64, f32, $identity, |from, to| for l in 0..LANES {
            to[l] = bf16_to_f32(*from.add(l));
        }, |$x, $y| $join, |lane| lane, |total| (total as f64).to_bits())
    };
    (f16 $identity:expr, |$x:ident, $y:ident| $join:expr) => {
        narrow!(<S> u16, f32, 64, f32, $identity, |from, to| S::widen_halves(from, to.as_mut_ptr(), LANES),
            |$x, $y| $join, |lane| lane, |total| (total as f64).to_bits())
    };
}

/// The arithmetic of `kind` for `dtype`; none where registers of tiles are as good. `converts`: elements are truth values, or sums of
/// truth values.
pub(super) fn narrow(kind: ReduceKind, dtype: DType, converts: bool) -> Option<Narrow> {
    use DType::{BF16, Bool, F16, I8, I16, I32, I64, U8};
    use ReduceKind::{All, Any, Max, Min, Sum};
    if simd::level() > 1 {
        return None;
    }
    Some(match (kind, dtype) {
        (Any, U8 | I8) => narrow!(truth u8, 0, |x| x, |x, y| x | y),
        (Any, I16) => narrow!(truth u16, 0, |x| x, |x, y| x | y),
        (Any, I32) => narrow!(truth u32, 0, |x| x, |x, y| x | y),
        (Any, I64) => narrow!(truth u64, 0, |x| x, |x, y| x | y),
        (All, U8 | I8) => narrow!(truth u8, 1, |x| (x != 0) as u8, |x, y| x & y),
        (All, I16) => narrow!(truth u16, 1, |x| (x != 0) as u16, |x, y| x & y),
        (All, I32) => narrow!(truth u32, 1, |x| (x != 0) as u32, |x, y| x & y),
        (All, I64) => narrow!(truth u64, 1, |x| (x != 0) as u64, |x, y| x & y),
        (Sum, Bool) if converts => narrow!(u8, i32, 0, |x, y| x.wrapping_add(y)),
        _ if converts => return None,
        (Sum, U8) => narrow!(u8, i32, 0, |x, y| x.wrapping_add(y)),
        (Sum, I8) => narrow!(i8, i32, 0, |x, y| x.wrapping_add(y)),
        (Sum, I16) => narrow!(i16, i32, 0, |x, y| x.wrapping_add(y)),
        (Sum, I32) => narrow!(i32, i64, 0, |x, y| x.wrapping_add(y)),
        (Min, U8) => narrow!(u8, u8, u8::MAX, |x, y| if y < x { y } else { x }),
        (Min, I8) => narrow!(i8, i8, i8::MAX, |x, y| if y < x { y } else { x }),
        (Min, I16) => narrow!(i16, i16, i16::MAX, |x, y| if y < x { y } else { x }),
        (Min, I32) => narrow!(i32, i32, i32::MAX, |x, y| if y < x { y } else { x }),
        (Max, U8) => narrow!(u8, u8, u8::MIN, |x, y| if y > x { y } else { x }),
        (Max, I8) => narrow!(i8, i8, i8::MIN, |x, y| if y > x { y } else { x }),
        (Max, I16) => narrow!(i16, i16, i16::MIN, |x, y| if y > x { y } else { x }),
        (Max, I32) => narrow!(i32, i32, i32::MIN, |x, y| if y > x { y } else { x }),
        (Sum, BF16) => narrow!(bf16 0.0, |x, y| x + y),
        (Sum, F16) => narrow!(f16 0.0, |x, y| x + y),
        (Min, BF16) => narrow!(bf16 f32::INFINITY, |x, y| if y < x || y.is_nan() { y } else { x }),
        (Min, F16) => narrow!(f16 f32::INFINITY, |x, y| if y < x || y.is_nan() { y } else { x }),
        (Max, BF16) => narrow!(bf16 f32::NEG_INFINITY, |x, y| if y > x || y.is_nan() { y } else { x }),
        (Max, F16) => narrow!(f16 f32::NEG_INFINITY, |x, y| if y > x || y.is_nan() { y } else { x }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy>(dtype: DType, wrap: fn(i64) -> T, wide: fn(T) -> i64) {
        type Whole = fn(&[i64]) -> i64;
        let kinds: [(ReduceKind, Whole, i64); 3] = [
            (ReduceKind::Sum, |x| x.iter().sum(), 0),
            (ReduceKind::Min, |x| *x.iter().min().unwrap(), i64::MAX),
            (ReduceKind::Max, |x| *x.iter().max().unwrap(), i64::MIN),
        ];
        for (kind, whole, identity) in kinds {
            let Some(narrow) = narrow(kind, dtype, false) else { continue };
            for n in [1, 31, 129, 1000, MOST] {
                for x in [|i: usize| i as i64 * 7_919, |_| -1, |_| i64::MAX] {
                    let x: Vec<T> = (0..n).map(|i| wrap(x(i))).collect();
                    let expected: Vec<i64> = x.iter().map(|&x| wide(x)).collect();
                    // SAFETY: the vector has `n` elements.
                    let got = unsafe { (narrow.fold)(x.as_ptr().cast(), n) };
                    assert_eq!(got as i64, whole(&expected), "{kind:?} {dtype} {n}");
                }
            }
            let (rows, c) = (16, 333);
            let x: Vec<T> = (0..rows * c).map(|i| wrap(i as i64 * 7_919 % 1_000_003)).collect();
            let mut lanes = vec![identity; c];
            // SAFETY: the vectors have as many elements.
            unsafe {
                let step = (c * size_of::<T>()) as isize;
                (narrow.join_rows)(lanes.as_mut_ptr().cast(), x.as_ptr().cast(), step, rows, c);
            }
            for (l, &lane) in lanes.iter().enumerate() {
                let column: Vec<i64> = (0..rows).map(|row| wide(x[row * c + l])).collect();
                assert_eq!(lane, whole(&column), "{kind:?} {dtype} column {l}");
            }
        }
    }

    #[test]
    fn every_kind_and_dtype() {
        check::<u8>(DType::U8, |x| x as u8, |x| x as i64);
        check::<i8>(DType::I8, |x| x as i8, |x| x as i64);
        check::<i16>(DType::I16, |x| x as i16, |x| x as i64);
        check::<i32>(DType::I32, |x| x as i32, |x| x as i64);
    }

    /// Truth values of integers, of bytes and of columns: one element differs from the others, at each place that is handled apart.
    #[test]
    fn truth_of_integers() {
        fn check<T: Copy + Default>(dtype: DType, one: T) {
            let [any, all] = [ReduceKind::Any, ReduceKind::All].map(|kind| narrow(kind, dtype, true));
            for n in [1usize, 15, 64, 130, 1001] {
                for at in [0, n / 2, n - 1] {
                    let (mut few, mut most) = (vec![T::default(); n], vec![one; n]);
                    (few[at], most[at]) = (one, T::default());
                    for (narrow, x, expected) in [(any, &few, 1), (all, &most, 0)] {
                        let Some(narrow) = narrow else { continue };
                        let neutral = 1 - expected as u8;
                        let mut lanes = vec![neutral; n];
                        // SAFETY: the vectors have `n` elements.
                        unsafe {
                            assert_eq!((narrow.fold)(x.as_ptr().cast(), n), expected, "{dtype} {n} {at}");
                            (narrow.join_rows)(lanes.as_mut_ptr(), x.as_ptr().cast(), 0, 3, n);
                        }
                        assert!(
                            (0..n).all(|i| lanes[i] == if i == at { expected as u8 } else { neutral }),
                            "{dtype} {n} {at}"
                        );
                    }
                }
            }
        }
        check::<u8>(DType::U8, 128);
        check::<i8>(DType::I8, -1);
        check::<i16>(DType::I16, 256);
        check::<i32>(DType::I32, 1 << 16);
        check::<i64>(DType::I64, i64::MIN);
    }

    /// Sums and extremes of 16-bit floats, which are small integers here: exact in any order; NaN wins.
    #[test]
    fn short_floats() {
        type Encode = fn(f32) -> u16;
        let encode: [(DType, Encode); 2] =
            [(DType::BF16, |x| half::bf16::from_f32(x).to_bits()), (DType::F16, |x| half::f16::from_f32(x).to_bits())];
        for (dtype, encode) in encode {
            for n in [1usize, 7, 64, 65, 129, 1000] {
                let mut x: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
                for nan in [false, true] {
                    if nan {
                        x[n - 1] = f32::NAN;
                    }
                    let bits: Vec<u16> = x.iter().map(|&x| encode(x)).collect();
                    let sum: f32 = x.iter().sum();
                    let least = x.iter().copied().reduce(f32::min).unwrap();
                    let most = x.iter().copied().reduce(f32::max).unwrap();
                    for (kind, expected) in [(ReduceKind::Sum, sum), (ReduceKind::Min, least), (ReduceKind::Max, most)]
                    {
                        let Some(narrow) = narrow(kind, dtype, false) else { continue };
                        // SAFETY: the vector has `n` elements.
                        let got = f64::from_bits(unsafe { (narrow.fold)(bits.as_ptr().cast(), n) });
                        assert!(if nan { got.is_nan() } else { got == expected as f64 }, "{kind:?} {dtype} {n}: {got}");
                        let mut lanes = vec![if kind == ReduceKind::Sum { 0.0 } else { x[0] }; n];
                        // SAFETY: the vectors have `n` elements.
                        unsafe { (narrow.join_rows)(lanes.as_mut_ptr().cast(), bits.as_ptr().cast(), 0, 1, n) };
                        let last = lanes[n - 1];
                        assert_eq!(last.is_nan(), nan, "{kind:?} {dtype} {n}: {last}");
                        assert!(kind != ReduceKind::Sum || (0..n - 1).all(|i| lanes[i] == x[i]), "{dtype} {n}");
                    }
                }
            }
        }
    }
}
