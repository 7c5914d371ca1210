//! Losses of labels: cross entropy, negative log-likelihood, margins between classes.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::index;
use crate::kernel::loss;
use crate::kernel::scan;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::compute;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::creation::create::ARANGE;
use crate::op::rows::indexing::gather::SCATTER_ADD;
use crate::op::rows::nn::embedding::class_labels;
use crate::op::rows::nn::softmax::{LOG_SOFTMAX_FLOAT, SOFTMAX_FLOAT};
use crate::op::rows::nn::windows::float_only;
use crate::op::rows::pointwise::blend::CLAMP_MIN;
use crate::op::rows::pointwise::compare::{EQ, GE};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::view::{RESHAPE, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

/// The dtype in which 16-bit floats are accumulated.
pub fn widened(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The sum of everything; 16-bit floats sum in f32 and are rounded once, by `finish`.
fn total(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let x = e.cast(x, widened(x.dtype()))?;
    e.call(&SUM, args![&x])
}

/// A loss as `reduction` wants it.
pub fn reduced(e: &mut dyn Emit, loss: Tensor, reduction: &str) -> Result<Vec<Tensor>> {
    let (dtype, n) = (loss.dtype(), loss.numel());
    let result = match reduction {
        "none" => return Ok(vec![loss]),
        "sum" => total(e, &loss)?,
        _ => {
            let sum = total(e, &loss)?;
            e.div(&sum, Scalar::Float(n as f64))?
        }
    };
    Ok(vec![e.cast(&result, dtype)?])
}

/// The class dim of scores: dim 1, or 0 without a batch.
fn class_dim(ndim: usize) -> usize {
    (ndim > 1) as usize
}

signature!(cross(
    input: Tensor, target: Tensor, weight: Tensor = None, ignore_index: Int = (-100), label_smoothing: Float = 0.0,
));

/// Results: each element's loss, the weight they add up to, and the logarithm of the sum of e^x.
/// Arguments: input, target, weight, ignore_index, label_smoothing.
static CROSS: Op = Op {
    name: "cross_entropy",
    params: cross::PARAMS,
    summary: "Cross entropy of labels.",
    lower: Lower::Kernel(|_, a| {
        let (x, target) = (a.input(), a.tensor(cross::target));
        let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let call = KernelCall::new("cross_entropy", &loss::CROSS_ENTROPY)
            .input(x)
            .input(target)
            .inputs(a.opt_tensor(cross::weight));
        let call =
            call.int(a.int(cross::ignore_index)).float(a.float(cross::label_smoothing)).flag(!a.is_none(cross::weight));
        Ok(call.output(&target.shape(), x.dtype()).output(&[], wide).output(&target.shape(), wide))
    }),
    saves: &[Save::INPUT, Save::In(cross::target), Save::In(cross::weight), Save::Out(2)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        if e.grad_enabled() {
            return Ok(vec![Some(cross_twice(e, v, g)?)]);
        }
        let (x, weight) = (v.input(), v.opt_input(cross::weight));
        let call = KernelCall::new("cross_entropy_grad", &loss::CROSS_ENTROPY_GRAD)
            .input(g)
            .input(x)
            .input(v.saved(cross::target));
        let call = call
            .input(v.output(2))
            .inputs(weight)
            .int(v.args.int(cross::ignore_index))
            .float(v.args.float(cross::label_smoothing));
        Ok(vec![e.kernel(call.flag(weight.is_some()).output(&x.shape(), x.dtype()))?.pop()])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

/// The gradient of `CROSS` as rows: with target weights q it is g (softmax(x) sum(q) - q).
fn cross_twice(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Tensor> {
    let (x, target, weight) = (v.input(), v.saved(cross::target), v.opt_input(cross::weight));
    let (dim, smoothing) = (class_dim(x.ndim()) as i64, v.args.float(cross::label_smoothing));
    let shape = x.shape();
    let ones = e.full(&target.shape(), Scalar::Int(1), v.meta(cross::input))?;
    let picked = |e: &mut dyn Emit, weight: Option<&Tensor>| -> Result<Tensor> {
        let minus =
            e.call(&NLL_GRAD, args![&ones, target, weight, v.args.int(cross::ignore_index), shape.as_slice()])?;
        e.neg(&minus)
    };
    let all = picked(e, weight)?;
    let valid = if smoothing == 0.0 { None } else { Some(picked(e, None)?) };
    let weight = weight.map(|weight| along_classes(e, weight, x.ndim())).transpose()?;
    compute(e, |c| {
        let mut q = c.of(&all);
        if let Some(valid) = &valid {
            let even = c.of(valid).sum_keepdim(dim) * (smoothing / shape[dim as usize] as f64);
            q = q * (1.0 - smoothing) + weight.iter().fold(even, |even, weight| even * weight);
        }
        (c.call(&SOFTMAX_FLOAT, args![x, dim]) * q.sum_keepdim(dim) - q) * c.of(g).unsqueeze(dim)
    })
}

/// `[C]` so that it broadcasts along the class dim.
fn along_classes(e: &mut dyn Emit, weight: &Tensor, ndim: usize) -> Result<Tensor> {
    let mut shape = Shape::from_elem(1, ndim - class_dim(ndim));
    shape[0] = weight.numel();
    e.call(&RESHAPE, args![weight, shape.as_slice()])
}

signature!(nll(input: Tensor, target: Tensor, weight: Tensor = None, ignore_index: Int = (-100)));

/// Results: each element's loss, and the weight that they add up to.
static NLL: Op = Op {
    name: "nll_loss",
    params: nll::PARAMS,
    summary: "Negative log-likelihood of labels.",
    lower: Lower::Kernel(|_, a| {
        let (x, target) = (a.input(), a.tensor(nll::target));
        let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let call = KernelCall::new("nll_loss", &loss::NLL).input(x).input(target).inputs(a.opt_tensor(nll::weight));
        let call = call.int(a.int(nll::ignore_index)).flag(!a.is_none(nll::weight));
        Ok(call.output(&target.shape(), x.dtype()).output(&[], wide))
    }),
    saves: &[Save::In(nll::target), Save::In(nll::weight)],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        let shape = v.meta(nll::input).shape.clone();
        let args =
            args![g, v.saved(nll::target), v.opt_input(nll::weight), v.args.int(nll::ignore_index), shape.as_slice()];
        Ok(vec![Some(e.call(&NLL_GRAD, args)?)])
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(nll_grad(grad: Tensor, target: Tensor, weight: Tensor = None, ignore_index: Int = (-100), shape: Ints));

/// The gradient of `NLL`, linear in its first argument; the last is the shape of the scores.
static NLL_GRAD: Op = Op {
    name: "nll_loss",
    params: nll_grad::PARAMS,
    summary: "Gradient of the negative log-likelihood.",
    lower: Lower::Kernel(|_, a| {
        let (g, weight) = (a.tensor(nll_grad::grad), a.opt_tensor(nll_grad::weight));
        let shape: Shape = a.ints(nll_grad::shape).unwrap_or_default().iter().map(|&size| size as usize).collect();
        let call =
            KernelCall::new("nll_loss_grad", &loss::NLL_GRAD).input(g).input(a.tensor(nll_grad::target)).inputs(weight);
        Ok(call.int(a.int(nll_grad::ignore_index)).flag(weight.is_some()).output(&shape, g.dtype()))
    }),
    saves: &[Save::In(nll_grad::target), Save::In(nll_grad::weight)],
    grad: Grad::Rule(|e, v| {
        let mut made = e.apply(
            &NLL,
            args![v.g(), v.saved(nll_grad::target), v.opt_input(nll_grad::weight), v.args.int(nll_grad::ignore_index)],
        )?;
        made.truncate(1);
        Ok(vec![made.pop()])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// The target of class labels: `[N, d..]` for scores `[N, C, d..]`, i64.
fn labels(e: &mut dyn Emit, x: &Tensor, target: &Tensor) -> Result<Tensor> {
    class_labels(target)?;
    let (shape, dim) = (x.shape(), class_dim(x.ndim()));
    let expected: Shape = shape.iter().enumerate().filter(|(at, _)| *at != dim).map(|(_, &size)| size).collect();
    if expected != target.shape() {
        fail!(
            SHAPE,
            "`target` must have shape {:?} for an input of shape {:?}, not {:?}",
            expected.as_slice(),
            shape.as_slice(),
            target.shape().as_slice()
        );
    }
    e.cast(target, DType::I64)
}

fn check_scores(a: &Args) -> Result<()> {
    let x = a.input();
    float_only(x, "input")?;
    if x.ndim() == 0 {
        fail!(SHAPE, "`input` must have at least 1 dimension");
    }
    if let Some(weight) = a.opt_tensor(cross_entropy::weight) {
        let classes = x.shape()[class_dim(x.ndim())];
        float_only(weight, "weight")?;
        if weight.shape().as_slice() != [classes] {
            fail!(
                SHAPE,
                "`weight` must have shape [{classes}], one number a class, not {:?}",
                weight.shape().as_slice()
            );
        }
    }
    Ok(())
}

/// Losses and their weight as `reduction` wants them.
fn weighted(e: &mut dyn Emit, made: &[Tensor], reduction: &str) -> Result<Vec<Tensor>> {
    if reduction != "mean" {
        return reduced(e, made[0].clone(), reduction);
    }
    let sum = total(e, &made[0])?;
    let weight = e.detach(&made[1]);
    let mean = e.div(&sum, &weight)?;
    Ok(vec![e.cast(&mean, made[0].dtype())?])
}

/// Cross entropy of class probabilities: -sum(weight target log_softmax).
fn of_probabilities(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, target, smoothing) = (a.input(), a.tensor(cross_entropy::target), a.float(cross_entropy::label_smoothing));
    let dim = class_dim(x.ndim());
    let classes = x.shape()[dim] as f64;
    let weight = a.opt_tensor(cross_entropy::weight).map(|weight| along_classes(e, weight, x.ndim())).transpose()?;
    let loss = compute(e, |c| {
        let target = c.of(target);
        let target = if smoothing > 0.0 { target * (1.0 - smoothing) + smoothing / classes } else { target };
        let terms = c.call(&LOG_SOFTMAX_FLOAT, args![x, dim]) * target;
        let terms = weight.iter().fold(terms, |terms, weight| terms * weight);
        (-terms).sum(dim as i64)
    })?;
    reduced(e, loss, a.text(cross_entropy::reduction))
}

signature!(cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor = None, ignore_index: Int = (-100),
    reduction: Str(&["mean", "sum", "none"]) = "mean", label_smoothing: Float = 0.0,
));

pub static CROSS_ENTROPY: Op = Op {
    name: "cross_entropy",
    params: cross_entropy::PARAMS,
    summary: "The negative logarithm of the probability that scores give to the right class.",
    details: "`input` is [N, C, d..] or [C], scores of C classes. `target` is [N, d..] (or []) with class labels, i64, or \
has the input's shape with probabilities. \"mean\" divides by the sum of the labels' weights, or by the number of elements \
with probabilities. Labels equal to `ignore_index` do not count; a label that is no class is an error while computing \
(E0402).",
    examples: &[
        ex("cross_entropy(tensor([[0.0, 0.0]]), tensor([1]))", "tensor(0.6931)"),
        ex("cross_entropy(tensor([[0.0, 0.0]]), tensor([[0.5, 0.5]]))", "tensor(0.6931)"),
        ex("cross_entropy(ones([2, 3]), tensor([0, 1, 2]))", "E0201"),
        ex("cross_entropy(ones([2, 3]), tensor([0.0, 1.0]))", "E0202"),
        ex("cross_entropy(ones([2, 3]), tensor([0, 1]), #{label_smoothing: 2.0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        check_scores(a)?;
        let (x, target, smoothing) =
            (a.input(), a.tensor(cross_entropy::target), a.float(cross_entropy::label_smoothing));
        if !(0.0..=1.0).contains(&smoothing) {
            fail!(VALUE, "`label_smoothing` must lie between 0 and 1, not {smoothing}");
        }
        if x.shape() == target.shape() && target.dtype().is_float() {
            if a.int(cross_entropy::ignore_index) >= 0 {
                fail!(VALUE, "`ignore_index` does not go with probabilities");
            }
            return of_probabilities(e, a);
        }
        let target = labels(e, x, target)?;
        let made = e.apply(
            &CROSS,
            args![x, &target, a.opt_tensor(cross_entropy::weight), a.int(cross_entropy::ignore_index), smoothing],
        )?;
        weighted(e, &made, a.text(cross_entropy::reduction))
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(nll_loss(
    input: Tensor, target: Tensor, weight: Tensor = None, ignore_index: Int = (-100),
    reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static NLL_LOSS: Op = Op {
    name: "nll_loss",
    aliases: &["nll_loss2d"],
    params: nll_loss::PARAMS,
    summary: "The negative of the right class's log-probability.",
    details: "`input` is [N, C, d..] or [C], logarithms of probabilities; the rest is as in `cross_entropy`.",
    examples: &[
        ex("nll_loss(tensor([[-1.0, -2.0]]), tensor([1]))", "tensor(2.)"),
        ex("nll_loss(ones([2, 3]), tensor([0]))", "E0201"),
        ex("nll_loss(ones([2, 3]), ones([2]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        check_scores(a)?;
        let target = labels(e, a.input(), a.tensor(nll_loss::target))?;
        let made =
            e.apply(&NLL, args![a.input(), &target, a.opt_tensor(nll_loss::weight), a.int(nll_loss::ignore_index)])?;
        weighted(e, &made, a.text(nll_loss::reduction))
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

/// Scores `[N, C]`, and labels `[N]` (or `[C]` and `[]`) with a batch put in front where there is none.
fn with_batch(e: &mut dyn Emit, x: &Tensor, target: &Tensor, target_dims: usize) -> Result<(Tensor, Tensor, bool)> {
    float_only(x, "input")?;
    let shape = x.shape();
    let (ndim, classes) = (shape.len(), shape.last().copied().unwrap_or(1));
    if ndim > 2 || (ndim == 2 && classes == 0) || (ndim == 1 && classes == 0) {
        fail!(SHAPE, "`input` must be [N, C] or [C], not empty; it has shape {:?}", shape.as_slice());
    }
    let n = if ndim == 2 { shape[0] } else { 1 };
    let expected = Shape::from_slice(&[n, classes][..target_dims]);
    let fits = target.numel() == expected.iter().product::<usize>() && target.ndim() <= target_dims;
    if !fits {
        fail!(
            SHAPE,
            "`target` of shape {:?} does not go with an input of shape {:?}",
            target.shape().as_slice(),
            shape.as_slice()
        );
    }
    let x = e.call(&RESHAPE, args![x, [n, classes].as_slice()])?;
    let target = e.call(&RESHAPE, args![target, expected.as_slice()])?;
    Ok((x, target, ndim == 2))
}

/// A loss `[N]`, without its batch dim where there was none.
fn without_batch(e: &mut dyn Emit, loss: Tensor, was_batched: bool, reduction: &str) -> Result<Vec<Tensor>> {
    if was_batched || reduction != "none" {
        return reduced(e, loss, reduction);
    }
    Ok(vec![e.call(&RESHAPE, args![&loss, Ints::new()])?])
}

signature!(multi_margin_loss(
    input: Tensor, target: Tensor, p: Int = 1, margin: Float = 1.0, weight: Tensor = None,
    reduction: Str(&["mean", "sum", "none"]) = "mean",
));

pub static MULTI_MARGIN_LOSS: Op = Op {
    name: "multi_margin_loss",
    params: multi_margin_loss::PARAMS,
    summary: "Asks the right class's score to exceed every other by a margin.",
    details: "The sum over other classes i of max(0, margin - x[y] + x[i])^p over C, times `weight[y]`; p is 1 or 2. A label \
that is no class is an error while computing (E0402).",
    examples: &[
        ex("multi_margin_loss(tensor([[1.0, 2.0]]), tensor([0]))", "tensor(1.)"),
        ex("multi_margin_loss(ones([2, 3]), tensor([0]))", "E0201"),
        ex("multi_margin_loss(ones([2, 3]), ones([2]))", "E0202"),
        ex("multi_margin_loss(ones([1, 3]), tensor([0]), #{p: 3})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| {
        let p = a.int(multi_margin_loss::p);
        if p != 1 && p != 2 {
            fail!(VALUE, "`p` must be 1 or 2, not {p}");
        }
        class_labels(a.tensor(multi_margin_loss::target))?;
        let (x, target, was_batched) = with_batch(e, a.input(), a.tensor(multi_margin_loss::target), 1)?;
        let (classes, x_dtype) = (x.shape()[1], x.dtype());
        let target = e.cast(&target, DType::I64)?;
        let target = e.call(&UNSQUEEZE, args![&target, 1])?;
        let (own, is_right) = (e.call(&LABEL_SCORES, args![&x, &target])?, is_label(e, &target, classes)?);
        let weight = a.opt_tensor(multi_margin_loss::weight);
        if let Some(weight) = weight.filter(|weight| weight.shape().as_slice() != [classes]) {
            fail!(SHAPE, "`weight` must have shape [{classes}], not {:?}", weight.shape().as_slice());
        }
        let loss = compute(e, |c| {
            let (x, is_right) = (c.of(&x), c.of(&is_right));
            let gap = (x - &own + a.float(multi_margin_loss::margin)).with(&CLAMP_MIN, 0.0);
            let terms = if p == 2 { gap * gap } else { gap }.zero_where(is_right);
            let share = weight.map(|weight| (is_right.cast(x_dtype) * weight).sum_keepdim(1));
            share.map_or(terms, |share| terms * share).sum(1) / classes as f64
        })?;
        without_batch(e, loss, was_batched, a.text(multi_margin_loss::reduction))
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

signature!(label_scores(input: Tensor, target: Tensor));

/// The scores of labels `[N, L]` among scores `[N, C]`; a label that is no class is an error while computing.
static LABEL_SCORES: Op = Op {
    name: "label_scores",
    params: label_scores::PARAMS,
    summary: "The scores of labels.",
    lower: Lower::Kernel(|_, a| {
        let (x, target) = (a.input(), a.tensor(label_scores::target));
        let call = KernelCall::new("gather", &index::GATHER).input(x).input(target).int(1).flag(true);
        Ok(call.output(&target.shape(), x.dtype()))
    }),
    saves: &[Save::In(label_scores::target)],
    grad: Grad::Rule(|e, v| {
        let (target, x) = (v.saved(label_scores::target), v.meta(label_scores::input));
        let dx = if target.shape()[1] == 1 {
            let is_right = is_label(e, target, x.shape[1])?;
            compute(e, |c| c.of(v.g()).zero_unless(c.of(&is_right)))?
        } else {
            let zeros = e.zeros_like(x)?;
            e.call(&SCATTER_ADD, args![&zeros, 1, target, v.g()])?
        };
        Ok(vec![Some(dx)])
    }),
    call: CallForm::Internal,
    piecewise_linear: true,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

/// Whether each of so many classes is the label of a sample, `[N, C]` for labels `[N, 1]`.
fn is_label(e: &mut dyn Emit, target: &Tensor, classes: usize) -> Result<Tensor> {
    let count = [Scalar::Int(0), Scalar::Int(classes as i64), Scalar::Int(1)];
    let numbers = e.call(&ARANGE, args![count[0], count[1], count[2], DType::I64, target.device()])?;
    e.call(&EQ, args![&numbers, target])
}

/// Which entries of `[N, C]` lists come before the first negative one, as i64 of 0 and 1.
fn before_end(e: &mut dyn Emit, target: &Tensor) -> Result<Tensor> {
    let is_label = e.call(&GE, args![target, Scalar::Int(0)])?;
    let is_label = e.cast(&is_label, DType::I64)?;
    let call = KernelCall::new("cumprod", &scan::CUMPROD).input(&is_label).int(1).flag(false);
    let mut made = e.kernel(call.output(&target.shape(), DType::I64))?;
    Ok(made.swap_remove(0))
}

signature!(multilabel_margin_loss(input: Tensor, target: Tensor, reduction: Str(&["mean", "sum", "none"]) = "mean"));

pub static MULTILABEL_MARGIN_LOSS: Op = Op {
    name: "multilabel_margin_loss",
    params: multilabel_margin_loss::PARAMS,
    summary: "Asks the score of every right class to exceed that of every other class by 1.",
    details: "`target` lists the right classes of a sample, ended by a negative number; the loss is the sum of \
max(0, 1 - x[right] + x[other]) over C. A label that is no class is an error while computing (E0402).",
    examples: &[
        ex("multilabel_margin_loss(tensor([0.1, 0.2, 0.4, 0.8]), tensor([3, 0, -1, 1]))", "tensor(0.8500)"),
        ex("multilabel_margin_loss(ones([2, 3]), tensor([0]))", "E0201"),
        ex("multilabel_margin_loss(ones([3]), ones([3]))", "E0202"),
    ],
    lower: Lower::Compose(|e, a| {
        class_labels(a.tensor(multilabel_margin_loss::target))?;
        let (x, target, was_batched) = with_batch(e, a.input(), a.tensor(multilabel_margin_loss::target), 2)?;
        let classes = x.shape()[1];
        let valid = before_end(e, &target)?;
        let target = e.cast(&target, DType::I64)?;
        // Entries after the end read class 0 and count for nothing.
        let target = e.mul(&target, &valid)?;
        let own = e.call(&LABEL_SCORES, args![&x, &target])?;
        let none = e.zeros_like(&Meta::of(&target))?;
        let times = e.call(&SCATTER_ADD, args![&none, 1, &target, &valid])?;
        let loss = compute(e, |c| {
            let (x, own) = (c.of(&x).unsqueeze(1), c.of(&own).unsqueeze(2));
            let (is_listed, is_other) =
                (c.of(&valid).unsqueeze(2).cast(DType::Bool), c.of(&times).equals(0).unsqueeze(1));
            let gap = (x - own + 1).with(&CLAMP_MIN, 0.0).zero_unless(is_listed.and(is_other));
            gap.call(&SUM, args![[1i64, 2].as_slice()]) / classes as f64
        })?;
        without_batch(e, loss, was_batched, a.text(multilabel_margin_loss::reduction))
    }),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] =
    &[&CROSS, &NLL, &NLL_GRAD, &LABEL_SCORES, &CROSS_ENTROPY, &NLL_LOSS, &MULTI_MARGIN_LOSS, &MULTILABEL_MARGIN_LOSS];
