//! Special functions: error functions, gammas, Bessel, logit, sinc.

use crate::args;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::Arg;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::compare::{GT, LT, WHERE};
use crate::op::rows::signatures::unary;
use crate::signature;
use std::f64::consts::PI;

/// 2 / sqrt(pi), the derivative of `erf` at 0.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// As in `unary`: name, other names, function, summary, example, saves, gradient.
macro_rules! special {
    ($($NAME:ident $name:literal [$($alias:literal)*] $function:ident $summary:literal
       $code:literal => $result:literal [$($save:expr)?] $gradient:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            saves: &[$($save)?],
            grad: Grad::Of(&[$gradient]),
            inplace: true,
            ..Op::BASE
        };)*
        /// The rows of the macro.
        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

special! {
    ERF "erf" [] ERF "The error function." "tensor([0.0, 1.0]).erf()" => "tensor([0.0000, 0.8427])" [Save::INPUT]
        |t| t.g * ((-t.input.square()).exp() * SLOPE);
    ERFC "erfc" [] ERFC "1 - erf, exact in the tail." "tensor([0.0, 1.0]).erfc()" => "tensor([1.0000, 0.1573])" [Save::INPUT]
        |t| t.g * ((-t.input.square()).exp() * -SLOPE);
    ERFINV "erfinv" [] ERFINV "The inverse of `erf`." "tensor([0.5]).erfinv()" => "tensor([0.4769])" [Save::INPUT]
        |t| t.g * (t.input.of(&ERFINV).square().exp() * (1.0 / SLOPE));
    LGAMMA "lgamma" ["gammaln"] LGAMMA "The logarithm of |gamma|." "tensor([4.0]).lgamma()" => "tensor([1.7918])" [Save::INPUT]
        |t| t.g * t.input.of(&DIGAMMA);
    DIGAMMA "digamma" ["psi"] DIGAMMA "The slope of `lgamma`." "tensor([1.0]).digamma()" => "tensor([-0.5772])" [Save::INPUT]
        |t| t.g * t.input.of(&TRIGAMMA);
    I0 "i0" [] I0 "The modified Bessel function of the first kind, order 0." "tensor([1.0]).i0()" => "tensor([1.2661])" [Save::INPUT]
        |t| t.g * t.input.of(&I1);
    I1 "i1" [] I1 "The modified Bessel function of the first kind, order 1." "tensor([1.0]).i1()" => "tensor([0.5652])" [Save::INPUT]
        |t| {
            // i0(x) - i1(x) / x, a half at 0.
            let x = t.input;
            let slope = x.of(&I0) - x.of(&I1) / x;
            t.g * x.equals(0).choose(0.5, slope)
        };
    SINC "sinc" [] SINC "sin(pi x) / (pi x), 1 at 0." "tensor([0.0, 0.5]).sinc()" => "tensor([1.0000, 0.6366])" [Save::INPUT]
        |t| {
            // (pi x cos(pi x) - sin(pi x)) / (pi x²), 0 at 0.
            let angle = t.input * PI;
            let bottom = angle * t.input;
            let g = t.g * ((angle * angle.cos() - angle.sin()) / bottom);
            g.zero_where(bottom.equals(0))
        };
}

static LOGIT_MAP: Op = Op {
    name: "logit",
    params: unary::PARAMS,
    summary: "ln(x / (1 - x)).",
    lower: Lower::Map { function: &f::LOGIT, promote: Promote::Float },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| {
        let x = t.input;
        let g = t.g / (x - x.square());
        x.less(0).or(x.greater(1)).choose(f64::NAN, g)
    }]),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(logit(input: Tensor, eps: Float = None));

pub static LOGIT: Op = Op {
    name: "logit",
    params: logit::PARAMS,
    summary: "The inverse of `sigmoid`: ln(x / (1 - x)); with `eps`, x is first held between eps and 1 - eps.",
    examples: &[ex("tensor([0.5]).logit()", "tensor([0.])"), ex("tensor([0.0, 1.0]).logit(0.5)", "tensor([0., 0.])")],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        match a.opt_float(logit::eps) {
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
    params: unary::PARAMS,
    summary: "The trigamma function.",
    lower: Lower::Map { function: &f::POLYGAMMA1, promote: Promote::Float },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| t.g * (t.input.behind(&HURWITZ, 3.0) * -2.0)]),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(hurwitz(order: Number, input: Tensor));

/// Hurwitz' zeta of a fixed order: sum of (k + x)^-order.
static HURWITZ: Op = Op {
    name: "polygamma",
    params: hurwitz::PARAMS,
    summary: "Hurwitz' zeta function.",
    lower: Lower::Map { function: &f::ZETA, promote: Promote::Float },
    saves: &[Save::In(hurwitz::input)],
    grad: Grad::Of(&[|t| {
        let order = t.float(hurwitz::order);
        t.g * (t.other.behind(&HURWITZ, order + 1.0) * -order)
    }]),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(polygamma(n: Operand, input: Operand));

pub static POLYGAMMA: Op = Op {
    name: "polygamma",
    params: polygamma::PARAMS,
    summary: "The n-th derivative of `digamma`: `polygamma(n, x)` or `x.polygamma(n)`.",
    examples: &[ex("polygamma(1, tensor([1.0]))", "tensor([1.6449])"), ex("tensor([1.0]).polygamma(-1)", "E0206")],
    lower: Lower::Compose(|e, a| {
        let (x, n) = match (a.get(polygamma::n), a.get(polygamma::input)) {
            (Arg::Tensor(x), _) => (x, a.scalar(polygamma::input)),
            (_, Arg::Tensor(x)) => (x, a.scalar(polygamma::n)),
            _ => fail!(ARGUMENT_TYPE, "a tensor is expected"),
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
    inplace: true,
    ..Op::BASE
};

/// The rows outside the macro.
pub static MORE: &[&Op] = &[&LOGIT, &POLYGAMMA, &LOGIT_MAP, &TRIGAMMA, &HURWITZ];
