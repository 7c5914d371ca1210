//! Products of a sparse matrix and a dense one: the rows of the dense one that the columns name, times the values, added up
//! by row. Gradients flow to both.

use super::form;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::emit::Emit;
use crate::op::rows::indexing::index_select::INDEX_SELECT;
use crate::op::rows::shape::rearrange::TRANSPOSE;
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::op::tensor::Tensor;
use crate::script::values::sparse::Sparse;
use crate::tensor::engine::Engine;

/// `s @ x`, where `x` is `[k]` or `[k, n]`.
pub fn left(e: &mut Engine, s: &Sparse, x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    if s.sparse_dims() != 2 || s.size.len() != 2 || !matches!(shape.len(), 1 | 2) || shape[0] != s.size[1] {
        let text = format!("shapes {:?} and {:?} do not fit", s.size, shape.as_slice());
        return Err(Diag::error(code::SHAPE, text).help("a sparse [m, k] is multiplied by a dense [k] or [k, n]"));
    }
    one_kind(s, x)?;
    let (rows, columns) = (form::places(e, s, 0)?, form::places(e, s, 1)?);
    let taken = e.call_row(&INDEX_SELECT, args![x, 0, &columns])?;
    let values = if shape.len() == 2 { e.call_row(&UNSQUEEZE, args![&s.values, 1])? } else { s.values.clone() };
    let parts = (e as &mut dyn Emit).mul(&taken, &values)?;
    form::spread(e, s.size[0], &rows, &parts)
}

/// `x @ s`, where `x` is `[k]` or `[n, k]`.
pub fn right(e: &mut Engine, x: &Tensor, s: &Sparse) -> Result<Tensor> {
    let turned = form::transpose(e, &form::coo(s))?;
    if x.ndim() != 2 {
        return left(e, &turned, x);
    }
    let columns = e.call_row(&TRANSPOSE, args![x, 0, 1])?;
    let product = left(e, &turned, &columns)?;
    e.call_row(&TRANSPOSE, args![&product, 0, 1])
}

/// One dtype and one device.
pub fn one_kind(s: &Sparse, x: &Tensor) -> Result<()> {
    if s.values.device() != x.device() {
        fail!(DEVICE_MISMATCH, "the sparse tensor is on {}, the other on {}", s.values.device(), x.device());
    }
    if s.values.dtype() != x.dtype() {
        fail!(DTYPE, "the sparse tensor has dtype {}, the other {}", s.values.dtype(), x.dtype());
    }
    Ok(())
}
