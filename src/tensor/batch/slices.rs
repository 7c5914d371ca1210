//! Sample by sample: for operations that do not take all samples at once.

use super::{hide, levels, samples, value};
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::op::args::Args;
use crate::op::dry_run::{self, Outcome};
use crate::op::emit::Emit;
use crate::op::row::{Op, Source};
use crate::op::rows::shape::join::STACK;
use crate::op::rows::shape::view::SELECT;
use crate::op::tensor::{Levels, Tensor};
use crate::tensor::engine::{Engine, Results};

/// The message of the diagnostic that says that a rule must run for each sample.
const SLICE_WISE: &str = "this runs for each sample alone";

/// The error that makes the caller of a rule run it for each sample.
#[cold]
pub fn slice_wise() -> Box<Diag> {
    Diag::error(code::INTERNAL, SLICE_WISE)
}

/// Whether an error is that of `slice_wise`.
pub fn is_slice_wise(diag: &Diag) -> bool {
    diag.code == code::INTERNAL && diag.message == SLICE_WISE
}

/// The results, or none if the rule must run for each sample.
pub(super) fn or_slices(results: Result<Results>) -> Result<Option<Results>> {
    match results {
        Ok(results) => Ok(Some(results)),
        Err(diag) if is_slice_wise(&diag) => Ok(None),
        Err(diag) => Err(diag),
    }
}

/// One sample of a level.
pub fn sample(e: &mut Engine, x: &Tensor, level: u64, at: usize) -> Result<Tensor> {
    let mut own = levels(x);
    let Some(dim) = own.iter().position(|other| *other == level) else { return Ok(x.clone()) };
    let one = e.call_row(&SELECT, args![&value(x), dim, at])?;
    own.remove(dim);
    Ok(hide(e, one, &own))
}

/// Samples of a level, which is inside those that they have, as one tensor.
pub fn joined(e: &mut Engine, parts: &[Tensor], level: u64) -> Result<Tensor> {
    let first = parts[0].shape();
    if parts.iter().any(|part| part.shape() != first) {
        return Err(Diag::error(
            code::VMAP,
            "inside of `vmap` the shape of this result is not the same for all samples",
        )
        .help("`where` and masks of the same shape keep all elements; or loop over the samples outside of `vmap`"));
    }
    let all = super::levels_of(e, parts)?;
    let mut values = Vec::new();
    for part in parts {
        values.push(super::all_samples(e, part, &all)?);
    }
    // Levels ascend: the new dim stands among those of the others.
    let at = all.iter().filter(|other| **other < level).count();
    let joined = e.call_row(&STACK, args![values, at])?;
    let mut levels = all;
    levels.insert(at, level);
    Ok(hide(e, joined, &levels))
}

/// The results for each sample where there is none: of the shapes that a sample would give.
fn none(e: &mut Engine, op: &'static Op, args: &Args, level: u64) -> Result<Results> {
    let tensors = args.tensors();
    let mut all = super::levels_of(e, &tensors)?;
    if !all.contains(&level) {
        all.push(level);
    }
    let device = tensors.first().map_or_else(|| e.default_device(), Tensor::device);
    let given = super::mapped(args, |x| dry_run::tensor(&x.shape(), x.dtype()))?;
    let found = match dry_run::results(op, given) {
        Outcome::Results(found) => found,
        Outcome::Refused(diag) => return Err(diag),
        Outcome::Unknown => return Err(no_samples(op.name)),
    };
    let mut results = Results::new();
    for one in found {
        let sizes: Vec<usize> = all.iter().map(|&level| samples(e, level)).chain(one.shape()).collect();
        let zeros = e.source(Source::Fill(Scalar::Int(0)), &sizes, one.dtype(), device)?;
        results.push(hide(e, zeros, &all));
    }
    Ok(results)
}

/// What depends on values gives nothing, not even a shape, where there is no sample.
#[cold]
fn no_samples(name: &str) -> Box<Diag> {
    let text = format!("`{name}` runs for each sample, and the dim that is mapped over has size 0");
    Diag::error(code::VMAP, text).help("call the mapped function only where there are samples")
}

/// The results of a row for each sample of a level.
pub(super) fn each(e: &mut Engine, op: &'static Op, args: &Args, level: u64) -> Result<Results> {
    each_after(e, op, args, level, &mut |_| {})
}

/// The same; `before` runs before each.
pub(super) fn each_after(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    level: u64,
    before: &mut dyn FnMut(&mut Engine),
) -> Result<Results> {
    if samples(e, level) == 0 {
        return none(e, op, args, level);
    }
    let mut all: Vec<Results> = Vec::new();
    for at in 0..samples(e, level) {
        let own = super::mapped(args, |x| sample(e, x, level, at))?;
        before(e);
        all.push(e.as_given(op, &own)?);
    }
    let count = all[0].len();
    if all.iter().any(|results| results.len() != count) {
        return Err(super::refused(op, "the number of its results is not the same for all samples"));
    }
    let mut joined_results = Results::new();
    for n in 0..count {
        let parts: Vec<Tensor> = all.iter().map(|results| results[n].clone()).collect();
        joined_results.push(joined(e, &parts, level)?);
    }
    Ok(joined_results)
}

/// The gradient rule of a node, for the gradients of its results.
type NodeRule<'a> = &'a mut dyn FnMut(&mut Engine, &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;

/// Runs a gradient rule with gradients that have samples: at once, or for each sample.
pub fn node_slices(e: &mut Engine, grads: &[Option<Tensor>], rule: NodeRule<'_>) -> Result<Vec<Option<Tensor>>> {
    let all: Levels = super::levels_of(e, grads.iter().flatten())?;
    let Some(&level) = all.last() else { return rule(e, grads) };
    match rule(e, grads) {
        Err(diag) if is_slice_wise(&diag) => {}
        done => return done,
    }
    let mut found: Vec<Vec<Option<Tensor>>> = Vec::new();
    if samples(e, level) == 0 {
        return Err(no_samples(e.name));
    }
    for at in 0..samples(e, level) {
        let mut own = Vec::new();
        for g in grads {
            own.push(match g {
                Some(g) => Some(sample(e, g, level, at)?),
                None => None,
            });
        }
        found.push(node_slices(e, &own, rule)?);
    }
    let mut joined_grads = Vec::new();
    for n in 0..found[0].len() {
        let parts: Vec<Tensor> = found.iter().filter_map(|grads| grads[n].clone()).collect();
        joined_grads.push(if parts.len() == found.len() { Some(joined(e, &parts, level)?) } else { None });
    }
    Ok(joined_grads)
}
