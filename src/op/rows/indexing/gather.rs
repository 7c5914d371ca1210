//! Reading and writing along one dim by an index for each element: `gather` and the scatters.
//!
//! The writing rows work in place when called so: only the named elements are touched. Index values are
//! checked by the kernels, so a bad one is found while computing; shapes and dtypes are judged here.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::index;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, derive};
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, Save, ex};
use crate::op::rows::pointwise::arith::element_of;
use crate::op::rows::pointwise::compare::{LT, WHERE};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SLICE_SCATTER};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// Index tensors of the dtypes that PyTorch takes here.
pub fn check_index(index: &Tensor, narrow: bool) -> Result<()> {
    if index.dtype() != DType::I64 && !(narrow && index.dtype() == DType::I32) {
        let expected = if narrow { "i64 or i32" } else { "i64" };
        fail!(DTYPE, "the index must hold {expected}, not {}", index.dtype());
    }
    Ok(())
}

pub fn same_dtype(x: &Tensor, other: &Tensor, name: &str) -> Result<()> {
    if x.dtype() != other.dtype() {
        return Err(crate::base::diag::Diag::error(
            crate::base::code::DTYPE,
            format!("`{name}` is {}, the tensor {}; both must be of one dtype", other.dtype(), x.dtype()),
        )
        .help(format!("convert with `.to(\"{}\")`", x.dtype())));
    }
    Ok(())
}

/// Sizes with no dimensions read as one of size 1.
pub fn at_least_1d(shape: &Shape) -> Shape {
    if shape.is_empty() { Shape::from_slice(&[1]) } else { shape.clone() }
}

/// The rules of an index beside a tensor, and beside a source that is written; the dim.
fn check_along(x: &Tensor, dim: i64, index: &Tensor, src: Option<&Tensor>) -> Result<usize> {
    let at = infer::dim(dim, x.ndim())?;
    // As PyTorch: an index without elements may have any shape and dtype.
    if index.numel() == 0 {
        return Ok(at);
    }
    check_index(index, true)?;
    let (sizes, expected) = (at_least_1d(&x.shape()), at_least_1d(&index.shape()));
    if sizes.len() != expected.len() {
        fail!(SHAPE, "the index has {} dimensions, the tensor {}", index.ndim(), x.ndim());
    }
    for (d, (&n, &have)) in expected.iter().zip(&sizes).enumerate() {
        if d != at && n > have {
            fail!(
                SHAPE,
                "the index has shape {:?}, which is larger than the tensor's {:?} in dimension {d}",
                index.shape().as_slice(),
                x.shape().as_slice()
            );
        }
    }
    let Some(src) = src else { return Ok(at) };
    let given = at_least_1d(&src.shape());
    if given.len() != expected.len() || expected.iter().zip(&given).any(|(n, have)| n > have) {
        fail!(
            SHAPE,
            "the index has shape {:?}, which does not lie inside `src`'s {:?}",
            index.shape().as_slice(),
            src.shape().as_slice()
        );
    }
    Ok(at)
}

signature!(gather_args(input: Tensor, dim: Dim, index: Tensor, sparse_grad: Ignored = None));

pub static GATHER: Op = Op {
    name: "gather",
    params: gather_args::PARAMS,
    summary: "Picks an element along `dim` for each element of `index`: y[i][j] = x[index[i][j]][j] for dim 0.",
    details: "An index value out of range is an error found while computing.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).gather(1, tensor([[0, 0], [1, 0]]))", "tensor([[1, 1],\n        [4, 3]])"),
        ex("ones([2, 2]).gather(0, tensor([0]))", "E0201"),
        ex("ones([2]).gather(1, tensor([0]))", "E0209"),
        ex("ones([2]).gather(0, tensor([0.0]))", "E0202"),
        ex("ones([2]).gather(0, tensor([0]), #{sparse_grad: true})", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, index) = (a.input(), a.tensor(gather_args::index));
        let dim = check_along(x, a.int(gather_args::dim), index, None)?;
        let call = KernelCall::new("gather", &index::GATHER).input(x).input(index).int(dim as i64);
        Ok(call.output(&index.shape(), x.dtype()))
    }),
    saves: &[Save::In(gather_args::index)],
    grad: Grad::Rule(|e, v| {
        let zeros = e.zeros_like(v.meta(gather_args::input))?;
        Ok(vec![Some(
            e.call(&SCATTER_ADD, args![&zeros, v.args.int(gather_args::dim), v.saved(gather_args::index), v.g()])?,
        )])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// A number as a tensor of the shape of an index, of one element in memory.
fn filled(e: &mut dyn Emit, value: Scalar, index: &Tensor, x: &Tensor) -> Result<Tensor> {
    let meta = Meta { shape: Shape::new(), dtype: x.dtype(), device: x.device() };
    let one = e.full(&[], element_of(value, x.dtype())?, &meta)?;
    let layout = one.view().layout.broadcast_to(&index.shape());
    Ok(e.alias(&one, layout))
}

/// A gradient of the index's shape in a source that is larger.
fn within(e: &mut dyn Emit, g: Tensor, meta: &Meta) -> Result<Tensor> {
    let mut g = g;
    for dim in 0..meta.shape.len() {
        let n = g.shape()[dim];
        if n == meta.shape[dim] {
            continue;
        }
        let mut shape = g.shape();
        shape[dim] = meta.shape[dim];
        let zeros = e.full(&shape, Scalar::Int(0), &Meta::of(&g))?;
        g = e.call(&SLICE_SCATTER, args![&zeros, &g, dim, 0, n])?;
    }
    e.call(&RESHAPE, args![&g, meta.shape.as_slice()])
}

fn scatter_call(
    name: &'static str,
    kernel: &'static Kernel,
    x: &Tensor,
    index: &Tensor,
    src: &Tensor,
    dim: usize,
) -> KernelCall {
    let call = KernelCall::new(name, kernel).input(x).input(index).input(src).int(dim as i64);
    call.output(&x.shape(), x.dtype()).writes_input()
}

/// The rule of `scatter`: what is written is a tensor, or a number (in either place).
fn scatter(e: &mut dyn Emit, a: &Args) -> Result<KernelCall> {
    let (x, index) = (a.input(), a.tensor(scatter::index));
    if a.scalar(scatter::src).is_some() && a.scalar(scatter::value).is_some() {
        fail!(EXTRA_ARGUMENT, "`src` and `value` exclude each other");
    }
    let value = a.scalar(scatter::src).or(a.scalar(scatter::value));
    let src = match (a.opt_tensor(scatter::src), value) {
        (Some(src), None) => src.clone(),
        (None, Some(value)) => {
            check_along(x, a.int(scatter::dim), index, None)?;
            filled(e, value, index, x)?
        }
        (Some(_), Some(_)) => fail!(EXTRA_ARGUMENT, "`src` and `value` exclude each other"),
        (None, None) => fail!(MISSING_ARGUMENT, "argument `src` (a tensor or a number) is missing"),
    };
    same_dtype(x, &src, "src")?;
    let dim = check_along(x, a.int(scatter::dim), index, Some(&src))?;
    Ok(match a.text(scatter::reduce) {
        "add" => scatter_call("scatter_add", &index::SCATTER_ADD, x, index, &src, dim),
        "multiply" => scatter_call("scatter_reduce", &index::SCATTER_REDUCE, x, index, &src, dim)
            .attr(Attr::Str("prod".into()))
            .flag(true),
        _ => scatter_call("scatter", &index::SCATTER, x, index, &src, dim),
    })
}

signature!(scatter(
    input: Tensor, dim: Dim, index: Tensor, src: Operand = None, value: Number = None,
    reduce: Str(&["add", "multiply"]) = None,
));

pub static SCATTER: Op = Op {
    name: "scatter",
    params: scatter::PARAMS,
    summary: "Writes `src` (a tensor or a number) where `index` says along `dim`: y[index[i][j]][j] = src[i][j] for dim 0.",
    details: "Of several writes to one element the last in row-major order of the index stays, on a GPU the last with \
              `use_deterministic_algorithms(true)` and else any; `reduce` \"add\" or \"multiply\" combines them instead, \
              without a gradient. An index value out of range is an error found while computing.",
    examples: &[
        ex("zeros([3]).scatter(0, tensor([2, 0]), tensor([5.0, 6.0]))", "tensor([6., 0., 5.])"),
        ex("zeros([3]).scatter(0, tensor([1]), 7)", "tensor([0., 7., 0.])"),
        ex("zeros([3]).scatter(0, tensor([0, 1]), ones([1]))", "E0201"),
        ex("zeros([3]).scatter(1, tensor([0]), 1)", "E0209"),
        ex("zeros([3]).scatter(0, tensor([0]), tensor([1]))", "E0202"),
        ex("zeros([3]).scatter(0, tensor([0]))", "E0205"),
        ex("zeros([3]).scatter(0, tensor([0]), 1, #{reduce: \"sum\"})", "E0206"),
        ex("zeros([3]).scatter(0, tensor([0]), 1, 2)", "E0208"),
    ],
    lower: Lower::Kernel(scatter),
    saves: &[Save::In(scatter::index)],
    grad: Grad::Rule(|e, v| {
        let (dim, index) = (v.args.int(scatter::dim), v.saved(scatter::index));
        if !v.args.text(scatter::reduce).is_empty() {
            return Err(crate::base::diag::Diag::error(
                crate::base::code::GRAD_STOP,
                "`scatter` with `reduce` has no gradient",
            )
            .help("use `scatter_add` or `scatter_reduce`"));
        }
        let mut grads = vec![None, None, None];
        if v.needs(scatter::input) {
            grads[0] = Some(e.call(&SCATTER, args![v.g(), dim, index, Scalar::Int(0)])?);
        }
        if v.needs(scatter::src) {
            let g = e.call(&GATHER, args![v.g(), dim, index])?;
            grads[2] = Some(within(e, g, v.meta(scatter::src))?);
        }
        Ok(grads)
    }),
    inplace: true,
    forward: crate::op::row::Forward::Linear(&[scatter::input, scatter::src, scatter::value]),
    ..Op::BASE
};

signature!(scatter_add(input: Tensor, dim: Dim, index: Tensor, src: Tensor));

pub static SCATTER_ADD: Op = Op {
    name: "scatter_add",
    params: scatter_add::PARAMS,
    summary: "Adds `src` where `index` says along `dim`: y[index[i][j]][j] += src[i][j] for dim 0.",
    details: "Sums are in row-major order of the index. An index value out of range is an error found while computing.",
    examples: &[
        ex("zeros([3]).scatter_add(0, tensor([2, 2]), tensor([5.0, 6.0]))", "tensor([ 0.,  0., 11.])"),
        ex("zeros([3]).scatter_add(0, tensor([0, 1]), ones([1]))", "E0201"),
        ex("zeros([3]).scatter_add(1, tensor([0]), ones([1]))", "E0209"),
        ex("zeros([3]).scatter_add(0, tensor([0]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, index, src) = (a.input(), a.tensor(scatter_add::index), a.tensor(scatter_add::src));
        same_dtype(x, src, "src")?;
        let dim = check_along(x, a.int(scatter_add::dim), index, Some(src))?;
        Ok(scatter_call("scatter_add", &index::SCATTER_ADD, x, index, src, dim))
    }),
    saves: &[Save::For(scatter_add::index, scatter_add::src)],
    grad: Grad::Rule(|e, v| {
        let mut grads = vec![Some(v.g().clone()), None, None];
        if v.needs(scatter_add::src) {
            let g = e.call(&GATHER, args![v.g(), v.args.int(scatter_add::dim), v.saved(scatter_add::index)])?;
            grads[2] = Some(within(e, g, v.meta(scatter_add::src))?);
        }
        Ok(grads)
    }),
    inplace: true,
    forward: crate::op::row::Forward::Linear(&[scatter_add::input, scatter_add::src]),
    ..Op::BASE
};

const REDUCES: &[&str] = &["sum", "prod", "mean", "amax", "amin"];

signature!(scatter_reduce(
    input: Tensor, dim: Dim, index: Tensor, src: Tensor, reduce: Str(REDUCES), include_self: Bool = true,
));

pub static SCATTER_REDUCE: Op = Op {
    name: "scatter_reduce",
    params: scatter_reduce::PARAMS,
    summary: "Combines `src` where `index` says along `dim`, by sum, product, mean or extreme.",
    details: "Without `include_self` the tensor's own elements do not take part where something is written.",
    examples: &[
        ex("ones([3]).scatter_reduce(0, tensor([2, 2]), tensor([5.0, 6.0]), \"amax\")", "tensor([1., 1., 6.])"),
        ex(
            "ones([3]).scatter_reduce(0, tensor([2, 2]), tensor([5.0, 6.0]), \"mean\", false)",
            "tensor([1.0000, 1.0000, 5.5000])",
        ),
        ex("ones([3]).scatter_reduce(0, tensor([0, 1]), ones([1]), \"sum\")", "E0201"),
        ex("ones([3]).scatter_reduce(1, tensor([0]), ones([1]), \"sum\")", "E0209"),
        ex("ones([3]).scatter_reduce(0, tensor([0]), tensor([1]), \"sum\")", "E0202"),
        ex("ones([3]).scatter_reduce(0, tensor([0]), ones([1]), \"max\")", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, index, src, reduce) =
            (a.input(), a.tensor(scatter_reduce::index), a.tensor(scatter_reduce::src), a.text(scatter_reduce::reduce));
        same_dtype(x, src, "src")?;
        if x.dtype() == DType::Bool && reduce == "mean" {
            fail!(DTYPE, "`bool` has no mean");
        }
        let dim = check_along(x, a.int(scatter_reduce::dim), index, Some(src))?;
        let call = scatter_call("scatter_reduce", &index::SCATTER_REDUCE, x, index, src, dim);
        Ok(call.attr(a.attr(scatter_reduce::reduce).clone()).flag(a.flag(scatter_reduce::include_self)))
    }),
    saves: &[Save::INPUT, Save::In(scatter_reduce::index), Save::In(scatter_reduce::src), Save::RESULT],
    grad: Grad::Rule(scatter_reduce_grad),
    inplace: true,
    ..Op::BASE
};

/// As PyTorch: products with one zero among the sources are right, extremes are shared evenly.
fn scatter_reduce_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let (dim, include_self) = (v.args.int(scatter_reduce::dim), v.args.flag(scatter_reduce::include_self));
    let (index, src, dtype) = (v.saved(scatter_reduce::index), v.saved(scatter_reduce::src), v.input().dtype());
    // What lies outside the index in a larger source takes no part.
    let shape = index.shape();
    let part = src.view().layout.clone();
    let part = (0..shape.len()).fold(part, |layout, d| layout.slice(d, 0, 1, shape[d]));
    let seen = if shape == src.shape() { src.clone() } else { e.alias(src, part) };
    derive(e, v, |t| {
        let (x, y, g, seen) = (t.input, t.result, t.g, t.make(|_| Ok(seen)));
        let (own, theirs) = match v.args.text(scatter_reduce::reduce) {
            "prod" => {
                let products = |of: Expr<'_>| args![dim, index, of.arg(), "prod", include_self];
                let filled = x.equals(0).choose(1, x);
                let product = filled.call(&SCATTER_REDUCE, products(seen));
                let src_zero = seen.equals(0);
                let zeros = t.zeros_like(scatter_reduce::input);
                let counts = gathered(scatter_added(zeros, dim, index, src_zero.cast(dtype)), dim, index);
                let single = src_zero.and(counts.equals(1));
                let rest = x.call(&SCATTER_REDUCE, products(single.choose(1, seen)));
                let plain = gathered(g * y, dim, index) / src_zero.choose(1, seen);
                (g * (product / filled), single.choose(gathered(g * rest, dim, index), plain))
            }
            "mean" => {
                let (own, input) = (Scalar::Int(include_self as i64), v.meta(scatter_reduce::input));
                let base = t.make(|e| e.full(&v.result().shape(), own, input));
                let ones = t.make(|e| e.full(&shape, Scalar::Int(1), input));
                let counts = scatter_added(base, dim, index, ones);
                let share = g / counts.equals(0).choose(1, counts);
                (share, gathered(share, dim, index))
            }
            "amax" | "amin" => {
                let mine = x.equals(y).cast(dtype);
                let equal = seen.equals(gathered(y, dim, index)).cast(dtype);
                let share = g / scatter_added(mine, dim, index, equal);
                (mine * share, equal * gathered(share, dim, index))
            }
            _ => (g, gathered(g, dim, index)),
        };
        let own = if include_self { own } else { own.call(&SCATTER, args![dim, index, Scalar::Int(0)]) };
        [Some(own), None, Some(theirs.then(|e, g| within(e, g.clone(), v.meta(scatter_reduce::src))))]
    })
}

fn gathered<'c>(x: Expr<'c>, dim: i64, index: &Tensor) -> Expr<'c> {
    x.call(&GATHER, args![dim, index])
}

fn scatter_added<'c>(to: Expr<'c>, dim: i64, index: &Tensor, x: Expr<'c>) -> Expr<'c> {
    to.call(&SCATTER_ADD, args![dim, index, x.arg()])
}

/// The positions with negative ones counted from the end.
pub fn wrapped(e: &mut dyn Emit, index: &Tensor, n: usize) -> Result<Tensor> {
    let negative = e.call(&LT, args![index, Scalar::Int(0)])?;
    let later = e.add(index, Scalar::Int(n as i64))?;
    e.call(&WHERE, args![&negative, &later, index])
}

signature!(take_along_dim(input: Tensor, indices: Tensor, dim: Dim = None));

pub static TAKE_ALONG_DIM: Op = Op {
    name: "take_along_dim",
    params: take_along_dim::PARAMS,
    summary: "As `gather`, with the other dims broadcast; without `dim` of the flattened tensor.",
    details: "Along a dim negative indices count from the end.",
    examples: &[
        ex("tensor([[3, 1], [2, 4]]).take_along_dim(tensor([[1], [0]]), 1)", "tensor([[1],\n        [2]])"),
        ex("tensor([[3, 1], [2, 4]]).take_along_dim(tensor([3]))", "tensor([4])"),
        ex("ones([2, 2]).take_along_dim(tensor([0]), 1)", "E0201"),
        ex("ones([2]).take_along_dim(tensor([0]), 1)", "E0209"),
        ex("ones([2]).take_along_dim(ones([2]), 0)", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, index) = (a.input(), a.tensor(take_along_dim::indices));
        check_index(index, false)?;
        let Some(dim) = a.opt_int(take_along_dim::dim) else {
            let x = e.call(&RESHAPE, args![x, &[-1i64][..]])?;
            let index = e.call(&RESHAPE, args![index, &[-1i64][..]])?;
            return e.apply(&GATHER, args![&x, 0, &index]);
        };
        if x.ndim() != index.ndim() {
            fail!(SHAPE, "the tensor has {} dimensions, `indices` {}", x.ndim(), index.ndim());
        }
        let dim = infer::dim(dim, x.ndim())?;
        let (mut sizes, mut expected) = (x.shape(), index.shape());
        if let (Some(n), Some(m)) = (sizes.get_mut(dim), expected.get_mut(dim)) {
            (*n, *m) = (1, 1);
        }
        let common = infer::broadcast_all([sizes.as_slice(), expected.as_slice()])?;
        let full = |own: &Shape| {
            let mut shape = common.clone();
            if let (Some(size), Some(&n)) = (shape.get_mut(dim), own.get(dim)) {
                *size = n;
            }
            shape
        };
        let x = e.call(&EXPAND, args![x, full(&x.shape()).as_slice()])?;
        let index = e.call(&EXPAND, args![index, full(&index.shape()).as_slice()])?;
        let index = wrapped(e, &index, x.shape().get(dim).copied().unwrap_or(1))?;
        e.apply(&GATHER, args![&x, dim, &index])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&GATHER, &SCATTER, &SCATTER_ADD, &SCATTER_REDUCE, &TAKE_ALONG_DIM];
