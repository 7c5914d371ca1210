//! The device of a call: the common device of its operands.

use super::engine::Engine;
use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::op::args::Args;
use crate::op::infer::Operand;
use crate::op::rows::pointwise::arith::MOVE;
use crate::op::tensor::Tensor;
use smallvec::SmallVec;

impl Engine {
    /// A kernel's operands, on its device: 0-dimensional tensors of the host are copied to it.
    pub(super) fn on_device(
        &mut self,
        tensors: SmallVec<[Tensor; 4]>,
        device: DeviceId,
    ) -> Result<SmallVec<[Tensor; 4]>> {
        if tensors.iter().all(|tensor| tensor.device() == device) {
            return Ok(tensors);
        }
        let bring = |tensor: &Tensor| {
            if tensor.device() == device {
                return Ok(tensor.clone());
            }
            let moved = args![tensor, device, tensor.dtype()];
            self.without_recording(|e| e.call_row(&MOVE, moved))
        };
        tensors.iter().map(bring).collect()
    }

    pub(super) fn device_of(&self, operands: &[Operand<'_>]) -> Result<DeviceId> {
        let mut devices = operands.iter().filter_map(Operand::view).map(|view| view.buffer.device);
        if let Some(first) = devices.next()
            && devices.all(|device| device == first)
        {
            return Ok(first);
        }
        common_device(operands.iter().filter_map(|operand| match operand {
            Operand::Tensor(tensor, _) => Some(*tensor),
            Operand::Number(_) => None,
        }))
        .map(|device| device.unwrap_or_else(|| self.rt.default_device()))
    }
}

/// The device that all tensors share; a 0-dimensional CPU tensor is accepted with any.
pub fn common_device<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Result<Option<DeviceId>> {
    let mut found: Option<&Tensor> = None;
    for tensor in tensors {
        match found {
            None => found = Some(tensor),
            Some(first) if first.device() == tensor.device() => {}
            Some(first) if first.device() == DeviceId::Cpu && first.ndim() == 0 => found = Some(tensor),
            Some(_) if tensor.device() == DeviceId::Cpu && tensor.ndim() == 0 => {}
            Some(first) => return Err(device_mismatch(first, tensor)),
        }
    }
    Ok(found.map(Tensor::device))
}

/// The same error of an operation that other rows make up, told of its own tensors in their order: whatever order the
/// parts have, the receiver comes first.
#[cold]
pub(super) fn as_written(diag: Box<Diag>, args: &Args) -> Box<Diag> {
    match (diag.code, common_device(args.tensors().iter())) {
        (code::DEVICE_MISMATCH, Err(own)) => own,
        _ => diag,
    }
}

#[cold]
fn device_mismatch(first: &Tensor, second: &Tensor) -> Box<Diag> {
    let (a, b) = (first.device(), second.device());
    let label = |diag: Box<Diag>, tensor: &Tensor| {
        let device = tensor.device();
        let (at, is_moved) = tensor.came();
        let text = if is_moved { format!("moved here, to {device}") } else { format!("made here, on {device}") };
        diag.label(at, Focus::Expression, text)
    };
    let diag = Diag::error(code::DEVICE_MISMATCH, format!("operands are on different devices: {a} and {b}")).label(
        Origin::NONE,
        Focus::Call,
        "in this call",
    );
    label(label(diag, first), second).help(format!("move one of them, for example with `.to(\"{a}\")`"))
}
