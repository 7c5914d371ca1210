//! Functions of one number: roots, exponentials, logarithms, angles, rounding.

use crate::args;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::compare::{ISNAN, ISNEGINF, ISPOSINF, WHERE};
use crate::op::rows::signatures::unary;
use crate::signature;
use std::f64::consts::{LN_2, LN_10, PI};

/// `NAME "name" [aliases] Promote FUNCTION "summary" "code" => "result" [saves] gradient;`
macro_rules! unary {
    ($($NAME:ident $name:literal [$($alias:literal)*] $promote:ident $function:ident $summary:literal
       $code:literal => $result:literal [$($save:expr)?] $grad:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::$promote },
            saves: &[$($save)?],
            grad: $grad,
            inplace: true,
            ..Op::BASE
        };)*
        /// The rows of the macro.
        pub static ROWS: &[&Op] = &[$(&$NAME),*];
    };
}

const ZERO: Grad = Grad::Rule(arith::ZERO);

unary! {
    ABS "abs" ["absolute"] NoBool ABS "The absolute value."
        "tensor([-1, 2]).abs()" => "tensor([1, 2])" [Save::INPUT] Grad::Of(&[|t| t.g * t.input.sgn()]);
    SGN "sgn" [] Same SIGN "The sign: -1, 0 or 1; NaN gives 0."
        "tensor([-2.0, 0.0]).sgn()" => "tensor([-1.,  0.])" [] ZERO;
    SIGN "sign" [] Same SIGN "The sign: -1, 0 or 1; NaN gives 0."
        "tensor([-2.0, 0.0]).sign()" => "tensor([-1.,  0.])" [] ZERO;
    RECIPROCAL "reciprocal" [] Float RECIPROCAL "1 over every element."
        "tensor([2.0, 4.0]).reciprocal()" => "tensor([0.5000, 0.2500])" [Save::RESULT]
        Grad::Of(&[|t| t.g * -t.result.square()]);
    SQRT "sqrt" [] Float SQRT "The square root; NaN below 0."
        "tensor([4.0, 9.0]).sqrt()" => "tensor([2., 3.])" [Save::RESULT] Grad::Of(&[|t| t.g / (t.result * 2.0)]);
    RSQRT "rsqrt" [] Float RSQRT "1 over the square root."
        "tensor([4.0]).rsqrt()" => "tensor([0.5000])" [Save::RESULT]
        Grad::Of(&[|t| t.g * (t.result.with(&arith::POW, 3) * -0.5)]);

    EXP "exp" [] Float EXP "e to the power of every element."
        "tensor([0.0]).exp()" => "tensor([1.])" [Save::RESULT] Grad::Of(&[|t| t.g * t.result]);
    EXP2 "exp2" [] Float EXP2 "2 to the power of every element."
        "tensor([3.0]).exp2()" => "tensor([8.])" [Save::RESULT] Grad::Of(&[|t| t.g * (t.result * LN_2)]);
    EXPM1 "expm1" [] Float EXPM1 "e to the power of every element, minus 1, exact near 0."
        "tensor([0.0]).expm1()" => "tensor([0.])" [Save::RESULT] Grad::Of(&[|t| t.g * (t.result + 1)]);
    LOG "log" [] Float LOG "The natural logarithm."
        "tensor([1.0]).log()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g / t.input]);
    LOG2 "log2" [] Float LOG2 "The logarithm to base 2."
        "tensor([8.0]).log2()" => "tensor([3.])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input * LN_2)]);
    LOG10 "log10" [] Float LOG10 "The logarithm to base 10."
        "tensor([100.0]).log10()" => "tensor([2.])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input * LN_10)]);
    LOG1P "log1p" [] Float LOG1P "ln(1 + x), exact near 0."
        "tensor([0.0]).log1p()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input + 1)]);

    SIN "sin" [] Float SIN "The sine, of radians."
        "tensor([0.0]).sin()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g * t.input.cos()]);
    COS "cos" [] Float COS "The cosine, of radians."
        "tensor([0.0]).cos()" => "tensor([1.])" [Save::INPUT] Grad::Of(&[|t| t.g * -t.input.sin()]);
    TAN "tan" [] Float TAN "The tangent, of radians."
        "tensor([0.0]).tan()" => "tensor([0.])" [Save::RESULT] Grad::Of(&[|t| t.g * (t.result.square() + 1)]);
    ASIN "asin" ["arcsin"] Float ASIN "The angle with this sine, in radians."
        "tensor([1.0]).asin()" => "tensor([1.5708])" [Save::INPUT] Grad::Of(&[|t| t.g / (1 - t.input.square()).sqrt()]);
    ACOS "acos" ["arccos"] Float ACOS "The angle with this cosine, in radians."
        "tensor([0.0]).acos()" => "tensor([1.5708])" [Save::INPUT] Grad::Of(&[|t| t.g / -(1 - t.input.square()).sqrt()]);
    ATAN "atan" ["arctan"] Float ATAN "The angle with this tangent, in radians."
        "tensor([1.0]).atan()" => "tensor([0.7854])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input.square() + 1)]);
    SINH "sinh" [] Float SINH "The hyperbolic sine."
        "tensor([0.0]).sinh()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g * t.input.cosh()]);
    COSH "cosh" [] Float COSH "The hyperbolic cosine."
        "tensor([0.0]).cosh()" => "tensor([1.])" [Save::INPUT] Grad::Of(&[|t| t.g * t.input.sinh()]);
    TANH "tanh" [] Float TANH "The hyperbolic tangent."
        "tensor([0.0]).tanh()" => "tensor([0.])" [Save::RESULT] Grad::Of(&[|t| t.g.with(&TANH_GRAD, t.result)]);
    ASINH "asinh" ["arcsinh"] Float ASINH "The inverse of `sinh`."
        "tensor([0.0]).asinh()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input.square() + 1).sqrt()]);
    ACOSH "acosh" ["arccosh"] Float ACOSH "The inverse of `cosh`."
        "tensor([1.0]).acosh()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g / (t.input.square() - 1).sqrt()]);
    ATANH "atanh" ["arctanh"] Float ATANH "The inverse of `tanh`."
        "tensor([0.0]).atanh()" => "tensor([0.])" [Save::INPUT] Grad::Of(&[|t| t.g / (1 - t.input.square())]);
    SIGMOID "sigmoid" ["expit"] Float SIGMOID "1 / (1 + e^-x)."
        "tensor([0.0]).sigmoid()" => "tensor([0.5000])" [Save::RESULT] Grad::Of(&[|t| t.g.with(&SIGMOID_GRAD, t.result)]);

    FLOOR "floor" [] RoundLike FLOOR "The next integer below."
        "tensor([1.5, -1.5]).floor()" => "tensor([ 1., -2.])" [] ZERO;
    CEIL "ceil" [] RoundLike CEIL "The next integer above."
        "tensor([1.5, -1.5]).ceil()" => "tensor([ 2., -1.])" [] ZERO;
    TRUNC "trunc" ["fix"] RoundLike TRUNC "The next integer towards 0."
        "tensor([1.5, -1.5]).trunc()" => "tensor([ 1., -1.])" [] ZERO;
    FRAC "frac" [] FloatOnly FRAC "What `trunc` cuts off."
        "tensor([1.5, -1.5]).frac()" => "tensor([ 0.5000, -0.5000])" [] Grad::Of(&[|t| t.g]);
    DEG2RAD "deg2rad" [] Float DEG2RAD "Degrees in radians."
        "tensor([180.0]).deg2rad()" => "tensor([3.1416])" [] Grad::Of(&[|t| t.g * (PI / 180.0)]);
    RAD2DEG "rad2deg" [] Float RAD2DEG "Radians in degrees."
        "tensor([1.0]).rad2deg()" => "tensor([57.2958])" [] Grad::Of(&[|t| t.g * (180.0 / PI)]);
}

signature!(tanh_grad(grad: Tensor, output: Tensor));

/// `g (1 - y²)` with the output y.
pub static TANH_GRAD: Op = Op {
    name: "tanh",
    params: tanh_grad::PARAMS,
    summary: "The gradient of `tanh`.",
    lower: Lower::Map { function: &f::TANH_GRAD, promote: Promote::Same },
    saves: &[Save::In(tanh_grad::grad), Save::In(tanh_grad::output)],
    grad: Grad::Of(&[|t| t.g.with(&TANH_GRAD, t.other), |t| t.g * t.input * t.other * -2.0]),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `g (1 - y) y` with the output y.
pub static SIGMOID_GRAD: Op = Op {
    name: "sigmoid",
    params: tanh_grad::PARAMS,
    summary: "The gradient of `sigmoid`.",
    lower: Lower::Map { function: &f::SIGMOID_GRAD, promote: Promote::Same },
    saves: &[Save::In(tanh_grad::grad), Save::In(tanh_grad::output)],
    grad: Grad::Of(&[|t| t.g.with(&SIGMOID_GRAD, t.other), |t| t.g * t.input * (t.other * -2.0 + 1)]),
    call: CallForm::Internal,
    ..Op::BASE
};

static ROUND_EVEN: Op = Op {
    name: "round",
    params: unary::PARAMS,
    summary: "The nearest integer; halves go to the even one.",
    lower: Lower::Map { function: &f::ROUND, promote: Promote::RoundLike },
    grad: ZERO,
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(round(input: Tensor, decimals: Int = 0));

pub static ROUND: Op = Op {
    name: "round",
    params: round::PARAMS,
    summary: "The nearest number with `decimals` digits after the point; halves go to the even one.",
    examples: &[
        ex("tensor([0.5, 1.5, 2.6]).round()", "tensor([0., 2., 3.])"),
        ex("tensor([1234.0]).round(-2)", "tensor([1200.])"),
        ex("tensor([1000.0], #{dtype: \"f16\"}).round(2)", "tensor([1000.], dtype=f16)"),
        ex("tensor([12]).round(1)", "E0202"),
        ex("tensor([true]).round()", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, decimals) = (a.input(), a.int(round::decimals));
        if decimals == 0 {
            return e.apply(&ROUND_EVEN, args![x]);
        }
        if !x.dtype().is_float() {
            fail!(DTYPE, "`decimals` is for floating-point tensors, not for {}", x.dtype());
        }
        let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
        // 1000 with two digits more is beyond f16.
        let wide = e.cast(x, x.dtype().compute())?;
        let scaled = if decimals > 0 { e.mul(&wide, scale)? } else { e.div(&wide, scale)? };
        let whole = e.call(&ROUND_EVEN, args![&scaled])?;
        let rounded = if decimals > 0 { e.div(&whole, scale)? } else { e.mul(&whole, scale)? };
        Ok(vec![e.cast(&rounded, x.dtype())?])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static POSITIVE: Op = Op {
    name: "positive",
    params: unary::PARAMS,
    summary: "The tensor itself.",
    examples: &[ex("tensor([-1]).positive()", "tensor([-1])"), ex("tensor([true]).positive()", "E0202")],
    lower: Lower::Compose(|_, a| {
        if a.input().dtype() == DType::Bool {
            fail!(DTYPE, "bool tensors are not supported");
        }
        Ok(vec![a.input().clone()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(nan_to_num(input: Tensor, nan: Float = None, posinf: Float = None, neginf: Float = None));

pub static NAN_TO_NUM: Op = Op {
    name: "nan_to_num",
    params: nan_to_num::PARAMS,
    summary: "Replaces NaN by `nan` (0), infinities by `posinf` and `neginf` (the dtype's largest and smallest number).",
    examples: &[ex("tensor([NAN, INF, 1.0]).nan_to_num(0.0, 9.0)", "tensor([0., 9., 1.])")],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if !x.dtype().is_float() {
            return Ok(vec![e.call(&crate::op::rows::shape::view::CLONE, args![x])?]);
        }
        let largest = match x.dtype() {
            DType::F64 => f64::MAX,
            DType::F32 => f32::MAX as f64,
            DType::F16 => 65_504.0,
            _ => half::bf16::MAX.to_f64(),
        };
        let with = [
            a.float(nan_to_num::nan),
            a.opt_float(nan_to_num::posinf).unwrap_or(largest),
            a.opt_float(nan_to_num::neginf).unwrap_or(-largest),
        ];
        let mut y = x.clone();
        for (test, value) in [&ISNAN, &ISPOSINF, &ISNEGINF].into_iter().zip(with) {
            let found = e.call(test, args![x])?;
            y = e.call(&WHERE, args![&found, value, &y])?;
        }
        Ok(vec![y])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// The rows outside the macro.
pub static MORE: &[&Op] = &[&TANH_GRAD, &SIGMOID_GRAD, &ROUND_EVEN, &ROUND, &POSITIVE, &NAN_TO_NUM];
