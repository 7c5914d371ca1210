//! Shared parts of the steps of optimizers: over lists of tensors, in place and outside the gradient graph. A step is
//! written as formulas of one element, so that all parameters are one node and one launch; learning rates and bias
//! corrections are scalars, never part of a plan.
//!
//! Called by the standard library, which owns the state and skips parameters without a gradient.

use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::Layout;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::formula::{Formula, Value, power};
use crate::op::infer::expanded;
use crate::op::row::{CallForm, Grad, Lower, Op, Param};
use crate::op::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// Elements of the tensor `step` of a row: steps done so far, which the row counts, and room for the numbers that follow
/// from it, in f64 on the device of the parameters. Whether a step is held is known only there.
pub const COUNTED: usize = 6;

/// The lists before argument `end`; each that is used has a tensor for each parameter, of its shape.
pub(in crate::op::rows) fn lists<'a>(
    a: &'a Args,
    end: usize,
    used: impl Fn(usize) -> bool,
    op_params: &[Param],
) -> Result<SmallVec<[&'a [Tensor]; 6]>> {
    let params = a.tensor_list(P);
    let mut lists: SmallVec<[&[Tensor]; 6]> = smallvec![params];
    for (at, param) in op_params.iter().enumerate().take(end).skip(1) {
        let list = a.tensor_list(at);
        let name = param.name;
        if list.is_empty() && !params.is_empty() && used(at) && at > 1 {
            fail!(MISSING_ARGUMENT, "`{name}` is missing");
        }
        if list.len() != params.len() && !(list.is_empty() && at > 1) {
            fail!(VALUE, "`{name}` has {} tensors for {} parameters", list.len(), params.len());
        }
        for (p, t) in params.iter().zip(list) {
            // State may be one number for a parameter.
            if p.shape() != t.shape() && !(at > 1 && t.shape().is_empty()) {
                fail!(
                    SHAPE,
                    "`{name}` has shape {:?} for a parameter of shape {:?}",
                    t.shape().as_slice(),
                    p.shape().as_slice()
                );
            }
        }
        lists.push(list);
    }
    // Before anything is queued, since the step is counted first.
    let mut written = lists.iter().enumerate().filter(|(at, _)| *at != G).flat_map(|(_, list)| list.iter());
    match written.any(|tensor| tensor.view().layout.repeated().next().is_some()) {
        true => Err(expanded()),
        false => Ok(lists),
    }
}

/// Runs a formula over lists of tensors.
pub(in crate::op::rows) fn each(
    e: &mut dyn Emit,
    lists: &[&[Tensor]],
    mut formula: impl FnMut(&Formula),
) -> Result<Vec<Tensor>> {
    floats(lists)?;
    e.each(lists, &mut formula)?;
    Ok(Vec::new())
}

/// Formulas are of floats: functions such as `clamp` are no others inside them.
fn floats(lists: &[&[Tensor]]) -> Result<()> {
    match lists.iter().copied().flatten().find(|t| !t.dtype().is_inexact()) {
        Some(t) => fail!(DTYPE, "parameters, gradients and state are floats, not {}", t.dtype()),
        None => Ok(()),
    }
}

/// The first elements of a step's tensor as tensors of no dimensions.
fn elements(e: &mut dyn Emit, step: &Tensor, count: usize) -> Result<SmallVec<[Tensor; COUNTED]>> {
    let view = step.view();
    if view.layout.shape.as_slice() != [COUNTED] || !view.layout.is_contiguous() || view.dtype != DType::F64 {
        let (dtype, shape) = (view.dtype, view.layout.shape.as_slice());
        fail!(VALUE, "`step` is {COUNTED} numbers of dtype f64 that lie side by side, not {dtype} {shape:?}");
    }
    let element = |at| Layout { offset: view.layout.offset + at, ..Layout::contiguous(&[]) };
    Ok((0..count).map(|at| e.alias(step, element(at))).collect())
}

/// The count of steps, this one included once it was counted.
pub(in crate::op::rows) fn count(e: &mut dyn Emit, step: &Tensor) -> Result<Tensor> {
    Ok(elements(e, step, 1)?.swap_remove(0))
}

/// As `each`, and counts the step.
pub(in crate::op::rows) fn each_and_count(
    e: &mut dyn Emit,
    lists: &[&[Tensor]],
    step: &Tensor,
    formula: impl FnMut(&Formula),
) -> Result<Vec<Tensor>> {
    each_counted(e, lists, step, 0, |_, _| {}, formula)
}

/// As `each_and_count`, with `made` numbers that follow from the count of this step, from 1, behind the lists: `numbers`
/// makes operands 1 and up of them.
pub(in crate::op::rows) fn each_counted(
    e: &mut dyn Emit,
    lists: &[&[Tensor]],
    step: &Tensor,
    made: usize,
    numbers: impl for<'f> Fn(&'f Formula, Value<'f>),
    mut formula: impl FnMut(&Formula),
) -> Result<Vec<Tensor>> {
    floats(lists)?;
    let elements = elements(e, step, 1 + made)?;
    let alone: SmallVec<[&[Tensor]; COUNTED]> = elements.iter().map(std::slice::from_ref).collect();
    e.each(&alone, &mut |f: &Formula| numbers(f, f.set(0, f.get(0) + 1.0)))?;
    let mut all: SmallVec<[&[Tensor]; 12]> = SmallVec::from_slice(lists);
    all.extend_from_slice(&alone[1..]);
    e.each(&all, &mut formula)?;
    Ok(Vec::new())
}

/// `1 - beta ** step`.
pub(in crate::op::rows) fn correction(beta: f64, step: Value<'_>) -> Value<'_> {
    1.0 - power(beta, step)
}

/// Operands of every formula.
pub(in crate::op::rows) const P: usize = 0;
pub(in crate::op::rows) const G: usize = 1;

/// The gradient that is descended: negated when maximizing, with weight decay.
pub(in crate::op::rows) fn descent(f: &Formula, maximize: bool, decay: f64) -> Value<'_> {
    let g = f.get(G);
    let g = if maximize { -g } else { g };
    if decay == 0.0 { g } else { g + f.get(P) * decay }
}

/// `p *= factor`: weight decay apart from the gradient. Gives the parameter.
pub(in crate::op::rows) fn shrunk(f: &Formula, factor: f64) -> Value<'_> {
    let p = f.get(P);
    if factor == 1.0 { p } else { p * factor }
}

/// `old + (1 - beta) * (new - old)`, from the nearer end, as `lerp`: exactly `new` where `beta` is 0.
pub(in crate::op::rows) fn average<'f>(f: &'f Formula, at: usize, new: Value<'f>, beta: f64) -> Value<'f> {
    let old = f.get(at);
    let (change, weight) = (new - old, 1.0 - beta);
    f.set(at, if weight < 0.5 { old + change * weight } else { new + change * (weight - 1.0) })
}

/// `old = beta * old + (1 - beta) * g²`.
pub(in crate::op::rows) fn average_square<'f>(f: &'f Formula, at: usize, g: Value<'f>, beta: f64) -> Value<'f> {
    f.set(at, f.get(at) * beta + g * g * (1.0 - beta))
}

/// `sqrt(v) + eps`.
pub(in crate::op::rows) fn root(v: Value<'_>, eps: f64) -> Value<'_> {
    v.sqrt() + eps
}

pub(in crate::op::rows) const fn step(
    name: &'static str,
    params: &'static [Param],
    summary: &'static str,
    lower: Lower,
) -> Op {
    Op {
        name,
        params,
        summary,
        lower,
        grad: Grad::Stop("optimizer steps are not differentiated"),
        call: CallForm::Function,
        guarded: true,
        ..Op::BASE
    }
}
