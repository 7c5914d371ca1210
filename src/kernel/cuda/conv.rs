//! Launches beside `kernel/cpu/conv`: by the vendor's library where it takes them, else unfolded columns and a matrix
//! product, or directly where there are groups. A convolution of one tap is a product of its own.

use super::dense::{Output, add, copy_view, fill, input, scratch};
use super::family::{Value, source};
use super::matmul::{PLAIN, product};
use super::rows::{each, launch};
use super::{ConvCall, ConvPart, Gpu, GpuError, Source};
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cpu::attributes;

type Done = Result<(), GpuError>;

/// Bound: bytes of unfolded columns at a time.
const COLUMNS: usize = 512 << 20;

/// One convolution; missing leading spatial dims have size 1.
struct Geometry {
    batch: usize,
    groups: usize,
    channels: usize,
    filters: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [i64; 3],
    dilation: [usize; 3],
}

fn three<T: Copy>(given: &[T], missing: T) -> [T; 3] {
    let skip = 3usize.saturating_sub(given.len());
    std::array::from_fn(|i| if i < skip { missing } else { given[i - skip] })
}

impl Geometry {
    fn of(call: &Call<'_>, x: &RawView, weight: &RawView, y: &RawView) -> Geometry {
        let groups = attributes::size(call, 3).max(1);
        let sizes = |i: usize| three(attributes::ints(call, i), 1).map(|s| s.max(1) as usize);
        Geometry {
            batch: x.shape[0],
            groups,
            channels: weight.shape[1],
            filters: weight.shape[0] / groups,
            input: three(&x.shape[2..], 1),
            output: three(&y.shape[2..], 1),
            kernel: three(&weight.shape[2..], 1),
            stride: sizes(0),
            padding: three(attributes::ints(call, 1), 0),
            dilation: sizes(2),
        }
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    fn input_plane(&self) -> usize {
        self.input.iter().product()
    }

    fn output_plane(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of one filter.
    fn depth(&self) -> usize {
        self.channels * self.taps()
    }

    /// Are the columns the input itself?
    fn is_product(&self) -> bool {
        self.groups == 1 && self.taps() == 1 && self.stride == [1; 3] && self.padding == [0; 3]
    }

    fn words(&self, x: *mut u8, w: *mut u8, y: *mut u8, first: usize, images: usize) -> [u64; 27] {
        let mut words = [0; 27];
        words[..3].copy_from_slice(&[x as u64, w as u64, y as u64]);
        let counts = [self.batch, self.groups, self.channels, self.filters];
        let sizes = [self.input, self.output, self.kernel, self.stride];
        let list = counts.into_iter().chain(sizes.into_iter().flatten()).map(|n| n as u64);
        let list = list.chain(self.padding.map(|p| p as u64)).chain(self.dilation.map(|d| d as u64));
        for (to, n) in words[3..].iter_mut().zip(list.chain([first as u64, images as u64])) {
            *to = n;
        }
        words
    }

    /// Images whose columns are made at a time.
    fn images(&self, dtype: DType) -> usize {
        let each = self.depth() * self.output_plane() * dtype.size_bytes();
        (COLUMNS / each.max(1)).clamp(1, self.batch.max(1))
    }
}

fn text(dtype: DType) -> &'static Source {
    source("conv.cuh", &[("T", Value::Type(dtype))])
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
fn unfold(g: &Geometry, x: &RawView, first: usize, images: usize, to: &RawView, gpu: &mut dyn Gpu) -> Done {
    let words = g.words(x.ptr, std::ptr::null_mut(), to.ptr, first, images);
    let blocks = (images * g.output_plane()).div_ceil(256);
    launch(text(x.dtype), "ts_unfold", (blocks, g.depth().min(65_535)), 256, &words, gpu)
}

/// Adds its channel's number to every element.
fn bias(call: &Call<'_>, y: &RawView, gpu: &mut dyn Gpu) -> Done {
    let Some(bias) = call.inputs.get(2) else { return Ok(()) };
    let across = (0..y.shape.len()).map(|dim| if dim == 1 { bias.strides[0] } else { 0 }).collect();
    add(&RawView { shape: y.shape.clone(), strides: across, ..bias.clone() }, y, gpu)
}

/// By the vendor's library; false where it does not do it, and nothing was queued. The views are row-major.
fn by_library(wanted: ConvPart, g: &Geometry, [x, w, y]: [&RawView; 3], gpu: &mut dyn Gpu) -> Result<bool, GpuError> {
    gpu.convolve(&ConvCall {
        wanted,
        dtype: x.dtype,
        x: x.ptr,
        w: w.ptr,
        y: y.ptr,
        batch: g.batch,
        groups: g.groups,
        channels: g.channels,
        filters: g.filters,
        input: g.input,
        output: g.output,
        kernel: g.kernel,
        stride: g.stride,
        padding: g.padding,
        dilation: g.dilation,
    })
}

pub fn conv_forward(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, weight, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, weight, y);
    let dtype = y.dtype;
    let (x, w) = (input(x, dtype, gpu)?, input(weight, dtype, gpu)?);
    let out = Output::new(y, dtype, gpu)?;
    let y = &out.dense;
    let (depth, plane, filters) = (g.depth(), g.output_plane(), g.filters);
    if depth == 0 || g.input_plane() == 0 {
        fill(Scalar::Int(0), y, gpu)?;
    } else if y.numel() == 0 || !g.is_product() && by_library(ConvPart::Output, &g, [&x, &w, y], gpu)? {
    } else if g.groups > 1 {
        let words = g.words(x.ptr, w.ptr, y.ptr, 0, g.batch);
        each(text(dtype), "ts_conv", y.numel(), &words, gpu)?;
    } else if g.is_product() {
        let (b, c) = (g.batch, g.channels);
        let a = view(w.ptr, dtype, &[b, filters, c], &[0, c, 1]);
        let x = view(x.ptr, dtype, &[b, c, plane], &[c * plane, plane, 1]);
        let y = view(y.ptr, dtype, &[b, filters, plane], &[filters * plane, plane, 1]);
        product(&a, &x, &y, 0.0, PLAIN, gpu)?;
    } else {
        let most = g.images(dtype);
        let columns = scratch(dtype, &[depth, most, plane], gpu)?;
        for first in (0..g.batch).step_by(most) {
            let n = most.min(g.batch - first);
            unfold(&g, &x, first, n, &columns, gpu)?;
            let a = view(w.ptr, dtype, &[n, filters, depth], &[0, depth, 1]);
            let b = view(columns.ptr, dtype, &[n, depth, plane], &[plane, n * plane, 1]);
            let at = at(y, first * filters * plane);
            let c = view(at, dtype, &[n, filters, plane], &[filters * plane, plane, 1]);
            product(&a, &b, &c, 0.0, PLAIN, gpu)?;
        }
    }
    bias(call, &out.dense, gpu)?;
    out.finish(gpu)
}

pub fn conv_grad_input(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (dy, weight, dx) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, dx, weight, dy);
    let dtype = dx.dtype;
    let (dy, w) = (input(dy, dtype, gpu)?, input(weight, dtype, gpu)?);
    let out = Output::new(dx, dtype, gpu)?;
    let dx = &out.dense;
    let (depth, plane, filters) = (g.depth(), g.output_plane(), g.filters);
    if dy.numel() == 0 || depth == 0 {
        fill(Scalar::Int(0), dx, gpu)?;
    } else if dx.numel() == 0 || by_library(ConvPart::InputGradient, &g, [dx, &w, &dy], gpu)? {
    } else if g.groups > 1 {
        let words = g.words(dy.ptr, w.ptr, dx.ptr, 0, g.batch);
        each(text(dtype), "ts_conv_input", dx.numel(), &words, gpu)?;
    } else {
        // Columns that overlap are summed before anything is rounded to 16 bits.
        let wide = dtype.compute();
        let most = g.images(wide);
        let columns = scratch(wide, &[depth, most, plane], gpu)?;
        for first in (0..g.batch).step_by(most) {
            let n = most.min(g.batch - first);
            let a = view(w.ptr, dtype, &[n, depth, filters], &[0, 1, depth]);
            let b = view(at(&dy, first * filters * plane), dtype, &[n, filters, plane], &[filters * plane, plane, 1]);
            let c = view(columns.ptr, wide, &[n, depth, plane], &[plane, n * plane, 1]);
            product(&a, &b, &c, 0.0, PLAIN, gpu)?;
            let words = g.words(columns.ptr, std::ptr::null_mut(), dx.ptr, first, n);
            each(text(dtype), "ts_fold", n * g.channels * g.input_plane(), &words, gpu)?;
        }
    }
    bias(call, &out.dense, gpu)?;
    out.finish(gpu)
}

pub fn conv_grad_weight(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (dy, x, dw) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let g = Geometry::of(call, x, dw, dy);
    let dtype = dw.dtype;
    if dy.numel() == 0 || g.input_plane() == 0 {
        return fill(Scalar::Int(0), dw, gpu);
    }
    let (dy, x) = (input(dy, dtype, gpu)?, input(x, dtype, gpu)?);
    let out = Output::new(dw, dtype, gpu)?;
    let dw = &out.dense;
    let (depth, plane, filters) = (g.depth(), g.output_plane(), g.filters);
    if dw.numel() == 0 || by_library(ConvPart::WeightGradient, &g, [&x, dw, &dy], gpu)? {
    } else if g.groups > 1 {
        let words = g.words(x.ptr, dy.ptr, dw.ptr, 0, g.batch);
        launch(text(dtype), "ts_conv_weight", (dw.numel(), 1), 256, &words, gpu)?;
    } else {
        let most = g.images(dtype);
        let columns = scratch(dtype, &[depth, most, plane], gpu)?;
        let rows = scratch(dtype, &[filters, most, plane], gpu)?;
        for first in (0..g.batch).step_by(most) {
            let n = most.min(g.batch - first);
            unfold(&g, &x, first, n, &columns, gpu)?;
            // The gradient with images inside, so that one product sums over all of them.
            let from = at(&dy, first * filters * plane);
            let from = view(from, dtype, &[filters, n, plane], &[plane, filters * plane, 1]);
            let to = view(rows.ptr, dtype, &[filters, n, plane], &[n * plane, plane, 1]);
            copy_view(&from, &to, gpu)?;
            let a = view(rows.ptr, dtype, &[filters, n * plane], &[n * plane, 1]);
            let b = view(columns.ptr, dtype, &[n * plane, depth], &[1, n * plane]);
            let c = view(dw.ptr, dtype, &[filters, depth], &[depth, 1]);
            product(&a, &b, &c, if first == 0 { 0.0 } else { 1.0 }, PLAIN, gpu)?;
        }
    }
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn sources() -> impl Iterator<Item = &'static Source> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_float()).map(text)
}
