//! Structs that a launch passes by value: one definition makes the Rust struct and the CUDA struct.
//!
//! ```text
//! structs! {
//!     pub static ARGS = "softmax/args.cuh";
//!     /// What a launch passes.
//!     struct Args { input: const T, y: mut T, rows: usize, stride: [i64; 3], eps: f64, }
//! }
//! ```
//!
//! is a `#[repr(C)] struct Args` of addresses and numbers, and a text that `#include "softmax/args.cuh"` brings:
//! `struct Args { const T* input; T* y; ts_i64 rows; ts_i64 stride[3]; double eps; };`. The text that includes it
//! defines the types that it names (`T`). Every field is made of 64-bit words, so that both compilers lay it out alike;
//! a test compares the two (`tests/it/cuda_host`).

/// The generated CUDA header of some structs.
pub struct Structs {
    /// The header's name in `#include`.
    pub header: &'static str,
    /// The header's text, in parts.
    pub parts: &'static [&'static str],
    pub layouts: &'static [Layout],
}

/// The layout of a struct in Rust.
pub struct Layout {
    pub name: &'static str,
    pub bytes: usize,
    /// Names and offsets in bytes.
    pub fields: &'static [(&'static str, usize)],
}

/// The types of fields.
///
/// # Safety
/// Its bytes are 64-bit words without padding, and all of them may be 0.
pub unsafe trait Words: Copy {}

// SAFETY: one word.
unsafe impl Words for i64 {}
// SAFETY: one word.
unsafe impl Words for u64 {}
// SAFETY: one word.
unsafe impl Words for f64 {}
// SAFETY: one word (`structs!` refuses to compile elsewhere).
unsafe impl Words for usize {}
// SAFETY: one word (`structs!` refuses to compile elsewhere).
unsafe impl Words for isize {}
// SAFETY: one word, which is only compared and passed on.
unsafe impl Words for *const u8 {}
// SAFETY: one word, which is only compared and passed on.
unsafe impl Words for *mut u8 {}
// SAFETY: elements lie side by side.
unsafe impl<T: Words, const N: usize> Words for [T; N] {}

/// Makes structs for both sides, and a static of [`Structs`]. `, NAME = number` after the header makes a constant of both.
macro_rules! structs {
    (
        $vis:vis static $NAME:ident = $header:literal $(, $constant:ident = $value:literal)*;
        $($(#[$meta:meta])* $svis:vis struct $S:ident { $($fields:tt)* })*
    ) => {
        $(pub const $constant: usize = $value;)*
        $($crate::kernel::structs::field! { [$(#[$meta])* $svis $S] {} {} {} $($fields)* })*

        #[cfg(feature = "cuda")]
        $vis static $NAME: $crate::kernel::structs::Structs = $crate::kernel::structs::Structs {
            header: $header,
            parts: &[
                $(concat!("enum { ", stringify!($constant), " = ", stringify!($value), " };\n"),)*
                $($S::TEXT),*
            ],
            layouts: &[$($S::LAYOUT),*],
        };
    };
}
pub(crate) use structs;

/// Takes one field after the other; collects the Rust fields, the CUDA text and the names.
macro_rules! field {
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: const $t:ident, $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: (*const u8),} {$($c)* "const ", $crate::kernel::structs::cuda!($t), "* ", stringify!($f), ";\n",} {$($n)* $f} $($rest)* }
    };
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: mut $t:ident, $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: (*mut u8),} {$($c)* $crate::kernel::structs::cuda!($t), "* ", stringify!($f), ";\n",} {$($n)* $f} $($rest)* }
    };
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: [const $t:ident; $l:expr], $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: ([*const u8; $l]),}
            {$($c)* "const ", $crate::kernel::structs::cuda!($t), "* ", stringify!($f), "[", stringify!($l), "];\n",} {$($n)* $f} $($rest)* }
    };
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: [[$t:ident; $l:expr]; $k:expr], $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: ([[$t; $l]; $k]),}
            {$($c)* $crate::kernel::structs::cuda!($t), " ", stringify!($f), "[", stringify!($k), "][", stringify!($l), "];\n",}
            {$($n)* $f} $($rest)* }
    };
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: [$t:ident; $l:expr], $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: ([$t; $l]),}
            {$($c)* $crate::kernel::structs::cuda!($t), " ", stringify!($f), "[", stringify!($l), "];\n",} {$($n)* $f} $($rest)* }
    };
    ($head:tt {$($r:tt)*} {$($c:tt)*} {$($n:tt)*} $(#[$d:meta])* $f:ident: $t:ident, $($rest:tt)*) => {
        $crate::kernel::structs::field! { $head
            {$($r)* $(#[$d])* $f: ($t),} {$($c)* $crate::kernel::structs::cuda!($t), " ", stringify!($f), ";\n",} {$($n)* $f} $($rest)* }
    };
    (
        [$(#[$meta:meta])* $svis:vis $S:ident]
        {$($(#[$d:meta])* $f:ident: ($t:ty),)*} {$($c:tt)*} {$($n:ident)*} $(,)?
    ) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        $svis struct $S {
            $($(#[$d])* $svis $f: $t,)*
        }

        // SAFETY: its fields are of 64-bit words without padding (the constant below), and so is the struct.
        unsafe impl $crate::kernel::structs::Words for $S {}

        const _: () = {
            const fn words<T: $crate::kernel::structs::Words>() -> usize {
                size_of::<T>()
            }
            assert!(size_of::<usize>() == 8 && align_of::<$S>() == 8 && size_of::<$S>() == 0 $(+ words::<$t>())*);
        };

        #[cfg(feature = "cuda")]
        impl $S {
            const TEXT: &str = concat!("struct ", stringify!($S), " {\n", $($c)* "};\n");
            const LAYOUT: $crate::kernel::structs::Layout = $crate::kernel::structs::Layout {
                name: stringify!($S),
                bytes: size_of::<$S>(),
                fields: &[$((stringify!($n), std::mem::offset_of!($S, $n))),*],
            };
            /// Null and 0 throughout.
            // SAFETY: all words of a `Words` may be 0.
            #[allow(dead_code)]
            $svis const NONE: $S = unsafe { std::mem::zeroed() };

            #[allow(dead_code)]
            $svis fn words(&self) -> &[u64] {
                // SAFETY: a `Words` is made of 64-bit words without padding; they live as long as the struct.
                unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<$S>() / 8) }
            }
        }
    };
}
pub(crate) use field;

/// The CUDA name of a type.
#[cfg(feature = "cuda")]
macro_rules! cuda {
    (i64) => {
        "ts_i64"
    };
    (usize) => {
        "ts_i64"
    };
    (isize) => {
        "ts_i64"
    };
    (u64) => {
        "ts_u64"
    };
    (f64) => {
        "double"
    };
    (f32) => {
        "float"
    };
    (i32) => {
        "ts_i32"
    };
    (u32) => {
        "ts_u32"
    };
    (u8) => {
        "ts_u8"
    };
    ($t:ident) => {
        stringify!($t)
    };
}
#[cfg(feature = "cuda")]
pub(crate) use cuda;
