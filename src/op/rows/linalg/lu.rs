//! LU decomposition, its compact form, and systems solved with it.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::linalg;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{compute, compute_all, derive};
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::linalg::solve::{matrices, sized, squares, system, triangular, triangular_expr};
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::pointwise::complex::REAL;
use crate::op::rows::reduction::minmax::ARGMAX;
use crate::op::rows::shape::copies::DIAG_EMBED;
use crate::op::rows::shape::rearrange::adjoint;
use crate::op::tensor::Tensor;
use crate::signature;

/// Argument 1 of `lu` and `lu_factor`.
pub fn pivoted(a: &Args) -> Result<()> {
    match a.flag(lu::pivot) {
        true => Ok(()),
        false => fail!(VALUE, "factors without pivoting are not offered: they lose all precision on harmless matrices"),
    }
}

signature!(lu(A: Tensor, pivot: Bool = true));

pub static LU: Op = Op {
    name: "lu",
    params: lu::PARAMS,
    summary: "Permutation P, unit lower triangle L and upper triangle U with A = P @ L @ U.",
    examples: &[
        ex("lu(tensor([[1.0, 0.0], [2.0, 1.0]])).U", "tensor([[ 2.0000,  1.0000],\n        [ 0.0000, -0.5000]])"),
        ex("lu(ones([2]))", "E0201"),
        ex("lu(ones([2, 2]), #{pivot: false})", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(lu::A);
        matrices("A", x)?;
        pivoted(a)?;
        let shape = x.shape();
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let k = m.min(n);
        let call = KernelCall::new("lu", &linalg::LU).input(x);
        let call = call.output(&sized(x, &[m, m]), x.dtype()).output(&sized(x, &[m, k]), x.dtype());
        Ok(call.output(&sized(x, &[k, n]), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(lu_grad),
    results: Returns::Named(&["P", "L", "U"]),
    ..Op::BASE
};

/// With A1 the leading square part: `P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T`, and what the rest adds.
fn lu_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let shape = v.meta(lu::A).shape.clone();
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let k = m.min(n);
    derive(e, v, |t| {
        let (p, l, u) = (t.output(0), t.output(1), t.output(2));
        let whole = |at: usize| t.grad(at).unwrap_or_else(|| t.make(|e| e.zeros_like(&v.outputs[at])));
        let (gl, gu) = (whole(1), whole(2));
        let (l1t, u1t) = (l.slice(-2, 0, k).mt(), u.slice(-1, 0, k).mt());
        let solve_l = |b| triangular_expr(l1t, b, true, true, true);
        let solve_u = |b| triangular_expr(u1t, b, false, false, false);
        let mut below = l1t.matmul(gl.slice(-2, 0, k));
        let mut above = gu.slice(-1, 0, k).matmul(u1t);
        let (gl2, gu2) = (gl.slice(-2, k, m), gu.slice(-1, k, n));
        if n > k {
            below = below - gu2.matmul(u.slice(-1, k, n).mt());
        }
        if m > k {
            above = above - l.slice(-2, k, m).mt().matmul(gl2);
        }
        let mut g = solve_l(solve_u(below.tril(-1) + above.triu(0)));
        if n > k {
            g = g.cat(solve_l(gu2), -1);
        }
        if m > k {
            g = g.cat(solve_u(gl2), -2);
        }
        [Some(p.matmul(g))]
    })
}

pub static LU_FACTOR: Op = Op {
    name: "lu_factor",
    params: lu::PARAMS,
    summary: "Both triangles of the LU decomposition in one matrix, and the row exchanges, counted from 1.",
    details: "Reads the permutation to make the exchanges, which waits.",
    examples: &[
        ex("lu_factor(tensor([[1.0, 0.0], [2.0, 1.0]])).pivots", "tensor([2, 2], dtype=i32)"),
        ex("lu_factor(ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let factors = e.apply(&LU, args![a.tensor(lu::A), a.flag(lu::pivot)])?;
        let (p, l, u) = (&factors[0], &factors[1], &factors[2]);
        let shape = a.tensor(lu::A).shape();
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let k = m.min(n);
        let both = compute(e, |c| {
            let (left, right) = (c.of(l).tril(-1), c.of(u));
            let left = if n > k { left.call(&PAD_CONSTANT, args![&[0, (n - k) as i64][..], 0]) } else { left };
            let right = if m > k { right.call(&PAD_CONSTANT, args![&[0, 0, 0, (m - k) as i64][..], 0]) } else { right };
            left + right
        })?;
        let pivots = exchanges(e, p, m, k, &sized(a.tensor(lu::A), &[k]))?;
        Ok(vec![both, pivots])
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["LU", "pivots"]),
    ..Op::BASE
};

/// LAPACK's row exchanges from permutation matrices.
fn exchanges(e: &mut dyn Emit, p: &Tensor, m: usize, k: usize, shape: &[usize]) -> Result<Tensor> {
    let quiet = e.detach(p);
    let quiet = if quiet.dtype().is_complex() { e.call(&REAL, args![&quiet])? } else { quiet };
    // Column i of P says which row of A is row i of P' A.
    let sources = if m == 0 {
        Vec::new()
    } else {
        let rows = e.call(&ARGMAX, args![&quiet, -2])?;
        e.read(&rows)?
    };
    let mut bytes = Vec::new();
    for sources in sources.chunks_exact(m.max(1)) {
        let mut now: Vec<usize> = (0..m).collect();
        for (i, source) in sources.iter().take(k).enumerate() {
            let source = source.to_f64() as usize;
            let at = (i..m).find(|&j| now[j] == source).unwrap_or(i);
            now.swap(i, at);
            bytes.extend((at as i32 + 1).to_ne_bytes());
        }
    }
    e.upload(&bytes, shape, DType::I32, p.device())
}

signature!(lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: Bool = true, adjoint: Bool = false));

pub static LU_SOLVE: Op = Op {
    name: "lu_solve",
    params: lu_solve::PARAMS,
    summary: "The X with A @ X = B, given what `lu_factor` makes of A.",
    details: "Reads the row exchanges, which waits.",
    examples: &[
        ex("let f = lu_factor(tensor([[2.0]])); lu_solve(f.LU, f.pivots, tensor([[4.0]]))", "tensor([[2.]])"),
        ex("let f = lu_factor(tensor([[2.0]])); lu_solve(f.LU, f.pivots, ones([2, 1]))", "E0201"),
    ],
    lower: Lower::Compose(lu_solve),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn lu_solve(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (factors, pivots, b, left, flipped) = (
        a.tensor(lu_solve::LU),
        a.tensor(lu_solve::pivots),
        a.tensor(lu_solve::B),
        a.flag(lu_solve::left),
        a.flag(lu_solve::adjoint),
    );
    system(factors, b, left)?;
    let n = squares("LU", factors)?;
    if pivots.dtype() != DType::I32 {
        fail!(DTYPE, "`pivots` must be i32, not {}", pivots.dtype());
    }
    if pivots.shape() != sized(factors, &[n]) {
        fail!(
            SHAPE,
            "`pivots` has shape {:?}, {:?} is expected",
            pivots.shape().as_slice(),
            sized(factors, &[n]).as_slice()
        );
    }
    let p = permutations(e, pivots, factors, n, n)?;
    let (factors_t, pt) = (adjoint(e, factors)?, adjoint(e, &p)?);
    // X A = B is A' X' = B'.
    let b = if left { b.clone() } else { adjoint(e, b)? };
    let x = if left != flipped {
        let b = product(e, &pt, &b)?;
        let half = triangular(e, factors, &b, false, true, true)?;
        triangular(e, factors, &half, true, true, false)?
    } else {
        let half = triangular(e, &factors_t, &b, false, true, false)?;
        let half = triangular(e, &factors_t, &half, true, true, true)?;
        product(e, &p, &half)?
    };
    Ok(vec![if left { x } else { adjoint(e, &x)? }])
}

/// Permutation matrices `[.., m, m]` from LAPACK's row exchanges, of which there are `k` for each matrix.
fn permutations(e: &mut dyn Emit, pivots: &Tensor, factors: &Tensor, m: usize, k: usize) -> Result<Tensor> {
    let rows = e.read(pivots)?;
    let shape = sized(factors, &[m, m]);
    let count = shape[..shape.len() - 2].iter().product::<usize>();
    let mut values = vec![0f64; count * m * m];
    for batch in 0..count {
        let mut now: Vec<usize> = (0..m).collect();
        for i in 0..k {
            let at = rows[batch * k + i].to_i64() - 1;
            if at < i as i64 || at >= m as i64 {
                fail!(VALUE, "pivot {} of row {i} is no row exchange", at + 1);
            }
            now.swap(i, at as usize);
        }
        for (i, &row) in now.iter().enumerate() {
            values[(batch * m + row) * m + i] = 1.0;
        }
    }
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    let p = e.upload(&bytes, &shape, DType::F64, factors.device())?;
    e.cast(&p, factors.dtype())
}

signature!(lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: Bool = true, unpack_pivots: Bool = true));

pub static LU_UNPACK: Op = Op {
    name: "lu_unpack",
    params: lu_unpack::PARAMS,
    summary: "P, L and U from what `lu_factor` makes.",
    details: "Reads the row exchanges, which waits. What is not requested is an empty tensor.",
    examples: &[
        ex(
            "let f = lu_factor(tensor([[1.0, 0.0], [2.0, 1.0]])); lu_unpack(f.LU, f.pivots).L",
            "tensor([[1.0000, 0.0000],\n        [0.5000, 1.0000]])",
        ),
        ex("lu_unpack(ones([2]), tensor([1]).int())", "E0201"),
        ex("lu_unpack(ones([1, 1]), tensor([1]))", "E0202"),
        ex("lu_unpack(ones([1, 1]), tensor([2]).int())", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (both, pivots) = (a.tensor(lu_unpack::LU_data), a.tensor(lu_unpack::LU_pivots));
        matrices("LU_data", both)?;
        let shape = both.shape();
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let k = m.min(n);
        let nothing =
            crate::op::tensor::Meta { shape: [0].as_slice().into(), dtype: both.dtype(), device: both.device() };
        let p = if a.flag(lu_unpack::unpack_pivots) {
            if pivots.dtype() != DType::I32 {
                fail!(DTYPE, "`LU_pivots` must be i32, not {}", pivots.dtype());
            }
            if pivots.shape() != sized(both, &[k]) {
                fail!(
                    SHAPE,
                    "`LU_pivots` has shape {:?}, {:?} is expected",
                    pivots.shape().as_slice(),
                    sized(both, &[k]).as_slice()
                );
            }
            permutations(e, pivots, both, m, k)?
        } else {
            e.zeros_like(&nothing)?
        };
        if !a.flag(lu_unpack::unpack_data) {
            return Ok(vec![p, e.zeros_like(&nothing)?, e.zeros_like(&nothing)?]);
        }
        let ones = e.full(&sized(both, &[k]), crate::base::dtype::Scalar::Int(1), &nothing)?;
        let [l, u] = compute_all(e, |c| {
            let (both, eye) = (c.of(both), c.of(&ones).of(&DIAG_EMBED));
            let eye = if m > k { eye.call(&PAD_CONSTANT, args![&[0, 0, 0, (m - k) as i64][..], 0]) } else { eye };
            [both.slice(-1, 0, k).tril(-1) + eye, both.slice(-2, 0, k).triu(0)]
        })?;
        Ok(vec![p, l, u])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: Returns::Named(&["P", "L", "U"]),
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&LU, &LU_FACTOR, &LU_SOLVE, &LU_UNPACK];
