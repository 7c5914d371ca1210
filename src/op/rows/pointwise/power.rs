//! Powers, angles, extremes of two operands, and the other functions of two numbers.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{Category, DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::expr::{Operand, compute, derive};
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save, ex};
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::arith::{POW, common, element_of, pair, two, unmasked};
use crate::op::rows::pointwise::compare::{EQ, GE, GT, ISNAN, LT};
use crate::op::rows::pointwise::unary::{EXP2, RECIPROCAL};
use crate::op::rows::signatures::{binary, two_tensors, unary};
use crate::op::tensor::Tensor;
use crate::signature;

/// The element-wise power itself.
static POWER: Op = Op {
    name: "pow",
    params: binary::PARAMS,
    summary: "Raises to a power, element-wise.",
    lower: Lower::Map { function: &f::POW, promote: Promote::NoBool },
    saves: &[Save::In(binary::input), Save::In(binary::other), Save::RESULT],
    grad: Grad::Rule(|e, v| pair(e, v, |e| by_base(e, v), |e| by_exponent(e, v))),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `g b a^(b - 1)`, 0 where b is 0.
fn by_base(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let base = v.operand(binary::input);
    match v.operand(binary::other) {
        Arg::Tensor(exponent) => compute(e, |c| {
            let b = c.of(&exponent);
            (c.of(v.g()) * ((b - 1).behind(&POWER, base) * b)).zero_where(b.equals(0))
        }),
        _ => match v.args.float(binary::other) {
            0.0 => e.zeros_like(v.meta(binary::input)),
            b => compute(e, |c| c.of(v.g()) * (c.call(&POW, two(base, (b - 1.0).into())) * b)),
        },
    }
}

/// `g a^b ln a`, 0 where a is 0 and b is not negative.
fn by_exponent(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let Arg::Tensor(exponent) = v.operand(binary::other) else {
        return e.zeros_like(v.outputs.first().unwrap_or(v.meta(binary::other)));
    };
    compute(e, |c| {
        let (g, power, b) = (c.of(v.g()), c.of(v.result()), c.of(&exponent));
        match v.operand(binary::input) {
            Arg::Tensor(base) => {
                let a = c.of(&base);
                let flat = a.equals(0).and(b.greater_equal(0));
                (g * (power * a.log())).zero_where(flat)
            }
            _ => match v.args.float(binary::input) {
                0.0 => (g * power * f64::NEG_INFINITY).zero_where(b.greater_equal(0)),
                a => g * power * a.ln(),
            },
        }
    })
}

/// Powers that are computed in a faster way. Their gradient is that of any power: at 0 and at infinity it is another than
/// that of the function which computes them.
macro_rules! fast_powers {
    ($($NAME:ident $exponent:literal $lower:expr;)*) => { $(
        static $NAME: Op = Op {
            name: "pow",
            params: unary::PARAMS,
            summary: "Raises to a power, element-wise.",
            lower: $lower,
            saves: &[Save::INPUT],
            grad: Grad::Of(&[|t| t.g * (t.input.pow($exponent - 1.0) * $exponent)]),
            call: CallForm::Internal,
            forward: crate::op::row::Forward::Symmetric,
            ..Op::BASE
        };
    )* };
}
fast_powers! {
    ROOT 0.5 Lower::Map { function: &f::SQRT, promote: Promote::Float };
    INVERSE -1.0 Lower::Map { function: &f::RECIPROCAL, promote: Promote::Float };
    INVERSE_ROOT -0.5 Lower::Map { function: &f::RSQRT, promote: Promote::Float };
    INVERSE_SQUARE -2.0 Lower::Steps(|e, a| Ok(vec![compute(e, |c| c.of(a.input()).square().of(&RECIPROCAL))?]));
}

/// `square`, after `bool` became i64.
static SQUARED: Op = Op {
    name: "square",
    params: unary::PARAMS,
    summary: "Every element times itself.",
    lower: Lower::Map { function: &f::SQUARE, promote: Promote::NoBool },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| t.g * (t.input * 2.0)]),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static SQUARE: Op = Op {
    name: "square",
    params: unary::PARAMS,
    summary: "Every element times itself.",
    examples: &[ex("tensor([1.0, -3.0]).square()", "tensor([1., 9.])")],
    lower: Lower::Compose(|e, a| {
        let x = if a.input().dtype() == DType::Bool { e.cast(a.input(), DType::I64)? } else { a.input().clone() };
        e.apply(&SQUARED, args![&x])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// `pow`, with the exponents that have a shorter way: 1, 2, 3, a half, and their negatives.
pub fn pow(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (base, exponent) = (a.get(arith::pow::input), a.get(arith::pow::exponent));
    let dtype = common(e, &[base, exponent]);
    if dtype == DType::Bool && !matches!((base, a.scalar(arith::pow::exponent)), (Arg::Tensor(_), Some(_))) {
        fail!(DTYPE, "bool tensors are not supported");
    }
    let (Arg::Tensor(x), Some(scalar)) = (base, a.scalar(arith::pow::exponent)) else {
        return e.apply(&POWER, two(base.clone(), exponent.clone()));
    };
    if dtype.is_int() && scalar.to_i64() < 0 {
        return Err(Diag::error(code::VALUE, "integers have no negative integer powers")
            .help("convert the base, for example with `.float()`"));
    }
    // An exponent that is no number of the dtype would be another exponent there.
    if dtype.is_int() {
        element_of(scalar, dtype)?;
    }
    let x = if x.dtype() == dtype { x.clone() } else { e.cast(x, dtype)? };
    let op = match scalar.to_f64() {
        0.0 if dtype == DType::Bool => {
            let one = crate::op::row::Source::Fill(Scalar::Bool(true));
            return Ok(vec![e.source(one, &x.shape(), dtype, x.device())?]);
        }
        1.0 => return Ok(vec![e.call(&crate::op::rows::shape::view::CLONE, args![&x])?]),
        2.0 => &SQUARED,
        3.0 => {
            let square = e.call(&SQUARED, args![&x])?;
            return Ok(vec![e.mul(&square, &x)?]);
        }
        0.5 if dtype.is_float() => &ROOT,
        -0.5 if dtype.is_float() => &INVERSE_ROOT,
        -1.0 if dtype.is_float() => &INVERSE,
        -2.0 if dtype.is_float() => &INVERSE_SQUARE,
        _ => return e.apply(&POWER, args![&x, scalar]),
    };
    e.apply(op, args![&x])
}

signature!(float_power(input: Operand, exponent: Operand));

pub static FLOAT_POWER: Op = Op {
    name: "float_power",
    params: float_power::PARAMS,
    summary: "Raises to a power in f64, or c128.",
    examples: &[ex("float_power(tensor([2, 4]), -1)", "tensor([0.5000, 0.2500], dtype=f64)")],
    lower: Lower::Compose(float_power),
    grad: Grad::Composed,
    ..Op::BASE
};

fn float_power(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let mut wide = Vec::new();
    let complex = a.tensors().into_iter().any(|x| x.dtype().is_complex());
    let dtype = if complex { DType::C128 } else { DType::F64 };
    for at in 0..2 {
        wide.push(match a.get(at) {
            Arg::Tensor(x) => Arg::Tensor(e.cast(x, dtype)?),
            _ => Arg::from(a.float(at)),
        });
    }
    let exponent = wide.pop().unwrap_or_default();
    e.apply(&POW, two(wide.pop().unwrap_or_default(), exponent))
}

signature!(float_power_(input: Tensor, exponent: Operand));

pub static FLOAT_POWER_: Op = Op {
    name: "float_power",
    params: float_power_::PARAMS,
    summary: "Raises an f64 tensor to a power in place.",
    examples: &[ex("tensor([2.0]).float_power_(2)", "E0202")],
    lower: Lower::Compose(|e, a| {
        if !matches!(a.input().dtype(), DType::F64 | DType::C128) {
            fail!(DTYPE, "the result is f64 and does not go into a tensor of dtype {}", a.input().dtype());
        }
        float_power(e, a)
    }),
    grad: Grad::Composed,
    inplace: true,
    call: CallForm::InPlace,
    ..Op::BASE
};

pub static ATAN2: Op = Op {
    name: "atan2",
    aliases: &["arctan2"],
    params: two_tensors::PARAMS,
    summary: "The angle of the point (`other`, `input`), in radians.",
    examples: &[ex("atan2(tensor([1.0]), tensor([1.0]))", "tensor([0.7854])")],
    lower: Lower::Map { function: &f::ATAN2, promote: Promote::Float },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let (y, x) = (t.input, t.other);
            let norm = y * y + x * x;
            // At the origin there is no derivative; PyTorch returns 0.
            let scaled = (t.g / norm).zero_where(norm.equals(0));
            [t.if_needed(two_tensors::input, || scaled * x), t.if_needed(two_tensors::other, || -(scaled * y))]
        })
    }),
    inplace: true,
    ..Op::BASE
};

pub static HYPOT: Op = Op {
    name: "hypot",
    params: two_tensors::PARAMS,
    summary: "The length of the hypotenuse: sqrt(input² + other²), without overflow in between.",
    examples: &[
        ex("hypot(tensor([3.0]), tensor([4.0]))", "tensor([5.])"),
        ex("hypot(tensor([3]), tensor([4]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::HYPOT, promote: Promote::FloatOnly },
    saves: &[
        Save::For(two_tensors::input, two_tensors::input),
        Save::For(two_tensors::other, two_tensors::other),
        Save::RESULT,
    ],
    grad: Grad::Of(&[|t| t.g * (t.input / t.result), |t| t.g * (t.other / t.result)]),
    inplace: true,
    ..Op::BASE
};

signature!(copysign(input: Tensor, other: Operand));

pub static COPYSIGN: Op = Op {
    name: "copysign",
    params: copysign::PARAMS,
    summary: "The magnitude of `input` with the sign of `other`.",
    examples: &[ex("copysign(tensor([1.0, 2.0]), -1)", "tensor([-1., -2.])")],
    lower: Lower::Map { function: &f::COPYSIGN, promote: Promote::Float },
    saves: &[Save::For(copysign::input, copysign::input), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |e| {
                compute(e, |c| {
                    let (g, x) = (c.of(v.g()), c.of(v.input()));
                    (g * (c.of(v.result()) / x)).zero_where(x.equals(0))
                })
            },
            |e| e.zeros_like(v.meta(copysign::other)),
        )
    }),
    inplace: true,
    ..Op::BASE
};

pub static NEXTAFTER: Op = Op {
    name: "nextafter",
    params: two_tensors::PARAMS,
    summary: "The next floating-point number after `input` towards `other`.",
    examples: &[
        ex("nextafter(tensor([1.0]), tensor([2.0])) > 1", "tensor([true])"),
        ex("nextafter(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let op = match common(e, &[a.get(two_tensors::input), a.get(two_tensors::other)]) {
            DType::F16 => &NEXTAFTER_F16,
            DType::BF16 => &NEXTAFTER_BF16,
            _ => &NEXTAFTER_WIDE,
        };
        e.apply(op, args![a.input(), a.tensor(two_tensors::other)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// One for each width, since neighbors depend on it.
const fn neighbor(function: &'static crate::kernel::program::Function) -> Op {
    Op {
        name: "nextafter",
        params: two_tensors::PARAMS,
        summary: "The next floating-point number.",
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::INPUT, Save::In(two_tensors::other)],
        // As in PyTorch: as if the result were the first operand, but where the two are equal.
        grad: Grad::Rule(|e, v| {
            let same = e.call(&EQ, two(v.operand(two_tensors::input), v.operand(two_tensors::other)))?;
            pair(e, v, |e| unmasked(e, &same, v.g()), |e| e.zeros_like(v.meta(two_tensors::other)))
        }),
        call: CallForm::Internal,
        ..Op::BASE
    }
}

static NEXTAFTER_WIDE: Op = neighbor(&f::NEXTAFTER);
static NEXTAFTER_F16: Op = neighbor(&f::NEXTAFTER_F16);
static NEXTAFTER_BF16: Op = neighbor(&f::NEXTAFTER_BF16);

pub static LOGADDEXP: Op = Op {
    name: "logaddexp",
    params: two_tensors::PARAMS,
    summary: "ln(e^input + e^other), without overflow.",
    examples: &[
        ex("logaddexp(tensor([0.0]), tensor([0.0]))", "tensor([0.6931])"),
        ex("logaddexp(tensor([complex(0.0, 0.0)]), tensor([0.0])).real", "tensor([0.6931])"),
        ex("logaddexp(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::LOGADDEXP, promote: Promote::FloatOnly },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Of(&[|t| t.g / ((t.other - t.input).exp() + 1), |t| t.g / ((t.input - t.other).exp() + 1)]),
    ..Op::BASE
};

pub static LOGADDEXP2: Op = Op {
    name: "logaddexp2",
    params: two_tensors::PARAMS,
    summary: "The base-2 logarithm of 2^input + 2^other, without overflow.",
    examples: &[
        ex("logaddexp2(tensor([0.0]), tensor([0.0]))", "tensor([1.])"),
        ex("logaddexp2(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::LOGADDEXP2, promote: Promote::FloatOnly },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Of(&[|t| t.g / ((t.other - t.input).of(&EXP2) + 1), |t| t.g / ((t.input - t.other).of(&EXP2) + 1)]),
    ..Op::BASE
};

/// Gradients of `maximum` and `minimum`: a tie is shared in halves. `loses` compares an operand that gets none.
pub fn extreme(e: &mut dyn Emit, v: &Backward<'_>, loses: &'static Op) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let (x, y) = (t.input, t.other);
        let shared = x.equals(y).choose(t.g * 0.5, t.g);
        [
            t.if_needed(binary::input, || shared.zero_where(x.with(loses, y))),
            t.if_needed(binary::other, || shared.zero_where(y.with(loses, x))),
        ]
    })
}

/// Gradients of `fmax` and `fmin`: all of it to the first operand when it wins or the other is NaN; ties in halves.
fn known_extreme(e: &mut dyn Emit, v: &Backward<'_>, wins: &'static Op) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let (x, y) = (t.input, t.other);
        let first = x.with(wins, y).or(y.of(&ISNAN));
        let (tie, half) = (x.equals(y), t.g * 0.5);
        [
            t.if_needed(two_tensors::input, || tie.choose(half, t.g.zero_unless(first))),
            t.if_needed(two_tensors::other, || tie.choose(half, t.g.zero_where(first))),
        ]
    })
}

pub static MAXIMUM: Op = Op {
    name: "maximum",
    params: two_tensors::PARAMS,
    summary: "The larger of two elements; NaN wins.",
    examples: &[ex("maximum(tensor([1, 5]), tensor([3, 2]))", "tensor([3, 5])")],
    lower: Lower::Map { function: &f::MAXIMUM, promote: Promote::Same },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| extreme(e, v, &LT)),
    ..Op::BASE
};

pub static MINIMUM: Op = Op {
    name: "minimum",
    params: two_tensors::PARAMS,
    summary: "The smaller of two elements; NaN wins.",
    examples: &[ex("minimum(tensor([1, 5]), tensor([3, 2]))", "tensor([1, 2])")],
    lower: Lower::Map { function: &f::MINIMUM, promote: Promote::Same },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| extreme(e, v, &GT)),
    ..Op::BASE
};

pub static FMAX: Op = Op {
    name: "fmax",
    params: two_tensors::PARAMS,
    summary: "The larger of two elements; NaN loses.",
    examples: &[ex("fmax(tensor([1.0, NAN]), tensor([3.0, 2.0]))", "tensor([3., 2.])")],
    lower: Lower::Map { function: &f::FMAX, promote: Promote::Same },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| known_extreme(e, v, &GE)),
    ..Op::BASE
};

pub static FMIN: Op = Op {
    name: "fmin",
    params: two_tensors::PARAMS,
    summary: "The smaller of two elements; NaN loses.",
    examples: &[ex("fmin(tensor([1.0, NAN]), tensor([3.0, 2.0]))", "tensor([1., 2.])")],
    lower: Lower::Map { function: &f::FMIN, promote: Promote::Same },
    saves: &[Save::INPUT, Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| known_extreme(e, v, &crate::op::rows::pointwise::compare::LE)),
    ..Op::BASE
};

pub static GCD: Op = Op {
    name: "gcd",
    params: two_tensors::PARAMS,
    summary: "The greatest common divisor.",
    examples: &[ex("gcd(tensor([12, 18]), tensor(8))", "tensor([4, 2])"), ex("gcd(tensor([1.0]), tensor(2))", "E0202")],
    lower: Lower::Map { function: &f::GCD, promote: Promote::IntsOnly },
    grad: Grad::Stop("integers have no gradient"),
    inplace: true,
    ..Op::BASE
};

pub static LCM: Op = Op {
    name: "lcm",
    params: two_tensors::PARAMS,
    summary: "The least common multiple.",
    examples: &[
        ex("lcm(tensor([4, 6]), tensor(10))", "tensor([20, 30])"),
        ex("lcm(tensor([1.0]), tensor(2))", "E0202"),
    ],
    lower: Lower::Map { function: &f::LCM, promote: Promote::IntsOnly },
    grad: Grad::Stop("integers have no gradient"),
    inplace: true,
    ..Op::BASE
};

pub static XLOGY: Op = Op {
    name: "xlogy",
    params: binary::PARAMS,
    summary: "input · ln(other), 0 where `input` is 0.",
    examples: &[ex("xlogy(tensor([0.0, 1.0]), tensor([0.0, 1.0]))", "tensor([0., 0.])")],
    lower: Lower::Map { function: &f::XLOGY, promote: Promote::Float },
    saves: &[Save::In(binary::input), Save::In(binary::other)],
    grad: Grad::Of(&[
        |t| {
            let low: Operand = match t.number(binary::other) {
                Some(other) => Scalar::Bool(other <= 0.0).into(),
                None => t.other.less_equal(0).into(),
            };
            t.g.with(&XLOGY, t.other).zero_where(t.input.equals(0).and(low))
        },
        |t| t.g * (t.input / t.other),
    ]),
    inplace: true,
    ..Op::BASE
};

pub static LDEXP: Op = Op {
    name: "ldexp",
    params: two_tensors::PARAMS,
    summary: "input · 2^other.",
    examples: &[ex("ldexp(tensor([1.5]), tensor([2]))", "tensor([6.])")],
    lower: Lower::Compose(|e, a| {
        let (x, n) = (a.input(), a.tensor(two_tensors::other));
        if !x.dtype().is_float() || !n.dtype().is_integral() {
            let scale = e.call(&POW, two(2.0.into(), n.into()))?;
            return Ok(vec![e.mul(x, &scale)?]);
        }
        let dtype = x.dtype();
        let (x, n) = (e.cast(x, dtype.compute())?, e.cast(n, dtype.compute())?);
        let y = e.call(&SCALED, args![&x, &n])?;
        Ok(vec![e.cast(&y, dtype)?])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// The same of two floating-point tensors, of which the second holds integers.
static SCALED: Op = Op {
    name: "ldexp",
    params: two_tensors::PARAMS,
    summary: "input · 2^other, rounded once.",
    lower: Lower::Map { function: &f::LDEXP, promote: Promote::FloatOnly },
    saves: &[Save::In(two_tensors::other)],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |e| e.call(&SCALED, two(v.g().into(), v.operand(two_tensors::other))),
            |e| e.zeros_like(v.meta(two_tensors::other)),
        )
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(heaviside(input: Tensor, values: Tensor));

pub static HEAVISIDE: Op = Op {
    name: "heaviside",
    params: heaviside::PARAMS,
    summary: "0 below zero, `values` at zero, 1 above.",
    examples: &[
        ex("heaviside(tensor([-1.0, 0.0, 2.0]), tensor(0.5))", "tensor([0.0000, 0.5000, 1.0000])"),
        ex("heaviside(tensor([1.0]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        crate::op::infer::same_dtype(&[("input", a.input()), ("values", a.tensor(heaviside::values))])?;
        if a.input().dtype().category() == Category::Bool {
            return Ok(vec![e.call(
                &crate::op::rows::pointwise::compare::BITWISE_OR,
                args![a.input(), a.tensor(heaviside::values)],
            )?]);
        }
        e.apply(&STEP, args![a.input(), a.tensor(heaviside::values)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static STEP: Op = Op {
    name: "heaviside",
    params: copysign::PARAMS,
    summary: "The step function.",
    lower: Lower::Map { function: &f::HEAVISIDE, promote: Promote::NoBool },
    grad: Grad::Stop("a step has no slope"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &INVERSE_ROOT,
    &INVERSE_SQUARE,
    &SQUARE,
    &FLOAT_POWER,
    &FLOAT_POWER_,
    &ATAN2,
    &HYPOT,
    &COPYSIGN,
    &NEXTAFTER,
    &LOGADDEXP,
    &LOGADDEXP2,
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
    &GCD,
    &LCM,
    &XLOGY,
    &LDEXP,
    &SCALED,
    &HEAVISIDE,
    &POWER,
    &SQUARED,
    &STEP,
];
