//! `sparse::softmax` and `sparse::log_softmax`: elements that are not stored count as negative infinity.

use super::form;
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Op, Source};
use crate::op::rows::indexing::gather::SCATTER_REDUCE;
use crate::op::rows::indexing::index_select::{INDEX_ADD, INDEX_SELECT};
use crate::op::rows::nn::softmax::{LOG_SOFTMAX, SOFTMAX};
use crate::op::rows::ordering::distinct::UNIQUE;
use crate::op::rows::pointwise::arith::{DIV, SUB};
use crate::op::rows::pointwise::unary::{EXP, LOG};
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::Tensor;
use crate::script::values::sparse::Sparse;
use crate::tensor::engine::Engine;

/// The softmax along a dim, at the places of `s`; its logarithm if `log`.
pub fn softmax(e: &mut Engine, s: &Sparse, dim: i64, log: bool) -> Result<Sparse> {
    let dim = infer::dim(dim, s.size.len())?;
    let s = form::unique(e, s)?;
    let sparse = s.sparse_dims();
    if dim >= sparse {
        let op: &'static Op = if log { &LOG_SOFTMAX } else { &SOFTMAX };
        let values = e.call_row(op, args![&s.values, (dim - sparse + 1) as i64])?;
        return Ok(s.with_values(values));
    }
    let (row, rows) = rows_along(e, &s, dim)?;
    let largest = largest(e, &s.values, &row, rows)?;
    let less = e.call_row(&SUB, args![&s.values, &largest])?;
    let sizes = e.call_row(&EXP, args![&less])?;
    let mut shape = s.values.shape();
    shape[0] = rows;
    let zeros = e.source(Source::Fill(Scalar::Int(0)), &shape, sizes.dtype(), sizes.device())?;
    let totals = e.call_row(&INDEX_ADD, args![&zeros, 0, &row, &sizes])?;
    let totals = e.call_row(&INDEX_SELECT, args![&totals, 0, &row])?;
    let values = match log {
        true => {
            let logs = e.call_row(&LOG, args![&totals])?;
            e.call_row(&SUB, args![&less, &logs])?
        }
        false => e.call_row(&DIV, args![&sizes, &totals])?,
    };
    Ok(s.with_values(values))
}

/// The number of the row along `dim` in which each value lies, and how many rows have values. Waits for that.
fn rows_along(e: &mut Engine, s: &Sparse, dim: usize) -> Result<(Tensor, usize)> {
    let mut flat: Option<Tensor> = None;
    for other in (0..s.sparse_dims()).filter(|other| *other != dim) {
        let place = form::places(e, s, other)?;
        flat = Some(match flat {
            None => place,
            Some(sum) => {
                let scaled = (e as &mut dyn Emit).mul(&sum, Scalar::Int(s.size[other] as i64))?;
                (e as &mut dyn Emit).add(&scaled, &place)?
            }
        });
    }
    let Some(flat) = flat else {
        let place = form::places(e, s, dim)?;
        return Ok(((e as &mut dyn Emit).mul(&place, Scalar::Int(0))?, 1));
    };
    let found = e.apply(&UNIQUE, args![&flat, true, true])?;
    let count = found[0].shape()[0];
    Ok((found[1].clone(), count))
}

/// The largest value of each value's row, without gradients.
fn largest(e: &mut Engine, values: &Tensor, row: &Tensor, rows: usize) -> Result<Tensor> {
    let plain = e.detach(values);
    let mut shape = values.shape();
    shape[0] = rows;
    let mut narrow = vec![1i64; shape.len()];
    narrow[0] = row.numel() as i64;
    let places = e.call_row(&RESHAPE, args![row, narrow.as_slice()])?;
    let whole: Vec<i64> = values.shape().iter().map(|&n| n as i64).collect();
    let places = e.call_row(&EXPAND, args![&places, whole.as_slice()])?;
    let low = e.source(Source::Fill(Scalar::Float(f64::NEG_INFINITY)), &shape, plain.dtype(), plain.device())?;
    let largest = e.call_row(&SCATTER_REDUCE, args![&low, 0, &places, &plain, "amax", false])?;
    e.call_row(&INDEX_SELECT, args![&largest, 0, row])
}
