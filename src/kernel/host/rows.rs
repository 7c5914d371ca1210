//! Vectorized loops over rows of floats: sums of a function of elements, and maps. Norms, softmax, losses and attention are
//! built on them.
//!
//! The functions are parameters. The order of additions depends only on the length and the machine's vector level.

use super::real::Real;
use super::simd::Simd;
use super::vector::Vector;
use crate::kernel::copy::host::NON_TEMPORAL_BYTES;

/// How the results of a map are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Through the cache: they are needed again soon.
    Cache,
    /// Non-temporal stores, if the row starts at a cache line. `copy::non_temporal_fence` must follow.
    Memory,
}

impl Through {
    /// The choice for a result of this many bytes.
    pub fn for_bytes(bytes: usize) -> Through {
        if bytes >= NON_TEMPORAL_BYTES { Through::Memory } else { Through::Cache }
    }
}

/// The last elements of a row, fewer than a vector, padded with zeros.
///
/// # Safety
/// The machine has the vector's instructions, and `from` names `n` elements.
#[inline(always)]
pub unsafe fn part<T: Real, V: Vector<Elem = T>>(from: *const T, n: usize) -> V {
    let mut lanes = [T::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n);
        V::load(lanes.as_ptr())
    }
}

/// As `part`, for stores.
///
/// # Safety
/// As `part`.
#[inline(always)]
pub unsafe fn store_part<T: Real, V: Vector<Elem = T>>(v: V, to: *mut T, n: usize) {
    let mut lanes = [T::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes; `to` has room for the `n` lanes that are asked for.
    unsafe {
        v.store(lanes.as_mut_ptr());
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n);
    }
}

/// Sum of the first `n` lanes.
#[inline(always)]
unsafe fn sum_part<T: Real, V: Vector<Elem = T>>(v: V, n: usize) -> T {
    let mut lanes = [T::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { v.store(lanes.as_mut_ptr()) };
    let mut sum = T::ZERO;
    for &lane in &lanes[..n] {
        sum += lane;
    }
    sum
}

/// Sum of `f(x)`.
///
/// # Safety
/// Here and below: the machine has the vector's instructions.
#[inline(always)]
pub unsafe fn sum<T: Real, V: Vector<Elem = T>>(x: &[T], f: impl Fn(V) -> V) -> T {
    // SAFETY: the machine has the instructions of `V`, which is the contract of both functions.
    unsafe { sum2::<T, V>(x, x, |x, _| f(x)) }
}

/// Sum of `f(x, y)` over the length of the shorter.
///
/// # Safety
/// As `sum`.
#[inline(always)]
pub unsafe fn sum2<T: Real, V: Vector<Elem = T>>(x: &[T], y: &[T], f: impl Fn(V, V) -> V) -> T {
    let n = Ord::min(x.len(), y.len());
    let (x, y) = (x.as_ptr(), y.as_ptr());
    // SAFETY: the machine has the instructions of `V` (this function's contract); positions are below `n`, the length
    // of the shorter.
    unsafe {
        let at = |i: usize| f(V::load(x.add(i)), V::load(y.add(i)));
        let zero = V::splat(T::ZERO);
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        let mut i = 0;
        while i + 4 * V::N <= n {
            a = a.add(at(i));
            b = b.add(at(i + V::N));
            c = c.add(at(i + 2 * V::N));
            d = d.add(at(i + 3 * V::N));
            i += 4 * V::N;
        }
        while i + V::N <= n {
            a = a.add(at(i));
            i += V::N;
        }
        let sum = a.add(b).add(c.add(d)).sum();
        if i == n { sum } else { sum + sum_part(f(part(x.add(i), n - i), part(y.add(i), n - i)), n - i) }
    }
}

/// Sum of `e^(x - shift)`; the exponentials are stored to `out` if it is not null; it may be `x`. Cache lines `ahead`
/// elements later are prefetched. Not: `sum` with the exponential in a closure, which is too long to be inlined, and
/// then compiled without vector instructions.
#[inline(always)]
pub unsafe fn exp_sum<T: Real, S: Simd>(x: *const T, shift: T, out: *mut T, n: usize, ahead: usize) -> T {
    // SAFETY: the machine has the level `S`, and `x` and `out` have `n` elements (this function's contract).
    unsafe {
        let (width, shift) = (T::In::<S>::N, T::In::<S>::splat(shift));
        let mut sum = T::In::<S>::splat(T::ZERO);
        let mut i = 0;
        while i + width <= n {
            prefetch(x.wrapping_add(i + ahead));
            let power = T::exp_in::<S>(T::In::<S>::load(x.add(i)).sub(shift));
            if !out.is_null() {
                power.store(out.add(i));
            }
            sum = sum.add(power);
            i += width;
        }
        if i == n {
            return sum.sum();
        }
        let power = T::exp_in::<S>(part::<T, T::In<S>>(x.add(i), n - i).sub(shift));
        if !out.is_null() {
            store_part(power, out.add(i), n - i);
        }
        sum.sum() + sum_part(power, n - i)
    }
}

/// `out = e^(x - shift) * scale`.
///
/// # Safety
/// As `exp_sum`.
#[inline(always)]
pub unsafe fn exp_map<T: Real, S: Simd>(x: *const T, shift: T, scale: T, out: *mut T, n: usize) {
    // SAFETY: the machine has the level `S`, and `x` and `out` have `n` elements (this function's contract).
    unsafe {
        let (width, shift, scale) = (T::In::<S>::N, T::In::<S>::splat(shift), T::In::<S>::splat(scale));
        let mut i = 0;
        while i + width <= n {
            T::exp_in::<S>(T::In::<S>::load(x.add(i)).sub(shift)).mul(scale).store(out.add(i));
            i += width;
        }
        if i < n {
            let last = T::exp_in::<S>(part::<T, T::In<S>>(x.add(i), n - i).sub(shift)).mul(scale);
            store_part(last, out.add(i), n - i);
        }
    }
}

/// `out = f(x, y, z)` for `n` elements. `out` may be `x`, `y` or `z`.
///
/// # Safety
/// As `sum`; all have `n` elements.
#[inline(always)]
pub unsafe fn map3<T: Real, V: Vector<Elem = T>>(
    [x, y, z]: [*const T; 3],
    out: *mut T,
    n: usize,
    through: Through,
    f: impl Fn(V, V, V) -> V,
) {
    // SAFETY: the machine has the instructions of `V`, and all have `n` elements (this function's contract); streamed
    // stores go to aligned places only.
    unsafe {
        let at = |i: usize| f(V::load(x.add(i)), V::load(y.add(i)), V::load(z.add(i)));
        let mut i = 0;
        if through == Through::Memory && (out as usize).is_multiple_of(64) {
            while i + V::N <= n {
                at(i).stream(out.add(i));
                i += V::N;
            }
        } else {
            while i + V::N <= n {
                at(i).store(out.add(i));
                i += V::N;
            }
        }
        if i < n {
            let last = n - i;
            let v = f(part(x.add(i), last), part(y.add(i), last), part(z.add(i), last));
            store_part(v, out.add(i), last);
        }
    }
}

/// `out = f(x)`.
///
/// # Safety
/// As `map3`.
#[inline(always)]
pub unsafe fn map<T: Real, V: Vector<Elem = T>>(
    x: *const T,
    out: *mut T,
    n: usize,
    through: Through,
    f: impl Fn(V) -> V,
) {
    // SAFETY: the contract of this function is that of `map3`, with `x` three times.
    unsafe { map3::<T, V>([x, x, x], out, n, through, |x, _, _| f(x)) }
}

/// The largest element; NaN is ignored. Minus infinity if there is no other.
#[inline(always)]
pub unsafe fn largest<T: Real, V: Vector<Elem = T>>(x: &[T]) -> T {
    let mut largest = T::NEG_INF;
    let mut i = 0;
    // SAFETY: the machine has the instructions of `V` (this function's contract); positions are below the length of
    // `x`.
    unsafe {
        if V::N <= x.len() {
            // The running maximum is the second operand: it stays when the new element is NaN.
            let low = V::splat(T::NEG_INF);
            let (mut a, mut b) = (low, low);
            while i + 2 * V::N <= x.len() {
                a = V::load(x.as_ptr().add(i)).max(a);
                b = V::load(x.as_ptr().add(i + V::N)).max(b);
                i += 2 * V::N;
            }
            if i + V::N <= x.len() {
                a = V::load(x.as_ptr().add(i)).max(a);
                i += V::N;
            }
            largest = a.max(b).largest();
        }
    }
    for &x in &x[i..] {
        largest = if x > largest { x } else { largest };
    }
    largest
}

/// Prefetches the cache line at an address, which may be invalid.
#[inline(always)]
pub fn prefetch<T>(line: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that faults nowhere; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::host::real::widths;

    widths! {
        fn all<T, S>(x: &[T], y: &[T], out: &mut [T]) -> [T; 4] {
            // SAFETY: `S` is the machine's; the slices are equally long.
            unsafe {
                let square = sum::<T, T::In<S>>(x, |x| x.mul(x));
                let dot = sum2::<T, T::In<S>>(x, y, |x, y| x.mul(y));
                let (n, to) = (out.len(), out.as_mut_ptr());
                let powers = exp_sum::<T, S>(x.as_ptr(), T::ONE, to, n, 0);
                map3::<T, T::In<S>>([x.as_ptr(), y.as_ptr(), to], to, n, Through::Memory, |x, y, z| x.fma(y, z));
                [square, dot, powers, largest::<T, T::In<S>>(x)]
            }
        }
    }

    #[test]
    fn every_length() {
        for n in 0..150 {
            let x: Vec<f32> = (0..n).map(|i| ((i * 37 % 11) as f32) - 5.0).collect();
            let y: Vec<f32> = (0..n).map(|i| ((i * 53 % 7) as f32) - 3.0).collect();
            let mut out = vec![0.0; n];
            let got = all(&x, &y, &mut out);
            let dot: f32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
            let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!([got[0], got[1], got[3]], [x.iter().map(|x| x * x).sum(), dot, largest], "{n}");
            let powers: f32 = x.iter().map(|x| (x - 1.0).exp()).sum();
            assert!((got[2] - powers).abs() <= 1e-5 * powers, "{n}: {} {powers}", got[2]);
            assert!((0..n).all(|i| (out[i] - x[i] * y[i] - (x[i] - 1.0).exp()).abs() <= 2e-5), "{n}");
        }
    }
}
