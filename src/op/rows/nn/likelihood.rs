//! Negative log-likelihoods of counts and of measurements.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::compute;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::nn::loss::reduced;
use crate::op::rows::nn::pointwise_loss::{float, row};
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::compare::LT;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::tensor::Tensor;
use crate::signature;
use std::f64::consts::TAU;

signature!(poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: Bool = true, full: Bool = false, eps: Float = 1e-8,
    reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static POISSON_NLL_LOSS: Op = row(
    "poisson_nll_loss",
    poisson_nll_loss::PARAMS,
    [
        "The negative log-likelihood of counts: e^x - t x, or x - t ln(x + eps) without `log_input`.",
        "`full` adds Stirling's approximation of ln t! where t exceeds 1.",
    ],
    &[
        ex("poisson_nll_loss(tensor([0.0]), tensor([2.0]))", "tensor(1.)"),
        ex("poisson_nll_loss(ones([2]), ones([3]))", "E0201"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.input(), a.tensor(poisson_nll_loss::target));
        let loss = compute(e, |c| {
            let (x, t) = (c.of(x), c.of(t));
            let loss = if a.flag(poisson_nll_loss::log_input) {
                x.exp() - t * x
            } else {
                x - t * (x + a.float(poisson_nll_loss::eps)).log()
            };
            if !a.flag(poisson_nll_loss::full) {
                return loss;
            }
            let stirling = t * t.log() - t + (t * TAU).log() * 0.5;
            loss + stirling.zero_unless(t.greater(1))
        })?;
        reduced(e, loss, a.text(poisson_nll_loss::reduction))
    }),
);

signature!(clamp_pass(input: Tensor, min: Float));

/// At least `min`, with the gradient of the identity.
static CLAMP_PASS: Op = Op {
    name: "gaussian_nll_loss",
    params: clamp_pass::PARAMS,
    summary: "A lower bound that the gradient ignores.",
    lower: Lower::Steps(|e, a| Ok(vec![e.call(&CLAMP_MIN, args![a.input(), float(a.float(clamp_pass::min))])?])),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Symmetric,
    ..Op::BASE
};

/// The variance as a tensor that broadcasts with the input.
fn variance(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let x = a.input();
    let Some(var) = a.opt_tensor(gaussian_nll_loss::var) else {
        let value = a.scalar(gaussian_nll_loss::var).unwrap_or(Scalar::Int(0));
        if value.to_f64() < 0.0 {
            fail!(VALUE, "`var` must not be negative");
        }
        return e.full(&x.shape(), value, &crate::op::tensor::Meta::of(x));
    };
    let plain = e.detach(var);
    let negative = e.call(&LT, args![&plain, Scalar::Int(0)])?;
    let count = e.call(&SUM, args![&negative])?;
    if e.read(&count)?.first().is_some_and(|count| !count.is_zero()) {
        fail!(VALUE, "`var` must not be negative");
    }
    let (shape, own) = (x.shape(), var.shape());
    if own == shape {
        return Ok(var.clone());
    }
    if own.len() + 1 == shape.len() && shape[..own.len()] == own[..] {
        return e.call(&crate::op::rows::shape::view::UNSQUEEZE, args![var, -1]);
    }
    let fits = own.len() == shape.len() && own.iter().zip(&shape).all(|(o, s)| o == s || *o == 1);
    if !fits {
        fail!(SHAPE, "`var` of shape {:?} does not go with an input of shape {:?}", own.as_slice(), shape.as_slice());
    }
    Ok(var.clone())
}

signature!(gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Operand, full: Bool = false, eps: Float = 1e-6,
    reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static GAUSSIAN_NLL_LOSS: Op = row(
    "gaussian_nll_loss",
    gaussian_nll_loss::PARAMS,
    [
        "The negative log-likelihood of numbers with given means and variances: (ln var + (x - t)² / var) / 2.",
        "The variance is held above `eps`, which the gradient ignores; `full` adds ln(2 pi) / 2. A negative variance is an \
error, for which the call waits.",
    ],
    &[
        ex("gaussian_nll_loss(tensor([1.0]), tensor([3.0]), tensor([1.0]))", "tensor(2.)"),
        ex("gaussian_nll_loss(ones([2]), ones([2]), ones([3]))", "E0201"),
        ex("gaussian_nll_loss(ones([2]), ones([2]), tensor([-1.0, 1.0]))", "E0206"),
    ],
    Lower::Compose(|e, a| {
        if a.float(gaussian_nll_loss::eps) < 0.0 {
            fail!(VALUE, "`eps` must not be negative");
        }
        let var = variance(e, a)?;
        let var = e.call(&CLAMP_PASS, args![&var, a.float(gaussian_nll_loss::eps)])?;
        let loss = compute(e, |c| {
            let (var, d) = (c.of(&var), c.of(a.input()) - a.tensor(gaussian_nll_loss::target));
            let loss = (var.log() + d * d / var) * 0.5;
            if a.flag(gaussian_nll_loss::full) { loss + 0.5 * TAU.ln() } else { loss }
        })?;
        reduced(e, loss, a.text(gaussian_nll_loss::reduction))
    }),
);

pub static ROWS: &[&Op] = &[&POISSON_NLL_LOSS, &CLAMP_PASS, &GAUSSIAN_NLL_LOSS];
