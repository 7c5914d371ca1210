//! What small singular values decide: ranks, pseudoinverses, least squares.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::broadcast;
use crate::fail;
use crate::kernel::linalg::host::spectral as kernel;
use crate::op::args::{Arg, Args};
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Returns, Save, ex};
use crate::op::rows::linalg::matmul::{product, same_batch};
use crate::op::rows::linalg::solve::{A, matrices, sized, squares};
use crate::op::rows::linalg::svd::{EIGENVALUES, EIGH, SVD, VALUES, ends, inner, scaled};
use crate::op::rows::pointwise::compare::{GT, WHERE};
use crate::op::rows::pointwise::unary::ABS;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::rearrange::{SQUEEZE, adjoint};
use crate::op::rows::shape::view::{SLICE, UNSQUEEZE};
use crate::op::tensor::Tensor;

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
            e.call(&crate::op::rows::pointwise::power::MAXIMUM, args![&relative, &atol])
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
    ..Op::BASE
};

/// The larger of the first and the last value: shape [.., 1].
fn by_size(e: &mut dyn Emit, values: &Tensor) -> Result<Tensor> {
    let n = values.shape()[values.ndim() - 1];
    let first = e.call(&SLICE, args![values, -1, 0, 1, 1])?;
    let last = e.call(&SLICE, args![values, -1, n - 1, n, 1])?;
    e.call(&crate::op::rows::pointwise::power::MAXIMUM, args![&first, &last])
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
        let inverse = e.rev(&crate::op::rows::pointwise::arith::DIV, Scalar::Float(1.0), &values)?;
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

pub static ROWS: &[&Op] = &[&MATRIX_RANK, &PSEUDO, &PINV, &PINVERSE, &LEAST, &LSTSQ];
