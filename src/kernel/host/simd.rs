//! One scalar body compiled for three levels of vector instructions: AVX-512, AVX2 with FMA, and the target's baseline.
//!
//! Bodies are plain Rust that the compiler vectorizes; this file only compiles them three times and determines once
//! which to use: the highest level of the machine, unless `TSCRIPT_SIMD` selects another. On machines other than x86-64
//! all three are the baseline.

use super::halves;
use super::vector::{Plain, Vector};
use std::sync::OnceLock;

/// A level of vector instructions, as a type parameter, so that a body is compiled for each.
pub trait Simd: Copy {
    /// The value of `level()` for this level.
    const LEVEL: usize;
    /// `a * b + c`, fused where the machine can do that in one instruction.
    fn fma32(a: f32, b: f32, c: f32) -> f32;
    fn fma64(a: f64, b: f64, c: f64) -> f64;
    /// Converts `n` values of `f16`, as bits, to `f32`.
    ///
    /// # Safety
    /// Both memories have `n` elements, apart from each other, and the machine has the level.
    unsafe fn widen_halves(from: *const u16, to: *mut f32, n: usize);
    /// The other way, to the nearest, ties to even.
    ///
    /// # Safety
    /// As `widen_halves`.
    unsafe fn narrow_halves(from: *const f32, to: *mut u16, n: usize);
    /// Explicit vectors for loops that the compiler does not vectorize.
    type F32: Vector<Elem = f32>;
    type F64: Vector<Elem = f64>;
}

/// 512-bit vectors.
#[derive(Clone, Copy)]
pub struct Avx512;
/// 256-bit vectors and fused multiply-add.
#[derive(Clone, Copy)]
pub struct Avx2;
/// The target's baseline. Not: `mul_add`, which is a library call on a baseline x86-64.
#[derive(Clone, Copy)]
pub struct Portable;

impl Simd for Avx512 {
    const LEVEL: usize = 0;
    #[cfg(target_arch = "x86_64")]
    type F32 = std::arch::x86_64::__m512;
    #[cfg(target_arch = "x86_64")]
    type F64 = std::arch::x86_64::__m512d;
    #[cfg(not(target_arch = "x86_64"))]
    type F32 = Plain<f32, 4>;
    #[cfg(not(target_arch = "x86_64"))]
    type F64 = Plain<f64, 2>;

    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn widen_halves(from: *const u16, to: *mut f32, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::widen_512(from, to, n) }
    }
    #[inline(always)]
    unsafe fn narrow_halves(from: *const f32, to: *mut u16, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::narrow_512(from, to, n) }
    }
}

impl Simd for Avx2 {
    const LEVEL: usize = 1;
    #[cfg(target_arch = "x86_64")]
    type F32 = std::arch::x86_64::__m256;
    #[cfg(target_arch = "x86_64")]
    type F64 = std::arch::x86_64::__m256d;
    #[cfg(not(target_arch = "x86_64"))]
    type F32 = Plain<f32, 4>;
    #[cfg(not(target_arch = "x86_64"))]
    type F64 = Plain<f64, 2>;

    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn widen_halves(from: *const u16, to: *mut f32, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::widen_256(from, to, n) }
    }
    #[inline(always)]
    unsafe fn narrow_halves(from: *const f32, to: *mut u16, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::narrow_256(from, to, n) }
    }
}

impl Simd for Portable {
    const LEVEL: usize = 2;
    type F32 = Plain<f32, 4>;
    type F64 = Plain<f64, 2>;

    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
    #[inline(always)]
    unsafe fn widen_halves(from: *const u16, to: *mut f32, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::widen(from, to, n) }
    }
    #[inline(always)]
    unsafe fn narrow_halves(from: *const f32, to: *mut u16, n: usize) {
        // SAFETY: this function's contract.
        unsafe { halves::narrow(from, to, n) }
    }
}

/// Names of the levels in `TSCRIPT_SIMD`, the highest first: 0 is AVX-512, 1 AVX2, 2 the baseline.
const NAMES: [&str; 3] = ["avx512", "avx2", "portable"];

/// The level to run, an index into the arrays of `levels!`: the machine's highest, or the one that `TSCRIPT_SIMD`
/// names.
#[inline]
pub fn level() -> usize {
    static LEVEL: OnceLock<usize> = OnceLock::new();
    // A session reports an error of `choice` before it runs kernels, so the fallback here is never used.
    *LEVEL.get_or_init(|| choice().as_ref().map_or(highest_level(), |&level| level))
}

/// Whether the level has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn has_avx2() -> bool {
    NAMES[level()] != "portable"
}

/// The level that `TSCRIPT_SIMD` selects for this process, or the message of an invalid value. The environment is read
/// once.
pub fn choice() -> &'static Result<usize, String> {
    static CHOICE: OnceLock<Result<usize, String>> = OnceLock::new();
    CHOICE.get_or_init(|| match std::env::var_os("TSCRIPT_SIMD") {
        Some(word) if !word.is_empty() => choose(&word.to_string_lossy(), highest_level()),
        _ => Ok(highest_level()),
    })
}

/// The level of this name on a machine whose highest level is `highest`.
fn choose(word: &str, highest: usize) -> Result<usize, String> {
    match NAMES.iter().position(|name| *name == word) {
        Some(level) if level >= highest => Ok(level),
        Some(_) => Err(format!("TSCRIPT_SIMD asks for `{word}`, and the best of this machine is `{}`", NAMES[highest])),
        None => Err(format!("TSCRIPT_SIMD wants `avx512`, `avx2` or `portable`, not `{word}`")),
    }
}

/// Names of the levels that the machine has, the highest first.
pub fn names_here() -> &'static [&'static str] {
    &NAMES[highest_level()..]
}

/// The name of the level that kernels run at.
pub fn name() -> &'static str {
    NAMES[level()]
}

/// The highest level of the machine.
#[cfg(target_arch = "x86_64")]
fn highest_level() -> usize {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => 0,
        (true, false) => 1,
        _ => 2,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn highest_level() -> usize {
    2
}

/// The place `i` in a loop over elements. On x86-64 the loop is not vectorized for the baseline, which would be a twentieth of the
/// program, for machines without AVX2.
#[inline(always)]
pub fn at<S: Simd>(i: usize) -> usize {
    if cfg!(target_arch = "x86_64") && S::LEVEL == Portable::LEVEL { std::hint::black_box(i) } else { i }
}

/// `levels!(<S> fn(x: T, ...) -> R { body })`: an array of three `unsafe fn(T, ...) -> R`, highest first.
/// The body may call anything `#[inline(always)]` that is generic over `S: Simd`.
macro_rules! levels {
    (<$S:ident> fn($($p:ident: $P:ty),* $(,)?) $(-> $R:ty)? $body:block) => {{
        #[inline(always)]
        #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
        unsafe fn body<$S: $crate::kernel::host::simd::Simd>($($p: $P),*) $(-> $R)? {
            // SAFETY: whoever calls one of the three keeps what the body asks for.
            unsafe { $body }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c,bmi2")]
        #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
        unsafe fn highest($($p: $P),*) $(-> $R)? {
            // SAFETY: `level` chose this version because the machine has these instructions; the rest is the contract
            // of the body.
            unsafe { body::<$crate::kernel::host::simd::Avx512>($($p),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi2")]
        #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
        unsafe fn middle($($p: $P),*) $(-> $R)? {
            // SAFETY: `level` chose this version because the machine has these instructions; the rest is the contract
            // of the body.
            unsafe { body::<$crate::kernel::host::simd::Avx2>($($p),*) }
        }
        #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
        unsafe fn plain($($p: $P),*) $(-> $R)? {
            // SAFETY: portable code needs no instructions beyond the target's; the rest is the contract of the body.
            unsafe { body::<$crate::kernel::host::simd::Portable>($($p),*) }
        }
        #[cfg(target_arch = "x86_64")]
        let all: [unsafe fn($($P),*) $(-> $R)?; 3] = [highest, middle, plain];
        #[cfg(not(target_arch = "x86_64"))]
        let all: [unsafe fn($($P),*) $(-> $R)?; 3] = [plain, plain, plain];
        all
    }};
}

/// `levels!` without the highest: AVX-512 runs what is compiled for AVX2, which takes a third less code.
pub const fn without_highest<F: Copy>(all: [F; 3]) -> [F; 3] {
    [all[1], all[1], all[2]]
}

/// The Rust type of a class's elements.
macro_rules! rep {
    (Bool) => {
        u8
    };
    (I64) => {
        i64
    };
    (F32) => {
        f32
    };
    (F64) => {
        f64
    };
}

/// Position of an argument by its name.
macro_rules! nth {
    (a) => {
        0
    };
    (b) => {
        1
    };
    (c) => {
        2
    };
    (d) => {
        3
    };
}

/// Three `TileFn`s from one scalar expression: `tile!(<S> (a: F32, b: F32) -> F32 = a + b)`.
///
/// Not: writing directly into an `out` that is also an argument. The vectorized loop needs distinct memory (otherwise
/// its run-time check takes the scalar loop), so in that case results go to a tile on the stack first.
macro_rules! tile {
    (<$S:ident> ($($arg:ident: $A:ident),*) -> $O:ident = $body:expr) => {
        $crate::kernel::host::simd::levels!(<$S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            use $crate::kernel::host::simd::{nth, rep};
            let mut stage = std::mem::MaybeUninit::<[rep!($O); $crate::kernel::program::TILE]>::uninit();
            let staged = $(args[nth!($arg)] == out.cast_const())||*;
            let target = if staged { stage.as_mut_ptr().cast::<rep!($O)>() } else { out.cast() };
            for i in 0..n {
                let i = $crate::kernel::host::simd::at::<$S>(i);
                $(let $arg = *args[nth!($arg)].cast::<rep!($A)>().add(i);)*
                *target.add(i) = $body;
            }
            if staged {
                std::ptr::copy_nonoverlapping(target, out.cast(), n);
            }
        })
    };
}

/// As `tile!` for one argument, for a body that is valid only below a magnitude: if a tile has any other value (or
/// NaN), all its elements are computed by `slow`.
macro_rules! tile_below {
    (<$S:ident> ($limit:expr) ($a:ident: $A:ident) -> $O:ident = $body:expr, $slow:expr) => {
        $crate::kernel::host::simd::levels!(<$S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            use $crate::kernel::host::simd::rep;
            let (from, to) = (args[0].cast::<rep!($A)>(), out.cast::<rep!($O)>());
            let mut stage = std::mem::MaybeUninit::<[rep!($O); $crate::kernel::program::TILE]>::uninit();
            let staged = from.cast::<u8>() == out.cast_const();
            let target = if staged { stage.as_mut_ptr().cast::<rep!($O)>() } else { to };
            let mut below = true;
            for i in 0..n {
                below &= (*from.add(i)).abs() < $limit as rep!($A);
            }
            if below {
                for i in 0..n {
                    let i = $crate::kernel::host::simd::at::<$S>(i);
                    let $a = *from.add(i);
                    *target.add(i) = $body;
                }
            } else {
                for i in 0..n {
                    let i = $crate::kernel::host::simd::at::<$S>(i);
                    let $a = *from.add(i);
                    *target.add(i) = $slow;
                }
            }
            if staged {
                std::ptr::copy_nonoverlapping(target, to, n);
            }
        })
    };
}

/// Three `TileFn`s of two f32 arguments, with another body for tiles in which a quotient reaches the limit (or is NaN). The
/// arguments may lie in `out`.
macro_rules! tile_quotients {
    (<$S:ident> ($limit:expr) ($a:ident, $b:ident) = $body:expr, $slow:expr) => {
        $crate::kernel::host::simd::levels!(<$S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            let (left, right) = (args[0].cast::<f32>(), args[1].cast::<f32>());
            let mut stage = std::mem::MaybeUninit::<[f32; $crate::kernel::program::TILE]>::uninit();
            let target = stage.as_mut_ptr().cast::<f32>();
            let mut below = true;
            for i in 0..n {
                below &= (*left.add(i)).abs() < $limit * (*right.add(i)).abs();
            }
            if below {
                for i in 0..n {
                    let i = $crate::kernel::host::simd::at::<$S>(i);
                    let ($a, $b) = (*left.add(i), *right.add(i));
                    *target.add(i) = $body;
                }
            } else {
                for i in 0..n {
                    let i = $crate::kernel::host::simd::at::<$S>(i);
                    let ($a, $b) = (*left.add(i), *right.add(i));
                    *target.add(i) = $slow;
                }
            }
            std::ptr::copy_nonoverlapping(target, out.cast::<f32>(), n);
        })
    };
}

/// Three `TileFn`s of two integers, with a body over `f64` for tiles whose integers are below 2^50 and whose divisors are not 0:
/// there is no instruction that divides vectors of integers, and below 2^51 quotients in f64 are never rounded to an integer
/// that they are not. The arguments may lie in `out`.
macro_rules! tile_division {
    (<$S:ident> ($a:ident, $b:ident) = $body:expr, $slow:expr) => {
        $crate::kernel::host::simd::levels!(<$S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            use $crate::kernel::host::simd::{Portable, Simd};
            /// An integer added to these bits becomes that number plus 1.5 · 2^52.
            const BITS: i64 = 0x4338_0000_0000_0000;
            const SHIFT: f64 = 6_755_399_441_055_744.0;
            const HALF: i64 = 1 << 50;
            let (left, right) = (args[0].cast::<i64>(), args[1].cast::<i64>());
            let mut stage = std::mem::MaybeUninit::<[i64; $crate::kernel::program::TILE]>::uninit();
            let target = stage.as_mut_ptr().cast::<i64>();
            let (mut high, mut zeros) = (0u64, 0i64);
            for i in 0..n {
                let (a, b) = (*left.add(i), *right.add(i));
                high |= a.wrapping_add(HALF) as u64 | b.wrapping_add(HALF) as u64;
                zeros |= (b == 0) as i64;
            }
            // Not: the baseline, where rounding to integers is a library call.
            if high >> 51 == 0 && zeros == 0 && $S::LEVEL != Portable::LEVEL {
                for i in 0..n {
                    let $a = f64::from_bits((*left.add(i)).wrapping_add(BITS) as u64) - SHIFT;
                    let $b = f64::from_bits((*right.add(i)).wrapping_add(BITS) as u64) - SHIFT;
                    let whole: f64 = $body;
                    *target.add(i) = ((whole + SHIFT).to_bits() as i64).wrapping_sub(BITS);
                }
            } else {
                for i in 0..n {
                    let i = $crate::kernel::host::simd::at::<$S>(i);
                    let ($a, $b) = (*left.add(i), *right.add(i));
                    *target.add(i) = $slow;
                }
            }
            std::ptr::copy_nonoverlapping(target, out.cast::<i64>(), n);
        })
    };
}

/// Three `TileFn`s from one expression over vectors of `f32`: `tile_f32!(<V> (a, b) = vector::f(a, b))`. The last
/// elements of a tile, fewer than a vector, are copied through the stack. `out` may be an argument.
macro_rules! tile_f32 {
    (<$V:ident> ($($arg:ident),*) = $body:expr) => {
        $crate::kernel::host::simd::levels!(<S> fn(args: &[*const u8; 4], out: *mut u8, n: usize) {
            use $crate::kernel::host::simd::{Simd, nth};
            use $crate::kernel::host::vector::Vector;
            #[inline(always)]
            unsafe fn one<$V: Vector<Elem = f32>>($($arg: $V),*) -> $V {
                // SAFETY: the level's instructions are there.
                unsafe { $body }
            }
            type Of<S> = <S as Simd>::F32;
            let whole = n - n % Of::<S>::N;
            let mut i = 0;
            while i < whole {
                one($(Of::<S>::load(args[nth!($arg)].cast::<f32>().add(i))),*).store(out.cast::<f32>().add(i));
                i += Of::<S>::N;
            }
            if i < n {
                $(let mut $arg = [0f32; 16];
                std::ptr::copy_nonoverlapping(args[nth!($arg)].cast::<f32>().add(i), $arg.as_mut_ptr(), n - i);)*
                let mut last = [0f32; 16];
                one($(Of::<S>::load($arg.as_ptr())),*).store(last.as_mut_ptr());
                std::ptr::copy_nonoverlapping(last.as_ptr(), out.cast::<f32>().add(i), n - i);
            }
        })
    };
}

pub(crate) use {levels, nth, rep, tile, tile_below, tile_division, tile_f32, tile_quotients};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_chosen_by_name_where_the_machine_has_them() {
        assert_eq!((choose("avx512", 0), choose("avx2", 0), choose("portable", 1)), (Ok(0), Ok(1), Ok(2)));
        assert!(choose("avx512", 1).is_err_and(|why| why.ends_with("the best of this machine is `avx2`")));
        assert!(choose("avx2", 2).is_err() && choose("sse", 0).is_err() && choose("", 0).is_err());
    }
}
