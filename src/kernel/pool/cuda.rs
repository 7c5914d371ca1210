//! CUDA launches of the kernels in `kernel/pool/host`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::conv::geometry::three;
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "pool/args.cuh";
    struct Args {
        x: const T,
        y: mut T,
        indices: mut i64,
        grad_in: mut C,
        planes: usize,
        adaptive: u64,
        counted: u64,
        divisor: f64,
        input: [usize; 3],
        output: [usize; 3],
        kernel: [i64; 3],
        stride: [i64; 3],
        padding: [i64; 3],
        dilation: [i64; 3],
    }
}

/// Product of the leading dims, and the last `spatial` dims padded to three.
pub fn planes(view: &RawView, spatial: usize) -> (usize, [usize; 3]) {
    let lead = view.shape.len().saturating_sub(spatial);
    let mut size = [1; 3];
    size[3 - spatial.min(3)..].copy_from_slice(&view.shape[lead..]);
    (view.shape[..lead].iter().product(), size)
}

/// The kind of windows: attributes are kernel, stride, padding and others; or, for adaptive pooling, the number of
/// dims.
#[derive(Clone, Copy, PartialEq)]
enum Windows {
    Dilated,
    Average,
    Adaptive,
}

impl Args {
    fn of(call: &Call<'_>, from: &RawView, to: &RawView, windows: Windows) -> Args {
        let adaptive = windows == Windows::Adaptive;
        let dims = if adaptive { attributes::size(call, 0) } else { attributes::ints(call, 0).len() };
        let ((planes, input), (_, output)) = (planes(from, dims), planes(to, dims));
        let ints = |i: usize, missing: i64| three(attributes::ints(call, i), missing);
        let average = windows == Windows::Average;
        let dilation = if windows == Windows::Dilated { ints(3, 1).map(|d| d.max(1)) } else { [1; 3] };
        let [kernel, stride, padding] = if adaptive { [[1; 3]; 3] } else { [ints(0, 1), ints(1, 1), ints(2, 0)] };
        Args {
            planes,
            adaptive: adaptive as u64,
            counted: (average && attributes::flag(call, 3)) as u64,
            divisor: if average { attributes::float_or_none(call, 4).unwrap_or(0.0) } else { 0.0 },
            input,
            output,
            kernel,
            stride,
            padding,
            dilation,
            ..Args::NONE
        }
    }
}

fn text(dtype: DType) -> &'static Source {
    source("pool/pool.cuh", &[("T", Value::Type(dtype))])
}

fn largest(call: &Call<'_>, windows: Windows, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let at = Output::new(&call.outputs[1], DType::I64, gpu)?;
    let mut args = Args::of(call, &x, &y.dense, windows);
    (args.x, args.y, args.indices) = (x.ptr, y.dense.ptr, at.dense.ptr);
    each(text(dtype), "ts_max_pool", y.dense.numel(), args.words(), gpu)?;
    y.finish(gpu)?;
    at.finish(gpu)
}

pub fn max_pool(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    largest(call, Windows::Dilated, gpu)
}

pub fn adaptive_max_pool(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    largest(call, Windows::Adaptive, gpu)
}

pub fn max_pool_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (g, dx) = (&call.inputs[0], &call.outputs[0]);
    let dtype = g.dtype;
    let at = input(&call.inputs[1], DType::I64, gpu)?;
    let g = input(g, dtype, gpu)?;
    let direct = dx.dtype == dtype.compute() && dx.is_contiguous();
    let sums = if direct { dx.clone() } else { scratch(dtype.compute(), &dx.shape, gpu)? };
    gpu.fill_zero(sums.ptr, sums.numel() * sums.dtype.size_bytes())?;
    let mut args = Args::of(call, dx, &g, Windows::Adaptive);
    (args.x, args.indices, args.grad_in) = (g.ptr, at.ptr, sums.ptr);
    each(text(dtype), "ts_max_pool_grad", g.numel(), args.words(), gpu)?;
    if direct { Ok(()) } else { copy_view(&sums, dx, gpu) }
}

fn mean(call: &Call<'_>, windows: Windows, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let mut args = Args::of(call, &x, &y.dense, windows);
    (args.x, args.y) = (x.ptr, y.dense.ptr);
    each(text(dtype), "ts_avg_pool", y.dense.numel(), args.words(), gpu)?;
    y.finish(gpu)
}

pub fn avg_pool(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    mean(call, Windows::Average, gpu)
}

pub fn adaptive_avg_pool(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    mean(call, Windows::Adaptive, gpu)
}

fn mean_grad(call: &Call<'_>, windows: Windows, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let g = input(&call.inputs[0], dtype, gpu)?;
    let dx = Output::new(&call.outputs[0], dtype, gpu)?;
    let mut args = Args::of(call, &dx.dense, &g, windows);
    (args.x, args.y) = (g.ptr, dx.dense.ptr);
    each(text(dtype), "ts_avg_pool_grad", dx.dense.numel(), args.words(), gpu)?;
    dx.finish(gpu)
}

pub fn avg_pool_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    mean_grad(call, Windows::Average, gpu)
}

pub fn adaptive_avg_pool_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    mean_grad(call, Windows::Adaptive, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().filter(|dtype| dtype.is_float()).map(text).collect()
}
