//! The sizes of a layer, and where its steps lie in memory. Host and CUDA share it.

use crate::kernel::abi::Call;
use crate::kernel::host::attributes;

/// What happens in a step. The numbers are those of cuDNN's `cudnnRNNMode_t`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i64)]
pub enum Mode {
    Relu = 0,
    Tanh = 1,
    Lstm = 2,
    Gru = 3,
}

impl Mode {
    /// Words for them, by their numbers.
    pub const NAMES: [&'static str; 4] = ["rnn_relu", "rnn_tanh", "lstm", "gru"];

    pub fn of(number: i64) -> Mode {
        match number {
            0 => Mode::Relu,
            1 => Mode::Tanh,
            2 => Mode::Lstm,
            _ => Mode::Gru,
        }
    }

    /// Gates of a unit, each with a row of both weights.
    pub fn gates(self) -> usize {
        match self {
            Mode::Relu | Mode::Tanh => 1,
            Mode::Lstm => 4,
            Mode::Gru => 3,
        }
    }

    /// Numbers of a unit and step that the gradient reads beside the output. LSTM: the gates i, f, g, o after their functions, and
    /// the cell. GRU: the gates r, z, n after their functions, and what the state adds to n before r multiplies it.
    pub fn kept(self) -> usize {
        match self {
            Mode::Relu | Mode::Tanh => 0,
            Mode::Lstm => 5,
            Mode::Gru => 4,
        }
    }
}

/// One direction of one layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layer {
    pub mode: Mode,
    pub steps: usize,
    pub batch: usize,
    pub inputs: usize,
    pub hidden: usize,
    /// Whether the samples are the first dim of input and output, not the steps.
    pub batch_first: bool,
    /// Whether the last step is computed first.
    pub reverse: bool,
}

impl Layer {
    /// The layer of a call whose first inputs are the input and the weights, and whose first attributes are the mode,
    /// `batch_first` and `reverse`.
    pub fn of(call: &Call<'_>) -> Layer {
        let (x, weight) = (&call.inputs[0].shape, &call.inputs[2].shape);
        let batch_first = attributes::flag(call, 1);
        let (steps, batch) = if batch_first { (x[1], x[0]) } else { (x[0], x[1]) };
        Layer {
            mode: Mode::of(attributes::int(call, 0)),
            steps,
            batch,
            inputs: x[2],
            hidden: weight[1],
            batch_first,
            reverse: attributes::flag(call, 2),
        }
    }

    /// Steps of all samples: rows of the input and the output.
    pub fn rows(&self) -> usize {
        self.steps * self.batch
    }

    /// Gates of all units.
    pub fn width(&self) -> usize {
        self.mode.gates() * self.hidden
    }

    /// The step that is computed as the `i`th.
    pub fn step(&self, i: usize) -> usize {
        if self.reverse { self.steps - 1 - i } else { i }
    }

    /// The row of a sample at a step.
    pub fn row(&self, step: usize, sample: usize) -> usize {
        if self.batch_first { sample * self.steps + step } else { step * self.batch + sample }
    }

    /// Rows from one sample to the next.
    pub fn apart(&self) -> usize {
        if self.batch_first { self.steps } else { 1 }
    }
}
