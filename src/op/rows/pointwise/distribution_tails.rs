//! Special functions of distributions: the normal distribution's function and its kin, incomplete gammas,
//! Hurwitz' zeta, the multivariate gamma; and `frexp`, which takes floats apart.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::Arg;
use crate::op::emit::{Backward, Emit};
use crate::op::row::{CallForm, Grad, Kind, Lower, Op, Param, Promote, Returns, Save, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::arith::{INPUT, OTHER, X, pair, two, unmasked};
use crate::op::rows::pointwise::compare::{EQ, LE, LOGICAL_AND};
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::special::LGAMMA;
use crate::op::rows::pointwise::unary::{EXP, EXP2, LOG, LOG1P};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::op::tensor::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

const IN: Save = Save::In(0);
const OUT: Save = Save::Out(0);

/// A row of one operand, of PyTorch's `torch.special`.
macro_rules! unary {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal [$($save:expr),*]
       $rule:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: &[X],
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            saves: &[$($save),*],
            grad: Grad::Rule($rule),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

/// e^(scale x²), times `factor`.
fn bell(e: &mut dyn Emit, x: &Tensor, scale: f64, factor: f64) -> Result<Tensor> {
    let square = e.call(&SQUARE, args![x])?;
    let scaled = e.mul(&square, scale)?;
    let bell = e.call(&EXP, args![&scaled])?;
    e.mul(&bell, factor)
}

unary! {
    ENTR "entr" ENTR "-x ln x, 0 at 0, minus infinity below 0." "entr(tensor([0.0, 0.5, -1.0]))" => "tensor([0.0000, 0.3466,   -inf])" [IN]
        |e, v| {
            let log = e.call(&LOG, args![v.input(0)])?;
            let more = e.add(&log, Scalar::Int(1))?;
            let g = e.mul(v.g(), &more)?;
            Ok(vec![Some(e.neg(&g)?)])
        };
    ERFCX "erfcx" ERFCX "exp(x²) erfc(x), without overflow." "erfcx(tensor([0.0, 10.0]))" => "tensor([1.0000, 0.0561])" [IN, OUT]
        |e, v| {
            let product = e.mul(v.input(0), v.output(0))?;
            let double = e.mul(&product, Scalar::Int(2))?;
            let slope = e.sub(&double, FRAC_2_SQRT_PI)?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    NDTR "ndtr" NDTR "The distribution function of the standard normal." "ndtr(tensor([0.0, 2.0]))" => "tensor([0.5000, 0.9772])" [IN]
        |e, v| {
            let density = bell(e, v.input(0), -0.5, 1.0 / (2.0 * PI).sqrt())?;
            Ok(vec![Some(e.mul(v.g(), &density)?)])
        };
    LOG_NDTR "log_ndtr" LOG_NDTR "The logarithm of `ndtr`, exact in the lower tail." "log_ndtr(tensor([0.0, -10.0]))" => "tensor([ -0.6931, -53.2313])" [IN]
        |e, v| {
            let t = e.mul(v.input(0), -FRAC_1_SQRT_2)?;
            let ratio = e.call(&ERFCX, args![&t])?;
            let g = e.div(v.g(), &ratio)?;
            Ok(vec![Some(e.mul(&g, (2.0 / PI).sqrt())?)])
        };
    NDTRI "ndtri" NDTRI "The inverse of `ndtr`." "ndtri(tensor([0.5, 0.975]))" => "tensor([0.0000, 1.9600])" [OUT]
        |e, v| {
            let slope = bell(e, v.output(0), 0.5, (2.0 * PI).sqrt())?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
}

pub static XLOG1PY: Op = Op {
    name: "xlog1py",
    params: &[INPUT, OTHER],
    summary: "input · ln(1 + other), 0 where `input` is 0.",
    examples: &[ex("xlog1py(tensor([0.0, 2.0]), tensor([-1.0, 0.0]))", "tensor([0., 0.])")],
    lower: Lower::Map { function: &f::XLOG1PY, promote: Promote::Float },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |e| {
                let (log, low) = match v.operand(1) {
                    Arg::Tensor(other) => {
                        let low = e.call(&LE, args![&other, Scalar::Int(-1)])?;
                        (Arg::Tensor(e.call(&LOG1P, args![&other])?), Arg::Tensor(low))
                    }
                    _ => (v.args.float(1).ln_1p().into(), Arg::from(Scalar::Bool(v.args.float(1) <= -1.0))),
                };
                let g = e.mul(v.g(), log)?;
                let at_zero = e.call(&EQ, two(v.operand(0), Scalar::Int(0).into()))?;
                let flat = e.call(&LOGICAL_AND, args![&at_zero, low])?;
                unmasked(e, &flat, &g)
            },
            |e| {
                let more = match v.operand(1) {
                    Arg::Tensor(other) => Arg::Tensor(e.add(&other, Scalar::Int(1))?),
                    _ => (v.args.float(1) + 1.0).into(),
                };
                let ratio = e.call(&arith::DIV, two(v.operand(0), more))?;
                e.mul(v.g(), &ratio)
            },
        )
    }),
    ..Op::BASE
};

/// What PyTorch has no gradient for either.
fn no_gradient(name: &str) -> Result<Tensor> {
    fail!(GRAD_STOP, "there is no gradient with respect to `{name}`")
}

pub static ZETA: Op = Op {
    name: "zeta",
    params: &[INPUT, OTHER],
    summary: "Hurwitz' zeta function: the sum over k of (k + other)^-input.",
    details: "NaN for `input` below 1, infinite at 1 and at the poles of `other`. The gradient is that of `other` alone.",
    examples: &[ex("zeta(tensor([2.0]), 1)", "tensor([1.6449])")],
    lower: Lower::Map { function: &f::ZETA, promote: Promote::Float },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |_| no_gradient("input"),
            |e| {
                let next = e.call(&arith::ADD, two(v.operand(0), Scalar::Int(1).into()))?;
                let next = e.call(&ZETA, two(Arg::Tensor(next), v.operand(1)))?;
                let slope = e.call(&arith::MUL, two(Arg::Tensor(next), v.operand(0)))?;
                let g = e.mul(v.g(), &slope)?;
                e.neg(&g)
            },
        )
    }),
    ..Op::BASE
};

/// The density of the gamma distribution: the slope of `igamma` by its second operand.
fn gamma_density(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let (a, x) = (v.input(0), v.input(1));
    let less = e.sub(a, Scalar::Int(1))?;
    let log = e.call(&LOG, args![x])?;
    let power = e.mul(&less, &log)?;
    let power = e.sub(&power, x)?;
    let lgamma = e.call(&LGAMMA, args![a])?;
    let exponent = e.sub(&power, &lgamma)?;
    e.call(&EXP, args![&exponent])
}

const FLOAT_ONLY: &str = "Both tensors, of one float type after promotion. The gradient is that of `other` alone.";

macro_rules! incomplete {
    ($($NAME:ident $name:literal $alias:literal $function:ident $sign:literal $summary:literal $result:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$alias],
            params: &[X, Param::new("other", Kind::Tensor)],
            summary: $summary,
            details: FLOAT_ONLY,
            examples: &[
                ex(concat!($name, "(tensor([4.0]), tensor([3.0]))"), $result),
                ex(concat!($name, "(tensor([4.0, 1.0]), tensor([3.0, 1.0, 2.0]))"), "E0201"),
                ex(concat!($name, "(tensor([4]), tensor([3]))"), "E0202"),
            ],
            lower: Lower::Map { function: &f::$function, promote: Promote::FloatOnly },
            saves: &[Save::In(0), Save::In(1)],
            grad: Grad::Rule(|e, v| {
                pair(e, v, |_| no_gradient("input"), |e| {
                    let slope = gamma_density(e, v)?;
                    let g = e.mul(v.g(), &slope)?;
                    if $sign { e.neg(&g) } else { Ok(g) }
                })
            }),
            inplace: true,
            ..Op::BASE
        };)*
    };
}

incomplete! {
    IGAMMA "igamma" "gammainc" IGAMMA false "The lower incomplete gamma function of order `input`, regularised." "tensor([0.3528])";
    IGAMMAC "igammac" "gammaincc" IGAMMAC true "The upper incomplete gamma function of order `input`, regularised." "tensor([0.6472])";
}

pub static MVLGAMMA: Op = Op {
    name: "mvlgamma",
    aliases: &["multigammaln"],
    params: &[X, Param::new("p", Kind::Int)],
    summary: "The logarithm of the multivariate gamma function of dimension `p`.",
    details: "The sum over j below p of lgamma(input - j / 2), plus p (p - 1) / 4 ln pi.",
    examples: &[
        ex("mvlgamma(tensor([3.0]), 2)", "tensor([1.5502])"),
        ex("mvlgamma(tensor([3.0]), 0)", "E0206"),
        ex("mvlgamma(tensor([true]), 1)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, p) = (a.tensor(0), a.int(1));
        if p < 1 {
            fail!(VALUE, "`p` must be at least 1, not {p}");
        }
        if x.dtype() == DType::Bool {
            fail!(DTYPE, "`bool` is not supported");
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
    params: &[X],
    summary: "The exponents of floats, as floats.",
    lower: Lower::Map { function: &f::EXPONENT, promote: Promote::FloatOnly },
    grad: Grad::Stop("an exponent is a whole number"),
    call: CallForm::Internal,
    ..Op::BASE
};

static MANTISSA: Op = Op {
    name: "frexp",
    params: &[X],
    summary: "The mantissas of floats.",
    lower: Lower::Map { function: &f::MANTISSA, promote: Promote::FloatOnly },
    saves: &[IN],
    grad: Grad::Rule(|e, v| {
        let x = e.detach(v.input(0));
        let exponent = e.call(&EXPONENT, args![&x])?;
        let power = e.call(&EXP2, args![&exponent])?;
        Ok(vec![Some(e.div(v.g(), &power)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static FREXP: Op = Op {
    name: "frexp",
    params: &[X],
    summary: "Takes floats apart: input = mantissa · 2^exponent, with a mantissa of at least 1/2 and below 1.",
    details: "The exponent is i32. Zeros, infinities and NaN are their own mantissa, with exponent 0.",
    examples: &[
        ex("frexp(tensor([6.0, -0.5])).mantissa", "tensor([ 0.7500, -0.5000])"),
        ex("frexp(tensor([6.0, -0.5])).exponent", "tensor([3, 0], dtype=i32)"),
        ex("frexp(tensor([6]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let mantissa = e.call(&MANTISSA, args![a.tensor(0)])?;
        let exponent = e.call(&EXPONENT, args![a.tensor(0)])?;
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
