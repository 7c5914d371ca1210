//! Gradients are clipped, by their common norm or element by element: in place and outside the gradient graph.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::kernel::program::ReduceKind;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, ReduceType};
use crate::op::rows::optim::step::each;
use crate::op::rows::pointwise::arith::{DIV, POW};
use crate::op::rows::pointwise::blend::CLAMP;
use crate::op::rows::pointwise::power::MAXIMUM;
use crate::op::rows::pointwise::unary::{ABS, SQRT};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::tensor::Tensor;
use crate::signature;

fn float(x: f64) -> Scalar {
    Scalar::Float(x)
}

signature!(largest(params: Tensors, dim: Dims = None));

/// The largest of everything; never differentiated.
static LARGEST: Op = Op {
    name: "_clip_grad_norm",
    params: largest::PARAMS,
    summary: "The largest element.",
    lower: Lower::Reduce { kind: ReduceKind::Max, dtype: ReduceType::Same },
    grad: Grad::Stop("optimizer steps are not differentiated"),
    call: CallForm::Internal,
    ..Op::BASE
};

/// The p-norm of all elements of all tensors, of no dimensions; f32 at least.
fn total_norm(e: &mut dyn Emit, grads: &[Tensor], p: f64) -> Result<Option<Tensor>> {
    let mut total: Option<Tensor> = None;
    for g in grads.iter().filter(|g| g.numel() > 0) {
        let wide = if g.dtype().real_part() == DType::F64 { DType::F64 } else { DType::F32 };
        let g = if g.dtype().is_complex() { e.call(&ABS, args![g])? } else { e.cast(g, wide)? };
        let size = if p == 2.0 { e.mul(&g, &g)? } else { e.call(&ABS, args![&g])? };
        let own = match p {
            f64::INFINITY => e.call(&LARGEST, args![&size])?,
            1.0 | 2.0 => e.call(&SUM, args![&size])?,
            _ => {
                let power = e.call(&POW, args![&size, float(p)])?;
                e.call(&SUM, args![&power])?
            }
        };
        total = Some(match total {
            None => own,
            Some(total) if p == f64::INFINITY => e.call(&MAXIMUM, args![&total, &own])?,
            Some(total) => e.add(&total, &own)?,
        });
    }
    let Some(total) = total else { return Ok(None) };
    Ok(Some(match p {
        f64::INFINITY | 1.0 => total,
        2.0 => e.call(&SQRT, args![&total])?,
        _ => e.call(&POW, args![&total, float(1.0 / p)])?,
    }))
}

signature!(clip_norm(grads: Tensors, max_norm: Float, norm_type: Float = 2.0));

/// Scales the gradients so that their common norm is at most `max_norm`; returns the norm before.
static CLIP_NORM: Op = Op {
    name: "_clip_grad_norm",
    params: clip_norm::PARAMS,
    summary: "Clips gradients by their common norm.",
    lower: Lower::Steps(|e, a| {
        let (grads, p) = (a.tensor_list(clip_norm::grads), a.float(clip_norm::norm_type));
        if p <= 0.0 || p.is_nan() {
            fail!(VALUE, "`norm_type` must be positive, not {p}");
        }
        let Some(total) = total_norm(e, grads, p)? else {
            let (dtype, device) = (e.default_float(), e.default_device());
            return Ok(vec![e.source(crate::op::row::Source::Fill(float(0.0)), &[], dtype, device)?]);
        };
        let safe = e.add(&total, float(1e-6))?;
        let factor = e.rev(&DIV, float(a.float(clip_norm::max_norm)), &safe)?;
        let factor = e.call(&CLAMP, args![&factor, (), float(1.0)])?;
        let factors = grads.iter().map(|g| e.cast(&factor, g.dtype().real_part())).collect::<Result<Vec<Tensor>>>()?;
        each(e, &[grads, &factors], |f| {
            f.set(0, f.get(0) * f.get(1));
        })?;
        Ok(vec![total])
    }),
    grad: Grad::Stop("clipping is not differentiated"),
    call: CallForm::Function,
    ..Op::BASE
};

signature!(clip_value(grads: Tensors, clip_value: Float));

/// Clamps every element of the gradients to -value and value.
static CLIP_VALUE: Op = Op {
    name: "_clip_grad_value",
    params: clip_value::PARAMS,
    summary: "Clips gradients element by element.",
    lower: Lower::Steps(|e, a| {
        let value = a.float(clip_value::clip_value);
        each(e, &[a.tensor_list(clip_value::grads)], |f| {
            f.set(0, f.get(0).max(-value).min(value));
        })
    }),
    grad: Grad::Stop("clipping is not differentiated"),
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&LARGEST, &CLIP_NORM, &CLIP_VALUE];
