//! CUDA launches of the kernels in `kernel/select/host`.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// Elements of a block.
const BLOCK: usize = 1024;

structs! {
    // `base::limits::MAX_DIMS`.
    pub static ARGS = "select/args.cuh", MAX_DIMS = 16;
    struct Args {
        flags: const T,
        x: const Cell,
        y: mut Cell,
        indices: mut i64,
        counts: mut i64,
        n: usize,
        blocks: usize,
        limit: usize,
        ndim: usize,
        size: [usize; MAX_DIMS],
        fault: mut void,
    }
}

const _: () = assert!(MAX_DIMS == crate::base::limits::MAX_DIMS);

fn text(flags: DType, bytes: usize) -> &'static Source {
    source("select/select.cuh", &[("T", Value::Type(flags)), ("B", Value::Number(bytes as u32))])
}

/// Counts `flags` by blocks and scans the counts; returns the arguments with the counts.
fn counted(
    flags: &RawView,
    bytes: usize,
    total: *mut u8,
    gpu: &mut dyn Gpu,
) -> Result<(&'static Source, Args), GpuError> {
    let n = flags.numel();
    let blocks = n.div_ceil(BLOCK);
    let counts = gpu.scratch((blocks + 1) * 8)?;
    let source = text(flags.dtype, bytes);
    let args = Args { flags: flags.ptr, indices: total, counts, n, blocks, ..Args::NONE };
    if blocks > 0 {
        launch(source, "ts_block_counts", (blocks, 1), 256, args.words(), gpu)?;
    }
    launch(source, "ts_scan_block_counts", (1, 1), 256, args.words(), gpu)?;
    Ok((source, args))
}

pub fn count(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some(last) = call.inputs.last() else { return Ok(()) };
    if last.numel() == 0 {
        return fill(Scalar::Int(0), &call.outputs[0], gpu);
    }
    let flags = input(last, last.dtype, gpu)?;
    let total = Output::new(&call.outputs[0], DType::I64, gpu)?;
    counted(&flags, 8, total.dense.ptr, gpu)?;
    total.finish(gpu)
}

pub fn nonzero(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let flags = input(x, x.dtype, gpu)?;
    let at = Output::new(y, DType::I64, gpu)?;
    let (source, mut args) = counted(&flags, 8, std::ptr::null_mut(), gpu)?;
    (args.indices, args.limit, args.ndim) = (at.dense.ptr, y.shape[0], x.shape.len());
    args.size[..x.shape.len()].copy_from_slice(&x.shape);
    launch(source, "ts_select_flagged", (flags.numel().div_ceil(BLOCK), 1), 256, args.words(), gpu)?;
    at.finish(gpu)
}

pub fn masked_select(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, mask, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let (x, flags) = (input(x, x.dtype, gpu)?, input(mask, mask.dtype, gpu)?);
    let out = Output::new(y, y.dtype, gpu)?;
    let (source, mut args) = counted(&flags, x.dtype.size_bytes(), std::ptr::null_mut(), gpu)?;
    (args.x, args.y, args.limit) = (x.ptr, out.dense.ptr, y.numel());
    launch(source, "ts_select_flagged", (flags.numel().div_ceil(BLOCK), 1), 256, args.words(), gpu)?;
    out.finish(gpu)
}

/// For each element the number of flags up to it, minus one; and the total. Operands are contiguous and not empty.
pub fn ranks(flags: &RawView, ranks: &RawView, total: &RawView, gpu: &mut dyn Gpu) -> Done {
    let (source, mut args) = counted(flags, 8, total.ptr, gpu)?;
    args.indices = ranks.ptr;
    launch(source, "ts_flag_ranks", (flags.numel().div_ceil(BLOCK), 1), 256, args.words(), gpu)
}

pub fn masked_scatter(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, mask, src, y) = (&call.inputs[0], &call.inputs[1], &call.inputs[2], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let (flags, src) = (input(mask, mask.dtype, gpu)?, input(src, src.dtype, gpu)?);
    let out = Output::new(y, y.dtype, gpu)?;
    if x.ptr != out.dense.ptr || x.strides != out.dense.strides {
        copy_view(x, &out.dense, gpu)?;
    }
    let (source, mut args) = counted(&flags, y.dtype.size_bytes(), std::ptr::null_mut(), gpu)?;
    (args.x, args.y, args.limit) = (src.ptr, out.dense.ptr, src.numel());
    args.fault = gpu.fault_slot(0)?;
    launch(source, "ts_masked_scatter", (flags.numel().div_ceil(BLOCK), 1), 256, args.words(), gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let counts = DType::REAL.into_iter().map(|dtype| text(dtype, 8));
    counts.chain([1, 2, 4].map(|bytes| text(DType::Bool, bytes))).collect()
}
