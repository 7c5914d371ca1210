//! Distances of all pairs, and losses that are other rows put together: `pdist`, `triplet_margin_with_distance_loss`,
//! `linear_cross_entropy`.

use crate::args;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::expr::compute;
use crate::op::row::{CallForm, Grad, Lower, Op, Source, ex};
use crate::op::rows::creation::create::TRIU_INDICES;
use crate::op::rows::indexing::index_select::INDEX_SELECT;
use crate::op::rows::linalg::matmul::LINEAR;
use crate::op::rows::linalg::norms::{EUCLID, chebyshev};
use crate::op::rows::nn::distance::{PAIRWISE_DISTANCE, length};
use crate::op::rows::nn::loss::{CROSS_ENTROPY, reduced};
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::power::MINIMUM;
use crate::op::rows::pointwise::unary::FLOOR;
use crate::op::rows::shape::view::{RESHAPE, SELECT};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(pdist(input: Tensor, p: Float = 2.0));

pub static PDIST: Op = Op {
    name: "pdist",
    params: pdist::PARAMS,
    summary: "The p-norm distances of all pairs of rows, those of the first row first.",
    details: "`input` is [n, d]; the result has n (n - 1) / 2 elements: the upper triangle of `cdist(input, input, p)`.",
    examples: &[
        ex("pdist(tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))", "tensor([5.0000, 1.0000, 4.2426])"),
        ex("pdist(ones([2]))", "E0201"),
        ex("pdist(tensor([[1]]))", "E0202"),
        ex("pdist(ones([2, 2]), -1.0)", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let (x, p) = (a.input(), a.float(pdist::p));
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            fail!(DTYPE, "`input` must be f32 or f64, not {}", x.dtype());
        }
        let &[n, _] = x.shape().as_slice() else {
            fail!(SHAPE, "`input` must have 2 dimensions; it has shape {:?}", x.shape().as_slice())
        };
        if p.is_nan() || p < 0.0 {
            fail!(VALUE, "`p` must not be negative, but is {p}");
        }
        if p == 2.0 && n > 1 && x.shape()[1] > 0 {
            let all = e.call(&EUCLID, args![x, x])?;
            let all = e.call(&RESHAPE, args![&all, &[-1i64][..]])?;
            let upper = upper_triangle(e, n, x.device())?;
            return e.apply(&INDEX_SELECT, args![&all, 0, &upper]);
        }
        let pairs = e.call(&TRIU_INDICES, args![n, n, 1, DType::I64, x.device()])?;
        let (first, second) = (e.call(&SELECT, args![&pairs, 0, 0])?, e.call(&SELECT, args![&pairs, 0, 1])?);
        let (first, second) =
            (e.call(&INDEX_SELECT, args![x, 0, &first])?, e.call(&INDEX_SELECT, args![x, 0, &second])?);
        let apart = e.sub(&first, &second)?;
        if p == f64::INFINITY && apart.shape()[1] > 0 {
            return Ok(vec![chebyshev(e, &apart)?]);
        }
        let length = length(e, &apart, p, [1i64].as_slice().into())?;
        e.apply(&SELECT, args![&length, 1, 0])
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// The places of the elements above the diagonal of an `[n, n]` matrix, in order. Row i begins with element
/// `k = i (2n - 1 - i) / 2` of them, so that i follows from k; the root is exact where a row begins.
fn upper_triangle(e: &mut dyn Emit, n: usize, device: DeviceId) -> Result<Tensor> {
    let position = e.source(Source::Position, &[n * (n - 1) / 2], DType::I64, device)?;
    let side = 2.0 * n as f64 - 1.0;
    compute(e, |c| {
        let k = c.of(&position);
        let root = (k.cast(DType::F64) * -8.0 + side * side).sqrt();
        let row = ((side - root) * 0.5).of(&FLOOR);
        // Whole numbers below 2^53 are exact.
        let before = row * (side - row) * 0.5;
        (row * (n + 1) as f64 - before + 1.0).cast(DType::I64) + k
    })
}

signature!(triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance_function: Str(&["pairwise_distance"]) = None,
    margin: Float = 1.0, swap: Bool = false, reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static TRIPLET_MARGIN_WITH_DISTANCE_LOSS: Op = Op {
    name: "triplet_margin_with_distance_loss",
    params: triplet_margin_with_distance_loss::PARAMS,
    summary: "`triplet_margin_loss` with `pairwise_distance`: max(0, d(anchor, positive) - d(anchor, negative) + margin).",
    details: "Another distance is a line of script: `relu(d(a, p) - d(a, n) + margin).mean()`.",
    examples: &[
        ex("triplet_margin_with_distance_loss(tensor([[0.0]]), tensor([[3.0]]), tensor([[1.0]]))", "tensor(3.)"),
        ex("triplet_margin_with_distance_loss(ones([2]), ones([1, 2]), ones([2]))", "E0201"),
        ex("triplet_margin_with_distance_loss(ones([2]), ones([2]), ones([2]), #{margin: 0.0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let [anchor, positive, negative] = [
            a.tensor(triplet_margin_with_distance_loss::anchor),
            a.tensor(triplet_margin_with_distance_loss::positive),
            a.tensor(triplet_margin_with_distance_loss::negative),
        ];
        let ranks = [anchor.ndim(), positive.ndim(), negative.ndim()];
        if ranks != [ranks[0]; 3] {
            fail!(SHAPE, "the three must have as many dimensions, not {}, {} and {}", ranks[0], ranks[1], ranks[2]);
        }
        let margin = a.float(triplet_margin_with_distance_loss::margin);
        if margin.is_nan() || margin <= 0.0 {
            fail!(VALUE, "`margin` must be positive, not {margin}");
        }
        let near = e.call(&PAIRWISE_DISTANCE, args![anchor, positive])?;
        let mut far = e.call(&PAIRWISE_DISTANCE, args![anchor, negative])?;
        if a.flag(triplet_margin_with_distance_loss::swap) {
            let other = e.call(&PAIRWISE_DISTANCE, args![positive, negative])?;
            far = e.call(&MINIMUM, args![&far, &other])?;
        }
        let gap = e.add(&near, Scalar::Float(margin))?;
        let gap = e.sub(&gap, &far)?;
        let loss = e.call(&CLAMP_MIN, args![&gap, Scalar::Int(0)])?;
        reduced(e, loss, a.text(triplet_margin_with_distance_loss::reduction))
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

signature!(linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor = None, weight: Tensor = None,
    reduction: Str(&["mean", "sum", "none"]) = "mean", ignore_index: Int = None, label_smoothing: Float = 0.0,
    options: Ignored = None,
));

pub static LINEAR_CROSS_ENTROPY: Op = Op {
    name: "linear_cross_entropy",
    params: linear_cross_entropy::PARAMS,
    summary: "`cross_entropy` of the scores that a linear layer gives.",
    details: "`input` is [.., d] and `linear_weight` [C, (d1, ..,) d]: the scores are [.., C, (d1, ..)].",
    examples: &[
        ex("linear_cross_entropy(zeros([1, 3]), ones([2, 3]), tensor([1]))", "tensor(0.6931)"),
        ex("linear_cross_entropy(zeros([1, 3]), ones([2, 2]), tensor([1]))", "E0201"),
        ex("linear_cross_entropy(zeros([1, 3]), ones([2, 3]), tensor([1.0]))", "E0202"),
    ],
    lower: Lower::Compose(linear_cross_entropy),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn linear_cross_entropy(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, weight) = (a.input(), a.tensor(linear_cross_entropy::linear_weight));
    let (shape, own) = (weight.shape(), x.shape());
    let (Some((&features, outer)), Some((_, lead))) = (shape.split_last(), own.split_last()) else {
        fail!(SHAPE, "`input` and `linear_weight` must have at least 1 dimension")
    };
    if outer.is_empty() {
        fail!(SHAPE, "`linear_weight` must have at least 2 dimensions; it has shape {:?}", shape.as_slice());
    }
    if lead.is_empty() && outer.len() > 1 {
        fail!(SHAPE, "an `input` without a batch goes with `linear_weight` [C, d], not {:?}", shape.as_slice());
    }
    let rows: usize = outer.iter().product();
    let flat = e.call(&RESHAPE, args![weight, [rows, features].as_slice()])?;
    let bias = match a.get(linear_cross_entropy::linear_bias) {
        Arg::Tensor(bias) if bias.shape()[..] != *outer => {
            fail!(SHAPE, "`linear_bias` has shape {:?}, {outer:?} is expected", bias.shape().as_slice())
        }
        Arg::Tensor(bias) => Arg::Tensor(e.call(&RESHAPE, args![bias, [rows].as_slice()])?),
        _ => Arg::None,
    };
    let scores = e.call(&LINEAR, args![x, &flat, bias])?;
    let sizes: Shape = lead.iter().chain(outer).copied().collect();
    let scores = e.call(&RESHAPE, args![&scores, sizes.as_slice()])?;
    let ignored = a.opt_int(linear_cross_entropy::ignore_index).unwrap_or(-100);
    e.apply(
        &CROSS_ENTROPY,
        args![
            &scores,
            a.tensor(linear_cross_entropy::target),
            a.opt_tensor(linear_cross_entropy::weight),
            ignored,
            a.attr(linear_cross_entropy::reduction).clone(),
            a.float(linear_cross_entropy::label_smoothing)
        ],
    )
}

pub static ROWS: &[&Op] = &[&PDIST, &TRIPLET_MARGIN_WITH_DISTANCE_LOSS, &LINEAR_CROSS_ENTROPY];
