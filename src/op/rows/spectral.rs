//! Orthogonal decompositions and what follows from them: `svd`, `qr`, `eigh`, `pinv`, `lstsq`, ranks, exponentials.
//!
//! Gradients are those of PyTorch's `FunctionsManual`: singular and eigenvectors have one only for distinct values.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::broadcast;
use crate::fail;
use crate::kernel::cpu::decompose::spectral as kernel;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Save, ex};
use crate::op::rows::compare::{GT, WHERE};
use crate::op::rows::contract::{identity_like, square};
use crate::op::rows::copies::{DIAG_EMBED, TRIU};
use crate::op::rows::join::CAT;
use crate::op::rows::linalg::{A, matrices, sized, squares, triangular};
use crate::op::rows::matmul::{product, same_batch};
use crate::op::rows::reduce::SUM;
use crate::op::rows::shape::{SQUEEZE, adjoint};
use crate::op::rows::unary::ABS;
use crate::op::rows::view::{SLICE, UNSQUEEZE};
use crate::op::tensor::Tensor;

fn ends(x: &Tensor) -> (usize, usize) {
    let shape = x.shape();
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// `x * s` with `s` along the columns (dim -1) or the rows (dim -2).
fn scaled(e: &mut dyn Emit, x: &Tensor, s: &Tensor, dim: i64) -> Result<Tensor> {
    let s = e.call(&UNSQUEEZE, args![s, if dim == -1 { -2 } else { -1 }])?;
    e.mul(x, &s)
}

/// `a^T @ b`.
fn inner(e: &mut dyn Emit, a: &Tensor, b: &Tensor) -> Result<Tensor> {
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

pub static SVD: Op = Op {
    name: "svd",
    params: &[
        A,
        Param::opt("full_matrices", Kind::Bool, Default::Bool(true)),
        Param::opt("driver", Kind::Ignored, Default::None),
    ],
    summary: "Singular value decomposition: A = U @ diag(S) @ Vh, singular values descending.",
    details: "With `full_matrices: false`, U is [.., m, k] and Vh [.., k, n], k the smaller of m and n. Pairs of vectors \
              are determined up to a sign.",
    examples: &[
        ex("svd(tensor([[3.0, 0.0], [0.0, 4.0]])).S", "tensor([4., 3.])"),
        ex("svd(ones([2]))", "E0201"),
        ex("svd(tensor([[1]]))", "E0202"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, full) = (a.tensor(0), a.flag(1));
        matrices("A", x)?;
        let (m, n) = ends(x);
        let k = m.min(n);
        let (rows, columns) = if full { (m, n) } else { (k, k) };
        let call = KernelCall::new("svd", kernel::svd).input(x).flag(full);
        let call = call.output(&sized(x, &[m, rows]), x.dtype()).output(&sized(x, &[k]), x.dtype());
        Ok(call.output(&sized(x, &[columns, n]), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1), Save::Out(2)],
    grad: Grad::Rule(svd_grad),
    results: &["U", "S", "Vh"],
    oracle: "torch.linalg.svd(a)",
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

/// Internal: singular values alone.
static VALUES: Op = Op {
    name: "svdvals",
    params: &[A],
    summary: "Singular values.",
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(0);
        let (m, n) = ends(x);
        Ok(KernelCall::new("svdvals", kernel::svdvals).input(x).output(&sized(x, &[m.min(n)]), x.dtype()))
    }),
    grad: Grad::Stop("`svd` has one"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Does a gradient flow through this?
fn differentiated(e: &dyn Emit, x: &Tensor) -> bool {
    e.grad_enabled() && x.requires_grad()
}

pub static SVDVALS: Op = Op {
    name: "svdvals",
    params: &[A, Param::opt("driver", Kind::Ignored, Default::None)],
    summary: "Singular values, descending.",
    examples: &[ex("svdvals(tensor([[3.0, 0.0], [0.0, 4.0]]))", "tensor([4., 3.])"), ex("svdvals(ones([2]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        matrices("A", a.tensor(0))?;
        if !differentiated(e, a.tensor(0)) {
            return e.apply(&VALUES, args![a.tensor(0)]);
        }
        Ok(vec![e.apply(&SVD, args![a.tensor(0), false])?.swap_remove(1)])
    }),
    grad: Grad::Composed,
    oracle: "torch.linalg.svdvals(a)",
    ..Op::BASE
};

/// Internal: both factors; `complete` makes Q square.
static FACTORS: Op = Op {
    name: "qr",
    params: &[A, Param::new("complete", Kind::Bool)],
    summary: "QR decomposition.",
    lower: Lower::Kernel(|_, a| {
        let (x, complete) = (a.tensor(0), a.flag(1));
        let (m, n) = ends(x);
        let k = if complete { m } else { m.min(n) };
        let call = KernelCall::new("qr", kernel::qr).input(x).flag(complete);
        Ok(call.output(&sized(x, &[m, k]), x.dtype()).output(&sized(x, &[k, n]), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1)],
    grad: Grad::Rule(qr_grad),
    results: &["Q", "R"],
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
    let shape = v.meta(0).shape.clone();
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    if v.args.flag(1) && m > n {
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

pub static QR: Op = Op {
    name: "qr",
    params: &[A, Param::opt("mode", Kind::Str(&["reduced", "complete", "r"]), Default::Str("reduced"))],
    summary: "QR decomposition: A = Q @ R with orthonormal columns of Q and an upper triangle R.",
    details: "\"complete\" makes Q square; \"r\" makes R alone, and an empty Q.",
    examples: &[
        ex("qr(tensor([[1.0, 2.0], [0.0, 3.0]])).R", "tensor([[1., 2.],\n        [0., 3.]])"),
        ex("qr(ones([2]))", "E0201"),
        ex("qr(ones([2, 2]), \"half\")", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, mode) = (a.tensor(0), a.text(1));
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
    results: &["Q", "R"],
    oracle: "torch.linalg.qr(a)",
    ..Op::BASE
};

const UPLO: Param = Param::opt("UPLO", Kind::Str(&["L", "U", "l", "u"]), Default::Str("L"));

pub static EIGH: Op = Op {
    name: "eigh",
    params: &[A, UPLO],
    summary: "Eigenvalues (ascending) and eigenvectors of symmetric matrices, of which one triangle is read.",
    details: "Eigenvectors are the columns, determined up to a sign.",
    examples: &[
        ex("eigh(tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues", "tensor([1., 2.])"),
        ex("eigh(ones([2, 3]))", "E0201"),
        ex("eigh(ones([2, 2]), \"X\")", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(0);
        let n = squares("A", x)?;
        let call = KernelCall::new("eigh", kernel::eigh).input(x).flag(a.text(1).eq_ignore_ascii_case("u"));
        Ok(call.output(&sized(x, &[n]), x.dtype()).output(&x.shape(), x.dtype()))
    }),
    saves: &[Save::Out(0), Save::Out(1)],
    grad: Grad::Rule(|e, v| {
        let (values, vectors) = (v.output(0), v.output(1));
        let mut middle = match &v.grads[0] {
            Some(g) => e.call(&DIAG_EMBED, args![g])?,
            None => e.zeros_like(v.meta(0))?,
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
    results: &["eigenvalues", "eigenvectors"],
    oracle: "torch.linalg.eigh(a)",
    ..Op::BASE
};

/// Internal: eigenvalues alone.
static EIGENVALUES: Op = Op {
    name: "eigvalsh",
    params: &[A, UPLO],
    summary: "Eigenvalues of symmetric matrices.",
    lower: Lower::Kernel(|_, a| {
        let x = a.tensor(0);
        let call = KernelCall::new("eigvalsh", kernel::eigvalsh).input(x).flag(a.text(1).eq_ignore_ascii_case("u"));
        Ok(call.output(&sized(x, &[ends(x).0]), x.dtype()))
    }),
    grad: Grad::Stop("`eigh` has one"),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static EIGVALSH: Op = Op {
    name: "eigvalsh",
    params: &[A, UPLO],
    summary: "Eigenvalues of symmetric matrices, ascending.",
    examples: &[
        ex("eigvalsh(tensor([[2.0, 0.0], [0.0, 1.0]]))", "tensor([1., 2.])"),
        ex("eigvalsh(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        squares("A", a.tensor(0))?;
        if !differentiated(e, a.tensor(0)) {
            return e.apply(&EIGENVALUES, a.clone());
        }
        Ok(vec![e.apply(&EIGH, a.clone())?.swap_remove(0)])
    }),
    grad: Grad::Composed,
    oracle: "torch.linalg.eigvalsh(a)",
    ..Op::BASE
};

/// The bound below which singular values count as 0: `max(atol, rtol * largest)`, shape [.., 1].
fn tolerance(e: &mut dyn Emit, x: &Tensor, values: &Tensor, atol: &Arg, rtol: &Arg) -> Result<Tensor> {
    let (m, n) = ends(x);
    let eps = if x.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
    let none = |arg: &Arg| matches!(arg, Arg::None);
    let absolute = match atol {
        Arg::Attr(attr) => Args(smallvec::smallvec![Arg::Attr(attr.clone())]).float(0) > 0.0,
        other => !none(other),
    };
    let rtol = match rtol {
        Arg::None if absolute => Arg::from(0.0),
        Arg::None => Arg::from(eps * m.max(n) as f64),
        other => other.clone(),
    };
    let column = |e: &mut dyn Emit, arg: Arg| match arg {
        Arg::Tensor(t) => {
            if !t.dtype().is_float() {
                fail!(DTYPE, "a tolerance is a float, not {}", t.dtype());
            }
            let lead = sized(x, &[]);
            if broadcast(&t.shape(), &lead).is_none() {
                return Err(infer::broadcast_error(&t.shape(), &lead));
            }
            Ok(Arg::Tensor(e.call(&UNSQUEEZE, args![&t, -1])?))
        }
        other => Ok(other),
    };
    let largest = e.call(&SLICE, args![values, -1, 0, 1, 1])?;
    let rtol = column(e, rtol)?;
    let relative = e.mul(&largest, rtol)?;
    match column(e, atol.clone())? {
        Arg::None => Ok(relative),
        atol => {
            let atol = as_tensor(e, atol, &relative)?;
            e.call(&crate::op::rows::power::MAXIMUM, args![&relative, &atol])
        }
    }
}

fn as_tensor(e: &mut dyn Emit, arg: Arg, like: &Tensor) -> Result<Tensor> {
    match arg {
        Arg::Tensor(t) => Ok(t),
        other => {
            let value = Args(smallvec::smallvec![other]).scalar(0).unwrap_or(Scalar::Float(0.0));
            e.full(&[], value, &crate::op::tensor::Meta::of(like))
        }
    }
}

/// Singular values of `x`; of symmetric matrices absolute eigenvalues, not in order.
fn spectrum(e: &mut dyn Emit, x: &Tensor, hermitian: bool) -> Result<Tensor> {
    if !hermitian {
        return e.call(&VALUES, args![x]);
    }
    squares("A", x)?;
    let values = e.call(&EIGENVALUES, args![x, "L"])?;
    e.call(&ABS, args![&values])
}

const HERMITIAN: Param = Param::opt("hermitian", Kind::Bool, Default::Bool(false));
const ATOL: Param = Param::opt("atol", Kind::Operand, Default::None);
const RTOL: Param = Param::opt("rtol", Kind::Operand, Default::None);

pub static MATRIX_RANK: Op = Op {
    name: "matrix_rank",
    params: &[A, Param::opt("tol", Kind::Operand, Default::None), HERMITIAN, ATOL, RTOL],
    summary: "The number of singular values above `max(atol, rtol * largest)`.",
    details: "`rtol` is the dtype's epsilon times the larger size, unless a tolerance is given.",
    examples: &[ex("matrix_rank(ones([2, 2]))", "tensor(1)"), ex("matrix_rank(ones([2]))", "E0201")],
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        matrices("A", x)?;
        let values = spectrum(e, x, a.flag(2))?;
        let (m, n) = ends(x);
        if m.min(n) == 0 {
            let spec = crate::op::tensor::Meta { shape: sized(x, &[]), dtype: DType::I64, device: x.device() };
            return Ok(vec![e.zeros_like(&spec)?]);
        }
        // Eigenvalues by size are largest at one of the ends.
        let largest = if a.flag(2) { by_size(e, &values)? } else { values.clone() };
        let atol = if a.is_none(1) { a.get(3).clone() } else { a.get(1).clone() };
        let rtol = if a.is_none(1) { a.get(4).clone() } else { Arg::from(0.0) };
        let bound = tolerance(e, x, &largest, &atol, &rtol)?;
        let above = e.call(&GT, args![&values, &bound])?;
        Ok(vec![e.call(&SUM, args![&above, -1])?])
    }),
    grad: Grad::Stop("a rank is an integer"),
    oracle: "torch.linalg.matrix_rank(a)",
    ..Op::BASE
};

/// The larger of the first and the last value: shape [.., 1].
fn by_size(e: &mut dyn Emit, values: &Tensor) -> Result<Tensor> {
    let n = values.shape()[values.ndim() - 1];
    let first = e.call(&SLICE, args![values, -1, 0, 1, 1])?;
    let last = e.call(&SLICE, args![values, -1, n - 1, n, 1])?;
    e.call(&crate::op::rows::power::MAXIMUM, args![&first, &last])
}

/// Internal: the pseudoinverse with its own gradient.
static PSEUDO: Op = Op {
    name: "pinv",
    params: &[A, ATOL, RTOL, HERMITIAN],
    summary: "The pseudoinverse.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(0);
        let (m, n) = ends(x);
        if a.is_none(1) && !matches!(a.get(2), Arg::Tensor(_)) && !a.flag(3) || m.min(n) == 0 {
            let rtol = a.opt_float(2).map_or(Attr::None, Attr::Float);
            let call = KernelCall::new("pinv", kernel::pinv).input(x).attr(rtol);
            return e.kernel(call.output(&sized(x, &[n, m]), x.dtype()));
        }
        // V / S @ U', or with eigenvectors V / L @ V'.
        let (left, values, right) = if a.flag(3) {
            let mut parts = e.apply(&EIGH, args![x, "L"])?;
            let vectors = parts.swap_remove(1);
            let vt = adjoint(e, &vectors)?;
            (vectors, parts.swap_remove(0), vt)
        } else {
            let parts = e.apply(&SVD, args![x, false])?;
            let (v, ut) = (adjoint(e, &parts[2])?, adjoint(e, &parts[0])?);
            (v, parts[1].clone(), ut)
        };
        let sizes = e.call(&ABS, args![&values])?;
        let largest = if a.flag(3) { by_size(e, &sizes)? } else { sizes.clone() };
        let bound = tolerance(e, x, &largest, a.get(1), a.get(2))?;
        let used = e.call(&GT, args![&sizes, &bound])?;
        let inverse = e.rev(&crate::op::rows::arith::DIV, Scalar::Float(1.0), &values)?;
        let inverse = e.call(&WHERE, args![&used, &inverse, 0])?;
        let left = scaled(e, &left, &inverse, -1)?;
        Ok(vec![product(e, &left, &right)?])
    }),
    saves: &[Save::In(0), Save::Out(0)],
    grad: Grad::Rule(|e, v| Ok(vec![Some(pinv_grad(e, v.g(), v.output(0), v.input(0))?)])),
    call: CallForm::Internal,
    ..Op::BASE
};

/// PyTorch's `pinv_backward` (Golub and Pereyra, 1973), in the order that keeps products small.
fn pinv_grad(e: &mut dyn Emit, g: &Tensor, p: &Tensor, a: &Tensor) -> Result<Tensor> {
    let (m, n) = ends(a);
    let (pt, gt) = (adjoint(e, p)?, adjoint(e, g)?);
    if m <= n {
        let k = product(e, &gt, p)?;
        let kpt = product(e, &k, &pt)?;
        let first = product(e, p, &k)?;
        let first = adjoint(e, &first)?;
        let ap = product(e, a, p)?;
        let third = product(e, &ap, &kpt)?;
        let ptp = product(e, &pt, p)?;
        let ka = product(e, &k, a)?;
        let rest = e.sub(&gt, &ka)?;
        let fourth = product(e, &ptp, &rest)?;
        let sum = e.sub(&kpt, &first)?;
        let sum = e.sub(&sum, &third)?;
        return e.add(&sum, &fourth);
    }
    let k = product(e, p, &gt)?;
    let ptk = product(e, &pt, &k)?;
    let first = product(e, &k, p)?;
    let first = adjoint(e, &first)?;
    let ak = product(e, a, &k)?;
    let rest = e.sub(&gt, &ak)?;
    let ppt = product(e, p, &pt)?;
    let second = product(e, &rest, &ppt)?;
    let ptkp = product(e, &ptk, p)?;
    let fourth = product(e, &ptkp, a)?;
    let sum = e.sub(&second, &first)?;
    let sum = e.add(&sum, &ptk)?;
    e.sub(&sum, &fourth)
}

pub static PINV: Op = Op {
    name: "pinv",
    params: &[A, Param::opt("rcond", Kind::Operand, Default::None), HERMITIAN, ATOL, RTOL],
    summary: "The Moore-Penrose pseudoinverse; singular values up to `max(atol, rtol * largest)` count as 0.",
    details: "`rtol` (also `rcond`) is the dtype's epsilon times the larger size, unless a tolerance is given.",
    examples: &[
        ex("pinv(tensor([[2.0, 0.0], [0.0, 0.0]]))", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])"),
        ex("pinv(ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        matrices("A", a.tensor(0))?;
        if a.flag(2) {
            squares("A", a.tensor(0))?;
        }
        let rtol = if a.is_none(1) { a.get(4).clone() } else { a.get(1).clone() };
        e.apply(&PSEUDO, args![a.tensor(0), a.get(3).clone(), rtol, a.flag(2)])
    }),
    grad: Grad::Composed,
    oracle: "torch.linalg.pinv(a)",
    ..Op::BASE
};

pub static PINVERSE: Op = Op {
    name: "pinverse",
    params: &[Param::new("input", Kind::Tensor), Param::opt("rcond", Kind::Float, Default::Float(1e-15))],
    summary: "The Moore-Penrose pseudoinverse; the older form of `pinv`.",
    examples: &[ex("pinverse(tensor([[2.0]]))", "tensor([[0.5000]])"), ex("pinverse(ones([2]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        matrices("input", a.tensor(0))?;
        e.apply(&PSEUDO, args![a.tensor(0), (), a.float(1), false])
    }),
    grad: Grad::Composed,
    oracle: "torch.pinverse(a)",
    ..Op::BASE
};

/// Internal: the solution of smallest norm, over one batch.
static LEAST: Op = Op {
    name: "lstsq",
    params: &[A, Param::new("B", Kind::Tensor), Param::opt("rcond", Kind::Float, Default::None)],
    summary: "Least squares.",
    lower: Lower::Kernel(|_, a| {
        let (x, b) = (a.tensor(0), a.tensor(1));
        let rcond = a.opt_float(2).map_or(Attr::None, Attr::Float);
        let call = KernelCall::new("lstsq", kernel::lstsq).input(x).input(b).attr(rcond);
        Ok(call.output(&sized(x, &[ends(x).1, ends(b).1]), x.dtype()))
    }),
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        // The solution is pinv(A) @ B.
        let (a, b) = (v.input(0), v.input(1));
        let p = e.call(&PSEUDO, args![a, (), v.args.opt_float(2).map_or(Arg::None, Arg::from), false])?;
        let left = if v.needs(0) {
            let bt = adjoint(e, b)?;
            let g = product(e, v.g(), &bt)?;
            Some(pinv_grad(e, &g, &p, a)?)
        } else {
            None
        };
        let right = if v.needs(1) { Some(inner(e, &p, v.g())?) } else { None };
        Ok(vec![left, right])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

pub static LSTSQ: Op = Op {
    name: "lstsq",
    params: &[
        A,
        Param::new("B", Kind::Tensor),
        Param::opt("rcond", Kind::Float, Default::None),
        Param::opt("driver", Kind::Str(&["gels", "gelsy", "gelsd", "gelss"]), Default::None),
    ],
    summary: "The X that makes the norm of A @ X - B smallest; of several the smallest.",
    details: "The driver only decides which of `residuals`, `rank` and `singular_values` are made, as in PyTorch; what \
              is not made is empty. Residuals need more rows than columns.",
    examples: &[
        ex("lstsq(tensor([[1.0], [1.0]]), tensor([[1.0], [3.0]])).solution", "tensor([[2.0000]])"),
        ex("lstsq(ones([2, 1]), ones([3, 1]))", "E0201"),
        ex("lstsq(ones([2, 1]), zeros([2, 1], #{dtype: \"f64\"}))", "E0202"),
    ],
    lower: Lower::Compose(lstsq),
    grad: Grad::Composed,
    results: &["solution", "residuals", "rank", "singular_values"],
    oracle: "torch.linalg.lstsq(a, b)",
    ..Op::BASE
};

fn lstsq(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, b) = (a.tensor(0), a.tensor(1));
    matrices("A", x)?;
    infer::same_dtype(&[("A", x), ("B", b)])?;
    let (s, t) = (x.shape(), b.shape());
    let vector = t.len() == 1 && s.len() == 2 || t.len() + 1 == s.len() && t[..] == s[..s.len() - 1];
    let b = if vector { e.call(&UNSQUEEZE, args![b, -1])? } else { b.clone() };
    let (m, n) = ends(x);
    if b.ndim() < 2 || ends(&b).0 != m {
        fail!(SHAPE, "`A` has shape {:?}, `B` {:?}: the numbers of rows differ", s.as_slice(), t.as_slice());
    }
    let (x, b) = same_batch(e, x, &b)?;
    let driver = a.text(3);
    let rcond = a.opt_float(2).map_or(Arg::None, Arg::from);
    let mut solution = e.call(&LEAST, args![&x, &b, rcond])?;
    let (dtype, device) = (x.dtype(), x.device());
    let mut residuals = e.empty(&[0], dtype, device)?;
    if m > n && !matches!(driver, "" | "gelsy") {
        let fitted = product(e, &x, &solution)?;
        let difference = e.sub(&fitted, &b)?;
        let squares = e.mul(&difference, &difference)?;
        residuals = e.call(&SUM, args![&squares, -2])?;
    }
    let detached = e.detach(&x);
    let rank = match driver {
        "gels" => e.empty(&[0], DType::I64, device)?,
        _ => {
            let rtol = a.opt_float(2).map_or(Arg::None, Arg::from);
            e.call(&MATRIX_RANK, args![&detached, (), false, (), rtol])?
        }
    };
    let values = match driver {
        "gelsd" | "gelss" => e.call(&VALUES, args![&detached])?,
        _ => e.empty(&[0], dtype, device)?,
    };
    if vector {
        solution = e.call(&SQUEEZE, args![&solution, -1])?;
    }
    Ok(vec![solution, residuals, rank, values])
}

/// Internal: in the operand's own dtype.
static EXPONENTIAL: Op = Op {
    name: "matrix_exp",
    params: &[A],
    summary: "The exponential of square matrices.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("matrix_exp", kernel::matrix_exp).input(a.tensor(0));
        Ok(call.output(&a.tensor(0).shape(), a.tensor(0).dtype()))
    }),
    saves: &[Save::In(0)],
    grad: Grad::Rule(|e, v| {
        // The upper right block of exp([[A', g], [0, A']]) (Najfeld and Havel, 1995).
        let at = adjoint(e, v.input(0))?;
        let n = ends(&at).0;
        let zeros = e.zeros_like(v.meta(0))?;
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
    params: &[A],
    summary: "The exponential of square matrices, computed in f64.",
    examples: &[
        ex("matrix_exp(zeros([2, 2]))", "tensor([[1., 0.],\n        [0., 1.]])"),
        ex("matrix_exp(ones([2, 3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        if !a.tensor(0).dtype().is_float() {
            fail!(DTYPE, "`A` must be floating-point, not {}", a.tensor(0).dtype());
        }
        square("A", a.tensor(0))?;
        // Squaring again and again would lose the last digits of f32.
        let wide = e.cast(a.tensor(0), DType::F64)?;
        let out = e.call(&EXPONENTIAL, args![&wide])?;
        Ok(vec![e.cast(&out, a.tensor(0).dtype())?])
    }),
    grad: Grad::Composed,
    oracle: "torch.linalg.matrix_exp(a)",
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[
    &SVD,
    &VALUES,
    &SVDVALS,
    &FACTORS,
    &QR,
    &EIGH,
    &EIGENVALUES,
    &EIGVALSH,
    &MATRIX_RANK,
    &PSEUDO,
    &PINV,
    &PINVERSE,
    &LEAST,
    &LSTSQ,
    &EXPONENTIAL,
    &MATRIX_EXP,
];
