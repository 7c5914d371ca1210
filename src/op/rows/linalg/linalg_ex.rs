//! Linear algebra that reports what goes wrong with a matrix in numbers, `info`, instead of an error: the `_ex` forms.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::family::Kernel;
use crate::kernel::linalg;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::lu::LU_FACTOR;
use crate::op::rows::linalg::matmul::same_batch;
use crate::op::rows::linalg::solve::{
    CHOLESKY, INV, SOLVE, cholesky_grad, inv_grad, inv_tangent, sized, solve_grad, solved, squares,
};
use crate::op::rows::pointwise::compare::{EQ, WHERE};
use crate::op::rows::reduction::minmax::ARGMAX;
use crate::op::rows::reduction::reduce::AMAX;
use crate::op::rows::shape::rearrange::DIAGONAL;
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

const DETAILS: &str = "`info` (i32) is 0 for each matrix that is in order, else the number of what is wrong, and that matrix's \
result is zeros. With `check_errors` it is an error as without `_ex`.";

/// A kernel on square matrices, with a second result of one number for each.
fn reporting(name: &'static str, kernel: &'static Kernel, x: &Tensor) -> KernelCall {
    KernelCall::new(name, kernel).input(x).output(&x.shape(), x.dtype()).output(&sized(x, &[]), DType::I32)
}

/// The form that fails, with `info` of zeros.
fn checked(e: &mut dyn Emit, op: &'static Op, args: Args, x: &Tensor) -> Result<Vec<Tensor>> {
    let result = e.call(op, args)?;
    let none = e.zeros_like(&Meta { shape: sized(x, &[]), dtype: DType::I32, device: x.device() })?;
    Ok(vec![result, none])
}

signature!(cholesky_quiet(A: Tensor, upper: Bool = false));

pub static CHOLESKY_QUIET: Op = Op {
    name: "cholesky_ex",
    params: cholesky_quiet::PARAMS,
    summary: "Cholesky factors and how they went.",
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(cholesky_quiet::A))?;
        Ok(reporting("cholesky", &linalg::CHOLESKY, a.tensor(cholesky_quiet::A)).flag(a.flag(cholesky_quiet::upper)))
    }),
    saves: &[Save::RESULT],
    grad: Grad::Rule(cholesky_grad),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(cholesky_ex(A: Tensor, upper: Bool = false, check_errors: Bool = false));

pub static CHOLESKY_EX: Op = Op {
    name: "cholesky_ex",
    params: cholesky_ex::PARAMS,
    summary: "The triangular factor of positive-definite matrices, and where they are not.",
    details: DETAILS,
    examples: &[
        ex("cholesky_ex(tensor([[4.0]])).L", "tensor([[2.]])"),
        ex("cholesky_ex(tensor([[-1.0]])).info", "tensor(1, dtype=i32)"),
        ex("cholesky_ex(ones([2, 3]))", "E0201"),
        ex("cholesky_ex(tensor([[-1.0]]), #{check_errors: true}).L", "E0405"),
    ],
    lower: Lower::Compose(|e, a| match a.flag(cholesky_ex::check_errors) {
        true => {
            checked(e, &CHOLESKY, args![a.tensor(cholesky_ex::A), a.flag(cholesky_ex::upper)], a.tensor(cholesky_ex::A))
        }
        false => e.apply(&CHOLESKY_QUIET, args![a.tensor(cholesky_ex::A), a.flag(cholesky_ex::upper)]),
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["L", "info"]),
    ..Op::BASE
};

signature!(inv_quiet(A: Tensor));

pub static INV_QUIET: Op = Op {
    name: "inv_ex",
    params: inv_quiet::PARAMS,
    summary: "Inverses and how they went.",
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(inv_quiet::A))?;
        Ok(reporting("inv", &linalg::INV, a.tensor(inv_quiet::A)))
    }),
    saves: &[Save::RESULT],
    grad: Grad::Rule(inv_grad),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Rule(inv_tangent),
    ..Op::BASE
};

signature!(inv_ex(A: Tensor, check_errors: Bool = false));

pub static INV_EX: Op = Op {
    name: "inv_ex",
    params: inv_ex::PARAMS,
    summary: "The inverse of square matrices, and the first zero pivot of those that have none.",
    details: DETAILS,
    examples: &[
        ex("inv_ex(tensor([[2.0]])).inverse", "tensor([[0.5000]])"),
        ex("inv_ex(zeros([1, 1])).info", "tensor(1, dtype=i32)"),
        ex("inv_ex(ones([2, 3]))", "E0201"),
        ex("inv_ex(zeros([1, 1]), #{check_errors: true}).inverse", "E0406"),
    ],
    lower: Lower::Compose(|e, a| match a.flag(inv_ex::check_errors) {
        true => checked(e, &INV, args![a.tensor(inv_ex::A)], a.tensor(inv_ex::A)),
        false => e.apply(&INV_QUIET, args![a.tensor(inv_ex::A)]),
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["inverse", "info"]),
    ..Op::BASE
};

signature!(solve_quiet(A: Tensor, B: Tensor));

pub static SOLVE_QUIET: Op = Op {
    name: "solve_ex",
    params: solve_quiet::PARAMS,
    summary: "Solutions and how they went.",
    lower: Lower::Kernel(|_, a| {
        let (x, b) = (a.tensor(solve_quiet::A), a.tensor(solve_quiet::B));
        let call = KernelCall::new("solve", &linalg::SOLVE).inputs([x, b]);
        Ok(call.output(&b.shape(), b.dtype()).output(&sized(x, &[]), DType::I32))
    }),
    saves: &[Save::In(solve_quiet::A), Save::RESULT],
    grad: Grad::Rule(solve_grad),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(solve_ex(A: Tensor, B: Tensor, left: Bool = true, check_errors: Bool = false));

pub static SOLVE_EX: Op = Op {
    name: "solve_ex",
    params: solve_ex::PARAMS,
    summary: "The X with A @ X = B, and the first zero pivot of each A that is singular.",
    details: DETAILS,
    examples: &[
        ex("solve_ex(tensor([[2.0]]), tensor([[4.0]])).result", "tensor([[2.]])"),
        ex("solve_ex(zeros([1, 1]), ones([1, 1])).info", "tensor(1, dtype=i32)"),
        ex("solve_ex(ones([2, 3]), ones([2, 1]))", "E0201"),
        ex("solve_ex(zeros([1, 1]), ones([1, 1]), #{check_errors: true}).result", "E0406"),
    ],
    lower: Lower::Compose(|e, a| {
        if a.flag(solve_ex::check_errors) {
            return checked(
                e,
                &SOLVE,
                args![a.tensor(solve_ex::A), a.tensor(solve_ex::B), a.flag(solve_ex::left)],
                a.tensor(solve_ex::A),
            );
        }
        let mut info = None;
        let x = solved(e, a, &mut |e, x, b| {
            let (wide, b) = same_batch(e, x, b)?;
            let mut both = e.apply(&SOLVE_QUIET, args![&wide, &b])?;
            info = both.pop();
            Ok(both.swap_remove(0))
        })?;
        Ok(std::iter::once(x).chain(info).collect())
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["result", "info"]),
    ..Op::BASE
};

signature!(lu_factor_ex(A: Tensor, pivot: Bool = true, check_errors: Bool = false));

pub static LU_FACTOR_EX: Op = Op {
    name: "lu_factor_ex",
    params: lu_factor_ex::PARAMS,
    summary: "Both triangles of the LU decomposition, the row exchanges, and the first zero pivot.",
    details: "`info` (i32) is 0 where no pivot is zero; a zero pivot spoils nothing but later solutions.",
    examples: &[
        ex("lu_factor_ex(tensor([[2.0]])).LU", "tensor([[2.]])"),
        ex("lu_factor_ex(zeros([1, 1])).info", "tensor(1, dtype=i32)"),
        ex("lu_factor_ex(ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let mut results = e.apply(&LU_FACTOR, args![a.tensor(lu_factor_ex::A), a.flag(lu_factor_ex::pivot)])?;
        let factors = e.detach(&results[0]);
        let none = Meta { shape: sized(a.tensor(lu_factor_ex::A), &[]), dtype: DType::I32, device: factors.device() };
        let none = e.zeros_like(&none)?;
        let pivots = e.call(&DIAGONAL, args![&factors, 0, -2, -1])?;
        if pivots.shape().last() == Some(&0) {
            results.push(none);
            return Ok(results);
        }
        let zero = e.call(&EQ, args![&pivots, Scalar::Int(0)])?;
        let zero = e.cast(&zero, DType::I32)?;
        let any = e.call(&AMAX, args![&zero, &[-1i64][..]])?;
        let any = e.call(&EQ, args![&any, Scalar::Int(1)])?;
        let first = e.call(&ARGMAX, args![&zero, -1])?;
        let first = e.add(&first, Scalar::Int(1))?;
        let first = e.cast(&first, DType::I32)?;
        results.push(e.call(&WHERE, args![&any, &first, &none])?);
        Ok(results)
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["LU", "pivots", "info"]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&CHOLESKY_EX, &INV_EX, &SOLVE_EX, &LU_FACTOR_EX, &CHOLESKY_QUIET, &INV_QUIET, &SOLVE_QUIET];
