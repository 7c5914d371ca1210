//! The largest and smallest element of a row, and where it is.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::program::ReduceKind;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ReduceType, Returns, Save, ex};
use crate::op::rows::indexing::gather::GATHER;
use crate::op::rows::pointwise::power::{MAXIMUM, MINIMUM};
use crate::op::rows::reduction::reduce::{AMAX, AMIN, evenly, to_index};
use crate::op::rows::shape::rearrange::SQUEEZE;
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(argmax_of(input: Tensor, dim: Dim = None, keepdim: Bool = false));

/// Position of the largest or smallest element, by the whole tensor or along one dim.
static ARGMAX_OF: Op = Op {
    name: "argmax",
    params: argmax_of::PARAMS,
    summary: "The position of the largest element.",
    lower: Lower::Reduce { kind: ReduceKind::ArgMax, dtype: ReduceType::Index },
    grad: Grad::Stop("positions have no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

static ARGMIN_OF: Op = Op {
    name: "argmin",
    params: argmax_of::PARAMS,
    summary: "The position of the smallest element.",
    lower: Lower::Reduce { kind: ReduceKind::ArgMin, dtype: ReduceType::Index },
    grad: Grad::Stop("positions have no gradient"),
    call: CallForm::Internal,
    ..Op::BASE
};

fn position(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    if a.input().dtype() == DType::Bool {
        fail!(DTYPE, "bool tensors are not supported");
    }
    e.apply(op, args![a.input(), a.get(argmax_of::dim).clone(), a.flag(argmax_of::keepdim)])
}

pub static ARGMAX: Op = Op {
    name: "argmax",
    params: argmax_of::PARAMS,
    summary: "Where the largest element is: along one dim, or as a position in the flattened tensor.",
    details: "Of equal elements the first; NaN is the largest.",
    examples: &[
        ex("tensor([[1, 5], [7, 0]]).argmax()", "tensor(2)"),
        ex("tensor([[1, 5], [7, 0]]).argmax(1)", "tensor([1, 0])"),
        ex("zeros([0]).argmax()", "E0201"),
        ex("ones([2]).argmax(1)", "E0209"),
        ex("tensor([true]).argmax()", "E0202"),
    ],
    lower: Lower::Steps(|e, a| position(e, &ARGMAX_OF, a)),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

pub static ARGMIN: Op = Op {
    name: "argmin",
    params: argmax_of::PARAMS,
    summary: "Where the smallest element is: along one dim, or as a position in the flattened tensor.",
    details: "Of equal elements the first; NaN is the smallest.",
    examples: &[
        ex("tensor([[1, 5], [7, 0]]).argmin()", "tensor(3)"),
        ex("tensor([[1, 5], [7, 0]]).argmin(1)", "tensor([0, 1])"),
        ex("zeros([0]).argmin()", "E0201"),
        ex("ones([2]).argmin(1)", "E0209"),
        ex("tensor([true]).argmin()", "E0202"),
    ],
    lower: Lower::Steps(|e, a| position(e, &ARGMIN_OF, a)),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

/// Largest and smallest of everything; the gradient goes to equal elements evenly, NaN equal to NaN.
macro_rules! whole {
    ($($NAME:ident $name:literal $kind:ident;)*) => {$(
        static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: "The extreme of all elements.",
            lower: Lower::Reduce { kind: ReduceKind::$kind, dtype: ReduceType::Same },
            saves: &[Save::INPUT, Save::RESULT],
            grad: Grad::Rule(|e, v| Ok(vec![Some(evenly(e, v, v.g(), v.result(), true)?)])),
            call: CallForm::Internal,
            ..Op::BASE
        };
    )*};
}

whole! {
    MAX_OF_ALL "max" Max;
    MIN_OF_ALL "min" Min;
}

signature!(along(input: Tensor, dim: Dim, keepdim: Bool = false));

/// Extreme along a dim with its position; the gradient goes to that position.
macro_rules! along {
    ($($NAME:ident $name:literal $VALUES:ident $INDICES:ident;)*) => {$(
        static $NAME: Op = Op {
            name: $name,
            params: along::PARAMS,
            summary: "The extreme of each row and where it is.",
            lower: Lower::Steps(|e, a| both(e, &$VALUES, &$INDICES, a)),
            saves: &[Save::Out(1)],
            grad: Grad::Rule(|e, v| {
                let Some(g) = &v.grads[0] else { return Ok(vec![None]) };
                Ok(vec![Some(to_index(e, g, v.output(1), v.meta(along::input), v.args.int(along::dim), v.args.flag(along::keepdim))?)])
            }),
            forward: crate::op::row::Forward::Rule(tangent_picked),
            call: CallForm::Internal,
            results: Returns::Named(&["values", "indices"]),
            ..Op::BASE
        };
    )*};
}

/// Of rows that give elements along a dim and, saved, their places: the tangents of these elements.
pub fn tangent_picked(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Option<Tensor>> {
    let at = v.op.params.iter().position(|param| param.name == "dim");
    let (x, places) = (v.tangent(), v.output(1));
    if x.ndim() == 0 {
        return Ok(Some(x.clone()));
    }
    let dim = infer::dim(at.map_or(-1, |at| v.args.int(at)), x.ndim())?;
    if places.ndim() == x.ndim() {
        return e.call(&GATHER, args![x, dim, places]).map(Some);
    }
    let places = e.call(&UNSQUEEZE, args![places, dim])?;
    let picked = e.call(&GATHER, args![x, dim, &places])?;
    e.call(&SQUEEZE, args![&picked, dim]).map(Some)
}

along! {
    MAX_ALONG "max" AMAX ARGMAX_OF;
    MIN_ALONG "min" AMIN ARGMIN_OF;
}

fn both(e: &mut dyn Emit, values: &'static Op, indices: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    let (x, dim, keepdim) = (a.input(), a.int(along::dim), a.flag(along::keepdim));
    let values = e.call(values, args![x, dim, keepdim])?;
    let ordered = if x.dtype() == DType::Bool { e.cast(x, DType::U8)? } else { x.clone() };
    let indices = e.call(indices, args![&ordered, dim, keepdim])?;
    Ok(vec![values, indices])
}

/// `max(x)`, `max(x, dim, keepdim)` and `max(x, other)`.
fn overloaded(
    e: &mut dyn Emit,
    a: &Args,
    whole: &'static Op,
    along: &'static Op,
    pairs: &'static Op,
) -> Result<Vec<Tensor>> {
    let x = a.input();
    let other = match (a.get(max::dim), a.get(max::other)) {
        (Arg::Tensor(other), Arg::None) | (Arg::None, Arg::Tensor(other)) => Some(other),
        (_, Arg::None) => None,
        _ => fail!(ARGUMENT_TYPE, "either `dim` or a tensor `other` is taken, not both"),
    };
    if let Some(other) = other {
        return e.apply(pairs, args![x, other]);
    }
    match a.get(max::dim) {
        Arg::None => e.apply(whole, args![x]),
        Arg::Attr(_) => match a.scalar(max::dim) {
            Some(crate::base::dtype::Scalar::Int(dim)) => e.apply(along, args![x, dim, a.flag(max::keepdim)]),
            _ => fail!(ARGUMENT_TYPE, "`dim` must be an integer"),
        },
        _ => fail!(ARGUMENT_TYPE, "`dim` must be an integer"),
    }
}

signature!(max(input: Tensor, dim: Operand = None, keepdim: Bool = false, other: Operand = None));

pub static MAX: Op = Op {
    name: "max",
    params: max::PARAMS,
    summary: "The largest element; along a dim with its positions; or the larger of two tensors' elements.",
    details: "`max(x)` is a tensor of no dimensions, `max(x, dim)` a map of `values` and `indices`, `max(x, other)` \
              the same as `maximum`. NaN wins; of equal elements the first has the index.",
    examples: &[
        ex("tensor([[1, 5], [7, 0]]).max()", "tensor(7)"),
        ex("tensor([[1, 5], [7, 0]]).max(1).indices", "tensor([1, 0])"),
        ex("max(tensor([1, 5]), tensor([3, 2]))", "tensor([3, 5])"),
        ex("zeros([0]).max()", "E0201"),
        ex("ones([2]).max(1)", "E0209"),
        ex("ones([2]).max(0.5)", "E0204"),
    ],
    lower: Lower::Compose(|e, a| overloaded(e, a, &MAX_OF_ALL, &MAX_ALONG, &MAXIMUM)),
    grad: Grad::Composed,
    results: Returns::Named(&["values", "indices"]),
    ..Op::BASE
};

pub static MIN: Op = Op {
    name: "min",
    params: max::PARAMS,
    summary: "The smallest element; along a dim with its positions; or the smaller of two tensors' elements.",
    details: "`min(x)` is a tensor of no dimensions, `min(x, dim)` a map of `values` and `indices`, `min(x, other)` \
              the same as `minimum`. NaN wins; of equal elements the first has the index.",
    examples: &[
        ex("tensor([[1, 5], [7, 0]]).min()", "tensor(0)"),
        ex("tensor([[1, 5], [7, 0]]).min(1).values", "tensor([1, 0])"),
        ex("min(tensor([1, 5]), tensor([3, 2]))", "tensor([1, 2])"),
        ex("zeros([0]).min()", "E0201"),
        ex("ones([2]).min(1)", "E0209"),
        ex("ones([2]).min(0.5)", "E0204"),
    ],
    lower: Lower::Compose(|e, a| overloaded(e, a, &MIN_OF_ALL, &MIN_ALONG, &MINIMUM)),
    grad: Grad::Composed,
    results: Returns::Named(&["values", "indices"]),
    ..Op::BASE
};

pub static AMINMAX: Op = Op {
    name: "aminmax",
    params: argmax_of::PARAMS,
    summary: "The smallest and the largest element, of everything or along one dim, in one pass.",
    examples: &[
        ex("tensor([3, 1, 2]).aminmax().max", "tensor(3)"),
        ex("zeros([0]).aminmax()", "E0201"),
        ex("ones([2]).aminmax(1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let arguments = || args![a.input(), a.get(argmax_of::dim).clone(), a.flag(argmax_of::keepdim)];
        Ok(vec![e.call(&AMIN, arguments())?, e.call(&AMAX, arguments())?])
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["min", "max"]),
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&ARGMAX_OF, &ARGMIN_OF, &ARGMAX, &ARGMIN, &MAX_OF_ALL, &MIN_OF_ALL, &MAX_ALONG, &MIN_ALONG, &MAX, &MIN, &AMINMAX];
