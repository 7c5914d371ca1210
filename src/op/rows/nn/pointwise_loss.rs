//! Losses of pairs of numbers, element by element: compositions of element-wise rows, so that they fuse, and
//! the few whose gradient must be written down to be exact at the edges.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::kernel::elementwise as f;
use crate::kernel::program::Function;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute};
use crate::op::row::{CallForm, Example, Grad, Lower, Op, Param, Promote, Save, ex};
use crate::op::rows::nn::activation::LOGSIGMOID;
use crate::op::rows::nn::loss::{reduced, widened};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::blend::{CLAMP_MAX, CLAMP_MIN};
use crate::op::rows::pointwise::compare::NE;
use crate::op::rows::pointwise::power::XLOGY;
use crate::op::rows::pointwise::unary::ABS;
use crate::op::rows::pointwise::value_checks::PROBABILITY;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::tensor::Tensor;
use crate::signature;

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
fn difference(e: &mut dyn Emit, a: &Args, takes_bool: bool) -> Result<Tensor> {
    let (x, t) = (a.input(), a.tensor(mse_loss::target));
    let dtype = arith::common(e, &[a.get(mse_loss::input), a.get(mse_loss::target)]);
    // Truths beside numbers are 0 and 1, as in PyTorch's losses, where its subtraction refuses them.
    let d = match takes_bool && dtype.is_float() {
        true => {
            let (x, t) = (e.cast(x, dtype)?, e.cast(t, dtype)?);
            e.sub(&x, &t)?
        }
        false => e.sub(x, t)?,
    };
    float_only(&d, "input")?;
    if x.shape() != t.shape() {
        e.warn(other_shape(x, t, &d));
    }
    Ok(d)
}

/// The warning of a target that is broadcast, or broadcasts the input: each element is compared with several, which is rarely
/// meant.
#[cold]
fn other_shape(x: &Tensor, t: &Tensor, both: &Tensor) -> Box<Diag> {
    let (input, target, both) = (x.shape(), t.shape(), both.shape());
    let (input, target, both) = (input.as_slice(), target.as_slice(), both.as_slice());
    let text = format!("the target has shape {target:?} and the input {input:?}: they are compared as {both:?}");
    let help = match x.numel() == t.numel() {
        true => "`target.view_as(input)` compares element by element",
        false => "give both one shape; where each element is to be compared with several, `expand_as` says so",
    };
    Diag::warning(code::TARGET_SHAPE, text).help(help)
}

fn same_shape(a: &Args) -> Result<()> {
    let (x, t) = (a.input().shape(), a.tensor(binary_cross_entropy::target).shape());
    if x != t {
        fail!(SHAPE, "`input` has shape {:?}, `target` {:?}; they must be equal", x.as_slice(), t.as_slice());
    }
    Ok(())
}

signature!(mse_loss(
    input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none"]) = "mean", weight: Tensor = None,
));

pub static MSE_LOSS: Op = row(
    "mse_loss",
    mse_loss::PARAMS,
    ["The squared difference.", "With `weight`, \"mean\" divides by the sum of the weights."],
    &[
        ex("mse_loss(tensor([1.0, 3.0]), tensor([1.0, 1.0]))", "tensor(2.)"),
        ex("mse_loss(tensor([0.5, 1.0]), tensor([true, false]))", "tensor(0.6250)"),
        ex("mse_loss(ones([2]), ones([3]))", "E0201"),
        ex("mse_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let d = difference(e, a, true)?;
        let loss = e.mul(&d, &d)?;
        weighted(e, loss, a)
    }),
);

pub static L1_LOSS: Op = row(
    "l1_loss",
    mse_loss::PARAMS,
    ["The absolute difference.", "With `weight`, \"mean\" divides by the sum of the weights."],
    &[
        ex("l1_loss(tensor([1.0, 3.0]), tensor([1.0, 1.0]))", "tensor(1.)"),
        ex("l1_loss(ones([2]), ones([3]))", "E0201"),
        ex("l1_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let d = difference(e, a, false)?;
        let loss = e.call(&ABS, args![&d])?;
        weighted(e, loss, a)
    }),
);

fn weight_fits(weight: &Tensor, loss: &Tensor) -> Result<()> {
    if weight.shape() != loss.shape() {
        fail!(SHAPE, "`weight` has shape {:?}, the loss {:?}", weight.shape().as_slice(), loss.shape().as_slice());
    }
    Ok(())
}

/// Arguments: input, target, reduction, weight.
fn weighted(e: &mut dyn Emit, loss: Tensor, a: &Args) -> Result<Vec<Tensor>> {
    let Some(weight) = a.opt_tensor(mse_loss::weight) else { return reduced(e, loss, a.text(mse_loss::reduction)) };
    weight_fits(weight, &loss)?;
    let loss = e.mul(&loss, weight)?;
    if a.text(mse_loss::reduction) != "mean" {
        return reduced(e, loss, a.text(mse_loss::reduction));
    }
    let (sum, all) = (e.call(&SUM, args![&loss])?, e.call(&SUM, args![weight])?);
    Ok(vec![e.div(&sum, &all)?])
}

signature!(bounded(input: Tensor, bound: Number));

/// A function of a difference that is quadratic below a bound, and its gradient.
const fn quadratic_below(name: &'static str, function: &'static Function, grad: Grad) -> Op {
    Op {
        name,
        params: bounded::PARAMS,
        summary: "A square that continues as a line.",
        lower: Lower::Map { function, promote: Promote::FloatOnly },
        saves: &[Save::INPUT],
        grad,
        call: CallForm::Internal,
        ..Op::BASE
    }
}

static SMOOTH_L1: Op = quadratic_below(
    "smooth_l1_loss",
    &f::SMOOTH_L1,
    Grad::Of(&[|t| t.g * (t.input * (1.0 / t.float(bounded::bound))).with(&CLAMP_MIN, -1.0).with(&CLAMP_MAX, 1.0)]),
);
static HUBER: Op = quadratic_below(
    "huber_loss",
    &f::HUBER,
    Grad::Of(&[|t| {
        let bound = t.float(bounded::bound);
        t.g * t.input.with(&CLAMP_MIN, -bound).with(&CLAMP_MAX, bound)
    }]),
);

signature!(smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none"]) = "mean", beta: Float = 1.0,
));

pub static SMOOTH_L1_LOSS: Op = row(
    "smooth_l1_loss",
    smooth_l1_loss::PARAMS,
    ["Half the squared difference over `beta` below `beta`, the absolute difference less half of `beta` above.", ""],
    &[
        ex("smooth_l1_loss(tensor([0.5, 3.0]), zeros([2]), #{reduction: \"none\"})", "tensor([0.1250, 2.5000])"),
        ex("smooth_l1_loss(ones([2]), ones([3]))", "E0201"),
        ex("smooth_l1_loss(ones([2]), ones([2]), #{beta: -1.0})", "E0206"),
        ex("smooth_l1_loss(tensor([1]), tensor([2]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let beta = a.float(smooth_l1_loss::beta);
        if beta < 0.0 {
            fail!(VALUE, "`beta` must not be negative, not {beta}");
        }
        let d = difference(e, a, true)?;
        let loss = match beta {
            0.0 => e.call(&ABS, args![&d])?,
            _ => e.call(&SMOOTH_L1, args![&d, float(beta)])?,
        };
        reduced(e, loss, a.text(smooth_l1_loss::reduction))
    }),
);

signature!(huber_loss(
    input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none"]) = "mean", delta: Float = 1.0,
    weight: Tensor = None,
));

pub static HUBER_LOSS: Op = row(
    "huber_loss",
    huber_loss::PARAMS,
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
        let delta = a.float(huber_loss::delta);
        if delta <= 0.0 {
            fail!(VALUE, "`delta` must be positive, not {delta}");
        }
        let dtype = arith::common(e, &[a.get(huber_loss::input), a.get(huber_loss::target)]);
        let (x, t) = (e.cast(a.input(), widened(dtype))?, e.cast(a.tensor(huber_loss::target), widened(dtype))?);
        let d = difference(e, &args![&x, &t], true)?;
        let loss = e.call(&HUBER, args![&d, float(delta)])?;
        let loss = e.cast(&loss, dtype)?;
        let weight = a.opt_tensor(huber_loss::weight);
        if let Some(weight) = weight {
            weight_fits(weight, &loss)?;
        }
        let loss = times_weight(e, loss, weight)?;
        reduced(e, loss, a.text(huber_loss::reduction))
    }),
);

signature!(cross(input: Tensor, target: Tensor));

/// -(t ln x + (1 - t) ln(1 - x)), logarithms not below -100.
static CROSS: Op = Op {
    name: "binary_cross_entropy",
    params: cross::PARAMS,
    summary: "Binary cross entropy of probabilities, element by element.",
    lower: Lower::Steps(|e, a| {
        let (x, t) = (e.call(&PROBABILITY, args![a.input()])?, e.call(&PROBABILITY, args![a.tensor(cross::target)])?);
        let loss = compute(e, |c| {
            let t = c.of(&t);
            let (yes, no) = logarithms(c.of(&x));
            -(t * yes + (1 - t) * no)
        })?;
        Ok(vec![loss])
    }),
    saves: &[Save::INPUT, Save::In(cross::target)],
    grad: Grad::Of(&[
        |t| t.g * (t.input - t.other) / ((1 - t.input) * t.input).with(&CLAMP_MIN, 1e-12),
        |t| {
            let (yes, no) = logarithms(t.input);
            t.g * (no - yes)
        },
    ]),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Symmetric,
    ..Op::BASE
};

/// ln x and ln(1 - x), not below -100.
fn logarithms(x: Expr<'_>) -> (Expr<'_>, Expr<'_>) {
    (x.log().with(&CLAMP_MIN, -100.0), (-x).log1p().with(&CLAMP_MIN, -100.0))
}

signature!(binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor = None, reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static BINARY_CROSS_ENTROPY: Op = row(
    "binary_cross_entropy",
    binary_cross_entropy::PARAMS,
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
        same_shape(a)?;
        float_only(a.input(), "input")?;
        crate::op::infer::same_dtype(&[("input", a.input()), ("target", a.tensor(binary_cross_entropy::target))])?;
        let loss = e.call(&CROSS, args![a.input(), a.tensor(binary_cross_entropy::target)])?;
        let loss = times_weight(e, loss, a.opt_tensor(binary_cross_entropy::weight))?;
        reduced(e, loss, a.text(binary_cross_entropy::reduction))
    }),
);

signature!(binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor = None, reduction: Str(&["mean", "sum", "none"]) = "mean",
    pos_weight: Tensor = None,
));

pub static BINARY_CROSS_ENTROPY_WITH_LOGITS: Op = row(
    "binary_cross_entropy_with_logits",
    binary_cross_entropy_with_logits::PARAMS,
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
        same_shape(a)?;
        let (x, t) = (a.input(), a.tensor(binary_cross_entropy_with_logits::target));
        float_only(x, "input")?;
        let loss = compute(e, |c| {
            let (x, t) = (c.of(x), c.of(t));
            let log = x.of(&LOGSIGMOID);
            let log = match a.opt_tensor(binary_cross_entropy_with_logits::pos_weight) {
                Some(weight) => log * ((c.of(weight) - 1) * t + 1),
                None => log,
            };
            (1 - t) * x - log
        })?;
        let loss = times_weight(e, loss, a.opt_tensor(binary_cross_entropy_with_logits::weight))?;
        reduced(e, loss, a.text(binary_cross_entropy_with_logits::reduction))
    }),
);

signature!(soft_margin_loss(input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none"]) = "mean"));

pub static SOFT_MARGIN_LOSS: Op = row(
    "soft_margin_loss",
    soft_margin_loss::PARAMS,
    ["ln(1 + e^(-t x)) of scores x and targets t of 1 and -1.", ""],
    &[
        ex("soft_margin_loss(tensor([0.0]), tensor([1.0]))", "tensor(0.6931)"),
        ex("soft_margin_loss(ones([2]), ones([3]))", "E0201"),
        ex("soft_margin_loss(ones([2]), ones([3, 2]))", "E0201"),
        ex("soft_margin_loss(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.input(), a.tensor(soft_margin_loss::target));
        float_only(x, "input")?;
        let loss = compute(e, |c| (-c.of(t) * x).exp().log1p())?;
        if loss.shape() != x.shape() {
            let (x, t) = (x.shape(), t.shape());
            fail!(
                SHAPE,
                "`target` of shape {:?} does not broadcast to that of `input`, {:?}",
                t.as_slice(),
                x.as_slice()
            );
        }
        reduced(e, loss, a.text(soft_margin_loss::reduction))
    }),
);

pub static MULTILABEL_SOFT_MARGIN_LOSS: Op = row(
    "multilabel_soft_margin_loss",
    binary_cross_entropy::PARAMS,
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
        let (x, t) = (a.input(), a.tensor(binary_cross_entropy::target));
        float_only(x, "input")?;
        if x.ndim() == 0 {
            fail!(SHAPE, "`input` must have at least 1 dimension");
        }
        let loss = compute(e, |c| {
            let (x, t) = (c.of(x), c.of(t));
            -(t * x.of(&LOGSIGMOID) + (1 - t) * (-x).of(&LOGSIGMOID))
        })?;
        let loss = times_weight(e, loss, a.opt_tensor(binary_cross_entropy::weight))?;
        let classes = x.shape()[x.ndim() - 1] as f64;
        let loss = e.call(&SUM, args![&loss, -1])?;
        let loss = e.div(&loss, float(classes))?;
        reduced(e, loss, a.text(binary_cross_entropy::reduction))
    }),
);

signature!(kl_div(
    input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none", "batchmean"]) = "mean",
    log_target: Bool = false,
));

pub static KL_DIV: Op = row(
    "kl_div",
    kl_div::PARAMS,
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
        let (x, t) = (a.input(), a.tensor(kl_div::target));
        float_only(x, "input")?;
        let loss = compute(e, |c| {
            let (x, t) = (c.of(x), c.of(t));
            if a.flag(kl_div::log_target) { t.exp() * (t - x) } else { t.with(&XLOGY, t) - t * x }
        })?;
        if a.text(kl_div::reduction) != "batchmean" {
            return reduced(e, loss, a.text(kl_div::reduction));
        }
        let n = x.shape().first().copied().unwrap_or(1);
        let sum = reduced(e, loss, "sum")?;
        Ok(vec![e.div(&sum[0], float(n as f64))?])
    }),
);

signature!(hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: Float = 1.0, reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static HINGE_EMBEDDING_LOSS: Op = row(
    "hinge_embedding_loss",
    hinge_embedding_loss::PARAMS,
    ["The distance x of like pairs (target 1), and max(0, margin - x) of unlike ones (-1).", ""],
    &[
        ex("hinge_embedding_loss(tensor([0.5, 0.25]), tensor([1, -1]))", "tensor(0.6250)"),
        ex("hinge_embedding_loss(ones([2]), ones([3]))", "E0201"),
        ex("hinge_embedding_loss(tensor([1]), tensor([1]))", "E0202"),
    ],
    Lower::Compose(|e, a| {
        let (x, t) = (a.input(), a.tensor(hinge_embedding_loss::target));
        float_only(x, "input")?;
        let loss = compute(e, |c| {
            let (x, t) = (c.of(x), c.of(t));
            let gap = (a.float(hinge_embedding_loss::margin) - x).with(&CLAMP_MIN, 0.0);
            t.with(&NE, 1).choose(gap, 0.0) + t.with(&NE, -1).choose(x, 0.0)
        })?;
        reduced(e, loss, a.text(hinge_embedding_loss::reduction))
    }),
);

signature!(margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: Float = 0.0,
    reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static MARGIN_RANKING_LOSS: Op = row(
    "margin_ranking_loss",
    margin_ranking_loss::PARAMS,
    ["max(0, -t (x1 - x2) + margin): target 1 ranks `input1` higher, -1 `input2`.", ""],
    &[
        ex("margin_ranking_loss(tensor([1.0]), tensor([3.0]), tensor([1.0]))", "tensor(2.)"),
        ex("margin_ranking_loss(ones([2]), ones([2]), ones([1, 2]))", "E0201"),
    ],
    Lower::Compose(|e, a| {
        let (x1, x2, t) = (
            a.tensor(margin_ranking_loss::input1),
            a.tensor(margin_ranking_loss::input2),
            a.tensor(margin_ranking_loss::target),
        );
        if x1.ndim() != x2.ndim() || x1.ndim() != t.ndim() {
            fail!(
                SHAPE,
                "the inputs and the target must have as many dimensions: {}, {}, {}",
                x1.ndim(),
                x2.ndim(),
                t.ndim()
            );
        }
        let margin = a.float(margin_ranking_loss::margin);
        let loss = compute(e, |c| (-c.of(t) * (c.of(x1) - x2) + margin).with(&CLAMP_MIN, 0.0))?;
        reduced(e, loss, a.text(margin_ranking_loss::reduction))
    }),
);

fn dot<'c>(x: Expr<'c>, y: Expr<'c>) -> Expr<'c> {
    (x * y).call(&SUM, args![-1])
}

pub static COSINE_EMBEDDING_LOSS: Op = row(
    "cosine_embedding_loss",
    margin_ranking_loss::PARAMS,
    [
        "1 - cos of like pairs (target 1), and max(0, cos - margin) of unlike ones (-1).",
        "`input1` and `input2` are [N, D] with a target [N], or [D] with one of no dimensions.",
    ],
    &[
        ex("cosine_embedding_loss(tensor([[1.0, 0.0]]), tensor([[0.0, 1.0]]), tensor([1]))", "tensor(1.)"),
        ex("cosine_embedding_loss(ones([2]), ones([2]), ones([1]))", "E0201"),
    ],
    Lower::Compose(|e, a| {
        let (x1, x2, t) = (
            a.tensor(margin_ranking_loss::input1),
            a.tensor(margin_ranking_loss::input2),
            a.tensor(margin_ranking_loss::target),
        );
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
        let margin = a.float(margin_ranking_loss::margin);
        let loss = compute(e, |c| {
            let (x1, x2, t) = (c.of(x1), c.of(x2), c.of(t));
            let cos = dot(x1, x2) / ((dot(x1, x1) + 1e-12) * (dot(x2, x2) + 1e-12)).sqrt();
            let unlike = (cos - margin).with(&CLAMP_MIN, 0.0);
            t.equals(1).choose(1 - cos, 0.0) + t.equals(-1).choose(unlike, 0.0)
        })?;
        reduced(e, loss, a.text(margin_ranking_loss::reduction))
    }),
);

pub static ROWS: &[&Op] = &[
    &MSE_LOSS,
    &L1_LOSS,
    &SMOOTH_L1,
    &SMOOTH_L1_LOSS,
    &HUBER,
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
