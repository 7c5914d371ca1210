//! CUDA launches of the kernels in `kernel/ctc/host`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input};
use crate::kernel::cuda::rows::{address, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    // Bound: samples of one launch, whose sizes are among its arguments.
    pub static ARGS = "ctc/args.cuh", MAX_SAMPLES = 96;
    struct Args {
        log_probs: const T,
        labels: const i64,
        dy: const T,
        y: mut T,
        /// For each sample of the launch `sample_doubles` numbers: the loss; whether its labels are invalid; alpha of each
        /// step and state; beta.
        alpha_beta: mut f64,
        fault: mut void,
        samples: usize,
        classes: usize,
        blank: i64,
        first: usize,
        sample_doubles: usize,
        rolling: u64,
        /// For each sample of the launch: its steps, its number of labels, and the position of its first label.
        sizes: [i64; 3 * MAX_SAMPLES],
    }
}

fn text(dtype: DType) -> &'static Source {
    source("ctc/ctc.cuh", &[("T", Value::Type(dtype))])
}

pub fn ctc_loss(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, false, gpu)
}

pub fn ctc_loss_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, true, gpu)
}

fn run(call: &Call<'_>, gradient: bool, gpu: &mut dyn Gpu) -> Done {
    let shape = &call.inputs[0].shape;
    let (max_steps, n, classes) = (shape[0], shape[1], shape[2]);
    let [steps, lengths, starts] = [0, 1, 2].map(|i| attributes::ints(call, i));
    let dtype = call.inputs[0].dtype.compute();
    if n == 0 {
        return Ok(());
    }
    let log_probs = input(&call.inputs[0], dtype, gpu)?;
    let labels = input(&call.inputs[1], DType::I64, gpu)?;
    let g = gradient.then(|| input(&call.inputs[2], dtype, gpu)).transpose()?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    if gradient {
        gpu.fill_zero(y.dense.ptr, y.dense.numel() * dtype.size_bytes())?;
    }
    // The loss needs the last two steps of alpha, the gradient all of alpha and beta.
    let rows = |steps: i64| if gradient { 2 * steps as usize } else { 2 };
    let numbers = |(&steps, &length): (&i64, &i64)| rows(steps) * (2 * length as usize + 1);
    let sample_doubles = 2 + steps.iter().zip(lengths).map(numbers).max().unwrap_or(0);
    let alpha_beta = gpu.scratch(n.min(MAX_SAMPLES) * sample_doubles * 8)?;
    let fault = gpu.fault_slot(0)?;
    for first in (0..n).step_by(MAX_SAMPLES) {
        let count = MAX_SAMPLES.min(n - first);
        let mut args = Args {
            log_probs: log_probs.ptr,
            labels: labels.ptr,
            dy: address(g.as_ref()),
            y: y.dense.ptr,
            alpha_beta,
            fault,
            samples: n,
            classes,
            blank: attributes::int(call, 3),
            first,
            sample_doubles,
            rolling: !gradient as u64,
            sizes: [0; 3 * MAX_SAMPLES],
        };
        for (i, sample) in (first..first + count).enumerate() {
            args.sizes[3 * i..3 * i + 3].copy_from_slice(&[steps[sample], lengths[sample], starts[sample]]);
        }
        launch(text(dtype), "ts_ctc_alpha_beta", (count, 1 + gradient as usize), 256, args.words(), gpu)?;
        if gradient && max_steps > 0 {
            launch(text(dtype), "ts_ctc_grad", (max_steps, count), 256, args.words(), gpu)?;
        }
    }
    y.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    [DType::F32, DType::F64].into_iter().map(text).collect()
}
