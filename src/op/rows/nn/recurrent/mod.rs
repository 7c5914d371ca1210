//! One direction of one recurrent layer over all its steps, for `nn::lstm`, `nn::gru` and `nn::rnn`.

mod gradient;

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::recurrent;
use crate::kernel::recurrent::layer::{Layer, Mode};
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns, Save};
use crate::op::rows::nn::windows::float_only;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(steps(
    input: Tensor, weight_ih: Tensor, weight_hh: Tensor, hx: Tensor, cx: Tensor = None, bias_ih: Tensor = None,
    bias_hh: Tensor = None, mode: Int, batch_first: Bool, reverse: Bool, keeps: Bool,
));

/// The kernel. Results: output, what the gradient reads (nothing unless `keeps`), the last state and for LSTM the last cell.
static STEPS: Op = Op {
    name: "_recurrent",
    params: steps::PARAMS,
    summary: "All steps of a recurrent layer.",
    lower: Lower::Kernel(|e, a| {
        let (x, hx, cx) = (a.tensor(steps::input), a.tensor(steps::hx), a.opt_tensor(steps::cx));
        let call = KernelCall::new("recurrent", &recurrent::RECURRENT)
            .inputs([x, a.tensor(steps::weight_ih), a.tensor(steps::weight_hh), hx])
            .inputs(cx)
            .inputs(a.opt_tensor(steps::bias_ih))
            .inputs(a.opt_tensor(steps::bias_hh));
        let (mut shape, dtype, hidden) = (x.shape(), x.dtype(), hx.shape()[1]);
        shape[2] = hidden;
        let call = settings(call, a).output(&shape, dtype);
        let call = call.output(&kept(e, a), wide(dtype)).output(&hx.shape(), dtype);
        Ok(cx.iter().fold(call, |call, cx| call.output(&cx.shape(), dtype)))
    }),
    saves: &[
        Save::In(steps::input),
        Save::In(steps::weight_ih),
        Save::In(steps::weight_hh),
        Save::In(steps::hx),
        Save::In(steps::cx),
        Save::In(steps::bias_ih),
        Save::In(steps::bias_hh),
        Save::Out(0),
        Save::Out(1),
    ],
    grad: Grad::Rule(gradient::of_steps),
    call: CallForm::Internal,
    ..Op::BASE
};

/// The shape of what the gradient reads: in the order of the input, or of one dim where a library of the device keeps it.
fn kept(e: &mut dyn Emit, a: &Args) -> Shape {
    let (x, hidden) = (a.tensor(steps::input), a.tensor(steps::hx).shape()[1]);
    let (mut shape, mode, batch_first) = (x.shape(), Mode::of(a.int(steps::mode)), a.flag(steps::batch_first));
    if a.flag(steps::keeps) {
        let (steps, batch) = if batch_first { (shape[1], shape[0]) } else { (shape[0], shape[1]) };
        let reverse = a.flag(steps::reverse);
        let layer = Layer { mode, steps, batch, inputs: shape[2], hidden, batch_first, reverse };
        let biased = a.opt_tensor(steps::bias_ih).is_some();
        let bytes = e.recurrent_reserve(&layer, x.dtype(), biased, x.device());
        if bytes > 0 {
            return Shape::from_slice(&[bytes.div_ceil(wide(x.dtype()).size_bytes())]);
        }
    }
    shape[2] = if a.flag(steps::keeps) { mode.kept() * hidden } else { 0 };
    shape
}

fn settings(call: KernelCall, a: &Args) -> KernelCall {
    call.int(a.int(steps::mode)).flag(a.flag(steps::batch_first)).flag(a.flag(steps::reverse))
}

/// What a dtype is computed in.
fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

signature!(layer(
    input: Tensor, weight_ih: Tensor, weight_hh: Tensor, hx: Tensor, cx: Tensor = None, bias_ih: Tensor = None,
    bias_hh: Tensor = None, mode: Str(&Mode::NAMES), batch_first: Bool = false, reverse: Bool = false,
));

/// For the modules of `std/nn/recurrent.rhai`. Gives the output, the last state and for LSTM the last cell.
static LAYER: Op = Op {
    name: "_recurrent",
    params: layer::PARAMS,
    summary: "One direction of a recurrent layer.",
    lower: Lower::Compose(|e, a| {
        check(a)?;
        let tensors = (layer::input..=layer::bias_hh).map(|at| a.get(at));
        let trained = tensors.filter_map(|arg| arg.as_tensor()).any(Tensor::requires_grad);
        let mode = Mode::NAMES.iter().position(|name| *name == a.text(layer::mode)).unwrap_or_default();
        let (batch_first, reverse) = (a.flag(layer::batch_first), a.flag(layer::reverse));
        let mut all = args![mode as i64, batch_first, reverse, e.grad_enabled() && trained].0;
        all.insert_many(0, (layer::input..=layer::bias_hh).map(|at| a.get(at).clone()));
        let mut made = e.apply(&STEPS, Args(all))?;
        made.remove(1);
        Ok(made)
    }),
    grad: Grad::Composed,
    call: CallForm::Function,
    results: Returns::List,
    ..Op::BASE
};

fn check(a: &Args) -> Result<()> {
    const NAMES: [&str; 7] = ["input", "weight_ih", "weight_hh", "hx", "cx", "bias_ih", "bias_hh"];
    let x = a.tensor(layer::input);
    float_only(x, "input")?;
    let given = NAMES.iter().enumerate().filter_map(|(at, name)| Some((*name, a.opt_tensor(at)?)));
    let given: Vec<(&str, &Tensor)> = given.collect();
    infer::same_dtype(&given)?;
    let (shape, state) = (x.shape(), a.tensor(layer::hx).shape());
    if shape.len() != 3 || state.len() != 2 || shape.contains(&0) {
        fail!(SHAPE, "`input` of shape {:?} has no steps of samples", shape.as_slice());
    }
    let gates = match a.text(layer::mode) {
        "lstm" => 4,
        "gru" => 3,
        _ => 1,
    };
    let (batch, hidden) = (shape[if a.flag(layer::batch_first) { 0 } else { 1 }], state[1]);
    let width = gates * hidden;
    let expected: [&[usize]; 7] =
        [&shape, &[width, shape[2]], &[width, hidden], &[batch, hidden], &[batch, hidden], &[width], &[width]];
    for (at, expected) in expected.into_iter().enumerate() {
        if let Some(tensor) = a.opt_tensor(at).filter(|tensor| tensor.shape()[..] != *expected) {
            fail!(SHAPE, "`{}` has shape {:?}, not {expected:?}", NAMES[at], tensor.shape().as_slice());
        }
    }
    if a.is_none(layer::bias_ih) != a.is_none(layer::bias_hh) || a.is_none(layer::cx) == (gates == 4) {
        fail!(MISSING_ARGUMENT, "both biases are given or none, and a cell for LSTM alone");
    }
    Ok(())
}

pub static ROWS: &[&Op] = &[&LAYER, &STEPS];
