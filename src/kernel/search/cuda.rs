//! CUDA launches of the kernels in `kernel/search/host`, and of `repeat_interleave`'s counts (`kernel/select/host`).

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::{address, each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{flag, int, scalar, shifted};
use crate::kernel::index::cuda as index;
use crate::kernel::scan::cuda as scan;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// Bound: blocks of a reduction of all elements; each stores one partial result.
const BLOCKS: usize = 256;

fn text(dtype: DType) -> &'static Source {
    source("search/search.cuh", &[("T", Value::Type(dtype))])
}

structs! {
    pub static ARGS = "search/args.cuh";
    struct Args {
        a: const T,
        b: const T,
        sorter: const i64,
        y: mut i64,
        range: mut f64,
        fault: mut void,
        n: usize,
        row_values: usize,
        count: usize,
        flag: u64,
        low: f64,
        high: f64,
    }
}

pub fn searchsorted(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (sorted, values, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let dtype = sorted.dtype;
    let (a, b) = (input(sorted, dtype, gpu)?, input(values, dtype, gpu)?);
    let sorter = call.inputs.get(2).map(|sorter| input(sorter, DType::I64, gpu)).transpose()?;
    let out = Output::new(y, DType::I64, gpu)?;
    let count = values.numel();
    let row_values = if sorted.shape.len() > 1 { values.shape.last().copied().unwrap_or(1) } else { count };
    let args = Args {
        a: a.ptr,
        b: b.ptr,
        sorter: address(sorter.as_ref()),
        y: out.dense.ptr,
        n: sorted.shape.last().copied().unwrap_or(1),
        row_values,
        count,
        flag: flag(call, 0) as u64,
        ..Args::NONE
    };
    each(text(dtype), "ts_searchsorted", count, args.words(), gpu)?;
    out.finish(gpu)
}

pub fn bincount_size(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(int(call, 0)), y, gpu)?;
    let x = input(x, x.dtype, gpu)?;
    let count = x.numel();
    if count == 0 {
        return Ok(());
    }
    let args = Args { a: x.ptr, y: y.ptr, count, ..Args::NONE };
    launch(text(x.dtype), "ts_bincount_size", (count.div_ceil(256).min(BLOCKS), 1), 256, args.words(), gpu)
}

pub fn bincount(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(0), y, gpu)?;
    if x.numel() == 0 {
        return Ok(());
    }
    match call.inputs.get(1) {
        Some(weights) => index::add_along(y, weights, x, 0, gpu),
        None => {
            let one = scratch(y.dtype, &[], gpu)?;
            fill(Scalar::Int(1), &one, gpu)?;
            let strides = x.shape.iter().map(|_| 0).collect();
            index::add_along(y, &RawView { shape: x.shape.clone(), strides, ..one }, x, 0, gpu)
        }
    }
}

pub fn histc(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let x = input(x, x.dtype, gpu)?;
    let (count, source) = (x.numel(), text(x.dtype));
    let counts = scratch(DType::I64, &y.shape, gpu)?;
    gpu.fill_zero(counts.ptr, y.numel() * 8)?;
    let [low, high] = [1, 2].map(|at| scalar(call, at).map_or(0.0, |limit| limit.to_f64()));
    let mut args = Args { a: x.ptr, y: counts.ptr, n: y.numel(), count, low, high, ..Args::NONE };
    if count > 0 && y.numel() > 0 {
        if low == high {
            let blocks = count.div_ceil(256).min(BLOCKS);
            args.range = gpu.scratch((2 + 2 * blocks) * 8)?;
            launch(source, "ts_histc_minmax", (blocks, 1), 256, args.words(), gpu)?;
            args.row_values = blocks;
            launch(source, "ts_histc_range", (1, 1), 256, args.words(), gpu)?;
        }
        each(source, "ts_histc", count, args.words(), gpu)?;
    }
    copy_view(&counts, y, gpu)
}

/// The cumulative sums of counts, clamped at 0; a negative count is reported to `fault`.
fn running(call: &Call<'_>, fault: *mut u8, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let repeats = input(&call.inputs[0], call.inputs[0].dtype, gpu)?;
    let n = repeats.numel();
    let counts = scratch(DType::I64, &[n], gpu)?;
    let args = Args { a: repeats.ptr, y: counts.ptr, fault, count: n, ..Args::NONE };
    each(text(repeats.dtype), "ts_repeat_counts", n, args.words(), gpu)?;
    let sums = scratch(DType::I64, &[n], gpu)?;
    let (inputs, outputs) = ([counts], [sums]);
    let attrs = [Attr::Int(0), Attr::Bool(false)];
    scan::cumsum(&Call { inputs: &inputs, outputs: &outputs, attrs: &attrs, ..*call }, gpu)?;
    let [sums] = outputs;
    Ok(sums)
}

pub fn repeats_count(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let y = &call.outputs[0];
    let n = call.inputs[0].numel();
    if n == 0 {
        return fill(Scalar::Int(0), y, gpu);
    }
    let fault = gpu.fault_slot(0)?;
    let sums = running(call, fault, gpu)?;
    copy_view(&shifted(&sums, n as isize - 1, y.shape.clone(), y.strides.clone()), y, gpu)
}

pub fn repeats_fill(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let y = &call.outputs[0];
    let (n, count) = (call.inputs[0].numel(), y.numel());
    if n == 0 || count == 0 {
        return Ok(());
    }
    let sums = running(call, std::ptr::null_mut(), gpu)?;
    let out = Output::new(y, DType::I64, gpu)?;
    let args = Args { sorter: sums.ptr, y: out.dense.ptr, n, count, ..Args::NONE };
    each(text(DType::I64), "ts_repeat_interleave", count, args.words(), gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
