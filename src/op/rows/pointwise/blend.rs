//! Holding values between bounds, mixing tensors, filling in place.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Promote, Save, Source, ex};
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::arith::{INPUT, OTHER, X, element_of, filling, masked, two, unmasked};
use crate::op::rows::pointwise::compare;
use crate::op::rows::pointwise::compare::{EQ, GT, LOGICAL_AND, LOGICAL_OR, LT, WHERE};
use crate::op::rows::pointwise::power::extreme;
use crate::op::rows::shape::expanded::{each_place, fill_where};
use crate::op::tensor::Tensor;

const MIN: Param = Param::opt("min", Kind::Operand, Default::None);
const MAX: Param = Param::opt("max", Kind::Operand, Default::None);

/// Both bounds. Numbers let a gradient pass inside of them; with tensors an element on a bound shares it in halves.
static BETWEEN: Op = Op {
    name: "clamp",
    params: &[INPUT, MIN, MAX],
    summary: "Holds elements between two bounds.",
    lower: Lower::Map { function: &f::CLAMP, promote: Promote::NoBool },
    saves: &[Save::In(0), Save::In(1), Save::In(2)],
    grad: Grad::Rule(|e, v| {
        let bounds = [v.operand(1), v.operand(2)];
        if bounds.iter().all(|bound| !matches!(bound, Arg::Tensor(_))) {
            let over = e.call(&GT, two(v.operand(0), v.operand(1)))?;
            let under = e.call(&LT, two(v.operand(0), v.operand(2)))?;
            let inside = e.call(&LOGICAL_AND, args![&over, &under])?;
            return Ok(vec![Some(masked(e, &inside, v.g())?), None, None]);
        }
        let ask = |e: &mut dyn Emit, op, a, b| e.call(op, two(v.operand(a), v.operand(b)));
        let (below, above) = (ask(e, &LT, 0, 1)?, ask(e, &GT, 0, 2)?);
        let (ordered, crossed) = (ask(e, &LT, 1, 2)?, ask(e, &GT, 1, 2)?);
        let same = ask(e, &EQ, 1, 2)?;
        let apart = e.call(&LOGICAL_OR, args![&ordered, &same])?;
        let half = e.mul(v.g(), 0.5)?;
        let mut on = Vec::new();
        for bound in [1, 2] {
            let there = ask(e, &EQ, 0, bound)?;
            on.push(e.call(&LOGICAL_AND, args![&there, &ordered])?);
        }
        let mut grads = vec![None, None, None];
        if v.needs(0) {
            let outside = e.call(&LOGICAL_OR, args![&below, &above])?;
            let tie = e.call(&LOGICAL_OR, args![&on[0], &on[1]])?;
            let inside = unmasked(e, &outside, v.g())?;
            grads[0] = Some(e.call(&WHERE, args![&tie, &half, &inside])?);
        }
        for (bound, beyond) in [(1, &below), (2, &above)].into_iter().filter(|(bound, _)| v.needs(*bound)) {
            let mut held = e.call(&LOGICAL_AND, args![beyond, &apart])?;
            if bound == 2 {
                // The upper bound wins where the two are crossed.
                held = e.call(&LOGICAL_OR, args![&held, &crossed])?;
            }
            let all = masked(e, &held, v.g())?;
            grads[bound] = Some(e.call(&WHERE, args![&on[bound - 1], &half, &all])?);
        }
        Ok(grads)
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// One bound: a number lets the gradient pass inside of it; a tensor is as in `maximum` and `minimum`.
static AT_LEAST: Op = Op {
    name: "clamp_min",
    params: &[INPUT, OTHER],
    summary: "Holds elements above a bound.",
    lower: Lower::Map { function: &f::MAXIMUM, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| one_bound(e, v, &GT, &LT)),
    call: CallForm::Internal,
    ..Op::BASE
};

static AT_MOST: Op = Op {
    name: "clamp_max",
    params: &[INPUT, OTHER],
    summary: "Holds elements below a bound.",
    lower: Lower::Map { function: &f::MINIMUM, promote: Promote::Same },
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| one_bound(e, v, &LT, &GT)),
    call: CallForm::Internal,
    ..Op::BASE
};

fn one_bound(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    inside: &'static Op,
    beyond: &'static Op,
) -> Result<Vec<Option<Tensor>>> {
    if let Arg::Tensor(_) = v.operand(1) {
        return extreme(e, v, beyond);
    }
    let free = e.call(inside, two(v.operand(0), v.operand(1)))?;
    Ok(vec![Some(masked(e, &free, v.g())?), None])
}

/// A bound that an integer dtype does not hold becomes the nearest number that it does.
fn within(bound: &Arg, dtype: DType) -> Arg {
    match (Args(smallvec::smallvec![bound.clone()]).scalar(0), dtype.int_range()) {
        (Some(Scalar::Int(i)), Some((low, high))) => Scalar::Int(i.clamp(low, high)).into(),
        _ => bound.clone(),
    }
}

fn clamped(e: &mut dyn Emit, x: &Tensor, min: &Arg, max: &Arg) -> Result<Vec<Tensor>> {
    let bounds: Vec<&Arg> = [min, max].into_iter().filter(|arg| !matches!(arg, Arg::None)).collect();
    let mut all = vec![Arg::Tensor(x.clone())];
    all.extend(bounds.iter().map(|&arg| arg.clone()));
    let dtype = arith::common(e, &all.iter().collect::<Vec<_>>());
    let numbers = bounds.iter().any(|arg| !matches!(arg, Arg::Tensor(_)));
    if dtype == DType::Bool && (bounds.len() == 2 || numbers) {
        fail!(DTYPE, "`bool` is not supported");
    }
    let (min, max) = (&within(min, dtype), &within(max, dtype));
    match (min, max) {
        (Arg::None, Arg::None) => fail!(MISSING_ARGUMENT, "at least one of `min` and `max` is wanted"),
        (min, Arg::None) => e.apply(&AT_LEAST, args![x, min.clone()]),
        (Arg::None, max) => e.apply(&AT_MOST, args![x, max.clone()]),
        (min, max) => e.apply(&BETWEEN, args![x, min.clone(), max.clone()]),
    }
}

pub static CLAMP: Op = Op {
    name: "clamp",
    aliases: &["clip"],
    params: &[X, MIN, MAX],
    summary: "Holds elements between two bounds, which are numbers or tensors; one may be missing.",
    examples: &[
        ex("tensor([-2, 0, 5]).clamp(-1, 3)", "tensor([-1,  0,  3])"),
        ex("tensor([-2, 0, 5]).clamp(#{max: 3})", "tensor([-2,  0,  3])"),
        ex("tensor([1]).clamp()", "E0205"),
        ex("ones([2]).clamp(ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| clamped(e, a.tensor(0), a.get(1), a.get(2))),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static CLAMP_MIN: Op = Op {
    name: "clamp_min",
    params: &[X, Param::new("min", Kind::Operand)],
    summary: "Holds elements above a bound.",
    examples: &[ex("tensor([-2, 0, 5]).clamp_min(0)", "tensor([0, 0, 5])")],
    lower: Lower::Compose(|e, a| clamped(e, a.tensor(0), a.get(1), &Arg::None)),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static CLAMP_MAX: Op = Op {
    name: "clamp_max",
    params: &[X, Param::new("max", Kind::Operand)],
    summary: "Holds elements below a bound.",
    examples: &[ex("tensor([-2, 0, 5]).clamp_max(0)", "tensor([-2,  0,  0])")],
    lower: Lower::Compose(|e, a| clamped(e, a.tensor(0), &Arg::None, a.get(1))),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

static MIX: Op = Op {
    name: "lerp",
    params: &[INPUT, Param::new("end", Kind::Operand), Param::new("weight", Kind::Operand)],
    summary: "The point between two.",
    lower: Lower::Map { function: &f::LERP, promote: Promote::FloatOnly },
    saves: &[Save::For(0, 2), Save::For(1, 2), Save::In(2)],
    grad: Grad::Rule(|e, v| {
        let mut grads = vec![None, None, None];
        let to_end = e.mul(v.g(), v.operand(2))?;
        if v.needs(0) {
            grads[0] = Some(e.sub(v.g(), &to_end)?);
        }
        if v.needs(2) {
            let span = e.call(&arith::SUB, two(v.operand(1), v.operand(0)))?;
            grads[2] = Some(e.mul(v.g(), &span)?);
        }
        grads[1] = Some(to_end);
        Ok(grads)
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static LERP: Op = Op {
    name: "lerp",
    params: &[X, Param::new("end", Kind::Tensor), Param::new("weight", Kind::Operand)],
    summary: "input + weight · (end - input), exact at both ends.",
    examples: &[
        ex("lerp(tensor([0.0]), tensor([4.0]), 0.25)", "tensor([1.])"),
        ex("lerp(tensor([0]), tensor([4]), 0.25)", "E0202"),
        ex("lerp(ones([2]), ones([3]), 0.25)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let mut all = vec![("input", a.tensor(0)), ("end", a.tensor(1))];
        all.extend(a.opt_tensor(2).map(|weight| ("weight", weight)));
        infer::same_dtype(&all)?;
        e.apply(&MIX, args![a.tensor(0), a.tensor(1), a.get(2).clone()])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

const VALUE: Param = Param::opt("value", Kind::Number, Default::Int(1));
const TENSOR1: Param = Param::new("tensor1", Kind::Tensor);
const TENSOR2: Param = Param::new("tensor2", Kind::Tensor);
const FACTOR: Param = Param::new("value", Kind::Number);

/// Operands in the order of the function: `input, value, tensor1, tensor2`.
static PRODUCT_ADDED: Op = Op {
    name: "addcmul",
    params: &[INPUT, FACTOR, TENSOR1, TENSOR2],
    summary: "Adds a scaled product.",
    lower: Lower::Map { function: &f::FMA, promote: Promote::NoBool },
    saves: &[Save::For(2, 2), Save::For(3, 1)],
    grad: Grad::Rule(|e, v| {
        let factor = v.args.scalar(1).unwrap_or(Scalar::Int(1));
        let scaled = e.mul(v.g(), factor)?;
        let first = if v.needs(1) { Some(e.mul(&scaled, v.input(3))?) } else { None };
        let second = if v.needs(2) { Some(e.mul(&scaled, v.input(2))?) } else { None };
        Ok(vec![Some(v.g().clone()), first, second])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

static QUOTIENT_ADDED: Op = Op {
    name: "addcdiv",
    params: &[INPUT, FACTOR, TENSOR1, TENSOR2],
    summary: "Adds a scaled quotient.",
    lower: Lower::Map { function: &f::ADDCDIV, promote: Promote::FloatOnly },
    saves: &[Save::For(2, 2), Save::In(3)],
    grad: Grad::Rule(|e, v| {
        let factor = v.args.scalar(1).unwrap_or(Scalar::Int(1));
        let scaled = e.mul(v.g(), factor)?;
        let over = e.div(&scaled, v.input(3))?;
        let second = if v.needs(2) {
            let ratio = e.div(v.input(2), v.input(3))?;
            let product = e.mul(&over, &ratio)?;
            Some(e.neg(&product)?)
        } else {
            None
        };
        Ok(vec![Some(v.g().clone()), Some(over), second])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

fn added(e: &mut dyn Emit, a: &Args, op: &'static Op) -> Result<Vec<Tensor>> {
    let value = a.scalar(3).unwrap_or(Scalar::Int(1));
    let dtype = arith::common(e, &[a.get(0), a.get(1), a.get(2)]);
    if value.category() > dtype.category() {
        fail!(DTYPE, "`value` is {value}, but the operands are {dtype}");
    }
    e.apply(op, args![a.tensor(0), value, a.tensor(1), a.tensor(2)])
}

pub static ADDCMUL: Op = Op {
    name: "addcmul",
    params: &[X, TENSOR1, TENSOR2, VALUE],
    summary: "input + value · tensor1 · tensor2.",
    examples: &[
        ex("addcmul(tensor([1.0]), tensor([2.0]), tensor([3.0]), #{value: 0.5})", "tensor([4.])"),
        ex("addcmul(tensor([1]), tensor([2]), tensor([3]), #{value: 0.5})", "E0202"),
        ex("addcmul(ones([2]), ones([3]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| added(e, a, &PRODUCT_ADDED)),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static ADDCDIV: Op = Op {
    name: "addcdiv",
    params: &[X, TENSOR1, TENSOR2, VALUE],
    summary: "input + value · tensor1 / tensor2.",
    examples: &[
        ex("addcdiv(tensor([1.0]), tensor([6.0]), tensor([3.0]), #{value: 0.5})", "tensor([2.])"),
        ex("addcdiv(tensor([1]), tensor([6]), tensor([3]))", "E0202"),
        ex("addcdiv(ones([2]), ones([3]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| added(e, a, &QUOTIENT_ADDED)),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

pub static FILL: Op = Op {
    name: "fill",
    params: &[X, Param::new("value", Kind::Operand)],
    summary: "A tensor of the same shape and dtype filled with a number or a tensor of no dimensions.",
    examples: &[
        ex("zeros([2]).fill_(7)", "tensor([7., 7.])"),
        ex("zeros([2]).fill(tensor([1.0, 2.0]))", "E0201"),
        ex("zeros([2], #{dtype: \"u8\"}).fill(1000)", "E0206"),
        ex("zeros([2], #{dtype: \"f16\"}).fill(70000)", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        match a.get(1) {
            Arg::Tensor(value) if value.ndim() > 0 => {
                fail!(
                    SHAPE,
                    "`value` must be a number or a tensor of no dimensions, not one of shape {:?}",
                    value.shape().as_slice()
                )
            }
            Arg::Tensor(value) => {
                let value = e.cast(value, x.dtype())?;
                let shape = x.shape();
                let out = e.empty(&shape, x.dtype(), x.device())?;
                Ok(vec![e.apply_inplace(&arith::COPY, args![&out, &value])?])
            }
            _ => {
                let value = filling(a.scalar(1).unwrap_or(Scalar::Int(0)), x.dtype())?;
                Ok(vec![e.source(Source::Fill(value), &x.shape(), x.dtype(), x.device())?])
            }
        }
    }),
    grad: Grad::Rule(|e, v| {
        let old = if v.needs(0) { Some(e.zeros_like(v.meta(0))?) } else { None };
        Ok(vec![old, Some(v.g().clone())])
    }),
    inplace: true,
    expanded: Some(|e, a| each_place(e, &FILL, a)),
    ..Op::BASE
};

pub static ZERO: Op = Op {
    name: "zero",
    params: &[X],
    summary: "Fills the tensor with zeros.",
    examples: &[ex("ones([2]).zero_()", "tensor([0., 0.])")],
    lower: Lower::Compose(|e, a| Ok(vec![e.zeros_like(&crate::op::tensor::Meta::of(a.tensor(0)))?])),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| each_place(e, &ZERO, a)),
    call: CallForm::InPlace,
    ..Op::BASE
};

pub static FILL_DIAGONAL: Op = Op {
    name: "fill_diagonal",
    params: &[X, Param::new("fill_value", Kind::Number), Param::opt("wrap", Kind::Bool, Default::Bool(false))],
    summary: "Writes a number on the main diagonal; `wrap` goes on below the square part of a tall matrix.",
    examples: &[
        ex("zeros([2, 2]).fill_diagonal_(5)", "tensor([[5., 0.],\n        [0., 5.]])"),
        ex("zeros([2]).fill_diagonal_(5)", "E0201"),
        ex("zeros([2, 3, 2]).fill_diagonal_(5)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (mask, value) = on_diagonal(e, a)?;
        e.apply(&WHERE, args![&mask, value, a.tensor(0)])
    }),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| {
        let (mask, value) = on_diagonal(e, a)?;
        fill_where(e, a.tensor(0), &mask, value)
    }),
    call: CallForm::InPlace,
    ..Op::BASE
};

/// Where `fill_diagonal_` writes, and what.
fn on_diagonal(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, Scalar)> {
    let x = a.tensor(0);
    let shape = x.shape();
    if shape.len() < 2 {
        fail!(SHAPE, "a diagonal wants 2 dimensions or more, not shape {:?}", shape.as_slice());
    }
    if shape.len() > 2 && shape.iter().any(|&n| n != shape[0]) {
        fail!(SHAPE, "with more than 2 dimensions all must be of one size, not {:?}", shape.as_slice());
    }
    let value = element_of(a.scalar(1).unwrap_or(Scalar::Int(0)), x.dtype())?;
    // Row-major positions on the diagonal are the multiples of the sum of strides.
    let mut stride = 0i64;
    let mut size = 1i64;
    for &n in shape.iter().rev() {
        stride += size;
        size = size.saturating_mul(n as i64);
    }
    let position = e.source(Source::Position, &shape, DType::I64, x.device())?;
    let rest = e.call(&arith::REMAINDER, args![&position, stride.max(1)])?;
    let mut mask = e.call(&compare::EQ, args![&rest, Scalar::Int(0)])?;
    if shape.len() == 2 && !a.flag(2) {
        let inside = e.call(&LT, args![&position, Scalar::Int((shape[1] * shape[1]) as i64)])?;
        mask = e.call(&LOGICAL_AND, args![&mask, &inside])?;
    }
    Ok((mask, value))
}

pub static ROWS: &[&Op] = &[
    &CLAMP,
    &CLAMP_MIN,
    &CLAMP_MAX,
    &LERP,
    &ADDCMUL,
    &ADDCDIV,
    &FILL,
    &ZERO,
    &FILL_DIAGONAL,
    &BETWEEN,
    &AT_LEAST,
    &AT_MOST,
    &MIX,
    &PRODUCT_ADDED,
    &QUOTIENT_ADDED,
];
