//! Products. Of a sparse matrix and a dense one: the rows of the dense one that the columns name, times the values, added up
//! by row. Gradients flow to both.

use super::form;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::emit::Emit;
use crate::op::rows::indexing::index_select::INDEX_SELECT;
use crate::op::rows::indexing::masks::NONZERO;
use crate::op::rows::ordering::distinct::SEARCHSORTED;
use crate::op::rows::pointwise::arith::{ADD, MUL};
use crate::op::rows::pointwise::blend::CLAMP_MAX;
use crate::op::rows::pointwise::compare::EQ;
use crate::op::rows::reduction::scan::CUMSUM;
use crate::op::rows::shape::copies::REPEAT_INTERLEAVE;
use crate::op::rows::shape::join::STACK;
use crate::op::rows::shape::rearrange::TRANSPOSE;
use crate::op::rows::shape::view::{RESHAPE, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::script::values::sparse::{Noted, Sparse};
use crate::tensor::engine::Engine;
use rhai::Dynamic;

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

/// `beta * mat + alpha * (s @ x)`; a factor of 0 leaves out what may be NaN.
pub fn added(e: &mut Engine, mat: &Tensor, s: &Sparse, x: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Dynamic> {
    let product = left(e, s, x)?;
    let product = e.call_row(&MUL, args![&product, alpha])?;
    if beta.to_f64() == 0.0 {
        return Ok(Dynamic::from(product));
    }
    let mat = e.call_row(&MUL, args![mat, beta])?;
    e.call_row(&ADD, args![&mat, &product]).map(Dynamic::from)
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

/// `a @ b`, sparse: each value of `a` meets those in the row of `b` that its column names. Waits for their number.
pub fn both(e: &mut Engine, a: &Sparse, b: &Sparse) -> Result<Sparse> {
    form::is_matrix(a)?;
    form::is_matrix(b)?;
    if a.size[1] != b.size[0] {
        fail!(SHAPE, "sparse matrices of sizes {:?} and {:?} do not fit", a.size, b.size);
    }
    one_kind(a, &b.values)?;
    let rows = form::csr(e, b)?;
    let starts = rows.crow.clone().expect("rows are compressed");
    let inner = form::places(e, a, 1)?;
    let pick = |e: &mut Engine, from: &Tensor, at: &Tensor| e.call_row(&INDEX_SELECT, args![from, 0, at]);
    let first = pick(e, &starts, &inner)?;
    let after = (e as &mut dyn Emit).add(&inner, Scalar::Int(1))?;
    let after = pick(e, &starts, &after)?;
    let counts = (e as &mut dyn Emit).sub(&after, &first)?;
    let numbers = form::count(e, a.nnz(), &inner)?;
    let entry = e.call_row(&REPEAT_INTERLEAVE, args![&numbers, &counts])?;
    // Where the values of a row of `b` begin, less where those of the entry begin among all pairs.
    let ends = e.call_row(&CUMSUM, args![&counts, 0])?;
    let shift = (e as &mut dyn Emit).sub(&after, &ends)?;
    let pairs = form::count(e, entry.numel(), &inner)?;
    let at = pick(e, &shift, &entry)?;
    let at = (e as &mut dyn Emit).add(&at, &pairs)?;
    let (left, right) = (pick(e, &a.values, &entry)?, pick(e, &rows.values, &at)?);
    let values = (e as &mut dyn Emit).mul(&left, &right)?;
    let (row, column) = (form::places(e, a, 0)?, form::places(e, &rows, 1)?);
    let (row, column) = (pick(e, &row, &entry)?, pick(e, &column, &at)?);
    let indices = e.call_row(&STACK, args![vec![row, column], 0])?;
    let size = vec![a.size[0], b.size[1]];
    let made =
        Sparse { indices, values, size, is_coalesced: false, crow: None, by_columns: false, _noted: Noted::new() };
    match (a.is_csr() && b.is_csr(), a.is_csc() && b.is_csc()) {
        (true, _) => form::csr(e, &made),
        (_, true) => form::csc(e, &made),
        _ => form::coalesce(e, &made),
    }
}

/// `a * b`: what is not zero in both. Waits for the number of places.
pub fn elementwise(e: &mut Engine, a: &Sparse, b: &Sparse) -> Result<Sparse> {
    if a.size != b.size || a.sparse_dims() != b.sparse_dims() {
        fail!(SHAPE, "sparse tensors of sizes {:?} and {:?} cannot be multiplied", a.size, b.size);
    }
    one_kind(a, &b.values)?;
    let (one, other) = (form::coalesce(e, &form::coo(a))?, form::coalesce(e, &form::coo(b))?);
    if other.nnz() == 0 {
        return Ok(other);
    }
    let (mine, theirs) = (form::flat(e, &one)?, form::flat(e, &other)?);
    let at = e.call_row(&SEARCHSORTED, args![&theirs, &mine])?;
    let at = e.call_row(&CLAMP_MAX, args![&at, other.nnz() - 1])?;
    let pick = |e: &mut Engine, from: &Tensor, at: &Tensor| e.call_row(&INDEX_SELECT, args![from, 0, at]);
    let there = pick(e, &theirs, &at)?;
    let there = e.call_row(&EQ, args![&there, &mine])?;
    let found = e.call_row(&NONZERO, args![&there])?;
    let found = e.call_row(&RESHAPE, args![&found, found.shape()[0]])?;
    let at = pick(e, &at, &found)?;
    let (left, right) = (pick(e, &one.values, &found)?, pick(e, &other.values, &at)?);
    let values = (e as &mut dyn Emit).mul(&left, &right)?;
    let indices = e.call_row(&INDEX_SELECT, args![&one.indices, 1, &found])?;
    let made = Sparse { indices, values, ..one };
    match (a.is_csr() && b.is_csr(), a.is_csc() && b.is_csc()) {
        (true, _) => form::csr(e, &made),
        (_, true) => form::csc(e, &made),
        _ => Ok(made),
    }
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
