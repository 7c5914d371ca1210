//! Powers, angles, extremes of two operands, and the other functions of two numbers.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{Category, DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::row::{CallForm, Grad, Kind, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::arith::{INPUT, OTHER, POW, X, common, masked, pair, two, unmasked};
use crate::op::rows::pointwise::compare::{EQ, GE, GT, ISNAN, LOGICAL_AND, LOGICAL_OR, LT, WHERE};
use crate::op::rows::pointwise::unary::{EXP, LOG, RECIPROCAL, RSQRT, SQRT};
use crate::op::tensor::Tensor;

const Y: Param = Param::new("other", Kind::Tensor);

/// The element-wise power itself.
static POWER: Op = Op {
    name: "pow",
    params: &[INPUT, OTHER],
    summary: "Raises to a power, element-wise.",
    lower: Lower::Map { function: &f::POW, promote: Promote::NoBool },
    saves: &[Save::In(0), Save::In(1), Save::Out(0)],
    grad: Grad::Rule(|e, v| pair(e, v, |e| by_base(e, v), |e| by_exponent(e, v))),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `g b a^(b - 1)`, 0 where b is 0.
fn by_base(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let (base, exponent) = (v.operand(0), v.operand(1));
    let scaled = match &exponent {
        Arg::Tensor(b) => {
            let less = e.sub(b, Scalar::Int(1))?;
            let power = e.call(&POWER, two(base, Arg::Tensor(less)))?;
            e.mul(&power, b)?
        }
        _ => {
            let b = v.args.float(1);
            if b == 0.0 {
                return e.zeros_like(v.meta(0));
            }
            let power = e.call(&POW, two(base, (b - 1.0).into()))?;
            e.mul(&power, b)?
        }
    };
    let g = e.mul(v.g(), &scaled)?;
    match &exponent {
        Arg::Tensor(b) => {
            let zero = e.call(&EQ, args![b, Scalar::Int(0)])?;
            unmasked(e, &zero, &g)
        }
        _ => Ok(g),
    }
}

/// `g a^b ln a`, 0 where a is 0 and b is not negative.
fn by_exponent(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let exponent = match v.operand(1) {
        Arg::Tensor(b) => b,
        _ => return e.zeros_like(v.outputs.first().unwrap_or(v.meta(1))),
    };
    match v.operand(0) {
        Arg::Tensor(base) => {
            let log = e.call(&LOG, args![&base])?;
            let product = e.mul(v.output(0), &log)?;
            let g = e.mul(v.g(), &product)?;
            let at_zero = e.call(&EQ, args![&base, Scalar::Int(0)])?;
            let positive = e.call(&GE, args![&exponent, Scalar::Int(0)])?;
            let flat = e.call(&LOGICAL_AND, args![&at_zero, &positive])?;
            unmasked(e, &flat, &g)
        }
        _ => {
            let base = v.args.float(0);
            let product = e.mul(v.g(), v.output(0))?;
            if base == 0.0 {
                let positive = e.call(&GE, args![&exponent, Scalar::Int(0)])?;
                let g = e.mul(&product, f64::NEG_INFINITY)?;
                return unmasked(e, &positive, &g);
            }
            e.mul(&product, base.ln())
        }
    }
}

/// `square`, after `bool` became i64.
static SQUARED: Op = Op {
    name: "square",
    params: &[X],
    summary: "Every element times itself.",
    lower: Lower::Map { function: &f::SQUARE, promote: Promote::NoBool },
    saves: &[Save::In(0)],
    grad: Grad::Rule(|e, v| {
        let twice = e.mul(v.input(0), 2.0)?;
        Ok(vec![Some(e.mul(v.g(), &twice)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static SQUARE: Op = Op {
    name: "square",
    params: &[X],
    summary: "Every element times itself.",
    examples: &[ex("tensor([1.0, -3.0]).square()", "tensor([1., 9.])")],
    lower: Lower::Compose(|e, a| {
        let x = if a.tensor(0).dtype() == DType::Bool { e.cast(a.tensor(0), DType::I64)? } else { a.tensor(0).clone() };
        e.apply(&SQUARED, args![&x])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// `pow`, with the exponents that have a shorter way: 1, 2, 3, a half, and their negatives.
pub fn pow(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (base, exponent) = (a.get(0), a.get(1));
    let dtype = common(e, &[base, exponent]);
    if dtype == DType::Bool && !matches!((base, a.scalar(1)), (Arg::Tensor(_), Some(_))) {
        fail!(DTYPE, "`bool` is not supported");
    }
    let (Arg::Tensor(x), Some(scalar)) = (base, a.scalar(1)) else {
        return e.apply(&POWER, two(base.clone(), exponent.clone()));
    };
    if dtype.is_int() && scalar.to_i64() < 0 {
        return Err(Diag::error(code::VALUE, "integers have no negative integer powers")
            .help("convert the base, for example with `.float()`"));
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
        0.5 if dtype.is_float() => return Ok(vec![e.call(&SQRT, args![&x])?]),
        -0.5 if dtype.is_float() => &RSQRT,
        -1.0 if dtype.is_float() => &RECIPROCAL,
        -2.0 if dtype.is_float() => {
            let square = e.call(&SQUARED, args![&x])?;
            return Ok(vec![e.call(&RECIPROCAL, args![&square])?]);
        }
        _ => return e.apply(&POWER, args![&x, scalar]),
    };
    e.apply(op, args![&x])
}

pub static FLOAT_POWER: Op = Op {
    name: "float_power",
    params: &[INPUT, Param::new("exponent", Kind::Operand)],
    summary: "Raises to a power in f64.",
    examples: &[ex("float_power(tensor([2, 4]), -1)", "tensor([0.5000, 0.2500], dtype=f64)")],
    lower: Lower::Compose(float_power),
    grad: Grad::Composed,
    ..Op::BASE
};

fn float_power(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let mut wide = Vec::new();
    for at in 0..2 {
        wide.push(match a.get(at) {
            Arg::Tensor(x) => Arg::Tensor(e.cast(x, DType::F64)?),
            _ => Arg::from(a.float(at)),
        });
    }
    let exponent = wide.pop().unwrap_or_default();
    e.apply(&POW, two(wide.pop().unwrap_or_default(), exponent))
}

pub static FLOAT_POWER_: Op = Op {
    name: "float_power",
    params: &[X, Param::new("exponent", Kind::Operand)],
    summary: "Raises an f64 tensor to a power in place.",
    examples: &[ex("tensor([2.0]).float_power_(2)", "E0202")],
    lower: Lower::Compose(|e, a| {
        if a.tensor(0).dtype() != DType::F64 {
            fail!(DTYPE, "the result is f64 and does not go into a tensor of dtype {}", a.tensor(0).dtype());
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
    params: &[X, Y],
    summary: "The angle of the point (`other`, `input`), in radians.",
    examples: &[ex("atan2(tensor([1.0]), tensor([1.0]))", "tensor([0.7854])")],
    lower: Lower::Map { function: &f::ATAN2, promote: Promote::Float },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let square = |e: &mut dyn Emit, at: usize| e.call(&arith::MUL, two(v.operand(at), v.operand(at)));
        let (y2, x2) = (square(e, 0)?, square(e, 1)?);
        let norm = e.add(&y2, &x2)?;
        let scaled = e.div(v.g(), &norm)?;
        // At the origin there is no slope; PyTorch's is 0.
        let origin = e.call(&EQ, args![&norm, Scalar::Int(0)])?;
        let scaled = unmasked(e, &origin, &scaled)?;
        pair(
            e,
            v,
            |e| e.mul(&scaled, v.operand(1)),
            |e| {
                let product = e.mul(&scaled, v.operand(0))?;
                e.neg(&product)
            },
        )
    }),
    inplace: true,
    ..Op::BASE
};

pub static HYPOT: Op = Op {
    name: "hypot",
    params: &[X, Y],
    summary: "The length of the hypotenuse: sqrt(input² + other²), without overflow in between.",
    examples: &[
        ex("hypot(tensor([3.0]), tensor([4.0]))", "tensor([5.])"),
        ex("hypot(tensor([3]), tensor([4]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::HYPOT, promote: Promote::FloatOnly },
    saves: &[Save::In(0), Save::In(1), Save::Out(0)],
    grad: Grad::Rule(|e, v| {
        let part = |e: &mut dyn Emit, at: usize| {
            let ratio = e.call(&arith::DIV, two(v.operand(at), Arg::Tensor(v.output(0).clone())))?;
            e.mul(v.g(), &ratio)
        };
        pair(e, v, |e| part(e, 0), |e| part(e, 1))
    }),
    inplace: true,
    ..Op::BASE
};

pub static COPYSIGN: Op = Op {
    name: "copysign",
    params: &[X, OTHER],
    summary: "The magnitude of `input` with the sign of `other`.",
    examples: &[ex("copysign(tensor([1.0, 2.0]), -1)", "tensor([-1., -2.])")],
    lower: Lower::Map { function: &f::COPYSIGN, promote: Promote::Float },
    saves: &[Save::For(0, 0), Save::Out(0)],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |e| {
                let ratio = e.div(v.output(0), v.operand(0))?;
                let g = e.mul(v.g(), &ratio)?;
                let zero = e.call(&EQ, two(v.operand(0), Scalar::Int(0).into()))?;
                unmasked(e, &zero, &g)
            },
            |e| e.zeros_like(v.meta(1)),
        )
    }),
    inplace: true,
    ..Op::BASE
};

pub static NEXTAFTER: Op = Op {
    name: "nextafter",
    params: &[X, Y],
    summary: "The next floating-point number after `input` towards `other`.",
    examples: &[
        ex("nextafter(tensor([1.0]), tensor([2.0])) > 1", "tensor([true])"),
        ex("nextafter(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let op = match common(e, &[a.get(0), a.get(1)]) {
            DType::F16 => &NEXTAFTER_F16,
            DType::BF16 => &NEXTAFTER_BF16,
            _ => &NEXTAFTER_WIDE,
        };
        e.apply(op, args![a.tensor(0), a.tensor(1)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// One for each width, since neighbours depend on it.
const fn neighbour(function: &'static crate::kernel::program::Function) -> Op {
    Op {
        name: "nextafter",
        params: &[X, Y],
        summary: "The next floating-point number.",
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::In(0), Save::In(1)],
        // As in PyTorch: as if the result were the first operand, but where the two are equal.
        grad: Grad::Rule(|e, v| {
            let same = e.call(&EQ, two(v.operand(0), v.operand(1)))?;
            pair(e, v, |e| unmasked(e, &same, v.g()), |e| e.zeros_like(v.meta(1)))
        }),
        call: CallForm::Internal,
        ..Op::BASE
    }
}

static NEXTAFTER_WIDE: Op = neighbour(&f::NEXTAFTER);
static NEXTAFTER_F16: Op = neighbour(&f::NEXTAFTER_F16);
static NEXTAFTER_BF16: Op = neighbour(&f::NEXTAFTER_BF16);

pub static LOGADDEXP: Op = Op {
    name: "logaddexp",
    params: &[X, Y],
    summary: "ln(e^input + e^other), without overflow.",
    examples: &[
        ex("logaddexp(tensor([0.0]), tensor([0.0]))", "tensor([0.6931])"),
        ex("logaddexp(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::LOGADDEXP, promote: Promote::FloatOnly },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| pair(e, v, |e| share(e, v, 0, &EXP), |e| share(e, v, 1, &EXP))),
    ..Op::BASE
};

pub static LOGADDEXP2: Op = Op {
    name: "logaddexp2",
    params: &[X, Y],
    summary: "The base-2 logarithm of 2^input + 2^other, without overflow.",
    examples: &[
        ex("logaddexp2(tensor([0.0]), tensor([0.0]))", "tensor([1.])"),
        ex("logaddexp2(tensor([1]), tensor([2]))", "E0202"),
    ],
    lower: Lower::Map { function: &f::LOGADDEXP2, promote: Promote::FloatOnly },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let exp2 = &crate::op::rows::pointwise::unary::EXP2;
        pair(e, v, |e| share(e, v, 0, exp2), |e| share(e, v, 1, exp2))
    }),
    ..Op::BASE
};

/// `g / (1 + e^(other - operand))`: the operand's share of a sum of exponentials.
fn share(e: &mut dyn Emit, v: &Backward<'_>, at: usize, exp: &'static Op) -> Result<Tensor> {
    let difference = e.call(&arith::SUB, two(v.operand(1 - at), v.operand(at)))?;
    let others = e.call(exp, args![&difference])?;
    let all = e.add(&others, Scalar::Int(1))?;
    e.div(v.g(), &all)
}

/// Gradients of `maximum` and `minimum`: a tie is shared in halves. `loses` compares an operand that gets none.
pub fn extreme(e: &mut dyn Emit, v: &Backward<'_>, loses: &'static Op) -> Result<Vec<Option<Tensor>>> {
    let tie = e.call(&EQ, two(v.operand(0), v.operand(1)))?;
    let half = e.mul(v.g(), 0.5)?;
    let shared = e.call(&WHERE, args![&tie, &half, v.g()])?;
    let part = |e: &mut dyn Emit, mine: usize| {
        let lost = e.call(loses, two(v.operand(mine), v.operand(1 - mine)))?;
        unmasked(e, &lost, &shared)
    };
    pair(e, v, |e| part(e, 0), |e| part(e, 1))
}

/// Gradients of `fmax` and `fmin`: all of it to the first operand when it wins or the other is NaN; ties in halves.
fn known_extreme(e: &mut dyn Emit, v: &Backward<'_>, wins: &'static Op) -> Result<Vec<Option<Tensor>>> {
    let won = e.call(wins, two(v.operand(0), v.operand(1)))?;
    let first = match v.operand(1) {
        Arg::Tensor(other) => {
            let missing = e.call(&ISNAN, args![&other])?;
            e.call(&LOGICAL_OR, args![&won, &missing])?
        }
        _ => won,
    };
    let tie = e.call(&EQ, two(v.operand(0), v.operand(1)))?;
    let half = e.mul(v.g(), 0.5)?;
    let part = |e: &mut dyn Emit, whole: Tensor| e.call(&WHERE, args![&tie, &half, &whole]);
    pair(
        e,
        v,
        |e| {
            let whole = masked(e, &first, v.g())?;
            part(e, whole)
        },
        |e| {
            let whole = unmasked(e, &first, v.g())?;
            part(e, whole)
        },
    )
}

pub static MAXIMUM: Op = Op {
    name: "maximum",
    params: &[X, Y],
    summary: "The larger of two elements; NaN wins.",
    examples: &[ex("maximum(tensor([1, 5]), tensor([3, 2]))", "tensor([3, 5])")],
    lower: Lower::Map { function: &f::MAXIMUM, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| extreme(e, v, &LT)),
    ..Op::BASE
};

pub static MINIMUM: Op = Op {
    name: "minimum",
    params: &[X, Y],
    summary: "The smaller of two elements; NaN wins.",
    examples: &[ex("minimum(tensor([1, 5]), tensor([3, 2]))", "tensor([1, 2])")],
    lower: Lower::Map { function: &f::MINIMUM, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| extreme(e, v, &GT)),
    ..Op::BASE
};

pub static FMAX: Op = Op {
    name: "fmax",
    params: &[X, Y],
    summary: "The larger of two elements; NaN loses.",
    examples: &[ex("fmax(tensor([1.0, NAN]), tensor([3.0, 2.0]))", "tensor([3., 2.])")],
    lower: Lower::Map { function: &f::FMAX, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| known_extreme(e, v, &GE)),
    ..Op::BASE
};

pub static FMIN: Op = Op {
    name: "fmin",
    params: &[X, Y],
    summary: "The smaller of two elements; NaN loses.",
    examples: &[ex("fmin(tensor([1.0, NAN]), tensor([3.0, 2.0]))", "tensor([1., 2.])")],
    lower: Lower::Map { function: &f::FMIN, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| known_extreme(e, v, &crate::op::rows::pointwise::compare::LE)),
    ..Op::BASE
};

pub static GCD: Op = Op {
    name: "gcd",
    params: &[X, Y],
    summary: "The greatest common divisor.",
    examples: &[ex("gcd(tensor([12, 18]), tensor(8))", "tensor([4, 2])"), ex("gcd(tensor([1.0]), tensor(2))", "E0202")],
    lower: Lower::Map { function: &f::GCD, promote: Promote::IntsOnly },
    grad: Grad::Stop("integers have no gradient"),
    inplace: true,
    ..Op::BASE
};

pub static LCM: Op = Op {
    name: "lcm",
    params: &[X, Y],
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
    params: &[INPUT, OTHER],
    summary: "input · ln(other), 0 where `input` is 0.",
    examples: &[ex("xlogy(tensor([0.0, 1.0]), tensor([0.0, 1.0]))", "tensor([0., 0.])")],
    lower: Lower::Map { function: &f::XLOGY, promote: Promote::Float },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        pair(
            e,
            v,
            |e| {
                let g = e.call(&XLOGY, two(Arg::Tensor(v.g().clone()), v.operand(1)))?;
                let at_zero = e.call(&EQ, two(v.operand(0), Scalar::Int(0).into()))?;
                let low = match v.operand(1) {
                    Arg::Tensor(other) => {
                        Arg::Tensor(e.call(&crate::op::rows::pointwise::compare::LE, args![&other, Scalar::Int(0)])?)
                    }
                    _ => Arg::from(Scalar::Bool(v.args.float(1) <= 0.0)),
                };
                let flat = e.call(&LOGICAL_AND, args![&at_zero, low])?;
                unmasked(e, &flat, &g)
            },
            |e| {
                let ratio = e.call(&arith::DIV, two(v.operand(0), v.operand(1)))?;
                e.mul(v.g(), &ratio)
            },
        )
    }),
    inplace: true,
    ..Op::BASE
};

pub static LDEXP: Op = Op {
    name: "ldexp",
    params: &[X, Y],
    summary: "input · 2^other.",
    examples: &[ex("ldexp(tensor([1.5]), tensor([2]))", "tensor([6.])")],
    lower: Lower::Compose(|e, a| {
        let mut scale = e.call(&POW, two(2.0.into(), a.get(1).clone()))?;
        if a.tensor(0).dtype().is_float() && !a.tensor(1).dtype().is_float() {
            scale = e.cast(&scale, a.tensor(0).dtype())?;
        }
        Ok(vec![e.mul(a.tensor(0), &scale)?])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static HEAVISIDE: Op = Op {
    name: "heaviside",
    params: &[X, Param::new("values", Kind::Tensor)],
    summary: "0 below zero, `values` at zero, 1 above.",
    examples: &[
        ex("heaviside(tensor([-1.0, 0.0, 2.0]), tensor(0.5))", "tensor([0.0000, 0.5000, 1.0000])"),
        ex("heaviside(tensor([1.0]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        crate::op::infer::same_dtype(&[("input", a.tensor(0)), ("values", a.tensor(1))])?;
        if a.tensor(0).dtype().category() == Category::Bool {
            return Ok(vec![
                e.call(&crate::op::rows::pointwise::compare::BITWISE_OR, args![a.tensor(0), a.tensor(1)])?,
            ]);
        }
        e.apply(&STEP, args![a.tensor(0), a.tensor(1)])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static STEP: Op = Op {
    name: "heaviside",
    params: &[X, OTHER],
    summary: "The step function.",
    lower: Lower::Map { function: &f::HEAVISIDE, promote: Promote::NoBool },
    grad: Grad::Stop("a step has no slope"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
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
    &HEAVISIDE,
    &POWER,
    &SQUARED,
    &STEP,
];
