//! The gradient of a recurrent layer: a walk back through its steps, which gives the gradients of the gates' sums, and then
//! one product for each weight and for the input.

use super::gates::{Backward, Gated};
use super::{at_step, share};
use crate::kernel::abi::{Call, Threads};
use crate::kernel::guard;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Packed, Scratch, Shared, Sink, read};
use crate::kernel::matmul::host::panels::Panels;
use crate::kernel::matmul::host::product::{Accum, Matrix, Sizes, product};
use crate::kernel::recurrent::layer::{Layer, Mode};
use std::ops::Range;

/// The operands of a call of `recurrent_grad`.
struct Operands<'a, T> {
    x: Packed<'a, T>,
    weight_ih: Packed<'a, T>,
    weight_hh: Packed<'a, T>,
    state: Packed<'a, T>,
    cell: Option<Packed<'a, T>>,
    out: Packed<'a, T>,
    reserve: Packed<'a, T>,
    grad_out: Packed<'a, T>,
    grad_last: Packed<'a, T>,
    grad_cell: Option<Packed<'a, T>>,
}

impl<'a, T: Real> Operands<'a, T> {
    /// # Safety
    /// As `HostFn`.
    unsafe fn of(call: &'a Call<'_>, layer: &Layer) -> Operands<'a, T> {
        // SAFETY: every view of the call is valid for reading.
        let mut views = call.inputs.iter().map(|view| unsafe { read::<T>(view, call.threads) });
        let mut next = || views.next().expect("the row gives all operands");
        let with_cell = layer.mode == Mode::Lstm;
        Operands {
            x: next(),
            weight_ih: next(),
            weight_hh: next(),
            state: next(),
            cell: with_cell.then(&mut next),
            out: next(),
            reserve: next(),
            grad_out: next(),
            grad_last: next(),
            grad_cell: with_cell.then(&mut next),
        }
    }
}

/// The gradient of `recurrent`. Inputs: x, both weights, the state and for LSTM the cell, as there; the output and what was kept;
/// the gradients of the output and of the last state, and for LSTM of the last cell. Outputs: gradients of x (no elements if
/// it is not asked for), of the weights, of the state, for LSTM of the cell, and of both biases if there are any. Attributes: as
/// `recurrent`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn recurrent_grad(call: &Call<'_>) {
    let layer = Layer::of(call);
    real!(call.outputs[1].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let given = Operands::<T>::of(call, &layer);
            gradient(&layer, call, &given);
        }
    });
}

/// Columns of the gradients of the gates' sums, the rows of a weight that they belong to, and how many they are.
struct Span {
    column: usize,
    row: usize,
    count: usize,
}

/// The columns that belong to the input's weight, and to the state's.
fn spans(layer: &Layer) -> [Vec<Span>; 2] {
    let h = layer.hidden;
    if layer.mode == Mode::Gru {
        // n, r, z, and what the state adds to n.
        let input = vec![Span { column: h, row: 0, count: 2 * h }, Span { column: 0, row: 2 * h, count: h }];
        return [input, vec![Span { column: h, row: 0, count: 3 * h }]];
    }
    [0, 1].map(|_| vec![Span { column: 0, row: 0, count: layer.width() }])
}

/// # Safety
/// As `HostFn`.
unsafe fn gradient<T: Gated>(layer: &Layer, call: &Call<'_>, given: &Operands<'_, T>) {
    let (threads, rows, hidden) = (call.threads, layer.rows(), layer.hidden);
    let width = layer.width() + if layer.mode == Mode::Gru { hidden } else { 0 };
    let mut own = Scratch::<T>::new(rows * width);
    let sums = Matrix::packed_mut(&mut own, width);
    // SAFETY: every view of the call is valid, and the sinks are its only users.
    unsafe {
        let mut made: Vec<Sink<'_, T>> = call.outputs.iter().map(|view| Sink::new(view)).collect();
        let grad_state = Matrix::packed_mut(made[3].slice(), hidden);
        let grad_cell = given.cell.as_ref().map(|_| Matrix::packed_mut(made[4].slice(), hidden));
        let walk = Walk { layer, given, sums, grad_state, grad_cell };
        walk.start();
        let of_state = &spans(layer)[1][0];
        let weights = Panels::new(Matrix::packed(&given.weight_hh, hidden), layer.width(), hidden);
        share(layer, threads, |samples, threads| walk.run(threads, samples, of_state.column, &weights));
        walk.products(threads, &mut made);
        made.into_iter().for_each(|sink| sink.finish(threads));
    }
}

/// The memory of a walk back.
struct Walk<'a, T> {
    layer: &'a Layer,
    given: &'a Operands<'a, T>,
    /// Gradients of the gates' sums, a row for each sample and step.
    sums: Matrix<T>,
    /// Gradients of the state and of the cell before the steps that are done, a row for each sample.
    grad_state: Matrix<T>,
    grad_cell: Option<Matrix<T>>,
}

impl<T: Gated> Walk<'_, T> {
    /// # Safety
    /// The operands are those of the layer.
    unsafe fn start(&self) {
        let count = self.layer.batch * self.layer.hidden;
        // SAFETY: the gradients of states have a row for each sample.
        unsafe {
            std::ptr::copy_nonoverlapping(self.given.grad_last.as_ptr(), self.grad_state.ptr, count);
            if let (Some(from), Some(to)) = (&self.given.grad_cell, &self.grad_cell) {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to.ptr, count);
            }
        }
    }

    /// All steps of some samples, the last first. The columns of sums from `column` on belong to the state's weight.
    ///
    /// # Safety
    /// The operands are those of the layer, and nobody else writes these samples.
    unsafe fn run(&self, threads: &Threads, samples: Range<usize>, column: usize, weights: &Panels<T>) {
        let (layer, given) = (self.layer, self.given);
        let (mode, hidden, rows) = (layer.mode, layer.hidden, samples.len());
        let plain = mode.kept() == 0;
        let kept = if plain {
            Matrix::packed(&given.out, hidden)
        } else {
            Matrix::packed(&given.reserve, mode.kept() * hidden)
        };
        let first = |given: &[T]| Matrix::packed(given, hidden).from(samples.start, 0);
        let grad_state = self.grad_state.from(samples.start, 0);
        let grad_cell = self.grad_cell.unwrap_or(self.grad_state).from(samples.start, 0);
        for i in (0..layer.steps).rev() {
            guard::check();
            let step = layer.step(i);
            let at = |all: Matrix<T>, step: usize| at_step(all, layer, step, &samples);
            let before = match i {
                0 => first(&given.state),
                _ => at(Matrix::packed(&given.out, hidden), layer.step(i - 1)),
            };
            let cell_before = match (&given.cell, i) {
                (None, _) => before,
                (Some(cell), 0) => first(cell),
                _ => at(kept, layer.step(i - 1)).from(0, layer.width()),
            };
            let to = at(self.sums, step);
            let grad_out = at(Matrix::packed(&given.grad_out, hidden), step);
            let kept = at(kept, step);
            let step = Backward { mode, rows, hidden, kept, before, cell_before, grad_out, grad_state, grad_cell, to };
            // SAFETY: the matrices have a row for each of the samples; those that are written belong to this walk.
            unsafe {
                T::backward(&step);
                let accum = if mode == Mode::Gru { Accum::Add } else { Accum::Replace };
                weights.multiply(threads, rows, to.from(0, column), grad_state, accum);
            }
        }
    }

    /// The gradients that sum over steps, and that of the input.
    ///
    /// # Safety
    /// The walk is done; `made` are the sinks of the call.
    unsafe fn products(&self, threads: &Threads, made: &mut [Sink<'_, T>]) {
        let (layer, given) = (self.layer, self.given);
        let (rows, inputs, hidden) = (layer.rows(), layer.inputs, layer.hidden);
        let [of_input, of_state] = spans(layer);
        let mut states = Scratch::<T>::new(rows * hidden);
        self.states_before(threads, &mut states);
        let (x, states) = (Matrix::packed(&given.x, inputs), Matrix::packed(&states, hidden));
        // SAFETY: the sizes are those of the operands, and the results are nobody else's.
        unsafe {
            if !made[0].slice().is_empty() {
                let to = Matrix::packed_mut(made[0].slice(), inputs);
                for (i, span) in of_input.iter().enumerate() {
                    let accum = if i == 0 { Accum::Replace } else { Accum::Add };
                    let sizes = Sizes { m: rows, n: inputs, k: span.count };
                    let weight = Matrix::packed(&given.weight_ih, inputs).from(span.row, 0);
                    product(threads, sizes, self.sums.from(0, span.column), weight, to, accum);
                }
            }
            let mut ones = Scratch::<T>::new(rows);
            ones.fill(T::ONE);
            let bias = 4 + given.cell.is_some() as usize;
            for (at, (spans, with, n)) in [(of_input, x, inputs), (of_state, states, hidden)].into_iter().enumerate() {
                for span in spans {
                    let sums = self.sums.from(0, span.column);
                    let to = Matrix::packed_mut(made[1 + at].slice(), n).from(span.row, 0);
                    product(threads, Sizes { m: span.count, n, k: rows }, sums.transposed(), with, to, Accum::Replace);
                    if let Some(sink) = made.get_mut(bias + at) {
                        let to = Matrix::packed_mut(&mut sink.slice()[span.row..], span.count);
                        let sizes = Sizes { m: 1, n: span.count, k: rows };
                        product(threads, sizes, Matrix::packed(&ones, rows), sums, to, Accum::Replace);
                    }
                }
            }
        }
    }

    /// The state before each step, in the order of the output.
    fn states_before(&self, threads: &Threads, to: &mut [T]) {
        let (layer, given, hidden) = (self.layer, self.given, self.layer.hidden);
        let to = Shared::new(to);
        threads.split(layer.steps, 1, |steps| {
            for (i, sample) in steps.flat_map(|i| (0..layer.batch).map(move |sample| (i, sample))) {
                let from = match i {
                    0 => &given.state[sample * hidden..],
                    _ => &given.out[layer.row(layer.step(i - 1), sample) * hidden..],
                };
                let row = layer.row(layer.step(i), sample);
                // SAFETY: each step and sample has a row of its own.
                unsafe { to.range(row * hidden..(row + 1) * hidden) }.copy_from_slice(&from[..hidden]);
            }
        });
    }
}
