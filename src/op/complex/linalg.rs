//! Matrices of complex numbers. What follows from elimination is computed by the real rows on matrices of twice the size,
//! where each element a + ib is the block [[a, -b], [b, a]]: sums and products of such matrices are those of the complex
//! ones, triangles stay triangles, and a factor that is unique has the same form. Other decompositions have kernels of
//! their own (`kernel/linalg/host/complex`).

use super::arithmetic::one;
use super::{Z, join, part};
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::family::Kernel;
use crate::kernel::linalg;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::expr::compute;
use crate::op::row::Op;
use crate::op::rows::linalg::lstsq_pinv::PSEUDO;
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::linalg::solve::{DET, sized, squares};
use crate::op::rows::linalg::svd::{EIGH, SVD, ends};
use crate::op::rows::linalg::{lu, solve};
use crate::op::rows::pointwise::arith::{DIV, FLOOR_DIVIDE};
use crate::op::rows::pointwise::complex::{VIEW_AS_COMPLEX, VIEW_AS_REAL};
use crate::op::rows::pointwise::unary::{ABS, LOG, SGN};
use crate::op::rows::reduction::reduce::{PROD, SUM};
use crate::op::rows::shape::copies::{TRIL, TRIU};
use crate::op::rows::shape::join::STACK;
use crate::op::rows::shape::rearrange::{DIAGONAL, transposed};
use crate::op::rows::shape::view::{RESHAPE, SELECT, UNSQUEEZE};
use crate::op::tensor::Tensor;

/// `[.., m, n]` to real blocks `[.., 2 m, 2 n]`.
fn blocks(e: &mut dyn Emit, z: &Z) -> Result<Tensor> {
    let minus = e.neg(&z.im)?;
    let above = e.call(&STACK, args![vec![z.re.clone(), minus], -1])?;
    let below = e.call(&STACK, args![vec![z.im.clone(), z.re.clone()], -1])?;
    let both = e.call(&STACK, args![vec![above, below], -3])?;
    let (m, n) = ends(&z.re);
    e.call(&RESHAPE, args![&both, sized(&z.re, &[2 * m, 2 * n]).as_slice()])
}

/// `[.., m, k]` to the real columns `[.., 2 m, k]` that such blocks are applied to.
fn columns(e: &mut dyn Emit, z: &Z) -> Result<Tensor> {
    let both = e.call(&STACK, args![vec![z.re.clone(), z.im.clone()], -2])?;
    let (m, k) = ends(&z.re);
    e.call(&RESHAPE, args![&both, sized(&z.re, &[2 * m, k]).as_slice()])
}

/// The inverse of `columns`.
fn of_columns(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let (rows, k) = ends(x);
    let split = e.call(&RESHAPE, args![x, sized(x, &[rows / 2, 2, k]).as_slice()])?;
    let (re, im) = (e.call(&SELECT, args![&split, -2, 0])?, e.call(&SELECT, args![&split, -2, 1])?);
    join(e, [re, im])
}

/// The inverse of `blocks`: each first column of a block.
fn of_blocks(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let (rows, columns) = ends(x);
    let split = e.call(&RESHAPE, args![x, sized(x, &[rows, columns / 2, 2]).as_slice()])?;
    let first = e.call(&SELECT, args![&split, -1, 0])?;
    of_columns(e, &first)
}

/// A matrix function whose value at the blocks is the blocks of its value (`inv`, `matrix_exp`).
pub fn of_whole(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    squares("A", args.input())?;
    let z = one(e, args)?;
    let wide = blocks(e, &z)?;
    let mut results = e.apply(op, args![&wide])?;
    results[0] = of_blocks(e, &results[0])?;
    halved(e, results)
}

/// Positions of what went wrong count rows of the blocks.
fn halved(e: &mut dyn Emit, mut results: Vec<Tensor>) -> Result<Vec<Tensor>> {
    if let Some(info) = results.get_mut(1) {
        let more = e.add(info, Scalar::Int(1))?;
        *info = e.call(&FLOOR_DIVIDE, args![&more, Scalar::Int(2)])?;
    }
    Ok(results)
}

/// `solve` and its form with `info`, over one batch.
pub fn solve(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let (a, b) = (one(e, args)?, one(e, &args![args.tensor(1)])?);
    let (a, b) = (blocks(e, &a)?, columns(e, &b)?);
    let mut results = e.apply(op, args![&a, &b])?;
    results[0] = of_columns(e, &results[0])?;
    halved(e, results)
}

/// Arguments: A, B, upper, left, unitriangular. Rows are divided by the diagonal first, so that the blocks are triangles.
pub fn triangular(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Tensor> {
    let (a, b, upper) = (args.tensor(0), args.tensor(1), args.flag(2));
    if !args.flag(3) {
        let (a, b) = (transposed(e, a)?, transposed(e, b)?);
        let x = triangular(e, op, &args![&a, &b, !upper, true, args.flag(4)])?;
        return transposed(e, &x);
    }
    let (mut a, mut b) = (a.clone(), b.clone());
    if !args.flag(4) {
        let diagonal = e.call(&DIAGONAL, args![&a, 0, -2, -1])?;
        let diagonal = e.call(&UNSQUEEZE, args![&diagonal, -1])?;
        (a, b) = (e.call(&DIV, args![&a, &diagonal])?, e.call(&DIV, args![&b, &diagonal])?);
    }
    let (mut a, b) = (one(e, &args![&a])?, one(e, &args![&b])?);
    // The diagonal is 1, whatever the matrix holds there: its imaginary part would count as an element of the triangle.
    a.im = if upper { e.call(&TRIU, args![&a.im, 1])? } else { e.call(&TRIL, args![&a.im, -1])? };
    let (a, b) = (blocks(e, &a)?, columns(e, &b)?);
    let x = e.call(op, args![&a, &b, upper, true, true])?;
    of_columns(e, &x)
}

/// The diagonal counts as real, as in PyTorch.
pub fn cholesky(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    squares("A", args.input())?;
    let z = one(e, args)?;
    let (below, above) = (e.call(&TRIL, args![&z.im, -1])?, e.call(&TRIU, args![&z.im, 1])?);
    let im = e.add(&below, &above)?;
    let wide = blocks(e, &Z { im, ..z })?;
    let mut results = e.apply(op, args![&wide, args.flag(1)])?;
    results[0] = of_blocks(e, &results[0])?;
    halved(e, results)
}

/// The solution is `pinv(A) @ B`.
pub fn least(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let inverse = e.call(&PSEUDO, args![args.tensor(0), (), args.get(2).clone(), false])?;
    product(e, &inverse, args.tensor(1))
}

/// Runs a kernel of complex matrices on `[.., m, n]`; `shapes` are what follows the batch dims in its results, without the
/// pairs, and whether they are complex.
fn kernel(
    e: &mut dyn Emit,
    (name, kernel): (&'static str, &'static Kernel),
    z: &Tensor,
    flag: Option<bool>,
    shapes: &[(&[usize], bool)],
) -> Result<Vec<Tensor>> {
    let dtype = z.dtype().to_complex();
    let wide = e.cast(z, DType::C128)?;
    let pairs = e.call(&VIEW_AS_REAL, args![&wide])?;
    let (m, n) = ends(z);
    let rows = e.call(&RESHAPE, args![&pairs, sized(z, &[m, 2 * n]).as_slice()])?;
    let mut call = KernelCall::new(name, kernel).input(&rows);
    if let Some(flag) = flag {
        call = call.flag(flag);
    }
    for (shape, complex) in shapes {
        let mut shape = sized(z, shape);
        if let (true, Some(last)) = (*complex, shape.last_mut()) {
            *last *= 2;
        }
        call = call.output(&shape, DType::F64);
    }
    let results = e.kernel(call)?;
    let back = |e: &mut dyn Emit, (x, (shape, complex)): (Tensor, &(&[usize], bool))| {
        if !complex {
            return e.cast(&x, dtype.real_part());
        }
        let mut pairs = sized(z, shape);
        pairs.push(2);
        let pairs = e.call(&RESHAPE, args![&x, pairs.as_slice()])?;
        let made = e.call(&VIEW_AS_COMPLEX, args![&pairs])?;
        e.cast(&made, dtype)
    };
    results.into_iter().zip(shapes).map(|result| back(e, result)).collect()
}

pub fn lu(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    lu::pivoted(args)?;
    solve::matrices("A", args.input())?;
    let (m, n) = ends(args.input());
    let k = m.min(n);
    let shapes: [(&[usize], bool); 3] = [(&[m, m], true), (&[m, k], true), (&[k, n], true)];
    kernel(e, (op.name, &linalg::COMPLEX_LU), args.input(), None, &shapes)
}

pub fn geqrf(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    solve::matrices("A", args.input())?;
    let (m, n) = ends(args.input());
    let shapes: [(&[usize], bool); 2] = [(&[m, n], true), (&[m.min(n)], true)];
    kernel(e, (op.name, &linalg::COMPLEX_GEQRF), args.input(), None, &shapes)
}

pub fn qr(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let ((m, n), complete) = (ends(args.input()), args.flag(1));
    let k = if complete { m } else { m.min(n) };
    let shapes: [(&[usize], bool); 2] = [(&[m, k], true), (&[k, n], true)];
    kernel(e, (op.name, &linalg::COMPLEX_QR), args.input(), Some(complete), &shapes)
}

pub fn eigh(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let n = solve::squares("A", args.input())?;
    let upper = args.text(1).eq_ignore_ascii_case("u");
    let shapes: [(&[usize], bool); 2] = [(&[n], false), (&[n, n], true)];
    kernel(e, (op.name, &linalg::COMPLEX_EIGH), args.input(), Some(upper), &shapes)
}

pub fn eigenvalues(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    Ok(e.apply(&EIGH, args.clone())?.swap_remove(0))
}

pub fn svd(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    solve::matrices("A", args.input())?;
    let ((m, n), full) = (ends(args.input()), args.flag(1));
    let k = m.min(n);
    let (rows, columns) = if full { (m, n) } else { (k, k) };
    let shapes: [(&[usize], bool); 3] = [(&[m, rows], true), (&[k], false), (&[columns, n], true)];
    kernel(e, (op.name, &linalg::COMPLEX_SVD), args.input(), Some(full), &shapes)
}

pub fn singular_values(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    Ok(e.apply(&SVD, args![args.input(), false])?.swap_remove(1))
}

/// Eigenvalues and eigenvectors of real or complex matrices.
pub fn eig(e: &mut dyn Emit, op: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let n = solve::squares("A", args.input())?;
    let shapes: [(&[usize], bool); 2] = [(&[n], true), (&[n, n], true)];
    kernel(e, (op.name, &linalg::COMPLEX_EIG), args.input(), None, &shapes)
}

/// The determinant of the permutation, which is real, and the pivots.
fn pivots(e: &mut dyn Emit, args: &Args) -> Result<(Tensor, Tensor)> {
    solve::squares("A", args.input())?;
    let factors = e.apply(&lu::LU, args![args.input(), true])?;
    let permutation = part(e, &factors[0], 0)?;
    let permutation = e.detach(&permutation);
    Ok((e.call(&DET, args![&permutation])?, e.call(&DIAGONAL, args![&factors[2], 0, -2, -1])?))
}

pub fn det(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Tensor> {
    let (sign, pivots) = pivots(e, args)?;
    let product = e.call(&PROD, args![&pivots, -1, false, ()])?;
    e.mul(&product, &sign)
}

pub fn slogdet(e: &mut dyn Emit, _: &'static Op, args: &Args) -> Result<Vec<Tensor>> {
    let (sign, pivots) = pivots(e, args)?;
    let angles = e.call(&SGN, args![&pivots])?;
    let angle = e.call(&PROD, args![&angles, -1, false, ()])?;
    let size = compute(e, |c| c.of(&pivots).of(&ABS).of(&LOG).call(&SUM, args![-1, false]))?;
    Ok(vec![e.mul(&angle, &sign)?, size])
}
