//! Recurrent layers by a library of the device, as cuDNN: data in the order in which steps are computed, and all weights beside
//! each other.

use super::layer::{Layer, Mode};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::address;
use crate::kernel::cuda::{Gpu, GpuError, RecurrentCall, RecurrentRoom, RecurrentTask};

/// A reserve of one dim is the library's.
fn is_librarys(reserve: &RawView) -> bool {
    reserve.shape.len() == 1
}

/// A tensor over all steps as the library takes it: the steps first, in the order in which they are computed.
fn in_order(view: &RawView, layer: &Layer) -> RawView {
    let mut view = view.clone();
    if layer.batch_first {
        view.shape.swap(0, 1);
        view.strides.swap(0, 1);
    }
    if layer.reverse {
        let last = (view.shape[0] as isize - 1) * view.strides[0] * view.dtype.size_bytes() as isize;
        view.ptr = view.ptr.wrapping_offset(last);
        view.strides[0] = -view.strides[0];
    }
    view
}

/// A part of the memory of all weights.
fn part(weights: *mut u8, offset: usize, like: &RawView, dtype: DType) -> RawView {
    RawView::contiguous(weights.wrapping_add(offset), dtype, &like.shape)
}

/// Both weights, and both biases if there are any, beside each other.
fn packed(room: &RecurrentRoom, given: &[&RawView], dtype: DType, gpu: &mut dyn Gpu) -> Result<*mut u8, GpuError> {
    let weights = gpu.scratch(room.weights)?;
    for (from, &offset) in given.iter().zip(&room.offsets) {
        copy_view(from, &part(weights, offset, from, dtype), gpu)?;
    }
    Ok(weights)
}

/// The layer by the library; false if it does not support it.
pub fn forward(layer: &Layer, call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<bool, GpuError> {
    let (dtype, is_lstm) = (call.outputs[0].dtype, layer.mode == Mode::Lstm);
    let reserve = &call.outputs[1];
    let keeps = is_librarys(reserve);
    if !keeps && reserve.numel() > 0 {
        return Ok(false);
    }
    let first = 4 + is_lstm as usize;
    let biases = call.inputs.get(first..first + 2).unwrap_or(&[]);
    let biased = !biases.is_empty();
    let Some(room) = gpu.recurrent_room(layer, dtype, biased)? else { return Ok(false) };
    let given: Vec<&RawView> = call.inputs[1..3].iter().chain(biases).collect();
    let weights = packed(&room, &given, dtype, gpu)?;
    let x = input(&in_order(&call.inputs[0], layer), dtype, gpu)?;
    let hx = input(&call.inputs[3], dtype, gpu)?;
    let cx = if is_lstm { Some(input(&call.inputs[4], dtype, gpu)?) } else { None };
    let y = Output::new(&in_order(&call.outputs[0], layer), dtype, gpu)?;
    let hy = Output::new(&call.outputs[2], dtype, gpu)?;
    let cy = if is_lstm { Some(Output::new(&call.outputs[3], dtype, gpu)?) } else { None };
    gpu.recurrent(&RecurrentCall {
        layer: *layer,
        dtype,
        biased,
        x: x.ptr,
        y: y.dense.ptr,
        hx: hx.ptr,
        cx: address(cx.as_ref()),
        weights,
        reserve: if keeps { reserve.ptr } else { std::ptr::null_mut() },
        task: RecurrentTask::Forward { hy: hy.dense.ptr, cy: address(cy.as_ref().map(|cy| &cy.dense)) },
    })?;
    y.finish(gpu)?;
    hy.finish(gpu)?;
    cy.map_or(Ok(()), |cy| cy.finish(gpu))?;
    Ok(true)
}

/// The gradient by the library; false if our own kernels kept what it needs.
pub fn gradient(layer: &Layer, call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<bool, GpuError> {
    let (dtype, is_lstm) = (call.outputs[1].dtype, layer.mode == Mode::Lstm);
    let first = 4 + is_lstm as usize;
    let reserve = &call.inputs[first + 1];
    if !is_librarys(reserve) {
        return Ok(false);
    }
    let biases = call.outputs.get(first..first + 2).unwrap_or(&[]);
    let biased = !biases.is_empty();
    let bytes = reserve.numel() * reserve.dtype.size_bytes();
    let room = gpu.recurrent_room(layer, dtype, biased)?.filter(|room| room.reserve <= bytes);
    let Some(room) = room else { return Err(GpuError::Device("the library lost what it kept of a layer".into())) };
    // The biases do not matter here; what is at their places must only be finite.
    let weights = gpu.scratch(room.weights)?;
    gpu.fill_zero(weights, room.weights)?;
    for (from, &offset) in call.inputs[1..3].iter().zip(&room.offsets) {
        copy_view(from, &part(weights, offset, from, dtype), gpu)?;
    }
    let dweights = gpu.scratch(room.weights)?;
    gpu.fill_zero(dweights, room.weights)?;
    // The library overwrites it, and it may be asked for again.
    let kept = gpu.scratch(room.reserve)?;
    gpu.copy(kept, reserve.ptr, room.reserve)?;
    let along = |at: usize, gpu: &mut dyn Gpu| input(&in_order(&call.inputs[at], layer), dtype, gpu);
    let (x, y, dy) = (along(0, gpu)?, along(first, gpu)?, along(first + 2, gpu)?);
    let hx = input(&call.inputs[3], dtype, gpu)?;
    let dhy = input(&call.inputs[first + 3], dtype, gpu)?;
    let dhx = Output::new(&call.outputs[3], dtype, gpu)?;
    let dx = match call.outputs[0].numel() {
        0 => None,
        _ => Some(Output::new(&in_order(&call.outputs[0], layer), dtype, gpu)?),
    };
    // The library computes it in any case.
    let dx_at = match &dx {
        Some(dx) => dx.dense.ptr,
        None => scratch(dtype, &x.shape, gpu)?.ptr,
    };
    let cells = match is_lstm {
        true => Some((
            input(&call.inputs[4], dtype, gpu)?,
            input(&call.inputs[first + 4], dtype, gpu)?,
            Output::new(&call.outputs[4], dtype, gpu)?,
        )),
        false => None,
    };
    gpu.recurrent(&RecurrentCall {
        layer: *layer,
        dtype,
        biased,
        x: x.ptr,
        y: y.ptr,
        hx: hx.ptr,
        cx: address(cells.as_ref().map(|cells| &cells.0)),
        weights,
        reserve: kept,
        task: RecurrentTask::Backward {
            dy: dy.ptr,
            dx: dx_at,
            dhy: dhy.ptr,
            dhx: dhx.dense.ptr,
            dcy: address(cells.as_ref().map(|cells| &cells.1)),
            dcx: address(cells.as_ref().map(|cells| &cells.2.dense)),
            dweights,
        },
    })?;
    dx.map_or(Ok(()), |dx| dx.finish(gpu))?;
    dhx.finish(gpu)?;
    cells.map_or(Ok(()), |cells| cells.2.finish(gpu))?;
    for (to, &offset) in call.outputs[1..3].iter().chain(biases).zip(&room.offsets) {
        copy_view(&part(dweights, offset, to, dtype), to, gpu)?;
    }
    Ok(true)
}
