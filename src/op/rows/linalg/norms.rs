//! Norms of vectors and matrices over dims, and distances made of them.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::program::ReduceKind;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit};
use crate::op::expr::{compute, derive};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ReduceType, Save, ex};
use crate::op::rows::linalg::linalg_ex::INV_QUIET;
use crate::op::rows::linalg::matmul::check_dtypes;
use crate::op::rows::linalg::svd::SVDVALS;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::compare::{NE, WHERE};
use crate::op::rows::pointwise::complex_parts::CONJ;
use crate::op::rows::reduction::reduce::{SUM, spread};
use crate::op::rows::shape::rearrange::SQUEEZE;
use crate::op::rows::shape::view::{SELECT, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

signature!(extremum(x: Tensor, dim: Dims = None, keepdim: Bool = false));

macro_rules! extremum {
    ($NAME:ident, $kind:ident) => {
        /// Internal: an extremum without a gradient of its own.
        static $NAME: Op = Op {
            name: "vector_norm",
            params: extremum::PARAMS,
            lower: Lower::Reduce { kind: ReduceKind::$kind, dtype: ReduceType::Same },
            grad: Grad::Stop("the norm around it has one"),
            call: CallForm::Internal,
            ..Op::BASE
        };
    };
}
extremum!(LARGEST, Max);
extremum!(SMALLEST, Min);

signature!(norm(x: Tensor, dim: Dims = None, keepdim: Bool = false, ord: Float));

/// Internal: `vector_norm` of floats. The order is last, so that `reduce::spread` fits.
pub static NORM: Op = Op {
    name: "vector_norm",
    params: norm::PARAMS,
    summary: "The p-norm over dims.",
    lower: Lower::Steps(|e, a| {
        let x = a.tensor(norm::x);
        // 16-bit floats would overflow in the squares.
        let wide = e.cast(x, if x.dtype().size_bytes() < 4 { DType::F32 } else { x.dtype() })?;
        let norm = norm(e, &wide, a)?;
        Ok(vec![e.cast(&norm, x.dtype())?])
    }),
    saves: &[Save::In(norm::x), Save::RESULT],
    grad: Grad::Rule(norm_grad),
    call: CallForm::Internal,
    ..Op::BASE
};

fn norm(e: &mut dyn Emit, x: &Tensor, a: &Args) -> Result<Tensor> {
    let (dims, keep, ord, dtype) = (a.ints(norm::dim), a.flag(norm::keepdim), a.float(norm::ord), x.dtype());
    let over = || match &dims {
        Some(dims) => args![dims.clone(), keep],
        None => args![(), keep],
    };
    compute(e, |c| {
        let x = c.of(x);
        match ord {
            0.0 => x.with(&NE, 0).cast(dtype).call(&SUM, over()),
            1.0 => x.abs().call(&SUM, over()),
            2.0 => (x * x).call(&SUM, over()).sqrt(),
            f64::INFINITY => x.abs().call(&LARGEST, over()),
            f64::NEG_INFINITY => x.abs().call(&SMALLEST, over()),
            ord => x.abs().pow(ord).call(&SUM, over()).pow(1.0 / ord),
        }
    })
}

/// PyTorch's `linalg_vector_norm_backward`: 0 where the norm is 0, extrema share evenly.
fn norm_grad(e: &mut dyn Emit, v: &Backward<'_>) -> Result<Vec<Option<Tensor>>> {
    let ord = v.args.float(norm::ord);
    if ord == 0.0 {
        return Ok(vec![Some(e.zeros_like(v.meta(norm::x))?)]);
    }
    let dims = v.args.ints(norm::dim);
    derive(e, v, |t| {
        let (x, g) = (t.input, t.g.then(|e, g| spread(e, v, g)));
        if ord == 1.0 {
            return [Some(x.sgn() * g)];
        }
        let norm = t.result.then(|e, norm| spread(e, v, norm));
        if ord.is_infinite() {
            let hit = x.abs().equals(norm);
            let ones = hit.cast(v.saved(norm::x).dtype());
            let count = match dims {
                Some(dims) => ones.call(&SUM, args![dims, true]),
                None => ones.call(&SUM, args![(), false]),
            };
            return [Some((x.sgn() * (g / count)).zero_unless(hit))];
        }
        let zero = norm.equals(0);
        if ord == 2.0 {
            return [Some(x * (g / norm).zero_where(zero))];
        }
        let scaled = match ord {
            // Below 1 the power of 0 is infinite.
            ..1.0 => (x.sgn() * x.abs().pow(ord - 1.0)).zero_where(x.equals(0)),
            ..2.0 => x.sgn() * x.abs().pow(ord - 1.0),
            _ => x * x.abs().pow(ord - 2.0),
        };
        [Some(scaled * (g / norm.pow(ord - 1.0)).zero_where(zero))]
    })
}

fn floats_only(x: &Tensor, dtype: Option<DType>) -> Result<()> {
    for dtype in [Some(x.dtype()), dtype].into_iter().flatten() {
        if !dtype.is_inexact() {
            return Err(Diag::error(code::DTYPE, format!("a floating-point tensor is expected, not {dtype}"))
                .help("convert first, for example with `.float()`"));
        }
    }
    Ok(())
}

/// The p-norm of `x` over dims (all without any).
pub fn vector_norm(e: &mut dyn Emit, x: &Tensor, ord: f64, dims: Option<Ints>, keepdim: bool) -> Result<Tensor> {
    let named = infer::dims(dims.as_ref(), x.ndim())?;
    let shape = x.shape();
    if (ord < 0.0 || ord == f64::INFINITY) && named.iter().any(|&d| shape.get(d) == Some(&0)) {
        fail!(SHAPE, "the norm of order {ord} of no elements is not defined");
    }
    // Of single elements, whose power might overflow, it is their size.
    let single = !named.is_empty() && named.iter().all(|&d| shape.get(d) == Some(&1));
    let ord = if single && ord != 0.0 { f64::INFINITY } else { ord };
    match dims {
        Some(dims) => e.call(&NORM, args![x, dims, keepdim, ord]),
        None => e.call(&NORM, args![x, (), keepdim, ord]),
    }
}

signature!(vector_norm(x: Tensor, ord: Number = 2, dim: Dims = None, keepdim: Bool = false, dtype: DType = None));

pub static VECTOR_NORM: Op = Op {
    name: "vector_norm",
    params: vector_norm::PARAMS,
    summary: "The norm of order `ord` over dims, or over all elements.",
    details: "The order is a number, INF or -INF; 0 counts the elements that are not 0. Floats only.",
    examples: &[
        ex("vector_norm(tensor([3.0, 4.0]))", "tensor(5.)"),
        ex("vector_norm(tensor([1, 2]))", "E0202"),
        ex("vector_norm(ones([2]), 2, 1)", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        floats_only(a.tensor(vector_norm::x), a.dtype(vector_norm::dtype))?;
        let x =
            e.cast(a.tensor(vector_norm::x), a.dtype(vector_norm::dtype).unwrap_or(a.tensor(vector_norm::x).dtype()))?;
        Ok(vec![vector_norm(
            e,
            &x,
            a.opt_float(vector_norm::ord).unwrap_or(2.0),
            a.ints(vector_norm::dim),
            a.flag(vector_norm::keepdim),
        )?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Singular values over two dims, in the last one.
fn singular(e: &mut dyn Emit, x: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let x = e.call(&crate::op::rows::shape::rearrange::MOVEDIM, args![x, dims, &[-2i64, -1][..]])?;
    e.call(&SVDVALS, args![&x])
}

/// Puts back reduced dims of size 1.
fn kept(e: &mut dyn Emit, x: Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    if !keepdim {
        return Ok(x);
    }
    let mut x = x;
    for dim in [dims[0].min(dims[1]), dims[0].max(dims[1])] {
        x = e.call(&UNSQUEEZE, args![&x, dim])?;
    }
    Ok(x)
}

fn matrix_norm(e: &mut dyn Emit, x: &Tensor, ord: &Attr, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    let both: Ints = dims.iter().map(|&d| d as i64).collect();
    let number = match ord {
        Attr::Str(word) if &**word == "nuc" => {
            let values = singular(e, x, dims)?;
            let sum = e.call(&SUM, args![&values, -1])?;
            return kept(e, sum, dims, keepdim);
        }
        Attr::Str(word) if &**word == "fro" => return vector_norm(e, x, 2.0, Some(both), keepdim),
        Attr::Str(word) => fail!(VALUE, "unknown norm \"{word}\"; \"fro\", \"nuc\" and numbers are known"),
        Attr::Scalar(value) => value.to_f64(),
        _ => return vector_norm(e, x, 2.0, Some(both), keepdim),
    };
    let largest = number > 0.0;
    match number.abs() {
        2.0 => {
            let values = singular(e, x, dims)?;
            if values.shape().last() == Some(&0) {
                if !largest {
                    fail!(SHAPE, "a matrix of no elements has no smallest singular value");
                }
                let zero = e.call(&SUM, args![&values, -1])?;
                return kept(e, zero, dims, keepdim);
            }
            let picked = e.call(&SELECT, args![&values, -1, if largest { 0 } else { -1 }])?;
            kept(e, picked, dims, keepdim)
        }
        n if n == 1.0 || n.is_infinite() => {
            let (summed, other) = if n == 1.0 { (dims[0], dims[1]) } else { (dims[1], dims[0]) };
            let sums = vector_norm(e, x, 1.0, Some(Ints::from_slice(&[summed as i64])), true)?;
            // Of no sums the largest is 0, which their own sum is.
            let order = match largest {
                true if sums.shape()[other] == 0 => 1.0,
                true => f64::INFINITY,
                false => f64::NEG_INFINITY,
            };
            let out = vector_norm(e, &sums, order, Some(Ints::from_slice(&[other as i64])), true)?;
            if keepdim { Ok(out) } else { e.call(&SQUEEZE, args![&out, both]) }
        }
        _ => fail!(VALUE, "matrices have norms of order 1, 2, INF and their negatives, not {number}"),
    }
}

signature!(matrix_norm(
    A: Tensor, ord: NumberOrText = "fro", dim: Ints = None, keepdim: Bool = false, dtype: DType = None,
));

pub static MATRIX_NORM: Op = Op {
    name: "matrix_norm",
    params: matrix_norm::PARAMS,
    summary: "A norm of matrices: \"fro\", \"nuc\", 1, 2, INF or a negative of these.",
    examples: &[
        ex("matrix_norm(tensor([[3.0, 0.0], [0.0, 4.0]]))", "tensor(5.)"),
        ex("matrix_norm(ones([2]))", "E0201"),
        ex("matrix_norm(ones([2, 2]), 3)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        floats_only(a.tensor(matrix_norm::A), a.dtype(matrix_norm::dtype))?;
        let x =
            e.cast(a.tensor(matrix_norm::A), a.dtype(matrix_norm::dtype).unwrap_or(a.tensor(matrix_norm::A).dtype()))?;
        if x.ndim() < 2 {
            fail!(SHAPE, "matrices are expected (at least 2 dimensions), not shape {:?}", x.shape().as_slice());
        }
        let dims = a.ints(matrix_norm::dim).unwrap_or_else(|| Ints::from_slice(&[-2, -1]));
        let dims = crate::op::rows::shape::rearrange::distinct(&dims, x.ndim())?;
        if dims.len() != 2 {
            fail!(VALUE, "two dims are expected, not {}", dims.len());
        }
        Ok(vec![matrix_norm(e, &x, a.attr(matrix_norm::ord), &dims, a.flag(matrix_norm::keepdim))?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(cond(A: Tensor, p: NumberOrText = None));

pub static COND: Op = Op {
    name: "cond",
    params: cond::PARAMS,
    summary: "The condition number of matrices in a norm; without one, in the 2-norm.",
    examples: &[
        ex("cond(tensor([[2.0, 0.0], [0.0, 1.0]]))", "tensor(2.)"),
        ex("cond(stack([ones([2, 2]), eye(2)]), \"fro\")", "tensor([   inf, 2.0000])"),
        ex("cond(ones([2]))", "E0201"),
        ex("cond(ones([2, 3]), 1)", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.tensor(cond::A);
        floats_only(x, None)?;
        if x.ndim() < 2 {
            fail!(SHAPE, "matrices are expected (at least 2 dimensions), not shape {:?}", x.shape().as_slice());
        }
        if x.numel() == 0 {
            // As in PyTorch, which takes 0 for the condition of nothing.
            let (shape, batch) = (x.shape(), x.ndim() - 2);
            let real = Meta { dtype: x.dtype().real_part(), ..Meta::of(x) };
            return Ok(vec![e.full(&shape[..batch], Scalar::Int(0), &real)?]);
        }
        let two = match a.attr(cond::p) {
            Attr::Scalar(value) => (value.to_f64().abs() == 2.0).then_some(value.to_f64() > 0.0),
            Attr::Str(_) => None,
            _ => Some(true),
        };
        if let Some(positive) = two {
            let values = e.call(&SVDVALS, args![x])?;
            let (first, last) = (e.call(&SELECT, args![&values, -1, 0])?, e.call(&SELECT, args![&values, -1, -1])?);
            return Ok(vec![if positive { e.div(&first, &last)? } else { e.div(&last, &first)? }]);
        }
        crate::op::rows::linalg::einsum::square("A", x)?;
        let found = e.apply(&INV_QUIET, args![x])?;
        let (inverse, info) = (&found[0], &found[1]);
        let dims = [x.ndim() - 2, x.ndim() - 1];
        let norm = matrix_norm(e, x, a.attr(cond::p), &dims, false)?;
        let other = matrix_norm(e, inverse, a.attr(cond::p), &dims, false)?;
        let product = e.mul(&norm, &other)?;
        let is_singular = e.call(&NE, args![info, Scalar::Int(0)])?;
        e.apply(&WHERE, args![&is_singular, Scalar::Float(f64::INFINITY), &product])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(dist(input: Tensor, other: Tensor, p: Number = 2));

pub static DIST: Op = Op {
    name: "dist",
    params: dist::PARAMS,
    summary: "The p-norm of the difference of two tensors.",
    examples: &[
        ex("dist(tensor([1.0, 1.0]), tensor([4.0, 5.0]))", "tensor(5.)"),
        ex("dist(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = e.sub(a.input(), a.tensor(dist::other))?;
        floats_only(&x, None)?;
        Ok(vec![vector_norm(e, &x, a.opt_float(dist::p).unwrap_or(2.0), None, false)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(euclid(x1: Tensor, x2: Tensor));

/// Internal: Euclidean distances of all pairs. The differences are never stored, neither way.
pub static EUCLID: Op = Op {
    name: "cdist",
    params: euclid::PARAMS,
    summary: "Distances of all pairs of rows.",
    lower: Lower::Steps(|e, a| {
        let difference = pairs(e, a.tensor(euclid::x1), a.tensor(euclid::x2))?;
        Ok(vec![e.call(&NORM, args![&difference, -1, false, 2.0])?])
    }),
    saves: &[Save::In(euclid::x1), Save::In(euclid::x2), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let ratio = t.g.over_distance(t.result);
            let each = ratio.unsqueeze(-1) * (t.input.unsqueeze(-2) - t.other.unsqueeze(-3));
            [t.if_needed(euclid::x1, || each.sum(-2)), t.if_needed(euclid::x2, || -each.sum(-3))]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Internal: the same by a product, `sqrt(|x|^2 + |y|^2 - 2 x y')`, which loses digits where rows are close to each other.
static EUCLID_BY_PRODUCT: Op = Op {
    name: "cdist",
    params: euclid::PARAMS,
    summary: "Distances of all pairs of rows.",
    lower: Lower::Steps(|e, a| {
        let (x, y) = (a.tensor(euclid::x1), a.tensor(euclid::x2));
        let squares = compute(e, |c| {
            let (x, y) = (c.of(x), c.of(y));
            let (of_x, of_y) = ((x * x).sum_keepdim(-1), (y * y).sum_keepdim(-1));
            (of_x + of_y.mt() - x.matmul(y.mt()) * 2.0).with(&CLAMP_MIN, 0.0).sqrt()
        })?;
        Ok(vec![squares])
    }),
    saves: &[Save::In(euclid::x1), Save::In(euclid::x2), Save::RESULT],
    grad: Grad::Rule(|e, v| {
        derive(e, v, |t| {
            let ratio = t.g.over_distance(t.result);
            [
                t.if_needed(euclid::x1, || t.input * ratio.sum_keepdim(-1) - ratio.matmul(t.other)),
                t.if_needed(euclid::x2, || t.other * ratio.mt().sum_keepdim(-1) - ratio.mt().matmul(t.input)),
            ]
        })
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// More rows than this on a side are compared by a product unless the caller says otherwise, as in PyTorch.
const MANY_ROWS: usize = 25;

signature!(chebyshev(difference: Tensor));

/// Internal: the largest size along the last dimension, as a distance: each element that reaches it has the whole
/// gradient, as in PyTorch's `cdist` and `pdist`, where a norm shares it.
static CHEBYSHEV: Op = Op {
    name: "cdist",
    params: chebyshev::PARAMS,
    summary: "The largest size along the last dimension.",
    lower: Lower::Steps(|e, a| {
        Ok(vec![e.call(&NORM, args![a.tensor(chebyshev::difference), -1, false, f64::INFINITY])?])
    }),
    saves: &[Save::In(chebyshev::difference), Save::RESULT],
    grad: Grad::Of(&[|t| {
        let reaches = t.input.abs().equals(t.result.unsqueeze(-1));
        (t.g.unsqueeze(-1) * t.input.sgn()).zero_unless(reaches)
    }]),
    call: CallForm::Internal,
    ..Op::BASE
};

/// Distances along the last dimension of differences, where it is not empty.
pub fn chebyshev(e: &mut dyn Emit, difference: &Tensor) -> Result<Tensor> {
    e.call(&CHEBYSHEV, args![difference])
}

/// Differences of all pairs of rows: `[.., p, r, m]`.
fn pairs(e: &mut dyn Emit, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let x = e.call(&UNSQUEEZE, args![x, -2])?;
    let y = e.call(&UNSQUEEZE, args![y, -3])?;
    e.sub(&x, &y)
}

signature!(cdist(
    x1: Tensor, x2: Tensor, p: Number = 2.0,
    compute_mode: Str(&[ "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", ]) = None,
));

pub static CDIST: Op = Op {
    name: "cdist",
    params: cdist::PARAMS,
    summary: "The p-norm distances of all pairs of rows of two tensors.",
    details: "Shapes [.., p, m] and [.., r, m] give [.., p, r]. With more than 25 rows on a side Euclidean distances are computed \
by a matrix product, which loses digits where two rows are close to each other; `compute_mode` \
\"donot_use_mm_for_euclid_dist\" sums the differences themselves.",
    examples: &[
        ex("cdist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0], [0.0, 1.0]]))", "tensor([[5., 1.]])"),
        ex("cdist(ones([2, 3]), ones([2, 2]))", "E0201"),
        ex("cdist(ones([2, 3]), ones([2, 3]), -1)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, y, p) = (a.tensor(cdist::x1), a.tensor(cdist::x2), a.opt_float(cdist::p).unwrap_or(2.0));
        floats_only(x, None)?;
        check_dtypes(&[("x1", x), ("x2", y)])?;
        let (s, t) = (x.shape(), y.shape());
        if s.len() < 2 || t.len() < 2 || s[s.len() - 1] != t[t.len() - 1] {
            fail!(SHAPE, "shapes {:?} and {:?} hold no rows of one length", s.as_slice(), t.as_slice());
        }
        if p < 0.0 || p.is_nan() {
            fail!(VALUE, "the order must not be negative, is {p}");
        }
        if p == 2.0 {
            let many = s[s.len() - 2].max(t[t.len() - 2]) > MANY_ROWS;
            let by_product = match a.text(cdist::compute_mode) {
                "use_mm_for_euclid_dist" => true,
                "donot_use_mm_for_euclid_dist" => false,
                _ => many,
            };
            if !by_product {
                return e.apply(&EUCLID, args![x, y]);
            }
            // Squares of 16-bit floats are subtracted in f32.
            let dtype = x.dtype();
            let (x, y) = (e.cast(x, dtype.compute())?, e.cast(y, dtype.compute())?);
            let distances = e.call(&EUCLID_BY_PRODUCT, args![&x, &y])?;
            return Ok(vec![e.cast(&distances, dtype)?]);
        }
        let difference = pairs(e, x, y)?;
        if p == f64::INFINITY && s[s.len() - 1] > 0 {
            return Ok(vec![chebyshev(e, &difference)?]);
        }
        let order = if s[s.len() - 1] == 0 { 1.0 } else { p };
        Ok(vec![vector_norm(e, &difference, order, Some(Ints::from_slice(&[-1])), false)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(vecdot(x: Tensor, y: Tensor, dim: Dim = (-1)));

pub static VECDOT: Op = Op {
    name: "vecdot",
    params: vecdot::PARAMS,
    summary: "Products of vectors along a dimension, with broadcasting; complex ones of `x` are conjugated.",
    examples: &[
        ex("vecdot(tensor([1.0, 2.0]), tensor([3.0, 4.0]))", "tensor(11.)"),
        ex("vecdot(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let dtype = check_dtypes(&[("x", a.tensor(vecdot::x)), ("y", a.tensor(vecdot::y))])?;
        let x = e.call(&CONJ, args![a.tensor(vecdot::x)])?;
        let products = e.mul(&x, a.tensor(vecdot::y))?;
        let sum = e.call(&SUM, args![&products, a.int(vecdot::dim)])?;
        Ok(vec![e.cast(&sum, dtype)?])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&LARGEST, &SMALLEST, &NORM, &VECTOR_NORM, &MATRIX_NORM, &COND, &DIST, &EUCLID, &CHEBYSHEV, &CDIST, &VECDOT];
