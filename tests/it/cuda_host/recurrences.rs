//! Recurrent layers beside their host twins.

use super::HostGpu;
use super::fused::Memory;
use super::kernels::{View, check, input, on_device, on_host};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::abi::{Call, Faults, RawView, Threads};
use tscript::internals::kernel::cuda::{RecurrentCall, RecurrentRoom, RecurrentTask};
use tscript::internals::kernel::family::Kernel;
use tscript::internals::kernel::recurrent;
use tscript::internals::kernel::recurrent::layer::Layer;

/// Mode, gates and numbers that are kept for the gradient.
const MODES: [(i64, usize, usize); 4] = [(0, 1, 0), (1, 1, 0), (2, 4, 5), (3, 3, 4)];
const FLOATS: [(DType, f64); 4] = [(DType::F32, 2e-5), (DType::F64, 1e-12), (DType::F16, 1e-2), (DType::BF16, 6e-2)];
const STEPS: usize = 4;
const INPUTS: usize = 5;

fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

#[test]
fn recurrent_layers_and_their_gradients() {
    for (dtype, close) in FLOATS {
        for (mode, gates, kept) in MODES {
            for (batch, hidden, batch_first, reverse) in [(3, 7, false, false), (2, 6, true, true), (1, 1, false, true)]
            {
                let along = |width: usize| if batch_first { [batch, STEPS, width] } else { [STEPS, batch, width] };
                let (x, out, keep) = (along(INPUTS), along(hidden), along(kept * hidden));
                let (state, of_x, of_h) = ([batch, hidden], [gates * hidden, INPUTS], [gates * hidden, hidden]);
                let bias = [gates * hidden];
                let is_lstm = mode == 2;
                let given = |biases: bool| {
                    let cell = is_lstm.then_some(&state[..]);
                    let biases = [&bias[..], &bias].into_iter().take(if biases { 2 } else { 0 });
                    let shapes = [&x[..], &of_x, &of_h, &state].into_iter().chain(cell).chain(biases);
                    shapes.enumerate().map(|(i, shape)| input((dtype, shape, None), i + 1)).collect::<Vec<_>>()
                };
                let attrs = [Attr::Int(mode), Attr::Bool(batch_first), Attr::Bool(reverse)];
                let nothing = along(0);
                for keeps in [false, true] {
                    let keep = if keeps { &keep } else { &nothing };
                    let mut outputs: Vec<View<'_>> =
                        vec![(dtype, &out, None), (wide(dtype), keep, None), (dtype, &state, None)];
                    outputs.extend(is_lstm.then_some((dtype, &state[..], None)));
                    check(&recurrent::RECURRENT, &given(keeps), &outputs, &attrs, close);
                }
                let mut outputs: Vec<View<'_>> =
                    vec![(dtype, &out, None), (wide(dtype), &keep, None), (dtype, &state, None)];
                outputs.extend(is_lstm.then_some((dtype, &state[..], None)));
                for biases in [false, true] {
                    let Some(mut made) = on_device(&recurrent::RECURRENT, &given(biases), &outputs, &attrs) else {
                        return;
                    };
                    made.truncate(2);
                    let mut all = given(false);
                    all.extend(made);
                    all.extend([input((dtype, &out, None), 11), input((dtype, &state, None), 12)]);
                    all.extend(is_lstm.then(|| input((dtype, &state, None), 13)));
                    let mut grads: Vec<View<'_>> = vec![
                        (dtype, if biases { &x } else { &[0] }, None),
                        (dtype, &of_x, None),
                        (dtype, &of_h, None),
                        (dtype, &state, None),
                    ];
                    grads.extend(is_lstm.then_some((dtype, &state[..], None)));
                    grads.extend([(dtype, &bias[..], None), (dtype, &bias[..], None)].into_iter().filter(|_| biases));
                    // The host does not round what goes back through the steps.
                    check(&recurrent::RECURRENT_GRAD, &all, &grads, &attrs, 8.0 * close);
                }
            }
        }
    }
}

/// A library that leaves room between its weights.
pub fn room(layer: &Layer, dtype: DType, biased: bool) -> RecurrentRoom {
    let sizes = [layer.width() * layer.inputs, layer.width() * layer.hidden, layer.width(), layer.width()];
    let mut offsets = [0; 4];
    let mut end = 64;
    for (offset, size) in offsets.iter_mut().zip(sizes).take(if biased { 4 } else { 2 }) {
        *offset = end;
        end += size * dtype.size_bytes() + 64;
    }
    let kept = layer.rows() * layer.mode.kept() * layer.hidden;
    RecurrentRoom { offsets, weights: end, reserve: kept * wide(dtype).size_bytes() }
}

/// The library's calls by the host's kernels.
pub fn by_host(call: &RecurrentCall) {
    // What is passed is in the order in which steps are computed.
    let layer = Layer { batch_first: false, reverse: false, ..call.layer };
    let room = room(&layer, call.dtype, call.biased);
    let (steps, batch, hidden, width) = (layer.steps, layer.batch, layer.hidden, layer.width());
    let view = |at: *mut u8, shape: &[usize]| RawView::contiguous(at, call.dtype, shape);
    let parts = |weights: *mut u8| {
        let shapes = [&[width, layer.inputs][..], &[width, hidden], &[width], &[width]];
        let used = if call.biased { 4 } else { 2 };
        let all = shapes.into_iter().zip(room.offsets).take(used);
        all.map(|(shape, offset)| view(weights.wrapping_add(offset), shape)).collect::<Vec<RawView>>()
    };
    let state = |at: *mut u8| view(at, &[batch, hidden]);
    let (x, y) = (view(call.x, &[steps, batch, layer.inputs]), view(call.y, &[steps, batch, hidden]));
    let kept = if call.reserve.is_null() { 0 } else { layer.mode.kept() * hidden };
    let reserve = RawView::contiguous(call.reserve, wide(call.dtype), &[steps, batch, kept]);
    let cell = (!call.cx.is_null()).then(|| state(call.cx));
    let weights = parts(call.weights);
    let mut inputs = vec![x.clone()];
    inputs.extend(weights[..2].iter().cloned());
    inputs.push(state(call.hx));
    inputs.extend(cell.clone());
    let (kernel, outputs): (&Kernel, Vec<RawView>) = match call.task {
        RecurrentTask::Forward { hy, cy } => {
            inputs.extend(weights[2..].iter().cloned());
            let cell = cell.map(|_| state(cy));
            (&recurrent::RECURRENT, [y, reserve, state(hy)].into_iter().chain(cell).collect())
        }
        RecurrentTask::Backward { dy, dx, dhy, dhx, dcy, dcx, dweights } => {
            inputs.extend([y.clone(), reserve, RawView { ptr: dy, ..y }, state(dhy)]);
            inputs.extend(cell.as_ref().map(|_| state(dcy)));
            let grads = parts(dweights);
            let states = [state(dhx)].into_iter().chain(cell.map(|_| state(dcx)));
            let first = [RawView { ptr: dx, ..x }].into_iter().chain(grads[..2].iter().cloned());
            (&recurrent::RECURRENT_GRAD, first.chain(states).chain(grads[2..].iter().cloned()).collect())
        }
    };
    let attrs = [Attr::Int(layer.mode as i64), Attr::Bool(false), Attr::Bool(false)];
    let (faults, threads) = (Faults::default(), &Threads::ONE);
    let call = Call { inputs: &inputs, outputs: &outputs, attrs: &attrs, threads, faults: &faults, seed: 0, offset: 0 };
    // SAFETY: the operands are as large as the layer says.
    unsafe { (kernel.host)(&call) };
}

/// What a launch gives where the library is.
fn by_library(kernel: &Kernel, inputs: &[Memory], outputs: &[View<'_>], attrs: &[Attr]) -> Option<Vec<Memory>> {
    let mut gpu = HostGpu::open()?;
    gpu.recurs = true;
    let made: Vec<Memory> =
        outputs.iter().map(|v| Memory::new(v.0, v.1, &super::kernels::strides(v.1, v.2), |_| 5.0)).collect();
    let views = |all: &[Memory]| -> Vec<RawView> { all.iter().map(|m| m.view.clone()).collect() };
    let (given, written, faults) = (views(inputs), views(&made), Faults::default());
    let threads = &Threads::ONE;
    let call = Call { inputs: &given, outputs: &written, attrs, threads, faults: &faults, seed: 0, offset: 0 };
    kernel.cuda.expect("a launch")(&call, &mut gpu).expect("the recorder launches");
    Some(made)
}

#[track_caller]
fn same(ours: &[Memory], expected: &[Memory]) {
    for (n, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        for (x, y) in ours.values().into_iter().zip(expected.values()) {
            assert!((x - y).abs() <= 1e-10 * y.abs().max(1.0), "output {n}: {x} and {y}");
        }
    }
}

/// A library gets its operands in its own order, with weights beside each other, and its results come back.
#[test]
fn recurrent_layers_of_a_library() {
    let dtype = DType::F64;
    for (mode, gates, kept) in MODES {
        for (batch, hidden, batch_first, reverse, biased) in [
            (3, 7, false, false, true),
            (2, 6, true, true, false),
            (2, 3, false, true, true),
            (4, 2, true, false, true),
        ] {
            let along = |width: usize| if batch_first { [batch, STEPS, width] } else { [STEPS, batch, width] };
            let (x, out, own) = (along(INPUTS), along(hidden), along(kept * hidden));
            let (state, of_x, of_h) = ([batch, hidden], [gates * hidden, INPUTS], [gates * hidden, hidden]);
            let bias = [gates * hidden];
            let cell = (mode == 2).then_some(&state[..]);
            let biases = [&bias[..], &bias].into_iter().take(if biased { 2 } else { 0 });
            let operands: Vec<&[usize]> = [&x[..], &of_x, &of_h, &state].into_iter().chain(cell).collect();
            let given = |biases: Vec<&[usize]>| -> Vec<Memory> {
                let shapes = operands.iter().copied().chain(biases);
                shapes.enumerate().map(|(i, shape)| input((dtype, shape, None), i + 1)).collect()
            };
            let attrs = [Attr::Int(mode), Attr::Bool(batch_first), Attr::Bool(reverse)];
            let librarys = [STEPS * batch * kept * hidden];
            let outputs = |reserve| -> Vec<View<'_>> {
                let all = [&out[..], reserve, &state].into_iter().chain(cell);
                all.map(|shape| (dtype, shape, None)).collect()
            };
            let kernel = &recurrent::RECURRENT;
            let all = given(biases.clone().collect());
            let Some(mut ours) = by_library(kernel, &all, &outputs(&librarys), &attrs) else { return };
            let mut expected = on_host(kernel, &all, &outputs(&own), &attrs);
            let (ours_kept, expected_kept) = (ours.remove(1), expected.remove(1));
            same(&ours, &expected);
            let grads: Vec<View<'_>> =
                operands.iter().copied().chain(biases).map(|shape| (dtype, shape, None)).collect();
            let back = |y: Memory, kept: Memory| -> Vec<Memory> {
                let arrived = [&out[..], &state].into_iter().chain(cell).enumerate();
                let arrived = arrived.map(|(i, shape)| input((dtype, shape, None), i + 11));
                given(Vec::new()).into_iter().chain([y, kept]).chain(arrived).collect()
            };
            let kernel = &recurrent::RECURRENT_GRAD;
            let ours = by_library(kernel, &back(ours.remove(0), ours_kept), &grads, &attrs).expect("a compiler");
            same(&ours, &on_host(kernel, &back(expected.remove(0), expected_kept), &grads, &attrs));
        }
    }
}
