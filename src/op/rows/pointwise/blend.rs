//! Clamping, interpolation, filling in place.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::copy;
use crate::kernel::elementwise as f;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::derive;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, Save, Source, ex};
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::arith::{element_of, filling};
use crate::op::rows::pointwise::compare;
use crate::op::rows::pointwise::compare::{GT, LOGICAL_AND, LT};
use crate::op::rows::pointwise::power::extreme;
use crate::op::rows::shape::expanded::{each_place, fill_where};
use crate::op::rows::signatures::{binary, unary};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(between(input: Operand, min: Operand = None, max: Operand = None));

/// Both bounds. Numbers let a gradient pass inside of them; with tensors an element on a bound shares it in halves.
static BETWEEN: Op = Op {
    name: "clamp",
    params: between::PARAMS,
    summary: "Holds elements between two bounds.",
    lower: Lower::Map { function: &f::CLAMP, promote: Promote::NoBool },
    saves: &[Save::In(between::input), Save::In(between::min), Save::In(between::max)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let (x, min, max) = (t.input, t.arg(between::min), t.arg(between::max));
            if t.number(between::min).is_some() && t.number(between::max).is_some() {
                let inside = x.greater(min).and(x.less(max));
                return [Some(t.g.zero_unless(inside)), None, None];
            }
            let (below, above) = (x.less(min), x.greater(max));
            let (ordered, crossed) = (min.less(max), min.greater(max));
            let apart = ordered.or(min.equals(max));
            let half = t.g * 0.5;
            let (on_min, on_max) = (x.equals(min).and(ordered), x.equals(max).and(ordered));
            [
                t.if_needed(between::input, || on_min.or(on_max).choose(half, t.g.zero_where(below.or(above)))),
                t.if_needed(between::min, || on_min.choose(half, t.g.zero_unless(below.and(apart)))),
                // The upper bound wins where the two are crossed.
                t.if_needed(between::max, || on_max.choose(half, t.g.zero_unless(above.and(apart).or(crossed)))),
            ]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// One bound: a number lets the gradient pass inside of it; a tensor is as in `maximum` and `minimum`.
static AT_LEAST: Op = Op {
    name: "clamp_min",
    params: binary::PARAMS,
    summary: "Holds elements above a bound.",
    lower: Lower::Map { function: &f::MAXIMUM, promote: Promote::Same },
    saves: &[Save::In(binary::input), Save::In(binary::other)],
    grad: Grad::Rule(|e, v| one_bound(e, v, &GT, &LT)),
    call: CallForm::Internal,
    ..Op::BASE
};

static AT_MOST: Op = Op {
    name: "clamp_max",
    params: binary::PARAMS,
    summary: "Holds elements below a bound.",
    lower: Lower::Map { function: &f::MINIMUM, promote: Promote::Same },
    saves: &[Save::In(binary::input), Save::In(binary::other)],
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
    if v.opt_input(binary::other).is_some() {
        return extreme(e, v, beyond);
    }
    derive(e, v, |t| [Some(t.g.zero_unless(t.input.with(inside, t.other))), None])
}

/// A bound that an integer dtype does not hold becomes the nearest number that it does; an error if no number of the
/// dtype is within it.
fn within(bound: &Arg, dtype: DType, is_upper: bool) -> Result<Arg> {
    Ok(match (Args(smallvec::smallvec![bound.clone()]).scalar(0), dtype.int_range()) {
        (Some(Scalar::Int(i)), Some((low, _))) if is_upper && i < low => {
            fail!(VALUE, "no number of {dtype} is {i} or less")
        }
        (Some(Scalar::Int(i)), Some((_, high))) if !is_upper && i > high => {
            fail!(VALUE, "no number of {dtype} is {i} or more")
        }
        (Some(Scalar::Int(i)), Some((low, high))) => Scalar::Int(i.clamp(low, high)).into(),
        _ => bound.clone(),
    })
}

fn clamped(e: &mut dyn Emit, x: &Tensor, min: &Arg, max: &Arg) -> Result<Vec<Tensor>> {
    let bounds: Vec<&Arg> = [min, max].into_iter().filter(|arg| !matches!(arg, Arg::None)).collect();
    let mut all = vec![Arg::Tensor(x.clone())];
    all.extend(bounds.iter().map(|&arg| arg.clone()));
    let dtype = arith::common(e, &all.iter().collect::<Vec<_>>());
    let numbers = bounds.iter().any(|arg| !matches!(arg, Arg::Tensor(_)));
    if dtype == DType::Bool && (bounds.len() == 2 || numbers) {
        fail!(DTYPE, "bool tensors are not supported");
    }
    let (min, max) = (&within(min, dtype, false)?, &within(max, dtype, true)?);
    match (min, max) {
        (Arg::None, Arg::None) => fail!(MISSING_ARGUMENT, "at least one of `min` and `max` is expected"),
        (min, Arg::None) => e.apply(&AT_LEAST, args![x, min.clone()]),
        (Arg::None, max) => e.apply(&AT_MOST, args![x, max.clone()]),
        (min, max) => e.apply(&BETWEEN, args![x, min.clone(), max.clone()]),
    }
}

signature!(clamp(input: Tensor, min: Operand = None, max: Operand = None));

pub static CLAMP: Op = Op {
    name: "clamp",
    aliases: &["clip"],
    params: clamp::PARAMS,
    summary: "Holds elements between two bounds, which are numbers or tensors; one may be missing.",
    examples: &[
        ex("tensor([-2, 0, 5]).clamp(-1, 3)", "tensor([-1,  0,  3])"),
        ex("tensor([-2, 0, 5]).clamp(#{max: 3})", "tensor([-2,  0,  3])"),
        ex("tensor([1]).clamp()", "E0205"),
        ex("tensor([1], #{dtype: \"u8\"}).clamp(#{max: -3})", "E0206"),
        ex("ones([2]).clamp(ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| clamped(e, a.input(), a.get(clamp::min), a.get(clamp::max))),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(clamp_min(input: Tensor, min: Operand));

pub static CLAMP_MIN: Op = Op {
    name: "clamp_min",
    params: clamp_min::PARAMS,
    summary: "Holds elements above a bound.",
    examples: &[ex("tensor([-2, 0, 5]).clamp_min(0)", "tensor([0, 0, 5])")],
    lower: Lower::Compose(|e, a| clamped(e, a.input(), a.get(clamp_min::min), &Arg::None)),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(clamp_max(input: Tensor, max: Operand));

pub static CLAMP_MAX: Op = Op {
    name: "clamp_max",
    params: clamp_max::PARAMS,
    summary: "Holds elements below a bound.",
    examples: &[ex("tensor([-2, 0, 5]).clamp_max(0)", "tensor([-2,  0,  0])")],
    lower: Lower::Compose(|e, a| clamped(e, a.input(), &Arg::None, a.get(clamp_max::max))),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(mix(input: Operand, end: Operand, weight: Operand));

static MIX: Op = Op {
    name: "lerp",
    params: mix::PARAMS,
    summary: "The point between two.",
    lower: Lower::Map { function: &f::LERP, promote: Promote::FloatOnly },
    saves: &[Save::For(mix::input, mix::weight), Save::For(mix::end, mix::weight), Save::In(mix::weight)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let to_end = t.g * t.arg(mix::weight);
            let by_weight = || t.g * (t.arg(mix::end) - t.input);
            [t.if_needed(mix::input, || t.g - to_end), Some(to_end), t.if_needed(mix::weight, by_weight)]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(lerp(input: Tensor, end: Tensor, weight: Operand));

pub static LERP: Op = Op {
    name: "lerp",
    params: lerp::PARAMS,
    summary: "input + weight · (end - input), exact at both ends.",
    examples: &[
        ex("lerp(tensor([0.0]), tensor([4.0]), 0.25)", "tensor([1.])"),
        ex("lerp(tensor([0]), tensor([4]), 0.25)", "E0202"),
        ex("lerp(ones([2]), ones([3]), 0.25)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let mut all = vec![("input", a.input()), ("end", a.tensor(lerp::end))];
        all.extend(a.opt_tensor(lerp::weight).map(|weight| ("weight", weight)));
        infer::same_dtype(&all)?;
        e.apply(&MIX, args![a.input(), a.tensor(lerp::end), a.get(lerp::weight).clone()])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(product_added(input: Operand, value: Number, tensor1: Tensor, tensor2: Tensor));

/// Operands in the order of the function: `input, value, tensor1, tensor2`.
static PRODUCT_ADDED: Op = Op {
    name: "addcmul",
    params: product_added::PARAMS,
    summary: "Adds a scaled product.",
    lower: Lower::Map { function: &f::FMA, promote: Promote::NoBool },
    saves: &[
        Save::For(product_added::tensor1, product_added::tensor2),
        Save::For(product_added::tensor2, product_added::tensor1),
    ],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let scaled = t.g * t.arg(product_added::value);
            let first = t.if_needed(product_added::tensor1, || scaled * t.arg(product_added::tensor2));
            let second = t.if_needed(product_added::tensor2, || scaled * t.arg(product_added::tensor1));
            [Some(t.g), first, second]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

static QUOTIENT_ADDED: Op = Op {
    name: "addcdiv",
    params: product_added::PARAMS,
    summary: "Adds a scaled quotient.",
    lower: Lower::Map { function: &f::ADDCDIV, promote: Promote::FloatOnly },
    saves: &[Save::For(product_added::tensor1, product_added::tensor2), Save::In(product_added::tensor2)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let (x, y) = (t.arg(product_added::tensor1), t.arg(product_added::tensor2));
            let over = t.g * t.arg(product_added::value) / y;
            [Some(t.g), Some(over), t.if_needed(product_added::tensor2, || -(over * (x / y)))]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

fn added(e: &mut dyn Emit, a: &Args, op: &'static Op) -> Result<Vec<Tensor>> {
    let value = a.scalar(addcmul::value).unwrap_or(Scalar::Int(1));
    let dtype = arith::common(e, &[a.get(addcmul::input), a.get(addcmul::tensor1), a.get(addcmul::tensor2)]);
    if value.category() > dtype.category() {
        fail!(DTYPE, "`value` is {value}, but the operands are {dtype}");
    }
    if dtype.is_int() {
        element_of(value, dtype)?;
    }
    e.apply(op, args![a.input(), value, a.tensor(addcmul::tensor1), a.tensor(addcmul::tensor2)])
}

signature!(addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1));

pub static ADDCMUL: Op = Op {
    name: "addcmul",
    params: addcmul::PARAMS,
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
    params: addcmul::PARAMS,
    summary: "input + value · tensor1 / tensor2.",
    examples: &[
        ex("addcdiv(tensor([1.0]), tensor([6.0]), tensor([3.0]), #{value: 0.5})", "tensor([2.])"),
        ex("addcdiv(tensor([1]), tensor([6]), tensor([3]))", "E0202"),
        ex("addcdiv(tensor([1.0]), tensor([6]), tensor([3]))", "E0202"),
        ex("addcdiv(ones([2]), ones([3]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let (above, below) = (a.tensor(addcmul::tensor1).dtype(), a.tensor(addcmul::tensor2).dtype());
        if !above.is_float() && !below.is_float() {
            fail!(DTYPE, "`tensor1` is {above} and `tensor2` {below}; one of them must be of floats");
        }
        added(e, a, &QUOTIENT_ADDED)
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

signature!(fill(input: Tensor, value: Operand));

pub static FILL: Op = Op {
    name: "fill",
    params: fill::PARAMS,
    summary: "A tensor of the same shape and dtype filled with a number or a tensor of no dimensions.",
    examples: &[
        ex("zeros([2]).fill_(7)", "tensor([7., 7.])"),
        ex("zeros([2]).fill(tensor([1.0, 2.0]))", "E0201"),
        ex("zeros([2], #{dtype: \"u8\"}).fill(1000)", "E0206"),
        ex("zeros([2], #{dtype: \"u8\"}).fill(-0.5)", "E0206"),
        ex("zeros([2], #{dtype: \"f16\"}).fill(70000)", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        match a.get(fill::value) {
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
                let value = filling(a.scalar(fill::value).unwrap_or(Scalar::Int(0)), x.dtype())?;
                Ok(vec![e.source(Source::Fill(value), &x.shape(), x.dtype(), x.device())?])
            }
        }
    }),
    grad: Grad::Rule(|e, v| {
        let old = if v.needs(fill::input) { Some(e.zeros_like(v.meta(fill::input))?) } else { None };
        Ok(vec![old, Some(v.g().clone())])
    }),
    inplace: true,
    expanded: Some(|e, a| each_place(e, &FILL, a)),
    ..Op::BASE
};

pub static ZERO: Op = Op {
    name: "zero",
    params: unary::PARAMS,
    summary: "Fills the tensor with zeros.",
    examples: &[ex("ones([2]).zero_()", "tensor([0., 0.])")],
    lower: Lower::Compose(|e, a| Ok(vec![e.zeros_like(&crate::op::tensor::Meta::of(a.input()))?])),
    grad: Grad::Composed,
    inplace: true,
    expanded: Some(|e, a| each_place(e, &ZERO, a)),
    call: CallForm::InPlace,
    ..Op::BASE
};

signature!(fill_diagonal(input: Tensor, fill_value: Number, wrap: Bool = false));

pub static FILL_DIAGONAL: Op = Op {
    name: "fill_diagonal",
    params: fill_diagonal::PARAMS,
    summary: "Writes a number on the main diagonal; `wrap` goes on below the square part of a tall matrix.",
    examples: &[
        ex("zeros([2, 2]).fill_diagonal_(5)", "tensor([[5., 0.],\n        [0., 5.]])"),
        ex("zeros([2]).fill_diagonal_(5)", "E0201"),
        ex("zeros([2, 3, 2]).fill_diagonal_(5)", "E0201"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let value = diagonal_value(a)?;
        let call = KernelCall::new("fill_diagonal", &copy::FILL_DIAGONAL).input(x).flag(a.flag(fill_diagonal::wrap));
        Ok(call.attr(Attr::Scalar(value)).output(&x.shape(), x.dtype()).writes_input())
    }),
    grad: Grad::Rule(|e, v| {
        Ok(vec![Some(e.call(&FILL_DIAGONAL, args![v.g(), Scalar::Int(0), v.args.flag(fill_diagonal::wrap)])?)])
    }),
    inplace: true,
    expanded: Some(|e, a| {
        let (mask, value) = on_diagonal(e, a)?;
        fill_where(e, a.input(), &mask, value)
    }),
    call: CallForm::InPlace,
    ..Op::BASE
};

/// What `fill_diagonal_` writes, if the tensor has a diagonal.
fn diagonal_value(a: &Args) -> Result<Scalar> {
    let shape = a.input().shape();
    if shape.len() < 2 {
        fail!(SHAPE, "a diagonal needs 2 dimensions or more, not shape {:?}", shape.as_slice());
    }
    if shape.len() > 2 && shape.iter().any(|&n| n != shape[0]) {
        fail!(SHAPE, "with more than 2 dimensions all must be of one size, not {:?}", shape.as_slice());
    }
    element_of(a.scalar(fill_diagonal::fill_value).unwrap_or(Scalar::Int(0)), a.input().dtype())
}

/// Where `fill_diagonal_` writes, and what.
fn on_diagonal(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, Scalar)> {
    let (x, value) = (a.input(), diagonal_value(a)?);
    let shape = x.shape();
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
    if shape.len() == 2 && !a.flag(fill_diagonal::wrap) {
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
