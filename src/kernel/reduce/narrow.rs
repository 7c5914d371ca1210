//! Reductions of integers that are shorter than registers, in their own width, over contiguous memory.
//!
//! Knows nothing of shapes, layouts or threads.

use super::kernels::Wide;
use crate::base::dtype::DType;
use crate::kernel::host::simd::{self, levels};
use crate::kernel::program::ReduceKind;

/// Bound: elements of a call of `fold`, and rows of a call of `join_rows`; sums of so many are no longer than 32 bits.
pub(super) const MOST: usize = 1 << 15;

/// The arithmetic of one kind over elements of one dtype.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    /// Reduces `n` elements to one.
    pub fold: unsafe fn(*const u8, usize) -> Wide,
    /// Combines rows of `c` elements with accumulators of 64 bits: (accumulators, source, row stride in bytes, rows, c).
    pub join_rows: unsafe fn(*mut u8, *const u8, isize, usize, usize),
}

/// `narrow!(element, lane, identity, |x, y| combination)`. AVX-512 runs what is compiled for AVX2, which takes half of the code.
macro_rules! narrow {
    ($T:ty, $L:ty, $identity:expr, |$x:ident, $y:ident| $join:expr) => {{
        const LANES: usize = 64 / size_of::<$L>();
        const IDENTITY: $L = $identity;
        #[inline(always)]
        fn join($x: $L, $y: $L) -> $L {
            $join
        }
        #[inline(always)]
        fn join_wide($x: i64, $y: i64) -> i64 {
            $join
        }
        const FOLD: [unsafe fn(*const u8, usize) -> Wide; 3] = levels!(<S> fn(source: *const u8, n: usize) -> Wide {
            let source = source.cast::<$T>();
            let mut lanes = [IDENTITY; LANES];
            let mut done = 0;
            while done + LANES <= n {
                for l in 0..LANES {
                    lanes[l] = join(lanes[l], *source.add(done + l) as $L);
                }
                done += LANES;
            }
            let mut width = LANES / 2;
            while width > 0 {
                for l in 0..width {
                    lanes[l] = join(lanes[l], lanes[l + width]);
                }
                width /= 2;
            }
            let mut total = lanes[0] as i64;
            while done < n {
                total = join_wide(total, *source.add(done) as i64);
                done += 1;
            }
            total as Wide
        });
        const JOIN_ROWS: [unsafe fn(*mut u8, *const u8, isize, usize, usize); 3] =
            levels!(<S> fn(lanes: *mut u8, source: *const u8, step: isize, rows: usize, c: usize) {
                let lanes = lanes.cast::<i64>();
                let mut first = 0;
                while first + LANES <= c {
                    let mut sums = [IDENTITY; LANES];
                    for row in 0..rows {
                        let source = source.offset(row as isize * step).cast::<$T>().add(first);
                        for l in 0..LANES {
                            sums[l] = join(sums[l], *source.add(l) as $L);
                        }
                    }
                    for l in 0..LANES {
                        let lane = lanes.add(first + l);
                        *lane = join_wide(*lane, sums[l] as i64);
                    }
                    first += LANES;
                }
                for row in 0..rows {
                    let source = source.offset(row as isize * step).cast::<$T>();
                    for l in first..c {
                        *lanes.add(l) = join_wide(*lanes.add(l), *source.add(l) as i64);
                    }
                }
            });
        const NARROW: Narrow = Narrow { fold: FOLD[1], join_rows: JOIN_ROWS[1] };
        NARROW
    }};
}

/// The arithmetic of `kind` for `dtype`; none where registers of tiles are as good.
pub(super) fn narrow(kind: ReduceKind, dtype: DType) -> Option<Narrow> {
    macro_rules! each {
        ($U8:ty, $I8:ty, $I16:ty, $I32:ty, $L:ident => $identity:expr, |$x:ident, $y:ident| $join:expr) => {
            match dtype {
                DType::U8 => {
                    type $L = $U8;
                    narrow!(u8, $U8, $identity, |$x, $y| $join)
                }
                DType::I8 => {
                    type $L = $I8;
                    narrow!(i8, $I8, $identity, |$x, $y| $join)
                }
                DType::I16 => {
                    type $L = $I16;
                    narrow!(i16, $I16, $identity, |$x, $y| $join)
                }
                DType::I32 => {
                    type $L = $I32;
                    narrow!(i32, $I32, $identity, |$x, $y| $join)
                }
                _ => return None,
            }
        };
    }
    if simd::level() > 1 {
        return None;
    }
    Some(match kind {
        ReduceKind::Sum => each!(i32, i32, i32, i64, L => 0 as L, |x, y| x.wrapping_add(y)),
        ReduceKind::Min => each!(u8, i8, i16, i32, L => L::MAX, |x, y| if y < x { y } else { x }),
        ReduceKind::Max => each!(u8, i8, i16, i32, L => L::MIN, |x, y| if y > x { y } else { x }),
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
            let Some(narrow) = narrow(kind, dtype) else { continue };
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
}
