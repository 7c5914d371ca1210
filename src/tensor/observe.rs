//! Observation points, where a value must be known: reading, printing, `item`.

use crate::base::bytes::element;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::op::tensor::{Tensor, View};
use crate::sched::runtime::Runtime;
use std::sync::Arc;

/// Waits for everything that a tensor depends on; raises the fault that reached it.
pub fn settle(rt: &Runtime, tensor: &Tensor) -> Result<Arc<View>> {
    if tensor.samples().is_some() {
        return Err(super::batch::needs_value(tensor));
    }
    let view = tensor.view();
    rt.settle(&view)?;
    Ok(view)
}

/// All elements, row-major, as bytes of the tensor's dtype.
pub fn bytes(rt: &Runtime, tensor: &Tensor) -> Result<Vec<u8>> {
    let view = settle(rt, tensor)?;
    rt.host_room(view.layout.numel().saturating_mul(view.dtype.size_bytes()))?;
    rt.download(&view.as_real())
}

/// All elements, row-major.
pub fn scalars(rt: &Runtime, tensor: &Tensor) -> Result<Vec<Scalar>> {
    one_number(tensor)?;
    // The bytes, the values, and the script's own.
    rt.host_room(tensor.numel().saturating_mul(40))?;
    let bytes = bytes(rt, tensor)?;
    let dtype = tensor.dtype();
    Ok(bytes.chunks_exact(dtype.size_bytes()).map(|chunk| element(chunk, dtype)).collect())
}

/// The single element of a tensor as a number.
pub fn item(rt: &Runtime, tensor: &Tensor) -> Result<Scalar> {
    let n = tensor.numel();
    if n != 1 {
        return Err(Diag::error(code::SHAPE, format!("a tensor of {n} elements is not one number"))
            .help("reduce it first, for example with `.sum()`, or index one element"));
    }
    one_number(tensor)?;
    let view = settle(rt, tensor)?;
    Ok(element(&rt.peek_bytes(&view, view.layout.offset), view.dtype))
}

/// A complex number is a tensor; here a plain number is meant.
fn one_number(tensor: &Tensor) -> Result<()> {
    if !tensor.dtype().is_complex() {
        return Ok(());
    }
    let text = format!("an element of a {} tensor is not one number", tensor.dtype());
    Err(Diag::error(code::DTYPE, text).help("read its parts, `z.real` and `z.imag`, or both by `view_as_real(z)`"))
}

/// The truth value of a tensor as a condition.
pub fn truth(rt: &Runtime, tensor: &Tensor) -> Result<bool> {
    let n = tensor.numel();
    if n != 1 {
        let diag = Diag::error(code::TRUTH, format!("the truth of a tensor with {n} elements is ambiguous"));
        return Err(diag.help("use `.any()` or `.all()`; masks combine element by element by `&`, `|` and `!`"));
    }
    if tensor.dtype().is_complex() {
        let (bytes, real) = (bytes(rt, tensor)?, tensor.dtype().real_part());
        return Ok(bytes.chunks_exact(real.size_bytes()).any(|part| !element(part, real).is_zero()));
    }
    item(rt, tensor).map(|value| !value.is_zero())
}
