//! The forms of a sparse tensor: coalesced, dense, with compressed rows. All of it is made of rows of the op table, so that
//! it runs on every device and gradients flow through the values.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::Source;
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::indexing::index_select::{INDEX_ADD, INDEX_COPY, INDEX_SELECT};
use crate::op::rows::indexing::masks::NONZERO;
use crate::op::rows::ordering::distinct::{SEARCHSORTED, UNIQUE};
use crate::op::rows::pointwise::arith::{FLOOR_DIVIDE, REMAINDER};
use crate::op::rows::pointwise::compare::NE;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::copies::FLIP;
use crate::op::rows::shape::join::STACK;
use crate::op::rows::shape::rearrange::PERMUTE;
use crate::op::rows::shape::view::{RESHAPE, SELECT};
use crate::op::tensor::Tensor;
use crate::script::values::sparse::{Noted, Sparse};
use crate::tensor::engine::Engine;

/// Row `dim` of the indices.
pub fn places(e: &mut Engine, s: &Sparse, dim: usize) -> Result<Tensor> {
    e.call_row(&SELECT, args![&s.indices, 0, dim as i64])
}

/// The place of each value among all elements of the sparse dims, row-major.
pub fn flat(e: &mut Engine, s: &Sparse) -> Result<Tensor> {
    let mut sum = places(e, s, 0)?;
    for dim in 1..s.sparse_dims() {
        let scaled = (e as &mut dyn Emit).mul(&sum, Scalar::Int(s.size[dim] as i64))?;
        let place = places(e, s, dim)?;
        sum = (e as &mut dyn Emit).add(&scaled, &place)?;
    }
    Ok(sum)
}

/// The indices `[dims, n]` of places that are counted row-major.
fn unravel(e: &mut Engine, flat: &Tensor, size: &[usize]) -> Result<Tensor> {
    let (mut rest, mut dims) = (flat.clone(), Vec::new());
    for &size in size.iter().rev() {
        let size = Scalar::Int(size.max(1) as i64);
        dims.push(e.call_row(&REMAINDER, args![&rest, size])?);
        rest = e.call_row(&FLOOR_DIVIDE, args![&rest, size])?;
    }
    dims.reverse();
    e.call_row(&STACK, args![dims, 0])
}

fn zeros(e: &mut Engine, shape: &[usize], like: &Tensor) -> Result<Tensor> {
    e.source(Source::Fill(Scalar::Int(0)), shape, like.dtype(), like.device())
}

/// `values` added up at `places` of `n`: `[n, ..]`.
pub fn spread(e: &mut Engine, n: usize, places: &Tensor, values: &Tensor) -> Result<Tensor> {
    let mut shape = values.shape();
    shape[0] = n;
    let zeros = zeros(e, &shape, values)?;
    e.call_row(&INDEX_ADD, args![&zeros, 0, places, values])
}

/// Sorted places, each once; values of one place are added up. Waits for the number of places.
pub fn coalesce(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    if s.is_coalesced {
        return Ok(s.clone());
    }
    let (indices, at) = distinct(e, s)?;
    let values = spread(e, indices.shape()[1], &at, &s.values)?;
    Ok(coalesced(indices, values, s))
}

/// The places of a tensor, sorted and each once, and which of them each value has.
fn distinct(e: &mut Engine, s: &Sparse) -> Result<(Tensor, Tensor)> {
    let flat = flat(e, s)?;
    let found = e.apply(&UNIQUE, args![&flat, true, true])?;
    let indices = unravel(e, &found[0], s.sparse_size())?;
    Ok((indices, found[1].clone()))
}

fn coalesced(indices: Tensor, values: Tensor, like: &Sparse) -> Sparse {
    Sparse {
        indices,
        values,
        size: like.size.clone(),
        is_coalesced: true,
        crow: None,
        by_columns: false,
        _noted: Noted::new(),
    }
}

/// Each place once, with the value that all of this place have: such are gradients, where an element that is stored in
/// parts depends on each part alike.
pub fn each_once(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    if s.is_coalesced || s.crow.is_some() {
        return Ok(s.clone());
    }
    let (indices, at) = distinct(e, s)?;
    let mut shape = s.values.shape();
    shape[0] = indices.shape()[1];
    let zeros = zeros(e, &shape, &s.values)?;
    let values = e.call_row(&INDEX_COPY, args![&zeros, 0, &at, &s.values])?;
    Ok(coalesced(indices, values, s))
}

/// An ordinary tensor with zeros elsewhere.
pub fn dense(e: &mut Engine, s: &Sparse) -> Result<Tensor> {
    let flat = flat(e, s)?;
    let all = spread(e, s.sparse_size().iter().product(), &flat, &s.values)?;
    e.call_row(&RESHAPE, args![&all, s.size.as_slice()])
}

/// The values that a dense tensor has at the places of `s`.
pub fn values_at(e: &mut Engine, x: &Tensor, s: &Sparse) -> Result<Tensor> {
    let mut shape = vec![s.sparse_size().iter().product::<usize>()];
    shape.extend_from_slice(&s.size[s.sparse_dims()..]);
    let rows = e.call_row(&RESHAPE, args![x, shape.as_slice()])?;
    let flat = flat(e, s)?;
    e.call_row(&INDEX_SELECT, args![&rows, 0, &flat])
}

/// The elements of a dense tensor that are not 0, over its first `dims` dims; waits for their number.
pub fn from_dense(e: &mut Engine, x: &Tensor, dims: usize) -> Result<Sparse> {
    let size = x.shape().to_vec();
    if dims == 0 || dims > size.len() {
        fail!(SHAPE, "a tensor of {} dimensions has no {dims} sparse ones", size.len());
    }
    let plain = e.detach(x);
    let mut counted = e.call_row(&NE, args![&plain, Scalar::Int(0)])?;
    let rest: Vec<i64> = (dims..size.len()).map(|dim| dim as i64).collect();
    if !rest.is_empty() {
        counted = e.call_row(&SUM, args![&counted, rest.as_slice()])?;
    }
    let n: usize = size[..dims].iter().product();
    let counted = e.call_row(&RESHAPE, args![&counted, [n].as_slice()])?;
    let found = e.call_row(&NONZERO, args![&counted])?;
    let flat = e.call_row(&RESHAPE, args![&found, [found.shape()[0]].as_slice()])?;
    let indices = unravel(e, &flat, &size[..dims])?;
    let mut shape = vec![n];
    shape.extend_from_slice(&size[dims..]);
    let rows = e.call_row(&RESHAPE, args![x, shape.as_slice()])?;
    let values = e.call_row(&INDEX_SELECT, args![&rows, 0, &flat])?;
    Ok(Sparse { indices, values, size, is_coalesced: true, crow: None, by_columns: false, _noted: Noted::new() })
}

pub fn is_matrix(s: &Sparse) -> Result<()> {
    if s.sparse_dims() != 2 || s.size.len() != 2 {
        fail!(SHAPE, "a matrix is expected, and not a sparse tensor of size {:?}", s.size);
    }
    Ok(())
}

/// With compressed rows.
pub fn csr(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    if s.is_csr() {
        return Ok(s.clone());
    }
    is_matrix(s)?;
    let s = coalesce(e, &coo(s))?;
    let rows = places(e, &s, 0)?;
    let numbers = count(e, s.size[0] + 1, &rows)?;
    let crow = e.call_row(&SEARCHSORTED, args![&rows, &numbers])?;
    Ok(Sparse { crow: Some(crow), ..s })
}

/// `arange(n)`, beside a tensor.
pub fn count(e: &mut Engine, n: usize, beside: &Tensor) -> Result<Tensor> {
    e.call_row(&ARANGE, args![0, n, 1, DType::I64, beside.device()])
}

/// The row of each value of a CSR tensor.
pub fn rows_of(e: &mut Engine, crow: &Tensor, n: usize) -> Result<Tensor> {
    let numbers = count(e, n, crow)?;
    let after = e.call_row(&SEARCHSORTED, args![crow, &numbers, false, true])?;
    (e as &mut dyn Emit).sub(&after, Scalar::Int(1))
}

/// With compressed columns.
pub fn csc(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    if s.is_csc() {
        return Ok(s.clone());
    }
    let turned = transpose(e, &coo(s))?;
    let turned = csr(e, &turned)?;
    transpose(e, &turned)
}

/// The places by row and column, without compressed rows or columns.
pub fn coo(s: &Sparse) -> Sparse {
    Sparse { crow: None, by_columns: false, ..s.clone() }
}

/// Each place once: what is compressed stays so, and other tensors are coalesced.
pub fn unique(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    if s.crow.is_some() { Ok(s.clone()) } else { coalesce(e, s) }
}

/// Of compressed rows the transpose has compressed columns, and the other way round.
pub fn transpose(e: &mut Engine, s: &Sparse) -> Result<Sparse> {
    is_matrix(s)?;
    let indices = e.call_row(&FLIP, args![&s.indices, [0i64].as_slice()])?;
    Ok(Sparse {
        indices,
        values: s.values.clone(),
        size: vec![s.size[1], s.size[0]],
        is_coalesced: s.is_csc() || s.nnz() < 2,
        by_columns: s.is_csr(),
        crow: s.crow.clone(),
        _noted: Noted::new(),
    })
}

/// Sparse dims in another order.
pub fn permute(e: &mut Engine, s: &Sparse, dims: &[i64]) -> Result<Sparse> {
    let all = s.sparse_dims();
    let order: Vec<usize> = dims.iter().map(|&dim| infer::dim(dim, s.size.len())).collect::<Result<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..s.size.len()).collect::<Vec<_>>()
        || order.iter().enumerate().any(|(at, &dim)| (at < all) != (dim < all))
    {
        fail!(VALUE, "{dims:?} is no order of the {all} sparse and {} dense dimensions", s.size.len() - all);
    }
    if s.crow.is_some() {
        return if order[0] == 0 { Ok(s.clone()) } else { transpose(e, s) };
    }
    let rows = order[..all].iter().map(|&dim| places(e, s, dim)).collect::<Result<Vec<_>>>()?;
    let indices = e.call_row(&STACK, args![rows, 0])?;
    let of_values: Vec<usize> = std::iter::once(0).chain(order[all..].iter().map(|dim| dim - all + 1)).collect();
    let values = e.call_row(&PERMUTE, args![&s.values, of_values.as_slice()])?;
    let size = order.iter().map(|&dim| s.size[dim]).collect();
    let is_same = order[..all].iter().enumerate().all(|(at, dim)| at == *dim);
    let is_coalesced = s.nnz() < 2 || (is_same && s.is_coalesced);
    Ok(Sparse { indices, values, size, is_coalesced, crow: None, by_columns: false, _noted: Noted::new() })
}
