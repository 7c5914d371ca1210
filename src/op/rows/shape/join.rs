//! Tensors put together: `cat`, `stack` and their relatives, products and choices of elements.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::copy;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer::{self, Operand};
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::creation::create::triangle_indices;
use crate::op::rows::indexing::index::INDEX;
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::shape::rearrange::{TRANSPOSE, at_least};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SLICE, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::signature;

fn some(a: &Args) -> Result<&[Tensor]> {
    match a.tensor_list(cat::tensors) {
        [] => fail!(VALUE, "the list of tensors is empty"),
        list => Ok(list),
    }
}

/// PyTorch lets a tensor of shape `[0]` go with anything.
fn is_skipped(shape: &[usize]) -> bool {
    shape == [0]
}

fn cat(e: &mut dyn Emit, a: &Args) -> Result<KernelCall> {
    let list = some(a)?;
    if let Some(at) = list.iter().position(|x| x.ndim() == 0) {
        return Err(Diag::error(code::SHAPE, format!("tensor {at} is 0-dimensional and cannot be joined"))
            .help("`stack` joins tensors along a new dimension"));
    }
    let model = list.iter().find(|x| !is_skipped(&x.shape())).unwrap_or(&list[0]);
    let mut shape = model.shape();
    let dim = infer::dim(a.int(cat::dim), shape.len())?;
    shape[dim] = 0;
    for (at, x) in list.iter().enumerate() {
        let other = x.shape();
        if is_skipped(&other) {
            continue;
        }
        let fits = other.len() == shape.len() && (0..shape.len()).all(|d| d == dim || other[d] == shape[d]);
        if !fits {
            return Err(Diag::error(
                code::SHAPE,
                format!(
                    "tensor {at} has shape {:?}, which does not go with {:?}: sizes must agree except in dimension {dim}",
                    other.as_slice(),
                    model.shape().as_slice()
                ),
            ));
        }
        shape[dim] += other[dim];
    }
    let operands: Vec<Operand<'_>> = list.iter().map(Operand::of).collect();
    let dtype = infer::result_type(&operands, e.default_float());
    Ok(KernelCall::new("cat", &copy::CAT).inputs(list).int(dim as i64).output(&shape, dtype))
}

/// Each tensor's part of the gradient: a view.
fn cat_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let dim = infer::dim(v.args.int(cat::dim), v.g().ndim())?;
    let mut start = 0;
    let mut grads = Vec::with_capacity(v.inputs.len());
    for slot in 0..v.inputs.len() {
        let shape = v.slot_meta(slot).shape.clone();
        if is_skipped(&shape) {
            grads.push(Some(e.zeros_like(v.slot_meta(slot))?));
            continue;
        }
        let part = v.needs_slot(slot).then(|| e.call(&SLICE, args![v.g(), dim, start, start + shape[dim], 1]));
        grads.push(part.transpose()?);
        start += shape[dim];
    }
    Ok(grads)
}

signature!(cat(tensors: Tensors, dim: Dim = 0));

pub static CAT: Op = Op {
    name: "cat",
    aliases: &["concat"],
    params: cat::PARAMS,
    summary: "Joins tensors along an existing dimension.",
    details: "Sizes must agree in the other dimensions; dtypes are promoted. A tensor of shape [0] is skipped.",
    examples: &[
        ex("cat([tensor([1, 2]), tensor([3])])", "tensor([1, 2, 3])"),
        ex("cat([ones([2, 3]), ones([2, 2])])", "E0201"),
        ex("cat([ones([2])], 1)", "E0209"),
        ex("cat([])", "E0206"),
    ],
    lower: Lower::Kernel(cat),
    grad: Grad::Rule(cat_grad),
    call: CallForm::Function,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(concatenate(tensors: Tensors, axis: Dim = 0));

pub static CONCATENATE: Op = Op {
    name: "concatenate",
    params: concatenate::PARAMS,
    summary: "Joins tensors along an existing dimension; another name of `cat`.",
    examples: &[ex("concatenate([tensor([1]), tensor([3])])", "tensor([1, 3])"), ex("concatenate([])", "E0206")],
    lower: Lower::Compose(|e, a| e.apply(&CAT, a.clone())),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub fn stack(e: &mut dyn Emit, list: &[Tensor], dim: i64) -> Result<Tensor> {
    let shape = list[0].shape();
    let dim = infer::dim(dim, shape.len() + 1)?;
    if let Some(at) = list.iter().position(|x| x.shape() != shape) {
        fail!(
            SHAPE,
            "tensor {at} has shape {:?}, the first {:?}; all must be equal",
            list[at].shape().as_slice(),
            shape.as_slice()
        );
    }
    let rows: Result<Vec<Tensor>> = list.iter().map(|x| e.call(&UNSQUEEZE, args![x, dim])).collect();
    e.call(&CAT, args![rows?, dim])
}

pub static STACK: Op = Op {
    name: "stack",
    params: cat::PARAMS,
    summary: "Joins tensors of one shape along a new dimension.",
    examples: &[
        ex("stack([tensor([1, 2]), tensor([3, 4])])", "tensor([[1, 2],\n        [3, 4]])"),
        ex("stack([ones([2]), ones([3])])", "E0201"),
        ex("stack([ones([2])], 2)", "E0209"),
        ex("stack([])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![stack(e, some(a)?, a.int(cat::dim))?])),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn joined(e: &mut dyn Emit, a: &Args, least: usize, dim: fn(usize) -> i64) -> Result<Vec<Tensor>> {
    let list: Vec<Tensor> = some(a)?.iter().map(|x| at_least(e, x, least)).collect::<Result<_>>()?;
    let dim = dim(list[0].ndim());
    e.apply(&CAT, args![list, dim])
}

signature!(joins(tensors: Tensors));

macro_rules! joins {
    ($NAME:ident, $name:literal, [$($alias:literal),*], $least:literal, $dim:expr, $summary:literal, $shape:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            aliases: &[$($alias),*],
            params: joins::PARAMS,
            summary: $summary,
            examples: &[
                ex(concat!($name, "([ones([2]), ones([2])]).shape"), $shape),
                ex(concat!($name, "([ones([2, 2, 2]), ones([3, 3, 3])])"), "E0201"),
                ex(concat!($name, "([])"), "E0206"),
            ],
            lower: Lower::Compose(|e, a| joined(e, a, $least, $dim)),
            grad: Grad::Composed,
            call: CallForm::Function,
            ..Op::BASE
        };
    };
}
joins!(
    HSTACK,
    "hstack",
    [],
    1,
    |ndim| (ndim > 1) as i64,
    "Joins along the second dimension, vectors along the first.",
    "[4]"
);
joins!(VSTACK, "vstack", ["row_stack"], 2, |_| 0, "Joins along the first dimension; vectors are rows.", "[2, 2]");
joins!(DSTACK, "dstack", [], 3, |_| 2, "Joins along the third dimension.", "[1, 2, 2]");

pub static COLUMN_STACK: Op = Op {
    name: "column_stack",
    params: joins::PARAMS,
    summary: "Joins along the second dimension; vectors are columns.",
    examples: &[
        ex("column_stack([tensor([1, 2]), tensor([3, 4])])", "tensor([[1, 3],\n        [2, 4]])"),
        ex("column_stack([ones([2]), ones([3])])", "E0201"),
        ex("column_stack([])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let column =
            |x: &Tensor| if x.ndim() < 2 { e.call(&RESHAPE, args![x, &[x.numel(), 1][..]]) } else { Ok(x.clone()) };
        let list: Vec<Tensor> = some(a)?.iter().map(column).collect::<Result<_>>()?;
        e.apply(&CAT, args![list, 1])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static BLOCK_DIAG: Op = Op {
    name: "block_diag",
    params: joins::PARAMS,
    summary: "A matrix with the given ones along its diagonal, zero elsewhere.",
    examples: &[
        ex("block_diag(tensor([[1]]), tensor([[2, 3]]))", "tensor([[1, 0, 0],\n        [0, 2, 3]])"),
        ex("block_diag(ones([2, 2, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(joins::tensors);
        if let Some(at) = list.iter().position(|x| x.ndim() > 2) {
            fail!(SHAPE, "tensor {at} has {} dimensions, at most 2 are taken", list[at].ndim());
        }
        if list.is_empty() {
            let (dtype, device) = (e.default_float(), e.default_device());
            return Ok(vec![e.empty(&[1, 0], dtype, device)?]);
        }
        // As matrices, all of them would count alike.
        let operands: Vec<Operand<'_>> = list.iter().map(Operand::of).collect();
        let dtype = infer::result_type(&operands, e.default_float());
        let mut blocks = Vec::with_capacity(list.len());
        for x in list {
            let block = at_least(e, x, 2)?;
            blocks.push(e.cast(&block, dtype)?);
        }
        let width: usize = blocks.iter().map(|x| x.shape()[1]).sum();
        let mut left = 0;
        let mut rows = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let own = block.shape()[1];
            let pads = [left as i64, (width - left - own) as i64];
            rows.push(e.call(&PAD_CONSTANT, args![block, &pads[..], 0])?);
            left += own;
        }
        e.apply(&CAT, args![rows, 0])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static CARTESIAN_PROD: Op = Op {
    name: "cartesian_prod",
    params: joins::PARAMS,
    summary: "Every combination of one element from each vector, one a row.",
    examples: &[
        ex("cartesian_prod(tensor([1, 2]), tensor([3]))", "tensor([[1, 3],\n        [2, 3]])"),
        ex("cartesian_prod(ones([2, 2]), ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = some(a)?;
        if let Some(at) = list.iter().position(|x| x.ndim() != 1) {
            fail!(SHAPE, "tensor {at} has {} dimensions, vectors are expected", list[at].ndim());
        }
        infer::same_dtype(&list.iter().map(|x| ("tensors", x)).collect::<Vec<_>>())?;
        if list.len() == 1 {
            return Ok(vec![list[0].clone()]);
        }
        let sizes: Vec<usize> = list.iter().map(Tensor::numel).collect();
        let mut columns = Vec::with_capacity(list.len());
        for (at, x) in list.iter().enumerate() {
            let mut shape = vec![1; list.len()];
            shape[at] = sizes[at];
            let x = e.call(&RESHAPE, args![x, shape.as_slice()])?;
            let x = e.call(&EXPAND, args![&x, sizes.as_slice()])?;
            columns.push(e.call(&RESHAPE, args![&x, &[sizes.iter().product::<usize>()][..]])?);
        }
        Ok(vec![stack(e, &columns, 1)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// Bound: numbers of an index made on the host.
const MOST_CHOICES: usize = 1 << 26;

/// All increasing choices of `r` of `n` numbers in order, one after the other.
fn choices(e: &dyn Emit, n: usize, r: usize, repeated: bool) -> Result<Vec<i64>> {
    if r > MOST_CHOICES {
        fail!(TOO_LARGE, "choices of {r} elements; {MOST_CHOICES} are the most");
    }
    let from = if repeated { (n + r).saturating_sub(1) } else { n };
    let mut count = 1.0f64;
    for i in 0..r.min(from.saturating_sub(r)) {
        count *= (from - i) as f64 / (i + 1) as f64;
        if count * r as f64 > MOST_CHOICES as f64 {
            fail!(TOO_LARGE, "more than {} choices of {r} elements out of {n}", MOST_CHOICES / r.max(1));
        }
    }
    // The list and its bytes.
    e.host_room((count as usize).saturating_mul(r * 16))?;
    let mut all = Vec::new();
    let mut now: Vec<usize> = if repeated { vec![0; r] } else { (0..r).collect() };
    if n == 0 || (!repeated && r > n) {
        return Ok(all);
    }
    let last = |at: usize| if repeated { n - 1 } else { n - r + at };
    loop {
        if all.len() + r > MOST_CHOICES {
            fail!(TOO_LARGE, "more than {} choices of {r} elements out of {n}", MOST_CHOICES / r.max(1));
        }
        all.extend(now.iter().map(|&i| i as i64));
        let Some(at) = (0..r).rev().find(|&at| now[at] < last(at)) else { return Ok(all) };
        now[at] += 1;
        for next in at + 1..r {
            now[next] = if repeated { now[at] } else { now[next - 1] + 1 };
        }
    }
}

/// All increasing choices of 2 of the places of a vector, in order: the places of a triangle above the diagonal, or with it.
fn pairs(e: &mut dyn Emit, x: &Tensor, repeated: bool) -> Result<Tensor> {
    let (n, above) = (x.numel(), if repeated { 0 } else { 1 });
    // The square of which these are a part is a size, so that its numbers are below 2^63.
    infer::size_bytes(&[n, n], DType::I64)?;
    let count = n * (n + 1 - 2 * above) / 2;
    let last = (n - 1 - above) as i64;
    let index = triangle_indices(e, count, last, 1, n as i64, true, x.device())?;
    e.call(&TRANSPOSE, args![&index, 0, 1])
}

signature!(combinations(input: Tensor, r: Int = 2, with_replacement: Bool = false));

pub static COMBINATIONS: Op = Op {
    name: "combinations",
    params: combinations::PARAMS,
    summary: "Every choice of `r` elements of a vector, in order, one a row.",
    examples: &[
        ex("combinations(tensor([1, 2, 3]))", "tensor([[1, 2],\n        [1, 3],\n        [2, 3]])"),
        ex("combinations(ones([2, 2]))", "E0201"),
        ex("combinations(ones([2]), -1)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, r) = (a.input(), a.int(combinations::r));
        if x.ndim() != 1 {
            fail!(SHAPE, "a vector is expected, not shape {:?}", x.shape().as_slice());
        }
        if r < 0 {
            fail!(VALUE, "the number of elements must not be negative, is {r}");
        }
        if r == 0 {
            return Ok(vec![e.empty(&[0], x.dtype(), x.device())?]);
        }
        if r == 2 && x.numel() > 1 {
            let index = pairs(e, x, a.flag(combinations::with_replacement))?;
            return e
                .apply(&INDEX, Args(smallvec::smallvec![Arg::Tensor(x.clone()), Arg::OptTensors(vec![Some(index)])]));
        }
        let index = choices(e, x.numel(), r as usize, a.flag(combinations::with_replacement))?;
        let bytes: Vec<u8> = index.iter().flat_map(|i| i.to_ne_bytes()).collect();
        let index = e.upload(&bytes, &[index.len() / r as usize, r as usize], DType::I64, x.device())?;
        e.apply(&INDEX, Args(smallvec::smallvec![Arg::Tensor(x.clone()), Arg::OptTensors(vec![Some(index)])]))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &CAT,
    &CONCATENATE,
    &STACK,
    &HSTACK,
    &VSTACK,
    &DSTACK,
    &COLUMN_STACK,
    &BLOCK_DIAG,
    &CARTESIAN_PROD,
    &COMBINATIONS,
];
