//! Special functions: error functions, gammas, Bessel, logit, sinc.

use crate::args;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::Arg;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::pointwise::arith::{X, unmasked};
use crate::op::rows::pointwise::compare::{EQ, GT, LOGICAL_OR, LT, WHERE};
use crate::op::rows::pointwise::power::SQUARE;
use crate::op::rows::pointwise::unary::{COS, EXP, SIN};
use std::f64::consts::PI;

/// 2 / sqrt(pi), the slope of `erf` at 0.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// As in `unary`: name, other names, function, summary, example, saves, rule.
macro_rules! special {
    ($($NAME:ident $name:literal [$($alias:literal)*] $function:ident $summary:literal
       $code:literal => $result:literal [$($save:expr)?] $rule:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: &[X],
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            saves: &[$($save)?],
            grad: Grad::Rule($rule),
            inplace: true,
            ..Op::BASE
        };)*
        /// The rows of the macro.
        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

const IN: Save = Save::In(0);
const OUT: Save = Save::Out(0);

special! {
    ERF "erf" [] ERF "The error function." "tensor([0.0, 1.0]).erf()" => "tensor([0.0000, 0.8427])" [IN]
        |e, v| {
            let square = e.call(&SQUARE, args![v.input(0)])?;
            let negative = e.neg(&square)?;
            let density = e.call(&EXP, args![&negative])?;
            let slope = e.mul(&density, SLOPE)?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    ERFC "erfc" [] ERFC "1 - erf, exact in the tail." "tensor([0.0, 1.0]).erfc()" => "tensor([1.0000, 0.1573])" [IN]
        |e, v| {
            let square = e.call(&SQUARE, args![v.input(0)])?;
            let negative = e.neg(&square)?;
            let density = e.call(&EXP, args![&negative])?;
            let slope = e.mul(&density, -SLOPE)?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    ERFINV "erfinv" [] ERFINV "The inverse of `erf`." "tensor([0.5]).erfinv()" => "tensor([0.4769])" [OUT]
        |e, v| {
            let square = e.call(&SQUARE, args![v.output(0)])?;
            let growth = e.call(&EXP, args![&square])?;
            let slope = e.mul(&growth, 1.0 / SLOPE)?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    LGAMMA "lgamma" ["gammaln"] LGAMMA "The logarithm of |gamma|." "tensor([4.0]).lgamma()" => "tensor([1.7918])" [IN]
        |e, v| {
            let slope = e.call(&DIGAMMA, args![v.input(0)])?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    DIGAMMA "digamma" ["psi"] DIGAMMA "The slope of `lgamma`." "tensor([1.0]).digamma()" => "tensor([-0.5772])" [IN]
        |e, v| {
            let slope = e.call(&POLYGAMMA, args![Scalar::Int(1), v.input(0)])?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    I0 "i0" [] I0 "The modified Bessel function of the first kind, order 0." "tensor([1.0]).i0()" => "tensor([1.2661])" [IN]
        |e, v| {
            let slope = e.call(&I1, args![v.input(0)])?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    I1 "i1" [] I1 "The modified Bessel function of the first kind, order 1." "tensor([1.0]).i1()" => "tensor([0.5652])" [IN]
        |e, v| {
            // i0(x) - i1(x) / x, a half at 0.
            let x = v.input(0);
            let (i0, i1) = (e.call(&I0, args![x])?, e.call(&I1, args![x])?);
            let ratio = e.div(&i1, x)?;
            let slope = e.sub(&i0, &ratio)?;
            let zero = e.call(&EQ, args![x, Scalar::Int(0)])?;
            let slope = e.call(&WHERE, args![&zero, 0.5, &slope])?;
            Ok(vec![Some(e.mul(v.g(), &slope)?)])
        };
    SINC "sinc" [] SINC "sin(pi x) / (pi x), 1 at 0." "tensor([0.0, 0.5]).sinc()" => "tensor([1.0000, 0.6366])" [IN]
        |e, v| {
            // (pi x cos(pi x) - sin(pi x)) / (pi x²), 0 at 0.
            let x = v.input(0);
            let angle = e.mul(x, PI)?;
            let cos = e.call(&COS, args![&angle])?;
            let sin = e.call(&SIN, args![&angle])?;
            let left = e.mul(&angle, &cos)?;
            let top = e.sub(&left, &sin)?;
            let bottom = e.mul(&angle, x)?;
            let slope = e.div(&top, &bottom)?;
            let g = e.mul(v.g(), &slope)?;
            let zero = e.call(&EQ, args![&bottom, Scalar::Int(0)])?;
            Ok(vec![Some(unmasked(e, &zero, &g)?)])
        };
}

static LOGIT_MAP: Op = Op {
    name: "logit",
    params: &[X],
    summary: "ln(x / (1 - x)).",
    lower: Lower::Map { function: &f::LOGIT, promote: Promote::Float },
    saves: &[IN],
    grad: Grad::Rule(|e, v| {
        let x = v.input(0);
        let square = e.call(&SQUARE, args![x])?;
        let product = e.sub(x, &square)?;
        let g = e.div(v.g(), &product)?;
        let (below, above) = (e.call(&LT, args![x, Scalar::Int(0)])?, e.call(&GT, args![x, Scalar::Int(1)])?);
        let outside = e.call(&LOGICAL_OR, args![&below, &above])?;
        Ok(vec![Some(e.call(&WHERE, args![&outside, f64::NAN, &g])?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static LOGIT: Op = Op {
    name: "logit",
    params: &[X, Param::opt("eps", Kind::Float, Default::None)],
    summary: "The inverse of `sigmoid`: ln(x / (1 - x)); with `eps`, x is first held between eps and 1 - eps.",
    examples: &[ex("tensor([0.5]).logit()", "tensor([0.])"), ex("tensor([0.0, 1.0]).logit(0.5)", "tensor([0., 0.])")],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        match a.opt_float(1) {
            None => e.apply(&LOGIT_MAP, args![x]),
            Some(eps) => {
                let x = if x.dtype().is_float() { x.clone() } else { e.cast(x, e.default_float())? };
                // The lower bound wins where the two are crossed.
                let (below, above) = (e.call(&LT, args![&x, eps])?, e.call(&GT, args![&x, 1.0 - eps])?);
                let held = e.call(&WHERE, args![&above, 1.0 - eps, &x])?;
                let held = e.call(&WHERE, args![&below, eps, &held])?;
                e.apply(&LOGIT_MAP, args![&held])
            }
        }
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static TRIGAMMA: Op = Op {
    name: "polygamma",
    params: &[X],
    summary: "The trigamma function.",
    lower: Lower::Map { function: &f::POLYGAMMA1, promote: Promote::Float },
    saves: &[IN],
    grad: Grad::Rule(|e, v| {
        let slope = e.call(&POLYGAMMA, args![Scalar::Int(2), v.input(0)])?;
        Ok(vec![Some(e.mul(v.g(), &slope)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Hurwitz' zeta of a fixed order: sum of (k + x)^-order.
static HURWITZ: Op = Op {
    name: "polygamma",
    params: &[Param::new("order", Kind::Number), X],
    summary: "Hurwitz' zeta function.",
    lower: Lower::Map { function: &f::ZETA, promote: Promote::Float },
    saves: &[Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let order = v.args.float(0);
        let next = e.call(&HURWITZ, args![order + 1.0, v.input(1)])?;
        let slope = e.mul(&next, -order)?;
        Ok(vec![Some(e.mul(v.g(), &slope)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static POLYGAMMA: Op = Op {
    name: "polygamma",
    params: &[Param::new("n", Kind::Operand), Param::new("input", Kind::Operand)],
    summary: "The n-th derivative of `digamma`: `polygamma(n, x)` or `x.polygamma(n)`.",
    examples: &[ex("polygamma(1, tensor([1.0]))", "tensor([1.6449])"), ex("tensor([1.0]).polygamma(-1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let (x, n) = match (a.get(0), a.get(1)) {
            (Arg::Tensor(x), _) => (x, a.scalar(1)),
            (_, Arg::Tensor(x)) => (x, a.scalar(0)),
            _ => fail!(ARGUMENT_TYPE, "a tensor is wanted"),
        };
        let Some(n) = n else { fail!(ARGUMENT_TYPE, "`n` must be an integer") };
        match n.to_i64() {
            n if n < 0 => fail!(VALUE, "`n` must not be negative, but is {n}"),
            0 => e.apply(&DIGAMMA, args![x]),
            1 => e.apply(&TRIGAMMA, args![x]),
            n => {
                let zeta = e.call(&HURWITZ, args![n as f64 + 1.0, x])?;
                let factorial: f64 = (1..=n.min(200)).map(|k| k as f64).product();
                Ok(vec![e.mul(&zeta, if n % 2 == 0 { -factorial } else { factorial })?])
            }
        }
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// The rows outside the macro.
pub static MORE: &[&Op] = &[&LOGIT, &POLYGAMMA, &LOGIT_MAP, &TRIGAMMA, &HURWITZ];
