//! Recurrent layers by cuDNN: one layer in the direction of time, all sequences of one length. Knows no tensors: data are
//! addresses, dense, the steps outermost.

use super::super::blas::{Element, Precision, Workspace};
use super::super::error::DriverError;
use super::super::stream::Stream;
use super::{Dnn, PLANS_MAX, data_type};
use functions::{Described, Functions, Object, Place};
use std::ptr::{null, null_mut};

mod functions;

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recurrent {
    /// `cudnnRNNMode_t`: ReLU, tanh, LSTM, GRU.
    pub mode: i32,
    pub steps: i32,
    pub batch: i32,
    pub inputs: i32,
    pub hidden: i32,
    pub biased: bool,
    pub element: Element,
    pub precision: Precision,
}

/// What the library needs for a layer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where the weights of the input, those of the state, and the biases of both begin among all weights; the gates of each follow
    /// each other.
    pub offsets: [usize; 4],
    pub weights: usize,
    pub scratch: usize,
    /// What the gradient reads.
    pub reserve: usize,
}

/// Device addresses of a layer; 0 where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub x: u64,
    pub y: u64,
    pub hx: u64,
    pub cx: u64,
    pub weights: u64,
    /// As large as [`Room::reserve`] says, or 0 where nothing is trained.
    pub reserve: u64,
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// y, and state and cell after the last step.
    Forward { hy: u64, cy: u64 },
    /// The gradients of x, of the first state and cell, and of the weights, which are added to what is there. Changes what was
    /// kept.
    Backward { dy: u64, dx: u64, dhy: u64, dhx: u64, dcy: u64, dcx: u64, dweights: u64 },
}

/// The library's description of a layer.
pub(super) struct Plan {
    layer: Described,
    x: Described,
    y: Described,
    state: Described,
    room: Room,
    /// The layer refers to it.
    _dropout: Described,
}

/// `cudnnRNNAlgo_t`.
const STANDARD: i32 = 0;
const SMALL_STATE: i32 = 3;
const TRAINING: i32 = 1;

/// Algorithms in the order in which they are tried. Bound: state sizes for which the library keeps weights in registers, in
/// both passes; PyTorch's.
fn algorithms(r: &Recurrent) -> &'static [i32] {
    let most = if r.mode < 2 { 256 } else { 128 };
    if r.element != Element::F64 && r.hidden <= most { &[SMALL_STATE, STANDARD] } else { &[STANDARD] }
}

/// `cudnnMathType_t`: tensor cores for 16 bits; in f32 where the precision allows them, or never.
fn math(r: &Recurrent) -> i32 {
    match (r.element, r.precision) {
        (Element::F16 | Element::Bf16, _) => 1,
        (Element::F32, Precision::Full) => 3,
        _ => 0,
    }
}

fn place(address: u64) -> Place {
    address as Place
}

impl Plan {
    fn new(f: &Functions, handle: Object, r: &Recurrent, algorithm: i32) -> Result<Option<Plan>, DriverError> {
        let dropout = Described::dropout(f)?;
        let layer = Described::layer(f)?;
        let data = |width: i32| {
            // Packed: no sequence is shorter than another, so that nothing is padded.
            const STEPS_FIRST_PACKED: i32 = 1;
            let described = Described::data(f)?;
            let lengths = vec![r.steps; r.batch as usize];
            let element = data_type(r.element).0;
            // SAFETY: the library reads as many lengths as there are samples, and writes only the description.
            let status = unsafe {
                (f.set_data)(
                    described.raw,
                    element,
                    STEPS_FIRST_PACKED,
                    r.steps,
                    r.batch,
                    width,
                    lengths.as_ptr(),
                    null_mut(),
                )
            };
            f.check("cudnnSetRNNDataDescriptor", status)?;
            Ok::<Described, DriverError>(described)
        };
        let (x, y) = (data(r.inputs)?, data(r.hidden)?);
        let state = Described::tensor(f)?;
        let (sizes, strides) = ([1, r.batch, r.hidden], [r.batch * r.hidden, r.hidden, 1]);
        let sums = if r.element == Element::F64 { Element::F64 } else { Element::F32 };
        let [element, sums] = [r.element, sums].map(|element| data_type(element).0);
        let biases = if r.biased { 2 } else { 0 };
        // SAFETY: the descriptions are alive; the library reads three sizes and strides.
        unsafe {
            f.check("cudnnSetTensorNdDescriptor", {
                (f.set_tensor)(state.raw, element, 3, sizes.as_ptr(), strides.as_ptr())
            })?;
            f.check("cudnnSetDropoutDescriptor", (f.set_dropout)(dropout.raw, handle, 0.0, null_mut(), 0, 0))?;
            f.check("cudnnSetRNNDescriptor_v8", {
                (f.set_layer)(
                    layer.raw,
                    algorithm,
                    r.mode,
                    biases,
                    0,
                    0,
                    element,
                    sums,
                    math(r),
                    r.inputs,
                    r.hidden,
                    r.hidden,
                    1,
                    dropout.raw,
                    0,
                )
            })?;
        }
        let Some(room) = room(f, handle, r, layer.raw, x.raw)? else { return Ok(None) };
        Ok(Some(Plan { layer, x, y, state, room, _dropout: dropout }))
    }
}

/// `None`: the weights do not lie as expected.
fn room(f: &Functions, handle: Object, r: &Recurrent, layer: Object, x: Object) -> Result<Option<Room>, DriverError> {
    let (mut scratch, mut reserve, mut inference, mut nothing, mut weights) = (0, 0, 0, 0, 0);
    // SAFETY: the descriptions are alive, and each call writes the numbers that it is given.
    unsafe {
        let sizes = (f.space_sizes)(handle, layer, TRAINING, x, &mut scratch, &mut reserve);
        f.check("cudnnGetRNNTempSpaceSizes", sizes)?;
        let sizes = (f.space_sizes)(handle, layer, 0, x, &mut inference, &mut nothing);
        f.check("cudnnGetRNNTempSpaceSizes", sizes)?;
        f.check("cudnnGetRNNWeightSpaceSize", (f.weight_size)(handle, layer, &mut weights))?;
    }
    let gates = [1, 1, 4, 3][r.mode as usize];
    let bytes = r.element.bytes();
    let (matrix, bias) = (Described::tensor(f)?, Described::tensor(f)?);
    // Addresses are computed from the first one, which is not read.
    const BASE: usize = 1 << 20;
    let mut offsets = [0; 4];
    for (side, width) in [r.inputs, r.hidden].into_iter().enumerate() {
        let hidden = r.hidden as usize;
        for gate in 0..gates {
            let (mut at, mut bias_at) = (null_mut(), null_mut());
            let id = (side * gates + gate) as i32;
            // SAFETY: the descriptions are alive; the call writes two addresses and both descriptions.
            let status = unsafe {
                (f.weight_params)(
                    handle,
                    layer,
                    0,
                    weights,
                    BASE as Place,
                    id,
                    matrix.raw,
                    &mut at,
                    bias.raw,
                    &mut bias_at,
                )
            };
            f.check("cudnnGetRNNWeightParams", status)?;
            let parts = [(side, at, hidden * width as usize), (2 + side, bias_at, hidden)];
            for (part, address, count) in parts.into_iter().take(if r.biased { 2 } else { 1 }) {
                let Some(offset) = (address as usize).checked_sub(BASE) else { return Ok(None) };
                if gate == 0 {
                    offsets[part] = offset;
                }
                let expected = offsets[part] + gate * count * bytes;
                if offset != expected || offset + count * bytes > weights {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(Room { offsets, weights, scratch: scratch.max(inference), reserve }))
}

impl Dnn {
    /// What the library needs for a layer. `None`: it does not support it. Cost: some milliseconds for a new layer, a look-up for
    /// a known one.
    pub fn recurrent_room(&mut self, r: &Recurrent) -> Result<Option<Room>, DriverError> {
        if let Some(known) = self.layers.get(r) {
            return Ok(known.as_ref().map(|plan| plan.room));
        }
        self.context.make_current()?;
        if self.layers.len() >= PLANS_MAX {
            self.layers.clear();
        }
        // An algorithm that the library cannot describe is not used.
        let plan = Functions::load().and_then(|f| {
            let mut plans =
                algorithms(r).iter().filter_map(|&algorithm| Plan::new(f, self.handle.0, r, algorithm).ok());
            plans.find_map(|plan| plan)
        });
        Ok(self.layers.entry(*r).or_insert(plan).as_ref().map(|plan| plan.room))
    }

    /// Queues a layer on a stream of this device; false if the library does not support it. `workspace` is as large as
    /// [`Room::scratch`] says.
    pub fn recurrent(
        &mut self,
        r: &Recurrent,
        at: &Places,
        task: &Task,
        workspace: Workspace,
        stream: &Stream,
    ) -> Result<bool, DriverError> {
        let Some(room) = self.recurrent_room(r)? else { return Ok(false) };
        if workspace.bytes < room.scratch {
            return Ok(false);
        }
        self.context.make_current()?;
        self.use_stream(stream)?;
        let (Some(f), Some(Some(plan))) = (Functions::load(), self.layers.get(r)) else { return Ok(false) };
        let [x, y, hx, cx] = [at.x, at.y, at.hx, at.cx].map(place);
        let (weights, reserve, scratch) = (place(at.weights), place(at.reserve), place(workspace.address));
        let kept = if at.reserve == 0 { 0 } else { room.reserve };
        let (handle, layer, state) = (self.handle.0, plan.layer.raw, plan.state.raw);
        let (xs, ys) = (plan.x.raw, plan.y.raw);
        // SAFETY: handle and descriptions are alive; addresses are the device's, of memory as large as the layer says.
        unsafe {
            match *task {
                Task::Forward { hy, cy } => {
                    let training = if kept > 0 { TRAINING } else { 0 };
                    let status = (f.forward)(
                        handle,
                        layer,
                        training,
                        null(),
                        xs,
                        x,
                        ys,
                        y,
                        state,
                        hx,
                        place(hy),
                        state,
                        cx,
                        place(cy),
                        room.weights,
                        weights,
                        workspace.bytes,
                        scratch,
                        kept,
                        reserve,
                    );
                    f.check("cudnnRNNForward", status)?;
                }
                Task::Backward { dy, dx, dhy, dhx, dcy, dcx, dweights } => {
                    let status = (f.backward_data)(
                        handle,
                        layer,
                        null(),
                        ys,
                        y,
                        place(dy),
                        xs,
                        place(dx),
                        state,
                        hx,
                        place(dhy),
                        place(dhx),
                        state,
                        cx,
                        place(dcy),
                        place(dcx),
                        room.weights,
                        weights,
                        workspace.bytes,
                        scratch,
                        kept,
                        reserve,
                    );
                    f.check("cudnnRNNBackwardData_v8", status)?;
                    // CUDNN_WGRAD_MODE_ADD
                    let status = (f.backward_weights)(
                        handle,
                        layer,
                        0,
                        null(),
                        xs,
                        x,
                        state,
                        hx,
                        ys,
                        y,
                        room.weights,
                        place(dweights),
                        workspace.bytes,
                        scratch,
                        kept,
                        reserve,
                    );
                    f.check("cudnnRNNBackwardWeights_v8", status)?;
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What needs only the library, no GPU.
    #[test]
    fn the_library_has_the_functions() {
        let Some(f) = Functions::load() else { return eprintln!("cuDNN is not installed: nothing was tested") };
        let data = Described::data(f).expect("a description");
        let lengths = [5, 5];
        // SAFETY: there are two lengths for two samples.
        let status = unsafe { (f.set_data)(data.raw, 0, 1, 5, 2, 3, lengths.as_ptr(), null_mut()) };
        f.check("cudnnSetRNNDataDescriptor", status).expect("a description of data");
        let state = Described::tensor(f).expect("a description");
        let (sizes, strides) = ([1, 2, 4], [8, 4, 1]);
        // SAFETY: there are three sizes and strides.
        let status = unsafe { (f.set_tensor)(state.raw, 0, 3, sizes.as_ptr(), strides.as_ptr()) };
        f.check("cudnnSetTensorNdDescriptor", status).expect("a description of a state");
        assert!(Described::layer(f).is_ok() && Described::dropout(f).is_ok());
    }
}
