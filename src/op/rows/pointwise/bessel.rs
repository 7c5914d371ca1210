//! Bessel and Airy functions, and orthogonal polynomials: the rest of `torch.special`.

use crate::kernel::elementwise as f;
use crate::op::expr::{Expr, Terms};
use crate::op::row::{Grad, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::special::{I0, I1};
use crate::op::rows::signatures::unary;
use crate::signature;

fn first_order<'c>(t: Terms<'c>, lower: Expr<'c>) -> Expr<'c> {
    lower - t.result / t.input
}

/// A half at 0, where a function of order 1 is `0 / 0`.
fn half_at_zero<'c>(t: Terms<'c>, slope: Expr<'c>) -> Expr<'c> {
    t.input.equals(0).choose(0.5, slope)
}

macro_rules! unary {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal [$($save:expr),*]
       $grad:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
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

unary! {
    I0E "i0e" I0E "`i0` times exp(-|x|)." "i0e(tensor([0.0, 10.0]))" => "tensor([1.0000, 0.1278])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * (t.input.of(&I1E) - t.input.sgn() * t.result)]);
    I1E "i1e" I1E "`i1` times exp(-|x|)." "i1e(tensor([0.0, 10.0]))" => "tensor([0.0000, 0.1213])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| {
            let slope = first_order(t, t.input.of(&I0E)) - t.input.sgn() * t.result;
            t.g * half_at_zero(t, slope)
        }]);
    BESSEL_J0 "bessel_j0" BESSEL_J0 "The Bessel function of the first kind, order 0." "bessel_j0(tensor([0.0, 1.0]))" => "tensor([1.0000, 0.7652])" [Save::INPUT]
        Grad::Of(&[|t| -(t.g * t.input.of(&BESSEL_J1))]);
    BESSEL_J1 "bessel_j1" BESSEL_J1 "The Bessel function of the first kind, order 1." "bessel_j1(tensor([0.0, 1.0]))" => "tensor([0.0000, 0.4401])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * half_at_zero(t, first_order(t, t.input.of(&BESSEL_J0)))]);
    BESSEL_Y0 "bessel_y0" BESSEL_Y0 "The Bessel function of the second kind, order 0; NaN below 0." "bessel_y0(tensor([1.0]))" => "tensor([0.0883])" [Save::INPUT]
        Grad::Of(&[|t| -(t.g * t.input.of(&BESSEL_Y1))]);
    BESSEL_Y1 "bessel_y1" BESSEL_Y1 "The Bessel function of the second kind, order 1; NaN below 0." "bessel_y1(tensor([1.0]))" => "tensor([-0.7812])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * first_order(t, t.input.of(&BESSEL_Y0))]);
    MODIFIED_I0 "modified_bessel_i0" I0 "The modified Bessel function of the first kind, order 0." "modified_bessel_i0(tensor([1.0]))" => "tensor([1.2661])" [Save::INPUT]
        Grad::Of(&[|t| t.g * t.input.of(&I1)]);
    MODIFIED_I1 "modified_bessel_i1" I1 "The modified Bessel function of the first kind, order 1." "modified_bessel_i1(tensor([1.0]))" => "tensor([0.5652])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * half_at_zero(t, first_order(t, t.input.of(&I0)))]);
    MODIFIED_K0 "modified_bessel_k0" BESSEL_K0 "The modified Bessel function of the second kind, order 0; NaN below 0." "modified_bessel_k0(tensor([1.0]))" => "tensor([0.4210])" [Save::INPUT]
        Grad::Of(&[|t| -(t.g * t.input.of(&MODIFIED_K1))]);
    MODIFIED_K1 "modified_bessel_k1" BESSEL_K1 "The modified Bessel function of the second kind, order 1; NaN below 0." "modified_bessel_k1(tensor([1.0]))" => "tensor([0.6019])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| -(t.g * (t.input.of(&MODIFIED_K0) + t.result / t.input))]);
    SCALED_K0 "scaled_modified_bessel_k0" BESSEL_K0E "`modified_bessel_k0` times exp(x)." "scaled_modified_bessel_k0(tensor([1.0]))" => "tensor([1.1445])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * (t.result - t.input.of(&SCALED_K1))]);
    SCALED_K1 "scaled_modified_bessel_k1" BESSEL_K1E "`modified_bessel_k1` times exp(x)." "scaled_modified_bessel_k1(tensor([1.0]))" => "tensor([1.6362])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| t.g * (first_order(t, t.result) - t.input.of(&SCALED_K0))]);
    SPHERICAL_J0 "spherical_bessel_j0" SPHERICAL_J0 "sin(x) / x, 1 at 0." "spherical_bessel_j0(tensor([0.0, 1.0]))" => "tensor([1.0000, 0.8415])" [Save::INPUT, Save::RESULT]
        Grad::Of(&[|t| {
            let slope = (t.input.cos() - t.result) / t.input;
            t.g * t.input.equals(0).choose(0.0, slope)
        }]);
    AIRY_AI "airy_ai" AIRY "The Airy function Ai." "airy_ai(tensor([0.0, 1.0]))" => "tensor([0.3550, 0.1353])" []
        Grad::Stop("there is no derivative of the Airy function here");
}

signature!(polynomial(input: Operand, n: Operand));

macro_rules! polynomial {
    ($($NAME:ident $name:literal $function:ident $summary:literal $code:literal => $result:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: polynomial::PARAMS,
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
