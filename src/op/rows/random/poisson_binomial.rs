//! Random counts: `poisson` and `binomial`.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::Draw;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Source, ex};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith::ZERO;
use crate::op::rows::pointwise::compare::{GE, LE, LOGICAL_AND};
use crate::op::rows::reduction::reduce::ALL;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(poisson_map(rate: Tensor, uniform: Tensor));

static POISSON_MAP: Op = Op {
    name: "poisson",
    params: poisson_map::PARAMS,
    summary: "Counts of given means.",
    lower: Lower::Map { function: &f::POISSON, promote: Promote::Same },
    grad: Grad::Stop("counts have no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(binomial_map(count: Tensor, prob: Tensor, uniform: Tensor));

static BINOMIAL_MAP: Op = Op {
    name: "binomial",
    params: binomial_map::PARAMS,
    summary: "Counts of successes.",
    lower: Lower::Map { function: &f::BINOMIAL, promote: Promote::Same },
    grad: Grad::Stop("counts have no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Uniform numbers for the elements of a shape.
fn uniform(e: &mut dyn Emit, shape: &[usize], like: &Tensor) -> Result<Tensor> {
    let n = crate::base::layout::numel(shape).unwrap_or(0) as u64;
    let (seed, offset) = e.draw(n);
    e.source(Source::Random { draw: Draw::Uniform, seed, offset }, shape, DType::F64, like.device())
}

/// Reads whether all elements are of a range.
fn all_in(e: &mut dyn Emit, x: &Tensor, low: f64, high: f64) -> Result<bool> {
    let x = e.detach(x);
    let above = e.call(&GE, args![&x, Scalar::Float(low)])?;
    let below = e.call(&LE, args![&x, Scalar::Float(high)])?;
    let fine = e.call(&LOGICAL_AND, args![&above, &below])?;
    let fine = e.call(&ALL, args![&fine])?;
    Ok(e.read(&fine)?.first().is_none_or(|fine| !fine.is_zero()))
}

signature!(poisson(input: Tensor, generator: Ignored = None));

pub static POISSON: Op = Op {
    name: "poisson",
    params: poisson::PARAMS,
    summary: "A random count for each element, of the Poisson distribution whose mean the element is.",
    details: "Reads whether a mean is negative, which waits.",
    examples: &[
        ex("poisson(zeros([2]))", "tensor([0., 0.])"),
        ex("poisson(tensor([-1.0]))", "E0206"),
        ex("poisson(tensor([1]))", "E0202"),
    ],
    lower: Lower::Steps(|e, a| {
        let rate = a.input();
        float_only(rate, "input")?;
        if !all_in(e, rate, 0.0, f64::MAX)? {
            fail!(VALUE, "a mean must be finite and not negative");
        }
        let unit = uniform(e, &rate.shape(), rate)?;
        let wide = e.cast(rate, DType::F64)?;
        let counts = e.call(&POISSON_MAP, args![&wide, &unit])?;
        Ok(vec![e.cast(&counts, rate.dtype())?])
    }),
    grad: Grad::Rule(ZERO),
    call: CallForm::Function,
    ..Op::BASE
};

signature!(binomial(count: Tensor, prob: Tensor, generator: Ignored = None));

pub static BINOMIAL: Op = Op {
    name: "binomial",
    params: binomial::PARAMS,
    summary: "How many of `count` trials succeed, each with probability `prob`.",
    details: "Both tensors, of one float dtype; they broadcast. Reads whether they are counts and probabilities, which waits.",
    examples: &[
        ex("binomial(tensor([3.0, 4.0]), tensor([0.0, 1.0]))", "tensor([0., 4.])"),
        ex("binomial(tensor([3.0]), tensor([2.0]))", "E0206"),
        ex("binomial(tensor([3]), tensor([0.5]))", "E0202"),
        ex("binomial(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let (count, prob) = (a.tensor(binomial::count), a.tensor(binomial::prob));
        float_only(count, "count")?;
        infer::same_dtype(&[("count", count), ("prob", prob)])?;
        let shapes = [count.shape(), prob.shape()];
        let shape = infer::broadcast_all(shapes.iter().map(|shape| shape.as_slice()))?;
        if !all_in(e, count, 0.0, f64::MAX)? {
            fail!(VALUE, "a count must be finite and not negative");
        }
        if !all_in(e, prob, 0.0, 1.0)? {
            fail!(VALUE, "a probability lies between 0 and 1");
        }
        let unit = uniform(e, &shape, count)?;
        let (n, p) = (e.cast(count, DType::F64)?, e.cast(prob, DType::F64)?);
        let counts = e.call(&BINOMIAL_MAP, args![&n, &p, &unit])?;
        Ok(vec![e.cast(&counts, count.dtype())?])
    }),
    grad: Grad::Rule(ZERO),
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&POISSON, &BINOMIAL, &POISSON_MAP, &BINOMIAL_MAP];
