//! Recurrent layers beside their host twins.

use super::kernels::{View, check, input, on_device};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::recurrent;

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
