//! The loss of sequences of labels without an alignment: `ctc_loss`.

use crate::args;
use crate::base::attr::Ints;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::ctc;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::nn::loss::reduced;
use crate::op::rows::pointwise::compare::{ISPOSINF, WHERE};
use crate::op::rows::shape::view::{RESHAPE, SELECT};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(losses(log_probs: Tensor, targets: Tensor, steps: Ints, lengths: Ints, starts: Ints, blank: Int));

/// Internal: one loss for each sample.
static LOSSES: Op = Op {
    name: "ctc_loss",
    params: losses::PARAMS,
    summary: "Losses of sequences.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("ctc_loss", &ctc::CTC_LOSS)
            .inputs([a.tensor(losses::log_probs), a.tensor(losses::targets)]);
        Ok(with_sizes(call, a, 2)
            .output(&[a.tensor(losses::log_probs).shape()[1]], a.tensor(losses::log_probs).dtype()))
    }),
    saves: &[Save::In(losses::log_probs), Save::In(losses::targets)],
    grad: Grad::Rule(|e, v| {
        let sizes = |at: usize| v.args.ints(at).unwrap_or_default();
        let (logs, targets) = (v.saved(losses::log_probs), v.saved(losses::targets));
        let args = args![logs, targets, v.g(), sizes(2), sizes(3), sizes(4), v.args.int(losses::blank)];
        Ok(vec![Some(e.call(&LOSSES_GRAD, args)?), None])
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

signature!(losses_grad(
    log_probs: Tensor, targets: Tensor, grad: Tensor, steps: Ints, lengths: Ints, starts: Ints, blank: Int,
));

static LOSSES_GRAD: Op = Op {
    name: "ctc_loss",
    params: losses_grad::PARAMS,
    summary: "Gradient of the losses of sequences.",
    lower: Lower::Kernel(|_, a| {
        let call = KernelCall::new("ctc_loss_grad", &ctc::CTC_LOSS_GRAD).inputs([
            a.tensor(losses_grad::log_probs),
            a.tensor(losses_grad::targets),
            a.tensor(losses_grad::grad),
        ]);
        Ok(with_sizes(call, a, 3)
            .output(&a.tensor(losses_grad::log_probs).shape(), a.tensor(losses_grad::log_probs).dtype()))
    }),
    grad: Grad::Stop("no second gradient of this loss is known"),
    call: CallForm::Internal,
    ..Op::BASE
};

fn with_sizes(call: KernelCall, a: &Args, first: usize) -> KernelCall {
    let call = (first..first + 3).fold(call, |call, at| call.ints(&a.ints(at).unwrap_or_default()));
    call.int(a.int(first + 3))
}

/// Lengths of the samples, each at most `most`.
fn lengths(a: &Args, at: usize, name: &str, samples: usize, most: usize) -> Result<Ints> {
    let list = a.ints(at).unwrap_or_default();
    if list.len() != samples {
        fail!(SHAPE, "`{name}` has {} lengths for {samples} samples", list.len());
    }
    if let Some(bad) = list.iter().find(|&&n| n < 0 || n as usize > most) {
        fail!(VALUE, "a length in `{name}` is {bad}; it must lie between 0 and {most}");
    }
    Ok(list)
}

signature!(ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: IntOrInts, target_lengths: IntOrInts, blank: Int = 0,
    reduction: Str(&["mean", "sum", "none"]) = "mean", zero_infinity: Bool = false,
));

pub static CTC_LOSS: Op = Op {
    name: "ctc_loss",
    params: ctc_loss::PARAMS,
    summary: "The loss of sequences of labels under all alignments (connectionist temporal classification, Graves et al., 2006).",
    details: "`log_probs` is [T, N, C], made by `log_softmax`, or [T, C]; `targets` [N, S], or all labels in one row. \
Lengths are arrays of integers, or tensors (which waits). The mean divides each loss by the number of its labels. A sequence that no \
alignment gives has an infinite loss, or with `zero_infinity` none.",
    examples: &[
        ex("ctc_loss(zeros([2, 1, 2]), tensor([[1]]), [2], [1]).neg().exp()", "tensor(3.)"),
        ex("ctc_loss(zeros([2, 1, 2]), tensor([[1]]), [2, 2], [1])", "E0201"),
        ex("ctc_loss(zeros([2, 1, 2]), tensor([[1]]), [3], [1])", "E0206"),
        ex("ctc_loss(zeros([2, 1, 2]), tensor([[1.0]]), [2], [1])", "E0202"),
        ex("ctc_loss(zeros([2, 2, 2]), tensor([1, 1, 1]), [2, 2], [1, 1])", "E0206"),
        ex("ctc_loss(zeros([2, 1, 2]), tensor([[2]]), [2], [1])", "E0402"),
    ],
    lower: Lower::Compose(ctc_loss),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

fn ctc_loss(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (logs, targets) = (a.tensor(ctc_loss::log_probs), a.tensor(ctc_loss::targets));
    if !matches!(logs.dtype(), DType::F32 | DType::F64) {
        fail!(DTYPE, "`log_probs` must be f32 or f64, not {}", logs.dtype());
    }
    if !matches!(targets.dtype(), DType::I64 | DType::I32) {
        fail!(DTYPE, "`targets` must be i64 or i32, not {}", targets.dtype());
    }
    let shape = logs.shape();
    let batched = match shape.len() {
        3 => true,
        2 => false,
        _ => fail!(SHAPE, "`log_probs` must be [T, N, C] or [T, C]; it has shape {:?}", shape.as_slice()),
    };
    if logs.numel() == 0 {
        fail!(SHAPE, "`log_probs` is empty; it has shape {:?}", shape.as_slice());
    }
    let (steps, n, classes) = (shape[0], if batched { shape[1] } else { 1 }, shape[shape.len() - 1]);
    let blank = a.int(ctc_loss::blank);
    if blank < 0 || blank >= classes as i64 {
        fail!(VALUE, "`blank` is {blank}, which is none of the {classes} classes");
    }
    let own = targets.shape();
    let rows = match own.len() {
        1 => None,
        2 if own[0] == n => Some(own[1]),
        _ => fail!(SHAPE, "`targets` must be [{n}, S], or all labels in one row; it has shape {:?}", own.as_slice()),
    };
    let input = lengths(a, ctc_loss::input_lengths, "input_lengths", n, steps)?;
    let target = lengths(a, ctc_loss::target_lengths, "target_lengths", n, rows.unwrap_or(own.iter().product()))?;
    let starts: Ints = match rows {
        Some(width) => (0..n).map(|i| (i * width) as i64).collect(),
        None => target.iter().scan(0, |sum, &length| Some(std::mem::replace(sum, *sum + length))).collect(),
    };
    if rows.is_none() && target.iter().sum::<i64>() != own[0] as i64 {
        fail!(VALUE, "`target_lengths` ask for {} labels, and there are {}", target.iter().sum::<i64>(), own[0]);
    }
    let logs = e.call(&RESHAPE, args![logs, [steps, n, classes].as_slice()])?;
    let labels = e.cast(targets, DType::I64)?;
    let mut loss = e.call(&LOSSES, args![&logs, &labels, input, target.clone(), starts, blank])?;
    if a.flag(ctc_loss::zero_infinity) {
        let infinite = e.call(&ISPOSINF, args![&loss])?;
        loss = e.call(&WHERE, args![&infinite, Scalar::Int(0), &loss])?;
    }
    match a.text(ctc_loss::reduction) {
        "none" if !batched => e.apply(&SELECT, args![&loss, 0, 0]),
        "mean" => {
            let bytes: Vec<u8> = target.iter().flat_map(|&n| (n.max(1) as f64).to_ne_bytes()).collect();
            let counts = e.upload(&bytes, &[n], DType::F64, loss.device())?;
            let counts = e.cast(&counts, loss.dtype())?;
            let loss = e.div(&loss, &counts)?;
            reduced(e, loss, "mean")
        }
        reduction => reduced(e, loss, reduction),
    }
}

pub static ROWS: &[&Op] = &[&CTC_LOSS, &LOSSES, &LOSSES_GRAD];
