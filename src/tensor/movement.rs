//! `to`: another dtype, another device, or both; the same tensor if nothing changes.

use super::engine::Engine;
use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::MemoryFormat;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::arith;
use crate::op::rows::shape::view;
use crate::op::tensor::Tensor;

/// The target of `to`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Target {
    pub dtype: Option<DType>,
    pub device: Option<DeviceId>,
    pub copy: bool,
    pub non_blocking: bool,
    /// The order of the elements in memory; none for the order they have.
    pub format: Option<MemoryFormat>,
}

impl Target {
    /// On this device, otherwise unchanged.
    pub fn on(device: DeviceId) -> Target {
        Target { device: Some(device), ..Target::default() }
    }
}

/// The tensor with the target's dtype and device. A copy between devices is ordered against both devices' current
/// streams.
pub fn to(e: &mut Engine, x: &Tensor, target: Target) -> Result<Tensor> {
    let moved = moved(e, x, target)?;
    let Some(format) = target.format else { return Ok(moved) };
    // As in PyTorch a tensor that stays as it is only has to resemble the order.
    let fits = moved.with_view(|view| match moved.same(x) {
        true => MemoryFormat::suggested(&view.layout) == format,
        false => format.is_of(&view.layout),
    });
    if fits { Ok(moved) } else { e.call_row(&view::CLONE_AS_IT_LIES, args![&moved, format.name()]) }
}

/// In another dtype and on another device.
fn moved(e: &mut Engine, x: &Tensor, target: Target) -> Result<Tensor> {
    let dtype = target.dtype.unwrap_or(x.dtype());
    let device = target.device.unwrap_or(x.device());
    if device == x.device() {
        if dtype != x.dtype() {
            return (e as &mut dyn Emit).cast(x, dtype);
        }
        return if target.copy { e.call_row(&view::CLONE, args![x]) } else { Ok(x.clone()) };
    }
    let outer = (e.non_blocking, e.pinned);
    // A non-blocking copy to the host goes to pinned memory, as in PyTorch.
    (e.non_blocking, e.pinned) = (target.non_blocking, target.non_blocking);
    let moved = e.call_row(&arith::MOVE, args![x, device, dtype]);
    (e.non_blocking, e.pinned) = outer;
    moved
}

/// The same values in pinned host memory; the same tensor if it is pinned.
pub fn pin(e: &mut Engine, x: &Tensor) -> Result<Tensor> {
    if x.device().is_cuda() {
        let text = format!("only tensors of the CPU can be pinned, and this one is on {}", x.device());
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help("write `x.cpu().pin_memory()`"));
    }
    // Pinned memory belongs to the driver: without a GPU there is none.
    e.rt.current_cuda()?;
    if x.view().buffer.pinned {
        return Ok(x.clone());
    }
    e.pinned = true;
    let pinned = e.call_row(&view::CLONE, args![x]);
    e.pinned = false;
    pinned
}

/// Tensors that `make` creates on the CPU are in pinned memory.
pub fn pinned(e: &mut Engine, make: impl FnOnce(&mut Engine) -> Result<Tensor>) -> Result<Tensor> {
    e.rt.current_cuda()?;
    e.pinned = true;
    let made = make(e);
    e.pinned = false;
    let made = made?;
    if made.device().is_cuda() {
        let text = format!("only tensors of the CPU can be pinned, and this one is on {}", made.device());
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help("leave out `pin_memory`, or `device`"));
    }
    Ok(made)
}
