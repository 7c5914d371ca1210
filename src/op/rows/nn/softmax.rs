//! Softmax along a dimension, its logarithm and its random cousin.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::program::{Draw, ReduceKind};
use crate::kernel::softmax;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::expr::{Expr, compute, derive};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ReduceType, Save, Source, ex};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::CLONE;
use crate::op::tensor::Tensor;
use crate::signature;

/// A kernel over tensors of one shape with a dim that is not negative, argument `at`.
fn along(name: &'static str, kernel: &'static Kernel, a: &Args, at: usize) -> Result<KernelCall> {
    let x = a.input();
    let dim = infer::dim(a.int(at), x.ndim())?;
    let call = (0..at).fold(KernelCall::new(name, kernel), |call, i| call.input(a.tensor(i)));
    Ok(call.int(dim as i64).output(&x.shape(), x.dtype()))
}

/// The sum along the dim, kept.
fn kept_sum(x: Expr<'_>, dim: i64) -> Expr<'_> {
    x.call(&SUM, args![dim, true])
}

signature!(softmax_float(input: Tensor, dim: Dim));

/// Softmax of floats, without conversion.
pub static SOFTMAX_FLOAT: Op = Op {
    name: "softmax",
    params: softmax_float::PARAMS,
    summary: "Softmax of floats.",
    lower: Lower::Kernel(|_, a| along("softmax", &softmax::SOFTMAX, a, softmax_float::dim)),
    saves: &[Save::RESULT],
    grad: Grad::Of(&[|t| t.g.call(&SOFTMAX_GRAD, args![t.result.arg(), t.int(softmax_float::dim)])]),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Symmetric,
    ..Op::BASE
};

signature!(softmax_grad(grad: Tensor, output: Tensor, dim: Dim));

/// y (g - sum(g y)).
static SOFTMAX_GRAD: Op = Op {
    name: "softmax",
    params: softmax_grad::PARAMS,
    summary: "Gradient of softmax.",
    lower: Lower::Kernel(|_, a| along("softmax_grad", &softmax::SOFTMAX_GRAD, a, softmax_grad::dim)),
    saves: &[Save::In(softmax_grad::grad), Save::In(softmax_grad::output)],
    grad: Grad::Of(&[
        |t| t.g.call(&SOFTMAX_GRAD, args![t.other.arg(), t.int(softmax_grad::dim)]),
        |t| {
            // G (g - sum(g y)) - g sum(G y)
            let (g, y, dim) = (t.input, t.other, t.int(softmax_grad::dim));
            t.g * (g - kept_sum(g * y, dim)) - g * kept_sum(t.g * y, dim)
        },
    ]),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static LOG_SOFTMAX_FLOAT: Op = Op {
    name: "log_softmax",
    params: softmax_float::PARAMS,
    summary: "Logarithm of the softmax of floats.",
    lower: Lower::Kernel(|_, a| along("log_softmax", &softmax::LOG_SOFTMAX, a, softmax_float::dim)),
    saves: &[Save::RESULT],
    grad: Grad::Of(&[|t| t.g.call(&LOG_SOFTMAX_GRAD, args![t.result.arg(), t.int(softmax_float::dim)])]),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Rule(|e, v| {
        let dim = v.args.int(softmax_float::dim);
        compute(e, |c| {
            let (t, y) = (c.of(v.tangent()), c.of(v.result()));
            t - kept_sum(y.exp() * t, dim)
        })
        .map(Some)
    }),
    ..Op::BASE
};

/// g - e^y sum(g).
static LOG_SOFTMAX_GRAD: Op = Op {
    name: "log_softmax",
    params: softmax_grad::PARAMS,
    summary: "Gradient of the logarithm of softmax.",
    lower: Lower::Kernel(|_, a| along("log_softmax_grad", &softmax::LOG_SOFTMAX_GRAD, a, softmax_grad::dim)),
    saves: &[Save::In(softmax_grad::grad), Save::In(softmax_grad::output)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let dim = t.int(softmax_grad::dim);
            let weighted = t.g * t.other.exp();
            [Some(t.g - kept_sum(weighted, dim)), Some(-(weighted * kept_sum(t.input, dim)))]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Arguments: input, dim, dtype.
fn converted(e: &mut dyn Emit, a: &Args, op: &'static Op) -> Result<Vec<Tensor>> {
    let x = a.input();
    let x = e.cast(x, a.dtype(softmax_args::dtype).unwrap_or(x.dtype()))?;
    infer::dim(a.int(softmax_args::dim), x.ndim())?;
    if x.numel() == 0 {
        // Nothing is computed, so that any dtype will do.
        return Ok(vec![e.call(&CLONE, args![&x])?]);
    }
    float_only(&x, "input")?;
    e.apply(op, args![&x, a.int(softmax_args::dim)])
}

signature!(softmax_args(input: Tensor, dim: Dim, dtype: DType = None));

pub static SOFTMAX: Op = Op {
    name: "softmax",
    params: softmax_args::PARAMS,
    summary: "e^x over its sum along a dimension: elements become shares that add up to 1.",
    details: "With `dtype` the input is converted first.",
    examples: &[
        ex("tensor([0.0, 0.0]).softmax(0)", "tensor([0.5000, 0.5000])"),
        ex("softmax(tensor([1, 1]), 0, \"f32\")", "tensor([0.5000, 0.5000])"),
        ex("softmax(zeros([0], #{dtype: \"i64\"}), 0)", "tensor([], dtype=i64)"),
        ex("softmax(ones([2]), 1)", "E0209"),
        ex("softmax(tensor([1, 1]), 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| converted(e, a, &SOFTMAX_FLOAT)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static LOG_SOFTMAX: Op = Op {
    name: "log_softmax",
    params: softmax_args::PARAMS,
    summary: "The logarithm of the softmax, without loss of digits.",
    details: "With `dtype` the input is converted first.",
    examples: &[
        ex("tensor([0.0, 0.0]).log_softmax(0)", "tensor([-0.6931, -0.6931])"),
        ex("log_softmax(ones([2]), 1)", "E0209"),
        ex("log_softmax(tensor([1, 1]), 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| converted(e, a, &LOG_SOFTMAX_FLOAT)),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static SOFTMIN: Op = Op {
    name: "softmin",
    params: softmax_args::PARAMS,
    summary: "The softmax of -x.",
    examples: &[
        ex("softmin(tensor([0.0, 0.0]), 0)", "tensor([0.5000, 0.5000])"),
        ex("softmin(ones([2]), 1)", "E0209"),
        ex("softmin(tensor([1, 1]), 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = e.neg(a.input())?;
        converted(e, &args![&x, a.int(softmax_args::dim), a.attr(softmax_args::dtype).clone()], &SOFTMAX_FLOAT)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Gumbel noise: -ln(-ln u).
fn gumbel(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    use crate::op::rows::pointwise::unary::LOG;
    let n = x.numel() as u64;
    let (seed, offset) = e.draw(n);
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let u = e.source(Source::Random { draw: Draw::Uniform, seed, offset }, &x.shape(), wide, x.device())?;
    // Uniform numbers start at 0, whose logarithm is not finite.
    let u = e.add(&u, f32::MIN_POSITIVE as f64)?;
    let exponential = e.call(&LOG, args![&u])?;
    let exponential = e.neg(&exponential)?;
    let noise = e.call(&LOG, args![&exponential])?;
    let noise = e.neg(&noise)?;
    e.cast(&noise, x.dtype())
}

signature!(largest(input: Tensor, dim: Dim, keepdim: Bool));

/// The largest along a dim, kept; never differentiated.
static LARGEST: Op = Op {
    name: "gumbel_softmax",
    params: largest::PARAMS,
    summary: "The largest along a dim.",
    lower: Lower::Reduce { kind: ReduceKind::Max, dtype: ReduceType::Same },
    grad: Grad::Stop("the choice has no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(gumbel_softmax(logits: Tensor, tau: Float = 1.0, hard: Bool = false, eps: Float = 1e-10, dim: Dim = (-1)));

pub static GUMBEL_SOFTMAX: Op = Op {
    name: "gumbel_softmax",
    params: gumbel_softmax::PARAMS,
    summary: "A random softmax: of logits plus Gumbel noise, over the temperature `tau`.",
    details: "With `hard` the result is 1 at the largest element and 0 elsewhere, with the soft result's gradient. `eps` \
has no effect, as in PyTorch.",
    examples: &[
        ex("gumbel_softmax(zeros([3])).shape", "[3]"),
        ex("gumbel_softmax(zeros([3]), #{hard: true}).sum()", "tensor(1.)"),
        ex("gumbel_softmax(zeros([3]), #{dim: 1})", "E0209"),
        ex("gumbel_softmax(tensor([1, 2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(gumbel_softmax::logits);
        float_only(x, "logits")?;
        let dim = infer::dim(a.int(gumbel_softmax::dim), x.ndim())?;
        if a.float(gumbel_softmax::tau) == 0.0 {
            fail!(VALUE, "`tau` must not be 0");
        }
        let noise = gumbel(e, x)?;
        let noisy = e.add(x, &noise)?;
        let noisy = e.div(&noisy, Scalar::Float(a.float(gumbel_softmax::tau)))?;
        let soft = e.call(&SOFTMAX_FLOAT, args![&noisy, dim])?;
        if !a.flag(gumbel_softmax::hard) {
            return Ok(vec![soft]);
        }
        let top = e.detach(&soft);
        let largest = e.call(&LARGEST, args![&top, dim, true])?;
        let hard = e.call(&crate::op::rows::pointwise::compare::EQ, args![&top, &largest])?;
        let hard = e.cast(&hard, x.dtype())?;
        let difference = e.sub(&hard, &top)?;
        Ok(vec![e.add(&difference, &soft)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &SOFTMAX_FLOAT,
    &SOFTMAX_GRAD,
    &LOG_SOFTMAX_FLOAT,
    &LOG_SOFTMAX_GRAD,
    &SOFTMAX,
    &LOG_SOFTMAX,
    &SOFTMIN,
    &LARGEST,
    &GUMBEL_SOFTMAX,
];
