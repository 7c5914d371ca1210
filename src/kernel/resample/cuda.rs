//! CUDA launches of the kernels in `kernel/resample/pad` and `kernel/resample/host`.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::host::walk::{ints, scalar, word};
use crate::kernel::pool::cuda::planes;
use crate::kernel::resample::pad::{pads_of, windows};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "resample/args.cuh";
    /// Dims of the input's side and of the output's.
    struct Args {
        x: const T,
        y: mut T,
        planes: usize,
        mode: u64,
        align: u64,
        input: [usize; 3],
        output: [usize; 3],
        pad_before: [i64; 3],
        unchanged: [u64; 3],
        /// Scale factors of the caller; 0 if there is none.
        scale_factor: [f64; 3],
    }
}

/// The mode numbers of `resample/resample.cuh`. Weights for u8 are not rounded, as in PyTorch on GPUs.
fn mode(name: &str) -> u64 {
    match name.strip_suffix(" of bytes").unwrap_or(name) {
        "reflect" => 0,
        "replicate" => 1,
        "circular" => 2,
        "nearest" => 3,
        "nearest-exact" => 4,
        "bicubic" | "cubic" => 6,
        _ => 5,
    }
}

impl Args {
    /// The last dims, up to three, which are padded.
    fn padding(call: &Call<'_>, from: &RawView, to: &RawView) -> Result<Args, GpuError> {
        let mut pad_before = [0; 3];
        for (k, pair) in ints(call, 0).chunks_exact(2).enumerate() {
            match pad_before.len().checked_sub(k + 1) {
                Some(d) => pad_before[d] = pair[0],
                None if pair.iter().all(|&pad| pad == 0) => {}
                None => return Err(GpuError::Unsupported("padding of more than three dims")),
            }
        }
        let spatial = from.shape.len().min(3);
        let ((count, input), (_, output)) = (planes(from, spatial), planes(to, spatial));
        Ok(Args { planes: count, mode: mode(word(call, 1)), input, output, pad_before, ..Args::NONE })
    }

    fn resampling(call: &Call<'_>, from: &RawView, to: &RawView) -> Args {
        let dims = attributes::size(call, 0);
        let ((count, input), (_, output)) = (planes(from, dims), planes(to, dims));
        let given: &[f64] = if let Some(Attr::Floats(factors)) = call.attrs.get(3) { factors } else { &[] };
        let is_unchanged = |d: usize| d + dims < 3;
        let scale_factor =
            std::array::from_fn(
                |d| if is_unchanged(d) { 0.0 } else { given.get(d + dims - 3).copied().unwrap_or(0.0) },
            );
        Args {
            planes: count,
            mode: mode(attributes::text(call, 1)),
            align: attributes::flag(call, 2) as u64,
            input,
            output,
            unchanged: std::array::from_fn(|d| is_unchanged(d) as u64),
            scale_factor,
            ..Args::NONE
        }
    }

    fn launch(&self, entry: &str, x: &RawView, y: &RawView, gpu: &mut dyn Gpu) -> Done {
        let args = Args { x: x.ptr, y: y.ptr, ..*self };
        each(text(x.dtype), entry, y.numel(), args.words(), gpu)
    }
}

fn text(dtype: DType) -> &'static Source {
    source("resample/resample.cuh", &[("T", Value::Type(dtype))])
}

/// Launches with contiguous operands. `args` is called with the view of the input's side first, also for gradients,
/// where that is the result.
fn run(
    call: &Call<'_>,
    entry: &str,
    is_gradient: bool,
    args: impl FnOnce(&RawView, &RawView) -> Result<Args, GpuError>,
    gpu: &mut dyn Gpu,
) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let args = if is_gradient { args(y, x)? } else { args(x, y)? };
    if y.numel() == 0 || (!is_gradient && x.numel() == 0) {
        return Ok(());
    }
    let x = input(x, x.dtype, gpu)?;
    let y = Output::new(y, x.dtype, gpu)?;
    args.launch(entry, &x, &y.dense, gpu)?;
    y.finish(gpu)
}

pub fn pad_constant(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let pads = pads_of(call, x.shape.len());
    if pads.iter().any(|&(before, after)| before > 0 || after > 0) {
        fill(scalar(call, 1).unwrap_or(Scalar::Int(0)), y, gpu)?;
    }
    let (from, to) = windows(x, y, &pads);
    copy_view(&from, &to, gpu)
}

pub fn pad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_pad", false, |from, to| Args::padding(call, from, to), gpu)
}

pub fn pad_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_pad_grad", true, |from, to| Args::padding(call, from, to), gpu)
}

pub fn interpolate(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_interpolate", false, |from, to| Ok(Args::resampling(call, from, to)), gpu)
}

pub fn interpolate_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_interpolate_grad", true, |from, to| Ok(Args::resampling(call, from, to)), gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
