//! Views that only rearrange sizes and strides: permutations, squeezes, diagonals, windows. Copies nothing,
//! except where a reshape must.

use crate::args;
use crate::base::attr::Ints;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::layout::Layout;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, ex};
use crate::op::rows::pointwise::complex_parts::CONJ;
use crate::op::rows::shape::view::{
    AS_STRIDED_CALL, CONTIGUOUS, EXPAND, RESHAPE, UNSQUEEZE, VIEW, resolve_shape, spread_view,
};
use crate::op::rows::signatures::{two_tensors, unary};
use crate::op::tensor::Tensor;
use crate::signature;
use smallvec::SmallVec;

type Dims = SmallVec<[usize; 6]>;

/// The layout of a view row's operand.
fn own(a: &Args) -> Layout {
    a.input().view().layout.clone()
}

/// All dims of a tensor, each named once.
fn permutation(values: &[i64], ndim: usize) -> Result<Dims> {
    if values.len() != ndim {
        fail!(VALUE, "{} dims are given, the tensor has {ndim}", values.len());
    }
    distinct(values, ndim)
}

/// Dims named at most once; unlike `infer::dims`, an empty list means none.
pub fn distinct(values: &[i64], ndim: usize) -> Result<Dims> {
    let mut dims = Dims::new();
    for &value in values {
        let dim = infer::dim(value, ndim)?;
        if dims.contains(&dim) {
            fail!(VALUE, "dimension {dim} appears twice in the list of dims");
        }
        dims.push(dim);
    }
    Ok(dims)
}

signature!(permute(input: Tensor, dims: Sizes));

pub static PERMUTE: Op = Op {
    name: "permute",
    params: permute::PARAMS,
    summary: "The same elements with dimensions in another order; a view.",
    examples: &[
        ex("ones([2, 3, 4]).permute([2, 0, 1]).shape", "[4, 2, 3]"),
        ex("ones([2, 3]).permute([0, 0])", "E0206"),
        ex("ones([2, 3]).permute([0, 2])", "E0209"),
    ],
    lower: Lower::View(|a| {
        let layout = own(a);
        Ok(layout.permute(&permutation(&a.ints(permute::dims).unwrap_or_default(), layout.ndim())?))
    }),
    grad: Grad::Rule(|e, v| {
        let dims = permutation(&v.args.ints(permute::dims).unwrap_or_default(), v.meta(permute::input).shape.len())?;
        let mut back: Ints = SmallVec::from_elem(0, dims.len());
        dims.iter().enumerate().for_each(|(at, &dim)| back[dim] = at as i64);
        Ok(vec![Some(e.call(&PERMUTE, args![v.g(), back])?)])
    }),
    ..Op::BASE
};

fn transpose(layout: &Layout, a: &Args) -> Result<Layout> {
    let (first, second) =
        (infer::dim(a.int(transpose::dim0), layout.ndim())?, infer::dim(a.int(transpose::dim1), layout.ndim())?);
    let mut out = layout.clone();
    if layout.ndim() > 0 {
        out.shape.swap(first, second);
        out.strides.swap(first, second);
    }
    Ok(out)
}

signature!(transpose(input: Tensor, dim0: Dim, dim1: Dim));

pub static TRANSPOSE: Op = Op {
    name: "transpose",
    params: transpose::PARAMS,
    summary: "Swaps two dimensions; a view.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).transpose(0, 1)", "tensor([[1, 3],\n        [2, 4]])"),
        ex("ones([2, 3]).transpose(0, 2)", "E0209"),
    ],
    lower: Lower::View(|a| transpose(&own(a), a)),
    grad: Grad::Rule(|e, v| {
        Ok(vec![Some(e.call(&TRANSPOSE, args![v.g(), v.args.int(transpose::dim0), v.args.int(transpose::dim1)])?)])
    }),
    ..Op::BASE
};

/// A transposed matrix, or a batch of them.
pub fn transposed(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    e.call(&TRANSPOSE, args![x, -2, -1])
}

/// A transposed matrix, or a batch of them; of complex numbers also conjugated.
pub fn adjoint(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let x = transposed(e, x)?;
    if x.dtype().is_complex() { e.call(&CONJ, args![&x]) } else { Ok(x) }
}

macro_rules! swap {
    ($NAME:ident, $name:literal, $list:ident($first:ident, $second:ident)) => {
        signature!($list(input: Tensor, $first: Dim, $second: Dim));

        pub static $NAME: Op = Op {
            name: $name,
            params: $list::PARAMS,
            summary: "Swaps two dimensions; a view. Another name of `transpose`.",
            examples: &[
                ex(concat!("ones([2, 3]).", $name, "(0, 1).shape"), "[3, 2]"),
                ex(concat!("ones([2, 3]).", $name, "(0, 2)"), "E0209"),
            ],
            lower: Lower::Compose(|e, a| e.apply(&TRANSPOSE, a.clone())),
            grad: Grad::Composed,
            ..Op::BASE
        };
    };
}
swap!(SWAPAXES, "swapaxes", swapaxes(axis0, axis1));
swap!(SWAPDIMS, "swapdims", swapdims(dim0, dim1));

pub static T: Op = Op {
    name: "t",
    params: unary::PARAMS,
    summary: "The transposed matrix; a view. Vectors and numbers pass unchanged.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).t()", "tensor([[1, 3],\n        [2, 4]])"),
        ex("ones([2, 2, 2]).t()", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        match x.ndim() {
            0 | 1 => e.apply(&EXPAND, args![x, x.shape().as_slice()]),
            2 => e.apply(&TRANSPOSE, args![x, 0, 1]),
            n => Err(Diag::error(code::SHAPE, format!("a tensor of at most 2 dimensions is expected, not {n}"))
                .help("`.mT` transposes the last two dimensions; `.permute(..)` gives any order")),
        }
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// The property `x.T`.
pub static REVERSED: Op = Op {
    name: "T",
    aliases: &[".T"],
    params: unary::PARAMS,
    summary: "The tensor with its dimensions in reverse order; a view.",
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let dims: Ints = (0..x.ndim() as i64).rev().collect();
        e.apply(&PERMUTE, args![x, dims])
    }),
    grad: Grad::Composed,
    call: CallForm::Internal,
    ..Op::BASE
};

pub static ADJOINT: Op = Op {
    name: "adjoint",
    aliases: &[".mH"],
    params: unary::PARAMS,
    summary: "Swaps the last two dimensions: every matrix of a batch transposed, a view; complex ones also conjugated.",
    examples: &[ex("ones([4, 2, 3]).adjoint().shape", "[4, 3, 2]"), ex("ones([2]).adjoint()", "E0201")],
    lower: Lower::Compose(matrix_t),
    grad: Grad::Composed,
    conjugates: true,
    ..Op::BASE
};

fn matrix_t(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let x = a.input();
    if x.ndim() < 2 {
        fail!(SHAPE, "matrices are expected (at least 2 dimensions), not shape {:?}", x.shape().as_slice());
    }
    Ok(vec![transposed(e, x)?])
}

/// The property `x.mT`: not conjugated.
pub static MATRIX_T: Op = Op {
    name: "mT",
    aliases: &[".mT"],
    params: unary::PARAMS,
    summary: "Swaps the last two dimensions: every matrix of a batch transposed; a view.",
    lower: Lower::Compose(matrix_t),
    grad: Grad::Composed,
    call: CallForm::Internal,
    ..Op::BASE
};

/// The property `x.H`.
pub static MATRIX_H: Op = Op {
    name: "H",
    aliases: &[".H"],
    params: unary::PARAMS,
    summary: "The transposed matrix, a view; a complex one also conjugated.",
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        if !matches!(x.ndim(), 0 | 2) {
            fail!(SHAPE, "a matrix is expected, not shape {:?}; `.mH` takes batches", x.shape().as_slice());
        }
        e.apply(&T, args![x])
    }),
    grad: Grad::Composed,
    conjugates: true,
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(movedim(input: Tensor, source: Ints, destination: Ints));

pub static MOVEDIM: Op = Op {
    name: "movedim",
    aliases: &["moveaxis"],
    params: movedim::PARAMS,
    summary: "Moves dimensions to other places; the others keep their order. A view.",
    examples: &[
        ex("ones([2, 3, 4]).movedim(0, -1).shape", "[3, 4, 2]"),
        ex("ones([2, 3]).movedim(0, 2)", "E0209"),
        ex("ones([2, 3]).movedim([0, 1], [0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let ndim = a.input().ndim();
        let (source, target) =
            (a.ints(movedim::source).unwrap_or_default(), a.ints(movedim::destination).unwrap_or_default());
        if source.len() != target.len() {
            fail!(VALUE, "`source` has {} dims, `destination` {}", source.len(), target.len());
        }
        let (source, target) = (distinct(&source, ndim)?, distinct(&target, ndim)?);
        let mut rest = (0..ndim).filter(|dim| !source.contains(dim));
        let place = |at: usize| target.iter().position(|&t| t == at).map(|k| source[k]);
        let dims: Ints = (0..ndim).filter_map(|at| place(at).or_else(|| rest.next())).map(|d| d as i64).collect();
        e.apply(&PERMUTE, args![a.input(), dims])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(squeeze(input: Tensor, dim: Dims = None));

pub static SQUEEZE: Op = Op {
    name: "squeeze",
    params: squeeze::PARAMS,
    summary: "Leaves out dimensions of size 1, all of them or those named; a view.",
    examples: &[
        ex("ones([1, 2, 1]).squeeze().shape", "[2]"),
        ex("ones([1, 2, 1]).squeeze(0).shape", "[2, 1]"),
        ex("ones([1, 2]).squeeze(2)", "E0209"),
    ],
    lower: Lower::View(|a| {
        let mut layout = own(a);
        let named = match a.ints(squeeze::dim) {
            Some(list) => distinct(&list, layout.ndim())?,
            None => (0..layout.ndim()).collect(),
        };
        for dim in (0..layout.ndim()).rev() {
            if layout.shape[dim] == 1 && named.contains(&dim) {
                layout.shape.remove(dim);
                layout.strides.remove(dim);
            }
        }
        Ok(layout)
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(squeeze::input).shape.clone();
        Ok(vec![Some(e.call(&RESHAPE, args![v.g(), shape.as_slice()])?)])
    }),
    ..Op::BASE
};

signature!(flatten(input: Tensor, start_dim: Dim = 0, end_dim: Dim = (-1)));

pub static FLATTEN: Op = Op {
    name: "flatten",
    params: flatten::PARAMS,
    summary: "Joins the dimensions from `start_dim` to `end_dim` into one: a view where strides allow it.",
    examples: &[
        ex("ones([2, 3, 4]).flatten(1).shape", "[2, 12]"),
        ex("ones([2, 3]).flatten(1, 0)", "E0206"),
        ex("ones([2]).flatten(1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let shape = x.shape();
        let (start, end) =
            (infer::dim(a.int(flatten::start_dim), shape.len())?, infer::dim(a.int(flatten::end_dim), shape.len())?);
        if start > end {
            fail!(VALUE, "`start_dim` ({start}) comes after `end_dim` ({end})");
        }
        if shape.is_empty() {
            return e.apply(&RESHAPE, args![x, &[1usize][..]]);
        }
        if start == end {
            return Ok(vec![x.clone()]);
        }
        let joined: usize = shape[start..=end].iter().product();
        let mut out = shape.clone();
        out.drain(start..=end);
        out.insert(start, joined);
        e.apply(&RESHAPE, args![x, out.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static RAVEL: Op = Op {
    name: "ravel",
    params: unary::PARAMS,
    summary: "All elements in one dimension, dense in memory: a view where they are, otherwise a copy.",
    examples: &[ex("tensor([[1, 2], [3, 4]]).ravel()", "tensor([1, 2, 3, 4])")],
    lower: Lower::Compose(|e, a| {
        let dense = e.call(&CONTIGUOUS, args![a.input()])?;
        e.apply(&VIEW, args![&dense, &[-1i64][..]])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(unflatten(input: Tensor, dim: Dim, sizes: Sizes));

pub static UNFLATTEN: Op = Op {
    name: "unflatten",
    params: unflatten::PARAMS,
    summary: "Splits one dimension into several; one size may be -1. A view.",
    examples: &[
        ex("ones([2, 6]).unflatten(1, [2, -1]).shape", "[2, 2, 3]"),
        ex("ones([2, 6]).unflatten(1, [4, 2])", "E0201"),
        ex("ones([2, 6]).unflatten(2, [2])", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let mut shape = x.shape();
        if shape.is_empty() {
            fail!(DIM, "a 0-dimensional tensor has no dimension to split");
        }
        let dim = infer::dim(a.int(unflatten::dim), shape.len())?;
        let sizes = a.ints(unflatten::sizes).unwrap_or_default();
        if sizes.is_empty() {
            fail!(VALUE, "`sizes` is empty");
        }
        let parts = resolve_shape(&sizes, shape[dim])?;
        shape.remove(dim);
        shape.insert_many(dim, parts);
        e.apply(&VIEW, args![x, shape.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

fn narrow(layout: &Layout, a: &Args) -> Result<Layout> {
    if layout.ndim() == 0 {
        fail!(DIM, "a 0-dimensional tensor has no ranges");
    }
    let dim = infer::dim(a.int(narrow::dim), layout.ndim())?;
    let (n, start, len) = (layout.shape[dim] as i64, a.int(narrow::start), a.int(narrow::length));
    if start < -n || start > n {
        fail!(INDEX, "the start {start} is out of range for dimension {dim} of size {n}");
    }
    let start = if start < 0 { start + n } else { start };
    if len < 0 || len > n - start {
        fail!(INDEX, "{len} elements from {start} on exceed dimension {dim} of size {n}");
    }
    Ok(layout.slice(dim, start as usize, 1, len as usize))
}

signature!(narrow(input: Tensor, dim: Dim, start: Int, length: Int));

pub static NARROW: Op = Op {
    name: "narrow",
    params: narrow::PARAMS,
    summary: "`length` elements of one dimension, from `start` on; a view.",
    examples: &[ex("tensor([1, 2, 3]).narrow(0, 1, 2)", "tensor([2, 3])"), ex("ones([3]).narrow(0, 2, 2)", "E0207")],
    lower: Lower::View(|a| narrow(&own(a), a)),
    grad: Grad::Window(narrow),
    ..Op::BASE
};

fn unfold(layout: &Layout, a: &Args) -> Result<Layout> {
    let dim = infer::dim(a.int(unfold::dimension), layout.ndim())?;
    let (size, step) = (a.int(unfold::size), a.int(unfold::step));
    let (n, stride) = match layout.ndim() {
        0 => (1, 1),
        _ => (layout.shape[dim] as i64, layout.strides[dim]),
    };
    if size < 0 || size > n {
        fail!(VALUE, "windows of size {size} do not fit into dimension {dim} of size {n}");
    }
    if step <= 0 {
        fail!(VALUE, "the step must be positive, not {step}");
    }
    let mut out = layout.clone();
    if layout.ndim() > 0 {
        out.shape[dim] = ((n - size) / step + 1) as usize;
        out.strides[dim] = stride.saturating_mul(step as isize);
        if out.shape[dim] <= 1 {
            out.strides[dim] = stride;
        }
    }
    out.shape.push(size as usize);
    out.strides.push(stride);
    Ok(out)
}

signature!(unfold(input: Tensor, dimension: Dim, size: Int, step: Int));

/// Internal: scripts reach it through `columns::UNFOLD_EITHER`.
pub static UNFOLD: Op = Op {
    name: "unfold",
    params: unfold::PARAMS,
    summary: "All windows of a size along a dimension, in a new last dimension; a view.",
    examples: &[
        ex("tensor([1, 2, 3]).unfold(0, 2, 1)", "tensor([[1, 2],\n        [2, 3]])"),
        ex("ones([3]).unfold(0, 4, 1)", "E0206"),
    ],
    lower: Lower::View(|a| unfold(&own(a), a)),
    grad: Grad::Rule(|e, v| spread_view(e, v, unfold)),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Arguments `offset, dim1, dim2` from 1 on.
pub fn diagonal(layout: &Layout, a: &Args) -> Result<Layout> {
    let (first, second) =
        (infer::dim(a.int(diagonal::dim1), layout.ndim())?, infer::dim(a.int(diagonal::dim2), layout.ndim())?);
    if first == second || layout.ndim() < 2 {
        fail!(VALUE, "a diagonal needs two different dimensions");
    }
    let (offset, rows, columns) = (a.int(diagonal::offset), layout.shape[first] as i64, layout.shape[second] as i64);
    let n =
        if offset >= 0 { rows.min(columns.saturating_sub(offset)) } else { rows.saturating_add(offset).min(columns) };
    let n = n.max(0) as usize;
    let mut out = layout.clone();
    if n > 0 {
        let (dim, steps) = if offset >= 0 { (second, offset) } else { (first, -offset) };
        out.offset += steps as usize * layout.strides[dim] as usize;
    }
    for dim in [first.max(second), first.min(second)] {
        out.shape.remove(dim);
        out.strides.remove(dim);
    }
    out.shape.push(n);
    out.strides.push(layout.strides[first] + layout.strides[second]);
    Ok(out)
}

signature!(diagonal(input: Tensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1));

pub static DIAGONAL: Op = Op {
    name: "diagonal",
    params: diagonal::PARAMS,
    summary: "A diagonal of two dimensions, as a new last one; a view.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).diagonal()", "tensor([1, 4])"),
        ex("ones([2, 2]).diagonal(0, 1, 1)", "E0206"),
        ex("ones([2]).diagonal()", "E0209"),
    ],
    lower: Lower::View(|a| diagonal(&own(a), a)),
    grad: Grad::Window(diagonal),
    ..Op::BASE
};

macro_rules! like {
    ($NAME:ident, $name:literal, $OP:ident, $summary:literal, $bad:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: two_tensors::PARAMS,
            summary: $summary,
            examples: &[ex(concat!("ones([1, 1]).", $name, "(zeros([1, 1]))"), "tensor([[1.]])"), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| {
                e.apply(&$OP, args![a.input(), a.tensor(two_tensors::other).shape().as_slice()])
            }),
            grad: Grad::Composed,
            call: CallForm::Method,
            ..Op::BASE
        };
    };
}
like!(EXPAND_AS, "expand_as", EXPAND, "`expand` to the other tensor's shape.", "ones([2]).expand_as(ones([3]))");
like!(VIEW_AS, "view_as", VIEW, "`view` with the other tensor's shape.", "ones([2]).view_as(ones([3]))");
like!(RESHAPE_AS, "reshape_as", RESHAPE, "`reshape` to the other tensor's shape.", "ones([2]).reshape_as(ones([3]))");

signature!(broadcast_to(input: Tensor, size: Sizes));

pub static BROADCAST_TO: Op = Op {
    name: "broadcast_to",
    params: broadcast_to::PARAMS,
    summary: "Repeats dimensions of size 1 without copying.",
    examples: &[
        ex("broadcast_to(tensor([1, 2]), [2, 2])", "tensor([[1, 2],\n        [1, 2]])"),
        ex("broadcast_to(ones([2]), [3])", "E0201"),
    ],
    lower: Lower::Compose(|e, a| e.apply(&EXPAND, a.clone())),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(broadcast_tensors(tensors: Tensors));

pub static BROADCAST_TENSORS: Op = Op {
    name: "broadcast_tensors",
    params: broadcast_tensors::PARAMS,
    summary: "The tensors with the shape that all of them broadcast to; views.",
    examples: &[
        ex("broadcast_tensors(ones([2, 1]), ones([3]))[0].shape", "[2, 3]"),
        ex("broadcast_tensors(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let list = a.tensor_list(broadcast_tensors::tensors);
        let shapes: Vec<_> = list.iter().map(Tensor::shape).collect();
        let shape = infer::broadcast_all(shapes.iter().map(|shape| shape.as_slice()))?;
        list.iter().map(|x| e.call(&EXPAND, args![x, shape.as_slice()])).collect()
    }),
    grad: Grad::Composed,
    results: Returns::List,
    call: CallForm::Function,
    ..Op::BASE
};

/// At least `n` dimensions, new ones where PyTorch has them.
pub fn at_least(e: &mut dyn Emit, x: &Tensor, n: usize) -> Result<Tensor> {
    let shape = x.shape();
    if shape.len() >= n {
        return Ok(x.clone());
    }
    let size: &[usize] = match (n, shape.as_slice()) {
        (1, _) => &[1],
        (2, []) => &[1, 1],
        (2, &[a]) => &[1, a],
        (_, []) => &[1, 1, 1],
        (_, &[a]) => &[1, a, 1],
        (_, &[a, b]) => &[a, b, 1],
        _ => &shape,
    };
    e.call(&RESHAPE, args![x, size])
}

macro_rules! at_least {
    ($NAME:ident, $name:literal, $n:literal, $shape:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: broadcast_tensors::PARAMS,
            summary: concat!("The tensor, or each of several, with at least ", $n, " dimensions."),
            examples: &[ex(concat!($name, "(tensor(3)).shape"), $shape)],
            lower: Lower::Compose(|e, a| {
                a.tensor_list(broadcast_tensors::tensors).iter().map(|x| at_least(e, x, $n)).collect()
            }),
            grad: Grad::Composed,
            ..Op::BASE
        };
    };
}
at_least!(ATLEAST_1D, "atleast_1d", 1, "[1]");
at_least!(ATLEAST_2D, "atleast_2d", 2, "[1, 1]");
at_least!(ATLEAST_3D, "atleast_3d", 3, "[1, 1, 1]");

/// Gives a handle the layout of a view of itself.
fn relayout(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    let x = a.input().clone();
    let y = e.call(op, a.clone())?;
    e.relayout(&x, &y)?;
    Ok(vec![x])
}

macro_rules! in_place {
    ($NAME:ident, $name:literal, $OP:ident, $params:expr, $code:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: $params,
            summary: concat!("Gives this tensor itself the layout that `", stringify!($OP), "` makes."),
            examples: &[ex($code, "[2]")],
            lower: Lower::Compose(|e, a| relayout(e, &$OP, a)),
            grad: Grad::Composed,
            call: CallForm::Method,
            ..Op::BASE
        };
    };
}
in_place!(SQUEEZE_, "squeeze_", SQUEEZE, SQUEEZE.params, "ones([1, 2]).squeeze_().shape");
in_place!(UNSQUEEZE_, "unsqueeze_", UNSQUEEZE, UNSQUEEZE.params, "ones([2]).unsqueeze_(0)[0].shape");
in_place!(TRANSPOSE_, "transpose_", TRANSPOSE, TRANSPOSE.params, "ones([1, 2]).transpose_(0, 1)[.., 0].shape");
in_place!(SWAPAXES_, "swapaxes_", TRANSPOSE, SWAPAXES.params, "ones([1, 2]).swapaxes_(0, 1)[.., 0].shape");
in_place!(SWAPDIMS_, "swapdims_", TRANSPOSE, SWAPDIMS.params, "ones([1, 2]).swapdims_(0, 1)[.., 0].shape");
in_place!(
    AS_STRIDED_,
    "as_strided_",
    AS_STRIDED_CALL,
    AS_STRIDED_CALL.params,
    "ones([1, 2]).as_strided_([2], [1]).shape"
);
in_place!(T_, "t_", T, T.params, "ones([1, 2]).t_()[.., 0].shape");

pub static ROWS: &[&Op] = &[
    &PERMUTE,
    &TRANSPOSE,
    &SWAPAXES,
    &SWAPDIMS,
    &T,
    &REVERSED,
    &ADJOINT,
    &MATRIX_T,
    &MATRIX_H,
    &MOVEDIM,
    &SQUEEZE,
    &FLATTEN,
    &RAVEL,
    &UNFLATTEN,
    &NARROW,
    &UNFOLD,
    &DIAGONAL,
    &EXPAND_AS,
    &VIEW_AS,
    &RESHAPE_AS,
    &BROADCAST_TO,
    &BROADCAST_TENSORS,
    &ATLEAST_1D,
    &ATLEAST_2D,
    &ATLEAST_3D,
    &SQUEEZE_,
    &UNSQUEEZE_,
    &TRANSPOSE_,
    &SWAPAXES_,
    &SWAPDIMS_,
    &T_,
    &AS_STRIDED_,
];
