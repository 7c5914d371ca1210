//! One tensor on several devices, for a module that works on all of them at once.

use crate::args;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, Returns};
use crate::op::rows::pointwise::arith::MOVE;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(spread(input: Tensor, copies: Tensors));

/// The tensor and its copies on other devices, as separate results. The caller guarantees that the copies hold the
/// tensor's values; nothing is copied here.
pub static SPREAD: Op = Op {
    name: "spread",
    params: spread::PARAMS,
    summary: "The tensor and its copies on other devices, whose gradients come together.",
    lower: Lower::Steps(|e, a| {
        let own = e.detach(a.input());
        let copies: Vec<Tensor> = a.tensor_list(spread::copies).iter().map(|copy| e.detach(copy)).collect();
        Ok(std::iter::once(own).chain(copies).collect())
    }),
    grad: Grad::Rule(|e, v| {
        Ok(vec![sum(e, v.grads.iter().flatten().cloned().collect(), v.meta(spread::input).device)?])
    }),
    results: Returns::List,
    call: CallForm::Internal,
    ..Op::BASE
};

/// The sum of tensors on several devices, on one of them: in pairs, so that half of the copies of a round travel at
/// once.
fn sum(e: &mut dyn Emit, mut parts: Vec<Tensor>, home: DeviceId) -> Result<Option<Tensor>> {
    let moved = |e: &mut dyn Emit, x: &Tensor, to: DeviceId| {
        if x.device() == to { Ok(x.clone()) } else { e.call(&MOVE, args![x, to, x.dtype()]) }
    };
    while parts.len() > 1 {
        let half = parts.len().div_ceil(2);
        let later = parts.split_off(half);
        for (part, other) in parts.iter_mut().zip(&later) {
            let other = moved(e, other, part.device())?;
            *part = e.add(part, &other)?;
        }
    }
    parts.pop().map(|sum| moved(e, &sum, home)).transpose()
}

pub static ROWS: &[&Op] = &[&SPREAD];
