//! Functions that depend on small singular values: ranks, pseudoinverses, least squares.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::broadcast;
use crate::fail;
use crate::kernel::linalg;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Emit, KernelCall};
use crate::op::expr::{Expr, compute, derive};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save, ex};
use crate::op::rows::linalg::matmul::same_batch;
use crate::op::rows::linalg::solve::{matrices, sized, squares};
use crate::op::rows::linalg::svd::{EIGENVALUES, EIGH, SVD, VALUES, ends};
use crate::op::rows::pointwise::compare::GT;
use crate::op::rows::pointwise::power::MAXIMUM;
use crate::op::rows::pointwise::unary::ABS;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::{SQUEEZE, adjoint};
use crate::op::rows::shape::view::{SLICE, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::signature;

/// The bound below which singular values count as 0: `max(atol, rtol * largest)`, shape [.., 1].
fn tolerance(e: &mut dyn Emit, x: &Tensor, values: &Tensor, atol: &Arg, rtol: &Arg) -> Result<Tensor> {
    let (m, n) = ends(x);
    let eps = if x.dtype().real_part() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
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
            e.call(&MAXIMUM, args![&relative, &atol])
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

signature!(matrix_rank(
    A: Tensor, tol: Operand = None, hermitian: Bool = false, atol: Operand = None, rtol: Operand = None,
));

pub static MATRIX_RANK: Op = Op {
    name: "matrix_rank",
    params: matrix_rank::PARAMS,
    summary: "The number of singular values above `max(atol, rtol * largest)`.",
    details: "`rtol` is the dtype's epsilon times the larger size, unless a tolerance is given.",
    examples: &[ex("matrix_rank(ones([2, 2]))", "tensor(1)"), ex("matrix_rank(ones([2]))", "E0201")],
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(matrix_rank::A);
        matrices("A", x)?;
        let values = spectrum(e, x, a.flag(matrix_rank::hermitian))?;
        let (m, n) = ends(x);
        if m.min(n) == 0 {
            let spec = crate::op::tensor::Meta { shape: sized(x, &[]), dtype: DType::I64, device: x.device() };
            return Ok(vec![e.zeros_like(&spec)?]);
        }
        // Eigenvalues by size are largest at one of the ends.
        let largest = if a.flag(matrix_rank::hermitian) { by_size(e, &values)? } else { values.clone() };
        let atol = if a.is_none(matrix_rank::tol) {
            a.get(matrix_rank::atol).clone()
        } else {
            a.get(matrix_rank::tol).clone()
        };
        let rtol = if a.is_none(matrix_rank::tol) { a.get(matrix_rank::rtol).clone() } else { Arg::from(0.0) };
        let bound = tolerance(e, x, &largest, &atol, &rtol)?;
        let above = e.call(&GT, args![&values, &bound])?;
        Ok(vec![e.call(&SUM, args![&above, -1])?])
    }),
    grad: Grad::Stop("a rank is an integer"),
    ..Op::BASE
};

/// The larger of the first and the last value: shape [.., 1].
fn by_size(e: &mut dyn Emit, values: &Tensor) -> Result<Tensor> {
    let n = values.shape()[values.ndim() - 1];
    compute(e, |c| c.of(values).slice(-1, 0, 1).with(&MAXIMUM, c.of(values).slice(-1, n - 1, n)))
}

signature!(pseudo(A: Tensor, atol: Operand = None, rtol: Operand = None, hermitian: Bool = false));

/// Internal: the pseudoinverse with its own gradient.
pub static PSEUDO: Op = Op {
    name: "pinv",
    params: pseudo::PARAMS,
    summary: "The pseudoinverse.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(pseudo::A);
        let (m, n) = ends(x);
        let plain =
            a.is_none(pseudo::atol) && !matches!(a.get(pseudo::rtol), Arg::Tensor(_)) && !a.flag(pseudo::hermitian);
        if m.min(n) == 0 && x.dtype().is_complex() {
            let meta = crate::op::tensor::Meta { shape: sized(x, &[n, m]), ..crate::op::tensor::Meta::of(x) };
            return Ok(vec![e.zeros_like(&meta)?]);
        }
        if plain && !x.dtype().is_complex() || m.min(n) == 0 {
            let rtol = a.opt_float(pseudo::rtol).map_or(Attr::None, Attr::Float);
            let call = KernelCall::new("pinv", &linalg::PINV).input(x).attr(rtol);
            return e.kernel(call.output(&sized(x, &[n, m]), x.dtype()));
        }
        // V / S @ U', or with eigenvectors V / L @ V'.
        let (left, values, right) = if a.flag(pseudo::hermitian) {
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
        let largest = if a.flag(pseudo::hermitian) { by_size(e, &sizes)? } else { sizes.clone() };
        let bound = tolerance(e, x, &largest, a.get(pseudo::atol), a.get(pseudo::rtol))?;
        let product = compute(e, |c| {
            let (values, right) = (c.of(&values), c.of(&right));
            let inverse = c.of(&sizes).greater(&bound).choose(1.0 / values, 0);
            (c.of(&left) * inverse.unsqueeze(-2)).matmul(right)
        })?;
        Ok(vec![product])
    }),
    saves: &[Save::In(pseudo::A), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        let is_wide = is_wide(v.saved(pseudo::A));
        derive(e, v, |t| [Some(pinv_grad(t.g, t.result, t.input, is_wide))])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

fn is_wide(x: &Tensor) -> bool {
    let (m, n) = ends(x);
    m <= n
}

/// PyTorch's `pinv_backward` (Golub and Pereyra, 1973), in the order that keeps products small.
fn pinv_grad<'c>(g: Expr<'c>, p: Expr<'c>, a: Expr<'c>, is_wide: bool) -> Expr<'c> {
    let (pt, gt) = (p.mh(), g.mh());
    if is_wide {
        let k = gt.matmul(p);
        let kpt = k.matmul(pt);
        return kpt - p.matmul(k).mh() - a.matmul(p).matmul(kpt) + pt.matmul(p).matmul(gt - k.matmul(a));
    }
    let k = p.matmul(gt);
    let ptk = pt.matmul(k);
    (gt - a.matmul(k)).matmul(p.matmul(pt)) - k.matmul(p).mh() + ptk - ptk.matmul(p).matmul(a)
}

signature!(pinv(
    A: Tensor, rcond: Operand = None, hermitian: Bool = false, atol: Operand = None, rtol: Operand = None,
));

pub static PINV: Op = Op {
    name: "pinv",
    params: pinv::PARAMS,
    summary: "The Moore-Penrose pseudoinverse; singular values up to `max(atol, rtol * largest)` count as 0.",
    details: "`rtol` (also `rcond`) is the dtype's epsilon times the larger size, unless a tolerance is given.",
    examples: &[
        ex("pinv(tensor([[2.0, 0.0], [0.0, 0.0]]))", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])"),
        ex("pinv(ones([2]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        matrices("A", a.tensor(pinv::A))?;
        if a.flag(pinv::hermitian) {
            squares("A", a.tensor(pinv::A))?;
        }
        let rtol = if a.is_none(pinv::rcond) { a.get(pinv::rtol).clone() } else { a.get(pinv::rcond).clone() };
        e.apply(&PSEUDO, args![a.tensor(pinv::A), a.get(pinv::atol).clone(), rtol, a.flag(pinv::hermitian)])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(pinverse(input: Tensor, rcond: Float = 1e-15));

pub static PINVERSE: Op = Op {
    name: "pinverse",
    params: pinverse::PARAMS,
    summary: "The Moore-Penrose pseudoinverse; the older form of `pinv`.",
    examples: &[ex("pinverse(tensor([[2.0]]))", "tensor([[0.5000]])"), ex("pinverse(ones([2]))", "E0201")],
    lower: Lower::Compose(|e, a| {
        matrices("input", a.input())?;
        e.apply(&PSEUDO, args![a.input(), (), a.float(pinverse::rcond), false])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(least(A: Tensor, B: Tensor, rcond: Float = None));

/// Internal: the solution of smallest norm, over one batch.
pub static LEAST: Op = Op {
    name: "lstsq",
    params: least::PARAMS,
    summary: "Least squares.",
    lower: Lower::Kernel(|_, a| {
        let (x, b) = (a.tensor(least::A), a.tensor(least::B));
        let rcond = a.opt_float(least::rcond).map_or(Attr::None, Attr::Float);
        let call = KernelCall::new("lstsq", &linalg::LSTSQ).input(x).input(b).attr(rcond);
        Ok(call.output(&sized(x, &[ends(x).1, ends(b).1]), x.dtype()))
    }),
    saves: &[Save::In(least::A), Save::In(least::B)],
    grad: Grad::Rule(|e, v| {
        // The solution is pinv(A) @ B.
        let rcond = v.args.opt_float(least::rcond).map_or(Arg::None, Arg::from);
        let is_wide = is_wide(v.saved(least::A));
        derive(e, v, |t| {
            let p = t.input.call(&PSEUDO, args![(), rcond, false]);
            let left = t.if_needed(least::A, || pinv_grad(t.g.matmul(t.other.mt()), p, t.input, is_wide));
            [left, t.if_needed(least::B, || p.mt().matmul(t.g))]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(lstsq(
    A: Tensor, B: Tensor, rcond: Float = None, driver: Str(&["gels", "gelsy", "gelsd", "gelss"]) = None,
));

pub static LSTSQ: Op = Op {
    name: "lstsq",
    params: lstsq::PARAMS,
    summary: "The X that makes the norm of A @ X - B smallest; of several the smallest.",
    details: "The driver only decides which of `residuals`, `rank` and `singular_values` are made, as in PyTorch; what \
              is not made is empty. Residuals need more rows than columns.",
    examples: &[
        ex("lstsq(tensor([[1.0], [1.0]]), tensor([[1.0], [3.0]])).solution", "tensor([[2.]])"),
        ex("lstsq(ones([2, 1]), ones([3, 1]))", "E0201"),
        ex("lstsq(ones([2, 1]), zeros([2, 1], #{dtype: \"f64\"}))", "E0202"),
    ],
    lower: Lower::Compose(lstsq),
    grad: Grad::Composed,
    results: Returns::Named(&["solution", "residuals", "rank", "singular_values"]),
    ..Op::BASE
};

fn lstsq(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, b) = (a.tensor(lstsq::A), a.tensor(lstsq::B));
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
    let driver = a.text(lstsq::driver);
    let rcond = a.opt_float(lstsq::rcond).map_or(Arg::None, Arg::from);
    let mut solution = e.call(&LEAST, args![&x, &b, rcond])?;
    let (dtype, device) = (x.dtype(), x.device());
    let mut residuals = e.empty(&[0], dtype, device)?;
    if m > n && !matches!(driver, "" | "gelsy") {
        residuals = compute(e, |c| (c.of(&x).matmul(&solution) - &b).square().sum(-2))?;
    }
    let detached = e.detach(&x);
    let rank = match driver {
        "gels" => e.empty(&[0], DType::I64, device)?,
        _ => {
            let rtol = a.opt_float(lstsq::rcond).map_or(Arg::None, Arg::from);
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

pub static ROWS: &[&Op] = &[&MATRIX_RANK, &PSEUDO, &PINV, &PINVERSE, &LEAST, &LSTSQ];
