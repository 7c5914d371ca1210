//! Covariances and correlations of variables, one in each row.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::row::{Grad, Lower, Op, ex};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::pointwise::blend::{CLAMP, CLAMP_MIN};
use crate::op::rows::pointwise::complex::{COMPLEX, IMAG, REAL};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::DIAGONAL;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

/// A weight for each observation.
fn check_weights(e: &mut dyn Emit, weights: Option<&Tensor>, name: &str, n: usize, float: bool) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    if weights.shape().as_slice() != [n] {
        fail!(SHAPE, "`{name}` has shape {:?}, the observations are {n}", weights.shape().as_slice());
    }
    if weights.dtype().is_float() != float || weights.dtype() == DType::Bool {
        fail!(DTYPE, "`{name}` must hold {}, not {}", if float { "floats" } else { "integers" }, weights.dtype());
    }
    if e.read(weights)?.iter().any(|weight| weight.to_f64() < 0.0) {
        fail!(VALUE, "`{name}` must not be negative");
    }
    Ok(())
}

fn covariance(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let x = a.input();
    if x.ndim() > 2 {
        fail!(SHAPE, "at most 2 dimensions are taken, not {}", x.ndim());
    }
    if x.dtype() == DType::Bool {
        fail!(DTYPE, "bool tensors are not supported");
    }
    let shape = x.shape();
    let (variables, n) = match shape.as_slice() {
        [] => (1, 1),
        [n] => (1, *n),
        all => (all[0], all[1]),
    };
    let x = if x.dtype().is_inexact() { x.clone() } else { e.cast(x, e.default_float())? };
    let x = e.call(&RESHAPE, args![&x, &[variables, n][..]])?;
    check_weights(e, a.opt_tensor(cov::fweights), "fweights", n, false)?;
    check_weights(e, a.opt_tensor(cov::aweights), "aweights", n, true)?;
    let weights = match (a.opt_tensor(cov::fweights), a.opt_tensor(cov::aweights)) {
        (Some(f), Some(w)) => Some(e.mul(f, w)?),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    };
    let correction = a.float(cov::correction);
    let Some(weights) = weights else {
        return compute(e, |c| {
            let x = c.of(&x);
            let apart = x - x.sum_keepdim(1) / n as f64;
            products(apart, apart) / (n as f64 - correction).max(0.0)
        });
    };
    // Counts lose their last digits in a narrow type; weights keep their own.
    let wide = if weights.dtype().is_float() { weights.dtype() } else { DType::F64 };
    compute(e, |c| {
        let (x, weights) = (c.of(&x), c.of(&weights));
        let total = weights.of(&SUM);
        let freedom = match a.opt_tensor(cov::aweights) {
            Some(w) if correction != 0.0 => total - (weights * w).of(&SUM) * correction / total,
            _ => total.cast(wide) - correction,
        };
        let apart = x - (x * weights).sum_keepdim(1) / total;
        products(apart * weights, apart) / freedom.with(&CLAMP_MIN, 0.0)
    })
}

/// `a bᴴ` of rows.
fn products<'c>(a: Expr<'c>, b: Expr<'c>) -> Expr<'c> {
    a.with(&MATMUL, b.mh())
}

/// One variable gives a tensor of no dimensions.
fn squeezed(e: &mut dyn Emit, c: Tensor) -> Result<Tensor> {
    if c.shape().as_slice() == [1, 1] { e.call(&RESHAPE, args![&c, &[0usize; 0][..]]) } else { Ok(c) }
}

signature!(cov(input: Tensor, correction: Int = 1, fweights: Tensor = None, aweights: Tensor = None));

pub static COV: Op = Op {
    name: "cov",
    params: cov::PARAMS,
    summary: "The covariances of variables, one in each row; `fweights` counts and `aweights` weighs observations.",
    details: "Given weights are looked at, which waits for them.",
    examples: &[
        ex("cov(tensor([[1.0, 2.0], [4.0, 2.0]]))", "tensor([[ 0.5000, -1.0000],\n        [-1.0000,  2.0000]])"),
        ex("cov(ones([2, 2, 2]))", "E0201"),
        ex("cov(tensor([true]))", "E0202"),
        ex("cov(ones([2]), 1, tensor([1, -1]))", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let c = covariance(e, a)?;
        Ok(vec![squeezed(e, c)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Clamped to [-1, 1], both parts of complex ones.
fn within_one(e: &mut dyn Emit, x: Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return e.call(&CLAMP, args![&x, -1.0, 1.0]);
    }
    let mut part = |op| {
        let part = e.call(op, args![&x])?;
        e.call(&CLAMP, args![&part, -1.0, 1.0])
    };
    let (re, im) = (part(&REAL)?, part(&IMAG)?);
    e.call(&COMPLEX, args![&re, &im])
}

pub static CORRCOEF: Op = Op {
    name: "corrcoef",
    params: unary::PARAMS,
    summary: "The correlation coefficients of variables, one in each row.",
    examples: &[
        ex("corrcoef(tensor([[1.0, 2.0], [4.0, 2.0]]))", "tensor([[ 1., -1.],\n        [-1.,  1.]])"),
        ex("corrcoef(ones([2, 2, 2]))", "E0201"),
        ex("corrcoef(tensor([true]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let c = covariance(e, &args![a.input(), 1, (), ()])?;
        let c = squeezed(e, c)?;
        if c.ndim() == 0 {
            return Ok(vec![e.div(&c, &c)?]);
        }
        let correlations = compute(e, |calc| {
            let c = calc.of(&c);
            let deviations = c.of(&DIAGONAL).sqrt();
            c / deviations.unsqueeze(1) / deviations
        })?;
        Ok(vec![within_one(e, correlations)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&COV, &CORRCOEF];
