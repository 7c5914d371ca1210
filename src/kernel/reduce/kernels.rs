//! The arithmetic of reductions over contiguous tiles: each kind for each class, in forms that the compiler vectorizes.
//!
//! Knows nothing of shapes, layouts or threads.

// Each function pointer type occurs once, with a comment that explains its arguments.
#![allow(clippy::type_complexity)]
// `x != x` is what tells NaN from other numbers of any type.
#![allow(clippy::eq_op)]

use crate::kernel::host::simd::{at, levels, without_highest};
use crate::kernel::program::{Class, ReduceKind};

/// Bytes between what is combined and what the cache is asked for. Cost: without it a sum of what lies in the L2 cache takes a third
/// longer, since the processor itself looks ahead no further than a page.
const AHEAD: usize = 4096;

/// Asks for the bytes that are combined after the next ones.
#[inline(always)]
pub(super) fn foresee<const BYTES: usize>(from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..BYTES.div_ceil(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch accesses nothing, wherever it points; SSE is part of every x86-64 processor.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + line * 64).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Accumulated values are passed as 64 bits: f64 for floats, i64 for integers and bool.
pub(super) type Wide = u64;

/// The arithmetic of one kind over one class.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    /// Reduces `n` elements to one.
    pub fold: [unsafe fn(*const u8, usize) -> Wide; 3],
    /// Reduces each row of `c` elements: (source, rows, c, out, positions).
    pub rows: [unsafe fn(*const u8, usize, usize, *mut Wide, *mut i64); 3],
    /// Combines elementwise: (accumulators, source, n).
    pub join: [unsafe fn(*mut u8, *const u8, usize); 3],
    /// Combines rows of `c` elements elementwise: (accumulators, source, row stride in bytes, rows, c).
    pub join_rows: [unsafe fn(*mut u8, *const u8, isize, usize, usize); 3],
    /// Combines elementwise with positions: (accumulators, positions, source, rows, c, position of the first row).
    pub join_at: [unsafe fn(*mut u8, *mut i64, *const u8, usize, usize, i64); 3],
    /// Sets accumulators to the identity.
    pub clear: unsafe fn(*mut u8, usize),
    /// Adds accumulators to wide ones and resets them.
    pub flush: [unsafe fn(*mut u8, *mut Wide, usize); 3],
    /// First element equal to a wide value (NaN equals NaN).
    pub find: unsafe fn(*const u8, usize, Wide) -> usize,
    /// Combines two wide values.
    pub combine: fn(Wide, Wide) -> Wide,
    /// Whether the second is a new extreme, for `ArgMin` and `ArgMax`.
    pub beats: fn(Wide, Wide) -> bool,
    pub identity: Wide,
    pub float: bool,
}

/// `kernels!(element, wide, identity, |x, y| combination, combination of numbers that are not NaN, |old, new| whether new beats
/// old)`.
macro_rules! kernels {
    ($T:ident, $W:ident, $identity:expr, |$x:ident, $y:ident| $join:expr, |$old:ident, $new:ident| $beats:expr) => {
        kernels!($T, $W, $identity, |$x, $y| $join, $join, |$old, $new| $beats)
    };
    ($T:ident, $W:ident, $identity:expr, |$x:ident, $y:ident| $join:expr, $last:expr, |$old:ident, $new:ident| $beats:expr) => {{
        const IDENTITY: $T = $identity;
        const LANES: usize = 256 / size_of::<$T>();
        #[inline(always)]
        fn join($x: $T, $y: $T) -> $T {
            $join
        }
        #[inline(always)]
        fn join_last($x: $T, $y: $T) -> $T {
            $last
        }
        #[inline(always)]
        fn join_wide($x: $W, $y: $W) -> $W {
            $join
        }
        #[inline(always)]
        fn beats($old: $T, $new: $T) -> bool {
            $beats
        }
        #[inline(always)]
        fn bits(x: $W) -> Wide {
            Wide::from_ne_bytes(x.to_ne_bytes())
        }
        #[inline(always)]
        fn value(x: Wide) -> $W {
            <$W>::from_ne_bytes(x.to_ne_bytes())
        }
        unsafe fn find(source: *const u8, n: usize, what: Wide) -> usize {
            // SAFETY: whoever takes this function from the table gives `n` elements of the class that it is for.
            let elements = unsafe { std::slice::from_raw_parts(source.cast::<$T>(), n) };
            let what = value(what);
            let same = |x: $T| x as $W == what || (x != x && what != what);
            elements.iter().position(|&x| same(x)).unwrap_or(0)
        }
        unsafe fn clear(lanes: *mut u8, n: usize) {
            // SAFETY: whoever takes this function from the table gives `n` lanes of the class that it is for.
            unsafe { std::slice::from_raw_parts_mut(lanes.cast::<$T>(), n) }.fill(IDENTITY);
        }
        Kernels {
            fold: levels!(<S> fn(source: *const u8, n: usize) -> Wide {
                let source = source.cast::<$T>();
                let mut lanes = [IDENTITY; LANES];
                let mut done = 0;
                while done + LANES <= n {
                    foresee::<{ LANES * size_of::<$T>() }>(source.add(done).cast());
                    for l in 0..LANES {
                        lanes[l] = join(lanes[l], *source.add(done + l));
                    }
                    done += LANES;
                }
                let left = std::slice::from_raw_parts(source.add(done), n - done);
                for (lane, &x) in lanes.iter_mut().zip(left) {
                    *lane = join(*lane, x);
                }
                // NaN wins whatever is combined, so that the last steps need not look for it.
                let mut nan = false;
                for l in 0..LANES {
                    nan |= lanes[l] != lanes[l];
                }
                if nan {
                    return bits(lanes.into_iter().find(|x| x != x).unwrap_or(IDENTITY) as $W);
                }
                let mut width = LANES / 2;
                while width > 0 {
                    for l in 0..width {
                        lanes[l] = join_last(lanes[l], lanes[l + width]);
                    }
                    width /= 2;
                }
                bits(lanes[0] as $W)
            }),
            rows: without_highest(levels!(<S> fn(source: *const u8, rows: usize, c: usize, out: *mut Wide, positions: *mut i64) {
                for i in 0..rows {
                    let row = source.cast::<$T>().add(i * c);
                    if !positions.is_null() {
                        let (mut extreme, mut index) = (*row, 0);
                        for l in 1..c {
                            if beats(extreme, *row.add(l)) {
                                (extreme, index) = (*row.add(l), l);
                            }
                        }
                        *positions.add(i) = index as i64;
                        continue;
                    }
                    if c < 8 {
                        // Too short for lanes; the rows overlap in time.
                        let mut total = IDENTITY;
                        for l in 0..c {
                            total = join(total, *row.add(l));
                        }
                        *out.add(i) = bits(total as $W);
                        continue;
                    }
                    let mut lanes = [IDENTITY; 8];
                    for k in 0..c / 8 {
                        for l in 0..8 {
                            lanes[l] = join(lanes[l], *row.add(k * 8 + l));
                        }
                    }
                    for l in 0..c % 8 {
                        lanes[l] = join(lanes[l], *row.add(c / 8 * 8 + l));
                    }
                    let mut width = 4;
                    while width > 0 {
                        for l in 0..width {
                            lanes[l] = join(lanes[l], lanes[l + width]);
                        }
                        width /= 2;
                    }
                    *out.add(i) = bits(lanes[0] as $W);
                }
            })),
            join: without_highest(levels!(<S> fn(lanes: *mut u8, source: *const u8, n: usize) {
                let (lanes, source) = (lanes.cast::<$T>(), source.cast::<$T>());
                for i in 0..n {
                    let i = at::<S>(i);
                    *lanes.add(i) = join(*lanes.add(i), *source.add(i));
                }
            })),
            join_rows: without_highest(levels!(<S> fn(lanes: *mut u8, source: *const u8, step: isize, rows: usize, c: usize) {
                let lanes = lanes.cast::<$T>();
                // Some columns at a time, whose accumulators stay in registers from row to row.
                let mut first = 0;
                while first + LANES <= c {
                    let mut sums = [IDENTITY; LANES];
                    for row in 0..rows {
                        let source = source.offset(row as isize * step).cast::<$T>().add(first);
                        for l in 0..LANES {
                            sums[l] = join(sums[l], *source.add(l));
                        }
                    }
                    for l in 0..LANES {
                        let lane = lanes.add(first + l);
                        *lane = join(*lane, sums[l]);
                    }
                    first += LANES;
                }
                for row in 0..rows {
                    let source = source.offset(row as isize * step).cast::<$T>();
                    for l in first..c {
                        *lanes.add(l) = join(*lanes.add(l), *source.add(l));
                    }
                }
            })),
            join_at: without_highest(levels!(<S> fn(
                lanes: *mut u8, positions: *mut i64, source: *const u8, rows: usize, c: usize, first: i64
            ) {
                let (lanes, source) = (lanes.cast::<$T>(), source.cast::<$T>());
                for j in 0..rows {
                    for l in 0..c {
                        let l = at::<S>(l);
                        let new = *source.add(j * c + l);
                        let better = beats(*lanes.add(l), new);
                        *lanes.add(l) = if better { new } else { *lanes.add(l) };
                        *positions.add(l) = if better { first + j as i64 } else { *positions.add(l) };
                    }
                }
            })),
            clear,
            flush: without_highest(levels!(<S> fn(lanes: *mut u8, wide: *mut Wide, n: usize) {
                let lanes = std::slice::from_raw_parts_mut(lanes.cast::<$T>(), n);
                let wide = std::slice::from_raw_parts_mut(wide, n);
                for (wide, lane) in wide.iter_mut().zip(&*lanes) {
                    *wide = bits(join_wide(value(*wide), *lane as $W));
                }
                lanes.fill(IDENTITY);
            })),
            find,
            combine: |x, y| bits(join_wide(value(x), value(y))),
            beats: |old, new| beats(value(old) as $T, value(new) as $T),
            identity: bits_of!($W, IDENTITY),
            float: bits_of!(float $W),
        }
    }};
}

macro_rules! bits_of {
    (f64, $x:expr) => {
        ($x as f64).to_bits()
    };
    (i64, $x:expr) => {
        $x as i64 as u64
    };
    (float f64) => {
        true
    };
    (float i64) => {
        false
    };
}

/// Minimum and maximum with NaN propagation, argmin and argmax.
macro_rules! extremes {
    ($T:ident, $W:ident, $kind:expr) => {
        match $kind {
            ReduceKind::Min | ReduceKind::ArgMin => {
                const K: Kernels = kernels!(
                    $T,
                    $W,
                    $T::INFINITY,
                    |x, y| if y < x || y.is_nan() { y } else { x },
                    if y < x { y } else { x },
                    |old, new| new < old || (new.is_nan() && !old.is_nan())
                );
                K
            }
            _ => {
                const K: Kernels = kernels!(
                    $T,
                    $W,
                    $T::NEG_INFINITY,
                    |x, y| if y > x || y.is_nan() { y } else { x },
                    if y > x { y } else { x },
                    |old, new| new > old || (new.is_nan() && !old.is_nan())
                );
                K
            }
        }
    };
}

pub(super) fn kernels(kind: ReduceKind, class: Class) -> Kernels {
    use ReduceKind::*;
    match (class, kind) {
        (Class::F32, Sum) => {
            const K: Kernels = kernels!(f32, f64, 0.0, |x, y| x + y, |_old, _new| false);
            K
        }
        (Class::F32, Prod) => {
            const K: Kernels = kernels!(f32, f64, 1.0, |x, y| x * y, |_old, _new| false);
            K
        }
        (Class::F32, _) => extremes!(f32, f64, kind),
        (Class::F64, Sum) => {
            const K: Kernels = kernels!(f64, f64, 0.0, |x, y| x + y, |_old, _new| false);
            K
        }
        (Class::F64, Prod) => {
            const K: Kernels = kernels!(f64, f64, 1.0, |x, y| x * y, |_old, _new| false);
            K
        }
        (Class::F64, _) => extremes!(f64, f64, kind),
        (Class::I64, Sum) => {
            const K: Kernels = kernels!(i64, i64, 0, |x, y| x.wrapping_add(y), |_old, _new| false);
            K
        }
        (Class::I64, Prod) => {
            const K: Kernels = kernels!(i64, i64, 1, |x, y| x.wrapping_mul(y), |_old, _new| false);
            K
        }
        (Class::I64, Min | ArgMin | All) => {
            const K: Kernels = kernels!(i64, i64, i64::MAX, |x, y| if y < x { y } else { x }, |old, new| new < old);
            K
        }
        (Class::I64, _) => {
            const K: Kernels = kernels!(i64, i64, i64::MIN, |x, y| if y > x { y } else { x }, |old, new| new > old);
            K
        }
        (Class::Bool, Min | ArgMin | All | Prod) => {
            const K: Kernels = kernels!(u8, i64, 1, |x, y| x & y, |old, new| new < old);
            K
        }
        (Class::Bool, _) => {
            const K: Kernels = kernels!(u8, i64, 0, |x, y| x | y, |old, new| new > old);
            K
        }
    }
}
