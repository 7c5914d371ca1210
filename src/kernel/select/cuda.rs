//! CUDA launches of the kernels in `kernel/select/host`.

use crate::base::dtype::{DType, Scalar};
use crate::base::limits::MAX_DIMS;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};

type Done = Result<(), GpuError>;

/// Elements of a block.
const BLOCK: usize = 1024;
/// Where the argument words of `select/select.cuh` name the error slot, after the sizes of all dims.
const FAULT: usize = 9 + MAX_DIMS;

fn text(flags: DType, bytes: usize) -> &'static Source {
    source("select/select.cuh", &[("T", Value::Type(flags)), ("B", Value::Number(bytes as u32))])
}

/// Counts in `flags`, summed up: the argument words, with the counts in place.
fn counted(
    flags: &RawView,
    bytes: usize,
    total: u64,
    gpu: &mut dyn Gpu,
) -> Result<(&'static Source, [u64; FAULT + 1]), GpuError> {
    let n = flags.numel();
    let blocks = n.div_ceil(BLOCK);
    let counts = gpu.scratch((blocks + 1) * 8)? as u64;
    let source = text(flags.dtype, bytes);
    let mut words = [0; FAULT + 1];
    words[..9].copy_from_slice(&[flags.ptr as u64, 0, 0, total, counts, n as u64, blocks as u64, 0, 0]);
    if blocks > 0 {
        launch(source, "ts_block_counts", (blocks, 1), 256, &words, gpu)?;
    }
    launch(source, "ts_scan_block_counts", (1, 1), 256, &words, gpu)?;
    Ok((source, words))
}

pub fn count(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some(last) = call.inputs.last() else { return Ok(()) };
    if last.numel() == 0 {
        return fill(Scalar::Int(0), &call.outputs[0], gpu);
    }
    let flags = input(last, last.dtype, gpu)?;
    let total = Output::new(&call.outputs[0], DType::I64, gpu)?;
    counted(&flags, 8, total.dense.ptr as u64, gpu)?;
    total.finish(gpu)
}

pub fn nonzero(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let flags = input(x, x.dtype, gpu)?;
    let at = Output::new(y, DType::I64, gpu)?;
    let (source, mut words) = counted(&flags, 8, 0, gpu)?;
    words[3] = at.dense.ptr as u64;
    words[7] = y.shape[0] as u64;
    words[8] = x.shape.len() as u64;
    for (word, &size) in words[9..].iter_mut().zip(&x.shape) {
        *word = size as u64;
    }
    launch(source, "ts_select_flagged", (flags.numel().div_ceil(BLOCK), 1), 256, &words, gpu)?;
    at.finish(gpu)
}

pub fn masked_select(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, mask, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let (x, flags) = (input(x, x.dtype, gpu)?, input(mask, mask.dtype, gpu)?);
    let out = Output::new(y, y.dtype, gpu)?;
    let (source, mut words) = counted(&flags, x.dtype.size_bytes(), 0, gpu)?;
    (words[1], words[2], words[7]) = (x.ptr as u64, out.dense.ptr as u64, y.numel() as u64);
    launch(source, "ts_select_flagged", (flags.numel().div_ceil(BLOCK), 1), 256, &words, gpu)?;
    out.finish(gpu)
}

/// How many of `flags` are set up to each element, less one; and how many there are at all. Dense, not empty.
pub fn ranks(flags: &RawView, ranks: &RawView, total: &RawView, gpu: &mut dyn Gpu) -> Done {
    let (source, mut words) = counted(flags, 8, total.ptr as u64, gpu)?;
    words[3] = ranks.ptr as u64;
    launch(source, "ts_flag_ranks", (flags.numel().div_ceil(BLOCK), 1), 256, &words, gpu)
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
    let (source, mut words) = counted(&flags, y.dtype.size_bytes(), 0, gpu)?;
    (words[1], words[2], words[7]) = (src.ptr as u64, out.dense.ptr as u64, src.numel() as u64);
    words[FAULT] = gpu.fault_slot(0)? as u64;
    launch(source, "ts_masked_scatter", (flags.numel().div_ceil(BLOCK), 1), 256, &words, gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let counts = DType::ALL.into_iter().map(|dtype| text(dtype, 8));
    counts.chain([1, 2, 4].map(|bytes| text(DType::Bool, bytes))).collect()
}
