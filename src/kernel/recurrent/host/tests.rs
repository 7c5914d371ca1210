use super::*;
use crate::base::attr::Attr;
use crate::base::dtype::DType;
use crate::kernel::host::staging::testing;
use crate::kernel::host::staging::testing::Array;
use crate::kernel::recurrent::layer::Mode;

const STEPS: usize = 5;

/// Sizes of a layer in a test, and its order in memory.
#[derive(Clone, Copy)]
struct Case {
    mode: Mode,
    batch: usize,
    hidden: usize,
    batch_first: bool,
    reverse: bool,
}

const INPUTS: usize = 3;

impl Case {
    fn attrs(&self) -> [Attr; 3] {
        [Attr::Int(self.mode as i64), Attr::Bool(self.batch_first), Attr::Bool(self.reverse)]
    }

    fn along(&self, width: usize) -> [usize; 3] {
        if self.batch_first { [self.batch, STEPS, width] } else { [STEPS, self.batch, width] }
    }

    /// x, weights, state, cell, biases.
    fn inputs(&self) -> Vec<Vec<f64>> {
        let (h, gates) = (self.hidden, self.mode.gates() * self.hidden);
        let cell = if self.mode == Mode::Lstm { vec![self.batch * h] } else { Vec::new() };
        let sizes =
            [vec![STEPS * self.batch * INPUTS, gates * INPUTS, gates * h, self.batch * h], cell, vec![gates; 2]];
        let wave = |(i, n): (usize, usize)| Array::wave(DType::F64, &[n], 0.3 + i as f64).get();
        sizes.concat().into_iter().enumerate().map(wave).map(|xs| xs.iter().map(|x| x * 0.5).collect()).collect()
    }

    fn arrays(&self, inputs: &[Vec<f64>]) -> Vec<Array> {
        let (b, h, gates) = (self.batch, self.hidden, self.mode.gates() * self.hidden);
        let mut shapes = vec![self.along(INPUTS).to_vec(), vec![gates, INPUTS], vec![gates, h], vec![b, h]];
        if self.mode == Mode::Lstm {
            shapes.push(vec![b, h]);
        }
        shapes.extend([vec![gates], vec![gates]]);
        shapes.iter().zip(inputs).map(|(shape, data)| Array::of(DType::F64, shape, data)).collect()
    }

    fn run(&self, inputs: &[Vec<f64>], keeps: bool) -> Vec<Array> {
        let kept = if keeps { self.mode.kept() * self.hidden } else { 0 };
        let state = [self.batch, self.hidden];
        let mut outputs = vec![
            Array::empty(DType::F64, &self.along(self.hidden)),
            Array::empty(DType::F64, &self.along(kept)),
            Array::empty(DType::F64, &state),
        ];
        if self.mode == Mode::Lstm {
            outputs.push(Array::empty(DType::F64, &state));
        }
        let given = self.arrays(inputs);
        let out: Vec<&Array> = outputs.iter().collect();
        assert!(testing::call(recurrent, &given.iter().collect::<Vec<_>>(), &out, &self.attrs()).is_none());
        outputs
    }

    /// The state after each step, and the last cell, by the definition.
    fn expected(&self, inputs: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
        let (h, b) = (self.hidden, self.batch);
        let with_cell = self.mode == Mode::Lstm;
        let (mut state, bias) = (inputs[3].clone(), 4 + with_cell as usize);
        let mut cell = if with_cell { inputs[4].clone() } else { Vec::new() };
        let mut out = vec![0.0; STEPS * b * h];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        for i in 0..STEPS {
            let step = if self.reverse { STEPS - 1 - i } else { i };
            let before = state.clone();
            for n in 0..b {
                let row = if self.batch_first { n * STEPS + step } else { step * b + n };
                let dot = |w: &[f64], x: &[f64]| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
                for u in 0..h {
                    let at = |gate: usize| gate * h + u;
                    let of_x = |gate: usize| {
                        let weight = &inputs[1][at(gate) * INPUTS..(at(gate) + 1) * INPUTS];
                        dot(weight, &inputs[0][row * INPUTS..(row + 1) * INPUTS]) + inputs[bias][at(gate)]
                    };
                    let of_h = |gate: usize| {
                        dot(&inputs[2][at(gate) * h..(at(gate) + 1) * h], &before[n * h..(n + 1) * h])
                            + inputs[bias + 1][at(gate)]
                    };
                    let sum = |gate: usize| of_x(gate) + of_h(gate);
                    state[n * h + u] = match self.mode {
                        Mode::Relu => sum(0).max(0.0),
                        Mode::Tanh => sum(0).tanh(),
                        Mode::Lstm => {
                            let c = &mut cell[n * h + u];
                            *c = sigmoid(sum(1)) * *c + sigmoid(sum(0)) * sum(2).tanh();
                            sigmoid(sum(3)) * c.tanh()
                        }
                        Mode::Gru => {
                            let z = sigmoid(sum(1));
                            (1.0 - z) * (of_x(2) + sigmoid(sum(0)) * of_h(2)).tanh() + z * before[n * h + u]
                        }
                    };
                }
                out[row * h..(row + 1) * h].copy_from_slice(&state[n * h..(n + 1) * h]);
            }
        }
        (out, cell)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let modes = [Mode::Relu, Mode::Tanh, Mode::Lstm, Mode::Gru];
    let orders = [(false, false), (true, true), (false, true), (true, false)];
    // The last is large enough for samples to be shared among threads.
    let sizes = [(1, 1), (3, 5), (2, 20), (24, 90)];
    modes.into_iter().flat_map(move |mode| {
        orders.into_iter().zip(sizes).map(move |((batch_first, reverse), (batch, hidden))| Case {
            mode,
            batch,
            hidden,
            batch_first,
            reverse,
        })
    })
}

#[test]
fn steps_are_those_of_the_definition() {
    for case in cases() {
        let inputs = case.inputs();
        let (out, cell) = case.expected(&inputs);
        for keeps in [false, true] {
            let made = case.run(&inputs, keeps);
            testing::close(&made[0].get(), &out, 1e-12);
            if case.mode == Mode::Lstm {
                testing::close(&made[3].get(), &cell, 1e-12);
            }
        }
    }
}

#[test]
fn gradients_are_differences() {
    for case in cases().filter(|case| case.batch < 10) {
        let inputs = case.inputs();
        let made = case.run(&inputs, true);
        let wave = |shape: &[usize], seed: f64| Array::wave(DType::F64, shape, seed);
        let with_cell = case.mode == Mode::Lstm;
        let state = [case.batch, case.hidden];
        let weights = [wave(&case.along(case.hidden), 9.1), wave(&state, 9.2), wave(&state, 9.3)];
        let lasts = if with_cell { 2 } else { 1 };
        let loss = |inputs: &[Vec<f64>]| -> f64 {
            let made = case.run(inputs, false);
            let dot = |a: &Array, b: &Array| a.get().iter().zip(b.get()).map(|(a, b)| a * b).sum::<f64>();
            dot(&made[0], &weights[0]) + (0..lasts).map(|i| dot(&made[2 + i], &weights[1 + i])).sum::<f64>()
        };
        let arrays = case.arrays(&inputs);
        let states = 4 + with_cell as usize;
        let given: Vec<&Array> =
            arrays[..states].iter().chain([&made[0], &made[1]]).chain(&weights[..1 + lasts]).collect();
        let grads: Vec<Array> = arrays.iter().map(|array| Array::empty(DType::F64, &array.view.shape)).collect();
        let to: Vec<&Array> = grads.iter().collect();
        assert!(testing::call(recurrent_grad, &given, &to, &case.attrs()).is_none());
        for (at, grad) in grads.iter().enumerate() {
            testing::differences(&inputs[at], &grad.get(), |moved| {
                let mut inputs = inputs.clone();
                inputs[at] = moved.to_vec();
                loss(&inputs)
            });
        }
    }
}
