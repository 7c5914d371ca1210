//! CUDA launches of `searchsorted`, and of `repeat_interleave`'s counts (`kernel/select/host`).

pub mod counts;

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::{address, each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{flag, shifted};
use crate::kernel::scan::cuda as scan;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// Values of a thread (`ITEMS` in the text).
const ITEMS: usize = 4;

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
        fault: mut void,
        n: usize,
        row_values: usize,
        count: usize,
        flag: u64,
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
    match sorter {
        Some(_) => each(text(dtype), "ts_searchsorted_by", count, args.words(), gpu)?,
        None => {
            launch(text(dtype), "ts_searchsorted", (count.div_ceil(256 * ITEMS), 1), 256, args.words(), gpu)?;
        }
    }
    out.finish(gpu)
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
    DType::REAL.into_iter().map(text).chain(counts::texts()).collect()
}
