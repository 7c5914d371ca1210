//! CUDA launches of `bincount` and `histc`: `kernels/search/counts.cuh`.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{int, scalar};
use crate::kernel::index::cuda as index;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    // 32-bit words of shared memory for the bins of a block.
    pub static ARGS = "search/count_args.cuh", SHARED_BINS = 8192;
    struct CountArgs {
        x: const T,
        y: mut u64,
        range: mut f64,
        fault: mut void,
        count: usize,
        bins: usize,
        /// Places of a bin in shared memory; 0: bins are in global memory.
        copies: usize,
        /// Blocks that told their range.
        parts: usize,
        low: f64,
        high: f64,
    }
}

const THREADS: usize = 512;

fn text(dtype: DType) -> &'static Source {
    source("search/counts.cuh", &[("T", Value::Type(dtype))])
}

/// Blocks that go over so many elements together: all that run at once.
fn blocks(count: usize, gpu: &dyn Gpu) -> usize {
    count.div_ceil(4 * THREADS).min(gpu.multiprocessors() as usize * 4)
}

/// Places of each bin in shared memory: one for each lane if there is room.
fn copies(bins: usize) -> usize {
    let room = SHARED_BINS / bins.max(1);
    if room == 0 { 0 } else { (room.next_power_of_two() >> (!room.is_power_of_two()) as usize).min(32) }
}

pub fn bincount_size(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(int(call, 0)), y, gpu)?;
    let x = input(x, x.dtype, gpu)?;
    let count = x.numel();
    if count == 0 {
        return Ok(());
    }
    let args = CountArgs { x: x.ptr, y: y.ptr, count, ..CountArgs::NONE };
    launch(text(x.dtype), "ts_bincount_size", (blocks(count, gpu), 1), THREADS, args.words(), gpu)
}

pub fn bincount(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let count = x.numel();
    if let (Some(weights), true) = (call.inputs.get(1), count > 0) {
        fill(Scalar::Int(0), y, gpu)?;
        return index::add_along(y, weights, x, 0, gpu);
    }
    if count == 0 || y.dtype != DType::I64 {
        return fill(Scalar::Int(0), y, gpu);
    }
    let x = input(x, x.dtype, gpu)?;
    let out = Output::new(y, DType::I64, gpu)?;
    let bins = y.numel();
    gpu.fill_zero(out.dense.ptr, bins * 8)?;
    let fault = gpu.fault_slot(0)?;
    let args = CountArgs { x: x.ptr, y: out.dense.ptr, fault, count, bins, copies: copies(bins), ..CountArgs::NONE };
    launch(text(x.dtype), "ts_bincount", (blocks(count, gpu), 1), THREADS, args.words(), gpu)?;
    out.finish(gpu)
}

pub fn histc(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let x = input(x, x.dtype, gpu)?;
    let (count, bins, source) = (x.numel(), y.numel(), text(x.dtype));
    let counts = scratch(DType::I64, &y.shape, gpu)?;
    gpu.fill_zero(counts.ptr, bins * 8)?;
    if count > 0 && bins > 0 {
        let args = limits(call, &x, gpu)?;
        let args = CountArgs { y: counts.ptr, bins, copies: copies(bins), ..args };
        launch(source, "ts_histc", (blocks(count, gpu), 1), THREADS, args.words(), gpu)?;
    }
    copy_view(&counts, y, gpu)
}

/// The arguments of a histogram with its range: that of the elements if it is empty.
fn limits(call: &Call<'_>, x: &RawView, gpu: &mut dyn Gpu) -> Result<CountArgs, GpuError> {
    let [low, high] = [1, 2].map(|at| scalar(call, at).map_or(0.0, |limit| limit.to_f64()));
    let mut args = CountArgs { x: x.ptr, count: x.numel(), low, high, ..CountArgs::NONE };
    if low == high {
        args.parts = blocks(args.count, gpu);
        args.range = gpu.scratch((2 + 2 * args.parts) * 8)?;
        launch(text(x.dtype), "ts_histc_minmax", (args.parts, 1), THREADS, args.words(), gpu)?;
        launch(text(x.dtype), "ts_histc_range", (1, 1), THREADS, args.words(), gpu)?;
    }
    Ok(args)
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
