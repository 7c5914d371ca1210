//! CUDA launches of `unique_dim` (`kernel/sort/host/unique`): sorts the indices of slices by comparing whole slices.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{fill, input, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag};
use crate::kernel::select::cuda as select;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    // Entries that a block sorts in shared memory.
    pub static UNIQUE_ARGS = "sort/unique_args.cuh", TILE = 2048;
    struct Args {
        x: const T,
        values: mut T,
        /// Indices of slices in sorted order, `size` of them with padding.
        order: mut i64,
        inverse: mut i64,
        /// Where each run of equal slices starts.
        run_starts: mut i64,
        counts: mut i64,
        unique_count: mut i64,
        flags: mut u8,
        ranks: const i64,
        n: usize,
        m: usize,
        size: usize,
        inner: usize,
        from: usize,
        to: usize,
    }
}

fn text(dtype: DType) -> &'static Source {
    source("sort/unique.cuh", &[("T", Value::Type(dtype))])
}

/// Distinct slices along the dim that the first attribute names.
pub fn unique(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, d, consecutive) = (&call.inputs[0], dim(call, 0), flag(call, 1));
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(|k| &call.outputs[k]);
    let n = x.shape[d];
    if n == 0 {
        return fill(Scalar::Int(0), number, gpu);
    }
    let mut front = x.clone();
    let (size, stride) = (front.shape.remove(d), front.strides.remove(d));
    front.shape.insert(0, size);
    front.strides.insert(0, stride);
    let (dense, source) = (input(&front, x.dtype, gpu)?, text(x.dtype));
    let size = if consecutive { n } else { n.next_power_of_two().max(TILE) };
    let mut numbers = |count: usize| gpu.scratch(count * 8);
    let (order, run_starts) = (numbers(size)?, numbers(n)?);
    let flags = scratch(DType::Bool, &[n], gpu)?;
    let ranks = scratch(DType::I64, &[n], gpu)?;
    let args = Args {
        x: dense.ptr,
        values: values.ptr,
        order,
        inverse: inverse.ptr,
        run_starts,
        counts: counts.ptr,
        unique_count: number.ptr,
        flags: flags.ptr,
        ranks: ranks.ptr,
        n,
        m: dense.numel() / n,
        size,
        inner: x.shape[d + 1..].iter().product(),
        from: 2,
        to: TILE,
    };
    if consecutive {
        each(source, "ts_iota", n, args.words(), gpu)?;
    } else {
        sort(source, &args, gpu)?;
    }
    each(source, "ts_unique_dim_flags", n, args.words(), gpu)?;
    select::ranks(&flags, &ranks, number, gpu)?;
    each(source, "ts_unique_dim_inverse", n, args.words(), gpu)?;
    each(source, "ts_unique_dim_counts", n, args.words(), gpu)?;
    each(source, "ts_unique_dim_gather", n * args.m, args.words(), gpu)
}

/// Sorts tiles first; then merges longer and longer runs, whose large steps cross tiles.
fn sort(source: &'static Source, args: &Args, gpu: &mut dyn Gpu) -> Done {
    let tiles = (args.size / TILE, 1);
    launch(source, "ts_bitonic_sort_tile", tiles, 1024, args.words(), gpu)?;
    let mut run = 2 * TILE;
    while run <= args.size {
        let mut step = run / 2;
        while step >= TILE {
            let across = Args { from: run, to: step, ..*args };
            launch(source, "ts_bitonic_step", (args.size / 512, 1), 256, across.words(), gpu)?;
            step /= 2;
        }
        launch(source, "ts_bitonic_sort_tile", tiles, 1024, Args { from: run, to: run, ..*args }.words(), gpu)?;
        run *= 2;
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
