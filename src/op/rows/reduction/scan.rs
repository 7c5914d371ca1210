//! Running sums, products, extremes along a dim, differences and areas.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::abi::HostFn;
use crate::kernel::scan::host as kernels;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Returns, Save, ex};
use crate::op::rows::indexing::gather::SCATTER_ADD;
use crate::op::rows::pointwise::arith::{ADD, masked};
use crate::op::rows::pointwise::compare::{EQ, GT, LOGICAL_AND, LOGICAL_XOR, WHERE};
use crate::op::rows::pointwise::unary::{EXP, LOG};
use crate::op::rows::reduction::reduce::{DTYPE, SUM, X};
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::NARROW;
use crate::op::rows::shape::view::RESHAPE;
use crate::op::tensor::Tensor;

const DIM: Param = Param::new("dim", Kind::Dim);
const REVERSE: Param = Param::opt("reverse", Kind::Bool, Default::Bool(false));

/// One scan kernel. Arguments: `x, dim, dtype, reverse`.
fn scan(name: &'static str, host: HostFn, a: &Args) -> Result<KernelCall> {
    let x = a.tensor(0);
    let dim = infer::dim(a.int(1), x.ndim())?;
    let own = if x.dtype().is_float() { x.dtype() } else { DType::I64 };
    let dtype = a.dtype(2).unwrap_or(own);
    if dtype == DType::Bool {
        fail!(DTYPE, "`bool` is not supported as the dtype of the result");
    }
    Ok(KernelCall::new(name, host).input(x).int(dim as i64).flag(a.flag(3)).output(&x.shape(), dtype))
}

/// Running sums, from the end when `reverse`.
pub static CUMSUM_ALONG: Op = Op {
    name: "cumsum",
    params: &[X, DIM, DTYPE, REVERSE],
    summary: "Running sums.",
    lower: Lower::Kernel(|_, a| scan("cumsum", kernels::cumsum, a)),
    grad: Grad::Rule(|e, v| {
        let reverse = !v.args.flag(3);
        Ok(vec![Some(e.call(&CUMSUM_ALONG, args![v.g(), v.args.int(1), (), reverse])?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static CUMSUM: Op = Op {
    name: "cumsum",
    params: &[X, DIM, DTYPE],
    summary: "The sums of the elements up to each along a dim; integers and bool sum to i64.",
    examples: &[
        ex("tensor([1, 2, 3]).cumsum(0)", "tensor([1, 3, 6])"),
        ex("ones([2]).cumsum(1)", "E0209"),
        ex("ones([2]).cumsum(0, \"bool\")", "E0202"),
    ],
    lower: Lower::Compose(|e, a| e.apply(&CUMSUM_ALONG, args![a.tensor(0), a.int(1), a.get(2).clone(), false])),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// Running products, from the end when `reverse`.
pub static CUMPROD_ALONG: Op = Op {
    name: "cumprod",
    params: &[X, DIM, DTYPE, REVERSE],
    summary: "Running products.",
    lower: Lower::Kernel(|_, a| scan("cumprod", kernels::cumprod, a)),
    saves: &[Save::In(0), Save::Out(0)],
    grad: Grad::Rule(|e, v| Ok(vec![Some(cumprod_grad(e, v)?)])),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `rev_cumsum(g y) / x` before the first zero of a row. At the first zero the products go on as if it were 1;
/// behind it everything is 0.
fn cumprod_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let (dim, reverse, y) = (v.args.int(1), v.args.flag(3), v.output(0));
    let x = e.cast(v.input(0), v.outputs[0].dtype)?;
    let back = |e: &mut dyn Emit, t: &Tensor| e.call(&CUMSUM_ALONG, args![t, dim, (), !reverse]);
    let zero = e.call(&EQ, args![&x, Scalar::Int(0)])?;
    let zeros = e.call(&CUMSUM_ALONG, args![&zero, dim, (), reverse])?;
    let before = e.call(&EQ, args![&zeros, Scalar::Int(0)])?;
    let single = e.call(&EQ, args![&zeros, Scalar::Int(1)])?;
    let first = e.call(&LOGICAL_AND, args![&zero, &single])?;
    let weighted = e.mul(v.g(), y)?;
    let sums = back(e, &weighted)?;
    let divisor = e.call(&WHERE, args![&zero, Scalar::Int(1), &x])?;
    let quotient = e.div(&sums, &divisor)?;
    let plain = masked(e, &before, &quotient)?;
    let filled = e.call(&WHERE, args![&first, Scalar::Int(1), &x])?;
    let products = e.call(&CUMPROD_ALONG, args![&filled, dim, (), reverse])?;
    let weighted = e.mul(v.g(), &products)?;
    let sums = back(e, &weighted)?;
    e.call(&WHERE, args![&first, &sums, &plain])
}

pub static CUMPROD: Op = Op {
    name: "cumprod",
    params: &[X, DIM, DTYPE],
    summary: "The products of the elements up to each along a dim; integers and bool give i64.",
    examples: &[
        ex("tensor([1, 2, 3]).cumprod(0)", "tensor([1, 2, 6])"),
        ex("ones([2]).cumprod(1)", "E0209"),
        ex("ones([2]).cumprod(0, \"bool\")", "E0202"),
    ],
    lower: Lower::Compose(|e, a| e.apply(&CUMPROD_ALONG, args![a.tensor(0), a.int(1), a.get(2).clone(), false])),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// Running log-sum-exps, from the end when `reverse`.
static LOGCUMSUMEXP_ALONG: Op = Op {
    name: "logcumsumexp",
    params: &[X, DIM, DTYPE, REVERSE],
    summary: "Running log-sum-exps.",
    lower: Lower::Kernel(|_, a| scan("logcumsumexp", kernels::logcumsumexp, a)),
    saves: &[Save::In(0), Save::Out(0)],
    grad: Grad::Rule(|e, v| {
        // exp(x) · rev_cumsum(g exp(-y)), in logarithms, apart for positive and negative gradients.
        let (dim, reverse, x, y) = (v.args.int(1), v.args.flag(3), v.input(0), v.output(0));
        let part = |e: &mut dyn Emit, g: &Tensor| -> Result<Tensor> {
            let positive = e.call(&GT, args![g, Scalar::Int(0)])?;
            let log = e.call(&LOG, args![g])?;
            // Chosen after the difference: without a gradient there is nothing, also where the result is -inf.
            let less = e.sub(&log, y)?;
            let less = e.call(&WHERE, args![&positive, &less, f64::NEG_INFINITY])?;
            let sums = e.call(&LOGCUMSUMEXP_ALONG, args![&less, dim, (), !reverse])?;
            let total = e.add(&sums, x)?;
            e.call(&EXP, args![&total])
        };
        let negative = e.neg(v.g())?;
        let (up, down) = (part(e, v.g())?, part(e, &negative)?);
        Ok(vec![Some(e.sub(&up, &down)?)])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static LOGCUMSUMEXP: Op = Op {
    name: "logcumsumexp",
    params: &[X, DIM],
    summary: "The logarithms of the sums of exponentials up to each element along a dim, without overflow.",
    examples: &[
        ex("tensor([0.0, 0.0]).logcumsumexp(0)", "tensor([0.0000, 0.6931])"),
        ex("ones([2]).logcumsumexp(1)", "E0209"),
        ex("tensor([1]).logcumsumexp(0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        if !x.dtype().is_float() {
            fail!(DTYPE, "a floating-point tensor is wanted, not {}", x.dtype());
        }
        e.apply(&LOGCUMSUMEXP_ALONG, args![x, a.int(1), (), false])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

fn extremes(name: &'static str, host: HostFn, a: &Args) -> Result<KernelCall> {
    let x = a.tensor(0);
    let dim = infer::dim(a.int(1), x.ndim())?;
    let call = KernelCall::new(name, host).input(x).int(dim as i64);
    Ok(call.output(&x.shape(), x.dtype()).output(&x.shape(), DType::I64))
}

/// Each gradient goes to the element that its extreme came from.
fn extremes_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let Some(g) = &v.grads[0] else { return Ok(vec![None]) };
    let zeros = e.zeros_like(v.meta(0))?;
    Ok(vec![Some(e.call(&SCATTER_ADD, args![&zeros, v.args.int(1), v.output(1), g])?)])
}

pub static CUMMAX: Op = Op {
    name: "cummax",
    params: &[X, DIM],
    summary: "The largest of the elements up to each along a dim, and where they are.",
    details: "Of equal elements the last; NaN stays once seen.",
    examples: &[
        ex("tensor([1, 3, 2]).cummax(0).values", "tensor([1, 3, 3])"),
        ex("tensor([1, 3, 2]).cummax(0).indices", "tensor([0, 1, 1])"),
        ex("ones([2]).cummax(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| extremes("cummax", kernels::cummax, a)),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(extremes_grad),
    results: Returns::Named(&["values", "indices"]),
    ..Op::BASE
};

pub static CUMMIN: Op = Op {
    name: "cummin",
    params: &[X, DIM],
    summary: "The smallest of the elements up to each along a dim, and where they are.",
    details: "Of equal elements the last; NaN stays once seen.",
    examples: &[
        ex("tensor([3, 1, 2]).cummin(0).values", "tensor([3, 1, 1])"),
        ex("tensor([3, 1, 2]).cummin(0).indices", "tensor([0, 1, 1])"),
        ex("ones([2]).cummin(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| extremes("cummin", kernels::cummin, a)),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(extremes_grad),
    results: Returns::Named(&["values", "indices"]),
    ..Op::BASE
};

pub static DIFF: Op = Op {
    name: "diff",
    params: &[
        X,
        Param::opt("n", Kind::Int, Default::Int(1)),
        Param::opt("dim", Kind::Dim, Default::Int(-1)),
        Param::opt("prepend", Kind::Tensor, Default::None),
        Param::opt("append", Kind::Tensor, Default::None),
    ],
    summary: "The differences of neighbours along a dim, `n` times over; of bool, whether they differ.",
    examples: &[
        ex("tensor([1, 4, 9]).diff()", "tensor([3, 5])"),
        ex("tensor([1, 4, 9]).diff(2)", "tensor([2])"),
        ex("tensor(1.0).diff()", "E0201"),
        ex("ones([2]).diff(-1)", "E0206"),
        ex("ones([2]).diff(1, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![diff(e, a)?])),
    grad: Grad::Composed,
    ..Op::BASE
};

fn diff(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let x = a.tensor(0);
    if x.ndim() == 0 {
        fail!(SHAPE, "a tensor of at least one dimension is wanted");
    }
    let (n, dim) = (a.int(1), infer::dim(a.int(2), x.ndim())?);
    if n < 0 {
        fail!(VALUE, "`n` must not be negative, and is {n}");
    }
    let mut parts: Vec<Tensor> = Vec::new();
    for (at, name) in [(3, "prepend"), (0, "input"), (4, "append")] {
        let Some(part) = a.opt_tensor(at) else { continue };
        if part.ndim() != x.ndim() {
            fail!(SHAPE, "`{name}` has {} dimensions, the tensor {}", part.ndim(), x.ndim());
        }
        parts.push(part.clone());
    }
    let mut x = if parts.len() > 1 && n > 0 { e.call(&CAT, args![parts, dim])? } else { x.clone() };
    let size = x.shape()[dim];
    if n as usize >= size && n > 0 {
        return e.call(&NARROW, args![&x, dim, 0, 0]);
    }
    for _ in 0..n {
        let rest = x.shape()[dim] - 1;
        let later = e.call(&NARROW, args![&x, dim, 1, rest])?;
        let earlier = e.call(&NARROW, args![&x, dim, 0, rest])?;
        x = if x.dtype() == DType::Bool {
            e.call(&LOGICAL_XOR, args![&later, &earlier])?
        } else {
            e.sub(&later, &earlier)?
        };
    }
    Ok(x)
}

/// The areas of the trapezoids between neighbours along a dim, doubled.
fn trapezoids(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, usize)> {
    let y = a.tensor(0);
    if y.ndim() == 0 {
        fail!(SHAPE, "a tensor of at least one dimension is wanted");
    }
    let y = if y.dtype() == DType::Bool { e.cast(y, DType::I64)? } else { y.clone() };
    let dim = infer::dim(a.int(3), y.ndim())?;
    let n = y.shape()[dim];
    let rest = n.saturating_sub(1);
    let later = e.call(&NARROW, args![&y, dim, n - rest, rest])?;
    let earlier = e.call(&NARROW, args![&y, dim, 0, rest])?;
    let sums = e.call(&ADD, args![&later, &earlier])?;
    if !matches!(a.get(1), Arg::None) && a.opt_float(2).is_some() {
        fail!(EXTRA_ARGUMENT, "`x` and `dx` exclude each other");
    }
    let areas = match a.opt_tensor(1) {
        None => e.mul(&sums, a.scalar(2).unwrap_or(Scalar::Int(1)))?,
        Some(x) => {
            let x = points(e, x, &y, dim)?;
            let at = infer::dim(if x.ndim() == y.ndim() { dim as i64 } else { -1 }, x.ndim())?;
            let rest = x.shape()[at].saturating_sub(1);
            let right = e.call(&NARROW, args![&x, at, x.shape()[at] - rest, rest])?;
            let left = e.call(&NARROW, args![&x, at, 0, rest])?;
            let widths = e.sub(&right, &left)?;
            e.mul(&sums, &widths)?
        }
    };
    Ok((areas, dim))
}

/// Sample points that broadcast against `y`: a line of them lies along `dim`.
fn points(e: &mut dyn Emit, x: &Tensor, y: &Tensor, dim: usize) -> Result<Tensor> {
    let n = y.shape()[dim];
    let has = if x.ndim() == 1 { x.shape()[0] } else { *x.shape().get(dim).unwrap_or(&0) };
    if x.ndim() == 0 || has != n && !(x.ndim() > 1 && has == 1) {
        return Err(Diag::error(code::SHAPE, format!("`x` has {has} points along the dim where `y` has {n}")));
    }
    if x.ndim() > 1 {
        return Ok(x.clone());
    }
    let mut shape = crate::base::layout::Shape::from_elem(1, y.ndim());
    shape[dim] = n;
    e.call(&RESHAPE, args![x, shape.as_slice()])
}

const AREA: &[Param] = &[
    Param::new("y", Kind::Tensor),
    Param::opt("x", Kind::Tensor, Default::None),
    Param::opt("dx", Kind::Number, Default::None),
    Param::opt("dim", Kind::Dim, Default::Int(-1)),
];

pub static TRAPEZOID: Op = Op {
    name: "trapezoid",
    aliases: &["trapz"],
    params: AREA,
    summary: "The area under values along a dim, by trapezoids; points are `dx` (1) apart, or at `x`.",
    examples: &[
        ex("trapezoid(tensor([1.0, 2.0, 3.0]))", "tensor(4.)"),
        ex("trapezoid(tensor([1.0, 2.0]), tensor([0.0, 3.0]))", "tensor(4.5000)"),
        ex("trapezoid(ones([2]), ones([3]))", "E0201"),
        ex("trapezoid(ones([2]), (), 1.0, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (areas, dim) = trapezoids(e, a)?;
        let sum = e.call(&SUM, args![&areas, &[dim][..]])?;
        Ok(vec![e.div(&sum, 2.0)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static CUMULATIVE_TRAPEZOID: Op = Op {
    name: "cumulative_trapezoid",
    params: AREA,
    summary: "The areas under values up to each along a dim, by trapezoids.",
    examples: &[
        ex("cumulative_trapezoid(tensor([1.0, 2.0, 3.0]))", "tensor([1.5000, 4.0000])"),
        ex("cumulative_trapezoid(ones([2]), ones([3]))", "E0201"),
        ex("cumulative_trapezoid(ones([2]), (), 1.0, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (areas, dim) = trapezoids(e, a)?;
        let sums = e.call(&CUMSUM, args![&areas, dim])?;
        Ok(vec![e.div(&sums, 2.0)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &CUMSUM_ALONG,
    &CUMSUM,
    &CUMPROD_ALONG,
    &CUMPROD,
    &LOGCUMSUMEXP_ALONG,
    &LOGCUMSUMEXP,
    &CUMMAX,
    &CUMMIN,
    &DIFF,
    &TRAPEZOID,
    &CUMULATIVE_TRAPEZOID,
];
