//! Tensors from nothing: constants, ranges, random values.

use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::row::{CallForm, Default, Grad, Kind, Lower, Op, Param, Source, ex};
use crate::op::tensor::Tensor;

pub const SIZE: Param = Param::new("size", Kind::Sizes);
pub const DTYPE: Param = Param::opt("dtype", Kind::DType, Default::None);
pub const DEVICE: Param = Param::opt("device", Kind::Device, Default::None);
pub const REQUIRES_GRAD: Param = Param::opt("requires_grad", Kind::Bool, Default::Bool(false));

/// Sets `requires_grad` on a new tensor when the arguments say so.
pub fn leaf(a: &Args, at: usize, tensor: Tensor) -> Result<Vec<Tensor>> {
    if a.flag(at) {
        if !tensor.dtype().is_float() {
            crate::fail!(DTYPE, "only floating-point tensors can require gradients, not {}", tensor.dtype());
        }
        tensor.0.auto.lock().requires_grad = true;
        tensor.set_tracked(true);
    }
    Ok(vec![tensor])
}

/// A tensor filled with one value; arguments `size, dtype, device, requires_grad` from `at` on.
fn filled(e: &mut dyn Emit, a: &Args, value: Scalar, at: usize) -> Result<Vec<Tensor>> {
    let shape = infer::shape(&a.ints(0).unwrap_or_default())?;
    let dtype = a.dtype(at).unwrap_or_else(|| match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => e.default_float(),
    });
    let device = a.device(at + 1).unwrap_or_else(|| e.default_device());
    let tensor = e.source(Source::Fill(value), &shape, dtype, device)?;
    leaf(a, at + 2, tensor)
}

pub static ONES: Op = Op {
    name: "ones",
    params: &[SIZE, DTYPE, DEVICE, REQUIRES_GRAD],
    summary: "Makes a tensor of ones.",
    examples: &[ex("ones([2, 2])", "tensor([[1., 1.],\n        [1., 1.]])"), ex("ones([-1])", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, Scalar::Float(1.0), 1)),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.ones(2, 2)",
    ..Op::BASE
};

pub static ZEROS: Op = Op {
    name: "zeros",
    params: &[SIZE, DTYPE, DEVICE, REQUIRES_GRAD],
    summary: "Makes a tensor of zeros.",
    examples: &[ex("zeros([2])", "tensor([0., 0.])"), ex("zeros([-1])", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, Scalar::Float(0.0), 1)),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.zeros(2)",
    ..Op::BASE
};

pub static FULL: Op = Op {
    name: "full",
    params: &[SIZE, Param::new("fill_value", Kind::Number), DTYPE, DEVICE, REQUIRES_GRAD],
    summary: "Makes a tensor filled with one value; its dtype follows the value unless given.",
    examples: &[ex("full([2], 7)", "tensor([7, 7])"), ex("full([-1], 7)", "E0206")],
    lower: Lower::Compose(|e, a| filled(e, a, a.scalar(1).unwrap_or(Scalar::Int(0)), 2)),
    grad: Grad::Composed,
    call: CallForm::Function,
    oracle: "torch.full((2,), 7)",
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&ONES, &ZEROS, &FULL];
