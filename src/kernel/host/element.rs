//! The ten element types as Rust types: conversion, accumulation, order.
//!
//! For kernels that move or compare single values. Knows no views, and none of the tile registers of fused steps
//! (`math.rs`), with which its conversions agree bit for bit.

use crate::base::dtype::DType;
use half::{bf16, f16};

/// A `bool` element: one byte, 0 or 1. Not Rust's `bool`, for which any other byte is undefined behavior.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct Truth(pub u8);

/// The type in which sums of elements are accumulated.
pub trait Acc: Copy + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! acc {
    ($T:ty, $add:expr, $mul:expr) => {
        impl Acc for $T {
            const ZERO: $T = 0 as $T;
            const ONE: $T = 1 as $T;
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                $add(self, other)
            }
            #[inline(always)]
            fn mul(self, other: $T) -> $T {
                $mul(self, other)
            }
        }
    };
}
acc!(i64, i64::wrapping_add, i64::wrapping_mul);
acc!(f32, |a: f32, b: f32| a + b, |a: f32, b: f32| a * b);
acc!(f64, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b);

/// An unsigned integer whose order is that of the elements that it was made from.
pub trait Key: Copy + Ord + Send + Sync + Default + 'static {
    /// The key and, below it, a position: one integer to compare.
    type Pair: Copy + Ord + Send + Sync + Default + 'static;
    const BITS: u32;
    fn digit(self, shift: u32, mask: u32) -> usize;
    fn invert(self) -> Self;
    fn pair(self, position: u32) -> Self::Pair;
    fn unpair(pair: Self::Pair) -> (Self, u32);
    /// Calls `work` with the thread's two buffers of pairs, whose memory is reused by the next sort.
    fn with_buffers<R>(work: impl FnOnce(&mut [Vec<Self::Pair>; 2]) -> R) -> R;
}

/// Bound: bytes of a buffer that an idle thread caches.
const CACHED_BYTES: usize = 32 << 20;

macro_rules! key {
    ($K:ty, $P:ty) => {
        impl Key for $K {
            type Pair = $P;
            const BITS: u32 = <$K>::BITS;
            #[inline(always)]
            fn digit(self, shift: u32, mask: u32) -> usize {
                (self >> shift) as usize & mask as usize
            }
            #[inline(always)]
            fn invert(self) -> $K {
                !self
            }
            #[inline(always)]
            fn pair(self, position: u32) -> $P {
                (self as $P) << 32 | position as $P
            }
            #[inline(always)]
            fn unpair(pair: $P) -> ($K, u32) {
                ((pair >> 32) as $K, pair as u32)
            }
            fn with_buffers<R>(work: impl FnOnce(&mut [Vec<$P>; 2]) -> R) -> R {
                thread_local! {
                    static CACHE: std::cell::RefCell<[Vec<$P>; 2]> = const { std::cell::RefCell::new([Vec::new(), Vec::new()]) };
                }
                // Removed from the cache, so that a nested sort gets empty ones.
                let mut buffers = CACHE.take();
                let result = work(&mut buffers);
                for buffer in &mut buffers {
                    buffer.clear();
                    if buffer.capacity() * size_of::<$P>() > CACHED_BYTES {
                        *buffer = Vec::new();
                    }
                }
                CACHE.set(buffers);
                result
            }
        }
    };
}
key!(u32, u64);
key!(u64, u128);

/// One of the ten element types.
pub trait Element: Copy + Send + Sync + PartialOrd + 'static {
    const DTYPE: DType;
    const ZERO: Self;
    const ONE: Self;
    /// Lowest and highest value: the infinities for floats.
    const LOWEST: Self;
    const HIGHEST: Self;
    /// Integers sum as `i64`, 16-bit floats as `f32`, the others as `f64`.
    type Acc: Acc;
    type Key: Key;
    fn to_acc(self) -> Self::Acc;
    fn from_acc(acc: Self::Acc) -> Self;
    fn to_i64(self) -> i64;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// Wraps; to `bool` it is `!= 0`.
    fn from_i64(value: i64) -> Self;
    /// Floats round; integers truncate towards zero to `i64` (which saturates) and wrap.
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    fn is_nan(self) -> bool;
    /// Sum, product, minimum and maximum (NaN propagates) in the element's type, rounded once: used by scatters.
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn lower(self, other: Self) -> Self;
    fn upper(self, other: Self) -> Self;
    /// Ascending order: all NaN are equal and last, and -0 equals 0.
    fn key(self) -> Self::Key;
    /// Inverse of `key`, up to the sign of zero and the payload of NaN.
    fn from_key(key: Self::Key) -> Self;
}

/// C's conversion, as PyTorch does it.
#[inline(always)]
pub fn convert<S: Element, D: Element>(value: S) -> D {
    match S::DTYPE {
        DType::F64 => D::from_f64(value.to_f64()),
        DType::F16 | DType::BF16 | DType::F32 => D::from_f32(value.to_f32()),
        _ => D::from_i64(value.to_i64()),
    }
}

macro_rules! integer {
    ($T:ty, $D:ident, $U:ty) => {
        impl Element for $T {
            const DTYPE: DType = DType::$D;
            const ZERO: $T = 0;
            const ONE: $T = 1;
            const LOWEST: $T = <$T>::MIN;
            const HIGHEST: $T = <$T>::MAX;
            type Acc = i64;
            type Key = u32;
            integer!(shared $T);
            #[inline(always)]
            fn key(self) -> u32 {
                (self ^ <$T>::MIN) as $U as u32
            }
            #[inline(always)]
            fn from_key(key: u32) -> $T {
                key as $U as $T ^ <$T>::MIN
            }
        }
    };
    (shared $T:ty) => {
        #[inline(always)]
        fn to_acc(self) -> i64 {
            self as i64
        }
        #[inline(always)]
        fn from_acc(acc: i64) -> $T {
            acc as $T
        }
        #[inline(always)]
        fn to_i64(self) -> i64 {
            self as i64
        }
        #[inline(always)]
        fn to_f32(self) -> f32 {
            self as f32
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self as f64
        }
        #[inline(always)]
        fn from_i64(value: i64) -> $T {
            value as $T
        }
        #[inline(always)]
        fn from_f32(value: f32) -> $T {
            value as i64 as $T
        }
        #[inline(always)]
        fn from_f64(value: f64) -> $T {
            value as i64 as $T
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            false
        }
        #[inline(always)]
        fn plus(self, other: $T) -> $T {
            self.wrapping_add(other)
        }
        #[inline(always)]
        fn times(self, other: $T) -> $T {
            self.wrapping_mul(other)
        }
        #[inline(always)]
        fn lower(self, other: $T) -> $T {
            Ord::min(self, other)
        }
        #[inline(always)]
        fn upper(self, other: $T) -> $T {
            Ord::max(self, other)
        }
    };
}
// Keys of narrow types are in the low bits, so that a radix sort needs only one or two passes.
integer!(u8, U8, u8);
integer!(i8, I8, u8);
integer!(i16, I16, u16);
integer!(i32, I32, u32);

impl Element for i64 {
    const DTYPE: DType = DType::I64;
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const LOWEST: i64 = i64::MIN;
    const HIGHEST: i64 = i64::MAX;
    type Acc = i64;
    type Key = u64;
    integer!(shared i64);
    #[inline(always)]
    fn key(self) -> u64 {
        self as u64 ^ 1 << 63
    }
    #[inline(always)]
    fn from_key(key: u64) -> i64 {
        (key ^ 1 << 63) as i64
    }
}

impl Element for Truth {
    const DTYPE: DType = DType::Bool;
    const ZERO: Truth = Truth(0);
    const ONE: Truth = Truth(1);
    const LOWEST: Truth = Truth(0);
    const HIGHEST: Truth = Truth(1);
    type Acc = i64;
    type Key = u32;
    #[inline(always)]
    fn to_acc(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn from_acc(acc: i64) -> Truth {
        Truth((acc != 0) as u8)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        (self.0 != 0) as u8 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        (self.0 != 0) as u8 as f64
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Truth {
        Truth((value != 0) as u8)
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Truth {
        Truth((value != 0.0) as u8)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Truth {
        Truth((value != 0.0) as u8)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn plus(self, other: Truth) -> Truth {
        Truth(self.0 | other.0)
    }
    #[inline(always)]
    fn times(self, other: Truth) -> Truth {
        Truth(self.0 & other.0)
    }
    #[inline(always)]
    fn lower(self, other: Truth) -> Truth {
        Truth(self.0 & other.0)
    }
    #[inline(always)]
    fn upper(self, other: Truth) -> Truth {
        Truth(self.0 | other.0)
    }
    #[inline(always)]
    fn key(self) -> u32 {
        (self.0 != 0) as u32
    }
    #[inline(always)]
    fn from_key(key: u32) -> Truth {
        Truth((key != 0) as u8)
    }
}

macro_rules! float {
    ($T:ty, $D:ident, $Acc:ty, $Key:ty, $Bits:ty, $wide:expr, $narrow32:expr, $narrow64:expr, $one:expr) => {
        impl Element for $T {
            const DTYPE: DType = DType::$D;
            const ZERO: $T = <$T>::from_bits(0);
            const ONE: $T = $one;
            const LOWEST: $T = <$T>::NEG_INFINITY;
            const HIGHEST: $T = <$T>::INFINITY;
            type Acc = $Acc;
            type Key = $Key;
            #[inline(always)]
            fn to_acc(self) -> $Acc {
                $wide(self) as $Acc
            }
            #[inline(always)]
            fn from_acc(acc: $Acc) -> $T {
                if size_of::<$Acc>() == 4 { $narrow32(acc as f32) } else { $narrow64(acc as f64) }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                $wide(self) as i64
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $wide(self) as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $wide(self) as f64
            }
            #[inline(always)]
            fn from_i64(value: i64) -> $T {
                if size_of::<$T>() == 8 { $narrow64(value as f64) } else { $narrow32(value as f32) }
            }
            #[inline(always)]
            fn from_f32(value: f32) -> $T {
                $narrow32(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> $T {
                $narrow64(value)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$T>::is_nan(self)
            }
            #[inline(always)]
            fn plus(self, other: $T) -> $T {
                self + other
            }
            #[inline(always)]
            fn times(self, other: $T) -> $T {
                self * other
            }
            #[inline(always)]
            fn lower(self, other: $T) -> $T {
                if <$T>::is_nan(self) || self < other { self } else { other }
            }
            #[inline(always)]
            fn upper(self, other: $T) -> $T {
                if <$T>::is_nan(self) || self > other { self } else { other }
            }
            #[inline(always)]
            fn key(self) -> $Key {
                const TOP: $Bits = 1 << (<$Bits>::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits == TOP { 0 } else { bits };
                let ordered = if bits & TOP != 0 { !bits } else { bits | TOP };
                (if <$T>::is_nan(self) { <$Bits>::MAX } else { ordered }) as $Key
            }
            #[inline(always)]
            fn from_key(key: $Key) -> $T {
                const TOP: $Bits = 1 << (<$Bits>::BITS - 1);
                let bits = key as $Bits;
                if bits == <$Bits>::MAX {
                    return <$T>::NAN;
                }
                <$T>::from_bits(if bits & TOP != 0 { bits & !TOP } else { !bits })
            }
        }
    };
}
float!(f16, F16, f32, u32, u16, |x: f16| x.to_f32(), f16::from_f32, |x: f64| f16::from_f32(x as f32), f16::ONE);
float!(bf16, BF16, f32, u32, u16, |x: bf16| x.to_f32(), bf16::from_f32, |x: f64| bf16::from_f32(x as f32), bf16::ONE);
float!(f32, F32, f64, u32, u32, |x: f32| x, |x: f32| x, |x: f64| x as f32, 1.0);
float!(f64, F64, f64, u64, u64, |x: f64| x, |x: f32| x as f64, |x: f64| x, 1.0);

/// The Rust type of each dtype: runs one of three bodies with `$T` as it.
macro_rules! by_category {
    ($dtype:expr, $T:ident => bool: $bool:expr, int: $int:expr, float: $float:expr) => {
        $crate::kernel::host::element::by_category!(
            $dtype, $T,
            Bool = $crate::kernel::host::element::Truth => $bool;
            U8 = u8 => $int;
            I8 = i8 => $int;
            I16 = i16 => $int;
            I32 = i32 => $int;
            I64 = i64 => $int;
            F16 = half::f16 => $float;
            BF16 = half::bf16 => $float;
            F32 = f32 => $float;
            F64 = f64 => $float;
        )
    };
    ($dtype:expr, $T:ident, $($variant:ident = $type:ty => $body:expr;)*) => {
        match $dtype {
            $($crate::base::dtype::DType::$variant => {
                #[allow(dead_code)]
                type $T = $type;
                $body
            })*
            // Invariant: the engine computes complex numbers by their real parts; no node has a complex view.
            $crate::base::dtype::DType::C64 | $crate::base::dtype::DType::C128 => {
                unreachable!("kernels compute complex numbers by their real parts")
            }
        }
    };
}
pub(crate) use by_category;

/// Runs the body with `$T` as the Rust type of the dtype.
macro_rules! by_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::kernel::host::element::by_category!($dtype, $T => bool: $body, int: $body, float: $body)
    };
}
pub(crate) use by_dtype;

/// Runs the first body with `$T` as the Rust type of an integer dtype, or the other body for other dtypes.
macro_rules! by_integer {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::kernel::host::element::by_category!($dtype, $T => bool: $other, int: $body, float: $other)
    };
}
pub(crate) use by_integer;

/// Runs the body with `$T` as the unsigned integer of the dtype's size: for kernels that only move values.
macro_rules! by_size {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size_bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(crate) use by_size;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_cs() {
        assert_eq!(convert::<f32, u8>(300.7), 44);
        assert_eq!(convert::<f32, u8>(-1.0), 255);
        assert_eq!(convert::<f64, i32>(-2.9), -2);
        assert_eq!(convert::<f32, Truth>(f32::NAN), Truth(1));
        assert_eq!(convert::<f32, Truth>(-0.0), Truth(0));
        assert_eq!(convert::<i64, i8>(200), -56);
        assert_eq!(convert::<Truth, f16>(Truth(1)), f16::ONE);
        assert_eq!(convert::<i64, f32>(16777217), 16777216.0);
    }

    #[test]
    fn keys_keep_the_order_and_come_back() {
        let ladder = [f32::NEG_INFINITY, -2.0, -1e-40, 0.0, 1e-40, 1.5, f32::INFINITY, f32::NAN];
        assert!(ladder.windows(2).all(|w| w[0].key() < w[1].key()));
        assert!(ladder.iter().all(|x| f32::from_key(x.key()).total_cmp(x).is_eq()));
        assert_eq!((-0.0f32).key(), 0.0f32.key());
        assert_eq!((-f64::NAN).key(), f64::NAN.key());
        assert!([-128i8, -1, 0, 127].windows(2).all(|w| w[0].key() < w[1].key()));
        assert!([i64::MIN, -1, 0, i64::MAX].windows(2).all(|w| w[0].key() < w[1].key()));
        assert!((i16::MIN..=i16::MAX).all(|x| i16::from_key(x.key()) == x));
        let halves = [f16::NEG_INFINITY, f16::from_f32(-1.0), f16::ZERO, f16::ONE, f16::NAN];
        assert!(halves.windows(2).all(|w| w[0].key() < w[1].key()));
    }
}
