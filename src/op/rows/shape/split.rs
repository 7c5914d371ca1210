//! A tensor taken apart along a dimension, as views: `split`, `chunk`, `unbind` and their relatives.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, Returns, ex};
use crate::op::rows::shape::view::{SELECT, SLICE};
use crate::op::tensor::Tensor;
use crate::signature;

/// The dimension to split, and its size.
fn along(x: &Tensor, dim: i64) -> Result<(usize, i64)> {
    let shape = x.shape();
    if shape.is_empty() {
        fail!(DIM, "a 0-dimensional tensor cannot be taken apart");
    }
    let dim = infer::dim(dim, shape.len())?;
    Ok((dim, shape[dim] as i64))
}

/// Bytes of a tensor without its elements, as the script has it.
const HANDLE: usize = 512;

/// Whether there is memory for so many results.
fn room(e: &dyn Emit, count: i64) -> Result<()> {
    e.host_room(usize::try_from(count).unwrap_or(0).saturating_mul(HANDLE))
}

/// Pieces of these lengths, in order.
fn pieces(
    e: &mut dyn Emit,
    x: &Tensor,
    dim: usize,
    count: i64,
    lengths: impl Iterator<Item = i64>,
) -> Result<Vec<Tensor>> {
    room(e, count)?;
    let mut start = 0;
    lengths
        .map(|len| {
            let piece = e.call(&SLICE, args![x, dim, start, start + len, 1]);
            start += len;
            piece
        })
        .collect()
}

/// Pieces that one operation makes.
fn together(e: &mut dyn Emit, pieces: Vec<Tensor>) -> Vec<Tensor> {
    e.made_together(&pieces);
    pieces
}

fn listed(e: &mut dyn Emit, x: &Tensor, dim: usize, n: i64, lengths: &[i64]) -> Result<Vec<Tensor>> {
    if let Some(len) = lengths.iter().find(|&&len| len < 0) {
        fail!(VALUE, "a piece cannot have {len} elements");
    }
    let sum = lengths.iter().fold(0i64, |sum, &len| sum.saturating_add(len));
    if sum != n {
        fail!(VALUE, "the pieces have {sum} elements together, dimension {dim} has {n}");
    }
    pieces(e, x, dim, lengths.len() as i64, lengths.iter().copied())
}

fn even(e: &mut dyn Emit, x: &Tensor, dim: usize, n: i64, size: i64) -> Result<Vec<Tensor>> {
    if size < 0 || (size == 0 && n > 0) {
        fail!(VALUE, "the size of a piece must be positive, not {size}");
    }
    let count = if size == 0 { 1 } else { ((n + size - 1) / size).max(1) };
    pieces(e, x, dim, count, (0..count).map(|at| size.min(n - at * size)))
}

pub fn split(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (dim, n) = along(a.input(), a.int(split::dim))?;
    match a.attr(split::split_size_or_sections) {
        Attr::Int(size) => even(e, a.input(), dim, n, *size),
        _ => listed(e, a.input(), dim, n, &a.ints(split::split_size_or_sections).unwrap_or_default()),
    }
}

pub fn split_with_sizes(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (dim, n) = along(a.input(), a.int(split_with_sizes::dim))?;
    listed(e, a.input(), dim, n, &a.ints(split_with_sizes::split_sizes).unwrap_or_default())
}

pub fn chunk(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (dim, n) = along(a.input(), a.int(chunk::dim))?;
    let chunks = a.int(chunk::chunks);
    if chunks <= 0 {
        fail!(VALUE, "the number of pieces must be positive, not {chunks}");
    }
    if n == 0 {
        return pieces(e, a.input(), dim, chunks, (0..chunks).map(|_| 0));
    }
    even(e, a.input(), dim, n, (n - 1) / chunks + 1)
}

signature!(split(input: Tensor, split_size_or_sections: IntOrInts, dim: Dim = 0));

pub static SPLIT: Op = Op {
    name: "split",
    params: split::PARAMS,
    summary: "Pieces of one size (the last may be smaller), or of the sizes in a list; views.",
    examples: &[
        ex("tensor([1, 2, 3]).split(2)", "[tensor([1, 2]), tensor([3])]"),
        ex("tensor([1, 2, 3]).split([1, 2])", "[tensor([1]), tensor([2, 3])]"),
        ex("ones([3]).split([1, 1])", "E0206"),
        ex("ones([3]).split(1, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| split(e, a).map(|pieces| together(e, pieces))),
    grad: Grad::Composed,
    results: Returns::List,
    ..Op::BASE
};

signature!(split_with_sizes(input: Tensor, split_sizes: Ints, dim: Dim = 0));

pub static SPLIT_WITH_SIZES: Op = Op {
    name: "split_with_sizes",
    params: split_with_sizes::PARAMS,
    summary: "Pieces of the sizes in a list; views.",
    examples: &[
        ex("tensor([1, 2, 3]).split_with_sizes([1, 2])", "[tensor([1]), tensor([2, 3])]"),
        ex("ones([3]).split_with_sizes([1, 1])", "E0206"),
    ],
    lower: Lower::Compose(|e, a| split_with_sizes(e, a).map(|pieces| together(e, pieces))),
    grad: Grad::Composed,
    results: Returns::List,
    ..Op::BASE
};

signature!(chunk(input: Tensor, chunks: Int, dim: Dim = 0));

pub static CHUNK: Op = Op {
    name: "chunk",
    params: chunk::PARAMS,
    summary: "At most that many pieces of one size (the last may be smaller); views.",
    examples: &[ex("tensor([1, 2, 3]).chunk(2)", "[tensor([1, 2]), tensor([3])]"), ex("ones([3]).chunk(0)", "E0206")],
    lower: Lower::Compose(|e, a| chunk(e, a).map(|pieces| together(e, pieces))),
    grad: Grad::Composed,
    results: Returns::List,
    ..Op::BASE
};

/// A number of nearly equal pieces, or the places to cut at.
fn cut(e: &mut dyn Emit, x: &Tensor, dim: usize, n: i64, how: &Attr) -> Result<Vec<Tensor>> {
    match how {
        Attr::Int(count) if *count <= 0 => fail!(VALUE, "the number of pieces must be positive, not {count}"),
        Attr::Int(count) => {
            let (each, more) = (n / count, n % count);
            pieces(e, x, dim, *count, (0..*count).map(|at| each + (at < more) as i64))
        }
        Attr::Ints(places) => {
            room(e, places.len() as i64 + 1)?;
            let starts = std::iter::once(0).chain(places.iter().copied());
            let ends = places.iter().copied().chain([i64::MAX]);
            starts.zip(ends).map(|(start, end)| e.call(&SLICE, args![x, dim, start, end, 1])).collect()
        }
        _ => fail!(MISSING_ARGUMENT, "a number of pieces or the places to cut at are expected"),
    }
}

signature!(tensor_split(input: Tensor, indices_or_sections: IntOrInts, dim: Dim = 0));

pub static TENSOR_SPLIT: Op = Op {
    name: "tensor_split",
    params: tensor_split::PARAMS,
    summary: "That many nearly equal pieces, or the pieces between the places in a list; views.",
    examples: &[
        ex("tensor([1, 2, 3]).tensor_split(2)", "[tensor([1, 2]), tensor([3])]"),
        ex("tensor([1, 2, 3]).tensor_split([1])", "[tensor([1]), tensor([2, 3])]"),
        ex("ones([3]).tensor_split(0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (dim, n) = along(a.input(), a.int(tensor_split::dim))?;
        cut(e, a.input(), dim, n, a.attr(tensor_split::indices_or_sections))
    }),
    grad: Grad::Composed,
    results: Returns::List,
    ..Op::BASE
};

/// `hsplit` and similar: along a fixed dimension, into exactly equal pieces.
fn fixed(e: &mut dyn Emit, a: &Args, least: usize, dim: usize) -> Result<Vec<Tensor>> {
    let (x, ndim) = (a.input(), a.input().ndim());
    if ndim < least {
        fail!(SHAPE, "a tensor of at least {least} dimensions is expected, not {ndim}");
    }
    let n = x.shape()[dim] as i64;
    if let Attr::Int(count) = a.attr(fixed::indices_or_sections)
        && (*count <= 0 || n % count != 0)
    {
        fail!(VALUE, "dimension {dim} of size {n} cannot be split into {count} equal pieces");
    }
    cut(e, x, dim, n, a.attr(fixed::indices_or_sections))
}

signature!(fixed(input: Tensor, indices_or_sections: IntOrInts));

macro_rules! fixed {
    ($NAME:ident, $name:literal, $least:literal, $dim:expr, $which:literal, $bad:literal) => {
        pub static $NAME: Op = Op {
            name: $name,
            params: fixed::PARAMS,
            summary: concat!("Equal pieces along ", $which, ", or the pieces between the places in a list; views."),
            examples: &[
                ex(concat!($name, "(ones([2, 4, 6]), 2)[0].numel"), "24"),
                ex($bad, "E0201"),
                ex(concat!($name, "(ones([2, 4, 6]), 5)"), "E0206"),
            ],
            lower: Lower::Compose(|e, a| {
                let dim: fn(usize) -> usize = $dim;
                fixed(e, a, $least, dim(a.input().ndim()))
            }),
            grad: Grad::Composed,
            results: Returns::List,
            ..Op::BASE
        };
    };
}
fixed!(
    HSPLIT,
    "hsplit",
    1,
    |ndim| (ndim > 1) as usize,
    "the second dimension (of a vector, the first)",
    "hsplit(ones([]), 1)"
);
fixed!(VSPLIT, "vsplit", 2, |_| 0, "the first dimension", "vsplit(ones([2]), 1)");
fixed!(DSPLIT, "dsplit", 3, |_| 2, "the third dimension", "dsplit(ones([2, 2]), 1)");

signature!(unbind(input: Tensor, dim: Dim = 0));

pub static UNBIND: Op = Op {
    name: "unbind",
    params: unbind::PARAMS,
    summary: "The slices along a dimension, which is removed; views.",
    examples: &[
        ex("tensor([[1, 2], [3, 4]]).unbind()", "[tensor([1, 2]), tensor([3, 4])]"),
        ex("ones([2]).unbind(1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (dim, n) = along(a.input(), a.int(unbind::dim))?;
        room(e, n)?;
        let slices: Result<_> = (0..n).map(|at| e.call(&SELECT, args![a.input(), dim, at])).collect();
        Ok(together(e, slices?))
    }),
    grad: Grad::Composed,
    results: Returns::List,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&SPLIT, &SPLIT_WITH_SIZES, &CHUNK, &TENSOR_SPLIT, &HSPLIT, &VSPLIT, &DSPLIT, &UNBIND];
