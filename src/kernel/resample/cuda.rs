//! CUDA launches of the kernels in `kernel/resample/pad` and `kernel/resample/host`.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::attributes;
use crate::kernel::host::walk::{ints, scalar, word};
use crate::kernel::pool::cuda::{planes, planes_of_thread};
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
        /// Inputs for each output, in the precision that is computed in, and as a float for the modes that take one input.
        scale: [f64; 3],
        nearest_scale: [f64; 3],
        /// Elements, one for a thread.
        n: u64,
        /// What `ts_fast_div` divides by the sizes with.
        divide_input: [u64; 3],
        divide_output: [u64; 3],
        reads: mut void,
        readers: mut void,
    }
}

/// The mode numbers of `resample/resample.cuh`. Weights for u8 are not rounded, as in PyTorch on GPUs.
fn mode(name: &str) -> u64 {
    match name.strip_suffix(" of bytes").unwrap_or(name) {
        "reflect" => 0,
        "replicate" => 1,
        "circular" => 2,
        "nearest" => NEAREST,
        "nearest-exact" => 4,
        "bicubic" | "cubic" => CUBIC,
        _ => LINEAR,
    }
}

const NEAREST: u64 = 3;
const LINEAR: u64 = 5;
const CUBIC: u64 = 6;

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
        Ok(Args { planes: count, mode: mode(word(call, 1)), pad_before, ..Args::between(input, output) })
    }

    fn resampling(call: &Call<'_>, from: &RawView, to: &RawView) -> Args {
        let dims = attributes::size(call, 0);
        let ((count, input), (_, output)) = (planes(from, dims), planes(to, dims));
        let given: &[f64] = if let Some(Attr::Floats(factors)) = call.attrs.get(3) { factors } else { &[] };
        let is_unchanged = |d: usize| d + dims < 3;
        let align = attributes::flag(call, 2);
        let factor = |d: usize| given.get((d + dims).wrapping_sub(3)).copied().filter(|&factor| factor > 0.0);
        let scale = |d: usize, align: bool, wide: bool| {
            let (from, to) = (input[d] as f64, output[d] as f64);
            let ratio = |a: f64, b: f64| if wide { a / b } else { (a as f32 / b as f32) as f64 };
            match factor(d) {
                _ if align => {
                    if to > 1.0 {
                        ratio(from - 1.0, to - 1.0)
                    } else {
                        0.0
                    }
                }
                Some(factor) if wide => 1.0 / factor,
                Some(factor) => (1.0 / factor) as f32 as f64,
                None => ratio(from, to),
            }
        };
        Args {
            planes: count,
            mode: mode(attributes::text(call, 1)),
            align: align as u64,
            unchanged: std::array::from_fn(|d| is_unchanged(d) as u64),
            scale: std::array::from_fn(|d| scale(d, align, from.dtype == DType::F64)),
            nearest_scale: std::array::from_fn(|d| scale(d, false, false)),
            ..Args::between(input, output)
        }
    }

    fn between(input: [usize; 3], output: [usize; 3]) -> Args {
        Args {
            input,
            output,
            divide_input: input.map(|size| division(size as u64)),
            divide_output: output.map(|size| division(size as u64)),
            ..Args::NONE
        }
    }

    fn is_wide(&self) -> bool {
        let elements = |size: &[usize; 3]| self.planes * size.iter().product::<usize>();
        elements(&self.input).max(elements(&self.output)) > i32::MAX as usize - 256
    }

    /// How many inputs an output reads in each dim.
    fn taps(&self) -> [u32; 3] {
        let taps = match self.mode {
            LINEAR => 2,
            CUBIC => 4,
            _ => 1,
        };
        self.unchanged.map(|unchanged| if unchanged == 1 { 1 } else { taps })
    }

    /// Makes the tables of the gradient: what the outputs read, and who reads the inputs.
    fn with_tables(mut self, dtype: DType, gpu: &mut dyn Gpu) -> Result<Args, GpuError> {
        let (inputs, outputs) = (self.input.iter().sum::<usize>(), self.output.iter().sum::<usize>());
        let bytes = if self.is_wide() || dtype.compute() != DType::F32 { [48, 16] } else { [24, 8] };
        self.reads = gpu.scratch(outputs * bytes[0])?;
        self.readers = gpu.scratch(inputs * bytes[1])?;
        let text = text(dtype, self.is_wide(), self.taps(), 1);
        each(text, "ts_interpolate_tables", inputs + outputs, self.words(), gpu)?;
        Ok(self)
    }

    fn launch(&self, entry: &str, x: &RawView, y: &RawView, gpu: &mut dyn Gpu) -> Done {
        let places = y.numel() / self.planes.max(1);
        let interpolates = self.mode >= NEAREST;
        let planes = if interpolates { planes_of_thread(self.planes, places, gpu) } else { 1 };
        let n = places * self.planes.div_ceil(planes);
        let args = Args { x: x.ptr, y: y.ptr, n: n as u64, ..*self };
        each(text(x.dtype, self.is_wide(), self.taps(), planes as u32), entry, n, args.words(), gpu)
    }
}

fn text(dtype: DType, is_wide: bool, taps: [u32; 3], planes: u32) -> &'static Source {
    let [t0, t1, t2] = taps.map(Value::Number);
    let names = [
        ("T", Value::Type(dtype)),
        ("WIDE", Value::Number(is_wide as u32)),
        ("TAPS0", t0),
        ("TAPS1", t1),
        ("TAPS2", t2),
        ("PLANES", Value::Number(planes)),
    ];
    source("resample/resample.cuh", &names)
}

/// Launches with contiguous operands. `args` is called with the view of the input's side first, also for gradients,
/// where that is the result.
fn run(
    call: &Call<'_>,
    entry: &str,
    is_gradient: bool,
    args: impl FnOnce(&RawView, &RawView, &mut dyn Gpu) -> Result<Args, GpuError>,
    gpu: &mut dyn Gpu,
) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let args = if is_gradient { args(y, x, gpu)? } else { args(x, y, gpu)? };
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
    run(call, "ts_pad", false, |from, to, _| Args::padding(call, from, to), gpu)
}

pub fn pad_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_pad_grad", true, |from, to, _| Args::padding(call, from, to), gpu)
}

pub fn interpolate(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, "ts_interpolate", false, |from, to, _| Ok(Args::resampling(call, from, to)), gpu)
}

pub fn interpolate_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let args = |from: &RawView, to: &RawView, gpu: &mut dyn Gpu| {
        Args::resampling(call, from, to).with_tables(call.inputs[0].dtype, gpu)
    };
    run(call, "ts_interpolate_grad", true, args, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let forms = [(false, [1, 2, 2]), (true, [1, 1, 1]), (false, [4, 4, 4])].into_iter().cycle();
    let planes = [1, 8].into_iter().cycle();
    let forms = DType::REAL.into_iter().zip(forms).zip(planes);
    forms.map(|((dtype, (wide, taps)), planes)| text(dtype, wide, taps, planes)).collect()
}
