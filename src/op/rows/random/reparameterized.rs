//! Samples of gamma and Dirichlet distributions that the library has drawn, as functions of their parameters: their
//! gradients are those of implicit reparameterization (`kernel/math/reparameterized.rs`).

use crate::args;
use crate::kernel::elementwise as f;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save};
use crate::op::rows::pointwise::arith::SUB;
use crate::op::rows::reduction::reduce::SUM;
use crate::signature;

const SECOND: &str = "samples of this distribution have no second derivative";

signature!(gamma_slope(concentration: Tensor, sample: Tensor));

static GAMMA_SLOPE: Op = Op {
    name: "_gamma_slope",
    params: gamma_slope::PARAMS,
    summary: "The derivatives of samples of gamma distributions with respect to the concentrations.",
    lower: Lower::Map { function: &f::GAMMA_SLOPE, promote: Promote::FloatOnly },
    grad: Grad::Stop(SECOND),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(dirichlet_slope(sample: Tensor, concentration: Tensor, total: Tensor));

static DIRICHLET_SLOPE: Op = Op {
    name: "_dirichlet_slope",
    params: dirichlet_slope::PARAMS,
    summary: "The derivatives of samples of beta distributions with respect to the first concentration, over 1 - sample.",
    lower: Lower::Map { function: &f::DIRICHLET_SLOPE, promote: Promote::FloatOnly },
    grad: Grad::Stop(SECOND),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(sample_of(concentration: Tensor, sample: Tensor));

static GAMMA_SAMPLE: Op = Op {
    name: "_gamma_sample",
    params: sample_of::PARAMS,
    summary: "Samples of gamma distributions of rate 1, as functions of the concentrations.",
    lower: Lower::Map { function: &f::SAMPLED, promote: Promote::FloatOnly },
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Of(&[|t| t.g * t.input.with(&GAMMA_SLOPE, t.result)]),
    call: CallForm::Function,
    ..Op::BASE
};

static DIRICHLET_SAMPLE: Op = Op {
    name: "_dirichlet_sample",
    params: sample_of::PARAMS,
    summary: "Samples of Dirichlet distributions, as functions of the concentrations.",
    lower: Lower::Map { function: &f::SAMPLED, promote: Promote::FloatOnly },
    saves: &[Save::INPUT, Save::RESULT],
    // One component is of a beta distribution; when it moves, the others keep their proportions.
    grad: Grad::Rule(|e, v| {
        let (concentration, sample, g) = (v.saved(sample_of::concentration), v.result(), v.g());
        let total = e.call(&SUM, args![concentration, &[-1i64][..], true])?;
        let slope = e.call(&DIRICHLET_SLOPE, args![sample, concentration, &total])?;
        let all = e.mul(sample, g)?;
        let all = e.call(&SUM, args![&all, &[-1i64][..], true])?;
        let free = e.call(&SUB, args![g, &all])?;
        Ok(vec![Some(e.mul(&slope, &free)?)])
    }),
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&GAMMA_SAMPLE, &DIRICHLET_SAMPLE, &GAMMA_SLOPE, &DIRICHLET_SLOPE];
