//! Between the ten element types in memory and the four classes of registers: casts of tiles, and copies of
//! strided boxes that convert on the way.

use crate::base::dtype::DType;
use crate::kernel::copy::host::transpose;
use crate::kernel::host::simd;
use crate::kernel::program::{Class, TILE, TileFn};
use std::any::TypeId;
use std::mem::MaybeUninit;

/// bf16 to f32: its upper half.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// f32 to bf16, nearest, ties to even; any NaN becomes the quiet one.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let u = x.to_bits();
    let rounded = (u.wrapping_add(0x7fff).wrapping_add((u >> 16) & 1) >> 16) as u16;
    if x.is_nan() { 0x7fc0 } else { rounded }
}

/// f16 to f32 without branches (after F. Giesen, "half_to_float_fast"): shift into place, then correct the
/// exponent of specials and, by a float subtraction, of subnormals.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = ((bits & 0x8000) as u32) << 16;
    let body = ((bits & 0x7fff) as u32) << 13;
    let exponent = body & 0x0f80_0000;
    let normal = body + (112 << 23);
    let special = body + (224 << 23);
    let tiny = (f32::from_bits(body + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let value = if exponent == 0x0f80_0000 { special } else { normal };
    let value = if exponent == 0 { tiny } else { value };
    f32::from_bits(value | sign)
}

/// f32 to f16, nearest, ties to even (after F. Giesen, "float_to_half_fast3_rtne").
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    const HALF: u32 = 126 << 23;
    let sign = (x.to_bits() >> 16) & 0x8000;
    let a = x.to_bits() & 0x7fff_ffff;
    let normal = a.wrapping_add(0xc800_0fff).wrapping_add((a >> 13) & 1) >> 13;
    let tiny = (f32::from_bits(a) + f32::from_bits(HALF)).to_bits().wrapping_sub(HALF);
    let special = if a > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let value = if a < 113 << 23 { tiny } else { normal };
    let value = if a >= 143 << 23 { special } else { value };
    (value | sign) as u16
}

/// A float truncated to an integer. NaN and values out of range give the lowest integer, as the x86 instruction that
/// PyTorch uses. Not: `as`, which saturates, with several comparisons for each element.
macro_rules! to_i64 {
    ($a:expr) => {{
        let a = $a;
        let inside = if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&a) {
            a
        } else {
            -9_223_372_036_854_775_808.0
        };
        // SAFETY: the value is in the range of an i64.
        #[allow(unused_unsafe)]
        unsafe {
            inside.to_int_unchecked::<i64>()
        }
    }};
}

/// The same in 32 bits, from which `i8` and `i16` are wrapped.
macro_rules! to_i32 {
    ($a:expr) => {{
        let a = $a;
        let inside = if (-2_147_483_648.0..2_147_483_648.0).contains(&a) { a } else { -2_147_483_648.0 };
        // SAFETY: the value is in the range of an i32.
        #[allow(unused_unsafe)]
        unsafe {
            inside.to_int_unchecked::<i32>()
        }
    }};
}

/// Converts `n` elements that lie beside each other.
pub(super) type FlatFn = unsafe fn(*const u8, *mut u8, usize);

/// The function that converts elements in memory without registers of 64 bits between; none where these are as good.
pub(super) fn flat(from: DType, to: DType) -> Option<FlatFn> {
    use DType::{BF16, Bool, F32, I8, I16, I32, I64, U8};
    macro_rules! levels {
        ($F:ty => $T:ty, |$x:ident| $body:expr) => {{
            const ALL: [FlatFn; 3] = simd::levels!(<S> fn(from: *const u8, to: *mut u8, n: usize) {
                let (from, to) = (from.cast::<$F>(), to.cast::<$T>());
                for i in 0..n {
                    let i = simd::at::<S>(i);
                    let $x = *from.add(i);
                    *to.add(i) = $body;
                }
            });
            ALL
        }};
    }
    // AVX-512 runs what is compiled for AVX2, which takes half of the code.
    macro_rules! plain {
        ($($of:tt)*) => {{
            const AVX2: FlatFn = levels!($($of)*)[1];
            AVX2
        }};
    }
    let all = match (from, to) {
        // From 2^31 on the last eight bits of an f32 are zeros, as those of the lowest i32.
        (F32, U8 | I8) => levels!(f32 => u8, |x| to_i32!(x) as u8),
        (F32, I16) => levels!(f32 => i16, |x| to_i32!(x) as i16),
        (F32, I32) => levels!(f32 => i32, |x| to_i32!(x)),
        _ if simd::level() > 1 => return None,
        (I64, U8 | I8) => levels!(u64 => u8, |x| x as u8),
        (I64, I16) => levels!(u64 => u16, |x| x as u16),
        (I64, I32) => levels!(u64 => u32, |x| x as u32),
        (I32, U8 | I8) => levels!(u32 => u8, |x| x as u8),
        (I32, I16) => levels!(u32 => u16, |x| x as u16),
        (I16, U8 | I8) => levels!(u16 => u8, |x| x as u8),
        _ => {
            return Some(match (from, to) {
                (Bool | U8, U8 | I8) | (I8, U8) => plain!(u8 => u8, |x| x),
                (Bool | U8, I16) => plain!(u8 => u16, |x| x as u16),
                (Bool | U8, I32) => plain!(u8 => u32, |x| x as u32),
                (Bool | U8, I64) => plain!(u8 => u64, |x| x as u64),
                (I8, I16) => plain!(i8 => i16, |x| x as i16),
                (I8, I32) => plain!(i8 => i32, |x| x as i32),
                (I8, I64) => plain!(i8 => i64, |x| x as i64),
                (I16, I32) => plain!(i16 => i32, |x| x as i32),
                (I16, I64) => plain!(i16 => i64, |x| x as i64),
                (I32, I64) => plain!(i32 => i64, |x| x as i64),
                (Bool | U8, F32) => plain!(u8 => f32, |x| x as f32),
                (I8, F32) => plain!(i8 => f32, |x| x as f32),
                (I16, F32) => plain!(i16 => f32, |x| x as f32),
                (I32, F32) => plain!(i32 => f32, |x| x as f32),
                (Bool | U8, BF16) => plain!(u8 => u16, |x| f32_to_bf16(x as f32)),
                (I8, BF16) => plain!(i8 => u16, |x| f32_to_bf16(x as f32)),
                (I16, BF16) => plain!(i16 => u16, |x| f32_to_bf16(x as f32)),
                (I32, BF16) => plain!(i32 => u16, |x| f32_to_bf16(x as f32)),
                (BF16, U8 | I8) => plain!(u16 => u8, |x| to_i32!(bf16_to_f32(x)) as u8),
                (BF16, I16) => plain!(u16 => u16, |x| to_i32!(bf16_to_f32(x)) as u16),
                (BF16, I32) => plain!(u16 => i32, |x| to_i32!(bf16_to_f32(x))),
                _ => return None,
            });
        }
    };
    Some(all[simd::level()])
}

/// Tile functions that convert a register of class `from` to the class of `to`, rounded or wrapped to `to`;
/// `None` when the value is the same.
pub(crate) fn cast(from: Class, to: DType) -> Option<&'static [TileFn; 3]> {
    macro_rules! cast {
        (($a:ident: $A:ident) -> $O:ident = $body:expr) => {{
    const TILES: [TileFn; 3] = simd::tile!(<S> ($a: $A) -> $O = $body);
            Some(&TILES)
        }};
    }
    use Class::{Bool, F32, F64, I64};
    match (from, to) {
        // Invariant: the engine computes complex numbers by their real parts; no program names their dtypes.
        (_, DType::C64 | DType::C128) => unreachable!("programs compute complex numbers by their real parts"),
        (Bool, DType::Bool) | (I64, DType::I64) | (F32, DType::F32) | (F64, DType::F64) => None,
        (I64, DType::Bool) => cast!((a: I64) -> Bool = (a != 0) as u8),
        (F32, DType::Bool) => cast!((a: F32) -> Bool = (a != 0.0) as u8),
        (F64, DType::Bool) => cast!((a: F64) -> Bool = (a != 0.0) as u8),
        (Bool, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64) => cast!((a: Bool) -> I64 = a as i64),
        (I64, DType::U8) => cast!((a: I64) -> I64 = a as u8 as i64),
        (I64, DType::I8) => cast!((a: I64) -> I64 = a as i8 as i64),
        (I64, DType::I16) => cast!((a: I64) -> I64 = a as i16 as i64),
        (I64, DType::I32) => cast!((a: I64) -> I64 = a as i32 as i64),
        (F32, DType::U8) => cast!((a: F32) -> I64 = to_i32!(a) as u8 as i64),
        (F32, DType::I8) => cast!((a: F32) -> I64 = to_i32!(a) as i8 as i64),
        (F32, DType::I16) => cast!((a: F32) -> I64 = to_i32!(a) as i16 as i64),
        (F32, DType::I32) => cast!((a: F32) -> I64 = to_i32!(a) as i64),
        (F32, DType::I64) => cast!((a: F32) -> I64 = to_i64!(a)),
        (F64, DType::U8) => cast!((a: F64) -> I64 = to_i64!(a) as u8 as i64),
        (F64, DType::I8) => cast!((a: F64) -> I64 = to_i32!(a) as i8 as i64),
        (F64, DType::I16) => cast!((a: F64) -> I64 = to_i32!(a) as i16 as i64),
        (F64, DType::I32) => cast!((a: F64) -> I64 = to_i32!(a) as i64),
        (F64, DType::I64) => cast!((a: F64) -> I64 = to_i64!(a)),
        (Bool, DType::F64) => cast!((a: Bool) -> F64 = a as f64),
        (Bool, DType::F16 | DType::BF16 | DType::F32) => cast!((a: Bool) -> F32 = a as f32),
        (I64, DType::F32) => cast!((a: I64) -> F32 = a as f32),
        (I64, DType::F64) => cast!((a: I64) -> F64 = a as f64),
        (I64, DType::F16) => cast!((a: I64) -> F32 = f16_to_f32(f32_to_f16(a as f32))),
        (I64, DType::BF16) => cast!((a: I64) -> F32 = bf16_to_f32(f32_to_bf16(a as f32))),
        (F32, DType::F64) => cast!((a: F32) -> F64 = a as f64),
        (F32, DType::F16) => cast!((a: F32) -> F32 = f16_to_f32(f32_to_f16(a))),
        (F32, DType::BF16) => cast!((a: F32) -> F32 = bf16_to_f32(f32_to_bf16(a))),
        (F64, DType::F32) => cast!((a: F64) -> F32 = a as f32),
        (F64, DType::F16) => cast!((a: F64) -> F32 = f16_to_f32(f32_to_f16(a as f32))),
        (F64, DType::BF16) => cast!((a: F64) -> F32 = bf16_to_f32(f32_to_bf16(a as f32))),
    }
}

/// Copies and converts a box of `count[0] * count[1] * count[2]` elements; strides of the memory are in bytes, the
/// register is contiguous. Arguments: memory, strides, counts, register.
pub(crate) type BoxFn = unsafe fn(*mut u8, [isize; 3], [usize; 3], *mut u8);

/// Elements that lie beside each other: by an expression, or by a function of a level where there is one.
macro_rules! run {
    ($from:expr, $to:expr, $n:expr, |$x:ident| $body:expr) => {{
        let (from, to) = ($from, $to);
        for k in 0..$n {
            let $x = *from.add(k);
            *to.add(k) = $body;
        }
    }};
    ($from:expr, $to:expr, $n:expr, |$x:ident| $body:expr, $fast:expr) => {
        $fast($from.cast_const(), $to, $n)
    };
}

/// `n` elements of memory with a step: by an expression, or collected first for a function of a level.
macro_rules! steps {
    ($M:ty, $from:expr, $step:ident, $to:expr, $n:expr, |$x:ident| $body:expr) => {
        for k in 0..$n {
            let $x = *$from.wrapping_offset(k as isize * $step).cast::<$M>();
            *$to.add(k) = $body;
        }
    };
    ($M:ty, $from:expr, $step:ident, $to:expr, $n:expr, |$x:ident| $body:expr, $fast:expr) => {{
        let mut near = MaybeUninit::<[$M; TILE]>::uninit();
        let near = near.as_mut_ptr().cast::<$M>();
        for first in (0..$n).step_by(TILE) {
            let n = if $n - first < TILE { $n - first } else { TILE };
            for k in 0..n {
                *near.add(k) = *$from.wrapping_offset((first + k) as isize * $step).cast::<$M>();
            }
            $fast(near.cast_const(), $to.add(first), n);
        }
    }};
}

/// `boxes!(to: memory type => register type, |x| expression)`, or `from:` for the other way; the last argument is a function
/// that does the same with runs.
macro_rules! boxes {
    (load $M:ty => $R:ty, |$x:ident| $body:expr $(, $fast:expr)?) => {{
        const ALL: [BoxFn; 3] = simd::levels!(<S> fn(
            memory: *mut u8, strides: [isize; 3], counts: [usize; 3], register: *mut u8
        ) {
            let [m0, m1, m2] = counts;
            let (mut out, step) = (register.cast::<$R>(), strides[2]);
            let size = size_of::<$M>() as isize;
            let across = step != size && step % size == 0 && strides[1] == size && m1 > 1 && m1 * m2 <= TILE;
            for i in 0..m0 {
                let plane = memory.offset(i as isize * strides[0]);
                if across {
                    let mut square = MaybeUninit::<[$M; TILE]>::uninit();
                    // What is in memory as in registers goes there at once.
                    let same = TypeId::of::<$M>() == TypeId::of::<$R>();
                    let turned = if same { out.cast::<$M>() } else { square.as_mut_ptr().cast::<$M>() };
                    transpose::turn(plane, step / size, turned.cast(), m2, m1, size_of::<$M>());
                    run!(turned, out, if same { 0 } else { m1 * m2 }, |$x| $body $(, $fast)?);
                    out = out.add(m1 * m2);
                    continue;
                }
                for j in 0..m1 {
                    let row = plane.offset(j as isize * strides[1]);
                    if step == size_of::<$M>() as isize {
                        run!(row.cast::<$M>(), out, m2, |$x| $body $(, $fast)?);
                    } else if step == 0 {
                        let $x = *row.cast::<$M>();
                        let value: $R = $body;
                        for k in 0..m2 {
                            *out.add(k) = value;
                        }
                    } else {
                        steps!($M, row, step, out, m2, |$x| $body $(, $fast)?);
                    }
                    out = out.add(m2);
                }
            }
        });
        const LEVELS: [BoxFn; 3] = simd::without_highest(ALL);
        &LEVELS
    }};
    (store $M:ty => $R:ty, |$x:ident| $body:expr $(, $fast:expr)?) => {{
        const ALL: [BoxFn; 3] = simd::levels!(<S> fn(
            memory: *mut u8, strides: [isize; 3], counts: [usize; 3], register: *mut u8
        ) {
            let [m0, m1, m2] = counts;
            let (mut source, step) = (register.cast::<$R>(), strides[2]);
            for i in 0..m0 {
                for j in 0..m1 {
                    let row = memory.offset(i as isize * strides[0] + j as isize * strides[1]);
                    if step == size_of::<$M>() as isize {
                        run!(source, row.cast::<$M>(), m2, |$x| $body $(, $fast)?);
                    } else {
                        for k in 0..m2 {
                            let $x = *source.add(k);
                            *row.offset(k as isize * step).cast::<$M>() = $body;
                        }
                    }
                    source = source.add(m2);
                }
            }
        });
        &ALL
    }};
}

/// A dtype that is its own class's representation.
pub(super) fn representative(class: Class) -> DType {
    match class {
        Class::Bool => DType::Bool,
        Class::I64 => DType::I64,
        Class::F32 => DType::F32,
        Class::F64 => DType::F64,
    }
}

/// The function that loads elements of `dtype` into a register of `held`, which is the dtype itself or its class's.
pub(crate) fn load(dtype: DType, held: DType) -> BoxFn {
    let all: &[BoxFn; 3] = match (dtype, dtype.size_bytes()) {
        (_, 1) if dtype == held => boxes!(load u8 => u8, |x| x),
        (_, 2) if dtype == held => boxes!(load u16 => u16, |x| x),
        (_, 4) if dtype == held => boxes!(load u32 => u32, |x| x),
        (_, 8) if dtype == held => boxes!(load u64 => u64, |x| x),
        (DType::U8, _) => boxes!(load u8 => i64, |x| x as i64),
        (DType::I8, _) => boxes!(load i8 => i64, |x| x as i64),
        (DType::I16, _) => boxes!(load i16 => i64, |x| x as i64),
        (DType::I32, _) => boxes!(load i32 => i64, |x| x as i64),
        (DType::F16, _) => boxes!(load u16 => f32, |x| f16_to_f32(x), S::widen_halves),
        (DType::BF16, _) => boxes!(load u16 => f32, |x| bf16_to_f32(x)),
        _ => unreachable!("{dtype} is not computed as {held}"),
    };
    all[simd::level()]
}

/// The function that stores a register of the class of `dtype` to memory; its values are already rounded to it.
pub(crate) fn store(dtype: DType) -> BoxFn {
    store_held(dtype, representative(Class::of(dtype)))
}

/// The same for a register of `held`.
pub(super) fn store_held(dtype: DType, held: DType) -> BoxFn {
    let all: &[BoxFn; 3] = match (dtype, dtype.size_bytes()) {
        (_, 1) if dtype == held => boxes!(store u8 => u8, |x| x),
        (_, 2) if dtype == held => boxes!(store u16 => u16, |x| x),
        (_, 4) if dtype == held => boxes!(store u32 => u32, |x| x),
        (_, 8) if dtype == held => boxes!(store u64 => u64, |x| x),
        (DType::U8 | DType::I8, _) => boxes!(store u8 => u64, |x| x as u8),
        (DType::I16, _) => boxes!(store u16 => u64, |x| x as u16),
        (DType::I32, _) => boxes!(store u32 => u64, |x| x as u32),
        (DType::F16, _) => boxes!(store u16 => f32, |x| f32_to_f16(x), S::narrow_halves),
        (DType::BF16, _) => boxes!(store u16 => f32, |x| f32_to_bf16(x)),
        _ => unreachable!("{dtype} is not computed as {held}"),
    };
    all[simd::level()]
}
