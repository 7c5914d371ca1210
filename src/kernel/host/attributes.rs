//! Attributes of a call, read as the types that the kernel's contract states.
//!
//! Rows of the op table have checked them already. A wrong type is a bug of this crate: debug builds panic, release
//! builds read zero.

use crate::base::attr::Attr;
use crate::kernel::abi::Call;

#[cold]
fn wrong(attr: &Attr, wanted: &str) {
    debug_assert!(false, "{attr:?} is not {wanted}");
}

/// A signed number: dims, ignored labels.
pub fn int(call: &Call<'_>, i: usize) -> i64 {
    match &call.attrs[i] {
        Attr::Int(x) => *x,
        other => {
            wrong(other, "an integer");
            0
        }
    }
}

/// A count.
pub fn size(call: &Call<'_>, i: usize) -> usize {
    int(call, i).max(0) as usize
}

pub fn float(call: &Call<'_>, i: usize) -> f64 {
    float_or_none(call, i).unwrap_or_else(|| {
        wrong(&call.attrs[i], "a float");
        0.0
    })
}

pub fn float_or_none(call: &Call<'_>, i: usize) -> Option<f64> {
    match &call.attrs[i] {
        Attr::Float(x) => Some(*x),
        Attr::Int(x) => Some(*x as f64),
        Attr::Scalar(x) => Some(x.to_f64()),
        Attr::None => None,
        other => {
            wrong(other, "a float");
            None
        }
    }
}

pub fn flag(call: &Call<'_>, i: usize) -> bool {
    match &call.attrs[i] {
        Attr::Bool(x) => *x,
        other => {
            wrong(other, "a bool");
            false
        }
    }
}

pub fn ints<'a>(call: &'a Call<'_>, i: usize) -> &'a [i64] {
    match &call.attrs[i] {
        Attr::Ints(xs) => xs,
        other => {
            wrong(other, "integers");
            &[]
        }
    }
}

pub fn text<'a>(call: &'a Call<'_>, i: usize) -> &'a str {
    match &call.attrs[i] {
        Attr::Str(x) => x,
        other => {
            wrong(other, "a string");
            ""
        }
    }
}
