//! Sorting and picking by order: sorted rows, the k largest, the k-th, medians, modes, quantiles.

use crate::args;
use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::family::Kernel;
use crate::kernel::sort;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::indexing::gather::{GATHER, SCATTER};
use crate::op::rows::pointwise::blend::{CLAMP_MIN, LERP};
use crate::op::rows::pointwise::compare::{ISNAN, LOGICAL_NOT, WHERE};
use crate::op::rows::pointwise::unary::{CEIL, FLOOR, ROUND};
use crate::op::rows::reduction::minmax::tangent_picked;
use crate::op::rows::reduction::reduce::{ANY, SUM, evenly, to_index};
use crate::op::rows::shape::rearrange::MOVEDIM;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::rows::signatures::unary;
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

const VALUES: Returns = Returns::Named(&["values", "indices"]);

/// The dim of a sort; rows are bounded by what the kernels can count.
fn sorted_dim(x: &Tensor, dim: i64) -> Result<usize> {
    let at = infer::dim(dim, x.ndim())?;
    let n = x.shape().get(at).copied().unwrap_or(1);
    if n > u32::MAX as usize {
        fail!(TOO_LARGE, "{n} elements along dimension {at} are more than a sort takes, {}", u32::MAX);
    }
    Ok(at)
}

/// The gradient of elements that were picked by index along a dim, each at most once.
fn picked_grad(e: &mut dyn Emit, v: &Backward<'_>, dim: i64) -> Result<Vec<Option<Tensor>>> {
    let Some(g) = &v.grads[0] else { return Ok(vec![None]) };
    let zeros = e.zeros_like(v.meta(sort_args::input))?;
    Ok(vec![Some(e.call(&SCATTER, args![&zeros, dim, v.output(1), g])?)])
}

signature!(sort_args(input: Tensor, dim: Dim = (-1), descending: Bool = false, stable: Bool = None));

pub static SORT: Op = Op {
    name: "sort",
    params: sort_args::PARAMS,
    summary: "The elements along a dim in order, and where they were.",
    details: "Always stable; NaN is the largest.",
    examples: &[
        ex("tensor([3, 1, 2]).sort().values", "tensor([1, 2, 3])"),
        ex("tensor([3, 1, 2]).sort(0, true).indices", "tensor([0, 2, 1])"),
        ex("ones([2]).sort(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let dim = sorted_dim(x, a.int(sort_args::dim))?;
        let call = KernelCall::new("sort", &sort::SORT).input(x).int(dim as i64).flag(a.flag(sort_args::descending));
        Ok(call.output(&x.shape(), x.dtype()).output(&x.shape(), DType::I64))
    }),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| picked_grad(e, v, v.args.int(sort_args::dim))),
    results: VALUES,
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

pub static ARGSORT: Op = Op {
    name: "argsort",
    params: sort_args::PARAMS,
    summary: "Where the elements along a dim would be taken from to be in order.",
    examples: &[ex("tensor([3, 1, 2]).argsort()", "tensor([1, 2, 0])"), ex("ones([2]).argsort(1)", "E0209")],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let dim = sorted_dim(x, a.int(sort_args::dim))?;
        let call =
            KernelCall::new("argsort", &sort::ARGSORT).input(x).int(dim as i64).flag(a.flag(sort_args::descending));
        Ok(call.output(&x.shape(), DType::I64))
    }),
    grad: Grad::Stop("positions have no gradient"),
    ..Op::BASE
};

pub static MSORT: Op = Op {
    name: "msort",
    params: unary::PARAMS,
    summary: "The elements along the first dim in order.",
    examples: &[ex("tensor([[3, 1], [2, 4]]).msort()", "tensor([[2, 1],\n        [3, 4]])")],
    lower: Lower::Compose(|e, a| {
        let mut both = e.apply(&SORT, args![a.input(), 0, false])?;
        both.truncate(1);
        Ok(both)
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Results of a pick along `dim`: values and indices with `n` in the dim, or without it.
fn picked(call: KernelCall, x: &Tensor, dim: usize, n: usize, keepdim: bool) -> KernelCall {
    let mut shape = x.shape();
    if keepdim {
        if let Some(size) = shape.get_mut(dim) {
            *size = n;
        }
    } else if dim < shape.len() {
        shape.remove(dim);
    }
    call.output(&shape, x.dtype()).output(&shape, DType::I64)
}

fn no_bool(x: &Tensor) -> Result<()> {
    if x.dtype() == DType::Bool {
        fail!(DTYPE, "bool tensors are not supported");
    }
    Ok(())
}

signature!(topk(input: Tensor, k: Int, dim: Dim = (-1), largest: Bool = true, sorted: Bool = true));

pub static TOPK: Op = Op {
    name: "topk",
    params: topk::PARAMS,
    summary: "The k largest (or smallest) elements along a dim, best first, and where they are.",
    details: "Of equal elements the earlier comes first; NaN is the largest.",
    examples: &[
        ex("tensor([3, 1, 4, 2]).topk(2).values", "tensor([4, 3])"),
        ex("tensor([3, 1, 4, 2]).topk(2, 0, false).indices", "tensor([1, 3])"),
        ex("ones([2]).topk(3)", "E0206"),
        ex("ones([2]).topk(1, 1)", "E0209"),
        ex("tensor([true]).topk(1)", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, k) = (a.input(), a.int(topk::k));
        no_bool(x)?;
        let dim = sorted_dim(x, a.int(topk::dim))?;
        let n = x.shape().get(dim).copied().unwrap_or(1);
        if k < 0 || k as usize > n {
            fail!(VALUE, "`k` is {k}, and the dimension has {n} elements");
        }
        // PyTorch gives the one element of a tensor of no dimensions even for 0.
        let asked = if x.ndim() == 0 { 1 } else { k };
        let call = KernelCall::new("topk", &sort::TOPK).input(x).int(asked).int(dim as i64).flag(a.flag(topk::largest));
        Ok(picked(call, x, dim, k as usize, true))
    }),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| picked_grad(e, v, v.args.int(topk::dim))),
    results: VALUES,
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

/// The gradient of one element picked from each row, whose dim is argument `dim` and whose `keepdim` follows it.
fn one_grad(e: &mut dyn Emit, v: &Backward<'_>, dim: usize) -> Result<Vec<Option<Tensor>>> {
    let Some(g) = &v.grads[0] else { return Ok(vec![None]) };
    let keepdim = v.args.flag(dim + 1);
    Ok(vec![Some(to_index(e, g, v.output(1), v.meta(kthvalue::input), v.args.int(dim), keepdim)?)])
}

signature!(kthvalue(input: Tensor, k: Int, dim: Dim = (-1), keepdim: Bool = false));

pub static KTHVALUE: Op = Op {
    name: "kthvalue",
    params: kthvalue::PARAMS,
    summary: "The k-th smallest element along a dim (k from 1), and where it is.",
    examples: &[
        ex("tensor([3, 1, 2]).kthvalue(2).values", "tensor(2)"),
        ex("ones([2]).kthvalue(0)", "E0206"),
        ex("ones([2]).kthvalue(1, 1)", "E0209"),
        ex("tensor([true]).kthvalue(1)", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, k) = (a.input(), a.int(kthvalue::k));
        no_bool(x)?;
        let dim = sorted_dim(x, a.int(kthvalue::dim))?;
        let n = x.shape().get(dim).copied().unwrap_or(1);
        if k < 1 || k as usize > n {
            fail!(VALUE, "`k` is {k}, and must be from 1 to the {n} elements of the dimension");
        }
        let call = KernelCall::new("kthvalue", &sort::KTHVALUE).input(x).int(k).int(dim as i64);
        Ok(picked(call, x, dim, 1, a.flag(kthvalue::keepdim)))
    }),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| one_grad(e, v, 2)),
    results: VALUES,
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

/// `median`, `nanmedian` and `mode` along a dim.
fn middle(name: &'static str, kernel: &'static Kernel, a: &Args) -> Result<KernelCall> {
    let x = a.input();
    let dim = sorted_dim(x, a.int(middles::dim))?;
    if x.shape().get(dim) == Some(&0) {
        return Err(Diag::error(code::SHAPE, format!("dimension {dim} has no elements to choose from"))
            .note(format!("the tensor has shape {:?}", x.shape().as_slice())));
    }
    Ok(picked(KernelCall::new(name, kernel).input(x).int(dim as i64), x, dim, 1, a.flag(middles::keepdim)))
}

signature!(middles(input: Tensor, dim: Dim = (-1), keepdim: Bool = false));

/// Rows of a pick along a dim, and of all elements.
macro_rules! middles {
    ($($ALONG:ident $ALL:ident $name:literal $kernel:ident;)*) => {$(
        static $ALONG: Op = Op {
            name: $name,
            params: middles::PARAMS,
            summary: "The middle of each row, and where it is.",
            lower: Lower::Kernel(|_, a| middle($name, &sort::$kernel, a)),
            saves: &[Save::Out(1)],
            grad: Grad::Rule(|e, v| one_grad(e, v, 1)),
            forward: crate::op::row::Forward::Rule(tangent_picked),
            call: CallForm::Internal,
            results: VALUES,
            ..Op::BASE
        };

        static $ALL: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: "The middle of all elements.",
            lower: Lower::Kernel(|_, a| {
                let x = a.input();
                Ok(KernelCall::new($name, &sort::$kernel).input(x).attr(Attr::None).output(&[], x.dtype()))
            }),
            saves: &[Save::INPUT, Save::RESULT],
            grad: Grad::Rule(|e, v| Ok(vec![Some(evenly(e, v, v.g(), v.result(), true)?)])),
            call: CallForm::Internal,
            ..Op::BASE
        };
    )*};
}

middles! {
    MEDIAN_ALONG MEDIAN_OF_ALL "median" MEDIAN;
    NANMEDIAN_ALONG NANMEDIAN_OF_ALL "nanmedian" NANMEDIAN;
}

fn overloaded(e: &mut dyn Emit, a: &Args, all: &'static Op, along: &'static Op) -> Result<Vec<Tensor>> {
    let x = a.input();
    if x.numel() == 0 && a.is_none(median::dim) && !x.dtype().is_float() {
        // What PyTorch makes of NaN in other dtypes.
        let nothing = match x.dtype() {
            DType::Bool => Scalar::Bool(true),
            DType::I64 => Scalar::Int(i64::MIN),
            DType::I32 => Scalar::Int(i32::MIN.into()),
            _ => Scalar::Int(0),
        };
        return Ok(vec![e.full(&[], nothing, &Meta::of(x))?]);
    }
    no_bool(x)?;
    match a.opt_int(median::dim) {
        None => e.apply(all, args![x]),
        Some(dim) => e.apply(along, args![x, dim, a.flag(median::keepdim)]),
    }
}

signature!(median(input: Tensor, dim: Dim = None, keepdim: Bool = false));

pub static MEDIAN: Op = Op {
    name: "median",
    params: median::PARAMS,
    summary: "The lower of the two middle elements: of everything, or along a dim with where it is.",
    details: "`median(x)` is a tensor of no dimensions, `median(x, dim)` a map of `values` and `indices`. NaN wins.",
    examples: &[
        ex("tensor([4, 1, 3, 2]).median()", "tensor(2)"),
        ex("tensor([[4, 1, 3], [2, 9, 8]]).median(1).values", "tensor([3, 8])"),
        ex("zeros([0, 2]).median(0)", "E0201"),
        ex("ones([2]).median(1)", "E0209"),
        ex("zeros([0], #{dtype: \"bool\"}).median()", "tensor(true)"),
        ex("tensor([true]).median()", "E0202"),
    ],
    lower: Lower::Compose(|e, a| overloaded(e, a, &MEDIAN_OF_ALL, &MEDIAN_ALONG)),
    grad: Grad::Composed,
    results: VALUES,
    ..Op::BASE
};

pub static NANMEDIAN: Op = Op {
    name: "nanmedian",
    params: median::PARAMS,
    summary: "As `median`, of the elements that are not NaN.",
    examples: &[
        ex("tensor([4.0, NAN, 3.0, 2.0]).nanmedian()", "tensor(3.)"),
        ex("zeros([0, 2]).nanmedian(0)", "E0201"),
        ex("ones([2]).nanmedian(1)", "E0209"),
        ex("tensor([true]).nanmedian()", "E0202"),
    ],
    lower: Lower::Compose(|e, a| overloaded(e, a, &NANMEDIAN_OF_ALL, &NANMEDIAN_ALONG)),
    grad: Grad::Composed,
    results: VALUES,
    ..Op::BASE
};

pub static MODE: Op = Op {
    name: "mode",
    params: middles::PARAMS,
    summary: "The most frequent element along a dim, the smallest of equally frequent ones, and where it is last.",
    examples: &[
        ex("tensor([3, 1, 3, 2]).mode().values", "tensor(3)"),
        ex("tensor([3, 1, 3, 2]).mode().indices", "tensor(2)"),
        ex("zeros([0]).mode()", "E0201"),
        ex("ones([2]).mode(1)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| middle("mode", &sort::MODE, a)),
    saves: &[Save::Out(1)],
    grad: Grad::Rule(|e, v| one_grad(e, v, 1)),
    results: VALUES,
    forward: crate::op::row::Forward::Rule(tangent_picked),
    ..Op::BASE
};

signature!(quantile(
    input: Tensor, q: Operand, dim: Dim = None, keepdim: Bool = false,
    interpolation: Str(&["linear", "lower", "higher", "midpoint", "nearest"]) = "linear",
));

/// `q` as a tensor of the dtype of `x`.
fn orders(e: &mut dyn Emit, a: &Args, x: &Tensor) -> Result<Tensor> {
    let range = |q: f64| -> Result<()> {
        if !(0.0..=1.0).contains(&q) {
            fail!(VALUE, "`q` must be from 0 to 1, and is {q}");
        }
        Ok(())
    };
    let Some(q) = a.opt_tensor(quantile::q) else {
        let q = a.float(quantile::q);
        range(q)?;
        return e.full(&[], Scalar::Float(q), &Meta::of(x));
    };
    if q.ndim() > 1 {
        fail!(SHAPE, "`q` is a number or has one dimension, not {}", q.ndim());
    }
    if q.dtype() != x.dtype() {
        fail!(DTYPE, "`q` is {}, the tensor {}; both must be of one dtype", q.dtype(), x.dtype());
    }
    for value in e.read(q)? {
        range(value.to_f64())?;
    }
    Ok(q.clone())
}

/// The quantiles between the neighbors of rank `q (n - 1)` in the sorted row; with `skip` NaN is no element.
fn quantile(e: &mut dyn Emit, a: &Args, skip: bool) -> Result<Tensor> {
    let x = a.input();
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        fail!(DTYPE, "f32 or f64 is expected, not {}", x.dtype());
    }
    if x.numel() == 0 {
        fail!(SHAPE, "a tensor without elements has no quantiles");
    }
    let q = orders(e, a, x)?;
    let dim = a.opt_int(quantile::dim).map(|dim| infer::dim(dim, x.ndim())).transpose()?;
    // Rows last: [.., n].
    let rows = match dim {
        Some(dim) if x.ndim() > 0 => e.call(&MOVEDIM, args![x, dim, -1])?,
        _ => e.call(&RESHAPE, args![x, &[-1i64][..]])?,
    };
    let sorted = e.call(&SORT, args![&rows, -1, false])?;
    let lead: Shape = Shape::from_slice(&sorted.shape()[..sorted.ndim() - 1]);
    let last = *sorted.shape().last().unwrap_or(&1) as i64 - 1;
    let missing = e.call(&ISNAN, args![&sorted])?;
    let ranks = if skip {
        let there = e.call(&LOGICAL_NOT, args![&missing])?;
        let count = e.call(&SUM, args![&there, -1, true])?;
        let highest = e.sub(&count, Scalar::Int(1))?;
        let highest = e.cast(&highest, x.dtype())?;
        let ranks = e.mul(&q, &highest)?;
        // A row of NaN alone: its first element.
        e.call(&CLAMP_MIN, args![&ranks, 0.0])?
    } else {
        let ranks = e.mul(&q, last as f64)?;
        let mut shape = lead.clone();
        shape.push(q.numel());
        let ranks = e.call(&EXPAND, args![&ranks, shape.as_slice()])?;
        let any = e.call(&ANY, args![&missing, -1, true])?;
        e.call(&WHERE, args![&any, last as f64, &ranks])?
    };
    let values = between(e, &sorted, &ranks, a.text(quantile::interpolation))?;
    // Quantiles come first when `q` is a list; the dim itself goes away or stays as 1.
    let mut shape = lead;
    if a.flag(quantile::keepdim) {
        match dim {
            Some(dim) if x.ndim() > 0 => shape.insert(dim, 1),
            _ => shape = Shape::from_elem(1, x.ndim()),
        }
    }
    let first = e.call(&MOVEDIM, args![&values, -1, 0])?;
    if q.ndim() == 1 {
        shape.insert(0, q.numel());
    }
    e.call(&RESHAPE, args![&first, shape.as_slice()])
}

/// Elements at fractional ranks of sorted rows.
fn between(e: &mut dyn Emit, sorted: &Tensor, ranks: &Tensor, how: &str) -> Result<Tensor> {
    let ranks = match how {
        "lower" => e.call(&FLOOR, args![ranks])?,
        "higher" => e.call(&CEIL, args![ranks])?,
        "nearest" => e.call(&ROUND, args![ranks])?,
        _ => ranks.clone(),
    };
    let pick = |e: &mut dyn Emit, ranks: &Tensor| {
        let index = e.cast(ranks, DType::I64)?;
        e.call(&GATHER, args![sorted, -1, &index])
    };
    let low = e.call(&FLOOR, args![&ranks])?;
    let below = pick(e, &low)?;
    if !matches!(how, "linear" | "midpoint") {
        return Ok(below);
    }
    let high = e.call(&CEIL, args![&ranks])?;
    let above = pick(e, &high)?;
    if how == "midpoint" {
        return e.call(&LERP, args![&below, &above, 0.5]);
    }
    let weight = e.sub(&ranks, &low)?;
    e.call(&LERP, args![&below, &above, &weight])
}

pub static QUANTILE: Op = Op {
    name: "quantile",
    params: quantile::PARAMS,
    summary: "The quantiles of order `q` (a number or a list, first in the result) of everything or along a dim; NaN wins.",
    examples: &[
        ex("tensor([1.0, 2.0, 4.0]).quantile(0.75)", "tensor(3.)"),
        ex("tensor([1.0, 2.0, 4.0]).quantile(tensor([0.0, 1.0]))", "tensor([1., 4.])"),
        ex("tensor([1, 2]).quantile(0.5)", "E0202"),
        ex("ones([2]).quantile(2.0)", "E0206"),
        ex("zeros([0]).quantile(0.5)", "E0201"),
        ex("ones([2]).quantile(0.5, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![quantile(e, a, false)?])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static NANQUANTILE: Op = Op {
    name: "nanquantile",
    params: quantile::PARAMS,
    summary: "As `quantile`, of the elements that are not NaN.",
    examples: &[
        ex("tensor([1.0, NAN, 4.0]).nanquantile(0.5)", "tensor(2.5000)"),
        ex("tensor([1, 2]).nanquantile(0.5)", "E0202"),
        ex("ones([2]).nanquantile(2.0)", "E0206"),
        ex("zeros([0]).nanquantile(0.5)", "E0201"),
        ex("ones([2]).nanquantile(0.5, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![quantile(e, a, true)?])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &SORT,
    &ARGSORT,
    &MSORT,
    &TOPK,
    &KTHVALUE,
    &MEDIAN_ALONG,
    &MEDIAN_OF_ALL,
    &NANMEDIAN_ALONG,
    &NANMEDIAN_OF_ALL,
    &MEDIAN,
    &NANMEDIAN,
    &MODE,
    &QUANTILE,
    &NANQUANTILE,
];
