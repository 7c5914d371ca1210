//! Gradients of activations as rows of their own: one map each, differentiable again.

use crate::args;
use crate::kernel::elementwise as f;
use crate::kernel::program::Function;
use crate::op::expr::Derivative;
use crate::op::row::{CallForm, Grad, Lower, Op, Param, Promote, Save};
use crate::op::rows::nn::activation::SOFTPLUS;
use crate::signature;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

signature!(slope(grad: Tensor, input: Tensor));

/// `g · f'(x)`. Its gradients are the same row by g, and `g · f''(x)` by x.
const fn slope(
    name: &'static str,
    function: &'static Function,
    params: &'static [Param],
    derivatives: &'static [Derivative],
) -> Op {
    Op {
        name,
        params,
        summary: "The gradient of an activation.",
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::For(slope::grad, slope::input), Save::In(slope::input)],
        grad: Grad::Of(derivatives),
        call: CallForm::Internal,
        ..Op::BASE
    }
}

pub static GELU_ERF_GRAD: Op = slope(
    "gelu",
    &f::GELU_ERF_GRAD,
    slope::PARAMS,
    &[
        |t| t.g.with(&GELU_ERF_GRAD, t.other),
        |t| {
            // phi(x) (2 - x²)
            let square = t.other.square();
            let density = (square * -0.5).exp() * (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
            t.g * t.input * (density * (2 - square))
        },
    ],
);

pub static GELU_TANH_GRAD: Op = slope(
    "gelu",
    &f::GELU_TANH_GRAD,
    slope::PARAMS,
    &[
        |t| t.g.with(&GELU_TANH_GRAD, t.other),
        |t| {
            // With u = k (x + c x³), t = tanh u, s = 1 - t²: s u' + x s (u'' - 2 t u'²) / 2.
            let (k, c) = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2, 0.044_715);
            let x = t.other;
            let square = x.square();
            let tanh = ((square * c + 1) * x * k).tanh();
            let first = square * (3.0 * c * k) + k;
            let second = x * (6.0 * c * k);
            let bend = (second - first.square() * tanh * 2.0) * x * 0.5;
            t.g * t.input * ((1 - tanh.square()) * (first + bend))
        },
    ],
);

pub static SILU_GRAD: Op = slope(
    "silu",
    &f::SILU_GRAD,
    slope::PARAMS,
    &[
        |t| t.g.with(&SILU_GRAD, t.other),
        |t| {
            // s (1 - s) (2 + x (1 - 2 s))
            let s = t.other.sigmoid();
            let rest = 1 - s;
            t.g * t.input * (s * rest * ((rest - s) * t.other + 2.0))
        },
    ],
);

pub static MISH_GRAD: Op = slope(
    "mish",
    &f::MISH_GRAD,
    slope::PARAMS,
    &[
        |t| t.g.with(&MISH_GRAD, t.other),
        |t| {
            // With t = tanh(softplus x), s = sigmoid x: (1 - t²) s (2 + x (1 - s - 2 t s)).
            let x = t.other;
            let (s, tanh) = (x.sigmoid(), x.of(&SOFTPLUS).tanh());
            let sum = (1 - s - tanh * s * 2.0) * x + 2.0;
            t.g * t.input * ((1 - tanh.square()) * s * sum)
        },
    ],
);

signature!(softplus_grad(grad: Tensor, input: Tensor, beta: Float, threshold: Float));

pub static SOFTPLUS_GRAD: Op = slope(
    "softplus",
    &f::SOFTPLUS_GRAD,
    softplus_grad::PARAMS,
    &[
        |t| {
            let (beta, threshold) = (t.float(softplus_grad::beta), t.float(softplus_grad::threshold));
            t.g.call(&SOFTPLUS_GRAD, args![t.other.arg(), beta, threshold])
        },
        |t| {
            // beta s (1 - s), 0 where it is a line.
            let (beta, threshold) = (t.float(softplus_grad::beta), t.float(softplus_grad::threshold));
            let scaled = t.other * beta;
            let s = scaled.sigmoid();
            let curve = s * (1 - s) * beta;
            t.g * t.input * curve.zero_where(scaled.greater(threshold))
        },
    ],
);

pub static ROWS: &[&Op] = &[&GELU_ERF_GRAD, &GELU_TANH_GRAD, &SILU_GRAD, &MISH_GRAD, &SOFTPLUS_GRAD];
