//! Gradients of activations as rows of their own: one map each, differentiable again.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::kernel::elementwise as f;
use crate::kernel::program::Function;
use crate::op::emit::{Backward, Emit};
use crate::op::row::{CallForm, Grad, GradRule, Kind, Lower, Op, Param, Promote, Save};
use crate::op::rows::pointwise::arith::unmasked;
use crate::op::rows::pointwise::compare::GT;
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::unary::{EXP, SIGMOID, TANH};
use crate::op::tensor::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

const G: Param = Param::new("grad", Kind::Tensor);
const X: Param = Param::new("input", Kind::Tensor);

const fn slope(name: &'static str, function: &'static Function, params: &'static [Param], rule: GradRule) -> Op {
    Op {
        name,
        params,
        summary: "The gradient of an activation.",
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::For(0, 1), Save::In(1)],
        grad: Grad::Rule(rule),
        call: CallForm::Internal,
        ..Op::BASE
    }
}

type Grads = Result<Vec<Option<Tensor>>>;

/// Gradients of `g · f'(x)`: by g the same row again, by x `g · f''(x)`.
fn twice(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    again: impl FnOnce(&mut dyn Emit, &Tensor) -> Result<Tensor>,
    second: impl FnOnce(&mut dyn Emit, &Tensor) -> Result<Tensor>,
) -> Grads {
    let first = if v.needs(0) { Some(again(e, v.input(1))?) } else { None };
    let by_x = if v.needs(1) {
        let product = e.mul(v.g(), v.input(0))?;
        let curve = second(e, v.input(1))?;
        Some(e.mul(&product, &curve)?)
    } else {
        None
    };
    Ok(vec![first, by_x])
}

/// `1 - y`.
fn rest(e: &mut dyn Emit, y: &Tensor) -> Result<Tensor> {
    e.rev(&crate::op::rows::pointwise::arith::SUB, Scalar::Int(1), y)
}

pub static GELU_ERF_GRAD: Op = slope("gelu", &f::GELU_ERF_GRAD, &[G, X], |e, v| {
    twice(
        e,
        v,
        |e, x| e.call(&GELU_ERF_GRAD, args![v.g(), x]),
        |e, x| {
            // phi(x) (2 - x²)
            let square = e.call(&SQUARE, args![x])?;
            let half = e.mul(&square, -0.5)?;
            let density = e.call(&EXP, args![&half])?;
            let density = e.mul(&density, 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2)?;
            let factor = e.rev(&crate::op::rows::pointwise::arith::SUB, Scalar::Int(2), &square)?;
            e.mul(&density, &factor)
        },
    )
});

pub static GELU_TANH_GRAD: Op = slope("gelu", &f::GELU_TANH_GRAD, &[G, X], |e, v| {
    twice(
        e,
        v,
        |e, x| e.call(&GELU_TANH_GRAD, args![v.g(), x]),
        |e, x| {
            // With u = k (x + c x³), t = tanh u, s = 1 - t²: s u' + x s (u'' - 2 t u'²) / 2.
            let (k, c) = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2, 0.044_715);
            let square = e.call(&SQUARE, args![x])?;
            let inner = e.mul(&square, c)?;
            let inner = e.add(&inner, Scalar::Int(1))?;
            let inner = e.mul(&inner, x)?;
            let u = e.mul(&inner, k)?;
            let t = e.call(&TANH, args![&u])?;
            let t2 = e.call(&SQUARE, args![&t])?;
            let s = rest(e, &t2)?;
            let first = e.mul(&square, 3.0 * c * k)?;
            let first = e.add(&first, k)?;
            let second = e.mul(x, 6.0 * c * k)?;
            let steep = e.call(&SQUARE, args![&first])?;
            let steep = e.mul(&steep, &t)?;
            let steep = e.mul(&steep, 2.0)?;
            let bend = e.sub(&second, &steep)?;
            let bend = e.mul(&bend, x)?;
            let bend = e.mul(&bend, 0.5)?;
            let sum = e.add(&first, &bend)?;
            e.mul(&s, &sum)
        },
    )
});

pub static SILU_GRAD: Op = slope("silu", &f::SILU_GRAD, &[G, X], |e, v| {
    twice(
        e,
        v,
        |e, x| e.call(&SILU_GRAD, args![v.g(), x]),
        |e, x| {
            // s (1 - s) (2 + x (1 - 2 s))
            let s = e.call(&SIGMOID, args![x])?;
            let r = rest(e, &s)?;
            let product = e.mul(&s, &r)?;
            let lean = e.sub(&r, &s)?;
            let lean = e.mul(&lean, x)?;
            let sum = e.add(&lean, 2.0)?;
            e.mul(&product, &sum)
        },
    )
});

pub static MISH_GRAD: Op = slope("mish", &f::MISH_GRAD, &[G, X], |e, v| {
    twice(
        e,
        v,
        |e, x| e.call(&MISH_GRAD, args![v.g(), x]),
        |e, x| {
            // With t = tanh(softplus x), s = sigmoid x: (1 - t²) s (2 + x (1 - s - 2 t s)).
            let s = e.call(&SIGMOID, args![x])?;
            let soft = e.call(&crate::op::rows::nn::activation::SOFTPLUS, args![x])?;
            let t = e.call(&TANH, args![&soft])?;
            let t2 = e.call(&SQUARE, args![&t])?;
            let flat = rest(e, &t2)?;
            let ts = e.mul(&t, &s)?;
            let ts = e.mul(&ts, 2.0)?;
            let r = rest(e, &s)?;
            let lean = e.sub(&r, &ts)?;
            let lean = e.mul(&lean, x)?;
            let sum = e.add(&lean, 2.0)?;
            let product = e.mul(&flat, &s)?;
            e.mul(&product, &sum)
        },
    )
});

const BETA: Param = Param::new("beta", Kind::Float);
const THRESHOLD: Param = Param::new("threshold", Kind::Float);

pub static SOFTPLUS_GRAD: Op = slope("softplus", &f::SOFTPLUS_GRAD, &[G, X, BETA, THRESHOLD], |e, v| {
    let (beta, threshold) = (v.args.float(2), v.args.float(3));
    twice(
        e,
        v,
        |e, x| e.call(&SOFTPLUS_GRAD, args![v.g(), x, beta, threshold]),
        |e, x| {
            // beta s (1 - s), 0 where it is a line.
            let scaled = e.mul(x, beta)?;
            let s = e.call(&SIGMOID, args![&scaled])?;
            let r = rest(e, &s)?;
            let product = e.mul(&s, &r)?;
            let curve = e.mul(&product, beta)?;
            let line = e.call(&GT, args![&scaled, threshold])?;
            unmasked(e, &line, &curve)
        },
    )
});

pub static ROWS: &[&Op] = &[&GELU_ERF_GRAD, &GELU_TANH_GRAD, &SILU_GRAD, &MISH_GRAD, &SOFTPLUS_GRAD];
