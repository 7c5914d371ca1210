//! CUDA launches of `randperm`: the permutation of `kernel/random/host`, by `kernels/random/permutation.cuh`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::Output;
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::sort::cuda::{Table, Targets};
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "random/permutation_args.cuh";
    struct PermutationArgs {
        y: mut T,
        targets: mut i32,
        sorted: const i32,
        from: const u32,
        parents: mut u32,
        n: usize,
        seed: u64,
        offset: u64,
    }
}

fn text(dtype: DType) -> &'static Source {
    source("random/permutation.cuh", &[("T", Value::Type(dtype))])
}

pub fn randperm(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let y = &call.outputs[0];
    let n = y.numel();
    if n == 0 {
        return Ok(());
    }
    if n > i32::MAX as usize {
        return Err(GpuError::Unsupported("a permutation this long"));
    }
    let out = Output::new(y, y.dtype, gpu)?;
    let mut words = || gpu.scratch(n * 4);
    let (targets, sorted, from, parents) = (words()?, words()?, words()?, words()?);
    let (seed, offset, source) = (call.seed, call.offset, text(y.dtype));
    let args = PermutationArgs { y: out.dense.ptr, targets, sorted, from, parents, n, seed, offset };
    each(source, "ts_exchange_targets", n.div_ceil(4), args.words(), gpu)?;
    let to = Targets { values: sorted, indices: std::ptr::null_mut(), positions: from };
    Table::whole(&RawView::contiguous(targets, DType::I32, &[n])).sorted(to, gpu)?;
    gpu.fill_zero(parents, n * 4)?;
    each(source, "ts_permutation_parents", n, args.words(), gpu)?;
    each(source, "ts_permute", n, args.words(), gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
