//! QR decomposition as reflections, and what is made of them: `geqrf`, `householder_product`, `ormqr`.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::kernel::linalg;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, ex};
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::linalg::solve::{matrices, sized, squares};
use crate::op::rows::linalg::svd::EIGH;
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::pointwise::complex_parts::CONJ;
use crate::op::rows::pointwise::unary::SQRT;
use crate::op::rows::shape::copies::{DIAG_EMBED, TRIL};
use crate::op::rows::shape::rearrange::adjoint;
use crate::op::rows::shape::view::{SELECT, SLICE, STRAIGHT, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

signature!(geqrf(A: Tensor));

pub static GEQRF: Op = Op {
    name: "geqrf",
    params: geqrf::PARAMS,
    summary: "QR decomposition in its compact form: R with the reflections' vectors below it, and their factors.",
    details: "LAPACK's form; `householder_product` makes Q of it.",
    examples: &[
        ex("geqrf(tensor([[3.0], [4.0]])).a", "tensor([[-5.0000],\n        [ 0.5000]])"),
        ex("geqrf(tensor([[3.0], [4.0]])).tau", "tensor([1.6000])"),
        ex("geqrf(ones([2]))", "E0201"),
        ex("geqrf(tensor([[1]]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(geqrf::A);
        matrices("A", x)?;
        let shape = x.shape();
        let k = shape[shape.len() - 2].min(shape[shape.len() - 1]);
        let call = KernelCall::new("geqrf", &linalg::GEQRF).input(x).output(&shape, x.dtype());
        Ok(call.output(&sized(x, &[k]), x.dtype()))
    }),
    grad: Grad::Stop("there is no gradient of the reflections themselves; `qr` has one"),
    results: Returns::Named(&["a", "tau"]),
    ..Op::BASE
};

/// Reflection vectors `[.., m, k]` with their ones, and factors, checked.
fn vectors(e: &mut dyn Emit, a: &Tensor, tau: &Tensor) -> Result<(Tensor, usize)> {
    matrices("A", a)?;
    infer::same_dtype(&[("A", a), ("tau", tau)])?;
    let shape = a.shape();
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let (Some(&k), lead) = (tau.shape().last(), &shape[..shape.len() - 2]) else {
        fail!(SHAPE, "`tau` must have at least 1 dimension")
    };
    if tau.shape()[..tau.ndim() - 1] != *lead || k > m.min(n) {
        fail!(
            SHAPE,
            "`A` of shape {:?} and `tau` of shape {:?} are no reflections: each factor has a vector in A",
            shape.as_slice(),
            tau.shape().as_slice()
        );
    }
    let left = e.call(&SLICE, args![a, -1, 0, k, 1])?;
    let strict = e.call(&TRIL, args![&left, -1])?;
    let eye = identity(e, a, m, k)?;
    Ok((e.add(&strict, &eye)?, k))
}

/// The first `n` columns of the identity of size `m`, for each matrix.
fn identity(e: &mut dyn Emit, like: &Tensor, m: usize, n: usize) -> Result<Tensor> {
    let one = e.full(&sized(like, &[n]), Scalar::Int(1), &Meta::of(like))?;
    let eye = e.call(&DIAG_EMBED, args![&one])?;
    if m > n { e.call(&PAD_CONSTANT, args![&eye, &[0, 0, 0, (m - n) as i64][..], 0]) } else { Ok(eye) }
}

/// Applies reflections to columns: the first vector's last, or with `reversed` first.
fn applied(e: &mut dyn Emit, v: &Tensor, tau: &Tensor, k: usize, x: Tensor, reversed: bool) -> Result<Tensor> {
    let tau = &if reversed { e.call(&CONJ, args![tau])? } else { tau.clone() };
    let mut x = if k == 0 { e.call(&STRAIGHT, args![&x, ()])? } else { x };
    for step in 0..k {
        let i = if reversed { step } else { k - 1 - step };
        let column = e.call(&SLICE, args![v, -1, i, i + 1, 1])?;
        let row = adjoint(e, &column)?;
        let along = product(e, &row, &x)?;
        let factor = e.call(&SELECT, args![tau, -1, i])?;
        let factor = e.call(&UNSQUEEZE, args![&factor, -1])?;
        let factor = e.call(&UNSQUEEZE, args![&factor, -1])?;
        let along = e.mul(&along, &factor)?;
        let change = product(e, &column, &along)?;
        x = e.sub(&x, &change)?;
    }
    Ok(x)
}

signature!(householder_product(A: Tensor, tau: Tensor));

pub static HOUSEHOLDER_PRODUCT: Op = Op {
    name: "householder_product",
    aliases: &["orgqr"],
    params: householder_product::PARAMS,
    summary: "The first columns of the product of reflections: Q of what `geqrf` gives.",
    examples: &[
        ex("householder_product(tensor([[-5.0], [0.5]]), tensor([1.6]))", "tensor([[-0.6000],\n        [-0.8000]])"),
        ex("householder_product(ones([1, 2]), ones([1]))", "E0201"),
        ex("householder_product(ones([2, 1]), tensor([1]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, tau) = (a.tensor(householder_product::A), a.tensor(householder_product::tau));
        let (v, k) = vectors(e, x, tau)?;
        let shape = x.shape();
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        if m < n {
            fail!(SHAPE, "`A` must be at least as high as wide; it has shape {:?}", shape.as_slice());
        }
        let eye = identity(e, x, m, n)?;
        Ok(vec![applied(e, &v, tau, k, eye, false)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(ormqr(input: Tensor, tau: Tensor, other: Tensor, left: Bool = true, transpose: Bool = false));

pub static ORMQR: Op = Op {
    name: "ormqr",
    params: ormqr::PARAMS,
    summary: "The product of Q, given by reflections, with another matrix, from the left or the right.",
    details: "Q is square, of the height of `input`; it is never formed.",
    examples: &[
        ex(
            "ormqr(tensor([[-5.0], [0.5]]), tensor([1.6]), tensor([[1.0], [0.0]]))",
            "tensor([[-0.6000],\n        [-0.8000]])",
        ),
        ex("ormqr(ones([2, 1]), ones([1]), ones([3, 1]))", "E0201"),
        ex("ormqr(ones([2, 1]), ones([1]), tensor([[1], [2]]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, tau, other) = (a.input(), a.tensor(ormqr::tau), a.tensor(ormqr::other));
        let (left, transpose) = (a.flag(ormqr::left), a.flag(ormqr::transpose));
        let (v, k) = vectors(e, x, tau)?;
        infer::same_dtype(&[("input", x), ("other", other)])?;
        matrices("other", other)?;
        let (shape, own) = (x.shape(), other.shape());
        let side = own[own.len() - if left { 2 } else { 1 }];
        if side != shape[shape.len() - 2] || own[..own.len() - 2] != shape[..shape.len() - 2] {
            fail!(SHAPE, "`other` of shape {:?} does not fit `input` of shape {:?}", own.as_slice(), shape.as_slice());
        }
        if left {
            return Ok(vec![applied(e, &v, tau, k, other.clone(), transpose)?]);
        }
        let flipped = adjoint(e, other)?;
        let y = applied(e, &v, tau, k, flipped, !transpose)?;
        Ok(vec![adjoint(e, &y)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Both,
    ..Op::BASE
};

pub static MATRIX_SQRTH: Op = Op {
    name: "matrix_sqrth",
    params: geqrf::PARAMS,
    summary: "The symmetric square root of positive-definite matrices: X @ X = A.",
    details: "The lower triangle is read. Through the eigenvalues; negative ones give NaN.",
    examples: &[
        ex("matrix_sqrth(tensor([[4.0]]))", "tensor([[2.]])"),
        ex("matrix_sqrth(ones([2, 3]))", "E0201"),
        ex("matrix_sqrth(tensor([[1]]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        squares("A", a.tensor(geqrf::A))?;
        let parts = e.apply(&EIGH, args![a.tensor(geqrf::A)])?;
        let roots = e.call(&SQRT, args![&parts[0]])?;
        let roots = e.call(&UNSQUEEZE, args![&roots, -2])?;
        let scaled = e.mul(&parts[1], &roots)?;
        let flipped = adjoint(e, &parts[1])?;
        Ok(vec![product(e, &scaled, &flipped)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&GEQRF, &HOUSEHOLDER_PRODUCT, &ORMQR, &MATRIX_SQRTH];
