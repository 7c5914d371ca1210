//! Shared by convolutions and pooling: one integer or one for each spatial dim, missing batch dims, sizes of windows.
//! Independent of any operation.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::op::args::{ABSENT, Args};
use crate::op::emit::Emit;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;

/// An argument that is one integer for all `n` spatial dims, or one for each; none of them below `least`.
pub fn tuple(a: &Args, at: usize, n: usize, name: &str, least: i64) -> Result<Ints> {
    let given = a.ints(at).unwrap_or_default();
    let values: Ints = match given.len() {
        1 => Ints::from_elem(given[0], n),
        len if len == n => given,
        len => fail!(VALUE, "`{name}` has {len} numbers; one, or one for each of {n} dimensions, is expected"),
    };
    if let Some(bad) = values.iter().find(|&&value| value < least) {
        fail!(VALUE, "`{name}` must be at least {least}, not {bad}");
    }
    // Bound: products of such numbers with sizes stay inside i64.
    if let Some(bad) = values.iter().find(|&&value| value > i32::MAX as i64) {
        fail!(VALUE, "`{name}` is too large: {bad}");
    }
    Ok(values)
}

/// As `tuple`, with another argument's values where it is absent or an empty list.
pub fn tuple_or(a: &Args, at: usize, n: usize, name: &str, least: i64, default: &Ints) -> Result<Ints> {
    match a.ints(at) {
        None => Ok(default.clone()),
        Some(list) if list.is_empty() => Ok(default.clone()),
        Some(_) => tuple(a, at, n, name, least),
    }
}

/// Output sizes of which some may be `()`: those stay as they are in `from`.
pub fn sizes_or_own(a: &Args, at: usize, from: &[usize], name: &str) -> Result<Shape> {
    let given = a.ints(at).unwrap_or_default();
    let n = from.len();
    if given.len() != 1 && given.len() != n {
        fail!(VALUE, "`{name}` has {} numbers; one, or one for each of {n} dimensions, is expected", given.len());
    }
    (0..n)
        .map(|dim| match given[dim.min(given.len() - 1)] {
            ABSENT => Ok(from[dim]),
            size if size < 0 => fail!(VALUE, "`{name}` must not be negative, not {size}"),
            size => Ok(size as usize),
        })
        .collect()
}

/// The sizes of the spatial dims, as integers.
pub fn spatial(x: &Tensor, n: usize) -> Ints {
    let shape = x.shape();
    shape[shape.len() - n..].iter().map(|&size| size as i64).collect()
}

/// `[C, d..]` as `[1, C, d..]`; `[N, C, d..]` as it is. The flag says which.
pub fn batched(e: &mut dyn Emit, x: &Tensor, n: usize) -> Result<(Tensor, bool)> {
    let shape = x.shape();
    if shape.len() == n + 2 {
        return Ok((x.clone(), true));
    }
    if shape.len() != n + 1 {
        fail!(
            SHAPE,
            "`input` must have {} dimensions, or {} without a batch; it has shape {:?}",
            n + 2,
            n + 1,
            shape.as_slice()
        );
    }
    let mut with = Shape::from_slice(&[1]);
    with.extend_from_slice(&shape);
    Ok((e.call(&RESHAPE, args![x, with.as_slice()])?, false))
}

/// Undoes `batched`.
pub fn unbatched(e: &mut dyn Emit, y: Tensor, was_batched: bool) -> Result<Tensor> {
    if was_batched {
        return Ok(y);
    }
    let shape = y.shape();
    e.call(&RESHAPE, args![&y, &shape[1..]])
}

/// The number of windows; with `ceil`, one that extends over the end counts if it starts inside.
pub fn window_count(size: i64, kernel: i64, stride: i64, padding: i64, dilation: i64, ceil: bool) -> i64 {
    let room = size + 2 * padding - dilation * (kernel - 1) - 1;
    let mut count = (room + if ceil { stride - 1 } else { 0 }).div_euclid(stride) + 1;
    if ceil && (count - 1) * stride >= size + padding {
        count -= 1;
    }
    count
}

/// Runs a float kernel for integers through f64 (exact up to 2^53): returns the operand to use.
pub fn as_float(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => fail!(DTYPE, "bool tensors are not supported"),
        dtype if dtype.is_inexact() => Ok(x.clone()),
        _ => e.cast(x, DType::F64),
    }
}

/// Refuses what is not floating-point.
pub fn float_only(x: &Tensor, name: &str) -> Result<()> {
    if x.dtype().is_inexact() {
        return Ok(());
    }
    Err(crate::base::diag::Diag::error(
        crate::base::code::DTYPE,
        format!("`{name}` must be floating-point, not {}", x.dtype()),
    )
    .help("convert first, for example with `.float()`"))
}
