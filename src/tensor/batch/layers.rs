//! Convolutions, normalizations, losses and tables inside of `vmap`: where weights have samples, too, these become groups,
//! channels, or rows of one table.

use super::rules::{count, fold, into_batch, only, out_of_batch, with_levels};
use super::{all_samples, hide};
use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::Op;
use crate::op::rows::indexing::index_select::{INDEX_ADD, INDEX_SELECT};
use crate::op::rows::nn::conv::CONV_WEIGHT;
use crate::op::rows::nn::norm::GROUP;
use crate::op::rows::pointwise::compare::{EQ, NE, WHERE};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::TRANSPOSE;
use crate::op::rows::shape::view::{RESHAPE, UNSQUEEZE};
use crate::op::tensor::{Levels, Tensor};
use crate::tensor::engine::{Engine, Results};

fn has_samples(args: &Args, at: usize) -> bool {
    args.opt_tensor(at).is_some_and(|x| x.samples().is_some())
}

/// `[samples, n, c, ..]` as `[n, samples * c, ..]`.
fn into_channels(e: &mut Engine, x: &Tensor, all: &Levels) -> Result<Tensor> {
    let own = x.shape();
    let count = count(e, all);
    let whole = all_samples(e, x, all)?;
    let flat: Vec<usize> = std::iter::once(count).chain(own.iter().copied()).collect();
    let whole = e.call_row(&RESHAPE, args![&whole, flat.as_slice()])?;
    let turned = e.call_row(&TRANSPOSE, args![&whole, 0, 1])?;
    let shape: Vec<usize> = [own[0], count * own[1]].into_iter().chain(own[2..].iter().copied()).collect();
    e.call_row(&RESHAPE, args![&turned, shape.as_slice()])
}

/// And back, as each sample sees it.
fn out_of_channels(e: &mut Engine, y: &Tensor, all: &Levels) -> Result<Tensor> {
    let (sizes, count) = (y.shape(), count(e, all));
    let split: Vec<usize> = [sizes[0], count, sizes[1] / count].into_iter().chain(sizes[2..].iter().copied()).collect();
    let y = e.call_row(&RESHAPE, args![y, split.as_slice()])?;
    let y = e.call_row(&TRANSPOSE, args![&y, 0, 1])?;
    let shape = with_levels(e, all, [split[0], split[2]].iter().chain(&split[3..]).map(|&n| n as i64));
    let y = e.call_row(&RESHAPE, args![&y, shape])?;
    Ok(hide(e, y, all))
}

/// `[c]` so that it broadcasts over `[n, c, ..]`.
fn per_channel(e: &mut Engine, w: &Tensor, ndim: usize) -> Result<Tensor> {
    let mut shape = vec![1; ndim.saturating_sub(1).max(1)];
    shape[0] = w.numel();
    e.call_row(&RESHAPE, args![w, shape.as_slice()])
}

/// `conv(input, weight, bias, size, stride, padding, dilation, groups)` and its gradients.
pub(super) fn convolution(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let is_of_weight = op.is(&CONV_WEIGHT);
    if only(args, &[0]) && !is_of_weight {
        return fold(e, op, args, all, &[0]);
    }
    let count = count(e, all);
    if count == 0 {
        return Ok(None);
    }
    let groups = op.params.len() - 1;
    let mut given = args.clone();
    let x = into_channels(e, args.input(), all)?;
    let w = args.tensor(1).clone();
    let w = if is_of_weight { into_channels(e, &w, all)? } else { into_batch(e, &w, all)? };
    given.0[0] = Arg::Tensor(x);
    given.0[1] = Arg::Tensor(w);
    given.0[2] = Arg::None;
    given.0[groups] = Arg::from(args.int(groups).max(1) * count as i64);
    let y = e.as_given(op, &given)?.swap_remove(0);
    let mut y = match is_of_weight {
        true => out_of_batch(e, &y, Some(y.shape()[0] / count), all)?,
        false => out_of_channels(e, &y, all)?,
    };
    if let Some(bias) = args.opt_tensor(2).cloned() {
        let bias = per_channel(e, &bias, y.ndim())?;
        y = (e as &mut dyn Emit).add(&y, &bias)?;
    }
    Ok(Some(Results::from_iter([y])))
}

/// Where the weight and the bias of a row stand.
fn affine(op: &'static Op) -> [usize; 2] {
    let at = |name: &str| op.params.iter().position(|param| param.name == name).unwrap_or(usize::MAX);
    [at("weight"), at("bias")]
}

/// The first result times the weight plus the bias, which the call left out.
fn scaled(e: &mut Engine, mut results: Results, args: &Args, at: [usize; 2], channels: bool) -> Result<Results> {
    let ndim = results[0].ndim();
    let shaped = |e: &mut Engine, at: usize| match args.opt_tensor(at).cloned() {
        Some(w) if channels => per_channel(e, &w, ndim).map(Some),
        other => Ok(other),
    };
    if let Some(w) = shaped(e, at[0])? {
        results[0] = (e as &mut dyn Emit).mul(&results[0], &w)?;
    }
    if let Some(b) = shaped(e, at[1])? {
        results[0] = (e as &mut dyn Emit).add(&results[0], &b)?;
    }
    Ok(results)
}

fn without(args: &Args, at: [usize; 2]) -> Args {
    let mut plain = args.clone();
    plain.0.iter_mut().enumerate().filter(|(n, _)| at.contains(n)).for_each(|(_, arg)| *arg = Arg::None);
    plain
}

/// Over trailing dims, or over groups of channels.
pub(super) fn normalized(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let (at, by_group) = (affine(op), op.is(&GROUP));
    if at.iter().any(|&at| has_samples(args, at)) {
        let results = e.as_given(op, &without(args, at))?;
        return scaled(e, results, args, at, by_group).map(Some);
    }
    if by_group {
        return fold(e, op, args, all, &[0]);
    }
    let mut given = args.clone();
    given.0[0] = Arg::Tensor(all_samples(e, args.input(), all)?);
    super::rules::run(e, op, &given, all).map(Some)
}

/// Over the batch: `[samples, n, c, ..]` is `[n, samples * c, ..]`, whose channels have statistics of their own.
pub(super) fn batch_normalized(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let at = affine(op);
    let mut plain = without(args, at);
    if !has_samples(args, 0) {
        let results = e.as_given(op, &plain)?;
        return scaled(e, results, args, at, true);
    }
    plain.0[0] = Arg::Tensor(into_channels(e, args.input(), all)?);
    let found = e.as_given(op, &plain)?;
    let mut results = Results::from_iter([out_of_channels(e, &found[0], all)?]);
    for of_channels in &found[1..] {
        let channels = of_channels.shape()[0] / count(e, all).max(1);
        results.push(out_of_batch(e, of_channels, Some(channels), all)?);
    }
    scaled(e, results, args, at, true)
}

/// `cross_entropy(scores, labels, weight, ignored, ..)` and `nll_loss`: each label's loss, the weight of all, and what else
/// there is of each label; and the gradient `nll_loss(g, labels, weight, ignored, shape)`.
pub(super) fn labels(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let (x, target) = (args.input().clone(), args.tensor(1).clone());
    let count = count(e, all);
    if !only(args, &[0, 1]) || count == 0 {
        return Ok(None);
    }
    let shape_at = op.params.iter().position(|param| param.name == "shape");
    let has_batch = target.ndim() > 0;
    let mut given = args.clone();
    given.0[1] = Arg::Tensor(into_batch(e, &target, all)?);
    given.0[0] = Arg::Tensor(match has_batch || shape_at.is_some() {
        true => into_batch(e, &x, all)?,
        // `[samples, classes]`.
        false => {
            let whole = all_samples(e, &x, all)?;
            e.call_row(&RESHAPE, args![&whole, [count, x.shape()[0]].as_slice()])?
        }
    });
    let first = |y: &Tensor| has_batch.then(|| y.shape()[0] / count);
    if let Some(at) = shape_at {
        let mut shape = args.ints(at).unwrap_or_default();
        match has_batch {
            true => shape[0] *= count as i64,
            false => shape.insert(0, count as i64),
        }
        given.0[at] = Arg::from(shape);
        let g = e.as_given(op, &given)?.swap_remove(0);
        return Ok(Some(Results::from_iter([out_of_batch(e, &g, first(&g), all)?])));
    }
    let found = e.as_given(op, &given)?;
    let mut results = Results::new();
    for (n, y) in found.iter().enumerate() {
        results.push(match n {
            1 => weight_of(e, args, &target, y)?,
            _ => out_of_batch(e, y, first(y), all)?,
        });
    }
    Ok(Some(results))
}

/// What the labels of each sample weigh together.
fn weight_of(e: &mut Engine, args: &Args, target: &Tensor, like: &Tensor) -> Result<Tensor> {
    let ignored = Scalar::Int(args.int(3));
    let counts = e.call_row(&NE, args![target, ignored])?;
    let mut weights = e.cast_to(&counts, like.dtype())?;
    if let Some(weight) = args.opt_tensor(2) {
        let weight = e.cast_to(weight, like.dtype())?;
        let class = e.call_row(&WHERE, args![&counts, target, Scalar::Int(0)])?;
        let class = e.call_row(&RESHAPE, args![&class, target.numel()])?;
        let each = e.call_row(&INDEX_SELECT, args![&weight, 0, &class])?;
        let each = e.call_row(&RESHAPE, args![&each, target.shape().as_slice()])?;
        weights = (e as &mut dyn Emit).mul(&weights, &each)?;
    }
    e.call_row(&SUM, args![&weights])
}

/// `embedding(weight, index, padding, by_freq)`, and the gradient `embedding(g, index, rows, padding, by_freq)`.
pub(super) fn table(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let (x, index) = (args.input().clone(), args.tensor(1).clone());
    let is_gradient = match op.params[2].name {
        "rows" => true,
        "padding_idx" => false,
        _ => return Ok(None),
    };
    let padding_at = if is_gradient { 3 } else { 2 };
    let padding = args.opt_int(padding_at);
    if !is_gradient && x.samples().is_none() {
        return leading_index(e, op, args, &index, all).map(Some);
    }
    if args.flag(padding_at + 1) {
        return Ok(None);
    }
    let line = e.call_row(&RESHAPE, args![&index, index.numel()])?;
    if !is_gradient {
        let mut rows = e.call_row(&INDEX_SELECT, args![&x, 0, &line])?;
        if let Some(padding) = padding {
            // The row of the padding has no gradient.
            let is_padding = e.call_row(&EQ, args![&line, Scalar::Int(padding)])?;
            let is_padding = e.call_row(&UNSQUEEZE, args![&is_padding, -1])?;
            let fixed = e.detach(&rows);
            rows = e.call_row(&WHERE, args![&is_padding, &fixed, &rows])?;
        }
        let shape: Vec<usize> = index.shape().iter().chain(&x.shape()[1..]).copied().collect();
        return Ok(Some(Results::from_iter([e.call_row(&RESHAPE, args![&rows, shape.as_slice()])?])));
    }
    let rest: Ints = x.shape()[index.ndim()..].iter().map(|&n| n as i64).collect();
    let lines: Ints = std::iter::once(index.numel() as i64).chain(rest.iter().copied()).collect();
    let mut g = e.call_row(&RESHAPE, args![&x, lines])?;
    if let Some(padding) = padding {
        let counts = e.call_row(&NE, args![&line, Scalar::Int(padding)])?;
        let counts = e.call_row(&UNSQUEEZE, args![&counts, -1])?;
        g = e.call_row(&WHERE, args![&counts, &g, Scalar::Int(0)])?;
    }
    let shape: Vec<usize> = std::iter::once(args.int(2) as usize).chain(rest.iter().map(|&n| n as usize)).collect();
    let zeros = e.source(crate::op::row::Source::Fill(Scalar::Int(0)), &shape, x.dtype(), x.device())?;
    Ok(Some(Results::from_iter([e.call_row(&INDEX_ADD, args![&zeros, 0, &line, &g])?])))
}

/// Only the index has samples, and may have any dims.
fn leading_index(e: &mut Engine, op: &'static Op, args: &Args, index: &Tensor, all: &Levels) -> Result<Results> {
    let mut given = args.clone();
    given.0[1] = Arg::Tensor(all_samples(e, index, all)?);
    super::rules::run(e, op, &given, all)
}
