//! Functions of floats by the names that scripts have for them, as in Python's `math`.

use crate::base::arithmetic;
use std::cmp::Ordering;

pub type Function = fn(f64) -> f64;

/// Functions of floats; an integer is converted. `log` is the natural logarithm, as for tensors.
pub const FUNCTIONS: &[(&str, Function)] = &[
    ("sqrt", f64::sqrt),
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("expm1", f64::exp_m1),
    ("log", f64::ln),
    ("ln", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("tanh", f64::tanh),
    ("asinh", f64::asinh),
    ("acosh", f64::acosh),
    ("atanh", f64::atanh),
    ("float", |x| x),
];

/// Functions that leave an integer unchanged, as for integer tensors.
pub const ROUNDINGS: &[(&str, Function)] =
    &[("ceil", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc), ("round", f64::round_ties_even)];

pub type Question = fn(f64) -> bool;

/// Predicates of floats; an integer is converted.
pub const QUESTIONS: &[(&str, Question)] =
    &[("isnan", f64::is_nan), ("isinf", f64::is_infinite), ("isfinite", f64::is_finite)];

/// The larger or the smaller of two floats. NaN in either place gives NaN, as for tensors.
pub fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }
}

pub fn smaller(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }
}

/// Whether the larger (`Greater`) or smaller (`Less`) of an integer and a float is the integer, as it is; `if_equal` where the
/// two are the same. NaN goes before any number.
pub fn extreme_is_int(int: i64, float: f64, wanted: Ordering, if_equal: bool) -> bool {
    match arithmetic::compare(int, float) {
        Some(Ordering::Equal) => if_equal,
        order => order == Some(wanted),
    }
}
