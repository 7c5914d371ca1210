//! CUDA launches of the kernels in `kernel/conv/host`: cuDNN where it supports them, else im2col and a matrix product,
//! or direct kernels for several groups. A 1×1 convolution is a matrix product.

use super::geometry::Geometry;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::copy::cuda_transpose::{Matrices, transpose};
use crate::kernel::cuda::dense::{Output, add, copy_view, fill, input, scratch, sum_first};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{ConvCall, ConvOrder, ConvPart, Gpu, GpuError, Source};
use crate::kernel::matmul::cuda::{NO_BIAS, product};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// Bound: bytes of the im2col matrix that exist at a time.
const COLUMNS: usize = 512 << 20;

structs! {
    pub static ARGS = "conv/args.cuh";
    /// What a launch of `kernels/conv/conv.cuh` passes.
    struct Args {
        x: const T,
        w: const T,
        y: mut T,
        geometry: Geometry,
        /// The first image of this launch, and the number of images.
        first: usize,
        images: usize,
    }
}

fn args(g: &Geometry, x: *mut u8, w: *mut u8, y: *mut u8, first: usize, images: usize) -> Args {
    Args { x, w, y, geometry: *g, first, images }
}

/// Images whose im2col matrix exists at a time.
fn images_at_a_time(g: &Geometry, dtype: DType) -> usize {
    let each = g.depth() * g.output_plane() * dtype.size_bytes();
    (COLUMNS / each.max(1)).clamp(1, g.batch.max(1))
}

fn text(dtype: DType) -> &'static Source {
    source("conv/conv.cuh", &[("T", Value::Type(dtype))])
}

/// A row-major view of memory that is known to have these sizes.
fn view(ptr: *mut u8, dtype: DType, shape: &[usize], strides: &[usize]) -> RawView {
    let strides = strides.iter().map(|&s| s as isize).collect();
    RawView { ptr, dtype, shape: shape.into(), strides }
}

fn at(base: &RawView, elements: usize) -> *mut u8 {
    base.ptr.wrapping_add(elements * base.dtype.size_bytes())
}

/// Columns of some images, `[depth, images, outputs]`.
fn im2col(g: &Geometry, x: &RawView, first: usize, images: usize, to: &RawView, gpu: &mut dyn Gpu) -> Done {
    let args = args(g, x.ptr, std::ptr::null_mut(), to.ptr, first, images);
    let blocks = (images * g.output_plane()).div_ceil(256);
    launch(text(x.dtype), "ts_im2col", (blocks, g.depth().min(65_535)), 256, args.words(), gpu)
}

/// `to = from + bias` for `[batch, channels, ..]`, with the bias of each channel; `from` may be `to`.
fn add_bias(from: &RawView, bias: Option<&RawView>, to: &RawView, gpu: &mut dyn Gpu) -> Done {
    let Some(bias) = bias else { return if from.ptr == to.ptr { Ok(()) } else { copy_view(from, to, gpu) } };
    let strides = (0..to.shape.len()).map(|dim| if dim == 1 { bias.strides[0] } else { 0 }).collect();
    add(from, &RawView { shape: to.shape.clone(), strides, ..bias.clone() }, to, gpu)
}

fn library_call(g: &Geometry, part: ConvPart, [x, w, y]: [&RawView; 3]) -> ConvCall {
    ConvCall { part, dtype: x.dtype, order: ConvOrder::ChannelsFirst, x: x.ptr, w: w.ptr, y: y.ptr, geometry: *g }
}

/// Computes it with cuDNN, including the bias; false if the library does not support it. `operands`: x, weight and y,
/// row-major.
fn by_library(
    part: ConvPart,
    g: &Geometry,
    operands: [&RawView; 3],
    bias: Option<&RawView>,
    gpu: &mut dyn Gpu,
) -> Result<bool, GpuError> {
    let target = match part {
        ConvPart::InputGradient => 0,
        ConvPart::WeightGradient => 1,
        ConvPart::Output => 2,
    };
    let result = operands[target];
    let call = library_call(g, part, operands);
    // Operands are transposed here because it is faster. Cost: 3×3, 64 → 64 channels, 64 images of 56² on an H100,
    // without and with a bias: bf16 100 and 103 µs; if the library transposes them itself, 116 and 141. TF32 with a
    // bias: 179, and 224.
    if !gpu.convolves_transposed(&call)? {
        let done = gpu.convolve(&call)?;
        if done {
            add_bias(result, bias, result, gpu)?;
        }
        return Ok(done);
    }
    let copies: Result<Vec<RawView>, GpuError> = operands.iter().map(|view| channels_last(view, gpu)).collect();
    // Without memory for it: the fallback, which needs less memory.
    let transposed = if let Err(GpuError::OutOfMemory { .. }) = copies { return Ok(false) } else { copies? };
    for (at, view) in operands.into_iter().enumerate().filter(|&(at, _)| at != target) {
        let matrices = Matrices { outer: view.shape[0], rows: view.shape[1], cols: view.shape[2..].iter().product() };
        if !transpose(view, None, &transposed[at], matrices, gpu)? {
            copy_view(view, &transposed[at], gpu)?;
        }
    }
    let [x, w, y] = [0, 1, 2].map(|at: usize| transposed[at].ptr);
    if !gpu.convolve(&ConvCall { order: ConvOrder::ChannelsLast, x, w, y, ..call })? {
        return Ok(false);
    }
    let [outer, cols] = [0, 1].map(|dim: usize| result.shape[dim]);
    let matrices = Matrices { outer, rows: result.shape[2..].iter().product(), cols };
    let dense = bias.map(|bias| input(bias, result.dtype, gpu)).transpose()?;
    if !transpose(&transposed[target], dense.as_ref(), result, matrices, gpu)? {
        add_bias(&transposed[target], bias, result, gpu)?;
    }
    Ok(true)
}

/// Scratch memory of a view's shape, whose second dim is the innermost.
fn channels_last(view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let mut copy = scratch(view.dtype, &view.shape, gpu)?;
    let channels = view.shape[1] as isize;
    for (dim, stride) in copy.strides.iter_mut().enumerate().skip(2) {
        *stride = channels * view.shape[dim + 1..].iter().product::<usize>() as isize;
    }
    copy.strides[1] = 1;
    Ok(copy)
}

/// The gradient of the input as a forward convolution of the library: of the output's gradient, with the weights
/// rotated by 180°.
fn grad_input_forward(
    g: &Geometry,
    [dx, w, dy]: [&RawView; 3],
    bias: Option<&RawView>,
    gpu: &mut dyn Gpu,
) -> Result<bool, GpuError> {
    if !g.has_forward_gradient() {
        return Ok(false);
    }
    let mut from = w.clone();
    from.shape.swap(0, 1);
    from.strides.swap(0, 1);
    from.ptr = at(w, g.taps() - 1);
    from.strides.iter_mut().skip(2).for_each(|stride| *stride = -*stride);
    let transposed = scratch(w.dtype, &from.shape, gpu)?;
    copy_view(&from, &transposed, gpu)?;
    let forward = Geometry {
        channels: g.filters,
        filters: g.channels,
        input: g.output,
        output: g.input,
        padding: std::array::from_fn(|d| g.reach(d) - g.padding[d]),
        ..*g
    };
    by_library(ConvPart::Output, &forward, [dy, &transposed, dx], bias, gpu)
}

/// The gradient of the input of a convolution with strides as a forward convolution (`Geometry::phases`), whose phases are put
/// side by side.
fn grad_input_phases(
    g: &Geometry,
    [dx, w, dy]: [&RawView; 3],
    bias: Option<&RawView>,
    gpu: &mut dyn Gpu,
) -> Result<bool, GpuError> {
    if !g.has_phases() {
        return Ok(false);
    }
    let (forward, offset) = g.phases();
    let filters = phase_weights(g, &forward, w, gpu)?;
    let channels = g.groups * forward.filters;
    let [a, b, c] = forward.output;
    let phases = scratch(dx.dtype, &[g.batch, channels, a, b, c], gpu)?;
    // As many dims as the operands have.
    let spatial = 5 - dx.shape.len();
    let flat = |view: &RawView| {
        let mut view = view.clone();
        view.shape.drain(2..2 + spatial);
        view.strides.drain(2..2 + spatial);
        view
    };
    if forward.is_product() {
        self::forward(&forward, [dy, &filters, &phases], gpu)?;
    } else if !by_library(ConvPart::Output, &forward, [dy, &flat(&filters), &flat(&phases)], None, gpu)? {
        return Ok(false);
    }
    let dense = bias.map(|bias| input(bias, dx.dtype, gpu)).transpose()?;
    let bias = dense.map_or(std::ptr::null_mut(), |bias| bias.ptr);
    let beside = Geometry { output: forward.output, padding: offset, ..*g };
    let args = args(&beside, phases.ptr, bias, dx.ptr, 0, g.batch);
    each(text(dx.dtype), "ts_phases_side_by_side", dx.numel(), args.words(), gpu)?;
    Ok(true)
}

/// The weights of that convolution, `[groups * channels * phases, filters, taps..]`: those of phase r are every `stride`th tap
/// from r on, the last first.
fn phase_weights(g: &Geometry, forward: &Geometry, w: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let whole: [usize; 3] = std::array::from_fn(|d| forward.kernel[d] * g.stride[d]);
    let outer = [g.groups * g.filters, g.channels];
    let shape = |kernel: [usize; 3]| [outer[0], outer[1], kernel[0], kernel[1], kernel[2]];
    let mut taps = view(w.ptr, w.dtype, &shape(g.kernel), &row_major(shape(g.kernel)));
    if whole != g.kernel {
        let padded = scratch(w.dtype, &shape(whole), gpu)?;
        fill(Scalar::Int(0), &padded, gpu)?;
        let part = RawView { shape: taps.shape.clone(), ..padded.clone() };
        copy_view(&taps, &part, gpu)?;
        taps = padded;
    }
    let [filter, channel, inner @ ..] = [0, 1, 2, 3, 4].map(|d: usize| taps.strides[d]);
    let (s, k) = (g.stride, forward.kernel);
    let last: isize = (0..3).map(|d| inner[d] * (s[d] * (k[d] - 1)) as isize).sum();
    let from = RawView {
        ptr: at(&taps, last as usize),
        dtype: w.dtype,
        shape: [g.groups, g.channels, s[0], s[1], s[2], g.filters, k[0], k[1], k[2]].as_slice().into(),
        strides: [filter * g.filters as isize, channel, inner[0], inner[1], inner[2], filter]
            .into_iter()
            .chain((0..3).map(|d| -inner[d] * s[d] as isize))
            .collect(),
    };
    let to = scratch(w.dtype, &from.shape, gpu)?;
    copy_view(&from, &to, gpu)?;
    let made = [g.groups * forward.filters, g.filters, k[0], k[1], k[2]];
    Ok(view(to.ptr, w.dtype, &made, &row_major(made)))
}

fn row_major(shape: [usize; 5]) -> [usize; 5] {
    std::array::from_fn(|d| shape[d + 1..].iter().product())
}

pub fn conv_forward(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, weight, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, weight, y);
    let dtype = y.dtype;
    let (x, w) = (input(x, dtype, gpu)?, input(weight, dtype, gpu)?);
    let out = Output::new(y, dtype, gpu)?;
    let (y, bias) = (&out.dense, call.inputs.get(2));
    let empty = g.depth() == 0 || g.input_plane() == 0 || y.numel() == 0;
    if empty || g.is_product() || !by_library(ConvPart::Output, &g, [&x, &w, y], bias, gpu)? {
        if empty {
            fill(Scalar::Int(0), y, gpu)?
        } else {
            forward(&g, [&x, &w, y], gpu)?
        }
        add_bias(y, bias, y, gpu)?;
    }
    out.finish(gpu)
}

fn forward(g: &Geometry, [x, w, y]: [&RawView; 3], gpu: &mut dyn Gpu) -> Done {
    let (dtype, depth, plane, filters) = (y.dtype, g.depth(), g.output_plane(), g.filters);
    if g.groups > 1 {
        let args = args(g, x.ptr, w.ptr, y.ptr, 0, g.batch);
        return each(text(dtype), "ts_conv_forward", y.numel(), args.words(), gpu);
    }
    if g.is_product() {
        let (b, c) = (g.batch, g.channels);
        let a = view(w.ptr, dtype, &[b, filters, c], &[0, c, 1]);
        let x = view(x.ptr, dtype, &[b, c, plane], &[c * plane, plane, 1]);
        let y = view(y.ptr, dtype, &[b, filters, plane], &[filters * plane, plane, 1]);
        return product(&a, &x, &y, 0.0, NO_BIAS, gpu);
    }
    let images = images_at_a_time(g, dtype);
    let columns = scratch(dtype, &[depth, images, plane], gpu)?;
    for first in (0..g.batch).step_by(images) {
        let n = images.min(g.batch - first);
        im2col(g, x, first, n, &columns, gpu)?;
        let a = view(w.ptr, dtype, &[n, filters, depth], &[0, depth, 1]);
        let b = view(columns.ptr, dtype, &[n, depth, plane], &[plane, n * plane, 1]);
        let at = at(y, first * filters * plane);
        let c = view(at, dtype, &[n, filters, plane], &[filters * plane, plane, 1]);
        product(&a, &b, &c, 0.0, NO_BIAS, gpu)?;
    }
    Ok(())
}

pub fn conv_grad_input(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (dy, weight, dx) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, dx, weight, dy);
    let dtype = dx.dtype;
    let (dy, w) = (input(dy, dtype, gpu)?, input(weight, dtype, gpu)?);
    let out = Output::new(dx, dtype, gpu)?;
    let (operands, bias) = ([&out.dense, &w, &dy], call.inputs.get(2));
    let empty = dy.numel() == 0 || g.depth() == 0 || dx.numel() == 0;
    if empty
        || !by_library(ConvPart::InputGradient, &g, operands, bias, gpu)?
            && !grad_input_forward(&g, operands, bias, gpu)?
            && !grad_input_phases(&g, operands, bias, gpu)?
    {
        if empty {
            fill(Scalar::Int(0), &out.dense, gpu)?
        } else {
            grad_input(&g, operands, gpu)?
        }
        add_bias(&out.dense, bias, &out.dense, gpu)?;
    }
    out.finish(gpu)
}

fn grad_input(g: &Geometry, [dx, w, dy]: [&RawView; 3], gpu: &mut dyn Gpu) -> Done {
    let (dtype, depth, plane, filters) = (dx.dtype, g.depth(), g.output_plane(), g.filters);
    if g.groups > 1 {
        let args = args(g, dy.ptr, w.ptr, dx.ptr, 0, g.batch);
        return each(text(dtype), "ts_conv_dgrad", dx.numel(), args.words(), gpu);
    }
    if g.is_product() {
        let (b, c) = (g.batch, g.channels);
        let a = view(w.ptr, dtype, &[b, c, filters], &[0, 1, c]);
        let dy = view(dy.ptr, dtype, &[b, filters, plane], &[filters * plane, plane, 1]);
        let dx = view(dx.ptr, dtype, &[b, c, plane], &[c * plane, plane, 1]);
        return product(&a, &dy, &dx, 0.0, NO_BIAS, gpu);
    }
    // Columns that overlap are summed before anything is rounded to 16 bits.
    let wide = dtype.compute();
    let images = images_at_a_time(g, wide);
    let columns = scratch(wide, &[depth, images, plane], gpu)?;
    for first in (0..g.batch).step_by(images) {
        let n = images.min(g.batch - first);
        let a = view(w.ptr, dtype, &[n, depth, filters], &[0, 1, depth]);
        let b = view(at(dy, first * filters * plane), dtype, &[n, filters, plane], &[filters * plane, plane, 1]);
        let c = view(columns.ptr, wide, &[n, depth, plane], &[plane, n * plane, 1]);
        product(&a, &b, &c, 0.0, NO_BIAS, gpu)?;
        let args = args(g, columns.ptr, std::ptr::null_mut(), dx.ptr, first, n);
        each(text(dtype), "ts_col2im", n * g.channels * g.input_plane(), args.words(), gpu)?;
    }
    Ok(())
}

pub fn conv_grad_weight(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (dy, x, dw) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, dw, dy);
    let dtype = dw.dtype;
    if dy.numel() == 0 || g.input_plane() == 0 || dw.numel() == 0 {
        return fill(Scalar::Int(0), dw, gpu);
    }
    let (dy, x) = (input(dy, dtype, gpu)?, input(x, dtype, gpu)?);
    let out = Output::new(dw, dtype, gpu)?;
    let dw = &out.dense;
    if !by_library(ConvPart::WeightGradient, &g, [&x, dw, &dy], None, gpu)? {
        grad_weight(&g, [&x, dw, &dy], gpu)?;
    }
    out.finish(gpu)
}

fn grad_weight(g: &Geometry, [x, dw, dy]: [&RawView; 3], gpu: &mut dyn Gpu) -> Done {
    let (dtype, depth, plane, filters) = (dw.dtype, g.depth(), g.output_plane(), g.filters);
    if g.groups > 1 {
        let args = args(g, x.ptr, dy.ptr, dw.ptr, 0, g.batch);
        return launch(text(dtype), "ts_conv_wgrad", (dw.numel(), 1), 256, args.words(), gpu);
    }
    if g.is_product() && g.batch * dw.numel() <= x.numel() + dy.numel() {
        // A product for each image, then their sum: no operand is transposed.
        let (b, c, wide) = (g.batch, g.channels, dtype.compute());
        let each = scratch(wide, &[b, filters, c], gpu)?;
        let dy = view(dy.ptr, dtype, &[b, filters, plane], &[filters * plane, plane, 1]);
        let x = view(x.ptr, dtype, &[b, plane, c], &[c * plane, 1, plane]);
        product(&dy, &x, &each, 0.0, NO_BIAS, gpu)?;
        return sum_first(&each, dw, gpu);
    }
    let images = images_at_a_time(g, dtype);
    let columns = scratch(dtype, &[depth, images, plane], gpu)?;
    let rows = scratch(dtype, &[filters, images, plane], gpu)?;
    for first in (0..g.batch).step_by(images) {
        let n = images.min(g.batch - first);
        im2col(g, x, first, n, &columns, gpu)?;
        // The gradient with the images as an inner dim, so that one product sums over all of them.
        let from = at(dy, first * filters * plane);
        let from = view(from, dtype, &[filters, n, plane], &[plane, filters * plane, 1]);
        let to = view(rows.ptr, dtype, &[filters, n, plane], &[n * plane, plane, 1]);
        copy_view(&from, &to, gpu)?;
        let a = view(rows.ptr, dtype, &[filters, n * plane], &[n * plane, 1]);
        let b = view(columns.ptr, dtype, &[n * plane, depth], &[1, n * plane]);
        let c = view(dw.ptr, dtype, &[filters, depth], &[depth, 1]);
        product(&a, &b, &c, if first == 0 { 0.0 } else { 1.0 }, NO_BIAS, gpu)?;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().filter(|dtype| dtype.is_float()).map(text).collect()
}
