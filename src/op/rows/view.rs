//! Other layouts over the same memory.

use crate::args;
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::layout::{Layout, Shape, Strides};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, ex};
use crate::op::rows::arith::COPY;
use crate::op::tensor::Tensor;

const X: Param = Param::new("input", Kind::Tensor);

/// A requested shape in which one size may be -1.
pub fn resolve_shape(sizes: &Ints, numel: usize) -> Result<Shape> {
    let unknown: Vec<usize> = (0..sizes.len()).filter(|&at| sizes[at] == -1).collect();
    if unknown.len() > 1 {
        fail!(VALUE, "only one size can be -1, not {}", unknown.len());
    }
    let mut known = sizes.clone();
    unknown.iter().for_each(|&at| known[at] = 1);
    let mut shape = infer::shape(&known)?;
    let product = crate::base::layout::numel(&shape);
    if let Some(&at) = unknown.first() {
        match product {
            Some(n) if n > 0 && numel % n == 0 => shape[at] = numel / n,
            Some(0) if numel == 0 => {
                fail!(SHAPE, "the size -1 is ambiguous for a tensor of 0 elements and sizes {:?}", sizes.as_slice())
            }
            _ => fail!(SHAPE, "{numel} elements do not fit into sizes {:?}", sizes.as_slice()),
        }
    } else if product != Some(numel) {
        return Err(Diag::error(code::SHAPE, format!("{numel} elements do not fit into shape {:?}", shape.as_slice())));
    }
    Ok(shape)
}

pub static RESHAPE: Op = Op {
    name: "reshape",
    params: &[X, Param::new("shape", Kind::Sizes)],
    summary: "The same elements in another shape: a view where strides allow it, otherwise a copy.",
    examples: &[
        ex("tensor([1, 2, 3, 4]).reshape([2, 2])", "tensor([[1, 2],\n        [3, 4]])"),
        ex("ones([3]).reshape([2, 2])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(0);
        let view = x.view();
        let shape = resolve_shape(&a.ints(1).unwrap_or_default(), view.layout.numel())?;
        if shape.as_slice() == view.shape() {
            return Ok(vec![x.clone()]);
        }
        let source = if view.layout.view(&shape).is_some() { x.clone() } else { e.call(&CLONE, args![x])? };
        e.apply(&VIEW, args![&source, shape.as_slice()])
    }),
    grad: Grad::Composed,
    oracle: "a.reshape(2, 2)",
    ..Op::BASE
};

pub static VIEW: Op = Op {
    name: "view",
    params: &[X, Param::new("shape", Kind::Sizes)],
    summary: "The same memory in another shape; an error where strides do not allow it.",
    examples: &[
        ex("tensor([1, 2]).view([2, 1])", "tensor([[1],\n        [2]])"),
        ex("ones([3]).view([2, 2])", "E0201"),
    ],
    lower: Lower::View(|a| {
        let view = a.tensor(0).view();
        let shape = resolve_shape(&a.ints(1).unwrap_or_default(), view.layout.numel())?;
        view.layout.view(&shape).ok_or_else(|| {
            Diag::error(
                code::SHAPE,
                format!(
                    "shape {:?} is no view of a tensor with shape {:?} and strides {:?}",
                    shape.as_slice(),
                    view.shape(),
                    view.layout.strides.as_slice()
                ),
            )
            .help("use `.reshape(...)`, which copies where it must")
        })
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(0).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    call: CallForm::Method,
    oracle: "a.view(2, 1)",
    ..Op::BASE
};

pub static EXPAND: Op = Op {
    name: "expand",
    params: &[X, Param::new("size", Kind::Sizes)],
    summary: "Repeats dimensions of size 1 without copying; -1 keeps a size.",
    examples: &[
        ex("tensor([[1], [2]]).expand([2, 3])", "tensor([[1, 1, 1],\n        [2, 2, 2]])"),
        ex("ones([2]).expand([3])", "E0201"),
    ],
    lower: Lower::View(|a| {
        let view = a.tensor(0).view();
        let sizes = a.ints(1).unwrap_or_default();
        let (from, ndim) = (view.shape(), sizes.len());
        if ndim < from.len() {
            fail!(SHAPE, "{ndim} sizes are fewer than the tensor's {} dimensions", from.len());
        }
        let mut wanted = sizes.clone();
        for dim in ndim - from.len()..ndim {
            if wanted[dim] == -1 {
                wanted[dim] = from[dim + from.len() - ndim] as i64;
            }
        }
        let shape = infer::shape(&wanted)?;
        match crate::base::layout::broadcast(from, &shape) {
            Some(found) if found == shape => Ok(view.layout.broadcast_to(&shape)),
            _ => Err(Diag::error(code::SHAPE, format!("shape {from:?} cannot be expanded to {:?}", shape.as_slice()))),
        }
    }),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    call: CallForm::Method,
    oracle: "a.expand(2, 3)",
    ..Op::BASE
};

pub static CLONE: Op = Op {
    name: "clone",
    params: &[X],
    summary: "A copy in memory of its own.",
    examples: &[ex("tensor([1]).clone()", "tensor([1])")],
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        let out = e.empty(&x.shape(), x.dtype(), x.device())?;
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    oracle: "a.clone()",
    ..Op::BASE
};

/// Any layout over the buffer, given in elements.
pub static AS_STRIDED: Op = Op {
    name: "as_strided",
    params: &[
        X,
        Param::new("size", Kind::Ints),
        Param::new("stride", Kind::Ints),
        Param::opt("storage_offset", Kind::Int, Default::None),
    ],
    summary: "Any layout over the tensor's memory, in elements; an error where it would leave it.",
    examples: &[
        ex("tensor([1, 2, 3]).as_strided([2], [2])", "tensor([1, 3])"),
        ex("ones([3]).as_strided([4], [1])", "E0206"),
    ],
    lower: Lower::View(as_strided),
    grad: Grad::Stop("write the layout with `slice`, `permute` or `unfold`, which have gradients"),
    ..Op::BASE
};

fn as_strided(a: &Args) -> Result<Layout> {
    let view = a.tensor(0).view();
    let shape = infer::shape(&a.ints(1).unwrap_or_default())?;
    let strides: Strides = a.ints(2).unwrap_or_default().iter().map(|&s| s as isize).collect();
    if strides.len() != shape.len() {
        fail!(VALUE, "{} sizes but {} strides", shape.len(), strides.len());
    }
    if strides.iter().any(|&s| s < 0) {
        fail!(VALUE, "strides must not be negative");
    }
    let offset = a.opt_int(3).map_or(view.layout.offset as i64, |o| o);
    if offset < 0 {
        fail!(VALUE, "the offset must not be negative");
    }
    let room = (view.buffer.size_bytes / view.dtype.size_bytes()) as u128;
    let empty = shape.contains(&0);
    let last: u128 = shape.iter().zip(&strides).map(|(&n, &s)| n.saturating_sub(1) as u128 * s as u128).sum();
    if !empty && offset as u128 + last >= room {
        fail!(VALUE, "the layout reaches element {} of a buffer of {room}", offset as u128 + last);
    }
    Ok(Layout { shape, strides, offset: offset as usize })
}

/// Internal: a view whose base was changed in place; the engine knows its gradient.
pub static PART: Op = Op {
    name: "view",
    params: &[X],
    summary: "",
    grad: Grad::Stop("the engine spreads the gradient over the base"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static SELECT: Op = Op {
    name: "select",
    params: &[X, Param::new("dim", Kind::Dim), Param::new("index", Kind::Int)],
    summary: "One element of a dimension, which goes away; a view.",
    examples: &[ex("tensor([[1, 2], [3, 4]]).select(0, 1)", "tensor([3, 4])"), ex("ones([2]).select(0, 2)", "E0207")],
    lower: Lower::View(|a| {
        let view = a.tensor(0).view();
        if view.layout.ndim() == 0 {
            fail!(INDEX, "a 0-dimensional tensor cannot be indexed; `item()` gives its value");
        }
        let dim = infer::dim(a.int(1), view.layout.ndim())?;
        let (n, index) = (view.shape()[dim] as i64, a.int(2));
        if index < -n || index >= n {
            fail!(INDEX, "index {index} is out of range for dimension {dim} of size {n}");
        }
        Ok(view.layout.select(dim, if index < 0 { index + n } else { index } as usize))
    }),
    grad: Grad::Rule(|e, v| {
        let index = v.args.int(2);
        let g = e.call(&UNSQUEEZE, args![v.g(), infer::dim(v.args.int(1), v.meta(0).shape.len())?])?;
        let whole = e.zeros_like(v.meta(0))?;
        let dim = infer::dim(v.args.int(1), v.meta(0).shape.len())?;
        let n = v.meta(0).shape[dim] as i64;
        let index = if index < 0 { index + n } else { index };
        Ok(vec![Some(put_slice(e, &whole, &g, dim, index, index + 1, 1)?)])
    }),
    oracle: "a.select(0, 1)",
    ..Op::BASE
};

/// A dense gradient with `g` in a slice of it.
fn put_slice(
    e: &mut dyn Emit,
    whole: &Tensor,
    g: &Tensor,
    dim: usize,
    start: i64,
    stop: i64,
    step: i64,
) -> Result<Tensor> {
    e.call(&SLICE_SCATTER, args![whole, g, dim, start, stop, step])
}

/// `x[start..stop]` of one dimension, ends clamped as in Python.
pub static SLICE: Op = Op {
    name: "slice",
    params: &[
        X,
        Param::new("dim", Kind::Dim),
        Param::opt("start", Kind::Int, Default::None),
        Param::opt("stop", Kind::Int, Default::None),
        Param::opt("step", Kind::Int, Default::Int(1)),
    ],
    summary: "A range of one dimension; a view.",
    lower: Lower::View(|a| {
        let view = a.tensor(0).view();
        let dim = infer::dim(a.int(1), view.layout.ndim())?;
        let (start, step, len) = slice_bounds(a, 2, view.shape()[dim])?;
        Ok(view.layout.slice(dim, start, step, len))
    }),
    grad: Grad::Rule(|e, v| {
        let dim = infer::dim(v.args.int(1), v.meta(0).shape.len())?;
        let (start, step, len) = slice_bounds(v.args, 2, v.meta(0).shape[dim])?;
        let whole = e.zeros_like(v.meta(0))?;
        let stop = start + len.saturating_sub(1) * step + (len > 0) as usize;
        Ok(vec![Some(put_slice(e, &whole, v.g(), dim, start as i64, stop as i64, step as i64)?)])
    }),
    call: CallForm::Internal,
    oracle: "a[1:]",
    ..Op::BASE
};

/// First index, step and number of elements of a slice (arguments `start, stop, step` from `at` on).
pub fn slice_bounds(a: &Args, at: usize, n: usize) -> Result<(usize, usize, usize)> {
    let step = a.opt_int(at + 2).unwrap_or(1);
    if step <= 0 {
        fail!(VALUE, "the step of a slice must be positive, not {step}");
    }
    let n = n as i64;
    let clamp = |i: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(0, n);
    let start = clamp(a.opt_int(at).unwrap_or(0));
    let stop = clamp(a.opt_int(at + 1).unwrap_or(n)).max(start);
    let len = (stop - start).div_euclid(step) + ((stop - start).rem_euclid(step) != 0) as i64;
    Ok((start as usize, step as usize, len as usize))
}

/// A copy of the tensor with a slice of it replaced.
pub static SLICE_SCATTER: Op = Op {
    name: "slice_scatter",
    params: &[
        X,
        Param::new("src", Kind::Tensor),
        Param::opt("dim", Kind::Dim, Default::Int(0)),
        Param::opt("start", Kind::Int, Default::None),
        Param::opt("end", Kind::Int, Default::None),
        Param::opt("step", Kind::Int, Default::Int(1)),
    ],
    summary: "A copy in which a slice of one dimension is replaced by `src`.",
    examples: &[
        ex("zeros([3]).slice_scatter(ones([1]), 0, 1, 2)", "tensor([0., 1., 0.])"),
        ex("zeros([3]).slice_scatter(ones([2]), 0, 1, 2)", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let out = e.call(&CLONE, args![a.tensor(0)])?;
        let dim = infer::dim(a.int(2), out.ndim())?;
        let (start, step, len) = slice_bounds(a, 3, out.shape()[dim])?;
        let layout = out.view().layout.slice(dim, start, step, len);
        if layout.shape.as_slice() != a.tensor(1).shape().as_slice() {
            fail!(
                SHAPE,
                "`src` has shape {:?}, the slice {:?}",
                a.tensor(1).shape().as_slice(),
                layout.shape.as_slice()
            );
        }
        let place = e.alias(&out, layout);
        e.apply_inplace(&COPY, args![&place, a.tensor(1)])?;
        Ok(vec![out])
    }),
    grad: Grad::Rule(|e, v| {
        let dim = infer::dim(v.args.int(2), v.meta(0).shape.len())?;
        let (start, step, len) = slice_bounds(v.args, 3, v.meta(0).shape[dim])?;
        let stop = start + len.saturating_sub(1) * step + (len > 0) as usize;
        let zero = e.zeros_like(v.meta(1))?;
        let base = e.call(&SLICE_SCATTER, args![v.g(), &zero, dim, start, stop, step])?;
        let part = e.call(&SLICE, args![v.g(), dim, start, stop, step])?;
        Ok(vec![Some(base), Some(part)])
    }),
    oracle: "torch.slice_scatter(a, b, 0, 1, 2)",
    ..Op::BASE
};

pub static UNSQUEEZE: Op = Op {
    name: "unsqueeze",
    params: &[X, Param::new("dim", Kind::Dim)],
    summary: "A new dimension of size 1; a view.",
    examples: &[
        ex("tensor([1, 2]).unsqueeze(1)", "tensor([[1],\n        [2]])"),
        ex("ones([2]).unsqueeze(5)", "E0209"),
    ],
    lower: Lower::View(|a| {
        let view = a.tensor(0).view();
        let dim = infer::dim(a.int(1), view.layout.ndim() + 1)?;
        Ok(view.layout.unsqueeze(dim))
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(0).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    inplace: false,
    oracle: "a.unsqueeze(1)",
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&SELECT, &SLICE, &SLICE_SCATTER, &UNSQUEEZE, &RESHAPE, &VIEW, &EXPAND, &CLONE, &AS_STRIDED, &PART];
