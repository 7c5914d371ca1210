//! `to`: another dtype, another device, or both; the same tensor when nothing changes.

use super::engine::Engine;
use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::arith;
use crate::op::rows::shape::view;
use crate::op::tensor::Tensor;

/// What `to` asks for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wanted {
    pub dtype: Option<DType>,
    pub device: Option<DeviceId>,
    pub copy: bool,
    pub non_blocking: bool,
}

impl Wanted {
    /// On this device, else as it is.
    pub fn on(device: DeviceId) -> Wanted {
        Wanted { device: Some(device), ..Wanted::default() }
    }
}

/// The tensor as wanted. A copy between devices is ordered against both devices' current streams.
pub fn to(e: &mut Engine, x: &Tensor, wanted: Wanted) -> Result<Tensor> {
    let dtype = wanted.dtype.unwrap_or(x.dtype());
    let device = wanted.device.unwrap_or(x.device());
    if device == x.device() {
        if dtype != x.dtype() {
            return (e as &mut dyn Emit).cast(x, dtype);
        }
        return if wanted.copy { e.call_row(&view::CLONE, args![x]) } else { Ok(x.clone()) };
    }
    let outer = (e.non_blocking, e.pinned);
    // A copy to the host that need not have ended lands in pinned memory, as in PyTorch.
    (e.non_blocking, e.pinned) = (wanted.non_blocking, wanted.non_blocking);
    let moved = e.call_row(&arith::MOVE, args![x, device, dtype]);
    (e.non_blocking, e.pinned) = outer;
    moved
}

/// The same values in host memory that devices copy from while the host goes on; the same tensor where it has it.
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

/// What `make` makes on the CPU lies in host memory that devices copy from while the host goes on.
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
