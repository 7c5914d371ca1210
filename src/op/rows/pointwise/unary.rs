//! Functions of one number: roots, exponentials, logarithms, angles, rounding.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::emit::{Backward, Emit};
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::pointwise::arith::{X, ZERO};
use crate::op::rows::pointwise::compare::{ISNAN, ISNEGINF, ISPOSINF, WHERE};
use crate::op::tensor::Tensor;
use std::f64::consts::{LN_2, LN_10};

/// `NAME "name" [aliases] Promote FUNCTION "summary" "code" => "result" [saves] rule;`
macro_rules! unary {
    ($($NAME:ident $name:literal [$($alias:literal)*] $promote:ident $function:ident $summary:literal
       $code:literal => $result:literal [$($save:expr)?] $rule:expr;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: &[X],
            summary: $summary,
            examples: &[ex($code, $result)],
            lower: Lower::Map { function: &f::$function, promote: Promote::$promote },
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

type Grads = Result<Vec<Option<Tensor>>>;

/// `g` times something.
fn times(e: &mut dyn Emit, v: &Backward<'_>, factor: Result<Tensor>) -> Grads {
    let factor = factor?;
    Ok(vec![Some(e.mul(v.g(), &factor)?)])
}

/// `g` over something.
fn over(e: &mut dyn Emit, v: &Backward<'_>, divisor: Result<Tensor>) -> Grads {
    let divisor = divisor?;
    Ok(vec![Some(e.div(v.g(), &divisor)?)])
}

/// `a x² + b`.
fn square_plus(e: &mut dyn Emit, x: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    let square = e.call(&crate::op::rows::pointwise::power::SQUARE, args![x])?;
    let signed = if a < 0 { e.neg(&square)? } else { square };
    e.add(&signed, Scalar::Int(b))
}

unary! {
    ABS "abs" ["absolute"] NoBool ABS "The absolute value."
        "tensor([-1, 2]).abs()" => "tensor([1, 2])" [IN]
        |e, v| { let sign = e.call(&SGN, args![v.input(0)]); times(e, v, sign) };
    SGN "sgn" [] Same SIGN "The sign: -1, 0 or 1; NaN gives 0."
        "tensor([-2.0, 0.0]).sgn()" => "tensor([-1.,  0.])" [] ZERO;
    SIGN "sign" [] Same SIGN "The sign: -1, 0 or 1; NaN gives 0."
        "tensor([-2.0, 0.0]).sign()" => "tensor([-1.,  0.])" [] ZERO;
    RECIPROCAL "reciprocal" [] Float RECIPROCAL "1 over every element."
        "tensor([2.0, 4.0]).reciprocal()" => "tensor([0.5000, 0.2500])" [OUT]
        |e, v| { let square = square_plus(e, v.output(0), -1, 0); times(e, v, square) };
    SQRT "sqrt" [] Float SQRT "The square root; NaN below 0."
        "tensor([4.0, 9.0]).sqrt()" => "tensor([2., 3.])" [OUT]
        |e, v| { let twice = e.mul(v.output(0), 2.0); over(e, v, twice) };
    RSQRT "rsqrt" [] Float RSQRT "1 over the square root."
        "tensor([4.0]).rsqrt()" => "tensor([0.5000])" [OUT]
        |e, v| {
            let cube = e.call(&crate::op::rows::pointwise::arith::POW, args![v.output(0), Scalar::Int(3)])?;
            let factor = e.mul(&cube, -0.5);
            times(e, v, factor)
        };

    EXP "exp" [] Float EXP "e to the power of every element."
        "tensor([0.0]).exp()" => "tensor([1.])" [OUT]
        |e, v| times(e, v, Ok(v.output(0).clone()));
    EXP2 "exp2" [] Float EXP2 "2 to the power of every element."
        "tensor([3.0]).exp2()" => "tensor([8.])" [OUT]
        |e, v| { let factor = e.mul(v.output(0), LN_2); times(e, v, factor) };
    EXPM1 "expm1" [] Float EXPM1 "e to the power of every element, minus 1, exact near 0."
        "tensor([0.0]).expm1()" => "tensor([0.])" [OUT]
        |e, v| { let factor = e.add(v.output(0), Scalar::Int(1)); times(e, v, factor) };
    LOG "log" [] Float LOG "The natural logarithm."
        "tensor([1.0]).log()" => "tensor([0.])" [IN]
        |e, v| over(e, v, Ok(v.input(0).clone()));
    LOG2 "log2" [] Float LOG2 "The logarithm to base 2."
        "tensor([8.0]).log2()" => "tensor([3.])" [IN]
        |e, v| { let scaled = e.mul(v.input(0), LN_2); over(e, v, scaled) };
    LOG10 "log10" [] Float LOG10 "The logarithm to base 10."
        "tensor([100.0]).log10()" => "tensor([2.])" [IN]
        |e, v| { let scaled = e.mul(v.input(0), LN_10); over(e, v, scaled) };
    LOG1P "log1p" [] Float LOG1P "ln(1 + x), exact near 0."
        "tensor([0.0]).log1p()" => "tensor([0.])" [IN]
        |e, v| { let more = e.add(v.input(0), Scalar::Int(1)); over(e, v, more) };

    SIN "sin" [] Float SIN "The sine, of radians."
        "tensor([0.0]).sin()" => "tensor([0.])" [IN]
        |e, v| { let cos = e.call(&COS, args![v.input(0)]); times(e, v, cos) };
    COS "cos" [] Float COS "The cosine, of radians."
        "tensor([0.0]).cos()" => "tensor([1.])" [IN]
        |e, v| {
            let sin = e.call(&SIN, args![v.input(0)])?;
            let factor = e.neg(&sin);
            times(e, v, factor)
        };
    TAN "tan" [] Float TAN "The tangent, of radians."
        "tensor([0.0]).tan()" => "tensor([0.])" [OUT]
        |e, v| { let factor = square_plus(e, v.output(0), 1, 1); times(e, v, factor) };
    ASIN "asin" ["arcsin"] Float ASIN "The angle with this sine, in radians."
        "tensor([1.0]).asin()" => "tensor([1.5708])" [IN]
        |e, v| { let root = root_of(e, v.input(0), -1, 1); over(e, v, root) };
    ACOS "acos" ["arccos"] Float ACOS "The angle with this cosine, in radians."
        "tensor([0.0]).acos()" => "tensor([1.5708])" [IN]
        |e, v| {
            let root = root_of(e, v.input(0), -1, 1)?;
            let negative = e.neg(&root);
            over(e, v, negative)
        };
    ATAN "atan" ["arctan"] Float ATAN "The angle with this tangent, in radians."
        "tensor([1.0]).atan()" => "tensor([0.7854])" [IN]
        |e, v| { let sum = square_plus(e, v.input(0), 1, 1); over(e, v, sum) };
    SINH "sinh" [] Float SINH "The hyperbolic sine."
        "tensor([0.0]).sinh()" => "tensor([0.])" [IN]
        |e, v| { let cosh = e.call(&COSH, args![v.input(0)]); times(e, v, cosh) };
    COSH "cosh" [] Float COSH "The hyperbolic cosine."
        "tensor([0.0]).cosh()" => "tensor([1.])" [IN]
        |e, v| { let sinh = e.call(&SINH, args![v.input(0)]); times(e, v, sinh) };
    TANH "tanh" [] Float TANH "The hyperbolic tangent."
        "tensor([0.0]).tanh()" => "tensor([0.])" [OUT]
        |e, v| Ok(vec![Some(e.call(&TANH_GRAD, args![v.g(), v.output(0)])?)]);
    ASINH "asinh" ["arcsinh"] Float ASINH "The inverse of `sinh`."
        "tensor([0.0]).asinh()" => "tensor([0.])" [IN]
        |e, v| { let root = root_of(e, v.input(0), 1, 1); over(e, v, root) };
    ACOSH "acosh" ["arccosh"] Float ACOSH "The inverse of `cosh`."
        "tensor([1.0]).acosh()" => "tensor([0.])" [IN]
        |e, v| { let root = root_of(e, v.input(0), 1, -1); over(e, v, root) };
    ATANH "atanh" ["arctanh"] Float ATANH "The inverse of `tanh`."
        "tensor([0.0]).atanh()" => "tensor([0.])" [IN]
        |e, v| { let rest = square_plus(e, v.input(0), -1, 1); over(e, v, rest) };
    SIGMOID "sigmoid" ["expit"] Float SIGMOID "1 / (1 + e^-x)."
        "tensor([0.0]).sigmoid()" => "tensor([0.5000])" [OUT]
        |e, v| Ok(vec![Some(e.call(&SIGMOID_GRAD, args![v.g(), v.output(0)])?)]);

    FLOOR "floor" [] RoundLike FLOOR "The next integer below."
        "tensor([1.5, -1.5]).floor()" => "tensor([ 1., -2.])" [] ZERO;
    CEIL "ceil" [] RoundLike CEIL "The next integer above."
        "tensor([1.5, -1.5]).ceil()" => "tensor([ 2., -1.])" [] ZERO;
    TRUNC "trunc" ["fix"] RoundLike TRUNC "The next integer towards 0."
        "tensor([1.5, -1.5]).trunc()" => "tensor([ 1., -1.])" [] ZERO;
    FRAC "frac" [] FloatOnly FRAC "What `trunc` cuts off."
        "tensor([1.5, -1.5]).frac()" => "tensor([ 0.5000, -0.5000])" [] |_, v| Ok(vec![Some(v.g().clone())]);
    DEG2RAD "deg2rad" [] Float DEG2RAD "Degrees in radians."
        "tensor([180.0]).deg2rad()" => "tensor([3.1416])" []
        |e, v| Ok(vec![Some(e.mul(v.g(), std::f64::consts::PI / 180.0)?)]);
    RAD2DEG "rad2deg" [] Float RAD2DEG "Radians in degrees."
        "tensor([1.0]).rad2deg()" => "tensor([57.2958])" []
        |e, v| Ok(vec![Some(e.mul(v.g(), 180.0 / std::f64::consts::PI)?)]);
}

/// The square root of `a x² + b`.
fn root_of(e: &mut dyn Emit, x: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    let sum = square_plus(e, x, a, b)?;
    e.call(&SQRT, args![&sum])
}

const G: Param = Param::new("grad", Kind::Tensor);
const Y: Param = Param::new("output", Kind::Tensor);

/// `g (1 - y²)` with the output y.
static TANH_GRAD: Op = Op {
    name: "tanh",
    params: &[G, Y],
    summary: "The gradient of `tanh`.",
    lower: Lower::Map { function: &f::TANH_GRAD, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let (g, y) = (v.input(0), v.input(1));
        let first = e.call(&TANH_GRAD, args![v.g(), y])?;
        let product = e.mul(v.g(), g)?;
        let scaled = e.mul(&product, y)?;
        Ok(vec![Some(first), Some(e.mul(&scaled, -2.0)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `g (1 - y) y` with the output y.
static SIGMOID_GRAD: Op = Op {
    name: "sigmoid",
    params: &[G, Y],
    summary: "The gradient of `sigmoid`.",
    lower: Lower::Map { function: &f::SIGMOID_GRAD, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let (g, y) = (v.input(0), v.input(1));
        let first = e.call(&SIGMOID_GRAD, args![v.g(), y])?;
        let product = e.mul(v.g(), g)?;
        let slope = e.mul(y, -2.0)?;
        let slope = e.add(&slope, Scalar::Int(1))?;
        Ok(vec![Some(first), Some(e.mul(&product, &slope)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

static ROUND_EVEN: Op = Op {
    name: "round",
    params: &[X],
    summary: "The nearest integer; halves go to the even one.",
    lower: Lower::Map { function: &f::ROUND, promote: Promote::RoundLike },
    grad: Grad::Rule(ZERO),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ROUND: Op = Op {
    name: "round",
    params: &[X, Param::opt("decimals", Kind::Int, Default::Int(0))],
    summary: "The nearest number with `decimals` digits after the point; halves go to the even one.",
    examples: &[
        ex("tensor([0.5, 1.5, 2.6]).round()", "tensor([0., 2., 3.])"),
        ex("tensor([1234.0]).round(-2)", "tensor([1200.])"),
        ex("tensor([1000.0], #{dtype: \"f16\"}).round(2)", "tensor([1000.], dtype=f16)"),
        ex("tensor([12]).round(1)", "E0202"),
        ex("tensor([true]).round()", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, decimals) = (a.tensor(0), a.int(1));
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
    params: &[X],
    summary: "The tensor itself.",
    examples: &[ex("tensor([-1]).positive()", "tensor([-1])"), ex("tensor([true]).positive()", "E0202")],
    lower: Lower::Compose(|_, a| {
        if a.tensor(0).dtype() == DType::Bool {
            fail!(DTYPE, "`bool` is not supported");
        }
        Ok(vec![a.tensor(0).clone()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static NAN_TO_NUM: Op = Op {
    name: "nan_to_num",
    params: &[
        X,
        Param::opt("nan", Kind::Float, Default::None),
        Param::opt("posinf", Kind::Float, Default::None),
        Param::opt("neginf", Kind::Float, Default::None),
    ],
    summary: "Replaces NaN by `nan` (0), infinities by `posinf` and `neginf` (the dtype's largest and smallest number).",
    examples: &[ex("tensor([NAN, INF, 1.0]).nan_to_num(0.0, 9.0)", "tensor([0., 9., 1.])")],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        if !x.dtype().is_float() {
            return Ok(vec![e.call(&crate::op::rows::shape::view::CLONE, args![x])?]);
        }
        let largest = match x.dtype() {
            DType::F64 => f64::MAX,
            DType::F32 => f32::MAX as f64,
            DType::F16 => 65_504.0,
            _ => half::bf16::MAX.to_f64(),
        };
        let with = [a.float(1), a.opt_float(2).unwrap_or(largest), a.opt_float(3).unwrap_or(-largest)];
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
