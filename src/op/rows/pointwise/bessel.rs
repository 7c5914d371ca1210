//! Bessel and Airy functions, and orthogonal polynomials: the rest of `torch.special`.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::kernel::elementwise as f;
use crate::op::emit::{Backward, Emit};
use crate::op::row::{Grad, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::pointwise::arith::{INPUT, X};
use crate::op::rows::pointwise::compare::{EQ, WHERE};
use crate::op::rows::pointwise::special::{I0, I1};
use crate::op::rows::pointwise::unary::{COS, SGN};
use crate::op::tensor::Tensor;

type Grads = Result<Vec<Option<Tensor>>>;

/// `g` times a slope, with a sign.
fn times(e: &mut dyn Emit, v: &Backward<'_>, slope: &Tensor, negative: bool) -> Grads {
    let g = e.mul(v.g(), slope)?;
    Ok(vec![Some(if negative { e.neg(&g)? } else { g })])
}

/// The slope of a function of order 1: `lower - own / x`, a half of `lower` at 0 where that is finite.
fn first_order(e: &mut dyn Emit, v: &Backward<'_>, lower: &Tensor) -> Result<Tensor> {
    let ratio = e.div(v.output(0), v.input(0))?;
    e.sub(lower, &ratio)
}

fn half_at_zero(e: &mut dyn Emit, x: &Tensor, slope: &Tensor) -> Result<Tensor> {
    let zero = e.call(&EQ, args![x, Scalar::Int(0)])?;
    e.call(&WHERE, args![&zero, 0.5, slope])
}

macro_rules! unary {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal [$($save:expr),*]
       $grad:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: &[X],
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            saves: &[$($save),*],
            grad: $grad,
            ..Op::BASE
        };)*
        /// The rows of the macro.
        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

const IN: Save = Save::In(0);
const OUT: Save = Save::Out(0);

unary! {
    I0E "i0e" I0E "`i0` times exp(-|x|)." "i0e(tensor([0.0, 10.0]))" => "tensor([1.0000, 0.1278])" [IN, OUT]
        Grad::Rule(|e, v| {
            let (lower, sign) = (e.call(&I1E, args![v.input(0)])?, e.call(&SGN, args![v.input(0)])?);
            let own = e.mul(&sign, v.output(0))?;
            let slope = e.sub(&lower, &own)?;
            times(e, v, &slope, false)
        });
    I1E "i1e" I1E "`i1` times exp(-|x|)." "i1e(tensor([0.0, 10.0]))" => "tensor([0.0000, 0.1213])" [IN, OUT]
        Grad::Rule(|e, v| {
            let (x, i1e) = (v.input(0), v.output(0));
            let (i0e, sign) = (e.call(&I0E, args![x])?, e.call(&SGN, args![x])?);
            let slope = first_order(e, v, &i0e)?;
            let own = e.mul(&sign, i1e)?;
            let slope = e.sub(&slope, &own)?;
            let slope = half_at_zero(e, x, &slope)?;
            times(e, v, &slope, false)
        });
    BESSEL_J0 "bessel_j0" BESSEL_J0 "The Bessel function of the first kind, order 0." "bessel_j0(tensor([0.0, 1.0]))" => "tensor([1.0000, 0.7652])" [IN]
        Grad::Rule(|e, v| {
            let j1 = e.call(&BESSEL_J1, args![v.input(0)])?;
            times(e, v, &j1, true)
        });
    BESSEL_J1 "bessel_j1" BESSEL_J1 "The Bessel function of the first kind, order 1." "bessel_j1(tensor([0.0, 1.0]))" => "tensor([0.0000, 0.4401])" [IN, OUT]
        Grad::Rule(|e, v| {
            let j0 = e.call(&BESSEL_J0, args![v.input(0)])?;
            let slope = first_order(e, v, &j0)?;
            let slope = half_at_zero(e, v.input(0), &slope)?;
            times(e, v, &slope, false)
        });
    BESSEL_Y0 "bessel_y0" BESSEL_Y0 "The Bessel function of the second kind, order 0; NaN below 0." "bessel_y0(tensor([1.0]))" => "tensor([0.0883])" [IN]
        Grad::Rule(|e, v| {
            let y1 = e.call(&BESSEL_Y1, args![v.input(0)])?;
            times(e, v, &y1, true)
        });
    BESSEL_Y1 "bessel_y1" BESSEL_Y1 "The Bessel function of the second kind, order 1; NaN below 0." "bessel_y1(tensor([1.0]))" => "tensor([-0.7812])" [IN, OUT]
        Grad::Rule(|e, v| {
            let y0 = e.call(&BESSEL_Y0, args![v.input(0)])?;
            let slope = first_order(e, v, &y0)?;
            times(e, v, &slope, false)
        });
    MODIFIED_I0 "modified_bessel_i0" I0 "The modified Bessel function of the first kind, order 0." "modified_bessel_i0(tensor([1.0]))" => "tensor([1.2661])" [IN]
        Grad::Rule(|e, v| {
            let i1 = e.call(&I1, args![v.input(0)])?;
            times(e, v, &i1, false)
        });
    MODIFIED_I1 "modified_bessel_i1" I1 "The modified Bessel function of the first kind, order 1." "modified_bessel_i1(tensor([1.0]))" => "tensor([0.5652])" [IN, OUT]
        Grad::Rule(|e, v| {
            let i0 = e.call(&I0, args![v.input(0)])?;
            let slope = first_order(e, v, &i0)?;
            let slope = half_at_zero(e, v.input(0), &slope)?;
            times(e, v, &slope, false)
        });
    MODIFIED_K0 "modified_bessel_k0" BESSEL_K0 "The modified Bessel function of the second kind, order 0; NaN below 0." "modified_bessel_k0(tensor([1.0]))" => "tensor([0.4210])" [IN]
        Grad::Rule(|e, v| {
            let k1 = e.call(&MODIFIED_K1, args![v.input(0)])?;
            times(e, v, &k1, true)
        });
    MODIFIED_K1 "modified_bessel_k1" BESSEL_K1 "The modified Bessel function of the second kind, order 1; NaN below 0." "modified_bessel_k1(tensor([1.0]))" => "tensor([0.6019])" [IN, OUT]
        Grad::Rule(|e, v| {
            let k0 = e.call(&MODIFIED_K0, args![v.input(0)])?;
            let ratio = e.div(v.output(0), v.input(0))?;
            let slope = e.add(&k0, &ratio)?;
            times(e, v, &slope, true)
        });
    SCALED_K0 "scaled_modified_bessel_k0" BESSEL_K0E "`modified_bessel_k0` times exp(x)." "scaled_modified_bessel_k0(tensor([1.0]))" => "tensor([1.1445])" [IN, OUT]
        Grad::Rule(|e, v| {
            let k1e = e.call(&SCALED_K1, args![v.input(0)])?;
            let slope = e.sub(v.output(0), &k1e)?;
            times(e, v, &slope, false)
        });
    SCALED_K1 "scaled_modified_bessel_k1" BESSEL_K1E "`modified_bessel_k1` times exp(x)." "scaled_modified_bessel_k1(tensor([1.0]))" => "tensor([1.6362])" [IN, OUT]
        Grad::Rule(|e, v| {
            let k0e = e.call(&SCALED_K0, args![v.input(0)])?;
            let slope = first_order(e, v, v.output(0))?;
            let slope = e.sub(&slope, &k0e)?;
            times(e, v, &slope, false)
        });
    SPHERICAL_J0 "spherical_bessel_j0" SPHERICAL_J0 "sin(x) / x, 1 at 0." "spherical_bessel_j0(tensor([0.0, 1.0]))" => "tensor([1.0000, 0.8415])" [IN, OUT]
        Grad::Rule(|e, v| {
            let x = v.input(0);
            let cos = e.call(&COS, args![x])?;
            let top = e.sub(&cos, v.output(0))?;
            let slope = e.div(&top, x)?;
            let zero = e.call(&EQ, args![x, Scalar::Int(0)])?;
            let slope = e.call(&WHERE, args![&zero, 0.0, &slope])?;
            times(e, v, &slope, false)
        });
    AIRY_AI "airy_ai" AIRY "The Airy function Ai." "airy_ai(tensor([0.0, 1.0]))" => "tensor([0.3550, 0.1353])" []
        Grad::Stop("there is no derivative of the Airy function here");
}

const DEGREE: Param = Param::new("n", Kind::Operand);

macro_rules! polynomial {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: &[INPUT, DEGREE],
            summary: $summary,
            details: "`n` is a number or a tensor, its fraction is left out; a negative degree gives 0, one above a \
million NaN where the recurrence would have to run.",
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::Float },
            grad: Grad::Stop("the polynomials have no gradient, as in PyTorch"),
            ..Op::BASE
        };)*
        /// The polynomials.
        pub static POLYNOMIALS: &[&Op] = &[$(&$NAME),*];
    };
}

polynomial! {
    CHEBYSHEV_T "chebyshev_polynomial_t" CHEBYSHEV_T "The Chebyshev polynomial of the first kind, of degree `n`." "chebyshev_polynomial_t(tensor([0.5]), 2)" => "tensor([-0.5000])";
    CHEBYSHEV_U "chebyshev_polynomial_u" CHEBYSHEV_U "The Chebyshev polynomial of the second kind, of degree `n`." "chebyshev_polynomial_u(tensor([2.0]), 2)" => "tensor([15.])";
    CHEBYSHEV_V "chebyshev_polynomial_v" CHEBYSHEV_V "The Chebyshev polynomial of the third kind, of degree `n`." "chebyshev_polynomial_v(tensor([2.0]), 1)" => "tensor([3.])";
    CHEBYSHEV_W "chebyshev_polynomial_w" CHEBYSHEV_W "The Chebyshev polynomial of the fourth kind, of degree `n`." "chebyshev_polynomial_w(tensor([2.0]), 1)" => "tensor([5.])";
    SHIFTED_T "shifted_chebyshev_polynomial_t" SHIFTED_T "`chebyshev_polynomial_t` of 2 x - 1." "shifted_chebyshev_polynomial_t(tensor([2.0]), 1)" => "tensor([3.])";
    SHIFTED_U "shifted_chebyshev_polynomial_u" SHIFTED_U "`chebyshev_polynomial_u` of 2 x - 1." "shifted_chebyshev_polynomial_u(tensor([2.0]), 1)" => "tensor([6.])";
    SHIFTED_V "shifted_chebyshev_polynomial_v" SHIFTED_V "`chebyshev_polynomial_v` of 2 x - 1." "shifted_chebyshev_polynomial_v(tensor([2.0]), 1)" => "tensor([5.])";
    SHIFTED_W "shifted_chebyshev_polynomial_w" SHIFTED_W "`chebyshev_polynomial_w` of 2 x - 1." "shifted_chebyshev_polynomial_w(tensor([2.0]), 1)" => "tensor([7.])";
    HERMITE_H "hermite_polynomial_h" HERMITE_H "The physicist's Hermite polynomial of degree `n`." "hermite_polynomial_h(tensor([2.0]), 2)" => "tensor([14.])";
    HERMITE_HE "hermite_polynomial_he" HERMITE_HE "The probabilist's Hermite polynomial of degree `n`." "hermite_polynomial_he(tensor([2.0]), 2)" => "tensor([3.])";
    LAGUERRE_L "laguerre_polynomial_l" LAGUERRE_L "The Laguerre polynomial of degree `n`." "laguerre_polynomial_l(tensor([2.0]), 2)" => "tensor([-1.])";
    LEGENDRE_P "legendre_polynomial_p" LEGENDRE_P "The Legendre polynomial of degree `n`." "legendre_polynomial_p(tensor([2.0]), 2)" => "tensor([5.5000])";
}
