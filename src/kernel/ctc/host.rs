//! CTC loss (connectionist temporal classification, Graves et al., 2006): the likelihood of a sequence of labels under all
//! alignments, by log-domain forward and backward sums (alpha, beta) in f64, and its gradient.
//!
//! Samples run in parallel. The caller applies the reduction and `zero_infinity`.

use crate::kernel::abi::{Call, Fault, FaultKind};
use crate::kernel::guard;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Shared, Sink, read, read_as};

/// One sample: its log-probabilities of `classes` at each step, with a stride of `stride` elements, and its labels.
struct Sample<'a, T> {
    logs: &'a [T],
    stride: usize,
    start: usize,
    steps: usize,
    labels: &'a [i64],
    blank: i64,
}

fn log_add(a: f64, b: f64) -> f64 {
    let (high, low) = if a < b { (b, a) } else { (a, b) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

impl<T: Real> Sample<'_, T> {
    /// Number of states: the labels with a blank before, between and after them.
    fn states(&self) -> usize {
        2 * self.labels.len() + 1
    }

    fn label(&self, state: usize) -> i64 {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] }
    }

    fn log(&self, step: usize, label: i64) -> f64 {
        self.logs[step * self.stride + self.start + label as usize].to_f64()
    }

    /// Whether a path may skip the blank before this state.
    fn skips(&self, state: usize) -> bool {
        state % 2 == 1 && state > 1 && self.label(state) != self.label(state - 2)
    }

    /// Logarithms of the sums over all paths from the start into each state, `[steps, states]`.
    fn forward(&self) -> Vec<f64> {
        let states = self.states();
        let mut alpha = guard::filled(self.steps.saturating_mul(states), f64::NEG_INFINITY);
        for (state, alpha) in alpha.iter_mut().enumerate().take(states.min(2)) {
            *alpha = self.log(0, self.label(state));
        }
        for step in 1..self.steps {
            guard::check();
            let (before, now) = alpha[(step - 1) * states..].split_at_mut(states);
            for state in 0..states {
                let mut sum = before[state];
                if state > 0 {
                    sum = log_add(sum, before[state - 1]);
                }
                if self.skips(state) {
                    sum = log_add(sum, before[state - 2]);
                }
                now[state] = sum + self.log(step, self.label(state));
            }
        }
        alpha
    }

    /// The same from each state, its own step included, to the end.
    fn backward(&self) -> Vec<f64> {
        let states = self.states();
        let mut beta = guard::filled(self.steps.saturating_mul(states), f64::NEG_INFINITY);
        let last = (self.steps - 1) * states;
        for state in states.saturating_sub(2)..states {
            beta[last + state] = self.log(self.steps - 1, self.label(state));
        }
        for step in (0..self.steps - 1).rev() {
            guard::check();
            let (now, after) = beta[step * states..].split_at_mut(states);
            for state in 0..states {
                let mut sum = after[state];
                if state + 1 < states {
                    sum = log_add(sum, after[state + 1]);
                }
                if state + 2 < states && self.skips(state + 2) {
                    sum = log_add(sum, after[state + 2]);
                }
                now[state] = sum + self.log(step, self.label(state));
            }
        }
        beta
    }

    fn loss(&self, alpha: &[f64]) -> f64 {
        if self.steps == 0 {
            return if self.labels.is_empty() { 0.0 } else { f64::INFINITY };
        }
        let ends = &alpha[(self.steps - 1) * self.states()..];
        let (last, before) =
            (ends[self.states() - 1], if self.labels.is_empty() { None } else { ends.get(self.states() - 2) });
        -before.map_or(last, |&before| log_add(last, before))
    }

    /// Adds the gradient times `g`. As in PyTorch, it is valid for log-probabilities that are the result of a
    /// log-softmax.
    fn gradient(&self, classes: usize, g: f64, to: Shared<T>) {
        if self.steps == 0 {
            return;
        }
        let (alpha, beta) = (self.forward(), self.backward());
        let loss = self.loss(&alpha);
        if g == 0.0 {
            return;
        }
        let states = self.states();
        let mut sums = guard::filled(classes, f64::NEG_INFINITY);
        for step in 0..self.steps {
            guard::check();
            sums.fill(f64::NEG_INFINITY);
            for state in 0..states {
                let sum = &mut sums[self.label(state) as usize];
                *sum = log_add(*sum, alpha[step * states + state] + beta[step * states + state]);
            }
            // SAFETY: no other sample writes these elements.
            let out = unsafe { to.range(step * self.stride + self.start..step * self.stride + self.start + classes) };
            for (label, (out, &sum)) in out.iter_mut().zip(&sums).enumerate() {
                let log = self.log(step, label as i64);
                *out = T::from_f64((log.exp() - (sum + loss - log).exp()) * g);
            }
        }
    }
}

/// The samples of a call: inputs 0 and 1, attributes 0 to 3. Invalid labels are reported; their sample is `None`.
fn samples<'a, T: Real>(call: &Call<'_>, logs: &'a [T], labels: &'a [i64]) -> Vec<Option<Sample<'a, T>>> {
    let shape = &call.inputs[0].shape;
    let (n, classes) = (shape[1], shape[2]);
    let [steps, lengths, starts] = [0, 1, 2].map(|i| attributes::ints(call, i));
    let blank = attributes::int(call, 3);
    (0..n)
        .map(|i| {
            let labels = &labels[starts[i] as usize..(starts[i] + lengths[i]) as usize];
            if let Some(at) = labels.iter().position(|&label| label < 0 || label >= classes as i64) {
                let position = (starts[i] as usize + at) as u64;
                let fault = Fault { kind: FaultKind::Label, position, value: labels[at], bound: classes as i64 };
                call.faults.report(fault);
                return None;
            }
            Some(Sample { logs, stride: n * classes, start: i * classes, steps: steps[i] as usize, labels, blank })
        })
        .collect()
}

/// Losses. Inputs: log-probabilities `[T, N, C]`; labels (i64), all in one row. Output: `[N]`. Attributes: for each
/// sample its steps (Ints), its number of labels (Ints) and the position of its first label (Ints); the class of the
/// blank (Int). Faults: `Label`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn ctc_loss(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let logs = read::<T>(&call.inputs[0], call.threads);
            let labels = read_as::<i64>(&call.inputs[1]);
            let samples = samples(call, &logs, &labels);
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            let out = Shared::new(sink.slice());
            call.threads.split(samples.len(), 1, |range| {
                for i in range {
                    let loss = samples[i].as_ref().map_or(0.0, |s| s.loss(&if s.steps > 0 { s.forward() } else { Vec::new() }));
                    // Each sample has one element.
                    out.range(i..i + 1)[0] = T::from_f64(loss);
                }
            });
            sink.finish(call.threads);
        }
    });
}

/// Their gradient. Inputs: as `ctc_loss`, then the losses' gradient `[N]`. Output: `[T, N, C]`. Attributes: as `ctc_loss`.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn ctc_loss_grad(call: &Call<'_>) {
    real!(call.outputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let logs = read::<T>(&call.inputs[0], call.threads);
            let labels = read_as::<i64>(&call.inputs[1]);
            let g = read::<T>(&call.inputs[2], call.threads);
            let samples = samples(call, &logs, &labels);
            let classes = call.inputs[0].shape[2];
            let mut sink = Sink::<T>::new(&call.outputs[0]);
            sink.slice().fill(T::ZERO);
            let out = Shared::new(sink.slice());
            call.threads.split(samples.len(), 1, |range| {
                for i in range {
                    if let Some(sample) = &samples[i] {
                        sample.gradient(classes, g[i].to_f64(), out);
                    }
                }
            });
            sink.finish(call.threads);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::Attr;
    use crate::base::dtype::DType;
    use crate::kernel::host::staging::testing;
    use crate::kernel::host::staging::testing::Array;

    /// The sum over all alignments, enumerated.
    #[test]
    fn loss_is_the_sum_over_alignments() {
        let (steps, classes) = (4usize, 3usize);
        let labels = [1i64, 2];
        let mut logs = Array::wave(DType::F64, &[steps, 1, classes], 0.4).get();
        for step in logs.chunks_mut(classes) {
            let sum: f64 = step.iter().map(|x| x.exp()).sum();
            step.iter_mut().for_each(|x| *x -= sum.ln());
        }
        let mut likelihood = 0.0;
        for path in 0..classes.pow(steps as u32) {
            let path: Vec<usize> = (0..steps).map(|t| path / classes.pow(t as u32) % classes).collect();
            let mut seen: Vec<i64> = path.iter().map(|&c| c as i64).collect();
            seen.dedup();
            seen.retain(|&c| c != 0);
            if seen == labels {
                likelihood += path.iter().enumerate().map(|(t, &c)| logs[t * classes + c]).sum::<f64>().exp();
            }
        }
        let inputs = Array::of(DType::F64, &[steps, 1, classes], &logs);
        let targets = Array::of(DType::I64, &[2], &[1.0, 2.0]);
        let out = Array::empty(DType::F64, &[1]);
        let attrs = [testing::ints(&[steps as i64]), testing::ints(&[2]), testing::ints(&[0]), Attr::Int(0)];
        assert!(testing::call(ctc_loss, &[&inputs, &targets], &[&out], &attrs).is_none());
        testing::close(&out.get(), &[-likelihood.ln()], 1e-12);
        let bad = Array::of(DType::I64, &[2], &[1.0, 3.0]);
        assert!(testing::call(ctc_loss, &[&inputs, &bad], &[&out], &attrs).is_some());
    }
}
