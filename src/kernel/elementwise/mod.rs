//! The element-wise functions: arithmetic once as Rust, once as CUDA text.
//!
//! Knows nothing of shapes, broadcasting or promotion: a function sees tiles of equal length whose classes
//! its variants name. Comparison functions give `Class::Bool`. Integers wrap; dividing them by zero gives 0
//! (the program reports the fault with `Check`).

// One body is used for f32 and f64, so constants have the digits of f64, and those of `std` cannot be used.
#![allow(clippy::excessive_precision, clippy::approx_constant)]

mod activation;
mod arith;
mod compare;
mod numbers;
mod special;
mod unary;

pub use activation::*;
pub use arith::*;
pub use compare::*;
pub use numbers::of_numbers;
pub use special::*;
pub use unary::*;

use super::math::{Math, QUOTIENT_LIMIT, TRIG_LIMIT, vector};
use crate::kernel::host::simd;
use crate::kernel::host::simd::Simd;
use crate::kernel::program::{Class, Function, TileFn, Variant};

/// One variant: `variant!((a: F32) -> Bool = a.is_nan() as u8)`. The body may name the machine level `S`.
macro_rules! variant {
    (($($arg:ident: $A:ident),*) -> $O:ident = $body:expr) => {
        Variant {
            args: &[$(Class::$A),*],
            out: Class::$O,
            tiles: {
                const TILES: [TileFn; 3] = simd::tile!(<S> ($($arg: $A),*) -> $O = $body);
                TILES
            },
        }
    };
}

/// As `variant`, for integers, truth values and f64, which take half of the code so: AVX-512 runs what is compiled for AVX2.
macro_rules! narrower {
    ($($form:tt)*) => {{
        const OF_LEVELS: Variant = variant!($($form)*);
        Variant { tiles: simd::without_highest(OF_LEVELS.tiles), ..OF_LEVELS }
    }};
}

/// As `variant`, for what few elements are computed with: every level runs what is compiled for the baseline.
macro_rules! few {
    ($($form:tt)*) => {{
        const OF_LEVELS: Variant = variant!($($form)*);
        Variant { tiles: [OF_LEVELS.tiles[2]; 3], ..OF_LEVELS }
    }};
}

/// The class of any argument of a function over vectors.
macro_rules! class_of {
    ($a:ident) => {
        Class::F32
    };
}

/// Variants from clauses: `float(a, b) = body` is F32 and F64 (with `, f32: path`, a function over
/// vectors is F32's), `int` is I64, `bool` is Bool; `few` floats of which there are few; `floattest` gives
/// Bool from floats, `never` false from integers and `bool`, `test` from any class; `trig(a) = fast, slow` has a slow form for huge arguments,
/// `single(a) = path, function` has a path for f32 without branches and a function of f64 for the rest;
/// `quotient(a, b) = fast, slow`, of f32 only, one for huge quotients; `division(a, b) = fast, slow`, of integers, computes small
/// ones as f64; or one combination is written out.
macro_rules! variants {
    (@ [$($done:tt)*]) => { &[$($done)*] };
    (@ [$($done:tt)*] float($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            variant!(($($a: F32),*) -> F32 = $body),
            narrower!(($($a: F64),*) -> F64 = $body),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] float($($a:ident),*) = $body:expr, f32: $fast:path; $($rest:tt)*) => {
        variants!(@ [$($done)*
            Variant { args: &[$(class_of!($a)),*], out: Class::F32, tiles: {
                const ALL: [TileFn; 3] = simd::tile_f32!(<V> ($($a),*) = $fast($($a),*));
                // The baseline has no vectors of that width.
                const PLAIN: [TileFn; 3] = simd::tile!(<S> ($($a: F32),*) -> F32 = $body);
                const TILES: [TileFn; 3] = [ALL[0], ALL[1], PLAIN[2]];
                TILES
            } },
            narrower!(($($a: F64),*) -> F64 = $body),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] few($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            few!(($($a: F32),*) -> F32 = $body),
            few!(($($a: F64),*) -> F64 = $body),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] trig($a:ident) = $body:expr, $slow:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            Variant { args: &[Class::F32], out: Class::F32, tiles: {
                const TILES: [TileFn; 3] = simd::tile_below!(<S> (TRIG_LIMIT) ($a: F32) -> F32 = $body, $slow);
                TILES
            } },
            Variant { args: &[Class::F64], out: Class::F64, tiles: {
                const ALL: [TileFn; 3] = simd::tile_below!(<S> (TRIG_LIMIT) ($a: F64) -> F64 = $body, $slow);
                const TILES: [TileFn; 3] = simd::without_highest(ALL);
                TILES
            } },
        ] $($rest)*)
    };
    // AVX-512 runs what is compiled for AVX2, and the baseline, where such loops do not become vectors, the function of
    // f64: the rarer functions take a third of the code.
    (@ [$($done:tt)*] single($a:ident) = $fast:path, $plain:path; $($rest:tt)*) => {
        variants!(@ [$($done)*
            Variant { args: &[Class::F32], out: Class::F32, tiles: {
                const ALL: [TileFn; 3] = simd::tile!(<S> ($a: F32) -> F32 = {
                    use $fast as fast;
                    if S::LEVEL == simd::Portable::LEVEL { $plain($a as f64) as f32 } else { fast::<S>($a) }
                });
                const TILES: [TileFn; 3] = [ALL[1], ALL[1], ALL[2]];
                TILES
            } },
            narrower!(($a: F64) -> F64 = $plain($a)),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] quotient($a:ident, $b:ident) = $body:expr, $slow:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            Variant { args: &[Class::F32, Class::F32], out: Class::F32, tiles: {
                const TILES: [TileFn; 3] = simd::tile_quotients!(<S> (QUOTIENT_LIMIT) ($a, $b) = $body, $slow);
                TILES
            } },
        ] $($rest)*)
    };
    (@ [$($done:tt)*] division($a:ident, $b:ident) = $body:expr, $slow:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            Variant { args: &[Class::I64, Class::I64], out: Class::I64, tiles: {
                const TILES: [TileFn; 3] = simd::tile_division!(<S> ($a, $b) = $body, $slow);
                TILES
            } },
        ] $($rest)*)
    };
    (@ [$($done:tt)*] int($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)* narrower!(($($a: I64),*) -> I64 = $body),] $($rest)*)
    };
    (@ [$($done:tt)*] bool($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)* narrower!(($($a: Bool),*) -> Bool = $body),] $($rest)*)
    };
    (@ [$($done:tt)*] floattest($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            variant!(($($a: F32),*) -> Bool = ($body) as u8),
            narrower!(($($a: F64),*) -> Bool = ($body) as u8),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] never($a:ident); $($rest:tt)*) => {
        variants!(@ [$($done)*
            narrower!(($a: I64) -> Bool = { let _ = $a; 0 }),
            narrower!(($a: Bool) -> Bool = { let _ = $a; 0 }),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] test($($a:ident),*) = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)*
            variant!(($($a: F32),*) -> Bool = ($body) as u8),
            narrower!(($($a: F64),*) -> Bool = ($body) as u8),
            narrower!(($($a: I64),*) -> Bool = ($body) as u8),
            narrower!(($($a: Bool),*) -> Bool = ($body) as u8),
        ] $($rest)*)
    };
    (@ [$($done:tt)*] ($($a:ident: $A:ident),*) -> $O:ident = $body:expr; $($rest:tt)*) => {
        variants!(@ [$($done)* variant!(($($a: $A),*) -> $O = $body),] $($rest)*)
    };
}

/// `functions! { NAME "name" "cuda" { clauses } ... }`: one `pub static` each.
macro_rules! functions {
    (@check) => { None };
    (@narrow) => { None };
    (@narrow $a:ident $b:ident $c:ident) => { Some(&[&$a, &$b, &$c]) };
    (@check $arg:literal $check:ident) => { Some(($arg, $crate::kernel::program::Check::$check)) };
    ($($(#[$meta:meta])* $NAME:ident $name:literal $cuda:literal
        $(where $arg:literal is $check:ident)? $(narrow $a:ident $b:ident $c:ident)? { $($clauses:tt)* })*) => {
        $(
            $(#[$meta])*
            pub static $NAME: Function =
                Function {
                    name: $name,
                    cuda: $cuda,
                    check: functions!(@check $($arg $check)?),
                    variants: variants!(@ [] $($clauses)*),
                    narrow: functions!(@narrow $($a $b $c)?),
                };
        )*
        /// Every function of this file.
        pub(super) static ALL: &[&Function] = &[$(&$NAME),*];
    };
}

use {class_of, few, functions, narrower, variant, variants};

/// Whether a value counts as true: anything but zero, so NaN too.
#[inline(always)]
fn truth<T: Default + PartialEq>(x: T) -> bool {
    x != T::default()
}

/// Every function, for tests and for the list of CUDA helpers.
pub fn all() -> impl Iterator<Item = &'static Function> {
    [activation::ALL, arith::ALL, compare::ALL, special::ALL, unary::ALL].into_iter().flatten().copied()
}
