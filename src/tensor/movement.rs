//! `to`: another dtype, another device, or both; the same tensor when nothing changes.

use super::engine::Engine;
use crate::args;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::op::emit::Emit;
use crate::op::rows::{arith, view};
use crate::op::tensor::Tensor;

/// What `to` asks for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wanted {
    pub dtype: Option<DType>,
    pub device: Option<DeviceId>,
    pub copy: bool,
    pub non_blocking: bool,
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
    e.call_row(&arith::MOVE, args![x, device, dtype])
}
