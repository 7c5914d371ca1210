//! Gradients of a scaled loss: divided by the scale and looked at, in place and outside the gradient graph. Whether one
//! of them is not finite is a number on their device, which nobody waits for.

use crate::args;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::row::{CallForm, Grad, Lower, Op, Source};
use crate::op::rows::optim::step::each;
use crate::op::rows::pointwise::compare::NE;
use crate::op::rows::reduction::reduce::SUM;
use crate::op::tensor::Tensor;
use crate::signature;

signature!(unscale(grads: Tensors, inv_scale: Tensor));

/// All tensors are on one device. Gives 1 if an element was not finite before, otherwise 0.
static UNSCALE: Op = Op {
    name: "_unscale_grads",
    params: unscale::PARAMS,
    summary: "Multiplies gradients by a number, and tells whether one was not finite.",
    lower: Lower::Steps(|e, a| {
        let (grads, inv_scale) = (a.tensor_list(unscale::grads), a.tensor(unscale::inv_scale));
        if inv_scale.ndim() != 0 {
            fail!(SHAPE, "`inv_scale` is a tensor of no dimensions, not of shape {:?}", inv_scale.shape().as_slice());
        }
        let mut total: Option<Tensor> = None;
        for g in grads.iter().filter(|g| g.numel() > 0) {
            // 0 times what is finite is 0, otherwise NaN.
            let nothing = e.mul(g, Scalar::Float(0.0))?;
            let own = e.call(&SUM, args![&nothing])?;
            let own = e.cast(&own, DType::F32)?;
            total = Some(match total {
                None => own,
                Some(total) => e.add(&total, &own)?,
            });
        }
        let Some(total) = total else {
            return Ok(vec![e.source(Source::Fill(Scalar::Float(0.0)), &[], DType::F32, inv_scale.device())?]);
        };
        let is_nan = e.call(&NE, args![&total, &total])?;
        let found = e.cast(&is_nan, DType::F32)?;
        each(e, &[grads, std::slice::from_ref(inv_scale)], |f| {
            let g = f.get(0);
            f.set(0, g * g.number(1));
        })?;
        Ok(vec![found])
    }),
    grad: Grad::Stop("unscaling is not differentiated"),
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&UNSCALE];
