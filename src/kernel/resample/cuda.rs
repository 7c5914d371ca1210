//! CUDA launches of the kernels in `kernel/resample/pad` and `kernel/resample/host`.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::host::walk::{ints, scalar, shifted, word};
use crate::kernel::pool::cuda::planes;

type Done = Result<(), GpuError>;

/// The argument words of `resample/resample.cuh`; dims of the input's side and of the output's.
struct Words {
    planes: usize,
    mode: u64,
    align: bool,
    input: [usize; 3],
    output: [usize; 3],
    before: [i64; 3],
    still: [bool; 3],
    factor: [f64; 3],
}

/// The numbers of `resample/resample.cuh`. Bytes have the plain weights here, as on PyTorch's GPUs.
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

impl Words {
    /// Up to three padded dims, the last ones.
    fn padding(call: &Call<'_>, from: &RawView, to: &RawView) -> Result<Words, GpuError> {
        let mut before = [0; 3];
        for (k, pair) in ints(call, 0).chunks_exact(2).enumerate() {
            match before.len().checked_sub(k + 1) {
                Some(d) => before[d] = pair[0],
                None if pair.iter().all(|&pad| pad == 0) => {}
                None => return Err(GpuError::Unsupported("padding of more than three dims")),
            }
        }
        let spatial = from.shape.len().min(3);
        let ((count, input), (_, output)) = (planes(from, spatial), planes(to, spatial));
        let (still, factor) = ([false; 3], [0.0; 3]);
        Ok(Words { planes: count, mode: mode(word(call, 1)), align: false, input, output, before, still, factor })
    }

    fn resampling(call: &Call<'_>, from: &RawView, to: &RawView) -> Words {
        let dims = attributes::size(call, 0);
        let ((count, input), (_, output)) = (planes(from, dims), planes(to, dims));
        let given: &[f64] = if let Some(Attr::Floats(factors)) = call.attrs.get(3) { factors } else { &[] };
        let still = std::array::from_fn(|d| d + dims < 3);
        let factor =
            std::array::from_fn(|d| if still[d] { 0.0 } else { given.get(d + dims - 3).copied().unwrap_or(0.0) });
        let (mode, align) = (mode(attributes::text(call, 1)), attributes::flag(call, 2));
        Words { planes: count, mode, align, input, output, before: [0; 3], still, factor }
    }

    fn launch(&self, entry: &str, x: &RawView, y: &RawView, gpu: &mut dyn Gpu) -> Done {
        let mut words = vec![x.ptr as u64, y.ptr as u64, self.planes as u64, self.mode, self.align as u64];
        words.extend(self.input.iter().chain(&self.output).map(|&n| n as u64));
        words.extend(self.before.iter().map(|&n| n as u64));
        words.extend(self.still.iter().map(|&still| still as u64));
        words.extend(self.factor.iter().map(|factor| factor.to_bits()));
        each(text(x.dtype), entry, y.numel(), &words, gpu)
    }
}

fn text(dtype: DType) -> &'static Source {
    source("resample/resample.cuh", &[("T", Value::Type(dtype))])
}

/// Operands made dense; `words` gets the view of the input's side first, also where it is the result.
fn run(
    call: &Call<'_>,
    entry: &str,
    is_gradient: bool,
    words: impl FnOnce(&RawView, &RawView) -> Result<Words, GpuError>,
    gpu: &mut dyn Gpu,
) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let words = if is_gradient { words(y, x)? } else { words(x, y)? };
    if y.numel() == 0 || (!is_gradient && x.numel() == 0) {
        return Ok(());
    }
    let x = input(x, x.dtype, gpu)?;
    let y = Output::new(y, x.dtype, gpu)?;
    words.launch(entry, &x, &y.dense, gpu)?;
    y.finish(gpu)
}

pub fn pad_constant(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    // PyTorch's list: the last dim first, before and after.
    let mut pads = vec![(0i64, 0i64); x.shape.len()];
    let last = pads.len();
    for (k, pair) in ints(call, 0).chunks_exact(2).enumerate().take(last) {
        pads[last - 1 - k] = (pair[0], pair[1]);
    }
    if pads.iter().any(|&(before, after)| before > 0 || after > 0) {
        fill(scalar(call, 1).unwrap_or(Scalar::Int(0)), y, gpu)?;
    }
    let (mut from, mut to) = (0, 0);
    let mut shape = Shape::new();
    for (d, &(before, after)) in pads.iter().enumerate() {
        from += (-before).max(0) as isize * x.strides[d];
        to += before.max(0) as isize * y.strides[d];
        shape.push((x.shape[d] as i64 + before.min(0) + after.min(0)).max(0) as usize);
    }
    let from = shifted(x, from, shape.clone(), x.strides.clone());
    copy_view(&from, &shifted(y, to, shape, y.strides.clone()), gpu)
}

pub fn pad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_pad", false, |from, to| Words::padding(call, from, to), gpu)
}

pub fn pad_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_pad_grad", true, |from, to| Words::padding(call, from, to), gpu)
}

pub fn interpolate(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_interpolate", false, |from, to| Ok(Words::resampling(call, from, to)), gpu)
}

pub fn interpolate_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_interpolate_grad", true, |from, to| Ok(Words::resampling(call, from, to)), gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::ALL.into_iter().map(text).collect()
}
