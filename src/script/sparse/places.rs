//! Operations that move places: elements and slices, picked ones, several tensors beside each other.

use super::form;
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::Source;
use crate::op::rows::indexing::index_select::INDEX_SELECT;
use crate::op::rows::indexing::masks::NONZERO;
use crate::op::rows::ordering::distinct::SEARCHSORTED;
use crate::op::rows::ordering::sort::SORT;
use crate::op::rows::pointwise::compare::EQ;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::reduction::scan::CUMSUM;
use crate::op::rows::shape::copies::REPEAT_INTERLEAVE;
use crate::op::rows::shape::join::{CAT, STACK};
use crate::op::rows::shape::view::{RESHAPE, SELECT, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::script::values::sparse::{Noted, Sparse};
use crate::tensor::engine::Engine;
use rhai::Dynamic;

fn pick(e: &mut Engine, from: &Tensor, dim: i64, at: &Tensor) -> Result<Tensor> {
    e.call_row(&INDEX_SELECT, args![from, dim, at])
}

/// The same with other places, values and size.
fn made(indices: Tensor, values: Tensor, size: Vec<usize>, is_coalesced: bool) -> Sparse {
    Sparse { indices, values, size, is_coalesced, crow: None, by_columns: false, _noted: Noted::new() }
}

/// The rows of the indices but that of `dim`.
fn others(e: &mut Engine, s: &Sparse, dim: usize) -> Result<Vec<Tensor>> {
    (0..s.sparse_dims()).filter(|other| *other != dim).map(|other| form::places(e, s, other)).collect()
}

fn size_without(s: &Sparse, dim: usize) -> Vec<usize> {
    (0..s.size.len()).filter(|other| *other != dim).map(|other| s.size[other]).collect()
}

/// `s[i]`, or of another dim; dense where no sparse dim is left. Waits for the number of its values.
pub fn select(e: &mut Engine, s: &Sparse, dim: i64, index: i64) -> Result<Dynamic> {
    let dim = infer::dim(dim, s.size.len())?;
    let at = if index < 0 { index + s.size[dim] as i64 } else { index };
    if at < 0 || at >= s.size[dim] as i64 {
        fail!(INDEX, "index {index} is out of range for dimension {dim} of size {}", s.size[dim]);
    }
    let size = size_without(s, dim);
    if dim >= s.sparse_dims() {
        let values = e.call_row(&SELECT, args![&s.values, (dim - s.sparse_dims() + 1) as i64, at])?;
        return Ok(Dynamic::from(made(s.indices.clone(), values, size, s.is_coalesced)));
    }
    let places = form::places(e, s, dim)?;
    let there = e.call_row(&EQ, args![&places, Scalar::Int(at)])?;
    let found = e.call_row(&NONZERO, args![&there])?;
    let found = e.call_row(&RESHAPE, args![&found, found.shape()[0]])?;
    let values = pick(e, &s.values, 0, &found)?;
    if s.sparse_dims() == 1 {
        return e.call_row(&SUM, args![&values, [0i64].as_slice()]).map(Dynamic::from);
    }
    let rows = others(e, s, dim)?;
    let rows = e.call_row(&STACK, args![rows, 0])?;
    let indices = pick(e, &rows, 1, &found)?;
    Ok(Dynamic::from(made(indices, values, size, s.is_coalesced)))
}

/// `index_select(s, dim, index)`. Waits for the number of values.
pub fn index_select(e: &mut Engine, s: &Sparse, dim: i64, index: &Tensor) -> Result<Sparse> {
    let dim = infer::dim(dim, s.size.len())?;
    if index.ndim() > 1 || !index.dtype().is_int() {
        fail!(DTYPE, "the index has integers in one dimension, not {} of shape {:?}", index.dtype(), index.shape());
    }
    let count = index.numel();
    let index = e.call_row(&RESHAPE, args![index, [count].as_slice()])?;
    let mut size = s.size.clone();
    size[dim] = count;
    if dim >= s.sparse_dims() {
        let values = pick(e, &s.values, (dim - s.sparse_dims() + 1) as i64, &index)?;
        return Ok(made(s.indices.clone(), values, size, s.is_coalesced));
    }
    let all = form::count(e, s.size[dim], &index)?;
    // What is no place of this dim is an error of this call.
    let index = pick(e, &all, 0, &index)?;
    let found = e.apply(&SORT, args![&index])?;
    let places = form::places(e, s, dim)?;
    // Each value comes once for each time that its place is asked for.
    let first = e.call_row(&SEARCHSORTED, args![&found[0], &places])?;
    let after = e.call_row(&SEARCHSORTED, args![&found[0], &places, false, true])?;
    let counts = (e as &mut dyn Emit).sub(&after, &first)?;
    let numbers = form::count(e, s.nnz(), &places)?;
    let entry = e.call_row(&REPEAT_INTERLEAVE, args![&numbers, &counts])?;
    let ends = e.call_row(&CUMSUM, args![&counts, 0])?;
    let shift = (e as &mut dyn Emit).sub(&after, &ends)?;
    let pairs = form::count(e, entry.numel(), &places)?;
    let at = pick(e, &shift, 0, &entry)?;
    let at = (e as &mut dyn Emit).add(&at, &pairs)?;
    let new = pick(e, &found[1], 0, &at)?;
    let mut rows = Vec::new();
    for other in 0..s.sparse_dims() {
        let row = form::places(e, s, other)?;
        rows.push(if other == dim { new.clone() } else { pick(e, &row, 0, &entry)? });
    }
    let indices = e.call_row(&STACK, args![rows, 0])?;
    let values = pick(e, &s.values, 0, &entry)?;
    form::coalesce(e, &made(indices, values, size, false))
}

/// A dim of size 1 among the sparse ones, or behind them.
pub fn unsqueeze(e: &mut Engine, s: &Sparse, dim: i64) -> Result<Sparse> {
    let dim = infer::dim(dim, s.size.len() + 1)?;
    let mut size = s.size.clone();
    size.insert(dim, 1);
    if dim > s.sparse_dims() {
        let values = e.call_row(&UNSQUEEZE, args![&s.values, (dim - s.sparse_dims() + 1) as i64])?;
        return Ok(made(s.indices.clone(), values, size, s.is_coalesced));
    }
    let mut rows = (0..s.sparse_dims()).map(|dim| form::places(e, s, dim)).collect::<Result<Vec<_>>>()?;
    rows.insert(dim, e.source(Source::Fill(Scalar::Int(0)), &[s.nnz()], s.indices.dtype(), s.indices.device())?);
    let indices = e.call_row(&STACK, args![rows, 0])?;
    Ok(made(indices, s.values.clone(), size, s.is_coalesced))
}

/// `cat([s, t], dim)`, along a sparse dim.
pub fn cat(e: &mut Engine, all: &[Sparse], dim: i64) -> Result<Sparse> {
    let Some(first) = all.first() else { fail!(VALUE, "there is nothing to put together") };
    let dim = infer::dim(dim, first.size.len())?;
    if dim >= first.sparse_dims() {
        fail!(VALUE, "sparse tensors are put together along a sparse dimension, and {dim} is a dense one");
    }
    let (mut indices, mut values, mut size) = (Vec::new(), Vec::new(), first.size.clone());
    size[dim] = 0;
    for s in all {
        let fits = s.sparse_dims() == first.sparse_dims() && size_without(s, dim) == size_without(first, dim);
        if !fits {
            fail!(SHAPE, "sparse tensors of sizes {:?} and {:?} do not fit together", first.size, s.size);
        }
        super::product::one_kind(first, &s.values)?;
        let mut rows = (0..s.sparse_dims()).map(|dim| form::places(e, s, dim)).collect::<Result<Vec<_>>>()?;
        rows[dim] = (e as &mut dyn Emit).add(&rows[dim], Scalar::Int(size[dim] as i64))?;
        indices.push(e.call_row(&STACK, args![rows, 0])?);
        values.push(s.values.clone());
        size[dim] += s.size[dim];
    }
    let indices = e.call_row(&CAT, args![indices, 1])?;
    let values = e.call_row(&CAT, args![values, 0])?;
    Ok(made(indices, values, size, false))
}

/// `stack([s, t], dim)`.
pub fn stack(e: &mut Engine, all: &[Sparse], dim: i64) -> Result<Sparse> {
    let apart = all.iter().map(|s| unsqueeze(e, s, dim)).collect::<Result<Vec<_>>>()?;
    cat(e, &apart, dim)
}

/// As large, without values.
pub fn zeros_like(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    let mut shape = s.values.shape();
    shape[0] = 0;
    let values = e.source(Source::Fill(Scalar::Int(0)), &shape, s.values.dtype(), s.values.device())?;
    let indices =
        e.source(Source::Fill(Scalar::Int(0)), &[s.sparse_dims(), 0], s.indices.dtype(), s.indices.device())?;
    Ok(made(indices, values, s.size.clone(), true))
}
