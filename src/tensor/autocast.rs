//! Calls under autocast: operands are cast as the operation's list says, by ordinary casts, so that gradients flow back
//! through them. Only a call of the script is cast; what it is composed of takes what it gets, unless the list leaves it
//! to the parts. Backward calls rows under the name of their forward operation: it is never cast.

use super::engine::{Engine, Results};
use super::history;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::autocast::{Policy, policy};
use crate::op::emit::Emit;
use crate::op::row::Op;
use crate::op::tensor::Tensor;

/// As `Engine::results`, with cast operands.
#[inline(never)]
pub(super) fn results(e: &mut Engine, op: &'static Op, args: &Args) -> Result<Results> {
    let mut is_cuda = false;
    args.for_each_tensor(|tensor| is_cuda |= tensor.device().is_cuda());
    let mode = *e.rt.autocast.modes().of(is_cuda);
    let policy = if mode.enabled { policy(op, is_cuda) } else { None };
    let inside = policy == Some(Policy::Parts) || policy.is_none() && e.casts_parts;
    let outer = std::mem::replace(&mut e.casts_parts, inside);
    let result = called(e, op, args, policy, mode.dtype, is_cuda);
    e.casts_parts = outer;
    result
}

fn called(
    e: &mut Engine,
    op: &'static Op,
    args: &Args,
    policy: Option<Policy>,
    low: DType,
    is_cuda: bool,
) -> Result<Results> {
    let wanted = match policy {
        None | Some(Policy::Parts) => None,
        Some(Policy::Refused) => return refused(),
        Some(Policy::F32) if says_dtype(op, args) => None,
        Some(Policy::F32Unless(name, text)) if says(op, args, name, text) => None,
        Some(Policy::Low) => Some(low),
        Some(Policy::F32 | Policy::F32Unless(..)) => Some(DType::F32),
        Some(Policy::Widest) => {
            let mut widest = low;
            args.for_each_tensor(|tensor| {
                if is_cast(tensor, is_cuda) && tensor.dtype() != low {
                    widest = DType::F32;
                }
            });
            Some(widest)
        }
    };
    let mut differs = false;
    if let Some(to) = wanted {
        args.for_each_tensor(|tensor| differs |= is_cast(tensor, is_cuda) && tensor.dtype() != to);
    }
    let Some(to) = wanted.filter(|_| differs) else { return e.as_given(op, args) };
    let mut cast = args.clone();
    e.named(op.name, |e| {
        let mut one = |tensor: &mut Tensor| -> Result<()> {
            if is_cast(tensor, is_cuda) && tensor.dtype() != to {
                *tensor = if to == low { kept(e, tensor, to)? } else { e.cast_to(tensor, to)? };
            }
            Ok(())
        };
        for arg in &mut cast.0 {
            match arg {
                Arg::Tensor(tensor) => one(tensor)?,
                Arg::Tensors(list) => list.iter_mut().try_for_each(&mut one)?,
                Arg::OptTensors(list) => list.iter_mut().flatten().try_for_each(&mut one)?,
                _ => {}
            }
        }
        Ok(())
    })?;
    e.as_given(op, &cast)
}

/// f32 and 16 bits, on the kind of devices that the operation runs on.
fn is_cast(tensor: &Tensor, is_cuda: bool) -> bool {
    matches!(tensor.dtype(), DType::F32 | DType::F16 | DType::BF16) && tensor.device().is_cuda() == is_cuda
}

fn says_dtype(op: &Op, args: &Args) -> bool {
    op.params.iter().position(|param| param.name == "dtype").is_some_and(|at| !args.is_none(at))
}

fn says(op: &Op, args: &Args, name: &str, text: &str) -> bool {
    op.params.iter().position(|param| param.name == name).is_some_and(|at| args.text(at) == text)
}

/// A weight is cast once in the outermost region.
fn kept(e: &mut Engine, x: &Tensor, to: DType) -> Result<Tensor> {
    let is_weight = x.dtype() == DType::F32 && x.0.auto.lock().requires_grad && history::is_leaf(x);
    if !is_weight || !e.rt.autocast.modes().keeps_casts {
        return e.cast_to(x, to);
    }
    let slot = e.rt.slot_of(x.device());
    if let Some(cast) = e.rt.autocast.kept(x, to, slot, e.grad_enabled()) {
        return Ok(cast);
    }
    let cast = e.cast_to(x, to)?;
    e.rt.autocast.keep(x, slot, &cast);
    Ok(cast)
}

#[cold]
fn refused() -> Result<Results> {
    fail!(
        DTYPE,
        "it is not safe under autocast: 16 bits round the probabilities near 0 and 1; write `binary_cross_entropy_with_logits` (`nn::bce_with_logits_loss`) of the values before the `sigmoid`"
    )
}
