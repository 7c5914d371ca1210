//! What is defined for complex numbers, of real ones: conjugates, angles. Complex operands: `op/complex`. And
//! questions about a tensor that its dtype and shape answer.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{Grad, Lower, Op, Returns, ex};
use crate::op::rows::pointwise::arith::{FLOOR_DIVIDE, REMAINDER, ZERO};
use crate::op::rows::pointwise::compare::{ISNAN, LT, NE, WHERE};
use crate::op::rows::shape::view::RESHAPE;
use crate::op::rows::signatures::{two_tensors, unary};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;
use std::f64::consts::PI;

macro_rules! itself {
    ($($NAME:ident $name:literal $inplace:literal $conjugates:literal $summary:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex(concat!($name, "(tensor([-1, 2]))"), "tensor([-1,  2])")],
            lower: Lower::Compose(|_, a| Ok(vec![a.input().clone()])),
            grad: Grad::Composed,
            inplace: $inplace,
            conjugates: $conjugates,
            expanded: Some(|_, _| Ok(())),
            ..Op::BASE
        };)*
        /// The tensor itself, under its names.
        pub static SAME: &[&Op] = &[$(&$NAME),*];
    };
}

itself! {
    CONJ "conj" false true "The complex conjugate, computed at once; of real numbers the tensor itself. PyTorch's is a view: \
here it is not changed in place, and does not see later changes of the tensor.";
    CONJ_PHYSICAL "conj_physical" true false "The complex conjugate; of real numbers the tensor itself.";
    RESOLVE_CONJ "resolve_conj" false false "The tensor itself: conjugation is never put off.";
    RESOLVE_NEG "resolve_neg" false false "The tensor itself: negation is never put off.";
}

pub static ANGLE: Op = Op {
    name: "angle",
    params: unary::PARAMS,
    summary: "The angle of numbers in the complex plane: 0, or pi for negative ones; NaN stays.",
    examples: &[ex("angle(tensor([1.0, -1.0]))", "tensor([0.0000, 3.1416])")],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let x = if x.dtype().is_float() { x.clone() } else { e.cast(x, e.default_float())? };
        let below = e.call(&LT, args![&x, Scalar::Int(0)])?;
        let unknown = e.call(&ISNAN, args![&x])?;
        let zeros = e.zeros_like(&Meta::of(&x))?;
        let angle = e.call(&WHERE, args![&below, Scalar::Float(PI), &zeros])?;
        Ok(vec![e.call(&WHERE, args![&unknown, &x, &angle])?])
    }),
    grad: Grad::Rule(ZERO),
    ..Op::BASE
};

/// One bool.
fn answer(e: &mut dyn Emit, like: &Tensor, value: bool) -> Result<Vec<Tensor>> {
    let meta = Meta { shape: Default::default(), dtype: DType::Bool, device: like.device() };
    Ok(vec![e.full(&[], Scalar::Bool(value), &meta)?])
}

pub static IS_SIGNED: Op = Op {
    name: "is_signed",
    params: unary::PARAMS,
    summary: "Does the tensor's dtype have negative numbers?",
    examples: &[ex("is_signed(tensor([1.0]))", "true"), ex("is_signed(tensor([true]))", "false")],
    lower: Lower::Compose(|e, a| answer(e, a.input(), a.input().dtype().is_signed())),
    grad: Grad::Stop("an answer has no gradient"),
    truth: true,
    ..Op::BASE
};

pub static IS_SAME_SIZE: Op = Op {
    name: "is_same_size",
    params: two_tensors::PARAMS,
    summary: "Do two tensors have the same shape?",
    examples: &[ex("is_same_size(ones([2]), ones([3]))", "false")],
    lower: Lower::Compose(|e, a| answer(e, a.input(), a.input().shape() == a.tensor(two_tensors::other).shape())),
    grad: Grad::Stop("an answer has no gradient"),
    truth: true,
    ..Op::BASE
};

pub static IS_NONZERO: Op = Op {
    name: "is_nonzero",
    params: unary::PARAMS,
    summary: "Is the one element not zero? Waits.",
    examples: &[ex("is_nonzero(tensor([0.5]))", "true"), ex("is_nonzero(ones([2]))", "E0211")],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if x.numel() != 1 {
            fail!(TRUTH, "one element is expected, not {}", x.numel());
        }
        let one = e.call(&RESHAPE, args![x, &[] as &[i64]])?;
        e.apply(&NE, args![&one, Scalar::Int(0)])
    }),
    grad: Grad::Stop("an answer has no gradient"),
    truth: true,
    ..Op::BASE
};

signature!(unravel_index(indices: Tensor, shape: Ints));

pub static UNRAVEL_INDEX: Op = Op {
    name: "unravel_index",
    params: unravel_index::PARAMS,
    summary: "Positions in a flat tensor as positions along each dimension of a shape: an array of tensors.",
    examples: &[
        ex("unravel_index(tensor([5]), [2, 3])", "[tensor([1]), tensor([2])]"),
        ex("unravel_index(tensor([5.0]), [2, 3])", "E0202"),
        ex("unravel_index(tensor([5]), [2, -3])", "E0206"),
    ],
    lower: Lower::Compose(unravel),
    grad: Grad::Stop("positions have no gradient"),
    results: Returns::List,
    ..Op::BASE
};

fn unravel(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (index, shape) = (a.tensor(unravel_index::indices), a.ints(unravel_index::shape).unwrap_or_default());
    if !index.dtype().is_int() {
        fail!(DTYPE, "positions must be integers, not {}", index.dtype());
    }
    if let Some(bad) = shape.iter().find(|&&size| size < 0) {
        fail!(VALUE, "sizes must not be negative; one is {bad}");
    }
    let mut rest = e.cast(index, DType::I64)?;
    let mut found = Vec::new();
    for &size in shape.iter().rev() {
        let size = Scalar::Int(size.max(1));
        found.push(e.call(&REMAINDER, args![&rest, size])?);
        rest = e.call(&FLOOR_DIVIDE, args![&rest, size])?;
    }
    found.reverse();
    Ok(found)
}

pub static ROWS: &[&Op] = &[&ANGLE, &IS_SIGNED, &IS_SAME_SIZE, &IS_NONZERO, &UNRAVEL_INDEX];
