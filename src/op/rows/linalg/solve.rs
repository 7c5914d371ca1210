//! Linear systems and factorizations by elimination: `solve`, `inv`, determinants, `cholesky`, `lu`, triangular
//! systems. Names and results are those of `torch.linalg`; gradients those of PyTorch's derivatives.
//!
//! What decides shapes is an error at the call; a singular matrix is found while computing (E0405, E0406).

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::linalg;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, compute, derive};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::einsum::{identity_like, square};
use crate::op::rows::linalg::lu::LU;
use crate::op::rows::linalg::matmul::same_batch;
use crate::op::rows::pointwise::unary::LOG;
use crate::op::rows::shape::copies::DIAG_EMBED;
use crate::op::rows::shape::rearrange::{DIAGONAL, SQUEEZE, TRANSPOSE, adjoint};
use crate::op::rows::shape::view::UNSQUEEZE;
use crate::op::tensor::Tensor;
use crate::signature;

/// Matrices of `f32`, `f64` or complex numbers of these.
pub fn matrices(name: &str, x: &Tensor) -> Result<()> {
    if !matches!(x.dtype().real_part(), DType::F32 | DType::F64) {
        return Err(Diag::error(code::DTYPE, format!("`{name}` must be f32, f64, c64 or c128, not {}", x.dtype()))
            .help("convert first, for example with `.float()`"));
    }
    if x.ndim() < 2 {
        fail!(SHAPE, "`{name}` must have at least 2 dimensions, not shape {:?}", x.shape().as_slice());
    }
    Ok(())
}

/// Square matrices of the same; their size.
pub fn squares(name: &str, x: &Tensor) -> Result<usize> {
    matrices(name, x)?;
    square(name, x)
}

/// Shape of a batch of matrices of other sizes.
pub fn sized(x: &Tensor, last: &[usize]) -> Shape {
    let shape = x.shape();
    shape[..shape.len() - 2].iter().chain(last).copied().collect()
}

/// `g` at the end of two new dimensions, as a multiple of the identity.
fn times_identity<'c>(g: Expr<'c>, like: Expr<'c>) -> Expr<'c> {
    like.then(|e, like| identity_like(e, like)) * g.unsqueeze(-1).unsqueeze(-1)
}

/// `triangular`, in expressions.
pub fn triangular_expr<'c>(a: Expr<'c>, b: Expr<'c>, upper: bool, left: bool, unit: bool) -> Expr<'c> {
    a.then_with(b, |e, a, b| triangular(e, a, b, upper, left, unit))
}

signature!(cholesky(A: Tensor, upper: Bool = false));

pub static CHOLESKY: Op = Op {
    name: "cholesky",
    params: cholesky::PARAMS,
    summary: "The triangular factor L of positive-definite matrices: A = L @ L.mT, or with `upper` A = U.mT @ U.",
    details: "One triangle is read. A matrix that is not positive-definite is found while computing.",
    examples: &[
        ex("cholesky(tensor([[4.0, 2.0], [2.0, 5.0]]))", "tensor([[2., 0.],\n        [1., 2.]])"),
        ex("cholesky(ones([2, 3]))", "E0201"),
        ex("cholesky(tensor([[1]]))", "E0202"),
        ex("cholesky(tensor([[-1.0]]))", "E0405"),
    ],
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(cholesky::A))?;
        let call =
            KernelCall::new("cholesky", &linalg::CHOLESKY).input(a.tensor(cholesky::A)).flag(a.flag(cholesky::upper));
        Ok(call.output(&a.tensor(cholesky::A).shape(), a.tensor(cholesky::A).dtype()))
    }),
    saves: &[Save::RESULT],
    grad: Grad::Rule(cholesky_grad),
    ..Op::BASE
};

/// `1/2 L^-T (tril(L^T g) + its strict part transposed) L^-1`.
pub fn cholesky_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let (l, g) = if t.flag(cholesky::upper) { (t.result.mt(), t.g.mt()) } else { (t.result, t.g) };
        let phi = l.mt().matmul(g).tril(0);
        let half = triangular_expr(l.mt(), phi + phi.tril(-1).mt(), true, true, false);
        [Some(triangular_expr(l, half, false, false, false) * 0.5)]
    })
}

signature!(triangular(A: Tensor, B: Tensor, upper: Bool, left: Bool, unitriangular: Bool));

/// Internal: triangular systems over one batch.
pub static TRIANGULAR: Op = Op {
    name: "solve_triangular",
    params: triangular::PARAMS,
    summary: "Solves triangular systems.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("solve_triangular", &linalg::TRIANGULAR_SOLVE)
            .input(a.tensor(triangular::A))
            .input(a.tensor(triangular::B));
        let call =
            call.flag(a.flag(triangular::upper)).flag(a.flag(triangular::left)).flag(a.flag(triangular::unitriangular));
        Ok(call.output(&a.tensor(triangular::B).shape(), a.tensor(triangular::B).dtype()))
    }),
    saves: &[Save::In(triangular::A), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let (upper, left, unit) =
            (v.args.flag(triangular::upper), v.args.flag(triangular::left), v.args.flag(triangular::unitriangular));
        derive(e, v, |t| {
            let right = triangular_expr(t.input.mt(), t.g, !upper, left, unit);
            let first = t.if_needed(triangular::A, || {
                let xt = t.result.mt();
                let whole = -if left { right.matmul(xt) } else { xt.matmul(right) };
                if upper { whole.triu(unit as i64) } else { whole.tril(-(unit as i64)) }
            });
            [first, Some(right)]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Solves `a x = b` (or `x a = b`) for a triangular `a`; batches broadcast.
pub fn triangular(e: &mut dyn Emit, a: &Tensor, b: &Tensor, upper: bool, left: bool, unit: bool) -> Result<Tensor> {
    let (a, b) = same_batch(e, a, b)?;
    e.call(&TRIANGULAR, args![&a, &b, upper, left, unit])
}

/// Two operands of one dtype, the first square, the second with as many rows (or columns).
pub fn system(a: &Tensor, b: &Tensor, left: bool) -> Result<()> {
    let n = squares("A", a)?;
    infer::same_dtype(&[("A", a), ("B", b)])?;
    matrices("B", b)?;
    let shape = b.shape();
    let rows = shape[shape.len() - if left { 2 } else { 1 }];
    if rows != n {
        fail!(
            SHAPE,
            "`A` has size {n}, `B` of shape {:?} has {rows} {}",
            shape.as_slice(),
            if left { "rows" } else { "columns" }
        );
    }
    Ok(())
}

signature!(solve_triangular(A: Tensor, B: Tensor, upper: Bool, left: Bool = true, unitriangular: Bool = false));

pub static SOLVE_TRIANGULAR: Op = Op {
    name: "solve_triangular",
    params: solve_triangular::PARAMS,
    summary: "The X with A @ X = B (or X @ A = B with `left: false`) for triangular A.",
    examples: &[
        ex(
            "solve_triangular(tensor([[2.0, 0.0], [1.0, 1.0]]), tensor([[2.0], [3.0]]), #{upper: false})",
            "tensor([[1.],\n        [2.]])",
        ),
        ex("solve_triangular(ones([2, 2]), ones([3, 1]), #{upper: true})", "E0201"),
        ex("solve_triangular(ones([2, 2]), zeros([2, 1], #{dtype: \"f64\"}), #{upper: true})", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        system(a.tensor(solve_triangular::A), a.tensor(solve_triangular::B), a.flag(solve_triangular::left))?;
        Ok(vec![triangular(
            e,
            a.tensor(solve_triangular::A),
            a.tensor(solve_triangular::B),
            a.flag(solve_triangular::upper),
            a.flag(solve_triangular::left),
            a.flag(solve_triangular::unitriangular),
        )?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(triangular_solve(
    b: Tensor, A: Tensor, upper: Bool = true, transpose: Bool = false, unitriangular: Bool = false,
));

pub static TRIANGULAR_SOLVE: Op = Op {
    name: "triangular_solve",
    params: triangular_solve::PARAMS,
    summary: "The X with A @ X = b for triangular A, and a copy of A. `solve_triangular` is the newer form.",
    examples: &[
        ex("triangular_solve(tensor([[2.0]]), tensor([[4.0]])).solution", "tensor([[0.5000]])"),
        ex("triangular_solve(ones([3, 1]), ones([2, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        system(a.tensor(triangular_solve::A), a.tensor(triangular_solve::b), true)?;
        let (mut matrix, mut upper) = (a.tensor(triangular_solve::A).clone(), a.flag(triangular_solve::upper));
        if a.flag(triangular_solve::transpose) {
            (matrix, upper) = (e.call(&TRANSPOSE, args![&matrix, -2, -1])?, !upper);
        }
        let x = triangular(
            e,
            &matrix,
            a.tensor(triangular_solve::b),
            upper,
            true,
            a.flag(triangular_solve::unitriangular),
        )?;
        let copy = e.call(&crate::op::rows::shape::view::CLONE, args![a.tensor(triangular_solve::A)])?;
        Ok(vec![x, copy])
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["solution", "cloned_coefficient"]),
    ..Op::BASE
};

signature!(with_factor(B: Tensor, L: Tensor, upper: Bool));

/// Internal: over one batch. The gradient counts both triangles of the factor, as in PyTorch.
pub static WITH_FACTOR: Op = Op {
    name: "cholesky_solve",
    params: with_factor::PARAMS,
    summary: "Solves systems whose matrix is given by its factor.",
    lower: Lower::Steps(|e, a| {
        Ok(vec![with_factor(e, a.tensor(with_factor::B), a.tensor(with_factor::L), a.flag(with_factor::upper))?])
    }),
    saves: &[Save::In(with_factor::L), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let upper = v.args.flag(with_factor::upper);
        derive(e, v, |t| {
            let factor = t.arg(with_factor::L);
            let right = t.g.call(&WITH_FACTOR, args![factor.arg(), upper]);
            let second = t.if_needed(with_factor::L, || factor_grad(right.matmul(t.result.mh()), factor, upper));
            [Some(right), second]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// `-(S + Sᴴ) L`, or `-U (S + Sᴴ)`.
fn factor_grad<'c>(s: Expr<'c>, factor: Expr<'c>, upper: bool) -> Expr<'c> {
    let both = s + s.mh();
    -if upper { factor.matmul(both) } else { both.matmul(factor) }
}

pub fn with_factor(e: &mut dyn Emit, b: &Tensor, factor: &Tensor, upper: bool) -> Result<Tensor> {
    let flipped = adjoint(e, factor)?;
    let (lower, upper) = if upper { (&flipped, factor) } else { (factor, &flipped) };
    let half = triangular(e, lower, b, false, true, false)?;
    triangular(e, upper, &half, true, true, false)
}

signature!(cholesky_solve(B: Tensor, L: Tensor, upper: Bool = false));

pub static CHOLESKY_SOLVE: Op = Op {
    name: "cholesky_solve",
    params: cholesky_solve::PARAMS,
    summary: "The X with A @ X = B, given the factor L of A that `cholesky` makes.",
    examples: &[
        ex("cholesky_solve(tensor([[8.0]]), tensor([[2.0]]))", "tensor([[2.]])"),
        ex("cholesky_solve(ones([3, 1]), ones([2, 2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        system(a.tensor(cholesky_solve::L), a.tensor(cholesky_solve::B), true)?;
        let (b, factor) = same_batch(e, a.tensor(cholesky_solve::B), a.tensor(cholesky_solve::L))?;
        e.apply(&WITH_FACTOR, args![&b, &factor, a.flag(cholesky_solve::upper)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(cholesky_inverse(L: Tensor, upper: Bool = false));

pub static CHOLESKY_INVERSE: Op = Op {
    name: "cholesky_inverse",
    params: cholesky_inverse::PARAMS,
    summary: "The inverse of A, given the factor L of A that `cholesky` makes.",
    examples: &[
        ex("cholesky_inverse(tensor([[2.0]]))", "tensor([[0.2500]])"),
        ex("cholesky_inverse(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Steps(|e, a| {
        squares("L", a.tensor(cholesky_inverse::L))?;
        let eye = identity_like(e, a.tensor(cholesky_inverse::L))?;
        Ok(vec![with_factor(e, &eye, a.tensor(cholesky_inverse::L), a.flag(cholesky_inverse::upper))?])
    }),
    saves: &[Save::In(cholesky_inverse::L), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        // -(inverse (g + gᴴ) inverse) L
        derive(e, v, |t| {
            let whole = t.result.matmul(t.g).matmul(t.result);
            [Some(factor_grad(whole, t.input, t.flag(cholesky_inverse::upper)))]
        })
    }),
    ..Op::BASE
};

signature!(solve_matrices(A: Tensor, B: Tensor));

/// Internal: systems over one batch.
pub static SOLVE_MATRICES: Op = Op {
    name: "solve",
    params: solve_matrices::PARAMS,
    summary: "Solves linear systems.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("solve", &linalg::SOLVE)
            .input(a.tensor(solve_matrices::A))
            .input(a.tensor(solve_matrices::B));
        Ok(call.output(&a.tensor(solve_matrices::B).shape(), a.tensor(solve_matrices::B).dtype()))
    }),
    saves: &[Save::In(solve_matrices::A), Save::RESULT],
    grad: Grad::Rule(solve_grad),
    call: CallForm::Internal,
    ..Op::BASE
};

pub fn solve_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let right = t.input.mt().then_with(t.g, |e, at, g| solve(e, at, g));
        [t.if_needed(solve_matrices::A, || -right.matmul(t.result.mt())), Some(right)]
    })
}

/// Solves `a x = b`; batches broadcast.
pub fn solve(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b) = same_batch(e, a, b)?;
    e.call(&SOLVE_MATRICES, args![&a, &b])
}

/// Solves one batch of systems.
pub type Solver<'a> = &'a mut dyn FnMut(&mut dyn Emit, &Tensor, &Tensor) -> Result<Tensor>;

/// Arguments `A, B, left` of `solve`: B may be a vector, and A may stand on the right.
pub fn solved(e: &mut dyn Emit, a: &Args, solve: Solver<'_>) -> Result<Tensor> {
    let (x, b, left) = (a.tensor(solve::A), a.tensor(solve::B), a.flag(solve::left));
    squares("A", x)?;
    let (s, t) = (x.shape(), b.shape());
    let vector = t.len() == 1 || (t.len() + 1 == s.len() && t[..] == s[..s.len() - 1]);
    if vector && !left {
        fail!(SHAPE, "a vector on the right of the equation goes with `left: true` only");
    }
    let b = if vector { e.call(&UNSQUEEZE, args![b, -1])? } else { b.clone() };
    system(x, &b, left)?;
    if !left {
        let (x, b) = (adjoint(e, x)?, adjoint(e, &b)?);
        let out = solve(e, &x, &b)?;
        return adjoint(e, &out);
    }
    let out = solve(e, x, &b)?;
    if vector { e.call(&SQUEEZE, args![&out, -1]) } else { Ok(out) }
}

signature!(solve(A: Tensor, B: Tensor, left: Bool = true));

pub static SOLVE: Op = Op {
    name: "solve",
    params: solve::PARAMS,
    summary: "The X with A @ X = B (or X @ A = B with `left: false`); B may be a vector, or a batch of them.",
    details: "A singular A is found while computing.",
    examples: &[
        ex("solve(tensor([[2.0, 0.0], [0.0, 4.0]]), tensor([2.0, 2.0]))", "tensor([1.0000, 0.5000])"),
        ex("solve(ones([2, 3]), ones([2]))", "E0201"),
        ex("solve(tensor([[1]]), tensor([[1]]))", "E0202"),
        ex("solve(ones([2, 2]), ones([2]), #{left: false})", "E0201"),
        ex("solve(zeros([1, 1]), ones([1]))", "E0406"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![solved(e, a, &mut |e, x, b| solve(e, x, b))?])),
    grad: Grad::Composed,
    ..Op::BASE
};

pub fn inv_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    derive(e, v, |t| {
        let yt = t.result.mt();
        [Some(-yt.matmul(t.g).matmul(yt))]
    })
}

/// The tangent of an inverse: -y t y.
pub fn inv_tangent(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Option<Tensor>> {
    compute(e, |c| -c.of(v.result()).matmul(c.of(v.tangent())).matmul(c.of(v.result()))).map(Some)
}

signature!(inv(A: Tensor));

pub static INV: Op = Op {
    name: "inv",
    aliases: &["inverse"],
    params: inv::PARAMS,
    summary: "The inverse of square matrices.",
    details: "A singular matrix is found while computing.",
    examples: &[
        ex("inv(tensor([[2.0, 0.0], [0.0, 4.0]]))", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])"),
        ex("inv(ones([2, 3]))", "E0201"),
        ex("inv(tensor([[1]]))", "E0202"),
        ex("inv(tensor([complex(1.0, 2.0)]))", "E0201"),
        ex("inv(zeros([1, 1]))", "E0406"),
    ],
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(inv::A))?;
        let call = KernelCall::new("inv", &linalg::INV).input(a.tensor(inv::A));
        Ok(call.output(&a.tensor(inv::A).shape(), a.tensor(inv::A).dtype()))
    }),
    saves: &[Save::RESULT],
    grad: Grad::Rule(inv_grad),
    forward: crate::op::row::Forward::Rule(inv_tangent),
    ..Op::BASE
};

pub static DET: Op = Op {
    name: "det",
    params: inv::PARAMS,
    summary: "The determinant of square matrices.",
    examples: &[ex("det(tensor([[1.0, 2.0], [3.0, 4.0]]))", "tensor(-2.0000)"), ex("det(ones([2, 3]))", "E0201")],
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(inv::A))?;
        let call = KernelCall::new("det", &linalg::DET).input(a.tensor(inv::A));
        Ok(call.output(&sized(a.tensor(inv::A), &[]), a.tensor(inv::A).dtype()))
    }),
    saves: &[Save::In(inv::A), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let is_differentiated = e.grad_enabled();
        derive(e, v, |t| [Some(over_transposed(t.input, t.g * t.result, is_differentiated))])
    }),
    ..Op::BASE
};

/// `g * inv(A)^T`. Where nothing is differentiated further it goes through the factors, with a zero pivot replaced
/// by the smallest number beside 1, as in PyTorch: a singular matrix then still has a gradient.
fn over_transposed<'c>(a: Expr<'c>, g: Expr<'c>, is_differentiated: bool) -> Expr<'c> {
    let d = times_identity(g, a);
    if is_differentiated {
        return a.mt().then_with(d, |e, at, d| solve(e, at, d));
    }
    a.then_with(d, |e, a, d| {
        let factors = e.apply(&LU, args![a])?;
        let eps = if a.dtype().real_part() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
        compute(e, |c| {
            let (p, l, u, d) = (c.of(&factors[0]), c.of(&factors[1]), c.of(&factors[2]), c.of(d));
            let is_zero = u.call(&DIAGONAL, args![0, -2, -1]).equals(0);
            let u = u + (is_zero.cast(a.dtype()) * eps).of(&DIAG_EMBED);
            let half = triangular_expr(u.mt(), d, false, true, false);
            p.matmul(triangular_expr(l.mt(), half, true, true, true))
        })
    })
}

pub static SLOGDET: Op = Op {
    name: "slogdet",
    params: inv::PARAMS,
    summary: "Sign, and logarithm of the absolute value, of the determinant.",
    examples: &[ex("slogdet(tensor([[-1.0]])).sign", "tensor(-1.)"), ex("slogdet(ones([2, 3]))", "E0201")],
    lower: Lower::Kernel(|_, a| {
        squares("A", a.tensor(inv::A))?;
        let (shape, dtype) = (sized(a.tensor(inv::A), &[]), a.tensor(inv::A).dtype());
        let call = KernelCall::new("slogdet", &linalg::SLOGDET).input(a.tensor(inv::A));
        Ok(call.output(&shape, dtype).output(&shape, dtype))
    }),
    saves: &[Save::In(inv::A)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let solved = |g| t.input.mt().then_with(times_identity(g, t.input), |e, at, d| solve(e, at, d));
            [Some(t.grad(1).map_or_else(|| t.zeros_like(inv::A), solved))]
        })
    }),
    results: Returns::Named(&["sign", "logabsdet"]),
    ..Op::BASE
};

pub static LOGDET: Op = Op {
    name: "logdet",
    params: inv::PARAMS,
    summary: "The logarithm of the determinant: minus infinity when it is 0, NaN when it is negative.",
    examples: &[ex("logdet(tensor([[1.0]]))", "tensor(0.)"), ex("logdet(ones([2, 3]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        let parts = e.apply(&SLOGDET, args![a.tensor(inv::A)])?;
        // log of the sign is 0, minus infinity, or NaN.
        // That of a complex one is its angle, which changes.
        let sign = if parts[0].dtype().is_complex() { parts[0].clone() } else { e.detach(&parts[0]) };
        let sign = e.call(&LOG, args![&sign])?;
        Ok(vec![e.add(&parts[1], &sign)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &CHOLESKY,
    &TRIANGULAR,
    &SOLVE_TRIANGULAR,
    &TRIANGULAR_SOLVE,
    &WITH_FACTOR,
    &CHOLESKY_SOLVE,
    &CHOLESKY_INVERSE,
    &SOLVE_MATRICES,
    &SOLVE,
    &INV,
    &DET,
    &SLOGDET,
    &LOGDET,
];
