//! Other layouts over the same memory.

use crate::args;
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::layout::{self, Layout, MemoryFormat, Shape, Strides};
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::pointwise::arith::COPY;
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

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
            Some(n) if n > 0 && numel.is_multiple_of(n) => shape[at] = numel / n,
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

signature!(reshape(input: Tensor, shape: Sizes));

pub static RESHAPE: Op = Op {
    name: "reshape",
    params: reshape::PARAMS,
    summary: "The same elements in another shape: a view where strides allow it, otherwise a copy.",
    examples: &[
        ex("tensor([1, 2, 3, 4]).reshape([2, 2])", "tensor([[1, 2],\n        [3, 4]])"),
        ex("ones([3]).reshape([2, 2])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let view = x.view();
        let shape = resolve_shape(&a.ints(reshape::shape).unwrap_or_default(), view.layout.numel())?;
        let op = if view.layout.view(&shape).is_some() { &VIEW } else { &RESHAPED };
        e.apply(op, args![x, shape.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Internal: a copy in another shape, which is not a view.
static RESHAPED: Op = Op {
    name: "_unsafe_view",
    params: reshape::PARAMS,
    summary: "A dense copy in another shape.",
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let shape = infer::shape(&a.ints(reshape::shape).unwrap_or_default())?;
        let out = e.empty(&shape, x.dtype(), x.device())?;
        let place = e.alias(&out, Layout::contiguous(&x.shape()));
        e.apply_inplace(&COPY, args![&place, x])?;
        Ok(vec![out])
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(reshape::input).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static VIEW: Op = Op {
    name: "view",
    params: reshape::PARAMS,
    summary: "The same memory in another shape; an error where strides do not allow it.",
    details: "`x.view(dtype)` is the same bytes as numbers of another dtype, which have no gradient; where these have another \
size, the last dimension grows or shrinks.",
    examples: &[
        ex("tensor([1, 2]).view([2, 1])", "tensor([[1],\n        [2]])"),
        ex("ones([3]).view([2, 2])", "E0201"),
    ],
    lower: Lower::View(|a| {
        let view = a.input().view();
        let shape = resolve_shape(&a.ints(reshape::shape).unwrap_or_default(), view.layout.numel())?;
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
        let shape = v.meta(reshape::input).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    call: CallForm::Method,
    forward: crate::op::row::Forward::Rule(|e, v| {
        e.call(&RESHAPE, args![v.tangent(), v.outputs[0].shape.as_slice()]).map(Some)
    }),
    ..Op::BASE
};

signature!(expand(input: Tensor, size: Sizes));

pub static EXPAND: Op = Op {
    name: "expand",
    params: expand::PARAMS,
    summary: "Repeats dimensions of size 1 without copying; -1 keeps a size.",
    examples: &[
        ex("tensor([[1], [2]]).expand([2, 3])", "tensor([[1, 1, 1],\n        [2, 2, 2]])"),
        ex("ones([2]).expand([3])", "E0201"),
    ],
    lower: Lower::View(|a| {
        let view = a.input().view();
        let sizes = a.ints(expand::size).unwrap_or_default();
        let (from, ndim) = (view.shape(), sizes.len());
        if ndim < from.len() {
            fail!(SHAPE, "{ndim} sizes are fewer than the tensor's {} dimensions", from.len());
        }
        let mut expected = sizes.clone();
        for dim in ndim - from.len()..ndim {
            if expected[dim] == -1 {
                expected[dim] = from[dim + from.len() - ndim] as i64;
            }
        }
        let shape = infer::shape(&expected)?;
        match crate::base::layout::broadcast(from, &shape) {
            Some(found) if found == shape => Ok(view.layout.broadcast_to(&shape)),
            _ => Err(Diag::error(code::SHAPE, format!("shape {from:?} cannot be expanded to {:?}", shape.as_slice()))),
        }
    }),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    call: CallForm::Method,
    ..Op::BASE
};

signature!(clone(
    input: Tensor,
    memory_format: Str(&["preserve_format", "contiguous_format", "channels_last", "channels_last_3d"]) = "preserve_format",
));

/// The layout of a copy in an order that is asked for.
pub fn formatted(format: MemoryFormat, shape: &[usize]) -> Result<Layout> {
    format.layout(shape).ok_or_else(|| {
        let (name, needed) = (format.name(), format.ndim().unwrap_or_default());
        let text = format!("\"{name}\" is for tensors of {needed} dimensions, not of {}", shape.len());
        Diag::error(code::SHAPE, text)
    })
}

/// `clone` as scripts call it: the copy's elements follow each other in memory as those of the tensor do, as in PyTorch.
pub static CLONE_AS_IT_LIES: Op = Op {
    name: "clone",
    params: clone::PARAMS,
    summary: "A copy in memory of its own.",
    examples: &[
        ex("tensor([1]).clone()", "tensor([1])"),
        ex("ones([2, 3]).t().clone().stride()", "[1, 3]"),
        ex("ones([2, 1]).expand([2, 3]).clone().stride()", "[3, 1]"),
        ex("ones([2, 3]).t().clone(\"contiguous_format\").stride()", "[2, 1]"),
        ex("ones([1, 2, 2, 4]).clone(\"channels_last\").stride()", "[16, 1, 8, 2]"),
        ex("ones([2]).clone(\"channels_last\")", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let mut out = e.empty(&x.shape(), x.dtype(), x.device())?;
        let layout = match MemoryFormat::parse(a.text(clone::memory_format)) {
            Some(format) => formatted(format, &x.shape())?,
            None => x.with_view(|view| layout::of_operands(&view.layout.shape, std::iter::once(&view.layout))),
        };
        // Samples of `vmap` are row-major.
        if x.samples().is_none() && out.with_view(|view| view.layout != layout) {
            out = e.alias(&out, layout);
        }
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// A copy whose elements are row-major.
pub static CLONE: Op = Op {
    name: "clone",
    params: unary::PARAMS,
    summary: "A copy in memory of its own.",
    lower: Lower::Steps(|e, a| {
        let x = a.input();
        let out = e.empty(&x.shape(), x.dtype(), x.device())?;
        Ok(vec![e.apply_inplace(&COPY, args![&out, x])?])
    }),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    forward: crate::op::row::Forward::Linear(&[0]),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(as_strided(
    input: Tensor, size: Ints, stride: Ints, storage_offset: Int = None, base_size: Ints = None,
    base_stride: Ints = None, base_offset: Int = 0,
));

/// Internal: any layout over the buffer, in elements. The last three say where the elements of `input` lie in
/// that buffer, for the gradient; without them it is dense and starts at 0.
pub static AS_STRIDED: Op = Op {
    name: "as_strided",
    params: as_strided::PARAMS,
    summary: "Any layout over the tensor's memory.",
    lower: Lower::View(as_strided),
    grad: Grad::Rule(as_strided_grad),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Transposed,
    ..Op::BASE
};

signature!(as_strided_call(input: Tensor, size: Ints, stride: Ints, storage_offset: Int = None));

/// `as_strided` as scripts call it.
pub static AS_STRIDED_CALL: Op = Op {
    name: "as_strided",
    params: as_strided_call::PARAMS,
    summary: "Any layout over the tensor's memory, in elements; an error where it would leave it.",
    examples: &[
        ex("tensor([1, 2, 3]).as_strided([2], [2])", "tensor([1, 3])"),
        ex("ones([3]).as_strided([4], [1])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let own = x.view().layout.clone();
        let strides: Ints = own.strides.iter().map(|&s| s as i64).collect();
        let offset = a.opt_int(as_strided_call::storage_offset).unwrap_or(own.offset as i64);
        let (size, stride) =
            (a.ints(as_strided_call::size).unwrap_or_default(), a.ints(as_strided_call::stride).unwrap_or_default());
        e.apply(&AS_STRIDED, args![x, size, stride, offset, own.shape.as_slice(), strides, own.offset])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

fn as_strided(a: &Args) -> Result<Layout> {
    let view = a.input().view();
    let layout = strided_layout(a, view.layout.offset)?;
    let room = (view.buffer.size_bytes / view.dtype.size_bytes()) as u128;
    let last: u128 =
        layout.shape.iter().zip(&layout.strides).map(|(&n, &s)| n.saturating_sub(1) as u128 * s as u128).sum();
    if !layout.is_empty() && layout.offset as u128 + last >= room {
        fail!(VALUE, "the layout reaches element {} of a buffer of {room}", layout.offset as u128 + last);
    }
    Ok(layout)
}

/// Arguments `size, stride, storage_offset` from 1 on.
pub fn strided_layout(a: &Args, own_offset: usize) -> Result<Layout> {
    let shape = infer::shape(&a.ints(as_strided::size).unwrap_or_default())?;
    let strides: Strides = a.ints(as_strided::stride).unwrap_or_default().iter().map(|&s| s as isize).collect();
    if strides.len() != shape.len() {
        fail!(VALUE, "{} sizes but {} strides", shape.len(), strides.len());
    }
    if strides.iter().any(|&s| s < 0) {
        fail!(VALUE, "strides must not be negative");
    }
    let offset = a.opt_int(as_strided::storage_offset).unwrap_or(own_offset as i64);
    if offset < 0 {
        fail!(VALUE, "the offset must not be negative");
    }
    Ok(Layout { shape, strides, offset: offset as usize })
}

/// The gradient is summed over the buffer, and read back where the operand's elements lie. An element that the
/// operand itself shows several times (an expanded operand) shares its sum evenly, as in PyTorch.
fn as_strided_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let part = strided_layout(v.args, 0)?;
    let shape = v.meta(as_strided::input).shape.clone();
    let base = match v.args.ints(as_strided::base_stride) {
        Some(strides) => Layout {
            shape,
            strides: strides.iter().map(|&s| s as isize).collect(),
            offset: v.args.int(as_strided::base_offset) as usize,
        },
        None => Layout::contiguous(&shape),
    };
    let (Some((part_start, part_end)), Some((base_start, base_end))) = (part.extent(), base.extent()) else {
        return Ok(vec![Some(e.zeros_like(v.meta(as_strided::input))?)]);
    };
    let (start, end) = (part_start.min(base_start), part_end.max(base_end));
    let moved = |layout: &Layout| Layout { offset: layout.offset - start, ..layout.clone() };
    let (part, base) = (moved(&part), moved(&base));
    let mut flat = spread(e, v.g(), &[end - start], &part)?;
    if base.may_overlap() {
        let ones = e.full(&base.shape, crate::base::dtype::Scalar::Int(1), v.meta(as_strided::input))?;
        let counts = spread(e, &ones, &[end - start], &base)?;
        // Places that the operand does not show are 0 / 0 and never read.
        flat = e.div(&flat, &counts)?;
    }
    let (size, strides) = sizes(&base);
    Ok(vec![Some(e.call(&AS_STRIDED, args![&flat, size, strides, base.offset])?)])
}

fn sizes(layout: &Layout) -> (Ints, Ints) {
    (layout.shape.iter().map(|&n| n as i64).collect(), layout.strides.iter().map(|&s| s as i64).collect())
}

signature!(spread(input: Tensor, size: Ints, stride: Ints, storage_offset: Int, shape: Ints));

/// Internal: zeros of a shape to which `input` is added in a strided window: the gradient of every view.
pub static SPREAD: Op = Op {
    name: "strided_add",
    params: spread::PARAMS,
    summary: "Zeros to which the tensor is added in a strided window.",
    lower: Lower::Kernel(|_, a| {
        let g = a.input();
        let shape = infer::shape(&a.ints(spread::shape).unwrap_or_default())?;
        let call = KernelCall::new("strided_add", &crate::kernel::copy::STRIDED_ADD).input(g);
        Ok(call
            .ints(&a.ints(spread::stride).unwrap_or_default())
            .int(a.int(spread::storage_offset))
            .output(&shape, g.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let g = e.call(&CONTIGUOUS, args![v.g()])?;
        let own = g.view().layout.offset as i64;
        let base = own + v.args.int(spread::storage_offset);
        let list = |at: usize| v.args.ints(at).unwrap_or_default();
        let dense = Layout::contiguous(&g.shape());
        let (size, stride) = sizes(&dense);
        Ok(vec![Some(e.call(&AS_STRIDED, args![&g, list(1), list(2), base, size, stride, own])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// Zeros of `shape` with `g` added where `part` lies in the dense tensor of that shape.
pub fn spread(e: &mut dyn Emit, g: &Tensor, shape: &[usize], part: &Layout) -> Result<Tensor> {
    let (size, strides) = sizes(part);
    e.call(&SPREAD, args![g, size, strides, part.offset, shape])
}

/// The gradient rule of a view that is given by its layout.
pub fn spread_view(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    rule: fn(&Layout, &Args) -> Result<Layout>,
) -> Result<Vec<Option<Tensor>>> {
    let dense = Layout::contiguous(&v.meta(unary::input).shape);
    let part = rule(&dense, v.args)?;
    Ok(vec![Some(spread(e, v.g(), &dense.shape, &part)?)])
}

signature!(contiguous(
    input: Tensor,
    memory_format: Str(&["contiguous_format", "channels_last", "channels_last_3d"]) = "contiguous_format",
));

/// The tensor itself when it is dense, otherwise a copy.
pub static CONTIGUOUS: Op = Op {
    name: "contiguous",
    params: contiguous::PARAMS,
    summary: "The tensor itself when its elements follow each other in memory, otherwise a copy.",
    details: "\"channels_last\" and \"channels_last_3d\" are orders in which the channels of a pixel follow each other, of 4 and 5 \
dimensions.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).t().contiguous()", "tensor([[1, 3],\n        [2, 4]])"),
        ex("ones([1, 2, 2, 4]).contiguous(\"channels_last\").stride()", "[16, 1, 8, 2]"),
        ex("ones([2]).contiguous(\"channels_last\")", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let format = MemoryFormat::parse(a.text(contiguous::memory_format)).unwrap_or(MemoryFormat::Contiguous);
        if format != MemoryFormat::Contiguous {
            let is_so = x.with_view(|view| format.is_of(&view.layout));
            return if is_so { Ok(vec![x.clone()]) } else { e.apply(&CLONE_AS_IT_LIES, args![x, format.name()]) };
        }
        if x.view().layout.is_contiguous() { Ok(vec![x.clone()]) } else { e.apply(&CLONE, args![x]) }
    }),
    grad: Grad::Composed,
    call: CallForm::Method,
    ..Op::BASE
};

/// Internal: a gradient of a `piecewise_linear` row. It declares that it does not depend on that row's operands.
pub static STILL: Op = Op {
    name: "grad",
    params: unary::PARAMS,
    summary: "",
    grad: Grad::Rule(|e, v| {
        let mut grads = vec![Some(v.g().clone())];
        for slot in 1..v.inputs.len() {
            grads.push(if v.needs_slot(slot) { Some(e.zeros_like(v.slot_meta(slot))?) } else { None });
        }
        Ok(grads)
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Rule(|_, v| Ok(v.grads[0].clone())),
    ..Op::BASE
};

signature!(piecewise_linear(input: Tensor, other: Tensor = None));

/// Internal: an operand of a `piecewise_linear` composition, and another that its gradient reads without depending on
/// it.
pub static STRAIGHT: Op = Op {
    name: "view",
    params: piecewise_linear::PARAMS,
    summary: "",
    lower: Lower::View(|a| Ok(a.input().view().layout.clone())),
    grad: Grad::Rule(|_, v| Ok(vec![Some(v.g().clone())])),
    piecewise_linear: true,
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(select(input: Tensor, dim: Dim, index: Int));

pub static SELECT: Op = Op {
    name: "select",
    params: select::PARAMS,
    summary: "One element of a dimension, which is removed; a view.",
    examples: &[ex("tensor([[1, 2], [3, 4]]).select(0, 1)", "tensor([3, 4])"), ex("ones([2]).select(0, 2)", "E0207")],
    lower: Lower::View(|a| select(&a.input().view().layout, a)),
    grad: Grad::Window(select),
    ..Op::BASE
};

/// The message of an index that a dim does not have.
pub fn out_of_range(index: i64, dim: usize, n: usize) -> String {
    format!("index {index} is out of range for dimension {dim} of size {n}")
}

pub fn select(layout: &Layout, a: &Args) -> Result<Layout> {
    if layout.ndim() == 0 {
        fail!(INDEX, "a 0-dimensional tensor cannot be indexed; `item()` gives its value");
    }
    let dim = infer::dim(a.int(select::dim), layout.ndim())?;
    let (n, index) = (layout.shape[dim] as i64, a.int(select::index));
    if index < -n || index >= n {
        return Err(Diag::error(code::INDEX, out_of_range(index, dim, layout.shape[dim])));
    }
    Ok(layout.select(dim, if index < 0 { index + n } else { index } as usize))
}

fn slice(layout: &Layout, a: &Args) -> Result<Layout> {
    if layout.ndim() == 0 {
        fail!(DIM, "a 0-dimensional tensor has no ranges");
    }
    let dim = infer::dim(a.int(slice::dim), layout.ndim())?;
    let (start, step, len) = slice_bounds(a, 2, layout.shape[dim])?;
    Ok(layout.slice(dim, start, step, len))
}

signature!(slice(input: Tensor, dim: Dim, start: Int = None, stop: Int = None, step: Int = 1));

/// `x[start..stop]` of one dimension, ends clamped as in Python.
pub static SLICE: Op = Op {
    name: "slice",
    params: slice::PARAMS,
    summary: "A range of one dimension; a view.",
    lower: Lower::View(|a| slice(&a.input().view().layout, a)),
    grad: Grad::Window(slice),
    call: CallForm::Internal,
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

signature!(slice_scatter(
    input: Tensor, src: Tensor, dim: Dim = 0, start: Int = None, end: Int = None, step: Int = 1,
));

/// A copy of the tensor with a slice of it replaced.
pub static SLICE_SCATTER: Op = Op {
    name: "slice_scatter",
    params: slice_scatter::PARAMS,
    summary: "A copy in which a slice of one dimension is replaced by `src`.",
    examples: &[
        ex("zeros([3]).slice_scatter(ones([1]), 0, 1, 2)", "tensor([0., 1., 0.])"),
        ex("zeros([3]).slice_scatter(ones([2]), 0, 1, 2)", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let out = e.call(&CLONE, args![a.input()])?;
        if out.ndim() == 0 {
            fail!(DIM, "a 0-dimensional tensor has no ranges");
        }
        let dim = infer::dim(a.int(slice_scatter::dim), out.ndim())?;
        let (start, step, len) = slice_bounds(a, 3, out.shape()[dim])?;
        let layout = out.view().layout.slice(dim, start, step, len);
        if layout.shape.as_slice() != a.tensor(slice_scatter::src).shape().as_slice() {
            fail!(
                SHAPE,
                "`src` has shape {:?}, the slice {:?}",
                a.tensor(slice_scatter::src).shape().as_slice(),
                layout.shape.as_slice()
            );
        }
        let place = e.alias(&out, layout);
        e.apply_inplace(&COPY, args![&place, a.tensor(slice_scatter::src)])?;
        Ok(vec![out])
    }),
    grad: Grad::Rule(|e, v| {
        let dim = infer::dim(v.args.int(slice_scatter::dim), v.meta(slice_scatter::input).shape.len())?;
        let (start, step, len) = slice_bounds(v.args, 3, v.meta(slice_scatter::input).shape[dim])?;
        let stop = start + len.saturating_sub(1) * step + (len > 0) as usize;
        let zero = e.zeros_like(v.meta(slice_scatter::src))?;
        let base = e.call(&SLICE_SCATTER, args![v.g(), &zero, dim, start, stop, step])?;
        let part = e.call(&SLICE, args![v.g(), dim, start, stop, step])?;
        Ok(vec![Some(base), Some(part)])
    }),
    forward: crate::op::row::Forward::Linear(&[0, 1]),
    ..Op::BASE
};

signature!(unsqueeze(input: Tensor, dim: Dim));

pub static UNSQUEEZE: Op = Op {
    name: "unsqueeze",
    params: unsqueeze::PARAMS,
    summary: "A new dimension of size 1; a view.",
    examples: &[
        ex("tensor([1, 2]).unsqueeze(1)", "tensor([[1],\n        [2]])"),
        ex("ones([2]).unsqueeze(5)", "E0209"),
    ],
    lower: Lower::View(|a| {
        let view = a.input().view();
        let dim = infer::dim(a.int(unsqueeze::dim), view.layout.ndim() + 1)?;
        Ok(view.layout.unsqueeze(dim))
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(unsqueeze::input).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    inplace: false,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &SELECT,
    &SLICE,
    &SLICE_SCATTER,
    &UNSQUEEZE,
    &RESHAPE,
    &RESHAPED,
    &VIEW,
    &EXPAND,
    &CLONE_AS_IT_LIES,
    &CLONE,
    &CONTIGUOUS,
    &AS_STRIDED_CALL,
    &AS_STRIDED,
    &SPREAD,
];
