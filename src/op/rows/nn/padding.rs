//! Padding by a constant, by reflection, by the edge, around the end.

use crate::args;
use crate::base::attr::{Attr, Ints};
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::resample;
use crate::op::args::Args;
use crate::op::emit::{Emit, KernelCall};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::pointwise::arith::element_of;
use crate::op::rows::shape::view::{CLONE, STRAIGHT};
use crate::op::tensor::Tensor;
use crate::signature;

/// Sizes after padding: the list goes from the last dim on, before and after.
fn padded(shape: &[usize], pads: &[i64]) -> Result<Shape> {
    if !pads.len().is_multiple_of(2) {
        fail!(VALUE, "the pads come in pairs, but {} are given", pads.len());
    }
    if pads.len() / 2 > shape.len() {
        fail!(VALUE, "pads for {} dimensions, the tensor has {}", pads.len() / 2, shape.len());
    }
    let mut sizes: Ints = shape.iter().map(|&n| n as i64).collect();
    for (k, pair) in pads.chunks_exact(2).enumerate() {
        let dim = shape.len() - 1 - k;
        let size = sizes[dim].saturating_add(pair[0]).saturating_add(pair[1]);
        if size < 0 || sizes[dim] + pair[0].min(0) + pair[1].min(0) < 0 {
            return Err(Diag::error(
                code::VALUE,
                format!("pads {} and {} leave nothing of dimension {dim} of size {}", pair[0], pair[1], sizes[dim]),
            ));
        }
        sizes[dim] = size;
    }
    infer::shape(&sizes)
}

signature!(pad_constant(input: Tensor, pad: Ints, value: Number = 0));

pub static PAD_CONSTANT: Op = Op {
    name: "constant_pad_nd",
    params: pad_constant::PARAMS,
    summary: "Puts a constant around the tensor; a negative pad cuts.",
    examples: &[
        ex("constant_pad_nd(tensor([1]), [1, 2])", "tensor([0, 1, 0, 0])"),
        ex("constant_pad_nd(ones([1]), [1])", "E0206"),
        ex("constant_pad_nd(ones([1], #{dtype: \"u8\"}), [1, 1], 300)", "E0206"),
    ],
    lower: Lower::Kernel(|_, a| {
        let (x, pads) = (a.input(), a.ints(pad_constant::pad).unwrap_or_default());
        let value = element_of(a.scalar(pad_constant::value).unwrap_or(Scalar::Int(0)), x.dtype())?;
        let call = KernelCall::new("pad", &resample::PAD_CONSTANT).input(x).ints(&pads).attr(Attr::Scalar(value));
        Ok(call.output(&padded(&x.shape(), &pads)?, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let back: Ints = v.args.ints(pad_constant::pad).unwrap_or_default().iter().map(|&n| -n).collect();
        Ok(vec![Some(e.call(&PAD_CONSTANT, args![v.g(), back, 0])?)])
    }),
    call: CallForm::Function,
    forward: crate::op::row::Forward::Rule(|e, v| {
        let pads = v.args.ints(pad_constant::pad).unwrap_or_default();
        e.call(&PAD_CONSTANT, args![v.tangent(), pads, 0]).map(Some)
    }),
    ..Op::BASE
};

signature!(pad_own(input: Tensor, pad: Ints, mode: Text));

/// Internal: the modes that repeat the tensor's own elements. Checked by `pad`.
static PAD_OWN: Op = Op {
    name: "pad",
    params: pad_own::PARAMS,
    summary: "Surrounds the tensor by its own elements.",
    lower: Lower::Kernel(|_, a| {
        let (x, pads) = (a.input(), a.ints(pad_own::pad).unwrap_or_default());
        let call = KernelCall::new("pad", &resample::PAD).input(x).ints(&pads).attr(a.attr(pad_own::mode).clone());
        Ok(call.output(&padded(&x.shape(), &pads)?, x.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let pads = v.args.ints(pad_own::pad).unwrap_or_default();
        let shape = v.meta(pad_own::input).shape.clone();
        Ok(vec![Some(e.call(&PAD_GRAD, args![v.g(), pads, v.args.attr(pad_own::mode).clone(), shape.as_slice()])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

signature!(pad_grad(input: Tensor, pad: Ints, mode: Text, shape: Ints));

/// Internal: the gradient of `PAD_OWN`, linear in its operand.
static PAD_GRAD: Op = Op {
    name: "pad",
    params: pad_grad::PARAMS,
    summary: "Adds padding back onto the elements that it shows.",
    lower: Lower::Kernel(|_, a| {
        let g = a.input();
        let call =
            KernelCall::new("pad", &resample::PAD_GRAD).input(g).ints(&a.ints(pad_grad::pad).unwrap_or_default());
        let shape = infer::shape(&a.ints(pad_grad::shape).unwrap_or_default())?;
        Ok(call.attr(a.attr(pad_grad::mode).clone()).output(&shape, g.dtype()))
    }),
    grad: Grad::Rule(|e, v| {
        let pads = v.args.ints(pad_grad::pad).unwrap_or_default();
        Ok(vec![Some(e.call(&PAD_OWN, args![v.g(), pads, v.args.attr(pad_grad::mode).clone()])?)])
    }),
    call: CallForm::Internal,
    forward: crate::op::row::Forward::Linear(&[0]),
    ..Op::BASE
};

fn check_own(x: &Tensor, pads: &[i64], mode: &str) -> Result<()> {
    let (shape, dims) = (x.shape(), pads.len() / 2);
    padded(&shape, pads)?;
    if !(1..=3).contains(&dims) || !(dims + 1..=dims + 2).contains(&shape.len()) {
        return Err(Diag::error(
            code::SHAPE,
            format!(
                "\"{mode}\" pads the last 1, 2 or 3 dimensions of a tensor with 1 or 2 more, not {dims} of {}",
                shape.len()
            ),
        ));
    }
    for (k, pair) in pads.chunks_exact(2).enumerate() {
        let dim = shape.len() - 1 - k;
        let n = shape[dim] as i64;
        let most = match mode {
            "reflect" => n - 1,
            "circular" => n,
            _ => i64::MAX,
        };
        if pair[0] > most || pair[1] > most {
            fail!(
                VALUE,
                "pads {} and {} of dimension {dim} exceed {most}, the most for \"{mode}\" and size {n}",
                pair[0],
                pair[1]
            );
        }
        if n == 0 {
            fail!(SHAPE, "dimension {dim} is empty: it has no elements to repeat");
        }
    }
    // Only the batch dimension may be empty.
    let first = shape.len() - dims;
    if shape[if shape.len() == dims + 2 { 1 } else { 0 }..first].contains(&0) {
        fail!(SHAPE, "shape {:?} has no elements to repeat", shape.as_slice());
    }
    Ok(())
}

fn pad_any(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let (x, pads, mode) = (a.input(), a.ints(pad_args::pad).unwrap_or_default(), a.text(pad_args::mode));
    if mode == "constant" {
        let value = a.scalar(pad_args::value).unwrap_or(Scalar::Int(0));
        return e.apply(&PAD_CONSTANT, args![x, pads, value]);
    }
    if a.scalar(pad_args::value).is_some_and(|value| value.to_f64() != 0.0) {
        fail!(VALUE, "a value goes with the mode \"constant\" only");
    }
    check_own(x, &pads, mode)?;
    if pads.iter().all(|&n| n == 0) {
        return e.apply(&CLONE, args![x]);
    }
    if mode == "circular" && pads.iter().any(|&n| n < 0) {
        // What is cut off does not come round.
        let (cut, rest): (Ints, Ints) = pads.iter().map(|&n| (n.min(0), n.max(0))).unzip();
        let x = e.call(&PAD_CONSTANT, args![x, cut, 0])?;
        return e.apply(&PAD_OWN, args![&x, rest, a.attr(pad_args::mode).clone()]);
    }
    let x = if mode == "circular" { x.clone() } else { e.call(&STRAIGHT, args![x, ()])? };
    e.apply(&PAD_OWN, args![&x, pads, a.attr(pad_args::mode).clone()])
}

signature!(pad_args(
    input: Tensor, pad: Ints, mode: Str(&["constant", "reflect", "replicate", "circular"]) = "constant",
    value: Number = None,
));

pub static PAD: Op = Op {
    name: "pad",
    params: pad_args::PARAMS,
    summary: "Surrounds the last dimensions by a constant or by the tensor's own elements.",
    details: "`pad` lists before and after for the last dimension, then for the one before it, and so on; negative \
              pads cut.",
    examples: &[
        ex("pad(tensor([1, 2]), [1, 1])", "tensor([0, 1, 2, 0])"),
        ex("pad(tensor([[1, 2, 3]]), [1, 1], \"reflect\")", "tensor([[2, 1, 2, 3, 2]])"),
        ex("pad(ones([2]), [1])", "E0206"),
        ex("pad(ones([2]), [1, 1], \"reflect\")", "E0201"),
    ],
    lower: Lower::Compose(pad_any),
    grad: Grad::Composed,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&PAD_CONSTANT, &PAD_OWN, &PAD_GRAD, &PAD];
