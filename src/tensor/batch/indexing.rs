//! Indexing inside of `vmap`. Where only the tensor has samples, dims move; where the index has some, too, `gather` and the
//! scatters take one for each sample, or the samples are counted by an index tensor of their own.

use super::rules::{leading, only, run, with_levels};
use super::{all_samples, samples, value};
use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Op, Source};
use crate::op::rows::indexing::gather::{GATHER, SCATTER, SCATTER_ADD};
use crate::op::rows::indexing::index::{INDEX_ARGUMENTS, PUT_AT, TAKE};
use crate::op::rows::indexing::index_select::{INDEX_ADD, INDEX_COPY, INDEX_SELECT};
use crate::op::rows::pointwise::compare::{LT, WHERE};
use crate::op::rows::shape::rearrange::PERMUTE;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::{Levels, Tensor};
use crate::tensor::engine::{Engine, Results};

fn one(x: Tensor) -> Option<Results> {
    Some(Results::from_iter([x]))
}

/// A list of positions along `dim` as an index for each element of `shape`.
fn spread(e: &mut Engine, index: &Tensor, dim: usize, shape: &[usize]) -> Result<Tensor> {
    let line: Vec<usize> = (0..shape.len()).map(|at| if at == dim { index.numel() } else { 1 }).collect();
    let line = e.call_row(&RESHAPE, args![index, line.as_slice()])?;
    let mut shape = shape.to_vec();
    shape[dim] = index.numel();
    e.call_row(&EXPAND, args![&line, shape.as_slice()])
}

/// Negative positions count from the end.
fn from_start(e: &mut Engine, index: &Tensor, n: usize) -> Result<Tensor> {
    let shifted = (e as &mut dyn Emit).add(index, Scalar::Int(n as i64))?;
    let is_negative = e.call_row(&LT, args![index, Scalar::Int(0)])?;
    e.call_row(&WHERE, args![&is_negative, &shifted, index])
}

/// `index_select(x, dim, index)`, `index_add(x, dim, index, source, alpha)`, `index_copy`, `index_fill(x, dim, index, value)`.
pub(super) fn positions(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let (x, index) = (args.input().clone(), args.tensor(2).clone());
    let written = args.opt_tensor(3).cloned();
    let fits = |source: &Tensor| source.ndim() == x.ndim() || source.ndim() == 0;
    if x.ndim() == 0 || index.ndim() > 1 || !written.as_ref().is_none_or(fits) {
        return Ok(None);
    }
    let dim = infer::dim(args.int(1), x.ndim())?;
    // A value without dims is one for all places, unless each sample has its own.
    let value_apart = written.as_ref().is_some_and(|value| value.ndim() == 0 && value.samples().is_some());
    if index.samples().is_none() && !value_apart {
        let mut given = args.clone();
        given.0[0] = Arg::Tensor(all_samples(e, &x, all)?);
        given.0[1] = Arg::from(dim + all.len());
        if let Some(source) = written.filter(|source| source.ndim() > 0) {
            given.0[3] = Arg::Tensor(all_samples(e, &source, all)?);
        }
        return run(e, op, &given, all).map(Some);
    }
    if op.is(&INDEX_SELECT) {
        let places = spread(e, &index, dim, &x.shape())?;
        return e.call_row(&GATHER, args![&x, dim, &places]).map(one);
    }
    if op.is(&INDEX_ADD) || op.is(&INDEX_COPY) {
        let Some(mut source) = written else { return Ok(None) };
        let places = spread(e, &index, dim, &source.shape())?;
        if op.is(&INDEX_COPY) {
            return e.call_row(&SCATTER, args![&x, dim, &places, &source]).map(one);
        }
        if let Some(alpha) = args.scalar(4).filter(|alpha| alpha.to_f64() != 1.0) {
            source = (e as &mut dyn Emit).mul(&source, alpha)?;
        }
        return e.call_row(&SCATTER_ADD, args![&x, dim, &places, &source]).map(one);
    }
    let index = from_start(e, &index, x.shape()[dim])?;
    let places = spread(e, &index, dim, &x.shape())?;
    let value = match written {
        Some(value) => {
            let value = e.cast_to(&value, x.dtype())?;
            Arg::Tensor(e.call_row(&EXPAND, args![&value, places.shape().as_slice()])?)
        }
        None => args.get(3).clone(),
    };
    e.call_row(&SCATTER, args![&x, dim, &places, value]).map(one)
}

/// `take(x, index)`, `put(x, index, source, accumulate)`.
pub(super) fn flat(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let (x, index) = (args.input().clone(), args.tensor(1).clone());
    if op.is(&TAKE) && x.samples().is_none() {
        return run(e, op, &args![&x, &value(&index)], all).map(Some);
    }
    let line = |e: &mut Engine, x: &Tensor| e.call_row(&RESHAPE, args![x, x.numel()]);
    let (own, places) = (line(e, &x)?, line(e, &index)?);
    if x.numel() == 0 || index.dtype() != DType::I64 {
        return Ok(None);
    }
    let places = from_start(e, &places, x.numel())?;
    if op.is(&TAKE) {
        let taken = e.call_row(&GATHER, args![&own, 0, &places])?;
        return e.call_row(&RESHAPE, args![&taken, index.shape().as_slice()]).map(one);
    }
    debug_assert!(op.is(&PUT_AT));
    let source = args.tensor(2).clone();
    if source.numel() != index.numel() || source.dtype() != x.dtype() {
        return Ok(None);
    }
    let source = line(e, &source)?;
    let write = if args.flag(3) { &SCATTER_ADD } else { &SCATTER };
    let written = e.call_row(write, args![&own, 0, &places, &source])?;
    e.call_row(&RESHAPE, args![&written, x.shape().as_slice()]).map(one)
}

/// The first dims in another order; the others stay.
fn turned(e: &mut Engine, x: &Tensor, first: impl IntoIterator<Item = usize>) -> Result<Tensor> {
    let mut dims: Vec<usize> = first.into_iter().collect();
    dims.extend(dims.len()..x.ndim());
    if dims.iter().enumerate().all(|(at, dim)| at == *dim) {
        return Ok(x.clone());
    }
    e.call_row(&PERMUTE, args![x, dims.as_slice()])
}

/// `x[i, .., j]` by index tensors of one shape, and writes to these places: the rows behind `index` and `index_put`.
pub(super) fn indices(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let [dims_at, place_at, values_at] = INDEX_ARGUMENTS;
    let found: Vec<Tensor> = (1..dims_at).filter_map(|at| args.opt_tensor(at).cloned()).collect();
    let (k, x) = (all.len(), args.input().clone());
    let (dims, place) = (args.ints(dims_at).unwrap_or_default(), args.int(place_at) as usize);
    let values = args.opt_tensor(values_at).cloned();
    let mut given = args.clone();
    if found.iter().all(|index| index.samples().is_none()) {
        given.0[0] = Arg::Tensor(all_samples(e, &x, all)?);
        given.0[dims_at] = Arg::from(dims.iter().map(|dim| dim + k as i64).collect::<Ints>());
        given.0[place_at] = Arg::from(place + k);
        if let Some(values) = values {
            given.0[values_at] = Arg::Tensor(all_samples(e, &values, all)?);
        }
        return run(e, op, &given, all).map(Some);
    }
    let common = found[0].ndim();
    let mut indices = Vec::new();
    if x.samples().is_none() && values.is_none() {
        for index in &found {
            indices.push(all_samples(e, index, all)?);
        }
        put_indices(&mut given, &indices, dims_at);
        let mut results = e.as_given(op, &given)?;
        let order = (place..place + k).chain(0..place);
        results[0] = turned(e, &results[0], order)?;
        return Ok(Some(super::call::hidden(e, results, all)));
    }
    if found.len() + k >= dims_at {
        return Ok(None);
    }
    for (at, &level) in all.iter().enumerate() {
        let n = samples(e, level);
        let line = e.source(Source::Position, &[n], DType::I64, x.device())?;
        let shape: Vec<usize> = (0..k + common).map(|dim| if dim == at { n } else { 1 }).collect();
        let line = e.call_row(&RESHAPE, args![&line, shape.as_slice()])?;
        let whole = with_levels(e, all, found[0].shape().iter().map(|&n| n as i64));
        indices.push(e.call_row(&EXPAND, args![&line, whole])?);
    }
    for index in &found {
        indices.push(all_samples(e, index, all)?);
    }
    put_indices(&mut given, &indices, dims_at);
    given.0[0] = Arg::Tensor(all_samples(e, &x, all)?);
    let moved = dims.iter().map(|dim| dim + k as i64);
    given.0[dims_at] = Arg::from((0..k as i64).chain(moved).collect::<Ints>());
    given.0[place_at] = Arg::from(0);
    if let Some(values) = values {
        // The indices' dims stand right behind those of the samples.
        let whole = all_samples(e, &values, all)?;
        let order = (0..k).chain(k + place..k + place + common).chain(k..k + place);
        given.0[values_at] = Arg::Tensor(turned(e, &whole, order)?);
        return run(e, op, &given, all).map(Some);
    }
    let mut results = e.as_given(op, &given)?;
    let order = (0..k).chain(k + common..k + common + place).chain(k..k + common);
    results[0] = turned(e, &results[0], order)?;
    Ok(Some(super::call::hidden(e, results, all)))
}

/// Index tensors in place of others.
fn put_indices(given: &mut Args, indices: &[Tensor], end: usize) {
    for at in 1..end {
        given.0[at] = indices.get(at - 1).map_or(Arg::None, Arg::from);
    }
}

/// `searchsorted(sorted, input)`, `bucketize(input, boundaries)`.
pub(super) fn search(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let sorts = op.params[0].name != "input";
    let (sorted, input) = if sorts { (0, 1) } else { (1, 0) };
    let (Some(numbers), Some(x)) = (args.opt_tensor(sorted).cloned(), args.opt_tensor(input).cloned()) else {
        return Ok(None);
    };
    if only(args, &[input]) && numbers.ndim() == 1 {
        let mut given = args.clone();
        given.0[input] = Arg::Tensor(value(&x));
        return run(e, op, &given, all).map(Some);
    }
    if sorts && numbers.ndim() == x.ndim() && numbers.ndim() > 0 {
        return leading(e, op, args, all).map(Some);
    }
    if !sorts || numbers.ndim() != 1 {
        return Ok(None);
    }
    let mut given = args.clone();
    given.0[input] = Arg::Tensor(e.call_row(&RESHAPE, args![&x, x.numel()])?);
    let found = leading(e, op, &given, all)?;
    e.call_row(&RESHAPE, args![&found[0], x.shape().as_slice()]).map(one)
}
