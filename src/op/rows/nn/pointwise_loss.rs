//! Losses of pairs of numbers, element by element: compositions of element-wise rows, so that they fuse, and
//! the few whose gradient must be written down to be exact at the edges.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Default, Example, Grad, Kind, Lower, Op, Param, Save, ex};
use crate::op::rows::nn::activation::LOGSIGMOID;
use crate::op::rows::nn::loss::{REDUCTION, TARGET, WEIGHT, X, reduced, widened};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith::SUB;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::compare::{EQ, LT, NE, WHERE};
use crate::op::rows::pointwise::power::XLOGY;
use crate::op::rows::pointwise::unary::{ABS, EXP, LOG, LOG1P};
use crate::op::rows::pointwise::value_checks::PROBABILITY;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::tensor::Tensor;

/// A public row whose result is reduced in the end.
pub const fn row(
    name: &'static str,
    params: &'static [Param],
    words: [&'static str; 2],
    examples: &'static [Example],
    lower: Lower,
) -> Op {
    let [summary, details] = words;
    Op { name, params, summary, details, examples, lower, grad: Grad::Composed, ..Op::BASE }
}

pub fn float(x: f64) -> Scalar {
    Scalar::Float(x)
}

/// `loss * weight`, where there is a weight.
fn times_weight(e: &mut dyn Emit, loss: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        Some(weight) => e.mul(&loss, weight),
        None => Ok(loss),
    }
}

/// The difference of input and target, with a refusal of integers.
fn difference(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    let d = e.sub(a.tensor(0), a.tensor(1))?;
    float_only(&d, "input")?;
    Ok(d)
}

fn same_shape(a: &Args, names: [&str; 2]) -> Result<()> {
    let (x, t) = (a.tensor(0).shape(), a.tensor(1).shape());
    if x != t {
        fail!(
            SHAPE,
            "`{}` has shape {:?}, `{}` {:?}; they must be equal",
            names[0],
            x.as_slice(),
            names[1],
            t.as_slice()
        );
    }
    Ok(())
}

pub static MSE_LOSS: Op = row(
    "mse_loss",
    &[X, TARGET, REDUCTION, WEIGHT],
    ["The squared difference.", "With `weight`, \"mean\" divides by the sum of the weights."],
    &[
        ex("mse_loss(tensor([1.0, 3.0]), tensor([1.0, 1.0]))", "tensor(2.)"),
        ex("mse_loss(ones([2]), ones([3]))", "E0201"),
        ex("mse_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let d = difference(e, a)?;
        let loss = e.mul(&d, &d)?;
        weighted(e, loss, a)
    }),
);

pub static L1_LOSS: Op = row(
    "l1_loss",
    &[X, TARGET, REDUCTION, WEIGHT],
    ["The absolute difference.", "With `weight`, \"mean\" divides by the sum of the weights."],
    &[
        ex("l1_loss(tensor([1.0, 3.0]), tensor([1.0, 1.0]))", "tensor(1.)"),
        ex("l1_loss(ones([2]), ones([3]))", "E0201"),
        ex("l1_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let d = difference(e, a)?;
        let loss = e.call(&ABS, args![&d])?;
        weighted(e, loss, a)
    }),
);

/// Arguments: input, target, reduction, weight.
fn weighted(e: &mut dyn Emit, loss: Tensor, a: &Args) -> Result<Vec<Tensor>> {
    let Some(weight) = a.opt_tensor(3) else { return reduced(e, loss, a.text(2)) };
    if weight.shape() != loss.shape() {
        fail!(SHAPE, "`weight` has shape {:?}, the loss {:?}", weight.shape().as_slice(), loss.shape().as_slice());
    }
    let loss = e.mul(&loss, weight)?;
    if a.text(2) != "mean" {
        return reduced(e, loss, a.text(2));
    }
    let (sum, all) = (e.call(&SUM, args![&loss])?, e.call(&SUM, args![weight])?);
    Ok(vec![e.div(&sum, &all)?])
}

/// `a` where |d| is under the bound, `b` elsewhere.
fn bent(e: &mut dyn Emit, size: &Tensor, bound: f64, low: &Tensor, high: &Tensor) -> Result<Tensor> {
    let small = e.call(&LT, args![size, float(bound)])?;
    e.call(&WHERE, args![&small, low, high])
}

pub static SMOOTH_L1_LOSS: Op = row(
    "smooth_l1_loss",
    &[X, TARGET, REDUCTION, Param::opt("beta", Kind::Float, Default::Float(1.0))],
    ["Half the squared difference over `beta` below `beta`, the absolute difference less half of `beta` above.", ""],
    &[
        ex("smooth_l1_loss(tensor([0.5, 3.0]), zeros([2]), #{reduction: \"none\"})", "tensor([0.1250, 2.5000])"),
        ex("smooth_l1_loss(ones([2]), ones([3]))", "E0201"),
        ex("smooth_l1_loss(ones([2]), ones([2]), #{beta: -1.0})", "E0206"),
        ex("smooth_l1_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let beta = a.float(3);
        if beta < 0.0 {
            fail!(VALUE, "`beta` must not be negative, not {beta}");
        }
        let d = difference(e, a)?;
        let size = e.call(&ABS, args![&d])?;
        if beta == 0.0 {
            return reduced(e, size, a.text(2));
        }
        let square = e.mul(&size, &size)?;
        let low = e.mul(&square, float(0.5 / beta))?;
        let high = e.sub(&size, float(0.5 * beta))?;
        let loss = bent(e, &size, beta, &low, &high)?;
        reduced(e, loss, a.text(2))
    }),
);

pub static HUBER_LOSS: Op = row(
    "huber_loss",
    &[X, TARGET, REDUCTION, Param::opt("delta", Kind::Float, Default::Float(1.0)), WEIGHT],
    [
        "Half the squared difference up to `delta`, `delta` times the absolute difference less half of `delta` above.",
        "",
    ],
    &[
        ex("huber_loss(tensor([0.5, 3.0]), zeros([2]), #{reduction: \"none\"})", "tensor([0.1250, 2.5000])"),
        ex("huber_loss(ones([2]), ones([3]))", "E0201"),
        ex("huber_loss(ones([2]), ones([2]), #{delta: 0.0})", "E0206"),
        ex("huber_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let delta = a.float(3);
        if delta <= 0.0 {
            fail!(VALUE, "`delta` must be positive, not {delta}");
        }
        let dtype = crate::op::rows::pointwise::arith::common(e, &[a.get(0), a.get(1)]);
        let (x, t) = (e.cast(a.tensor(0), widened(dtype))?, e.cast(a.tensor(1), widened(dtype))?);
        let d = difference(e, &args![&x, &t])?;
        let size = e.call(&ABS, args![&d])?;
        let square = e.mul(&size, &size)?;
        let low = e.mul(&square, float(0.5))?;
        let high = e.sub(&size, float(0.5 * delta))?;
        let high = e.mul(&high, float(delta))?;
        let loss = bent(e, &size, delta, &low, &high)?;
        let loss = e.cast(&loss, dtype)?;
        weighted(e, loss, &args![a.tensor(0), a.tensor(1), a.attr(2).clone(), a.opt_tensor(4)])
    }),
);

/// -(t ln x + (1 - t) ln(1 - x)), logarithms not below -100.
static CROSS: Op = Op {
    name: "binary_cross_entropy",
    params: &[X, TARGET],
    summary: "Binary cross entropy of probabilities, element by element.",
    lower: Lower::Steps(|e, a| {
        let (x, t) = (e.call(&PROBABILITY, args![a.tensor(0)])?, e.call(&PROBABILITY, args![a.tensor(1)])?);
        let (yes, no) = logarithms(e, &x)?;
        let (rest, yes) = (e.rev(&SUB, Scalar::Int(1), &t)?, e.mul(&t, &yes)?);
        let no = e.mul(&rest, &no)?;
        let sum = e.add(&yes, &no)?;
        Ok(vec![e.neg(&sum)?])
    }),
    saves: &[Save::In(0), Save::In(1)],
    grad: Grad::Rule(|e, v| {
        let (x, t) = (v.input(0), v.input(1));
        let to_x = match v.needs(0) {
            true => {
                let rest = e.rev(&SUB, Scalar::Int(1), x)?;
                let slope = e.mul(&rest, x)?;
                let slope = e.call(&CLAMP_MIN, args![&slope, float(1e-12)])?;
                let d = e.sub(x, t)?;
                let d = e.mul(v.g(), &d)?;
                Some(e.div(&d, &slope)?)
            }
            false => None,
        };
        let to_t = match v.needs(1) {
            true => {
                let (yes, no) = logarithms(e, x)?;
                let d = e.sub(&no, &yes)?;
                Some(e.mul(v.g(), &d)?)
            }
            false => None,
        };
        Ok(vec![to_x, to_t])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// ln x and ln(1 - x), not below -100.
fn logarithms(e: &mut dyn Emit, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let yes = e.call(&LOG, args![x])?;
    let minus = e.neg(x)?;
    let no = e.call(&LOG1P, args![&minus])?;
    Ok((e.call(&CLAMP_MIN, args![&yes, float(-100.0)])?, e.call(&CLAMP_MIN, args![&no, float(-100.0)])?))
}

pub static BINARY_CROSS_ENTROPY: Op = row(
    "binary_cross_entropy",
    &[X, TARGET, WEIGHT, REDUCTION],
    [
        "-(t ln x + (1 - t) ln(1 - x)) of probabilities x and targets t.",
        "Logarithms are held above -100. An x or t that is not from 0 to 1 is an error found while computing.",
    ],
    &[
        ex("binary_cross_entropy(tensor([0.5]), tensor([1.0]))", "tensor(0.6931)"),
        ex("binary_cross_entropy(full([2], 0.5), ones([3]))", "E0201"),
        ex("binary_cross_entropy(tensor([1]), tensor([1]))", "E0202"),
        ex("binary_cross_entropy(tensor([1.5]), tensor([1.0]))", "E0403"),
        ex("binary_cross_entropy(tensor([0.5]), tensor([2.0]))", "E0403"),
    ],
    Lower::Compose(|e, a| {
        same_shape(a, ["input", "target"])?;
        float_only(a.tensor(0), "input")?;
        crate::op::infer::same_dtype(&[("input", a.tensor(0)), ("target", a.tensor(1))])?;
        let loss = e.call(&CROSS, args![a.tensor(0), a.tensor(1)])?;
        let loss = times_weight(e, loss, a.opt_tensor(2))?;
        reduced(e, loss, a.text(3))
    }),
);

pub static BINARY_CROSS_ENTROPY_WITH_LOGITS: Op = row(
    "binary_cross_entropy_with_logits",
    &[X, TARGET, WEIGHT, REDUCTION, Param::opt("pos_weight", Kind::Tensor, Default::None)],
    [
        "Binary cross entropy of scores, whose sigmoid is the probability, without loss of digits.",
        "`pos_weight` multiplies the loss of positive targets and broadcasts.",
    ],
    &[
        ex("binary_cross_entropy_with_logits(tensor([0.0]), tensor([1.0]))", "tensor(0.6931)"),
        ex("binary_cross_entropy_with_logits(ones([2]), ones([3]))", "E0201"),
        ex("binary_cross_entropy_with_logits(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        same_shape(a, ["target", "input"])?;
        let (x, t) = (a.tensor(0), a.tensor(1));
        float_only(x, "input")?;
        let rest = e.rev(&SUB, Scalar::Int(1), t)?;
        let rest = e.mul(&rest, x)?;
        let mut log = e.call(&LOGSIGMOID, args![x])?;
        if let Some(weight) = a.opt_tensor(4) {
            let more = e.sub(weight, Scalar::Int(1))?;
            let factor = e.mul(&more, t)?;
            let factor = e.add(&factor, Scalar::Int(1))?;
            log = e.mul(&log, &factor)?;
        }
        let loss = e.sub(&rest, &log)?;
        let loss = times_weight(e, loss, a.opt_tensor(2))?;
        reduced(e, loss, a.text(3))
    }),
);

pub static SOFT_MARGIN_LOSS: Op = row(
    "soft_margin_loss",
    &[X, TARGET, REDUCTION],
    ["ln(1 + e^(-t x)) of scores x and targets t of 1 and -1.", ""],
    &[
        ex("soft_margin_loss(tensor([0.0]), tensor([1.0]))", "tensor(0.6931)"),
        ex("soft_margin_loss(ones([2]), ones([3]))", "E0201"),
        ex("soft_margin_loss(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        float_only(a.tensor(0), "input")?;
        let minus = e.neg(a.tensor(1))?;
        let z = e.mul(&minus, a.tensor(0))?;
        let z = e.call(&EXP, args![&z])?;
        let loss = e.call(&LOG1P, args![&z])?;
        reduced(e, loss, a.text(2))
    }),
);

pub static MULTILABEL_SOFT_MARGIN_LOSS: Op = row(
    "multilabel_soft_margin_loss",
    &[X, TARGET, WEIGHT, REDUCTION],
    [
        "Binary cross entropy of scores, averaged over the classes (the last dimension).",
        "`weight` has one number for each class.",
    ],
    &[
        ex("multilabel_soft_margin_loss(zeros([1, 2]), ones([1, 2]))", "tensor(0.6931)"),
        ex("multilabel_soft_margin_loss(ones([2]), ones([3]))", "E0201"),
        ex("multilabel_soft_margin_loss(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.tensor(0), a.tensor(1));
        float_only(x, "input")?;
        if x.ndim() == 0 {
            fail!(SHAPE, "`input` must have at least 1 dimension");
        }
        let minus = e.neg(x)?;
        let (yes, no) = (e.call(&LOGSIGMOID, args![x])?, e.call(&LOGSIGMOID, args![&minus])?);
        let rest = e.rev(&SUB, Scalar::Int(1), t)?;
        let (yes, no) = (e.mul(t, &yes)?, e.mul(&rest, &no)?);
        let sum = e.add(&yes, &no)?;
        let loss = e.neg(&sum)?;
        let loss = times_weight(e, loss, a.opt_tensor(2))?;
        let classes = x.shape()[x.ndim() - 1] as f64;
        let loss = e.call(&SUM, args![&loss, -1])?;
        let loss = e.div(&loss, float(classes))?;
        reduced(e, loss, a.text(3))
    }),
);

pub static KL_DIV: Op = row(
    "kl_div",
    &[
        X,
        TARGET,
        Param::opt("reduction", Kind::Str(&["mean", "sum", "none", "batchmean"]), Default::Str("mean")),
        Param::opt("log_target", Kind::Bool, Default::Bool(false)),
    ],
    [
        "The Kullback-Leibler divergence t (ln t - x) of log-probabilities x from probabilities t.",
        "With `log_target` the target is given as logarithms. \"batchmean\" divides the sum by the size of dimension 0: the \
mathematical definition.",
    ],
    &[
        ex("kl_div(tensor([-1.0]), tensor([1.0]))", "tensor(1.)"),
        ex("kl_div(ones([2]), ones([3]))", "E0201"),
        ex("kl_div(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.tensor(0), a.tensor(1));
        float_only(x, "input")?;
        let loss = if a.flag(3) {
            let (p, d) = (e.call(&EXP, args![t])?, e.sub(t, x)?);
            e.mul(&p, &d)?
        } else {
            let (own, cross) = (e.call(&XLOGY, args![t, t])?, e.mul(t, x)?);
            e.sub(&own, &cross)?
        };
        if a.text(2) != "batchmean" {
            return reduced(e, loss, a.text(2));
        }
        let n = x.shape().first().copied().unwrap_or(1);
        let sum = reduced(e, loss, "sum")?;
        Ok(vec![e.div(&sum[0], float(n as f64))?])
    }),
);

pub static HINGE_EMBEDDING_LOSS: Op = row(
    "hinge_embedding_loss",
    &[X, TARGET, Param::opt("margin", Kind::Float, Default::Float(1.0)), REDUCTION],
    ["The distance x of like pairs (target 1), and max(0, margin - x) of unlike ones (-1).", ""],
    &[
        ex("hinge_embedding_loss(tensor([0.5, 0.25]), tensor([1, -1]))", "tensor(0.6250)"),
        ex("hinge_embedding_loss(ones([2]), ones([3]))", "E0201"),
        ex("hinge_embedding_loss(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.tensor(0), a.tensor(1));
        float_only(x, "input")?;
        let gap = e.rev(&SUB, float(a.float(2)), x)?;
        let gap = e.call(&CLAMP_MIN, args![&gap, float(0.0)])?;
        let (not_like, not_unlike) = (e.call(&NE, args![t, 1])?, e.call(&NE, args![t, -1])?);
        let gap = e.call(&WHERE, args![&not_like, &gap, float(0.0)])?;
        let own = e.call(&WHERE, args![&not_unlike, x, float(0.0)])?;
        let loss = e.add(&gap, &own)?;
        reduced(e, loss, a.text(3))
    }),
);

const INPUT1: Param = Param::new("input1", Kind::Tensor);
const INPUT2: Param = Param::new("input2", Kind::Tensor);

pub static MARGIN_RANKING_LOSS: Op = row(
    "margin_ranking_loss",
    &[INPUT1, INPUT2, TARGET, Param::opt("margin", Kind::Float, Default::Float(0.0)), REDUCTION],
    ["max(0, -t (x1 - x2) + margin): target 1 ranks `input1` higher, -1 `input2`.", ""],
    &[
        ex("margin_ranking_loss(tensor([1.0]), tensor([3.0]), tensor([1.0]))", "tensor(2.)"),
        ex("margin_ranking_loss(ones([2]), ones([2]), ones([1, 2]))", "E0201"),
    ],
    Lower::Compose(|e, a| {
        let (x1, x2, t) = (a.tensor(0), a.tensor(1), a.tensor(2));
        if x1.ndim() != x2.ndim() || x1.ndim() != t.ndim() {
            fail!(
                SHAPE,
                "the inputs and the target must have as many dimensions: {}, {}, {}",
                x1.ndim(),
                x2.ndim(),
                t.ndim()
            );
        }
        let (minus, d) = (e.neg(t)?, e.sub(x1, x2)?);
        let gap = e.mul(&minus, &d)?;
        let gap = e.add(&gap, float(a.float(3)))?;
        let loss = e.call(&CLAMP_MIN, args![&gap, float(0.0)])?;
        reduced(e, loss, a.text(4))
    }),
);

pub static COSINE_EMBEDDING_LOSS: Op = row(
    "cosine_embedding_loss",
    &[INPUT1, INPUT2, TARGET, Param::opt("margin", Kind::Float, Default::Float(0.0)), REDUCTION],
    [
        "1 - cos of like pairs (target 1), and max(0, cos - margin) of unlike ones (-1).",
        "`input1` and `input2` are [N, D] with a target [N], or [D] with one of no dimensions.",
    ],
    &[
        ex("cosine_embedding_loss(tensor([[1.0, 0.0]]), tensor([[0.0, 1.0]]), tensor([1]))", "tensor(1.)"),
        ex("cosine_embedding_loss(ones([2]), ones([2]), ones([1]))", "E0201"),
    ],
    Lower::Compose(|e, a| {
        let (x1, x2, t) = (a.tensor(0), a.tensor(1), a.tensor(2));
        let dims = t.ndim() + 1;
        if t.ndim() > 1 || x1.ndim() != dims || x2.ndim() != dims {
            fail!(
                SHAPE,
                "the inputs must be [N, D] with a target [N], or [D] with []; their shapes are {:?}, {:?} and {:?}",
                x1.shape().as_slice(),
                x2.shape().as_slice(),
                t.shape().as_slice()
            );
        }
        let dot = |e: &mut dyn Emit, x: &Tensor, y: &Tensor| -> Result<Tensor> {
            let product = e.mul(x, y)?;
            e.call(&SUM, args![&product, -1])
        };
        let (product, one, two) = (dot(e, x1, x2)?, dot(e, x1, x1)?, dot(e, x2, x2)?);
        let (one, two) = (e.add(&one, float(1e-12))?, e.add(&two, float(1e-12))?);
        let size = e.mul(&one, &two)?;
        let size = e.call(&crate::op::rows::pointwise::unary::SQRT, args![&size])?;
        let cos = e.div(&product, &size)?;
        let like = e.rev(&SUB, Scalar::Int(1), &cos)?;
        let unlike = e.sub(&cos, float(a.float(3)))?;
        let unlike = e.call(&CLAMP_MIN, args![&unlike, float(0.0)])?;
        let (is_like, is_unlike) = (e.call(&EQ, args![t, 1])?, e.call(&EQ, args![t, -1])?);
        let like = e.call(&WHERE, args![&is_like, &like, float(0.0)])?;
        let unlike = e.call(&WHERE, args![&is_unlike, &unlike, float(0.0)])?;
        let loss = e.add(&like, &unlike)?;
        reduced(e, loss, a.text(4))
    }),
);

pub static ROWS: &[&Op] = &[
    &MSE_LOSS,
    &L1_LOSS,
    &SMOOTH_L1_LOSS,
    &HUBER_LOSS,
    &CROSS,
    &BINARY_CROSS_ENTROPY,
    &BINARY_CROSS_ENTROPY_WITH_LOGITS,
    &SOFT_MARGIN_LOSS,
    &MULTILABEL_SOFT_MARGIN_LOSS,
    &KL_DIV,
    &HINGE_EMBEDDING_LOSS,
    &MARGIN_RANKING_LOSS,
    &COSINE_EMBEDDING_LOSS,
];
