//! Tensors as linear maps between groups of their dimensions, and Vandermonde's matrix.

use crate::args;
use crate::base::attr::Ints;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::linalg::solve::{INV, solve, squares};
use crate::op::rows::reduction::scan::CUMPROD;
use crate::op::rows::shape::copies::FLIP;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::MOVEDIM;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, UNSQUEEZE};
use crate::op::tensor::Meta;
use crate::signature;

signature!(tensorinv(A: Tensor, ind: Int = 2));

pub static TENSORINV: Op = Op {
    name: "tensorinv",
    params: tensorinv::PARAMS,
    summary: "The inverse of a tensor as a map from its last dimensions to its first `ind`.",
    examples: &[
        ex("tensorinv(tensor([[2.0]]), 1)", "tensor([[0.5000]])"),
        ex("tensorinv(ones([2, 3]), 1)", "E0201"),
        ex("tensorinv(ones([2, 2]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (shape, ind) = (a.tensor(tensorinv::A).shape(), a.int(tensorinv::ind));
        if ind <= 0 {
            fail!(VALUE, "`ind` must be positive, not {ind}");
        }
        let at = (ind as usize).min(shape.len());
        let (rows, columns): (usize, usize) = (shape[..at].iter().product(), shape[at..].iter().product());
        if rows != columns {
            fail!(SHAPE, "the sizes {:?} and {:?} have different products", &shape[..at], &shape[at..]);
        }
        let flat = e.call(&RESHAPE, args![a.tensor(tensorinv::A), &[rows, columns][..]])?;
        let inverse = e.call(&INV, args![&flat])?;
        let out: Shape = shape[at..].iter().chain(&shape[..at]).copied().collect();
        e.apply(&RESHAPE, args![&inverse, out.as_slice()])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(tensorsolve(A: Tensor, B: Tensor, dims: Ints = None));

pub static TENSORSOLVE: Op = Op {
    name: "tensorsolve",
    params: tensorsolve::PARAMS,
    summary: "The X with tensordot(A, X) = B: A as a map from its last dimensions to those of B.",
    details: "`dims` of A are moved to its end first. The sizes of A past those of B have B's number of elements.",
    examples: &[
        ex("tensorsolve(tensor([[2.0]]), tensor([4.0]))", "tensor([2.])"),
        ex("tensorsolve(ones([2, 3]), ones([2]))", "E0201"),
        ex("tensorsolve(ones([2, 2]), ones([2]), [2])", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let (mut x, b) = (a.tensor(tensorsolve::A).clone(), a.tensor(tensorsolve::B));
        if let Some(dims) = a.ints(tensorsolve::dims) {
            let ends: Ints = (0..dims.len() as i64).map(|i| i - dims.len() as i64).collect();
            x = e.call(&MOVEDIM, args![&x, dims, ends])?;
        }
        infer::same_dtype(&[("A", &x), ("B", b)])?;
        let shape = x.shape();
        let at = b.ndim().min(shape.len());
        let (rows, columns): (usize, usize) = (shape[..at].iter().product(), shape[at..].iter().product());
        if rows != columns || b.numel() != rows {
            fail!(
                SHAPE,
                "`A` of shape {:?} is no square map for `B` of shape {:?}",
                shape.as_slice(),
                b.shape().as_slice()
            );
        }
        let matrix = e.call(&RESHAPE, args![&x, &[rows, columns][..]])?;
        let vector = e.call(&RESHAPE, args![b, &[rows, 1][..]])?;
        squares("A", &matrix)?;
        let solution = solve(e, &matrix, &vector)?;
        e.apply(&RESHAPE, args![&solution, &shape[at..]])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(vander(x: Tensor, N: Int = None, increasing: Bool = true));

pub static VANDER: Op = Op {
    name: "vander",
    params: vander::PARAMS,
    summary: "Vandermonde's matrix: powers of the elements, from 0 to N - 1, along a new last dimension.",
    details: "`torch.linalg.vander`, whose powers rise; with `increasing: false` they fall, as `torch.vander` has it. Without `N` there are as many powers as elements.",
    examples: &[
        ex("vander(tensor([1, 2, 3]))", "tensor([[1, 1, 1],\n        [1, 2, 4],\n        [1, 3, 9]])"),
        ex("vander(tensor([2, 3]), #{N: 2, increasing: false})", "tensor([[2, 1],\n        [3, 1]])"),
        ex("vander(tensor([2]), #{N: -1})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = match a.tensor(vander::x).ndim() {
            0 => &e.call(&RESHAPE, args![a.tensor(vander::x), &[1usize][..]])?,
            _ => a.tensor(vander::x),
        };
        let n = a.opt_int(vander::N).unwrap_or(x.shape().last().map_or(1, |&size| size as i64));
        let least = if a.flag(vander::increasing) { 2 } else { 0 };
        if n < least && !a.is_none(vander::N) {
            fail!(VALUE, "`N` must be at least {least}, not {n}");
        }
        // PyTorch's matrix of `bool` is one of integers.
        let x = if x.dtype() == DType::Bool { e.cast(x, DType::I64)? } else { x.clone() };
        let mut shape = x.shape();
        shape.push(1);
        let ones = e.full(&shape, Scalar::Int(1), &Meta::of(&x))?;
        *shape.last_mut().unwrap_or(&mut 0) = (n - 1).max(0) as usize;
        infer::size_bytes(&shape, x.dtype())?;
        let column = e.call(&UNSQUEEZE, args![&x, -1])?;
        let powers = e.call(&EXPAND, args![&column, shape.as_slice()])?;
        let powers = e.call(&CUMPROD, args![&powers, -1])?;
        let both = match n {
            0 => powers,
            _ => e.call(&CAT, args![vec![ones, powers], -1])?,
        };
        if a.flag(vander::increasing) { Ok(vec![both]) } else { e.apply(&FLIP, args![&both, &[-1i64][..]]) }
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&TENSORINV, &TENSORSOLVE, &VANDER];
