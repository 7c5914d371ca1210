//! CUDA launches of the kernels in `kernel/pool/host`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::conv::geometry::three;
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
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
        /// Elements, one for a thread or a warp.
        n: u64,
        /// What `ts_fast_div` divides by the sizes and strides with.
        divide_input: [u64; 3],
        divide_output: [u64; 3],
        divide_stride: [u64; 3],
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
            divide_input: input.map(|size| division(size as u64)),
            divide_output: output.map(|size| division(size as u64)),
            divide_stride: stride.map(|step| division(step as u64)),
            ..Args::NONE
        }
    }

    fn form(&self, dtype: DType) -> Form {
        let elements = |size: &[usize; 3]| self.planes as u64 * size.iter().product::<usize>() as u64;
        // Adaptive windows multiply positions of one side with the size of the other.
        let crossed = (0..3).map(|d| (self.input[d] as u64 + 1) * (self.output[d] as u64 + 1));
        let reach = (0..3).map(|d| (self.output[d] as i64 * self.stride[d] + self.kernel[d] * self.dilation[d]) as u64);
        let largest = crossed.chain(reach).chain([elements(&self.input), elements(&self.output)]).max();
        let is_wide = largest > Some(i32::MAX as u64 - WARP as u64 * 256);
        let is_small = self.adaptive == 0 && self.kernel.iter().all(|&size| (1..=8).contains(&size));
        let kernel = if is_small { self.kernel.map(|size| size as u32) } else { [0; 3] };
        Form { dtype, is_wide, kernel, planes: 1, lanes: WARP as u32 }
    }

    /// Elements of a window, about.
    fn window(&self) -> usize {
        let size =
            |d: usize| if self.adaptive == 0 { self.kernel[d] as usize } else { self.input[d] / self.output[d].max(1) };
        (0..3).map(size).product()
    }

    /// Whether windows are so large that a warp takes each of `outputs`, or there are few. (Windows with holes are not.)
    fn by_warps(&self, outputs: usize, gpu: &dyn Gpu) -> bool {
        let enough = if outputs < gpu.multiprocessors() as usize * 512 { 2 } else { 8 };
        self.window() >= enough * WARP && self.dilation == [1; 3]
    }

    /// Launches a kernel that makes each element of `to` from a window.
    fn over_windows(mut self, [one, warp]: [&str; 2], dtype: DType, to: &RawView, gpu: &mut dyn Gpu) -> Done {
        if !self.by_warps(to.numel(), gpu) {
            return self.over_places(one, dtype, self.output, gpu);
        }
        self.n = to.numel() as u64;
        let lanes = if self.window() >= LARGE { 256 } else { WARP };
        let form = Form { lanes: lanes as u32, ..self.form(dtype) };
        each(text(form), warp, to.numel() * lanes, self.words(), gpu)
    }

    /// Launches a kernel with a thread for each place of a plane of `size`, for several planes where that leaves enough
    /// threads.
    fn over_places(mut self, entry: &str, dtype: DType, size: [usize; 3], gpu: &mut dyn Gpu) -> Done {
        let places: usize = size.iter().product();
        let planes = planes_of_thread(self.planes, places, gpu);
        self.n = (places * self.planes.div_ceil(planes)) as u64;
        let form = Form { planes: planes as u32, ..self.form(dtype) };
        each(text(form), entry, self.n as usize, self.words(), gpu)
    }

    /// Launches a kernel with a thread for each of `n` elements.
    fn over_elements(mut self, entry: &str, dtype: DType, n: usize, gpu: &mut dyn Gpu) -> Done {
        self.n = n as u64;
        each(text(self.form(dtype)), entry, n, self.words(), gpu)
    }
}

const WARP: usize = 32;
/// Bound: elements of a window that a block takes rather than a warp.
const LARGE: usize = 2048;
/// Bound: planes of a thread, whose sums it keeps in registers.
const PLANES: usize = 8;

/// How many planes of `places` places a thread goes through: several if there are enough for all multiprocessors.
pub fn planes_of_thread(planes: usize, places: usize, gpu: &dyn Gpu) -> usize {
    let enough = planes >= PLANES && planes * places >= gpu.multiprocessors() as usize * 8192;
    if enough { PLANES } else { 1 }
}

/// What the text is specialized for.
struct Form {
    dtype: DType,
    is_wide: bool,
    /// Sizes of windows; 0 where the arguments have them.
    kernel: [u32; 3],
    /// Planes of a thread, and threads of a large window.
    planes: u32,
    lanes: u32,
}

fn text(form: Form) -> &'static Source {
    let [k0, k1, k2] = form.kernel.map(Value::Number);
    let [wide, planes, lanes] = [form.is_wide as u32, form.planes, form.lanes].map(Value::Number);
    let kernel = [("K0", k0), ("K1", k1), ("K2", k2)];
    let names = [("T", Value::Type(form.dtype)), ("WIDE", wide), ("PLANES", planes), ("LANES", lanes)];
    source("pool/pool.cuh", &[&names[..], &kernel[..]].concat())
}

fn largest(call: &Call<'_>, windows: Windows, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let at = Output::new(&call.outputs[1], DType::I64, gpu)?;
    let mut args = Args::of(call, &x, &y.dense, windows);
    (args.x, args.y, args.indices) = (x.ptr, y.dense.ptr, at.dense.ptr);
    args.over_windows(["ts_max_pool", "ts_max_pool_warp"], dtype, &y.dense, gpu)?;
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
    // Windows overlap.
    gpu.may_add_in_any_order()?;
    (args.x, args.indices, args.grad_in) = (g.ptr, at.ptr, sums.ptr);
    args.over_elements("ts_max_pool_grad", dtype, g.numel(), gpu)?;
    if direct { Ok(()) } else { copy_view(&sums, dx, gpu) }
}

fn mean(call: &Call<'_>, windows: Windows, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let mut args = Args::of(call, &x, &y.dense, windows);
    (args.x, args.y) = (x.ptr, y.dense.ptr);
    args.over_windows(["ts_avg_pool", "ts_avg_pool_warp"], dtype, &y.dense, gpu)?;
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
    args.over_places("ts_avg_pool_grad", dtype, args.input, gpu)?;
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
    let kernels = [[0; 3], [1, 2, 3]].into_iter().cycle().zip([false, true, true, false].into_iter().cycle());
    let floats = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    let threads = [(1, 32), (8, 256)].into_iter().cycle();
    let forms = floats.zip(kernels).zip(threads);
    forms
        .map(|((dtype, (kernel, is_wide)), (planes, lanes))| text(Form { dtype, is_wide, kernel, planes, lanes }))
        .collect()
}
