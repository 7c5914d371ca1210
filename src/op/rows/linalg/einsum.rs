//! Contractions named by letters or axes: `einsum`, `tensordot`, `kron`, powers, cross products. All become
//! permutations, reshapes and one batched product for each pair of operands.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::linalg;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::linalg::matmul::{check_dtypes, product};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::copies::ROLL;
use crate::op::rows::shape::rearrange::{DIAGONAL, PERMUTE, distinct};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, UNSQUEEZE};
use crate::op::rows::signatures::two_tensors;
use crate::op::tensor::Tensor;
use crate::signature;

/// One place of an operand or of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Axis {
    Letter(u8),
    /// A dimension under the ellipsis, counted from its last.
    Hidden(usize),
}

/// Subscripts as written: letters, and where the ellipsis stands.
struct Term {
    letters: Vec<u8>,
    ellipsis: Option<usize>,
}

fn term(text: &str) -> Result<Term> {
    let mut term = Term { letters: Vec::new(), ellipsis: None };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if term.ellipsis.is_some() {
                fail!(VALUE, "\"{text}\" has more than one ellipsis");
            }
            term.ellipsis = Some(term.letters.len());
            rest = after;
            continue;
        }
        if !c.is_ascii_alphabetic() {
            fail!(VALUE, "subscripts are letters, not `{c}`");
        }
        term.letters.push(c as u8);
        rest = &rest[1..];
    }
    Ok(term)
}

impl Term {
    /// One axis a dimension, when the ellipsis stands for `hidden` of them.
    fn axes(&self, hidden: usize) -> Vec<Axis> {
        let mut axes: Vec<Axis> = self.letters.iter().map(|&c| Axis::Letter(c)).collect();
        if let Some(at) = self.ellipsis {
            axes.splice(at..at, (0..hidden).rev().map(Axis::Hidden));
        }
        axes
    }
}

/// The equation with its operands: axes of each, and of the result.
struct Equation {
    operands: Vec<Vec<Axis>>,
    result: Vec<Axis>,
}

fn parse(equation: &str, shapes: &[Shape]) -> Result<Equation> {
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (text.as_str(), None),
    };
    let terms: Vec<Term> = left.split(',').map(term).collect::<Result<_>>()?;
    if terms.len() != shapes.len() {
        fail!(VALUE, "the equation names {} operands, {} are given", terms.len(), shapes.len());
    }
    let mut most = 0;
    let mut operands = Vec::with_capacity(terms.len());
    for (at, (term, shape)) in terms.iter().zip(shapes).enumerate() {
        let named = term.letters.len();
        if named > shape.len() || (term.ellipsis.is_none() && named != shape.len()) {
            return Err(Diag::error(
                code::SHAPE,
                format!("operand {at} has {} dimensions, its subscripts name {named}", shape.len()),
            )
            .help("`...` means the dimensions that are not named"));
        }
        let hidden = shape.len() - named;
        most = most.max(hidden);
        operands.push(term.axes(hidden));
    }
    let result = match right {
        Some(right) => {
            let term = term(right)?;
            for (at, letter) in term.letters.iter().enumerate() {
                let name = *letter as char;
                if term.letters[..at].contains(letter) {
                    fail!(VALUE, "`{name}` appears twice in the result");
                }
                if !operands.iter().flatten().any(|axis| *axis == Axis::Letter(*letter)) {
                    fail!(VALUE, "`{name}` of the result appears in no operand");
                }
            }
            term.axes(most)
        }
        None => {
            let count = |c: u8| operands.iter().flatten().filter(|axis| **axis == Axis::Letter(c)).count();
            let once = (b'A'..=b'z').filter(|&c| count(c) == 1).map(Axis::Letter);
            (0..most).rev().map(Axis::Hidden).chain(once).collect()
        }
    };
    Ok(Equation { operands, result })
}

fn axis_name(axis: Axis) -> String {
    match axis {
        Axis::Letter(c) => format!("`{}`", c as char),
        Axis::Hidden(_) => "`...`".into(),
    }
}

/// An operand with one dimension for each of `all`, in that order, of size 1 where it has none.
fn aligned(e: &mut dyn Emit, x: &Tensor, axes: &[Axis], all: &[Axis]) -> Result<Tensor> {
    let (mut x, mut axes) = (x.clone(), axes.to_vec());
    while let Some(second) = (0..axes.len()).find(|&at| axes[..at].contains(&axes[at])) {
        let axis = axes[second];
        let first = axes.iter().position(|other| *other == axis).unwrap_or(0);
        let shape = x.shape();
        if shape[first] != shape[second] {
            fail!(
                SHAPE,
                "{} is repeated in one operand, with sizes {} and {}",
                axis_name(axis),
                shape[first],
                shape[second]
            );
        }
        x = e.call(&DIAGONAL, args![&x, 0, first, second])?;
        axes.remove(second);
        axes.remove(first);
        axes.push(axis);
    }
    let own: Ints =
        all.iter().filter_map(|axis| axes.iter().position(|other| other == axis)).map(|at| at as i64).collect();
    if own.iter().enumerate().any(|(at, &dim)| dim != at as i64) {
        x = e.call(&PERMUTE, args![&x, own])?;
    }
    for (at, axis) in all.iter().enumerate() {
        if !axes.contains(axis) {
            x = e.call(&UNSQUEEZE, args![&x, at])?;
        }
    }
    Ok(x)
}

fn sum_dims(e: &mut dyn Emit, x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let shape = x.shape();
    let dims: Ints = dims.iter().filter(|&&dim| shape[dim] != 1).map(|&dim| dim as i64).collect();
    if dims.is_empty() {
        return Ok(x.clone());
    }
    e.call(&SUM, args![x, dims, true])
}

/// Multiplies two aligned operands and sums over `dims`, which stay with size 1.
fn multiply(e: &mut dyn Emit, a: &Tensor, b: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let (mut a, mut b) = (a.clone(), b.clone());
    let (s, t) = (a.shape(), b.shape());
    // A size of 1 is broadcast, or has nothing to sum.
    let only = |s: &Shape, t: &Shape| dims.iter().copied().filter(|&d| s[d] != 1 && t[d] == 1).collect::<Vec<_>>();
    let (only_a, only_b) = (only(&s, &t), only(&t, &s));
    a = sum_dims(e, &a, &only_a)?;
    b = sum_dims(e, &b, &only_b)?;
    let (s, t) = (a.shape(), b.shape());
    let sums: Vec<usize> = dims.iter().copied().filter(|&d| s[d] != 1 && t[d] != 1).collect();
    if sums.is_empty() {
        return e.mul(&a, &b);
    }
    // A sum of small integers has become i64.
    if !a.dtype().is_inexact() && !b.dtype().is_inexact() && a.dtype() != b.dtype() {
        (a, b) = (e.cast(&a, DType::I64)?, e.cast(&b, DType::I64)?);
    }
    check_dtypes(&[("left operand", &a), ("right operand", &b)])?;
    let pick = |keep: &dyn Fn(usize) -> bool| (0..s.len()).filter(|&d| keep(d)).collect::<Vec<usize>>();
    let batch = pick(&|d| !sums.contains(&d) && (s[d] != 1) == (t[d] != 1));
    let left = pick(&|d| !sums.contains(&d) && s[d] != 1 && t[d] == 1);
    let right = pick(&|d| !sums.contains(&d) && s[d] == 1 && t[d] != 1);
    let order = |groups: [&[usize]; 4]| groups.concat().iter().map(|&d| d as i64).collect::<Ints>();
    let size = |shape: &Shape, dims: &[usize]| dims.iter().map(|&d| shape[d]).product::<usize>();
    let (rows, columns, inner, batches) = (size(&s, &left), size(&t, &right), size(&s, &sums), size(&s, &batch));
    let a = e.call(&PERMUTE, args![&a, order([&batch, &left, &sums, &right])])?;
    let b = e.call(&PERMUTE, args![&b, order([&batch, &sums, &right, &left])])?;
    let lead: &[usize] = if batch.is_empty() { &[] } else { &[batches] };
    let with = |last: [usize; 2]| lead.iter().copied().chain(last).collect::<Shape>();
    let a = e.call(&RESHAPE, args![&a, with([rows, inner]).as_slice()])?;
    let b = e.call(&RESHAPE, args![&b, with([inner, columns]).as_slice()])?;
    let out = product(e, &a, &b)?;
    // The result has its dims in the order batch, left, right, summed (1): back to their places.
    let from: Vec<usize> = [&batch[..], &left, &right, &sums].concat();
    let shape: Shape = from
        .iter()
        .map(|&d| {
            if sums.contains(&d) {
                1
            } else if s[d] == 1 {
                t[d]
            } else {
                s[d]
            }
        })
        .collect();
    let out = e.call(&RESHAPE, args![&out, shape.as_slice()])?;
    let back: Ints = (0..s.len()).filter_map(|d| from.iter().position(|&f| f == d)).map(|at| at as i64).collect();
    e.call(&PERMUTE, args![&out, back])
}

fn einsum(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let list = a.tensor_list(einsum::operands);
    if list.is_empty() {
        fail!(VALUE, "at least one operand is expected");
    }
    let shapes: Vec<Shape> = list.iter().map(Tensor::shape).collect();
    let Equation { operands, result } = parse(a.text(einsum::equation), &shapes)?;
    let mut all = result.clone();
    for axis in operands.iter().flatten() {
        if !all.contains(axis) {
            all.push(*axis);
        }
    }
    if all.len() > crate::base::limits::MAX_DIMS {
        fail!(
            VALUE,
            "the equation has {} different subscripts, at most {} are taken",
            all.len(),
            crate::base::limits::MAX_DIMS
        );
    }
    let mut parts = Vec::with_capacity(list.len());
    for (x, axes) in list.iter().zip(&operands) {
        parts.push(aligned(e, x, axes, &all)?);
    }
    check_sizes(&parts, &all)?;
    // The last operand in which a summed axis has a size decides when it is summed.
    let last_use = |dim: usize| parts.iter().rposition(|x| x.shape()[dim] != 1);
    let summed: Vec<(usize, usize)> = (result.len()..all.len()).map(|dim| (dim, last_use(dim).unwrap_or(0))).collect();
    let due = |at: usize| summed.iter().filter(|(_, last)| *last == at).map(|(dim, _)| *dim).collect::<Vec<_>>();
    let mut out = sum_dims(e, &parts[0], &due(0))?;
    if list.len() == 1 && !due(0).is_empty() && !out.dtype().is_inexact() {
        // A sum of integers is i64, over an axis of size 1 too.
        out = e.cast(&out, DType::I64)?;
    }
    for (at, x) in parts.iter().enumerate().skip(1) {
        out = multiply(e, &out, x, &due(at))?;
    }
    let shape = Shape::from_slice(&out.shape()[..result.len()]);
    e.apply(&RESHAPE, args![&out, shape.as_slice()])
}

fn check_sizes(parts: &[Tensor], all: &[Axis]) -> Result<()> {
    for (dim, axis) in all.iter().enumerate() {
        let mut seen = 1;
        for (at, x) in parts.iter().enumerate() {
            let size = x.shape()[dim];
            if size != 1 && seen != 1 && size != seen {
                fail!(SHAPE, "{} has size {size} in operand {at}, but {seen} before", axis_name(*axis));
            }
            seen = if size == 1 { seen } else { size };
        }
    }
    Ok(())
}

signature!(einsum(equation: Text, operands: Tensors));

pub static EINSUM: Op = Op {
    name: "einsum",
    params: einsum::PARAMS,
    summary: "Sums of products as an equation of subscripts says.",
    details: "`\"ij,jk->ik\"` is a matrix product. A letter that is not in the result is summed; one that stands twice in \
              an operand takes its diagonal; `...` stands for dimensions without a name. Without `->` the result has \
              the letters that appear once, in alphabetical order. Operands are contracted from left to right.",
    examples: &[
        ex("einsum(\"ij,jk->ik\", [ones([1, 2]), ones([2, 1])])", "tensor([[2.]])"),
        ex("einsum(\"ii\", [tensor([[1, 2], [3, 4]])])", "tensor(5)"),
        ex("einsum(\"i,i->\", [ones([2]), ones([3])])", "E0201"),
        ex("einsum(\"i->j\", [ones([2])])", "E0206"),
    ],
    lower: Lower::Compose(einsum),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(tensordot(a: Tensor, b: Tensor, dims: Axes = 2));

pub static TENSORDOT: Op = Op {
    name: "tensordot",
    params: tensordot::PARAMS,
    summary: "Sums of products over pairs of dimensions: the last of `a` with the first of `b`, or those named.",
    examples: &[
        ex("tensordot(ones([2, 3]), ones([3, 2]), 1)", "tensor([[3., 3.],\n        [3., 3.]])"),
        ex("tensordot(ones([2, 3]), ones([2, 3]), [[0, 1], [0, 1]])", "tensor(6.)"),
        ex("tensordot(ones([2, 3]), ones([2, 3]), 1)", "E0201"),
        ex("tensordot(ones([2]), ones([2]), -1)", "E0206"),
    ],
    lower: Lower::Compose(|e, args| {
        let (mut x, mut y) = (args.tensor(tensordot::a).clone(), args.tensor(tensordot::b).clone());
        let (mut s, mut t) = (x.shape(), y.shape());
        let (left, right): (Vec<i64>, Vec<i64>) = match args.attr(tensordot::dims) {
            Attr::Ints(list) => (list[..list.len() / 2].to_vec(), list[list.len() / 2..].to_vec()),
            _ => {
                let n = args.int(tensordot::dims);
                if n < 0 || n > s.len().min(t.len()) as i64 {
                    fail!(
                        VALUE,
                        "{n} dimensions cannot be paired for shapes {:?} and {:?}",
                        s.as_slice(),
                        t.as_slice()
                    );
                }
                ((s.len() as i64 - n..s.len() as i64).collect(), (0..n).collect())
            }
        };
        let (left, right) = (distinct(&left, s.len())?, distinct(&right, t.len())?);
        for (&l, &r) in left.iter().zip(&right) {
            let at = |shape: &Shape, dim: usize| shape.get(dim).copied().unwrap_or(1);
            let (m, n) = (at(&s, l), at(&t, r));
            // A size of 1 is broadcast: the other side is summed.
            if m == 1 && n != 1 {
                let sum = e.call(&SUM, args![&y, r, true])?;
                y = e.cast(&sum, y.dtype())?;
                t = y.shape();
            } else if n == 1 && m != 1 {
                let sum = e.call(&SUM, args![&x, l, true])?;
                x = e.cast(&sum, x.dtype())?;
                s = x.shape();
            } else if m != n {
                fail!(SHAPE, "dimension {l} of `a` has size {}, dimension {r} of `b` {}", at(&s, l), at(&t, r));
            }
        }
        let rest = |shape: &Shape, used: &[usize]| (0..shape.len()).filter(|d| !used.contains(d)).collect::<Vec<_>>();
        let (rows, columns) = (rest(&s, &left), rest(&t, &right));
        let order = |first: &[usize], second: &[usize]| first.iter().chain(second).map(|&d| d as i64).collect::<Ints>();
        let inner = left.iter().map(|&d| s.get(d).copied().unwrap_or(1)).product::<usize>();
        let size = |shape: &Shape, dims: &[usize]| dims.iter().map(|&d| shape[d]).product::<usize>();
        let a = if s.is_empty() { x.clone() } else { e.call(&PERMUTE, args![&x, order(&rows, &left)])? };
        let b = if t.is_empty() { y.clone() } else { e.call(&PERMUTE, args![&y, order(&right, &columns)])? };
        let a = e.call(&RESHAPE, args![&a, &[size(&s, &rows), inner][..]])?;
        let b = e.call(&RESHAPE, args![&b, &[inner, size(&t, &columns)][..]])?;
        let out = product(e, &a, &b)?;
        let shape: Shape = rows.iter().map(|&d| s[d]).chain(columns.iter().map(|&d| t[d])).collect();
        e.apply(&RESHAPE, args![&out, shape.as_slice()])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static KRON: Op = Op {
    name: "kron",
    params: two_tensors::PARAMS,
    summary: "Kronecker product: each element of one tensor times the whole other.",
    examples: &[ex("kron(tensor([1, 2]), tensor([1, 10]))", "tensor([ 1, 10,  2, 20])")],
    lower: Lower::Compose(|e, a| {
        let (s, t) = (a.input().shape(), a.tensor(two_tensors::other).shape());
        let ndim = s.len().max(t.len());
        let size = |shape: &Shape, d: usize| (d + shape.len()).checked_sub(ndim).map_or(1, |d| shape[d]);
        let first: Shape = (0..ndim).flat_map(|d| [size(&s, d), 1]).collect();
        let second: Shape = (0..ndim).flat_map(|d| [1, size(&t, d)]).collect();
        let whole: Shape = (0..ndim).map(|d| size(&s, d).saturating_mul(size(&t, d))).collect();
        let x = e.call(&RESHAPE, args![a.input(), first.as_slice()])?;
        let y = e.call(&RESHAPE, args![a.tensor(two_tensors::other), second.as_slice()])?;
        let out = e.mul(&x, &y)?;
        e.apply(&RESHAPE, args![&out, whole.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// A batch of identity matrices like `x`.
pub fn identity_like(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let n = shape[shape.len() - 1];
    let ones = e.full(&[n], crate::base::dtype::Scalar::Int(1), &crate::op::tensor::Meta::of(x))?;
    let eye = e.call(&crate::op::rows::shape::copies::DIAG_EMBED, args![&ones])?;
    e.call(&EXPAND, args![&eye, shape.as_slice()])
}

/// Square matrices, at least one of them.
pub fn square(name: &str, x: &Tensor) -> Result<usize> {
    let shape = x.shape();
    match shape.as_slice() {
        [.., m, n] if m == n => Ok(*n),
        _ => Err(Diag::error(
            code::SHAPE,
            format!("`{name}` must be a square matrix or a batch of them, not of shape {:?}", shape.as_slice()),
        )),
    }
}

signature!(matrix_power(input: Tensor, n: Int));

pub static MATRIX_POWER: Op = Op {
    name: "matrix_power",
    params: matrix_power::PARAMS,
    summary: "A square matrix times itself `n` times; negative powers invert first.",
    examples: &[
        ex("matrix_power(tensor([[1, 1], [0, 1]]), 3)", "tensor([[1, 3],\n        [0, 1]])"),
        ex("matrix_power(ones([2, 3]), 2)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let mut x = a.input().clone();
        square("input", &x)?;
        let mut n = a.int(matrix_power::n).unsigned_abs();
        if a.int(matrix_power::n) < 0 {
            x = e.call(&crate::op::rows::linalg::solve::INV, args![&x])?;
        }
        if n == 0 {
            let eye = identity_like(e, &x)?;
            // The choice is never for `x`, which gets the gradient 0.
            let meta = crate::op::tensor::Meta { dtype: DType::Bool, ..crate::op::tensor::Meta::of(&x) };
            let never = e.full(&[], crate::base::dtype::Scalar::Bool(false), &meta)?;
            return e.apply(&crate::op::rows::pointwise::compare::WHERE, args![&never, &x, &eye]);
        }
        if n == 1 {
            return e.apply(&crate::op::rows::shape::view::CLONE, args![&x]);
        }
        let mut result: Option<Tensor> = None;
        loop {
            if n & 1 == 1 {
                result = Some(match result {
                    Some(r) => product(e, &r, &x)?,
                    None => x.clone(),
                });
            }
            n >>= 1;
            match result {
                Some(r) if n == 0 => return Ok(vec![r]),
                _ => x = product(e, &x, &x)?,
            }
        }
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(cross(input: Tensor, other: Tensor, dim: Dim = None));

pub static CROSS: Op = Op {
    name: "cross",
    params: cross::PARAMS,
    summary: "Cross product of vectors of three elements along `dim` (without it, the first dimension of size 3).",
    examples: &[
        ex("cross(tensor([1, 0, 0]), tensor([0, 1, 0]))", "tensor([0, 0, 1])"),
        ex("cross(ones([2]), ones([2]))", "E0201"),
        ex("cross(ones([3]), ones([3]), 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y) = (a.input(), a.tensor(cross::other));
        if x.ndim() != y.ndim() {
            fail!(SHAPE, "the operands have {} and {} dimensions", x.ndim(), y.ndim());
        }
        let shape = infer::broadcast_all([x.shape().as_slice(), y.shape().as_slice()])?;
        let dim = match a.opt_int(cross::dim) {
            Some(dim) => infer::dim(dim, shape.len())?,
            None => match shape.iter().position(|&n| n == 3) {
                Some(dim) => dim,
                None => fail!(SHAPE, "no dimension of shape {:?} has size 3", shape.as_slice()),
            },
        };
        if x.shape().get(dim) != Some(&3) || y.shape().get(dim) != Some(&3) {
            fail!(SHAPE, "dimension {dim} must have size 3 in both operands");
        }
        if x.dtype() == y.dtype() && !x.dtype().is_complex() && x.dtype() != DType::Bool {
            let (x, y) = (e.call(&EXPAND, args![x, shape.as_slice()])?, e.call(&EXPAND, args![y, shape.as_slice()])?);
            return e.apply(&CROSSED, args![&x, &y, dim]);
        }
        let roll = |e: &mut dyn Emit, x: &Tensor, by: i64| e.call(&ROLL, args![x, by, dim]);
        let (a1, b2) = (roll(e, x, -1)?, roll(e, y, -2)?);
        let (a2, b1) = (roll(e, x, -2)?, roll(e, y, -1)?);
        let (first, second) = (e.mul(&a1, &b2)?, e.mul(&a2, &b1)?);
        Ok(vec![e.sub(&first, &second)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(crossed(input: Tensor, other: Tensor, dim: Int));

/// Of operands of one shape and dtype.
static CROSSED: Op = Op {
    name: "cross",
    params: crossed::PARAMS,
    summary: "Cross products along a dimension of size 3.",
    lower: Lower::Kernel(|_, a| {
        let (x, y) = (a.input(), a.tensor(crossed::other));
        let call = KernelCall::new("cross", &linalg::CROSS).input(x).input(y).int(a.int(crossed::dim));
        Ok(call.output(&x.shape(), x.dtype()))
    }),
    saves: &[Save::For(crossed::input, crossed::other), Save::For(crossed::other, crossed::input)],
    grad: Grad::Rule(|e, v| {
        let dim = v.args.int(crossed::dim);
        let dx = match v.needs(crossed::input) {
            true => Some(e.call(&CROSSED, args![v.saved(crossed::other), v.g(), dim])?),
            false => None,
        };
        let dy = match v.needs(crossed::other) {
            true => Some(e.call(&CROSSED, args![v.g(), v.saved(crossed::input), dim])?),
            false => None,
        };
        Ok(vec![dx, dy])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Product(0, 1, None),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&EINSUM, &TENSORDOT, &KRON, &MATRIX_POWER, &CROSS, &CROSSED];
