//! Running sums, products, extremes along a dim, differences and areas.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::scan;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, Terms, compute};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::indexing::gather::SCATTER_ADD;
use crate::op::rows::pointwise::arith::ADD;
use crate::op::rows::pointwise::compare::LOGICAL_XOR;
use crate::op::rows::reduction::minmax::tangent_picked;
use crate::op::rows::reduction::reduce::{AMAX, SUM};
use crate::op::rows::shape::copies::FLIP;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::NARROW;
use crate::op::rows::shape::view::{CLONE, RESHAPE, SELECT};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// One scan kernel. Arguments: `x, dim, dtype, reverse`.
fn scan(name: &'static str, kernel: &'static Kernel, a: &Args) -> Result<KernelCall> {
    let x = a.input();
    let dim = infer::dim(a.int(cumsum_along::dim), x.ndim())?;
    let own = if x.dtype().is_float() { x.dtype() } else { DType::I64 };
    let dtype = a.dtype(cumsum_along::dtype).unwrap_or(own);
    if dtype == DType::Bool {
        fail!(DTYPE, "`bool` is not supported as the dtype of the result");
    }
    Ok(KernelCall::new(name, kernel)
        .input(x)
        .int(dim as i64)
        .flag(a.flag(cumsum_along::reverse))
        .output(&x.shape(), dtype))
}

signature!(cumsum_along(input: Tensor, dim: Dim, dtype: DType = None, reverse: Bool = false));

/// Running sums, from the end when `reverse`.
pub static CUMSUM_ALONG: Op = Op {
    name: "cumsum",
    params: cumsum_along::PARAMS,
    summary: "Running sums.",
    lower: Lower::Kernel(|_, a| scan("cumsum", &scan::CUMSUM, a)),
    grad: Grad::Rule(|e, v| {
        let reverse = !v.args.flag(cumsum_along::reverse);
        Ok(vec![Some(e.call(&CUMSUM_ALONG, args![v.g(), v.args.int(cumsum_along::dim), (), reverse])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(cumsum(input: Tensor, dim: Dim, dtype: DType = None));

pub static CUMSUM: Op = Op {
    name: "cumsum",
    params: cumsum::PARAMS,
    summary: "The sums of the elements up to each along a dim; integers and bool sum to i64.",
    examples: &[
        ex("tensor([1, 2, 3]).cumsum(0)", "tensor([1, 3, 6])"),
        ex("ones([2]).cumsum(1)", "E0209"),
        ex("ones([2]).cumsum(0, \"bool\")", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        e.apply(&CUMSUM_ALONG, args![a.input(), a.int(cumsum::dim), a.get(cumsum::dtype).clone(), false])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// Running products, from the end when `reverse`.
pub static CUMPROD_ALONG: Op = Op {
    name: "cumprod",
    params: cumsum_along::PARAMS,
    summary: "Running products.",
    lower: Lower::Kernel(|_, a| scan("cumprod", &scan::CUMPROD, a)),
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Rule(|e, v| Ok(vec![Some(cumprod_grad(e, v)?)])),
    call: CallForm::Internal,
    ..Op::BASE
};

fn sums(x: Expr<'_>, dim: i64, reverse: bool) -> Expr<'_> {
    x.call(&CUMSUM_ALONG, args![dim, (), reverse])
}

/// The gradient of running products. One that has gradients itself is computed without dividing by what may be 0: that an
/// element is 0 does not end what depends on it.
fn cumprod_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    if e.grad_enabled() { cumprod_grad_by_doubling(e, v) } else { cumprod_grad_by_division(e, v) }
}

/// What comes before an element, times `q[j] = g[j] + x[j + 1] q[j + 1]`. The recurrence is computed in log2(n) steps, each of
/// which joins maps `q -> b + a q` over twice the distance (Hillis and Steele, "Data parallel algorithms", 1986).
fn cumprod_grad_by_doubling(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let (at, reverse) = (v.args.int(cumsum_along::dim), v.args.flag(cumsum_along::reverse));
    let (mut x, mut g) = (e.cast(v.input(), v.outputs[0].dtype)?, v.g().clone());
    if x.ndim() == 0 {
        return Ok(g);
    }
    let dim = infer::dim(at, x.ndim())?;
    if reverse {
        (x, g) = (e.call(&FLIP, args![&x, &[dim][..]])?, e.call(&FLIP, args![&g, &[dim][..]])?);
    }
    let n = x.shape()[dim];
    // The elements from `from` on, and `value` behind them.
    let later = |e: &mut dyn Emit, x: &Tensor, from: usize, value: i64| {
        let mut edge = x.shape();
        edge[dim] = from;
        let rest = e.call(&NARROW, args![x, dim, from, n - from])?;
        let behind = e.full(&edge, Scalar::Int(value), &Meta::of(x))?;
        e.call(&CAT, args![vec![rest, behind], dim])
    };
    let mut edge = x.shape();
    edge[dim] = n.min(1);
    let one = e.full(&edge, Scalar::Int(1), &Meta::of(&x))?;
    let before = e.call(&NARROW, args![&x, dim, 0, n.saturating_sub(1)])?;
    let before = e.call(&CAT, args![vec![one, before], dim])?;
    let before = e.call(&CUMPROD_ALONG, args![&before, dim, (), false])?;
    let mut sum = g;
    let mut factor = later(e, &x, n.min(1), 1)?;
    let mut step = 1;
    while step < n {
        let (next, further) = (later(e, &sum, step, 0)?, later(e, &factor, step, 1)?);
        let product = e.mul(&factor, &next)?;
        sum = e.add(&sum, &product)?;
        factor = e.mul(&factor, &further)?;
        step *= 2;
    }
    let grad = e.mul(&before, &sum)?;
    if reverse { e.call(&FLIP, args![&grad, &[dim][..]]) } else { Ok(grad) }
}

/// `rev_cumsum(g y) / x` before the first zero of a row. At the first zero the products go on as if it were 1;
/// behind it everything is 0.
fn cumprod_grad_by_division(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Tensor> {
    let (dim, reverse, y) = (v.args.int(cumsum_along::dim), v.args.flag(cumsum_along::reverse), v.result());
    let x = e.cast(v.input(), v.outputs[0].dtype)?;
    compute(e, |c| {
        let (g, x) = (c.of(v.g()), c.of(&x));
        let zero = x.equals(0);
        let zeros = sums(zero, dim, reverse);
        let (before, first) = (zeros.equals(0), zero.and(zeros.equals(1)));
        let plain = (sums(g * y, dim, !reverse) / zero.choose(1, x)).zero_unless(before);
        let products = first.choose(1, x).call(&CUMPROD_ALONG, args![dim, (), reverse]);
        first.choose(sums(g * products, dim, !reverse), plain)
    })
}

pub static CUMPROD: Op = Op {
    name: "cumprod",
    params: cumsum::PARAMS,
    summary: "The products of the elements up to each along a dim; integers and bool give i64.",
    examples: &[
        ex("tensor([1, 2, 3]).cumprod(0)", "tensor([1, 2, 6])"),
        ex("ones([2]).cumprod(1)", "E0209"),
        ex("ones([2]).cumprod(0, \"bool\")", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        e.apply(&CUMPROD_ALONG, args![a.input(), a.int(cumsum::dim), a.get(cumsum::dtype).clone(), false])
    }),
    grad: Grad::Composed,
    inplace: true,
    ..Op::BASE
};

/// `exp(x) · rev_cumsum(g exp(-y))` in logarithms, of positive gradients.
fn positive_part<'c>(t: Terms<'c>, g: Expr<'c>) -> Expr<'c> {
    let (dim, reverse) = (t.int(cumsum_along::dim), t.flag(cumsum_along::reverse));
    // Chosen after the difference: without a gradient there is nothing, also where the result is -inf.
    let less = g.greater(0).choose(g.log() - t.result, f64::NEG_INFINITY);
    (less.call(&LOGCUMSUMEXP_ALONG, args![dim, (), !reverse]) + t.input).exp()
}

/// Running log-sum-exps, from the end when `reverse`.
pub static LOGCUMSUMEXP_ALONG: Op = Op {
    name: "logcumsumexp",
    params: cumsum_along::PARAMS,
    summary: "Running log-sum-exps.",
    lower: Lower::Kernel(|_, a| scan("logcumsumexp", &scan::LOGCUMSUMEXP, a)),
    saves: &[Save::INPUT, Save::RESULT],
    grad: Grad::Of(&[|t| positive_part(t, t.g) - positive_part(t, -t.g)]),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Rule(|e, v| {
        let (dim, reverse) = (v.args.int(cumsum_along::dim), v.args.flag(cumsum_along::reverse));
        let x = v.input();
        compute(e, |c| {
            // Exponentials of at most 1, as PyTorch computes them. The sum of none, whose logarithm is -inf, stands still.
            let largest = if x.ndim() == 0 { c.of(x) } else { c.of(x).call(&AMAX, args![dim, true]) };
            let largest = largest.abs().equals(f64::INFINITY).choose(0, largest).detach();
            let sizes = (c.of(x) - largest).exp();
            let total = sums(sizes, dim, reverse);
            (sums(sizes * c.of(v.tangent()), dim, reverse) / total).zero_where(total.equals(0))
        })
        .map(Some)
    }),
    ..Op::BASE
};

signature!(logcumsumexp(input: Tensor, dim: Dim));

pub static LOGCUMSUMEXP: Op = Op {
    name: "logcumsumexp",
    params: logcumsumexp::PARAMS,
    summary: "The logarithms of the sums of exponentials up to each element along a dim, without overflow.",
    examples: &[
        ex("tensor([0.0, 0.0]).logcumsumexp(0)", "tensor([0.0000, 0.6931])"),
        ex("ones([2]).logcumsumexp(1)", "E0209"),
        ex("tensor([1]).logcumsumexp(0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if !x.dtype().is_inexact() {
            fail!(DTYPE, "a floating-point tensor is expected, not {}", x.dtype());
        }
        e.apply(&LOGCUMSUMEXP_ALONG, args![x, a.int(logcumsumexp::dim), (), false])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

fn extremes(name: &'static str, kernel: &'static Kernel, a: &Args) -> Result<KernelCall> {
    let x = a.input();
    let dim = infer::dim(a.int(logcumsumexp::dim), x.ndim())?;
    let call = KernelCall::new(name, kernel).input(x).int(dim as i64);
    Ok(call.output(&x.shape(), x.dtype()).output(&x.shape(), DType::I64))
}

/// Each gradient goes to the element that its extreme came from.
fn extremes_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let Some(g) = &v.grads[0] else { return Ok(vec![None]) };
    let zeros = e.zeros_like(v.meta(logcumsumexp::input))?;
    Ok(vec![Some(e.call(&SCATTER_ADD, args![&zeros, v.args.int(logcumsumexp::dim), v.output(1), g])?)])
}

pub static CUMMAX: Op = Op {
    name: "cummax",
    params: logcumsumexp::PARAMS,
    summary: "The largest of the elements up to each along a dim, and where they are.",
    details: "Of equal elements the last; NaN stays once seen.",
    examples: &[
        ex("tensor([1, 3, 2]).cummax(0).values", "tensor([1, 3, 3])"),
        ex("tensor([1, 3, 2]).cummax(0).indices", "tensor([0, 1, 1])"),
        ex("ones([2]).cummax(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| extremes("cummax", &scan::CUMMAX, a)),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(extremes_grad),
    results: Returns::Named(&["values", "indices"]),
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

pub static CUMMIN: Op = Op {
    name: "cummin",
    params: logcumsumexp::PARAMS,
    summary: "The smallest of the elements up to each along a dim, and where they are.",
    details: "Of equal elements the last; NaN stays once seen.",
    examples: &[
        ex("tensor([3, 1, 2]).cummin(0).values", "tensor([3, 1, 1])"),
        ex("tensor([3, 1, 2]).cummin(0).indices", "tensor([0, 1, 1])"),
        ex("ones([2]).cummin(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| extremes("cummin", &scan::CUMMIN, a)),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(extremes_grad),
    results: Returns::Named(&["values", "indices"]),
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

signature!(diff(input: Tensor, n: Int = 1, dim: Dim = (-1), prepend: Tensor = None, append: Tensor = None));

pub static DIFF: Op = Op {
    name: "diff",
    params: diff::PARAMS,
    summary: "The differences of neighbors along a dim, `n` times over; of bool, whether they differ.",
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
    let x = a.input();
    if x.ndim() == 0 {
        fail!(SHAPE, "a tensor of at least one dimension is expected");
    }
    let (n, dim) = (a.int(diff::n), infer::dim(a.int(diff::dim), x.ndim())?);
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
    if n == 0 {
        return e.call(&CLONE, args![x]);
    }
    let mut x = if parts.len() > 1 { e.call(&CAT, args![parts, dim])? } else { x.clone() };
    let size = x.shape()[dim];
    if n as usize >= size {
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

/// The values of a curve, and the dim along which they lie.
fn curve(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, usize)> {
    let y = a.tensor(area::y);
    if y.ndim() == 0 {
        fail!(SHAPE, "a tensor of at least one dimension is expected");
    }
    if !matches!(a.get(area::x), Arg::None) && a.opt_float(area::dx).is_some() {
        fail!(EXTRA_ARGUMENT, "`x` and `dx` exclude each other");
    }
    let y = if y.dtype() == DType::Bool { e.cast(y, DType::I64)? } else { y.clone() };
    let dim = infer::dim(a.int(area::dim), y.ndim())?;
    Ok((y, dim))
}

/// The areas of the trapezoids between neighbors along a dim, doubled.
fn trapezoids(e: &mut dyn Emit, a: &Args) -> Result<(Tensor, usize)> {
    let (y, dim) = curve(e, a)?;
    let n = y.shape()[dim];
    let rest = n.saturating_sub(1);
    let later = e.call(&NARROW, args![&y, dim, n - rest, rest])?;
    let earlier = e.call(&NARROW, args![&y, dim, 0, rest])?;
    let sums = e.call(&ADD, args![&later, &earlier])?;
    let areas = match a.opt_tensor(area::x) {
        None => e.mul(&sums, a.scalar(area::dx).unwrap_or(Scalar::Int(1)))?,
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

signature!(area(y: Tensor, x: Tensor = None, dx: Number = None, dim: Dim = (-1)));

pub static TRAPEZOID: Op = Op {
    name: "trapezoid",
    aliases: &["trapz"],
    params: area::PARAMS,
    summary: "The area under values along a dim, by trapezoids; points are `dx` (1) apart, or at `x`.",
    examples: &[
        ex("trapezoid(tensor([1.0, 2.0, 3.0]))", "tensor(4.)"),
        ex("trapezoid(tensor([1.0, 2.0]), tensor([0.0, 3.0]))", "tensor(4.5000)"),
        ex("trapezoid(ones([2]), ones([3]))", "E0201"),
        ex("trapezoid(ones([2]), (), 1.0, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (y, dim) = curve(e, a)?;
        if matches!(a.get(area::x), Arg::None) && y.shape()[dim] > 0 {
            // As in PyTorch, all values less half of those at the ends.
            let first = e.call(&SELECT, args![&y, dim, 0])?;
            let last = e.call(&SELECT, args![&y, dim, -1])?;
            let ends = e.call(&ADD, args![&first, &last])?;
            let (sum, half) = (e.call(&SUM, args![&y, &[dim][..]])?, e.mul(&ends, 0.5)?);
            let area = e.sub(&sum, &half)?;
            return Ok(vec![e.mul(&area, a.scalar(area::dx).unwrap_or(Scalar::Int(1)))?]);
        }
        let (areas, dim) = trapezoids(e, a)?;
        let sum = e.call(&SUM, args![&areas, &[dim][..]])?;
        Ok(vec![e.div(&sum, 2.0)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static CUMULATIVE_TRAPEZOID: Op = Op {
    name: "cumulative_trapezoid",
    params: area::PARAMS,
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
