//! Functions of vector norms: normalization, triplet losses, local response normalization.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{Grad, Lower, Op, ex};
use crate::op::rows::linalg::norms::vector_norm;
use crate::op::rows::nn::loss::{reduced, widened};
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::nn::pool::AVG_POOL2D;
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith::POW;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::power::MINIMUM;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::{EXPAND, RESHAPE};
use crate::op::tensor::Tensor;
use crate::signature;

fn float(x: f64) -> Scalar {
    Scalar::Float(x)
}

/// The p-norm over dims, kept; 16-bit floats are rounded once.
pub fn length(e: &mut dyn Emit, x: &Tensor, p: f64, dims: Ints) -> Result<Tensor> {
    float_only(x, "input")?;
    let wide = e.cast(x, widened(x.dtype()))?;
    let size = vector_norm(e, &wide, p, Some(dims), true)?;
    e.cast(&size, x.dtype().real_part())
}

signature!(normalize(input: Tensor, p: Float = 2.0, dim: Dims = 1, eps: Float = 1e-12));

pub static NORMALIZE: Op = Op {
    name: "normalize",
    params: normalize::PARAMS,
    summary: "Divides vectors along a dimension by their p-norm, or by `eps` where that is larger.",
    examples: &[
        ex("normalize(tensor([[3.0, 4.0]]))", "tensor([[0.6000, 0.8000]])"),
        ex("normalize(ones([2]), #{dim: 1})", "E0209"),
        ex("normalize(tensor([[3, 4]]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        let x = a.input();
        let dims: Ints =
            infer::dims(a.ints(normalize::dim).as_ref(), x.ndim())?.iter().map(|&dim| dim as i64).collect();
        let size = length(e, x, a.float(normalize::p), dims)?;
        let size = e.call(&CLAMP_MIN, args![&size, float(a.float(normalize::eps))])?;
        Ok(vec![e.div(x, &size)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// |x1 - x2 + eps| over the last dim, which stays.
fn apart(e: &mut dyn Emit, x1: &Tensor, x2: &Tensor, p: f64, eps: f64) -> Result<Tensor> {
    let d = e.sub(x1, x2)?;
    if d.ndim() == 0 {
        fail!(SHAPE, "vectors of at least 1 dimension are expected");
    }
    let d = e.add(&d, float(eps))?;
    let last = Ints::from_slice(&[d.ndim() as i64 - 1]);
    length(e, &d, p, last)
}

/// Without its last dim, of size 1.
fn flat(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    e.call(&RESHAPE, args![x, &shape[..shape.len() - 1]])
}

signature!(triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: Float = 1.0, p: Float = 2.0, eps: Float = 1e-6,
    swap: Bool = false, reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static TRIPLET_MARGIN_LOSS: Op = Op {
    name: "triplet_margin_loss",
    params: triplet_margin_loss::PARAMS,
    summary: "Asks the negative to be farther from the anchor than the positive, by a margin.",
    details: "max(0, d(anchor, positive) - d(anchor, negative) + margin), d being `pairwise_distance`. With `swap` the \
negative's distance is its smaller one from anchor and positive.",
    examples: &[
        ex("triplet_margin_loss(tensor([[0.0]]), tensor([[3.0]]), tensor([[1.0]]))", "tensor(3.)"),
        ex("triplet_margin_loss(ones([2]), ones([1, 2]), ones([2]))", "E0201"),
        ex("triplet_margin_loss(ones([2]), ones([2]), ones([2]), #{margin: 0.0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let [anchor, positive, negative] = [
            a.tensor(triplet_margin_loss::anchor),
            a.tensor(triplet_margin_loss::positive),
            a.tensor(triplet_margin_loss::negative),
        ];
        if anchor.ndim() != positive.ndim() || anchor.ndim() != negative.ndim() {
            fail!(
                SHAPE,
                "the three must have as many dimensions, not {}, {} and {}",
                anchor.ndim(),
                positive.ndim(),
                negative.ndim()
            );
        }
        let (margin, p, eps) =
            (a.float(triplet_margin_loss::margin), a.float(triplet_margin_loss::p), a.float(triplet_margin_loss::eps));
        if margin <= 0.0 {
            fail!(VALUE, "`margin` must be positive, not {margin}");
        }
        let near = apart(e, anchor, positive, p, eps)?;
        let mut far = apart(e, anchor, negative, p, eps)?;
        if a.flag(triplet_margin_loss::swap) {
            let other = apart(e, positive, negative, p, eps)?;
            far = e.call(&MINIMUM, args![&far, &other])?;
        }
        let gap = e.sub(&near, &far)?;
        let gap = e.add(&gap, float(margin))?;
        let loss = e.call(&CLAMP_MIN, args![&gap, float(0.0)])?;
        let loss = flat(e, &loss)?;
        reduced(e, loss, a.text(triplet_margin_loss::reduction))
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(local_response_norm(input: Tensor, size: Int, alpha: Float = 1e-4, beta: Float = 0.75, k: Float = 1.0));

pub static LOCAL_RESPONSE_NORM: Op = Op {
    name: "local_response_norm",
    params: local_response_norm::PARAMS,
    summary: "Divides by a power of the mean square over neighboring channels.",
    details: "y = x / (k + alpha mean(x²))^beta over `size` channels; `input` is [N, C, d..].",
    examples: &[
        ex("local_response_norm(ones([1, 1, 1]), 1, #{alpha: 3.0, beta: 0.5})", "tensor([[[0.5000]]])"),
        ex("local_response_norm(ones([1, 1]), 1)", "E0201"),
        ex("local_response_norm(ones([1, 1, 1]), 0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, size) = (a.input(), a.int(local_response_norm::size));
        let shape = x.shape();
        if shape.len() < 3 {
            fail!(SHAPE, "`input` must have at least 3 dimensions; it has shape {:?}", shape.as_slice());
        }
        if !(1..=i32::MAX as i64).contains(&size) {
            fail!(VALUE, "`size` must be positive, not {size}");
        }
        if x.numel() == 0 {
            return Ok(vec![x.clone()]);
        }
        let square = e.mul(x, x)?;
        let planes = [shape[0], 1, shape[1], shape[2..].iter().product()];
        let square = e.call(&RESHAPE, args![&square, planes.as_slice()])?;
        let pads = Ints::from_slice(&[0, 0, size / 2, (size - 1) / 2]);
        let padded = e.call(&PAD_CONSTANT, args![&square, pads])?;
        let mean = e.call(&AVG_POOL2D, args![&padded, Ints::from_slice(&[size, 1]), Ints::from_slice(&[1, 1])])?;
        let mean = e.call(&RESHAPE, args![&mean, shape.as_slice()])?;
        let scaled = e.mul(&mean, float(a.float(local_response_norm::alpha)))?;
        let base = e.add(&scaled, float(a.float(local_response_norm::k)))?;
        let divisor = e.call(&POW, args![&base, float(a.float(local_response_norm::beta))])?;
        Ok(vec![e.div(x, &divisor)?])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(pairwise_distance(x1: Tensor, x2: Tensor, p: Float = 2.0, eps: Float = 1e-6, keepdim: Bool = false));

pub static PAIRWISE_DISTANCE: Op = Op {
    name: "pairwise_distance",
    params: pairwise_distance::PARAMS,
    summary: "The p-norm of x1 - x2 + eps over the last dimension.",
    examples: &[
        ex("pairwise_distance(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]))", "tensor([5.0000])"),
        ex("pairwise_distance(ones([2]), ones([3]))", "E0201"),
    ],
    lower: Lower::Compose(|e, a| {
        let length = apart(
            e,
            a.tensor(pairwise_distance::x1),
            a.tensor(pairwise_distance::x2),
            a.float(pairwise_distance::p),
            a.float(pairwise_distance::eps),
        )?;
        Ok(vec![if a.flag(pairwise_distance::keepdim) { length } else { flat(e, &length)? }])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(cosine_similarity(x1: Tensor, x2: Tensor, dim: Dim = 1, eps: Float = 1e-8));

pub static COSINE_SIMILARITY: Op = Op {
    name: "cosine_similarity",
    params: cosine_similarity::PARAMS,
    summary: "The cosine of the angle between vectors along a dimension: each is divided by its length, at least eps.",
    examples: &[
        ex("cosine_similarity(tensor([[1.0, 0.0]]), tensor([[1.0, 0.0]]))", "tensor([1.])"),
        ex("cosine_similarity(ones([2]), ones([2]))", "E0209"),
    ],
    lower: Lower::Compose(|e, a| {
        let [x1, x2] = [a.tensor(cosine_similarity::x1), a.tensor(cosine_similarity::x2)];
        let shapes = [x1.shape(), x2.shape()];
        let shape = infer::broadcast_all(shapes.iter().map(|shape| shape.as_slice()))?;
        let dim = infer::dim(a.int(cosine_similarity::dim), shape.len())?;
        let mut unit = Vec::new();
        for x in [x1, x2] {
            let x = e.call(&EXPAND, args![x, shape.as_slice()])?;
            let size = length(e, &x, 2.0, Ints::from_slice(&[dim as i64]))?;
            let size = e.call(&CLAMP_MIN, args![&size, float(a.float(cosine_similarity::eps))])?;
            unit.push(e.div(&x, &size)?);
        }
        let product = e.mul(&unit[0], &unit[1])?;
        e.apply(&SUM, args![&product, &[dim as i64][..]])
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&PAIRWISE_DISTANCE, &COSINE_SIMILARITY, &NORMALIZE, &TRIPLET_MARGIN_LOSS, &LOCAL_RESPONSE_NORM];
