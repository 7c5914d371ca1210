//! Special functions of distributions: the normal distribution function and its inverse, incomplete gammas, Hurwitz'
//! zeta, the multivariate gamma; and `frexp`.

use crate::args;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::expr::{Expr, Operand};
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Returns, Save, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::pointwise::special::LGAMMA;
use crate::op::rows::pointwise::unary::EXP2;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::op::rows::signatures::{binary, two_tensors, unary};
use crate::signature;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// A row of one operand, of PyTorch's `torch.special`.
macro_rules! unary {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal [$($save:expr),*]
       $gradient:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            saves: &[$($save),*],
            grad: Grad::Of(&[$gradient]),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

unary! {
    ENTR "entr" ENTR "-x ln x, 0 at 0, minus infinity below 0." "entr(tensor([0.0, 0.5, -1.0]))" => "tensor([0.0000, 0.3466,   -inf])" [Save::INPUT]
        |t| -(t.g * (t.input.log() + 1));
    ERFCX "erfcx" ERFCX "exp(x²) erfc(x), without overflow." "erfcx(tensor([0.0, 10.0]))" => "tensor([1.0000, 0.0561])" [Save::INPUT, Save::RESULT]
        |t| t.g * (t.input * t.result * 2 - FRAC_2_SQRT_PI);
    NDTR "ndtr" NDTR "The distribution function of the standard normal." "ndtr(tensor([0.0, 2.0]))" => "tensor([0.5000, 0.9772])" [Save::INPUT]
        |t| t.g * ((t.input.square() * -0.5).exp() * (1.0 / (2.0 * PI).sqrt()));
    LOG_NDTR "log_ndtr" LOG_NDTR "The logarithm of `ndtr`, exact in the lower tail." "log_ndtr(tensor([0.0, -10.0]))" => "tensor([ -0.6931, -53.2313])" [Save::INPUT]
        |t| t.g / (t.input * -FRAC_1_SQRT_2).of(&ERFCX) * (2.0 / PI).sqrt();
    NDTRI "ndtri" NDTRI "The inverse of `ndtr`." "ndtri(tensor([0.5, 0.975]))" => "tensor([0.0000, 1.9600])" [Save::RESULT]
        |t| t.g * ((t.result.square() * 0.5).exp() * (2.0 * PI).sqrt());
}

pub static XLOG1PY: Op = Op {
    name: "xlog1py",
    params: binary::PARAMS,
    summary: "input · ln(1 + other), 0 where `input` is 0.",
    examples: &[ex("xlog1py(tensor([0.0, 2.0]), tensor([-1.0, 0.0]))", "tensor([0., 0.])")],
    lower: Lower::Map { function: &f::XLOG1PY, promote: Promote::Float },
    saves: &[Save::In(binary::input), Save::In(binary::other)],
    grad: Grad::Of(&[
        |t| {
            let (log, low): (Operand, Operand) = match t.number(binary::other) {
                Some(other) => (other.ln_1p().into(), Scalar::Bool(other <= -1.0).into()),
                None => (t.other.log1p().into(), t.other.less_equal(-1).into()),
            };
            (t.g * log).zero_where(t.input.equals(0).and(low))
        },
        |t| t.g * (t.input / (t.other + 1)),
    ]),
    ..Op::BASE
};

pub static ZETA: Op = Op {
    name: "zeta",
    params: binary::PARAMS,
    summary: "Hurwitz' zeta function: the sum over k of (k + other)^-input.",
    details: "NaN for `input` below 1, infinite at 1 and at the poles of `other`. The gradient is that of `other` alone.",
    examples: &[ex("zeta(tensor([2.0]), 1)", "tensor([1.6449])")],
    lower: Lower::Map { function: &f::ZETA, promote: Promote::Float },
    saves: &[Save::In(binary::input), Save::In(binary::other)],
    grad: Grad::Of(&[
        |t| t.stop("there is no gradient with respect to `input`"),
        |t| -(t.g * ((t.input + 1).with(&ZETA, t.other) * t.input)),
    ]),
    ..Op::BASE
};

/// The density of the gamma distribution of order `a`: the derivative of `igamma` with respect to its second operand.
fn gamma_density<'c>(a: Expr<'c>, x: Expr<'c>) -> Expr<'c> {
    ((a - 1) * x.log() - x - a.of(&LGAMMA)).exp()
}

const FLOAT_ONLY: &str = "Both tensors, of one float type after promotion. The gradient is that of `other` alone.";

macro_rules! incomplete {
    ($($NAME:ident $name:literal $alias:literal $function:ident [$($minus:tt)?] $summary:literal $result:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$alias],
            params: two_tensors::PARAMS,
            summary: $summary,
            details: FLOAT_ONLY,
            examples: &[
                ex(concat!($name, "(tensor([4.0]), tensor([3.0]))"), $result),
                ex(concat!($name, "(tensor([4.0, 1.0]), tensor([3.0, 1.0, 2.0]))"), "E0201"),
                ex(concat!($name, "(tensor([4]), tensor([3]))"), "E0202"),
            ],
            lower: Lower::Map { function: &f::$function, promote: Promote::FloatOnly },
            saves: &[Save::INPUT, Save::In(two_tensors::other)],
            grad: Grad::Of(&[
                |t| t.stop("there is no gradient with respect to `input`"),
                |t| $($minus)? (t.g * gamma_density(t.input, t.other)),
            ]),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

incomplete! {
    IGAMMA "igamma" "gammainc" IGAMMA [] "The lower incomplete gamma function of order `input`, regularised." "tensor([0.3528])";
    IGAMMAC "igammac" "gammaincc" IGAMMAC [-] "The upper incomplete gamma function of order `input`, regularised." "tensor([0.6472])";
}

signature!(mvlgamma(input: Tensor, p: Int));

pub static MVLGAMMA: Op = Op {
    name: "mvlgamma",
    aliases: &["multigammaln"],
    params: mvlgamma::PARAMS,
    summary: "The logarithm of the multivariate gamma function of dimension `p`.",
    details: "The sum over j below p of lgamma(input - j / 2), plus p (p - 1) / 4 ln pi.",
    examples: &[
        ex("mvlgamma(tensor([3.0]), 2)", "tensor([1.5502])"),
        ex("mvlgamma(tensor([3.0]), 0)", "E0206"),
        ex("mvlgamma(tensor([true]), 1)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, p) = (a.input(), a.int(mvlgamma::p));
        if p < 1 {
            fail!(VALUE, "`p` must be at least 1, not {p}");
        }
        if x.dtype() == DType::Bool {
            fail!(DTYPE, "bool tensors are not supported");
        }
        let dtype = if x.dtype().is_float() { x.dtype() } else { e.default_float() };
        let (p, device) = (p as f64, x.device());
        let shifts = e.call(&ARANGE, args![0.5 - p / 2.0, 0.5, 0.5, dtype, device])?;
        let wide = e.call(&UNSQUEEZE, args![x, -1])?;
        let terms = e.add(&wide, &shifts)?;
        let terms = e.call(&LGAMMA, args![&terms])?;
        let sum = e.call(&SUM, args![&terms, &[-1i64][..]])?;
        Ok(vec![e.add(&sum, p * (p - 1.0) / 4.0 * PI.ln())?])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static EXPONENT: Op = Op {
    name: "frexp",
    params: unary::PARAMS,
    summary: "The exponents of floats, as floats.",
    lower: Lower::Map { function: &f::EXPONENT, promote: Promote::FloatOnly },
    grad: Grad::Stop("an exponent is a whole number"),
    call: CallForm::Internal,
    ..Op::BASE
};

static MANTISSA: Op = Op {
    name: "frexp",
    params: unary::PARAMS,
    summary: "The mantissas of floats.",
    lower: Lower::Map { function: &f::MANTISSA, promote: Promote::FloatOnly },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| t.g / t.input.detach().of(&EXPONENT).of(&EXP2)]),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static FREXP: Op = Op {
    name: "frexp",
    params: unary::PARAMS,
    summary: "Takes floats apart: input = mantissa · 2^exponent, with a mantissa of at least 1/2 and below 1.",
    details: "The exponent is i32. Zeros, infinities and NaN are their own mantissa, with exponent 0.",
    examples: &[
        ex("frexp(tensor([6.0, -0.5])).mantissa", "tensor([ 0.7500, -0.5000])"),
        ex("frexp(tensor([6.0, -0.5])).exponent", "tensor([3, 0], dtype=i32)"),
        ex("frexp(tensor([6]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let mantissa = e.call(&MANTISSA, args![a.input()])?;
        let exponent = e.call(&EXPONENT, args![a.input()])?;
        Ok(vec![mantissa, e.cast(&exponent, DType::I32)?])
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["mantissa", "exponent"]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &ENTR, &ERFCX, &NDTR, &LOG_NDTR, &NDTRI, &XLOG1PY, &ZETA, &IGAMMA, &IGAMMAC, &MVLGAMMA, &FREXP, &EXPONENT,
    &MANTISSA,
];
