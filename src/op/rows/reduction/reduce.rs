//! Sums, products, extremes and logic over all, one or several dims, and what their gradients share.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::ReduceKind;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit};
use crate::op::expr::compute;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Promote, ReduceType, Save, Source, ex};
use crate::op::rows::pointwise::arith::{CAST, masked};
use crate::op::rows::pointwise::compare::{EQ, ISNAN, LOGICAL_AND, LOGICAL_OR, NE};
use crate::op::rows::reduction::scan::CUMPROD_ALONG;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::NARROW;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::rows::signatures::unary;
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// The shape of `v`'s first operand with size 1 in the dims that its second argument names.
fn kept(v: &Backward<'_>) -> Result<Shape> {
    let shape = &v.meta(amax::input).shape;
    let dims = infer::dims(v.args.ints(amax::dim).as_ref(), shape.len())?;
    Ok(infer::reduced_shape(shape, &dims, true))
}

/// A tensor of the result's shape with the reduced dims kept as size 1. Arguments of the row: `x, dim, ..`.
pub fn restored(e: &mut dyn Emit, v: &Backward<'_>, y: &Tensor) -> Result<Tensor> {
    let kept = kept(v)?;
    e.call(&RESHAPE, args![y, kept.as_slice()])
}

/// A gradient of a reduction's result, spread over the reduced dims again. Arguments: `x, dim, ..`.
pub fn spread(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Tensor> {
    let g = restored(e, v, g)?;
    let shape = v.meta(sum::input).shape.clone();
    e.call(&EXPAND, args![&g, shape.as_slice()])
}

/// How many elements each result is made from.
pub fn reduced_count(shape: &[usize], dims: &[usize]) -> usize {
    dims.iter().map(|&dim| shape[dim]).product()
}

/// The positions 0, 1, .. along `dim`, of a shape that broadcasts against tensors of `ndim` dims.
pub fn positions_along(e: &mut dyn Emit, meta: &Meta, dim: usize) -> Result<Tensor> {
    let n = meta.shape[dim];
    let line = e.source(Source::Position, &[n], DType::I64, meta.device)?;
    let mut shape = Shape::from_elem(1, meta.shape.len());
    shape[dim] = n;
    e.call(&RESHAPE, args![&line, shape.as_slice()])
}

/// The gradient of a result that is one element of its row: all of it goes to `index`.
pub fn to_index(e: &mut dyn Emit, g: &Tensor, index: &Tensor, meta: &Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
    let ndim = meta.shape.len();
    if ndim == 0 {
        return Ok(g.clone());
    }
    let dim = infer::dim(dim, ndim)?;
    let (mut g, mut index) = (g.clone(), index.clone());
    if !keepdim {
        let kept = infer::reduced_shape(&meta.shape, &[dim], true);
        g = e.call(&RESHAPE, args![&g, kept.as_slice()])?;
        index = e.call(&RESHAPE, args![&index, kept.as_slice()])?;
    }
    let positions = positions_along(e, meta, dim)?;
    let here = e.call(&EQ, args![&positions, &index])?;
    masked(e, &here, &g)
}

/// The gradient of an extreme: spread evenly over the elements that equal it (also NaN when `nan`).
pub fn evenly(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor, y: &Tensor, nan: bool) -> Result<Tensor> {
    let x = v.input();
    let (y, g) = (restored(e, v, y)?, restored(e, v, g)?);
    let mut equal = e.call(&EQ, args![x, &y])?;
    if nan {
        let (left, right) = (e.call(&ISNAN, args![x])?, e.call(&ISNAN, args![&y])?);
        let both = e.call(&LOGICAL_AND, args![&left, &right])?;
        equal = e.call(&LOGICAL_OR, args![&equal, &both])?;
    }
    let count = e.call(&SUM, args![&equal, v.args.get(amax::dim).clone(), true])?;
    let share = e.div(&g, &count)?;
    if nan { masked(e, &equal, &share) } else { e.mul(&share, &equal) }
}

signature!(sum(input: Tensor, dim: Dims = None, keepdim: Bool = false, dtype: DType = None));

pub static SUM: Op = Op {
    name: "sum",
    params: sum::PARAMS,
    summary: "Sums over all, one or several dims; integers and bool sum to i64.",
    examples: &[
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]).sum()", "tensor(10.)"),
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]).sum(1)", "tensor([3., 7.])"),
        ex("tensor([1.0]).sum(3)", "E0209"),
        ex("tensor([1.0]).sum([0, 0])", "E0206"),
    ],
    lower: Lower::Reduce { kind: ReduceKind::Sum, dtype: ReduceType::Sum },
    grad: Grad::Rule(|e, v| Ok(vec![Some(spread(e, v, v.g())?)])),
    ..Op::BASE
};

signature!(prod(input: Tensor, dim: Dim = None, keepdim: Bool = false, dtype: DType = None));

pub static PROD: Op = Op {
    name: "prod",
    params: prod::PARAMS,
    summary: "Multiplies all elements, or those along one dim; integers and bool give i64.",
    examples: &[
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]).prod()", "tensor(24.)"),
        ex("tensor([[1, 2], [3, 4]]).prod(0)", "tensor([3, 8])"),
        ex("tensor([1.0]).prod(3)", "E0209"),
    ],
    lower: Lower::Reduce { kind: ReduceKind::Prod, dtype: ReduceType::Sum },
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let x = e.cast(v.input(), v.outputs[0].dtype)?;
        let others = if e.grad_enabled() { others_by_scans(e, v, &x)? } else { others(e, v, &x)? };
        let g = restored(e, v, v.g())?;
        Ok(vec![Some(e.mul(&g, &others)?)])
    }),
    ..Op::BASE
};

/// For each element the product of all others: the result divided by it, and without zeros what is left of them.
fn others(e: &mut dyn Emit, v: &Backward<'_>, x: &Tensor) -> Result<Tensor> {
    let dim = v.args.get(prod::dim).clone();
    let y = restored(e, v, v.result())?;
    compute(e, |c| {
        let x = c.of(x);
        let zero = x.equals(0);
        let zeros = zero.call(&SUM, args![dim.clone(), true]);
        let rest = zero.choose(1, x).call(&PROD, args![dim, true]);
        zero.choose(rest.zero_unless(zeros.equals(1)), c.of(&y) / x)
    })
}

/// The same from the products before and after each element: right at zeros in its own gradients too.
fn others_by_scans(e: &mut dyn Emit, v: &Backward<'_>, x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let all = v.args.is_none(prod::dim);
    let flat = if all { e.call(&RESHAPE, args![x, &[x.numel()][..]])? } else { x.clone() };
    if flat.ndim() == 0 {
        return e.full(&[], Scalar::Int(1), &Meta::of(x));
    }
    let dim = if all { 0 } else { infer::dim(v.args.int(prod::dim), shape.len())? };
    let n = flat.shape()[dim];
    let mut edge = flat.shape();
    edge[dim] = n.min(1);
    let one = e.full(&edge, Scalar::Int(1), &Meta::of(x))?;
    let rest = n.saturating_sub(1);
    let before = e.call(&NARROW, args![&flat, dim, 0, rest])?;
    let before = e.call(&CUMPROD_ALONG, args![&before, dim, (), false])?;
    let before = e.call(&CAT, args![vec![one.clone(), before], dim])?;
    let after = e.call(&NARROW, args![&flat, dim, n - rest, rest])?;
    let after = e.call(&CUMPROD_ALONG, args![&after, dim, (), true])?;
    let after = e.call(&CAT, args![vec![after, one], dim])?;
    let product = e.mul(&before, &after)?;
    e.call(&RESHAPE, args![&product, shape.as_slice()])
}

signature!(amax(input: Tensor, dim: Dims = None, keepdim: Bool = false));

pub static AMAX: Op = Op {
    name: "amax",
    params: amax::PARAMS,
    summary: "The largest element, over all, one or several dims; NaN wins.",
    details: "The gradient is spread evenly over equal elements.",
    examples: &[
        ex("tensor([[1, 2], [3, 0]]).amax(1)", "tensor([2, 3])"),
        ex("zeros([0]).amax()", "E0201"),
        ex("ones([2]).amax(1)", "E0209"),
        ex("ones([2]).amax([0, 0])", "E0206"),
    ],
    lower: Lower::Reduce { kind: ReduceKind::Max, dtype: ReduceType::Same },
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| Ok(vec![Some(evenly(e, v, v.g(), v.result(), false)?)])),
    ..Op::BASE
};

pub static AMIN: Op = Op {
    name: "amin",
    params: amax::PARAMS,
    summary: "The smallest element, over all, one or several dims; NaN wins.",
    details: "The gradient is spread evenly over equal elements.",
    examples: &[
        ex("tensor([[1, 2], [3, 0]]).amin(1)", "tensor([1, 0])"),
        ex("zeros([0]).amin()", "E0201"),
        ex("ones([2]).amin(1)", "E0209"),
        ex("ones([2]).amin([0, 0])", "E0206"),
    ],
    lower: Lower::Reduce { kind: ReduceKind::Min, dtype: ReduceType::Same },
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| Ok(vec![Some(evenly(e, v, v.g(), v.result(), false)?)])),
    ..Op::BASE
};

static ALL_OF: Op = Op {
    name: "all",
    params: amax::PARAMS,
    summary: "Whether all elements are true.",
    lower: Lower::Reduce { kind: ReduceKind::All, dtype: ReduceType::Bool },
    grad: Grad::Stop("the result is bool"),
    call: CallForm::Internal,
    ..Op::BASE
};

static ANY_OF: Op = Op {
    name: "any",
    params: amax::PARAMS,
    summary: "Whether some element is true.",
    lower: Lower::Reduce { kind: ReduceKind::Any, dtype: ReduceType::Bool },
    grad: Grad::Stop("the result is bool"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `any` and `all`: an empty list of dims reduces nothing, and u8 stays u8, as in PyTorch.
fn logic(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    let x = a.input();
    let none = a.ints(amax::dim).is_some_and(|dims| dims.is_empty());
    let answer = if none {
        e.call(&NE, args![x, Scalar::Int(0)])?
    } else {
        e.call(op, args![x, a.get(amax::dim).clone(), a.flag(amax::keepdim)])?
    };
    Ok(vec![if x.dtype() == DType::U8 { e.call(&CAST, args![&answer, DType::U8])? } else { answer }])
}

pub static ALL: Op = Op {
    name: "all",
    params: amax::PARAMS,
    summary: "Whether all elements are true (not 0), over all, one or several dims; true of nothing.",
    examples: &[
        ex("tensor([true, false]).all()", "tensor(false)"),
        ex("tensor([[1, 2], [0, 3]]).all(1)", "tensor([ true, false])"),
        ex("ones([2]).all(1)", "E0209"),
        ex("ones([2]).all([0, 0])", "E0206"),
    ],
    lower: Lower::Steps(|e, a| logic(e, &ALL_OF, a)),
    grad: Grad::Stop("the result is bool"),
    ..Op::BASE
};

pub static ANY: Op = Op {
    name: "any",
    params: amax::PARAMS,
    summary: "Whether some element is true (not 0), over all, one or several dims; false of nothing.",
    examples: &[
        ex("tensor([true, false]).any()", "tensor(true)"),
        ex("tensor([[1, 2], [0, 0]]).any(1)", "tensor([ true, false])"),
        ex("ones([2]).any(1)", "E0209"),
        ex("ones([2]).any([0, 0])", "E0206"),
    ],
    lower: Lower::Steps(|e, a| logic(e, &ANY_OF, a)),
    grad: Grad::Stop("the result is bool"),
    ..Op::BASE
};

signature!(count_nonzero(input: Tensor, dim: Dims = None));

pub static COUNT_NONZERO: Op = Op {
    name: "count_nonzero",
    params: count_nonzero::PARAMS,
    summary: "How many elements are not 0, over all, one or several dims; i64.",
    examples: &[
        ex("tensor([[1, 0], [2, 3]]).count_nonzero()", "tensor(3)"),
        ex("tensor([[1, 0], [2, 3]]).count_nonzero(0)", "tensor([2, 1])"),
        ex("ones([2]).count_nonzero(1)", "E0209"),
        ex("ones([2]).count_nonzero([0, 0])", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let not_zero = e.call(&NE, args![a.input(), Scalar::Int(0)])?;
        e.apply(&SUM, args![&not_zero, a.get(count_nonzero::dim).clone()])
    }),
    grad: Grad::Stop("a count has no gradient"),
    ..Op::BASE
};

/// The tensor with 0 in place of NaN.
pub fn without_nan(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Ok(x.clone());
    }
    e.call(&NAN_TO_ZERO, args![x])
}

static NAN_TO_ZERO: Op = Op {
    name: "nansum",
    params: unary::PARAMS,
    summary: "0 in place of NaN.",
    lower: Lower::Map { function: &f::NAN_TO_ZERO, promote: Promote::FloatOnly },
    saves: &[Save::INPUT],
    grad: Grad::Of(&[|t| {
        let missing = t.input.of(&ISNAN);
        t.g.zero_where(missing)
    }]),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(sum_to_size(input: Tensor, size: Sizes));

pub static SUM_TO_SIZE: Op = Op {
    name: "sum_to_size",
    params: sum_to_size::PARAMS,
    summary: "Sums over the dims that broadcasting from `size` would add or repeat.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).sum_to_size([2])", "tensor([4, 6])"),
        ex("ones([2, 3]).sum_to_size([2])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let shape = infer::shape(&a.ints(sum_to_size::size).unwrap_or_default())?;
        let from = x.shape();
        if crate::base::layout::broadcast(&from, &shape).as_ref() != Some(&from) {
            fail!(SHAPE, "shape {:?} does not broadcast to {:?}", shape.as_slice(), from.as_slice());
        }
        Ok(vec![if shape.is_empty() { e.call(&SUM, args![x])? } else { e.sum_to(x, &shape)? }])
    }),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

pub static NANSUM: Op = Op {
    name: "nansum",
    params: sum::PARAMS,
    summary: "Sums over all, one or several dims; NaN counts as 0.",
    examples: &[
        ex("tensor([1.0, NAN, 2.0]).nansum()", "tensor(3.)"),
        ex("tensor([1.0]).nansum(3)", "E0209"),
        ex("tensor([1.0]).nansum([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = without_nan(e, a.input())?;
        e.apply(&SUM, args![&x, a.get(sum::dim).clone(), a.flag(sum::keepdim), a.get(sum::dtype).clone()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&SUM, &PROD, &AMAX, &AMIN, &ALL_OF, &ANY_OF, &ALL, &ANY, &COUNT_NONZERO, &SUM_TO_SIZE, &NAN_TO_ZERO, &NANSUM];
