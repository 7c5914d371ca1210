//! A recurrent layer on the host: one product for the input of all steps, then a walk over the steps.
//!
//! Threads take samples of their own for the whole walk, so that they wait for each other only at its end; where there are too
//! few, they share the products of each step. The state's weights are packed once.

mod backward;
mod gates;

use super::layer::{Layer, Mode};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, Threads};
use crate::kernel::guard;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Packed, Scratch, Sink, read};
use crate::kernel::matmul::host::panels::Panels;
use crate::kernel::matmul::host::product::{Accum, Matrix, PARALLEL_FLOPS, Sizes, product};
pub use backward::recurrent_grad;
use gates::{Forward, Gated};
use half::{bf16, f16};
use std::ops::Range;

/// Samples of a thread are whole tiles of a product.
const TILE_ROWS: usize = 8;

/// Calls `walk` with samples, and the threads that it may use: parts of the samples on one thread each, or all of them.
fn share(layer: &Layer, threads: &Threads, walk: impl Fn(Range<usize>, &Threads) + Sync) {
    let flops = 2 * layer.rows() * layer.width() * layer.hidden;
    let part = layer.batch.div_ceil(threads.count()).next_multiple_of(TILE_ROWS);
    if part >= layer.batch || flops < PARALLEL_FLOPS {
        return walk(0..layer.batch, threads);
    }
    threads.split(layer.batch, part, |samples| walk(samples, &Threads::ONE));
}

/// Rows of some samples at a step, of a matrix with a row for each sample and step.
fn at_step<T>(all: Matrix<T>, layer: &Layer, step: usize, samples: &Range<usize>) -> Matrix<T> {
    Matrix { ptr: all.at(layer.row(step, samples.start), 0), row: all.row * layer.apart() as isize, col: 1 }
}

/// The operands of a call of `recurrent`.
struct Operands<'a, T> {
    x: Packed<'a, T>,
    weight_ih: Packed<'a, T>,
    weight_hh: Packed<'a, T>,
    state: Packed<'a, T>,
    cell: Option<Packed<'a, T>>,
    biases: Option<[Packed<'a, T>; 2]>,
}

impl<'a, T: Real> Operands<'a, T> {
    /// # Safety
    /// As `HostFn`.
    unsafe fn of(call: &'a Call<'_>, layer: &Layer) -> Operands<'a, T> {
        // SAFETY: every view of the call is valid for reading.
        let view = |at: usize| unsafe { read::<T>(&call.inputs[at], call.threads) };
        let with_cell = layer.mode == Mode::Lstm;
        let bias = 4 + with_cell as usize;
        Operands {
            x: view(0),
            weight_ih: view(1),
            weight_hh: view(2),
            state: view(3),
            cell: with_cell.then(|| view(4)),
            biases: (call.inputs.len() > bias).then(|| [view(bias), view(bias + 1)]),
        }
    }

    /// What is added to the sums of the gates, and for GRU to what the state adds to them.
    fn summed_biases(&self, layer: &Layer) -> [Scratch<T>; 2] {
        let mut sums = [(); 2].map(|()| Scratch::<T>::zeroed(layer.width()));
        if let Some(biases) = &self.biases {
            for (at, bias) in biases.iter().enumerate() {
                let to = if layer.mode == Mode::Gru { at } else { 0 };
                sums[to].iter_mut().zip(&**bias).for_each(|(sum, &bias)| *sum += bias);
            }
        }
        sums
    }
}

/// A layer over all its steps. Inputs: x `[steps, batch, inputs]` (`[batch, steps, inputs]` if the samples come first); the
/// weights of the input `[gates * hidden, inputs]` and of the state `[gates * hidden, hidden]`; the state `[batch, hidden]`,
/// and for LSTM the cell of that shape; optionally the biases of both weights. Gates in PyTorch's order. Floats of one dtype, any
/// strides. Outputs: the state after each step, in the order of x; what the gradient reads, `[.., kept * hidden]` in the
/// order of x and in the dtype that is computed in, or no elements if it is not asked for; the last state, and for LSTM the last
/// cell. Attributes: mode (Int), batch first (Bool), reverse (Bool).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn recurrent(call: &Call<'_>) {
    let layer = Layer::of(call);
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let given = Operands::<T>::of(call, &layer);
            forward(&layer, call, &given);
        }
    });
}

/// The memory of a walk.
struct Walk<'a, T> {
    layer: &'a Layer,
    given: &'a Operands<'a, T>,
    /// A row for each sample and step: sums of the gates, and what the gradient reads if it is asked for.
    gates: Matrix<T>,
    keeps: bool,
    /// What is added to the gates, and for GRU to what the state adds to them; the same for all rows.
    biases: [Matrix<T>; 2],
    out: Matrix<T>,
    /// The dtype of the output in memory.
    dtype: DType,
    /// A row for each sample.
    last: Matrix<T>,
    last_cell: Option<Matrix<T>>,
}

/// # Safety
/// As `HostFn`.
unsafe fn forward<T: Gated>(layer: &Layer, call: &Call<'_>, given: &Operands<'_, T>) {
    let (threads, hidden, width) = (call.threads, layer.hidden, layer.width());
    // SAFETY: every view of the call is valid, and the sinks are its only users.
    unsafe {
        let mut out = Sink::<T>::new(&call.outputs[0]);
        let mut reserve = Sink::<T>::new(&call.outputs[1]);
        let mut last = Sink::<T>::new(&call.outputs[2]);
        let mut last_cell = given.cell.is_some().then(|| Sink::<T>::new(&call.outputs[3]));
        // The gates of a plain layer become its outputs.
        let plain = layer.mode.kept() == 0;
        let keeps = !plain && !reserve.slice().is_empty();
        let mut own = Scratch::<T>::new(if plain || keeps { 0 } else { layer.rows() * width });
        let gates = match (plain, keeps) {
            (true, _) => Matrix::packed_mut(out.slice(), hidden),
            (_, true) => Matrix::packed_mut(reserve.slice(), layer.mode.kept() * hidden),
            _ => Matrix::packed_mut(&mut own, width),
        };
        let biases = given.summed_biases(layer);
        let walk = Walk {
            layer,
            given,
            gates,
            keeps,
            biases: biases.each_ref().map(|bias| Matrix::packed(bias, 0)),
            out: Matrix::packed_mut(out.slice(), hidden),
            dtype: call.outputs[0].dtype,
            last: Matrix::packed_mut(last.slice(), hidden),
            last_cell: last_cell.as_mut().map(|cell| Matrix::packed_mut(cell.slice(), hidden)),
        };
        walk.add_input(threads);
        let weights = Panels::new(Matrix::packed(&given.weight_hh, hidden).transposed(), hidden, width);
        share(layer, threads, |samples, threads| walk.run(threads, samples, &weights));
        [out, reserve, last].into_iter().chain(last_cell).for_each(|sink| sink.finish(threads));
    }
}

impl<T: Gated> Walk<'_, T> {
    /// What the input of all steps adds to the gates.
    ///
    /// # Safety
    /// The operands are those of the layer.
    unsafe fn add_input(&self, threads: &Threads) {
        let layer = self.layer;
        let sizes = Sizes { m: layer.rows(), n: layer.width(), k: layer.inputs };
        let x = Matrix::packed(&self.given.x, layer.inputs);
        let weight = Matrix::packed(&self.given.weight_ih, layer.inputs).transposed();
        // SAFETY: the sizes are those of the operands; rows of the gates are at least as long as there are gates.
        unsafe { product(threads, sizes, x, weight, self.gates, Accum::Replace) };
    }

    /// All steps of some samples.
    ///
    /// # Safety
    /// The operands are those of the layer, and nobody else writes these samples.
    unsafe fn run(&self, threads: &Threads, samples: Range<usize>, weights: &Panels<T>) {
        let (layer, given) = (self.layer, self.given);
        let (mode, hidden, rows, width) = (layer.mode, layer.hidden, samples.len(), layer.width());
        let mut apart = Scratch::<T>::new(if mode == Mode::Gru { rows * width } else { 0 });
        let from_state = Matrix::packed_mut(&mut apart, width);
        let mut before = Matrix::packed(&given.state, hidden).from(samples.start, 0);
        let mut cell = Matrix::packed(given.cell.as_deref().unwrap_or(&[]), hidden).from(samples.start, 0);
        for i in 0..layer.steps {
            guard::check();
            let step = layer.step(i);
            let gates = at_step(self.gates, layer, step, &samples);
            // SAFETY: the matrices have a row for each of the samples; those that are written belong to this walk.
            unsafe {
                if mode == Mode::Gru {
                    weights.multiply(threads, rows, before, from_state, Accum::Replace);
                } else {
                    weights.multiply(threads, rows, before, gates, Accum::Add);
                }
                let out = at_step(self.out, layer, step, &samples);
                let next = match self.last_cell {
                    Some(_) if self.keeps => gates.from(0, width),
                    Some(last) => last.from(samples.start, 0),
                    None => out,
                };
                let (cell_before, keeps, biases) = (cell, self.keeps, self.biases);
                T::forward(&Forward {
                    mode,
                    rows,
                    hidden,
                    gates,
                    keeps,
                    from_state,
                    biases,
                    before,
                    cell_before,
                    cell: next,
                    out,
                });
                if self.dtype.size_bytes() == 2 {
                    round_rows(self.dtype, out, rows, hidden);
                }
                (before, cell) = (out, next);
            }
        }
        // SAFETY: the last states have a row for each of the samples, which belong to this walk.
        unsafe {
            copy_rows(before, self.last.from(samples.start, 0), rows, hidden);
            if let Some(last) = self.last_cell {
                copy_rows(cell, last.from(samples.start, 0), rows, hidden);
            }
        }
    }
}

/// Rounds rows to 16 bits, as what is stored is: the next step reads that on GPUs.
///
/// # Safety
/// There are so many rows of this length, and nobody else uses them.
unsafe fn round_rows<T: Real>(dtype: DType, of: Matrix<T>, rows: usize, width: usize) {
    for i in 0..rows {
        // SAFETY: the rows exist, and nobody else uses them.
        for x in unsafe { std::slice::from_raw_parts_mut(of.at(i, 0), width) } {
            *x = T::from_f64(match dtype {
                DType::F16 => f16::from_f64(x.to_f64()).to_f64(),
                _ => bf16::from_f64(x.to_f64()).to_f64(),
            });
        }
    }
}

/// Copies rows.
///
/// # Safety
/// Both have so many rows of this length, and nobody else uses those of `to`.
unsafe fn copy_rows<T: Copy>(from: Matrix<T>, to: Matrix<T>, rows: usize, width: usize) {
    for i in 0..rows {
        // SAFETY: the rows exist.
        unsafe { std::ptr::copy(from.at(i, 0), to.at(i, 0), width) };
    }
}

#[cfg(test)]
mod tests;
