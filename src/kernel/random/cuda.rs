//! CUDA launches of `kernel/random/multinomial`: the same samples, element for element.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::sort::cuda as sort;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "random/multinomial_args.cuh";
    struct Args {
        x: const T,
        y: mut T,
        cumsum: mut f64,
        keys: mut f64,
        sampled: mut i64,
        last: mut i64,
        fault: mut void,
        rows: usize,
        n: usize,
        samples: usize,
        replacement: u64,
        seed: u64,
        offset: u64,
    }
}

fn text(dtype: DType) -> &'static Source {
    source("random/multinomial.cuh", &[("T", Value::Type(dtype))])
}

pub fn multinomial(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let n = x.shape.last().copied().unwrap_or(0);
    let samples = y.shape.last().copied().unwrap_or(0);
    if n == 0 {
        return Err(GpuError::Unsupported("no categories"));
    }
    if y.numel() == 0 {
        return Ok(());
    }
    let (rows, replaced) = (x.numel() / n, attributes::flag(call, 0));
    let x = input(x, DType::F64, gpu)?;
    let picked = Output::new(y, DType::I64, gpu)?;
    let sums = scratch(DType::F64, &[rows, n], gpu)?;
    let last = scratch(DType::I64, &[rows], gpu)?;
    let keys = if replaced { sums.clone() } else { scratch(DType::F64, &[rows, n], gpu)? };
    let args = Args {
        x: x.ptr,
        y: std::ptr::null_mut(),
        cumsum: sums.ptr,
        keys: keys.ptr,
        sampled: picked.dense.ptr,
        last: last.ptr,
        fault: gpu.fault_slot(0)?,
        rows,
        n,
        samples,
        replacement: replaced as u64,
        seed: call.seed,
        offset: call.offset,
    };
    let source = text(DType::F64);
    launch(source, "ts_cumulative_weights", (rows, 1), 32, args.words(), gpu)?;
    if replaced {
        each(source, "ts_multinomial_search", rows * samples, args.words(), gpu)?;
    } else {
        each(source, "ts_exponential_keys", rows * n, args.words(), gpu)?;
        let at = RawView::contiguous(picked.dense.ptr, DType::I64, &[rows, samples]);
        sort::smallest(&keys, &at, gpu)?;
        each(source, "ts_clear_failed_rows", rows * samples, args.words(), gpu)?;
    }
    picked.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let floats = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    floats.map(text).chain(super::cuda_permutation::texts()).collect()
}
