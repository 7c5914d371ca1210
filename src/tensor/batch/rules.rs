//! What becomes of the arguments of a row so that it takes all samples at once: `op::batching` says which rule a row has.

use super::call::hidden;
use super::{aligned, all_samples, indexing, layers, mapped, ranked_samples, samples};
use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::kernel::program::ReduceKind;
use crate::op::args::{Arg, Args};
use crate::op::batching::Batching;
use crate::op::dry_run::{self, Outcome};
use crate::op::infer;
use crate::op::row::{Kind, Lower, Op, Promote};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::pointwise::arith::ADD;
use crate::op::rows::reduction::reduce::{AMAX, AMIN};
use crate::op::rows::shape::rearrange::{SQUEEZE, TRANSPOSE};
use crate::op::rows::shape::view::{CLONE, EXPAND, RESHAPE, UNSQUEEZE, resolve_shape};
use crate::op::tensor::{Levels, Tensor};
use crate::tensor::engine::{Engine, Results};

/// The results of a row by its rule; none where the rule does not fit this call.
pub(super) fn apply(
    e: &mut Engine,
    op: &'static Op,
    batching: Batching,
    args: &Args,
    all: &Levels,
) -> Result<Option<Results>> {
    match batching {
        Batching::Leading => leading(e, op, args, all).map(Some),
        Batching::Along => along(e, op, args, all, 0),
        Batching::AlongNew => along(e, op, args, all, 1),
        Batching::Sizes => sizes(e, op, args, all).map(Some),
        Batching::Expand => expand(e, op, args, all).map(Some),
        Batching::Permute => permute(e, op, args, all).map(Some),
        Batching::Strided => strided(e, op, args, all).map(Some),
        Batching::Window => window(e, op, args, all).map(Some),
        Batching::Product => product(e, op, args).map(Some),
        Batching::First => first(e, op, args, all),
        Batching::Ranked => ranked(e, op, args, all).map(Some),
        Batching::Fold(which) => fold(e, op, args, all, which),
        Batching::Repeat => repeat(e, op, args, all).map(Some),
        Batching::Filled => filled(e, op, args, all).map(Some),
        Batching::Convolution => layers::convolution(e, op, args, all),
        Batching::Normalized => layers::normalized(e, op, args, all),
        Batching::BatchNormalized => layers::batch_normalized(e, op, args, all).map(Some),
        Batching::Labels => layers::labels(e, op, args, all),
        Batching::Table => layers::table(e, op, args, all),
        Batching::Positions => indexing::positions(e, op, args, all),
        Batching::Indices => indexing::indices(e, op, args, all),
        Batching::Flat => indexing::flat(e, op, args, all),
        Batching::Search => indexing::search(e, op, args, all),
        Batching::Made => made(e, op, args, all),
    }
}

/// A tensor of one sample, repeated for all in memory of their own. A leaf of the gradient graph is one that all share.
fn made(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    let Lower::Compose(rule) = op.lower else { return Ok(None) };
    let [one]: [Tensor; 1] = rule(e, args)?.try_into().expect("it makes one tensor");
    if one.requires_grad() {
        return Ok(Some(Results::from_iter([one])));
    }
    let wide = all_samples(e, &one, all)?;
    let own = e.call_row(&CLONE, args![&wide])?;
    Ok(Some(hidden(e, Results::from_iter([own]), all)))
}

/// A call with all samples of some arguments.
pub(super) fn run(e: &mut Engine, op: &'static Op, given: &Args, all: &Levels) -> Result<Results> {
    let results = e.as_given(op, given)?;
    Ok(hidden(e, results, all))
}

/// The error of each sample's call, where it has one: with the dims of the samples the tensor might do.
fn check_sample(op: &'static Op, args: &Args) -> Result<()> {
    // What complex numbers are refused for is told by the call itself.
    let dtype = |x: &Tensor| if op.reinterprets { x.dtype() } else { x.dtype().real_part() };
    let given = mapped(args, |x| dry_run::tensor(&x.shape(), dtype(x)))?;
    match dry_run::results(op, given) {
        Outcome::Refused(diag) => Err(diag),
        Outcome::Results(_) | Outcome::Unknown => Ok(()),
    }
}

pub(super) fn leading(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    check_sample(op, args)?;
    let given = mapped(args, |x| all_samples(e, x, all))?;
    run(e, op, &given, all)
}

fn ranked(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let rank = args.tensors().iter().map(Tensor::ndim).max().unwrap_or(0);
    let given = mapped(args, |x| ranked_samples(e, x, all, rank))?;
    run(e, op, &given, all)
}

/// Element-wise operands: their dims are aligned behind those of the samples.
pub(super) fn pointwise(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let tensors = args.tensors();
    let rank = tensors.iter().map(Tensor::ndim).max().unwrap_or(0);
    // The dtype of a result depends on which operands have dims: on those that each sample has.
    let dtype = tensors[0].dtype();
    let is_mixed = tensors.iter().any(|x| x.dtype() != dtype);
    let mut given = mapped(args, |x| aligned(e, x, all, if x.samples().is_some() { rank } else { 0 }))?;
    if let (true, Lower::Map { function, promote }) = (is_mixed, &op.lower) {
        let operands = infer::operands(args, function.variants[0].args.len())?;
        let plan = infer::map(*promote, &operands, e.rt.default_float())?;
        drop(operands);
        let tensors = given.0.iter_mut().filter(|arg| matches!(arg, Arg::Tensor(_) | Arg::Attr(_)));
        for (arg, dtype) in tensors.zip(&plan.args).skip((*promote == Promote::Where) as usize) {
            if let Arg::Tensor(x) = arg {
                *x = e.cast_to(x, *dtype)?;
            }
        }
    }
    run(e, op, &given, all)
}

/// Dims that a call names move behind those of the samples. `more`: they are dims of the result, which has so many more.
fn along(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels, more: usize) -> Result<Option<Results>> {
    let Some(first) = args.tensors().into_iter().next() else { return Ok(None) };
    let (k, rank) = (all.len(), first.ndim());
    if rank + more == 0 {
        return along_of_scalars(e, op, args).map(Some);
    }
    let named = |kind: Kind, name: &str| matches!(kind, Kind::Dim | Kind::Dims) || matches!(name, "dim" | "dims");
    if !op.params.iter().any(|param| named(param.kind, param.name)) {
        return Ok(None);
    }
    let shifted = |dim: i64| infer::dim(dim, rank + more).map(|dim| (dim + k) as i64);
    let mut given = args.clone();
    for (arg, param) in given.0.iter_mut().zip(op.params) {
        let is_list = param.name == "dims" && matches!(param.kind, Kind::Ints | Kind::Sizes)
            || param.name == "dim" && param.kind == Kind::Int;
        if !matches!(param.kind, Kind::Dim | Kind::Dims) && !is_list {
            continue;
        }
        *arg = match dims_of(arg) {
            Some((dims, is_one)) => {
                let dims: Ints = dims.iter().map(|&dim| shifted(dim)).collect::<Result<_>>()?;
                if dims.is_empty() && op.is(&SQUEEZE) {
                    return Ok(Some(Results::from_iter([first])));
                }
                // `sum([])` reduces all dims, as `sum()` does.
                let dims =
                    if dims.is_empty() && !is_list { (k..k + rank).map(|dim| dim as i64).collect() } else { dims };
                if is_one { Arg::from(dims[0]) } else { Arg::from(dims) }
            }
            None if op.is(&SQUEEZE) => {
                let ones = first.shape().iter().enumerate().filter(|(_, n)| **n == 1).map(|(dim, _)| dim).collect();
                let ones: Vec<usize> = ones;
                if ones.is_empty() {
                    return Ok(Some(Results::from_iter([first])));
                }
                Arg::from(ones.iter().map(|dim| (dim + k) as i64).collect::<Ints>())
            }
            None if param.kind == Kind::Dims => Arg::from((k..k + rank).map(|dim| dim as i64).collect::<Ints>()),
            // Without a dim, all of the tensor as one.
            None => return along_flat(e, op, args).map(Some),
        };
    }
    let given = mapped(&given, |x| all_samples(e, x, all))?;
    run(e, op, &given, all).map(Some)
}

/// The dims of an argument, and whether it is one dim.
fn dims_of(arg: &Arg) -> Option<(Ints, bool)> {
    let one = Args(smallvec::smallvec![arg.clone()]);
    if one.is_none(0) {
        return None;
    }
    let dims = one.ints(0).or_else(|| one.opt_int(0).map(|dim| Ints::from_slice(&[dim])))?;
    let is_one = !matches!(one.attr(0), crate::base::attr::Attr::Ints(_));
    Some((dims, is_one))
}

/// Tensors without dims get one for the time of the call.
fn along_of_scalars(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Results> {
    let given = mapped(args, |x| if x.ndim() == 0 { e.call_row(&UNSQUEEZE, args![x, 0]) } else { Ok(x.clone()) })?;
    let results = e.as_given(op, &given)?;
    let mut flat = Results::new();
    for result in results {
        flat.push(if result.ndim() > 0 { e.call_row(&SQUEEZE, args![&result, 0])? } else { result });
    }
    Ok(flat)
}

fn along_flat(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Results> {
    let mut given = mapped(args, |x| e.call_row(&RESHAPE, args![x, x.numel()]))?;
    for (arg, param) in given.0.iter_mut().zip(op.params) {
        if param.kind == Kind::Dim {
            *arg = Arg::from(0);
        }
    }
    e.as_given(op, &given)
}

/// The sizes of the levels, before those that each sample has.
pub(super) fn with_levels(e: &Engine, all: &Levels, own: impl IntoIterator<Item = i64>) -> Ints {
    all.iter().map(|&level| samples(e, level) as i64).chain(own).collect()
}

fn sizes(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let x = args.input().clone();
    let Some(given) = args.ints(1) else { return leading(e, op, args, all) };
    let own = resolve_shape(&given, x.numel())?;
    let mut call = args.clone();
    call.0[0] = Arg::Tensor(all_samples(e, &x, all)?);
    call.0[1] = Arg::from(with_levels(e, all, own.iter().map(|&n| n as i64)));
    run(e, op, &call, all)
}

fn expand(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let x = args.input().clone();
    let given = args.ints(1).unwrap_or_default();
    // The errors are those of each sample's call.
    if let Lower::View(rule) = op.lower {
        rule(args)?;
    }
    let mut call = args.clone();
    call.0[0] = Arg::Tensor(aligned(e, &x, all, given.len())?);
    call.0[1] = Arg::from(with_levels(e, all, given));
    run(e, op, &call, all)
}

fn permute(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let x = args.input().clone();
    let (k, rank) = (all.len(), x.ndim());
    if let Lower::View(rule) = op.lower {
        rule(args)?;
    }
    let given = args.ints(1).unwrap_or_default();
    let own = given.iter().map(|&dim| infer::dim(dim, rank).map(|dim| (dim + k) as i64));
    let dims = (0..k as i64).map(Ok).chain(own).collect::<Result<Ints>>()?;
    let mut call = args.clone();
    call.0[0] = Arg::Tensor(all_samples(e, &x, all)?);
    call.0[1] = Arg::from(dims);
    run(e, op, &call, all)
}

/// `as_strided(input, size, stride, storage_offset, base_size, base_stride, base_offset)`: the layouts are those of the first
/// sample; the others have theirs as far behind as they lie in memory.
fn strided(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let x = all_samples(e, args.input(), all)?;
    let view = x.view();
    let steps = view.layout.strides[..all.len()].iter().map(|&step| step as i64).collect::<Ints>();
    let behind = |own: Ints| steps.iter().copied().chain(own).collect::<Ints>();
    let list = |at: usize| args.ints(at);
    let mut call = args.clone();
    call.0[0] = Arg::Tensor(x);
    call.0[1] = Arg::from(with_levels(e, all, list(1).unwrap_or_default()));
    call.0[2] = Arg::from(behind(list(2).unwrap_or_default()));
    if let (Some(size), Some(stride)) = (list(4), list(5)) {
        call.0[4] = Arg::from(with_levels(e, all, size));
        call.0[5] = Arg::from(behind(stride));
    }
    run(e, op, &call, all)
}

/// The extreme of all elements.
pub(super) fn whole(e: &mut Engine, kind: ReduceKind, args: &Args) -> Result<Option<Results>> {
    let op = match kind {
        ReduceKind::Max => &AMAX,
        ReduceKind::Min => &AMIN,
        _ => return Ok(None),
    };
    let all = e.call_row(op, args![args.input()])?;
    Ok(Some(Results::from_iter([all])))
}

/// `strided_add(input, size, stride, storage_offset, shape)`: one window for each sample, one behind the other.
fn window(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let list = |at: usize| args.ints(at).unwrap_or_default();
    let (size, stride, shape) = (list(1), list(2), list(4));
    let mut step: i64 = shape.iter().product();
    let mut strides = Ints::new();
    for &level in all.iter().rev() {
        strides.insert(0, step);
        step *= samples(e, level) as i64;
    }
    strides.extend(stride);
    let x = all_samples(e, args.input(), all)?;
    let call = args![&x, with_levels(e, all, size), strides, args.int(3), with_levels(e, all, shape)];
    run(e, op, &call, all)
}

/// A product: vectors become matrices, so that dims before the last two are those of a batch.
fn product(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Results> {
    let (a, b) = (args.tensor(0).clone(), args.tensor(1).clone());
    // The errors are those of each sample's call.
    crate::op::rows::linalg::matmul::check(&a.view().layout, &b.view().layout)?;
    let (is_row, is_column) = (a.ndim() == 1, b.ndim() == 1);
    let a = if is_row { e.call_row(&UNSQUEEZE, args![&a, 0])? } else { a };
    let b = if is_column { e.call_row(&UNSQUEEZE, args![&b, 1])? } else { b };
    let all = super::levels_of(e, [&a, &b])?;
    let rank = a.ndim().max(b.ndim());
    let [left, right] = [&a, &b].map(|x| if x.samples().is_some() { aligned(e, x, &all, rank) } else { Ok(x.clone()) });
    let both = e.call_row(op, args![left?, right?])?;
    let mut y = super::hide(e, both, &all);
    if is_column {
        y = e.call_row(&SQUEEZE, args![&y, -1])?;
    }
    if is_row {
        y = e.call_row(&SQUEEZE, args![&y, if is_column { -1 } else { -2 }])?;
    }
    Ok(Results::from_iter([y]))
}

/// Whether only the arguments at these positions have samples.
pub(super) fn only(args: &Args, which: &[usize]) -> bool {
    let mut rest = false;
    let others = args.0.iter().enumerate().filter(|(at, _)| !which.contains(at));
    others.for_each(|(_, arg)| arg.for_each_tensor(|x| rest |= x.samples().is_some()));
    !rest
}

fn first(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Option<Results>> {
    if only(args, &[0]) {
        let mut given = args.clone();
        given.0[0] = Arg::Tensor(all_samples(e, args.input(), all)?);
        return run(e, op, &given, all).map(Some);
    }
    // `linear(x, w, b)` whose weights have samples.
    let (x, w) = (args.input().clone(), args.tensor(1).clone());
    let transposed = e.call_row(&TRANSPOSE, args![&w, 0, 1])?;
    let mut y = e.call_row(&MATMUL, args![&x, &transposed])?;
    if let Some(b) = args.opt_tensor(2) {
        y = e.call_row(&ADD, args![&y, b])?;
    }
    Ok(Some(Results::from_iter([y])))
}

/// How many samples some levels have together.
pub(super) fn count(e: &Engine, all: &Levels) -> usize {
    all.iter().map(|&level| samples(e, level)).product()
}

/// `[samples, n, ..]` as `[samples * n, ..]`.
pub(super) fn into_batch(e: &mut Engine, x: &Tensor, all: &Levels) -> Result<Tensor> {
    let whole = all_samples(e, x, all)?;
    let (sizes, k) = (whole.shape(), all.len());
    let n: usize = sizes[..(k + 1).min(sizes.len())].iter().product();
    let shape: Vec<usize> = std::iter::once(n).chain(sizes.iter().skip(k + 1).copied()).collect();
    e.call_row(&RESHAPE, args![&whole, shape.as_slice()])
}

/// And back, as each sample sees it: `own` is its first dim, if it has one.
pub(super) fn out_of_batch(e: &mut Engine, y: &Tensor, own: Option<usize>, all: &Levels) -> Result<Tensor> {
    let sizes = y.shape();
    let rest = own.into_iter().chain(sizes[1..].iter().copied()).map(|n| n as i64);
    let shape = with_levels(e, all, rest);
    let y = e.call_row(&RESHAPE, args![y, shape])?;
    Ok(super::hide(e, y, all))
}

/// Samples become more of what the first dims of some tensors count.
pub(super) fn fold(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    all: &Levels,
    which: &[usize],
) -> Result<Option<Results>> {
    let count = count(e, all);
    if !only(args, which) || count == 0 || which.iter().any(|&at| args.opt_tensor(at).is_some_and(|x| x.ndim() == 0)) {
        return Ok(None);
    }
    let mut given = args.clone();
    for &at in which {
        if let Some(x) = args.opt_tensor(at) {
            given.0[at] = Arg::Tensor(into_batch(e, x, all)?);
        }
    }
    if let Some(at) = op.params.iter().position(|param| param.name == "shape")
        && let Some(mut shape) = args.ints(at)
        && let Some(first) = shape.first_mut()
    {
        *first *= count as i64;
        given.0[at] = Arg::from(shape);
    }
    let mut results = Results::new();
    for y in e.as_given(op, &given)? {
        results.push(out_of_batch(e, &y, Some(y.shape()[0] / count), all)?);
    }
    Ok(Some(results))
}

/// `x.repeat(sizes)`, which may have more dims than `x`.
fn repeat(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let sizes = args.ints(1).unwrap_or_default();
    if sizes.len() < args.input().ndim() {
        return leading(e, op, args, all);
    }
    let x = ranked_samples(e, args.input(), all, sizes.len())?;
    let sizes: Ints = all.iter().map(|_| 1).chain(sizes).collect();
    run(e, op, &args![&x, sizes], all)
}

/// `x.fill(value)`.
fn filled(e: &mut Engine, op: &'static Op, args: &Args, all: &Levels) -> Result<Results> {
    let (x, value) = (args.input().clone(), args.opt_tensor(1).cloned());
    let Some(value) = value.filter(|value| value.samples().is_some() && value.ndim() == 0) else {
        let x = all_samples(e, &x, all)?;
        return run(e, op, &args![&x, args.get(1).clone()], all);
    };
    let value = e.cast_to(&value, x.dtype())?;
    let wide = e.call_row(&EXPAND, args![&value, x.shape().as_slice()])?;
    Ok(Results::from_iter([e.call_row(&CLONE, args![&wide])?]))
}
