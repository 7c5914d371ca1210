//! Orthogonal decompositions: `svd`, `qr`, `eigh`; and the exponential of matrices.
//!
//! Gradients are those of PyTorch's `FunctionsManual`: singular and eigenvectors have one only for distinct values.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::linalg;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{Expr, derive};
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::einsum::{identity_like, square};
use crate::op::rows::linalg::matrix_exp;
use crate::op::rows::linalg::solve::{matrices, sized, squares, triangular};
use crate::op::rows::shape::copies::DIAG_EMBED;
use crate::op::rows::shape::rearrange::DIAGONAL;
use crate::op::tensor::Tensor;
use crate::signature;

pub fn ends(x: &Tensor) -> (usize, usize) {
    let shape = x.shape();
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// `f(s_k) - f(s_j)` at row j and column k, 1 on the diagonal.
fn gaps(values: Expr<'_>) -> Expr<'_> {
    let gaps = values.unsqueeze(-2) - values.unsqueeze(-1);
    gaps + gaps.then(|e, gaps| identity_like(e, gaps))
}

/// `(X - Xᴴ) / E`, E of singular values.
fn skew<'c>(x: Expr<'c>, s: Expr<'c>) -> Expr<'c> {
    (x - x.mh()) / gaps(s * s)
}

/// The sum of what is there.
fn plus<'c>(a: Option<Expr<'c>>, b: Expr<'c>) -> Option<Expr<'c>> {
    Some(a.map_or(b, |a| a + b))
}

signature!(svd(A: Tensor, full_matrices: Bool = true, driver: Ignored = None));

pub static SVD: Op = Op {
    name: "svd",
    params: svd::PARAMS,
    summary: "Singular value decomposition: A = U @ diag(S) @ Vh, singular values descending.",
    details: "With `full_matrices: false`, U is [.., m, k] and Vh [.., k, n], k the smaller of m and n. Pairs of vectors \
              are determined up to a sign.",
    examples: &[
        ex("svd(tensor([[3.0, 0.0], [0.0, 4.0]])).S", "tensor([4., 3.])"),
        ex("svd(ones([2]))", "E0201"),
        ex("svd(tensor([[1]]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, full) = (a.tensor(svd::A), a.flag(svd::full_matrices));
        matrices("A", x)?;
        let (m, n) = ends(x);
        let k = m.min(n);
        let (rows, columns) = if full { (m, n) } else { (k, k) };
        let call = KernelCall::new("svd", &linalg::SVD).input(x).flag(full);
        let call = call.output(&sized(x, &[m, rows]), x.dtype()).output(&sized(x, &[k]), x.dtype());
        Ok(call.output(&sized(x, &[columns, n]), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(svd_grad),
    results: Returns::Named(&["U", "S", "Vh"]),
    ..Op::BASE
};

/// With E_jk = s_k^2 - s_j^2: the middle is (skew(U' gU) / E) S + S (skew(V' gV) / E) + diag(gS); what lies outside
/// the spans of U and V comes in addition.
fn svd_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let (s, shape) = (v.output(1), v.meta(svd::A).shape.clone());
    let complex = v.meta(svd::A).dtype.is_complex();
    let (k, m, n) = (s.shape()[s.ndim() - 1], shape[shape.len() - 2], shape[shape.len() - 1]);
    derive(e, v, |t| {
        let s = t.output(1);
        let (u, vh) = (t.output(0).slice(-1, 0, k), t.output(2).slice(-2, 0, k));
        let (gu, gvh) = (t.grad(0).map(|g| g.slice(-1, 0, k)), t.grad(2).map(|g| g.slice(-2, 0, k)));
        let mut middle = t.grad(1).map(|g| g.of(&DIAG_EMBED).cast(v.meta(svd::A).dtype));
        let mut outside = None;
        if let Some(gu) = gu {
            let utg = u.mh().matmul(gu);
            let turned = skew(utg, s) * s.unsqueeze(-2);
            middle = plus(middle, turned);
            if complex && gvh.is_some() {
                // A pair of vectors turns together.
                let turn = turned.call(&DIAGONAL, args![0, -2, -1]) / (s * s * 2.0);
                middle = plus(middle, turn.of(&DIAG_EMBED));
            }
            if m > k {
                outside = Some(((gu - u.matmul(utg)) / s.unsqueeze(-2)).matmul(vh));
            }
        }
        if let Some(gvh) = gvh {
            let vtg = vh.matmul(gvh.mh());
            middle = plus(middle, skew(vtg, s) * s.unsqueeze(-1));
            if n > k {
                outside = plus(outside, (u / s.unsqueeze(-2)).matmul(gvh - vtg.mh().matmul(vh)));
            }
        }
        // Some gradient arrived.
        [middle.and_then(|middle| plus(outside, u.matmul(middle).matmul(vh)))]
    })
}

signature!(values(A: Tensor));

/// Internal: singular values alone.
pub static VALUES: Op = Op {
    name: "svdvals",
    params: values::PARAMS,
    summary: "Singular values.",
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(values::A);
        let (m, n) = ends(x);
        Ok(KernelCall::new("svdvals", &linalg::SVDVALS).input(x).output(&sized(x, &[m.min(n)]), x.dtype()))
    }),
    grad: Grad::Stop("`svd` has one"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Does a gradient flow through this?
fn differentiated(e: &dyn Emit, x: &Tensor) -> bool {
    e.grad_enabled() && x.requires_grad()
}

signature!(svdvals(A: Tensor, driver: Ignored = None));

pub static SVDVALS: Op = Op {
    name: "svdvals",
    params: svdvals::PARAMS,
    summary: "Singular values, descending.",
    examples: &[ex("svdvals(tensor([[3.0, 0.0], [0.0, 4.0]]))", "tensor([4., 3.])"), ex("svdvals(ones([2]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        matrices("A", a.tensor(svdvals::A))?;
        if !differentiated(e, a.tensor(svdvals::A)) {
            return e.apply(&VALUES, args![a.tensor(svdvals::A)]);
        }
        Ok(vec![e.apply(&SVD, args![a.tensor(svdvals::A), false])?.swap_remove(1)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(factors(A: Tensor, complete: Bool));

/// Internal: both factors; `complete` makes Q square.
pub static FACTORS: Op = Op {
    name: "qr",
    params: factors::PARAMS,
    summary: "QR decomposition.",
    lower: Lower::Kernel(|_, a| {
        let (x, complete) = (a.tensor(factors::A), a.flag(factors::complete));
        let (m, n) = ends(x);
        let k = if complete { m } else { m.min(n) };
        let call = KernelCall::new("qr", &linalg::QR).input(x).flag(complete);
        Ok(call.output(&sized(x, &[m, k]), x.dtype()).output(&sized(x, &[k, n]), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1)],
    grad: Grad::Rule(qr_grad),
    results: Returns::Named(&["Q", "R"]),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Gradient of the decomposition of a matrix with at least as many rows as columns:
/// `(gQ + Q symmetric(triu(gR R' - Q' gQ))) R^-T`.
fn tall_qr<'c>(q: Expr<'c>, r: Expr<'c>, gq: Option<Expr<'c>>, gr: Option<Expr<'c>>) -> Option<Expr<'c>> {
    let middle = match (gq, gr) {
        (Some(gq), Some(gr)) => gr.matmul(r.mh()) - q.mh().matmul(gq),
        (Some(gq), None) => -q.mh().matmul(gq),
        (None, gr) => gr?.matmul(r.mh()),
    };
    let above = middle.triu(0);
    // X + Xᴴ with the diagonal once, of which only the real part counts.
    let both = above + above.mh();
    let once = (both.call(&DIAGONAL, args![0, -2, -1]) * 0.5).of(&DIAG_EMBED);
    let g = q.matmul(both - once);
    let g = gq.map_or(g, |gq| g + gq);
    Some(r.mh().then_with(g, |e, rt, g| triangular(e, rt, g, false, false, false)))
}

fn qr_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let shape = v.meta(factors::A).shape.clone();
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    if v.args.flag(factors::complete) && m > n {
        fail!(
            GRAD_STOP,
            "the \"complete\" decomposition of a matrix with more rows than columns has no gradient; use \"reduced\""
        );
    }
    derive(e, v, |t| {
        let (q, r, gq, gr) = (t.output(0), t.output(1), t.grad(0), t.grad(1));
        if m >= n {
            return [tall_qr(q, r, gq, gr)];
        }
        // A = [A1 | A2], R = [R1 | Q' A2] with A1 square.
        let (r1, r2) = (r.slice(-1, 0, m), r.slice(-1, m, n));
        let Some(gr) = gr else {
            return [tall_qr(q, r1, gq, None).map(|first| first.cat(t.zeros_like(factors::A).slice(-1, m, n), -1))];
        };
        let (gr1, gr2) = (gr.slice(-1, 0, m), gr.slice(-1, m, n));
        let a2 = q.matmul(r2);
        [tall_qr(q, r1, plus(gq, a2.matmul(gr2.mh())), Some(gr1)).map(|first| first.cat(q.matmul(gr2), -1))]
    })
}

signature!(qr(A: Tensor, mode: Str(&["reduced", "complete", "r"]) = "reduced"));

pub static QR: Op = Op {
    name: "qr",
    params: qr::PARAMS,
    summary: "QR decomposition: A = Q @ R with orthonormal columns of Q and an upper triangle R.",
    details: "\"complete\" makes Q square; \"r\" makes R alone, and an empty Q.",
    examples: &[
        ex("qr(tensor([[1.0, 2.0], [0.0, 3.0]])).R", "tensor([[1., 2.],\n        [0., 3.]])"),
        ex("qr(ones([2]))", "E0201"),
        ex("qr(ones([2, 2]), \"half\")", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, mode) = (a.tensor(qr::A), a.text(qr::mode));
        matrices("A", x)?;
        if mode == "r" && differentiated(e, x) {
            fail!(GRAD_STOP, "the mode \"r\" has no gradient; use \"reduced\"");
        }
        let mut factors = e.apply(&FACTORS, args![x, mode == "complete"])?;
        if mode == "r" {
            factors[0] = e.empty(&[0], x.dtype(), x.device())?;
        }
        Ok(factors)
    }),
    grad: Grad::Composed,
    results: Returns::Named(&["Q", "R"]),
    ..Op::BASE
};

signature!(eigh(A: Tensor, UPLO: Str(&["L", "U", "l", "u"]) = "L"));

pub static EIGH: Op = Op {
    name: "eigh",
    params: eigh::PARAMS,
    summary: "Eigenvalues (ascending) and eigenvectors of symmetric matrices, of which one triangle is read.",
    details: "Eigenvectors are the columns, determined up to a sign.",
    examples: &[
        ex("eigh(tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues", "tensor([1., 2.])"),
        ex("eigh(ones([2, 3]))", "E0201"),
        ex("eigh(ones([2, 2]), \"X\")", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(eigh::A);
        let n = squares("A", x)?;
        let call = KernelCall::new("eigh", &linalg::EIGH).input(x).flag(a.text(eigh::UPLO).eq_ignore_ascii_case("u"));
        Ok(call.output(&sized(x, &[n]), x.dtype()).output(&x.shape(), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1)],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let (values, vectors) = (t.output(0), t.output(1));
            let mut middle = t.grad(0).map(|g| g.of(&DIAG_EMBED).cast(v.meta(eigh::A).dtype));
            if let Some(g) = t.grad(1) {
                // Only the skew part rotates vectors; the result is symmetric.
                let vtg = vectors.mh().matmul(g);
                let turned = (vtg - vtg.mh()) * 0.5 / gaps(values);
                middle = plus(middle, turned.tril(-1) + turned.triu(1));
            }
            [middle.map(|middle| vectors.matmul(middle).matmul(vectors.mh()))]
        })
    }),
    results: Returns::Named(&["eigenvalues", "eigenvectors"]),
    ..Op::BASE
};

/// Internal: eigenvalues alone.
pub static EIGENVALUES: Op = Op {
    name: "eigvalsh",
    params: eigh::PARAMS,
    summary: "Eigenvalues of symmetric matrices.",
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(eigh::A);
        let call =
            KernelCall::new("eigvalsh", &linalg::EIGVALSH).input(x).flag(a.text(eigh::UPLO).eq_ignore_ascii_case("u"));
        Ok(call.output(&sized(x, &[ends(x).0]), x.dtype()))
    }),
    grad: Grad::Stop("`eigh` has one"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static EIGVALSH: Op = Op {
    name: "eigvalsh",
    params: eigh::PARAMS,
    summary: "Eigenvalues of symmetric matrices, ascending.",
    examples: &[
        ex("eigvalsh(tensor([[2.0, 0.0], [0.0, 1.0]]))", "tensor([1., 2.])"),
        ex("eigvalsh(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        squares("A", a.tensor(eigh::A))?;
        if !differentiated(e, a.tensor(eigh::A)) {
            return e.apply(&EIGENVALUES, a.clone());
        }
        Ok(vec![e.apply(&EIGH, a.clone())?.swap_remove(0)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Internal: in the operand's own dtype.
pub static EXPONENTIAL: Op = Op {
    name: "matrix_exp",
    params: values::PARAMS,
    summary: "The exponential of square matrices.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(values::A);
        if ends(x).0 > matrix_exp::SMALL && x.numel() > 0 {
            return Ok(vec![matrix_exp::by_products(e, x)?]);
        }
        e.kernel(KernelCall::new("matrix_exp", &linalg::MATRIX_EXP).input(x).output(&x.shape(), x.dtype()))
    }),
    saves: &[Save::In(values::A)],
    grad: Grad::Rule(|e, v| {
        // The upper right block of exp([[A', g], [0, A']]) (Najfeld and Havel, 1995).
        let n = ends(v.saved(values::A)).0;
        derive(e, v, |t| {
            let at = t.input.mt();
            let block = at.cat(t.g, -1).cat(t.zeros_like(values::A).cat(at, -1), -2);
            [Some(block.of(&EXPONENTIAL).slice(-2, 0, n).slice(-1, n, 2 * n))]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static MATRIX_EXP: Op = Op {
    name: "matrix_exp",
    params: values::PARAMS,
    summary: "The exponential of square matrices, computed in f64.",
    examples: &[
        ex("matrix_exp(zeros([2, 2]))", "tensor([[1., 0.],\n        [0., 1.]])"),
        ex("matrix_exp(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        if !a.tensor(values::A).dtype().is_inexact() {
            fail!(DTYPE, "`A` must be floating-point, not {}", a.tensor(values::A).dtype());
        }
        square("A", a.tensor(values::A))?;
        // Squaring again and again would lose the last digits of f32.
        let complex = a.tensor(values::A).dtype().is_complex();
        let wide = e.cast(a.tensor(values::A), if complex { DType::C128 } else { DType::F64 })?;
        let out = e.call(&EXPONENTIAL, args![&wide])?;
        Ok(vec![e.cast(&out, a.tensor(values::A).dtype())?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&SVD, &VALUES, &SVDVALS, &FACTORS, &QR, &EIGH, &EIGENVALUES, &EIGVALSH, &EXPONENTIAL, &MATRIX_EXP];
