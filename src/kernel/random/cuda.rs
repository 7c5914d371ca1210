//! CUDA launches of `kernel/random/multinomial`: the same samples, element for element.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::random::multinomial::{BLOCK, GROUP, by_sums};
use crate::kernel::sort::cuda as sort;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "random/multinomial_args.cuh";
    struct Args {
        x: const T,
        cumsum: mut f64,
        starts: mut f64,
        seen: mut void,
        keys: mut f64,
        sampled: mut i64,
        last: mut i64,
        fault: mut void,
        rows: usize,
        n: usize,
        /// Blocks of a row.
        blocks: usize,
        samples: usize,
        divide_samples: u64,
        replacement: u64,
        /// Whether cumulative weights are wanted.
        sums: u64,
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
    let (rows, replaced) = (x.numel() / n, by_sums(call, samples));
    let blocks = n.div_ceil(BLOCK);
    let x = input(x, x.dtype, gpu)?;
    let picked = Output::new(y, DType::I64, gpu)?;
    let weights = scratch(DType::F64, &[rows, n], gpu)?;
    let args = Args {
        x: x.ptr,
        cumsum: weights.ptr,
        starts: scratch(DType::F64, &[rows, blocks + 1], gpu)?.ptr,
        seen: scratch(DType::I32, &[rows, blocks, 3], gpu)?.ptr,
        keys: weights.ptr,
        sampled: picked.dense.ptr,
        last: scratch(DType::I64, &[rows], gpu)?.ptr,
        fault: gpu.fault_slot(0)?,
        rows,
        n,
        blocks,
        samples,
        divide_samples: division(samples as u64),
        replacement: replaced as u64,
        sums: replaced as u64,
        seed: call.seed,
        offset: call.offset,
    };
    let source = text(x.dtype);
    if n <= GROUP {
        each(source, "ts_short_rows", rows, args.words(), gpu)?;
    } else {
        launch(source, "ts_block_weights", (rows * blocks, 1), 256, args.words(), gpu)?;
        launch(source, "ts_block_starts", (rows, 1), 256, args.words(), gpu)?;
    }
    if replaced {
        each(source, "ts_multinomial_search", rows * samples, args.words(), gpu)?;
    } else {
        each(source, "ts_exponential_keys", rows * n, args.words(), gpu)?;
        let at = RawView::contiguous(picked.dense.ptr, DType::I64, &[rows, samples]);
        sort::smallest(&weights, &at, gpu)?;
        each(source, "ts_clear_failed_rows", rows * samples, args.words(), gpu)?;
    }
    picked.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let floats = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    floats.map(text).chain(super::cuda_permutation::texts()).collect()
}
