//! Rearrangements that copy: repetition, flips, rolls, triangles, diagonals, padding, and copies of a tensor with
//! a part replaced.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::fail;
use crate::kernel::copy;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::indexing::index::INDEX;
use crate::op::rows::pointwise::arith::COPY;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::expanded::zero_where;
use crate::op::rows::shape::rearrange::{DIAGONAL, PERMUTE, TRANSPOSE, diagonal, distinct};
use crate::op::rows::shape::view::{AS_STRIDED_CALL, CLONE, RESHAPE, SELECT, strided_layout};
use crate::op::rows::signatures::unary;
use crate::op::tensor::Tensor;
use crate::signature;

/// Sums a gradient over every dim of copies: the shape is `[r0, s0, r1, s1, ..]`.
fn sum_pairs(e: &mut dyn Emit, g: &Tensor, pairs: &[[usize; 2]], shape: &[usize]) -> Result<Tensor> {
    let split: Shape = pairs.iter().flatten().copied().collect();
    let dims: Ints = (0..pairs.len()).filter(|&d| pairs[d][0] != 1).map(|d| 2 * d as i64).collect();
    let mut g = e.call(&RESHAPE, args![g, split.as_slice()])?;
    if !dims.is_empty() {
        g = e.call(&SUM, args![&g, dims])?;
    }
    e.call(&RESHAPE, args![&g, shape])
}

/// Repeats, one a dim of the result, and the operand's sizes with leading ones.
fn repeats(a: &Args, shape: &[usize]) -> Result<Vec<[usize; 2]>> {
    let times = a.ints(repeat::repeats).unwrap_or_default();
    if times.len() < shape.len() {
        fail!(SHAPE, "{} repeats are fewer than the tensor's {} dimensions", times.len(), shape.len());
    }
    let times = infer::shape(&times)?;
    let missing = times.len() - shape.len();
    Ok(times.iter().enumerate().map(|(d, &n)| [n, if d < missing { 1 } else { shape[d - missing] }]).collect())
}

signature!(repeat(input: Tensor, repeats: Sizes));

pub static REPEAT: Op = Op {
    name: "repeat",
    params: repeat::PARAMS,
    summary: "The whole tensor again and again along each dimension.",
    examples: &[
        ex("tensor([1, 2]).repeat(2, 2)", "tensor([[1, 2, 1, 2],\n        [1, 2, 1, 2]])"),
        ex("ones([2, 2]).repeat(2)", "E0201"),
        ex("ones([2]).repeat(-1)", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let pairs = repeats(a, &x.shape())?;
        let shape: Vec<i64> = pairs.iter().map(|[n, size]| n.saturating_mul(*size) as i64).collect();
        let times: Vec<i64> = pairs.iter().map(|[n, _]| *n as i64).collect();
        Ok(KernelCall::new("repeat", &copy::REPEAT).input(x).ints(&times).output(&infer::shape(&shape)?, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let shape = v.meta(repeat::input).shape.clone();
        let pairs = repeats(v.args, &shape)?;
        Ok(vec![Some(sum_pairs(e, v.g(), &pairs, &shape)?)])
    }),
    call: CallForm::Method,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(tile(input: Tensor, dims: Sizes));

pub static TILE: Op = Op {
    name: "tile",
    params: tile::PARAMS,
    summary: "As `repeat`; missing leading repeats count as 1.",
    examples: &[ex("tile(tensor([1, 2]), [2])", "tensor([1, 2, 1, 2])"), ex("tile(ones([2]), [-1])", "E0206")],
    lower: Lower::Compose(|e, a| {
        let mut times = a.ints(tile::dims).unwrap_or_default();
        while times.len() < a.input().ndim() {
            times.insert(0, 1);
        }
        e.apply(&REPEAT, args![a.input(), times])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(interleave(input: Tensor, repeats: Int, dim: Dim));

/// Internal: `repeat_interleave` with one count and a dim.
static INTERLEAVE: Op = Op {
    name: "repeat_interleave",
    params: interleave::PARAMS,
    summary: "Repeats each element along a dimension.",
    lower: Lower::Kernel(|_, a| {
        let (x, count, dim) = (a.input(), a.int(interleave::repeats), a.int(interleave::dim));
        let mut shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
        shape[dim as usize] = shape[dim as usize].saturating_mul(count);
        let call = KernelCall::new("repeat_interleave", &copy::REPEAT_INTERLEAVE).input(x).int(dim).int(count);
        Ok(call.output(&infer::shape(&shape)?, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let (shape, count, dim) =
            (v.meta(interleave::input).shape.clone(), v.args.int(interleave::repeats), v.args.int(interleave::dim));
        let mut split = shape.clone();
        split.insert(dim as usize + 1, count as usize);
        let g = e.call(&RESHAPE, args![v.g(), split.as_slice()])?;
        Ok(vec![Some(e.call(&SUM, args![&g, dim + 1])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(repeat_interleave(input: Tensor, repeats: Operand = None, dim: Dim = None, output_size: Int = None));

pub static REPEAT_INTERLEAVE: Op = Op {
    name: "repeat_interleave",
    params: repeat_interleave::PARAMS,
    summary: "Repeats each element, as often as a number or its entry in a tensor says.",
    details: "Without `dim` the tensor is flattened. A tensor of repeats is read, which waits. With one argument that \
              argument is the repeats: the result is index 0 that often, then 1, and so on.",
    examples: &[
        ex("tensor([1, 2]).repeat_interleave(2)", "tensor([1, 1, 2, 2])"),
        ex("tensor([1, 2]).repeat_interleave(tensor([0, 3]))", "tensor([2, 2, 2])"),
        ex("ones([2]).repeat_interleave(-1)", "E0206"),
        ex("ones([2]).repeat_interleave(tensor([1, 2, 3]))", "E0201"),
        ex("ones([2]).repeat_interleave(2, 1)", "E0209"),
    ],
    lower: Lower::Compose(repeat_interleave),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Index `i` as often as `counts[i]` says.
fn repeated(e: &dyn Emit, counts: &[i64], expected: Option<i64>) -> Result<Vec<i64>> {
    if let Some(count) = counts.iter().find(|&&count| count < 0) {
        fail!(VALUE, "repeats must not be negative, one is {count}");
    }
    let total = counts.iter().fold(0i64, |sum, &count| sum.saturating_add(count));
    if let Some(expected) = expected.filter(|&expected| expected != total) {
        fail!(VALUE, "`output_size` is {expected}, but the repeats add up to {total}");
    }
    infer::size_bytes(&[total as usize], DType::I64)?;
    // The list and its bytes.
    e.host_room((total as usize).saturating_mul(16))?;
    Ok(counts.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i as i64, n as usize)).collect())
}

fn upload(e: &mut dyn Emit, values: &[i64], shape: &[usize], x: &Tensor) -> Result<Tensor> {
    let bytes: Vec<u8> = values.iter().flat_map(|i| i.to_ne_bytes()).collect();
    e.upload(&bytes, shape, DType::I64, x.device())
}

fn counts(e: &mut dyn Emit, repeats: &Tensor) -> Result<Vec<i64>> {
    if !matches!(repeats.dtype(), DType::I64 | DType::I32) || repeats.ndim() > 1 {
        fail!(DTYPE, "repeats are a number or a vector of i64 or i32");
    }
    Ok(e.read(repeats)?.into_iter().map(|count| count.to_i64()).collect())
}

fn repeat_interleave(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let mut x = a.input().clone();
    let expected = a.opt_int(repeat_interleave::output_size);
    if a.is_none(repeat_interleave::repeats) {
        let counts = counts(e, &x)?;
        let index = repeated(e, &counts, expected)?;
        return Ok(vec![upload(e, &index, &[index.len()], &x)?]);
    }
    let dim = match a.opt_int(repeat_interleave::dim) {
        Some(dim) => infer::dim(dim, x.ndim())?,
        None => {
            x = e.call(&RESHAPE, args![&x, &[-1i64][..]])?;
            0
        }
    };
    if x.ndim() == 0 {
        x = e.call(&RESHAPE, args![&x, &[1i64][..]])?;
    }
    let n = x.shape()[dim];
    let counts = match a.get(repeat_interleave::repeats) {
        Arg::Tensor(repeats) => counts(e, repeats)?,
        _ => match a.scalar(repeat_interleave::repeats) {
            Some(crate::base::dtype::Scalar::Int(count)) => vec![count],
            _ => fail!(ARGUMENT_TYPE, "the repeats are an integer or a tensor of integers"),
        },
    };
    if let [count] = counts[..] {
        if count < 0 {
            fail!(VALUE, "repeats must not be negative, one is {count}");
        }
        if expected.is_some_and(|size| size != count.saturating_mul(n as i64)) {
            fail!(VALUE, "`output_size` is not {count} times {n}");
        }
        return e.apply(&INTERLEAVE, args![&x, count, dim]);
    }
    if counts.len() != n {
        fail!(SHAPE, "{} repeats for dimension {dim} of size {n}", counts.len());
    }
    let index = repeated(e, &counts, expected)?;
    let index = upload(e, &index, &[index.len()], &x)?;
    let mut places: Vec<Option<Tensor>> = vec![None; x.ndim()];
    places[dim] = Some(index);
    e.apply(&INDEX, args![&x, places])
}

pub static FLIP: Op = Op {
    name: "flip",
    params: tile::PARAMS,
    summary: "Reverses the order along dimensions.",
    examples: &[
        ex("tensor([1, 2, 3]).flip(0)", "tensor([3, 2, 1])"),
        ex("tensor([[1, 2], [3, 4]]).t().flip(0)", "tensor([[2, 4],\n        [1, 3]])"),
        ex("ones([2, 3]).t().flip(0).stride()", "[1, 3]"),
        ex("ones([2]).flip(1)", "E0209"),
        ex("ones([2]).flip([0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let dims = distinct(&a.ints(tile::dims).unwrap_or_default(), x.ndim())?;
        let named = |order: &[i64]| -> Ints {
            let kept = dims.iter().filter(|dim| **dim < x.ndim());
            kept.map(|&dim| order.iter().position(|&d| d as usize == dim).unwrap_or(dim) as i64).collect()
        };
        // The result's elements follow each other in memory as those of the tensor do, as in PyTorch.
        let Some(order) = order_in_memory(x) else { return e.apply(&FLIP_ROWS, args![x, named(&[]).as_slice()]) };
        let back: Ints =
            (0..x.ndim() as i64).map(|dim| order.iter().position(|&d| d == dim).unwrap_or(0) as i64).collect();
        let rows = e.call(&PERMUTE, args![x, order.as_slice()])?;
        let flipped = e.call(&FLIP_ROWS, args![&rows, named(&order).as_slice()])?;
        e.apply(&PERMUTE, args![&flipped, back.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// The dims of a tensor without gaps, the outermost in memory first; none where that is their own order.
fn order_in_memory(x: &Tensor) -> Option<Ints> {
    if x.samples().is_some() {
        return None;
    }
    x.with_view(|view| {
        let layout = &view.layout;
        if layout.is_contiguous() || layout.numel() == 0 {
            return None;
        }
        let mut order: Ints = (0..layout.ndim() as i64).collect();
        order.sort_by_key(|&dim| std::cmp::Reverse(layout.strides[dim as usize]));
        let mut next = 1;
        let dense = order.iter().rev().all(|&dim| {
            let (size, stride) = (layout.shape[dim as usize], layout.strides[dim as usize]);
            let fits = size == 1 || stride == next;
            next *= size as isize;
            fits
        });
        dense.then_some(order)
    })
}

/// Internal: dims that there are, named once; the result is row-major.
static FLIP_ROWS: Op = Op {
    name: "flip",
    params: tile::PARAMS,
    summary: "Reverses the order along dimensions.",
    lower: Lower::Kernel(|_, a| {
        let (x, dims) = (a.input(), a.ints(tile::dims).unwrap_or_default());
        Ok(KernelCall::new("flip", &copy::FLIP).input(x).ints(&dims).output(&x.shape(), x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        Ok(vec![Some(e.call(&FLIP_ROWS, args![v.g(), v.args.ints(tile::dims).unwrap_or_default()])?)])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    call: CallForm::Internal,
    ..Op::BASE
};

macro_rules! flips {
    ($NAME:ident, $name:literal, $dim:literal, $summary:literal, $bad:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: unary::PARAMS,
            summary: $summary,
            examples: &[ex(concat!($name, "(ones([2, 3])).shape"), "[2, 3]"), ex($bad, "E0201")],
            lower: Lower::Compose(|e, a| {
                if a.input().ndim() <= $dim {
                    fail!(SHAPE, "at least {} dimensions are expected, not {}", $dim + 1, a.input().ndim());
                }
                e.apply(&FLIP, args![a.input(), &[$dim as i64][..]])
            }),
            grad: Grad::Composed,
            ..Op::BASE
        };
    };
}
flips!(FLIPLR, "fliplr", 1, "Reverses the second dimension.", "fliplr(ones([2]))");
flips!(FLIPUD, "flipud", 0, "Reverses the first dimension.", "flipud(ones([]))");

signature!(roll_dims(input: Tensor, shifts: Ints, dims: Ints));

/// Internal: shifts and dims equally long, dims named once.
static ROLL_DIMS: Op = Op {
    name: "roll",
    params: roll_dims::PARAMS,
    summary: "Moves elements along dimensions, around the end.",
    lower: Lower::Kernel(|_, a| {
        let (x, list) = (a.input(), |at: usize| a.ints(at).unwrap_or_default());
        Ok(KernelCall::new("roll", &copy::ROLL).input(x).ints(&list(1)).ints(&list(2)).output(&x.shape(), x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let back: Ints = v.args.ints(roll_dims::shifts).unwrap_or_default().iter().map(|shift| -shift).collect();
        Ok(vec![Some(e.call(&ROLL_DIMS, args![v.g(), back, v.args.ints(roll_dims::dims).unwrap_or_default()])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(roll(input: Tensor, shifts: Ints, dims: Ints = None));

pub static ROLL: Op = Op {
    name: "roll",
    params: roll::PARAMS,
    summary: "Moves elements along dimensions, around the end; without `dims` along the flattened tensor.",
    examples: &[
        ex("tensor([1, 2, 3]).roll(1)", "tensor([3, 1, 2])"),
        ex("tensor([[1, 2], [3, 4]]).roll(1, 0)", "tensor([[3, 4],\n        [1, 2]])"),
        ex("ones([2, 2]).roll([1, 1], 0)", "E0206"),
        ex("ones([2]).roll(1, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let (shifts, dims) = (a.ints(roll::shifts).unwrap_or_default(), a.ints(roll::dims).unwrap_or_default());
        if shifts.is_empty() {
            fail!(VALUE, "`shifts` is empty");
        }
        if dims.is_empty() && shifts.len() == 1 {
            let flat = e.call(&RESHAPE, args![x, &[-1i64][..]])?;
            let n = flat.numel().max(1) as i64;
            let rolled = e.call(&ROLL_DIMS, args![&flat, shifts[0].rem_euclid(n), 0])?;
            return e.apply(&RESHAPE, args![&rolled, x.shape().as_slice()]);
        }
        if dims.len() != shifts.len() {
            fail!(VALUE, "{} shifts but {} dims", shifts.len(), dims.len());
        }
        let shape = x.shape();
        if shape.is_empty() {
            fail!(DIM, "a 0-dimensional tensor has no dimension to roll");
        }
        let mut sums: Ints = smallvec::SmallVec::from_elem(0, shape.len().max(1));
        for (&shift, &dim) in shifts.iter().zip(&dims) {
            let dim = infer::dim(dim, shape.len())?;
            let n = shape.get(dim).copied().unwrap_or(1).max(1) as i64;
            sums[dim] = (sums[dim] + shift.rem_euclid(n)) % n;
        }
        let moved: Ints = (0..shape.len() as i64).filter(|&dim| sums[dim as usize] != 0).collect();
        let by: Ints = moved.iter().map(|&dim| sums[dim as usize]).collect();
        e.apply(&ROLL_DIMS, args![x, by, moved])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(rot90(input: Tensor, k: Int = 1, dims: Ints = None));

pub static ROT90: Op = Op {
    name: "rot90",
    params: rot90::PARAMS,
    summary: "Turns a plane of two dimensions by `k` quarters, from the first towards the second.",
    examples: &[
        ex("rot90(tensor([[1, 2], [3, 4]]))", "tensor([[2, 4],\n        [1, 3]])"),
        ex("rot90(ones([2]))", "E0201"),
        ex("rot90(ones([2, 2]), 1, [0, 0])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let dims = a.ints(rot90::dims).unwrap_or_else(|| Ints::from_slice(&[0, 1]));
        if dims.len() != 2 {
            fail!(VALUE, "two dims are expected, not {}", dims.len());
        }
        if x.ndim() < 2 {
            fail!(SHAPE, "at least 2 dimensions are expected, not {}", x.ndim());
        }
        let dims = distinct(&dims, x.ndim())?;
        let (first, second) = (dims[0] as i64, dims[1] as i64);
        let flip = |e: &mut dyn Emit, dims: &[i64]| e.call(&FLIP, args![x, dims]);
        Ok(vec![match a.int(rot90::k).rem_euclid(4) {
            1 => {
                let y = flip(e, &[second])?;
                e.call(&TRANSPOSE, args![&y, first, second])?
            }
            2 => flip(e, &[first, second])?,
            3 => {
                let y = flip(e, &[first])?;
                e.call(&TRANSPOSE, args![&y, first, second])?
            }
            _ => e.call(&CLONE, args![x])?,
        }])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(triangle(input: Tensor, diagonal: Int = 0));

macro_rules! triangle {
    ($NAME:ident, $name:literal, $kernel:ident, $side:literal, $result:literal, $OTHER:ident, $next:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: triangle::PARAMS,
            summary: concat!("Keeps the elements on and ", $side, " a diagonal of each matrix, zero elsewhere."),
            examples: &[
                ex(concat!("ones([2, 2]).", $name, "()"), $result),
                ex(concat!("ones([2]).", $name, "()"), "E0201"),
            ],
            lower: Lower::Kernel(|_, a| {
                let x = a.input();
                if x.ndim() < 2 {
                    fail!(SHAPE, "at least 2 dimensions are expected, not {}", x.ndim());
                }
                Ok(KernelCall::new($name, &copy::$kernel)
                    .input(x)
                    .int(a.int(triangle::diagonal))
                    .output(&x.shape(), x.dtype()))
            }),
            grad: Grad::Rule(|e, v| Ok(vec![Some(e.call(&$NAME, args![v.g(), v.args.int(triangle::diagonal)])?)])),
            inplace: true,
            expanded: Some(|e, a| zero_where(e, a.input(), &$OTHER, a.int(triangle::diagonal).saturating_add($next))),
            forward: crate::op::row::Forward::Linear(&[0]),
            ..Op::BASE
        };
    };
}
triangle!(TRIL, "tril", TRIL, "below", "tensor([[1., 0.],\n        [1., 1.]])", TRIU, 1);
triangle!(TRIU, "triu", TRIU, "above", "tensor([[1., 1.],\n        [0., 1.]])", TRIL, -1);

signature!(diag_embed(input: Tensor, offset: Int = 0, dim1: Dim = (-2), dim2: Dim = (-1)));

pub static DIAG_EMBED: Op = Op {
    name: "diag_embed",
    params: diag_embed::PARAMS,
    summary: "Puts the last dimension on a diagonal of two new dimensions, zero elsewhere.",
    examples: &[
        ex("diag_embed(tensor([1, 2]))", "tensor([[1, 0],\n        [0, 2]])"),
        ex("diag_embed(ones([2]), 0, 1, 1)", "E0206"),
        ex("diag_embed(ones([2]), 0, 0, 2)", "E0209"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.input();
        let mut shape = x.shape();
        let Some(n) = shape.pop() else { fail!(SHAPE, "a 0-dimensional tensor has no elements to lay on a diagonal") };
        let (first, second) = (
            infer::dim(a.int(diag_embed::dim1), shape.len() + 2)?,
            infer::dim(a.int(diag_embed::dim2), shape.len() + 2)?,
        );
        if first == second {
            fail!(VALUE, "a diagonal needs two different dimensions");
        }
        let size = n.saturating_add(a.int(diag_embed::offset).unsigned_abs() as usize);
        shape.insert(first.min(second), size);
        shape.insert(first.max(second), size);
        let call = KernelCall::new("diag_embed", &copy::DIAG_EMBED).input(x);
        Ok(call.int(a.int(diag_embed::offset)).int(first as i64).int(second as i64).output(&shape, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        Ok(vec![Some(e.call(
            &DIAGONAL,
            args![v.g(), v.args.int(diag_embed::offset), v.args.int(diag_embed::dim1), v.args.int(diag_embed::dim2)],
        )?)])
    }),
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

pub static DIAG: Op = Op {
    name: "diag",
    params: triangle::PARAMS,
    summary: "A copy of a matrix's diagonal, or a matrix with a vector on its diagonal.",
    examples: &[
        ex("diag(tensor([1, 2]))", "tensor([[1, 0],\n        [0, 2]])"),
        ex("diag(tensor([[1, 2], [3, 4]]))", "tensor([1, 4])"),
        ex("diag(ones([2, 2, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        match x.ndim() {
            1 => e.apply(&DIAG_EMBED, args![x, a.int(triangle::diagonal), 0, 1]),
            2 => {
                let part = e.call(&DIAGONAL, args![x, a.int(triangle::diagonal), 0, 1])?;
                e.apply(&CLONE, args![&part])
            }
            n => fail!(SHAPE, "a vector or a matrix is expected, not {n} dimensions"),
        }
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(diagflat(input: Tensor, offset: Int = 0));

pub static DIAGFLAT: Op = Op {
    name: "diagflat",
    params: diagflat::PARAMS,
    summary: "A matrix with all elements on its diagonal.",
    examples: &[ex("diagflat(tensor([[1], [2]]))", "tensor([[1, 0],\n        [0, 2]])")],
    lower: Lower::Compose(|e, a| {
        let flat = e.call(&RESHAPE, args![a.input(), &[-1i64][..]])?;
        e.apply(&DIAG_EMBED, args![&flat, a.int(diagflat::offset), 0, 1])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static TRACE: Op = Op {
    name: "trace",
    params: unary::PARAMS,
    summary: "The sum of a matrix's diagonal.",
    examples: &[ex("trace(tensor([[1, 2], [3, 4]]))", "tensor(5)"), ex("trace(ones([2]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        if a.input().ndim() != 2 {
            fail!(SHAPE, "a matrix is expected, not shape {:?}", a.input().shape().as_slice());
        }
        let part = e.call(&DIAGONAL, args![a.input(), 0, 0, 1])?;
        e.apply(&SUM, args![&part])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// A copy of argument 0 with argument 1 in the place that `place` names.
fn replaced(e: &mut dyn Emit, a: &Args, place: impl Fn(&Layout) -> Result<Layout>) -> Result<Vec<Tensor>> {
    let out = e.call(&CLONE, args![a.input()])?;
    let layout = place(&out.view().layout)?;
    let src = a.tensor(select_scatter::src);
    if layout.shape != src.shape() {
        fail!(SHAPE, "`src` has shape {:?}, its place {:?}", src.shape().as_slice(), layout.shape.as_slice());
    }
    let part = e.alias(&out, layout);
    e.apply_inplace(&COPY, args![&part, src])?;
    Ok(vec![out])
}

/// Gradients of `replaced`: zeros in the place, and the place itself. `args` are the row's from 2 on, `view` is the
/// row that shows the place, with the same arguments from 1 on.
fn replaced_grad(
    e: &mut dyn Emit,
    v: &Backward<'_>,
    row: &'static Op,
    view: &'static Op,
) -> Result<Vec<Option<Tensor>>> {
    let rest: Vec<Arg> = v.args.0[2..].to_vec();
    let zero = e.zeros_like(v.meta(select_scatter::src))?;
    let mut whole = args![v.g(), &zero];
    whole.0.extend(rest.iter().cloned());
    let g = e.call(&crate::op::rows::shape::view::CONTIGUOUS, args![v.g()])?;
    let mut part = args![&g];
    part.0.extend(rest);
    Ok(vec![Some(e.call(row, whole)?), Some(e.call(view, part)?)])
}

/// Arguments of a `replaced` row as its view row would have them.
fn without_source(a: &Args) -> Args {
    let mut args = a.clone();
    args.0.remove(1);
    args
}

signature!(select_scatter(input: Tensor, src: Tensor, dim: Dim, index: Int));

pub static SELECT_SCATTER: Op = Op {
    name: "select_scatter",
    params: select_scatter::PARAMS,
    summary: "A copy in which one element of a dimension is replaced by `src`.",
    examples: &[
        ex("zeros([2, 2]).select_scatter(ones([2]), 0, 1)", "tensor([[0., 0.],\n        [1., 1.]])"),
        ex("zeros([2, 2]).select_scatter(ones([3]), 0, 1)", "E0201"),
        ex("zeros([2]).select_scatter(ones([]), 0, 2)", "E0207"),
    ],
    lower: Lower::Steps(|e, a| {
        let part = without_source(a);
        replaced(e, a, |layout| crate::op::rows::shape::view::select(layout, &part))
    }),
    grad: Grad::Rule(|e, v| replaced_grad(e, v, &SELECT_SCATTER, &SELECT)),
    forward: crate::op::row::Forward::Linear(&[0, 1]),
    ..Op::BASE
};

signature!(diagonal_scatter(input: Tensor, src: Tensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1));

pub static DIAGONAL_SCATTER: Op = Op {
    name: "diagonal_scatter",
    params: diagonal_scatter::PARAMS,
    summary: "A copy in which a diagonal is replaced by `src`.",
    examples: &[
        ex("zeros([2, 2]).diagonal_scatter(ones([2]))", "tensor([[1., 0.],\n        [0., 1.]])"),
        ex("zeros([2, 2]).diagonal_scatter(ones([3]))", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        let part = without_source(a);
        replaced(e, a, |layout| diagonal(layout, &part))
    }),
    grad: Grad::Rule(|e, v| replaced_grad(e, v, &DIAGONAL_SCATTER, &DIAGONAL)),
    forward: crate::op::row::Forward::Linear(&[0, 1]),
    ..Op::BASE
};

signature!(as_strided_scatter(input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: Int = None));

pub static AS_STRIDED_SCATTER: Op = Op {
    name: "as_strided_scatter",
    params: as_strided_scatter::PARAMS,
    summary: "A dense copy in which the elements of a layout over it are replaced by `src`.",
    examples: &[
        ex("zeros([3]).as_strided_scatter(ones([2]), [2], [2])", "tensor([1., 0., 1.])"),
        ex("zeros([3]).as_strided_scatter(ones([3]), [3], [2])", "E0206"),
    ],
    lower: Lower::Steps(|e, a| {
        let part = without_source(a);
        replaced(e, a, |layout| {
            let place = strided_layout(&part, 0)?;
            if place.extent().is_some_and(|(_, end)| end > layout.numel()) {
                fail!(VALUE, "the layout leaves the tensor's {} elements", layout.numel());
            }
            Ok(place)
        })
    }),
    grad: Grad::Rule(|e, v| replaced_grad(e, v, &AS_STRIDED_SCATTER, &AS_STRIDED_CALL)),
    forward: crate::op::row::Forward::Linear(&[0, 1]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &REPEAT,
    &TILE,
    &INTERLEAVE,
    &REPEAT_INTERLEAVE,
    &FLIP,
    &FLIP_ROWS,
    &FLIPLR,
    &FLIPUD,
    &ROLL_DIMS,
    &ROLL,
    &ROT90,
    &TRIL,
    &TRIU,
    &DIAG_EMBED,
    &DIAG,
    &DIAGFLAT,
    &TRACE,
    &SELECT_SCATTER,
    &DIAGONAL_SCATTER,
    &AS_STRIDED_SCATTER,
];
