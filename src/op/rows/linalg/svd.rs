//! Orthogonal decompositions: `svd`, `qr`, `eigh`; and the exponential of matrices.
//!
//! Gradients are those of PyTorch's `FunctionsManual`: singular and eigenvectors have one only for distinct values.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::kernel::linalg;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::einsum::{identity_like, square};
use crate::op::rows::linalg::matmul::product;
use crate::op::rows::linalg::solve::{matrices, sized, squares, triangular};
use crate::op::rows::shape::copies::{DIAG_EMBED, TRIU};
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::adjoint;
use crate::op::rows::shape::view::{SLICE, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::signature;

pub fn ends(x: &Tensor) -> (usize, usize) {
    let shape = x.shape();
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// `x * s` with `s` along the columns (dim -1) or the rows (dim -2).
pub fn scaled(e: &mut dyn Emit, x: &Tensor, s: &Tensor, dim: i64) -> Result<Tensor> {
    let s = e.call(&UNSQUEEZE, args![s, if dim == -1 { -2 } else { -1 }])?;
    e.mul(x, &s)
}

/// `a^T @ b`.
pub fn inner(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let at = adjoint(e, a)?;
    product(e, &at, b)
}

/// `f(s_k) - f(s_j)` at row j and column k, 1 on the diagonal.
fn gaps(e: &mut dyn Emit, values: &Tensor) -> Result<Tensor> {
    let (row, column) = (e.call(&UNSQUEEZE, args![values, -2])?, e.call(&UNSQUEEZE, args![values, -1])?);
    let gaps = e.sub(&row, &column)?;
    let eye = identity_like(e, &gaps)?;
    e.add(&gaps, &eye)
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
    let s = v.output(1);
    let k = s.shape()[s.ndim() - 1];
    let first = |e: &mut dyn Emit, x: &Tensor, dim: i64| e.call(&SLICE, args![x, dim, 0, k, 1]);
    let (u, vh) = (first(e, v.output(0), -1)?, first(e, v.output(2), -2)?);
    let (m, n) = (u.shape()[u.ndim() - 2], vh.shape()[vh.ndim() - 1]);
    let gu = v.grads[0].as_ref().map(|g| first(e, g, -1)).transpose()?;
    let gvh = v.grads[2].as_ref().map(|g| first(e, g, -2)).transpose()?;
    let mut middle = match &v.grads[1] {
        Some(gs) => e.call(&DIAG_EMBED, args![gs])?,
        None => {
            e.zeros_like(&crate::op::tensor::Meta { shape: sized(&u, &[k, k]), dtype: s.dtype(), device: s.device() })?
        }
    };
    let squares = e.mul(s, s)?;
    let skew = |e: &mut dyn Emit, x: &Tensor, gaps: &Tensor| {
        let xt = adjoint(e, x)?;
        let skew = e.sub(x, &xt)?;
        e.div(&skew, gaps)
    };
    let mut outside = None;
    if let Some(gu) = &gu {
        let gaps = gaps(e, &squares)?;
        let utg = inner(e, &u, gu)?;
        let part = skew(e, &utg, &gaps)?;
        let part = scaled(e, &part, s, -1)?;
        middle = e.add(&middle, &part)?;
        if m > k {
            // (I - U U') gU / S @ Vh
            let inside = product(e, &u, &utg)?;
            let rest = e.sub(gu, &inside)?;
            let column = e.call(&UNSQUEEZE, args![s, -2])?;
            let rest = e.div(&rest, &column)?;
            outside = Some(product(e, &rest, &vh)?);
        }
    }
    if let Some(gvh) = &gvh {
        let gaps = gaps(e, &squares)?;
        // V' gV = Vh @ gVh'
        let gv = adjoint(e, gvh)?;
        let vtg = product(e, &vh, &gv)?;
        let part = skew(e, &vtg, &gaps)?;
        let part = scaled(e, &part, s, -2)?;
        middle = e.add(&middle, &part)?;
        if n > k {
            // U / S @ (gVh - gVh V Vh)
            let inside = inner(e, &vtg, &vh)?;
            let rest = e.sub(gvh, &inside)?;
            let column = e.call(&UNSQUEEZE, args![s, -2])?;
            let left = e.div(&u, &column)?;
            let rest = product(e, &left, &rest)?;
            outside = Some(match outside {
                Some(other) => e.add(&other, &rest)?,
                None => rest,
            });
        }
    }
    let left = product(e, &u, &middle)?;
    let whole = product(e, &left, &vh)?;
    Ok(vec![Some(match outside {
        Some(outside) => e.add(&whole, &outside)?,
        None => whole,
    })])
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
static FACTORS: Op = Op {
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
fn tall_qr(e: &mut dyn Emit, q: &Tensor, r: &Tensor, gq: Option<&Tensor>, gr: Option<&Tensor>) -> Result<Tensor> {
    let mut middle = None;
    if let Some(gr) = gr {
        let rt = adjoint(e, r)?;
        middle = Some(product(e, gr, &rt)?);
    }
    if let Some(gq) = gq {
        let qtg = inner(e, q, gq)?;
        middle = Some(match middle {
            Some(middle) => e.sub(&middle, &qtg)?,
            None => e.neg(&qtg)?,
        });
    }
    let Some(middle) = middle else { fail!(INTERNAL, "a rule runs only when some gradient arrived") };
    let above = e.call(&TRIU, args![&middle, 0])?;
    // X + X' with the diagonal once.
    let strict = e.call(&TRIU, args![&above, 1])?;
    let below = adjoint(e, &strict)?;
    let middle = e.add(&above, &below)?;
    let mut g = product(e, q, &middle)?;
    if let Some(gq) = gq {
        g = e.add(&g, gq)?;
    }
    let rt = adjoint(e, r)?;
    triangular(e, &rt, &g, false, false, false)
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
    let (q, r) = (v.output(0), v.output(1));
    let (gq, gr) = (v.grads[0].as_ref(), v.grads[1].as_ref());
    if m >= n {
        return Ok(vec![Some(tall_qr(e, q, r, gq, gr)?)]);
    }
    // A = [A1 | A2], R = [R1 | Q' A2] with A1 square.
    let cut = |e: &mut dyn Emit, x: &Tensor, from: usize, to: usize| e.call(&SLICE, args![x, -1, from, to, 1]);
    let (r1, r2) = (cut(e, r, 0, m)?, cut(e, r, m, n)?);
    let Some(gr) = gr else {
        let first = tall_qr(e, q, &r1, gq, None)?;
        let zeros = e.zeros_like(&crate::op::tensor::Meta {
            shape: sized(&r2, &[m, n - m]),
            dtype: r.dtype(),
            device: r.device(),
        })?;
        return Ok(vec![Some(e.call(&CAT, args![vec![first, zeros], -1])?)]);
    };
    let (gr1, gr2) = (cut(e, gr, 0, m)?, cut(e, gr, m, n)?);
    let second = product(e, q, &gr2)?;
    let a2 = product(e, q, &r2)?;
    let gr2t = adjoint(e, &gr2)?;
    let mut g = product(e, &a2, &gr2t)?;
    if let Some(gq) = gq {
        g = e.add(&g, gq)?;
    }
    let first = tall_qr(e, q, &r1, Some(&g), Some(&gr1))?;
    Ok(vec![Some(e.call(&CAT, args![vec![first, second], -1])?)])
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
        let (values, vectors) = (v.output(0), v.output(1));
        let mut middle = match &v.grads[0] {
            Some(g) => e.call(&DIAG_EMBED, args![g])?,
            None => e.zeros_like(v.meta(eigh::A))?,
        };
        if let Some(g) = &v.grads[1] {
            let gaps = gaps(e, values)?;
            // Only the skew part turns vectors; the result is symmetric.
            let vtg = inner(e, vectors, g)?;
            let gtv = adjoint(e, &vtg)?;
            let skew = e.sub(&vtg, &gtv)?;
            let skew = e.mul(&skew, 0.5)?;
            let part = e.div(&skew, &gaps)?;
            middle = e.add(&middle, &part)?;
        }
        let left = product(e, vectors, &middle)?;
        let vt = adjoint(e, vectors)?;
        Ok(vec![Some(product(e, &left, &vt)?)])
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
static EXPONENTIAL: Op = Op {
    name: "matrix_exp",
    params: values::PARAMS,
    summary: "The exponential of square matrices.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("matrix_exp", &linalg::MATRIX_EXP).input(a.tensor(values::A));
        Ok(call.output(&a.tensor(values::A).shape(), a.tensor(values::A).dtype()))
    }),
    saves: &[Save::In(values::A)],
    grad: Grad::Rule(|e, v| {
        // The upper right block of exp([[A', g], [0, A']]) (Najfeld and Havel, 1995).
        let at = adjoint(e, v.saved(values::A))?;
        let n = ends(&at).0;
        let zeros = e.zeros_like(v.meta(values::A))?;
        let above = e.call(&CAT, args![vec![at.clone(), v.g().clone()], -1])?;
        let below = e.call(&CAT, args![vec![zeros, at], -1])?;
        let block = e.call(&CAT, args![vec![above, below], -2])?;
        let whole = e.call(&EXPONENTIAL, args![&block])?;
        let rows = e.call(&SLICE, args![&whole, -2, 0, n, 1])?;
        Ok(vec![Some(e.call(&SLICE, args![&rows, -1, n, 2 * n, 1])?)])
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
        if !a.tensor(values::A).dtype().is_float() {
            fail!(DTYPE, "`A` must be floating-point, not {}", a.tensor(values::A).dtype());
        }
        square("A", a.tensor(values::A))?;
        // Squaring again and again would lose the last digits of f32.
        let wide = e.cast(a.tensor(values::A), DType::F64)?;
        let out = e.call(&EXPONENTIAL, args![&wide])?;
        Ok(vec![e.cast(&out, a.tensor(values::A).dtype())?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&SVD, &VALUES, &SVDVALS, &FACTORS, &QR, &EIGH, &EIGENVALUES, &EIGVALSH, &EXPONENTIAL, &MATRIX_EXP];
