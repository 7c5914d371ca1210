//! Calls of rows with tensors that have samples.

use super::{active, hide, levels_of, refused, rules, slices, value};
use crate::base::diag::Result;
use crate::op::args::{Arg, Args};
use crate::op::batching::{self, Batching};
use crate::op::complex::{self, Rule};
use crate::op::row::{Grad, Lower, Op};
use crate::op::rows::pointwise::arith::COPY;
use crate::op::tensor::{Levels, Tensor};
use crate::sched::samples::Randomness;
use crate::tensor::engine::{Engine, Results};
use crate::{args, op::emit::Emit};

/// The results of a call inside of `vmap`; none where no tensor of it has samples and nothing is drawn.
pub fn called(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Option<Results>> {
    if e.name.is_empty()
        && let Some(drawn) = drawn(e, op, args)?
    {
        return Ok(Some(drawn));
    }
    let tensors = args.tensors();
    let levels = levels_of(e, &tensors)?;
    if levels.is_empty() {
        return Ok(None);
    }
    e.named(op.name, |e| at_once(e, op, args, &levels)).map(Some)
}

/// How complex samples are computed with other rows, if they are.
fn of_complex(op: &'static Op, args: &Args) -> Result<Option<complex::Forward>> {
    if !complex::involved(args) {
        return Ok(None);
    }
    Ok(match complex::rule(op, args)? {
        Rule::Compose(forward) => Some(forward),
        _ => None,
    })
}

fn at_once(e: &mut Engine, op: &'static Op, args: &Args, levels: &Levels) -> Result<Results> {
    if let Some(forward) = of_complex(op, args)?
        && let Some(results) = slices::or_slices(forward.run(e, op, args).map(Results::from_vec))?
    {
        return Ok(results);
    }
    let done = match (batching::of(op), &op.lower) {
        (_, Lower::Map { .. }) => Some(rules::pointwise(e, op, args, levels)?),
        (_, Lower::Reduce { kind, .. }) if op.params.len() == 1 => rules::whole(e, *kind, args)?,
        (Some(batching), _) => rules::apply(e, op, batching, args, levels)?,
        (None, Lower::Reduce { .. }) => rules::apply(e, op, Batching::Along, args, levels)?,
        (None, Lower::Compose(rule)) => slices::or_slices(rule(e, args).map(Results::from_vec))?,
        (None, Lower::Steps(rule)) if matches!(op.grad, Grad::Stop(_) | Grad::Unset) => {
            slices::or_slices(e.without_recording(|e| rule(e, args)).map(Results::from_vec))?
        }
        _ => None,
    };
    match done {
        Some(results) => Ok(results),
        None => slices::each(e, op, args, *levels.last().expect("there are samples")),
    }
}

/// The results of a row that draws random numbers, as the innermost level wants them; none if it draws none.
fn drawn(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Option<Results>> {
    let Some(flag) = batching::draws(op) else { return Ok(None) };
    let Some(level) = active(e).last().copied() else { return Ok(None) };
    let at = op.params.iter().position(|param| param.name == flag);
    if at.is_some_and(|at| !args.flag(at)) {
        return Ok(None);
    }
    match level.randomness {
        Randomness::Error => {
            let why = "it draws random numbers, and whether all samples get the same ones is not said";
            Err(refused(op, why).help("`vmap(f, #{randomness: \"different\"})`, or \"same\""))
        }
        Randomness::Different => e.named(op.name, |e| slices::each(e, op, args, level.number)).map(Some),
        Randomness::Same if args.tensors().iter().all(|x| x.samples().is_none()) => Ok(None),
        Randomness::Same => {
            let generator = e.rt.generator();
            let again = &mut |e: &mut Engine| e.rt.set_generator(generator);
            e.named(op.name, |e| slices::each_after(e, op, args, level.number, again)).map(Some)
        }
    }
}

/// A call of an in-place form inside of `vmap`; none where no tensor of it has samples.
pub fn changed(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Option<Tensor>> {
    let tensors = args.tensors();
    let all = levels_of(e, &tensors)?;
    let may_draw = batching::draws(op).is_some() && !active(e).is_empty();
    if all.is_empty() && !may_draw {
        return Ok(None);
    }
    let x = args.tensor(0).clone();
    let own = super::levels(&x);
    if all.iter().any(|level| !own.contains(level)) {
        let why = "it would write a value for each sample into a tensor that all samples share";
        return Err(refused(op, why).help("write the change out of place: `x + y` in place of `x += y`"));
    }
    if matches!(op.lower, Lower::Map { .. }) {
        let rank = x.ndim();
        let mut given = super::mapped(args, |other| super::aligned(e, other, &own, rank))?;
        given.0[0] = Arg::Tensor(value(&x));
        e.apply_inplace(op, given)?;
        return Ok(Some(x));
    }
    let args = e.before_overwriting(&x, args.clone())?;
    let result = e.one(op, args)?;
    if result.shape() != x.shape() {
        return Err(crate::tensor::inplace::inplace_shape(&x.shape(), &result.shape()));
    }
    e.apply_inplace(&COPY, args![&x, &result])?;
    Ok(Some(x))
}

/// Results with all samples, as each sample sees them.
pub(super) fn hidden(e: &mut Engine, results: Results, levels: &Levels) -> Results {
    results.into_iter().map(|result| hide(e, result, levels)).collect()
}
