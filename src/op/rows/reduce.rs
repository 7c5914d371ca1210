//! Reductions over all, one or several dims.

use crate::args;
use crate::base::diag::Result;
use crate::base::layout::Shape;
use crate::kernel::program::ReduceKind;
use crate::op::emit::{Backward, Emit};
use crate::op::infer;
use crate::op::row::{Default, Grad, Kind, Lower, Op, Param, ReduceType, ex};
use crate::op::rows::view::{EXPAND, RESHAPE};
use crate::op::tensor::Tensor;

pub const X: Param = Param::new("input", Kind::Tensor);
pub const DIMS: Param = Param::opt("dim", Kind::Dims, Default::None);
pub const KEEPDIM: Param = Param::opt("keepdim", Kind::Bool, Default::Bool(false));
pub const DTYPE: Param = Param::opt("dtype", Kind::DType, Default::None);

/// A gradient of a reduction's result, spread over the reduced dims again. Arguments: `x, dim, keepdim`.
pub fn spread(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Tensor> {
    let shape = v.meta(0).shape.clone();
    let dims = infer::dims(v.args.ints(1).as_ref(), shape.len())?;
    let kept: Shape = infer::reduced_shape(&shape, &dims, true);
    let g = e.call(&RESHAPE, args![g, kept.as_slice()])?;
    e.call(&EXPAND, args![&g, shape.as_slice()])
}

pub static SUM: Op = Op {
    name: "sum",
    params: &[X, DIMS, KEEPDIM, DTYPE],
    summary: "Sums over all, one or several dims; integers and bool sum to i64.",
    examples: &[
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]).sum()", "tensor(10.)"),
        ex("tensor([[1.0, 2.0], [3.0, 4.0]]).sum(1)", "tensor([3., 7.])"),
        ex("tensor([1.0]).sum(3)", "E0209"),
    ],
    lower: Lower::Reduce { kind: ReduceKind::Sum, dtype: ReduceType::Sum },
    grad: Grad::Rule(|e, v| {
        let g = spread(e, v, v.g())?;
        Ok(vec![Some(g)])
    }),
    oracle: "torch.sum(a)",
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&SUM];
