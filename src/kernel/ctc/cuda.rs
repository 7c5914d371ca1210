//! CUDA launches of the kernels in `kernel/ctc/host`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

/// Bound: samples of one launch, whose sizes are among its arguments; `TS_SAMPLES` in the text.
const CTC_SAMPLES: usize = 96;

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
    let alpha_beta = gpu.scratch(n.min(CTC_SAMPLES) * sample_doubles * 8)?;
    let fault = gpu.fault_slot(0)?;
    for first in (0..n).step_by(CTC_SAMPLES) {
        let count = CTC_SAMPLES.min(n - first);
        let mut words = [0u64; 12 + 3 * CTC_SAMPLES];
        let addresses = [log_probs.ptr, labels.ptr, g.as_ref().map_or(std::ptr::null_mut(), |g| g.ptr), y.dense.ptr];
        for (word, address) in words.iter_mut().zip(addresses.into_iter().chain([alpha_beta, fault])) {
            *word = address as u64;
        }
        let blank = attributes::int(call, 3);
        words[6..11].copy_from_slice(&[n as u64, classes as u64, blank as u64, first as u64, sample_doubles as u64]);
        words[11] = !gradient as u64;
        for (i, sample) in (first..first + count).enumerate() {
            let sizes = [steps[sample], lengths[sample], starts[sample]];
            words[12 + 3 * i..15 + 3 * i].copy_from_slice(&sizes.map(|size| size as u64));
        }
        launch(text(dtype), "ts_ctc_alpha_beta", (count, 1 + gradient as usize), 256, &words, gpu)?;
        if gradient && max_steps > 0 {
            launch(text(dtype), "ts_ctc_grad", (max_steps, count), 256, &words, gpu)?;
        }
    }
    y.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    [DType::F32, DType::F64].into_iter().map(text).collect()
}
