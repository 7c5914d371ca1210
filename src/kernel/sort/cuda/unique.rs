//! `unique` of elements: a sort, then `kernels/sort/distinct.cuh`.

use super::{Done, Table, Targets, slices};
use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{fill, input, scratch};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::flag;
use crate::kernel::select::cuda::{TILE, tile_states};
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "sort/distinct_args.cuh";
    struct DistinctArgs {
        x: const T,
        positions: const u32,
        values: mut T,
        inverse: mut i64,
        counts: mut i64,
        number: mut i64,
        /// Where the run of each distinct element starts.
        starts: mut u32,
        states: mut u64,
        ticket: mut u32,
        n: usize,
    }
}

fn text(dtype: DType) -> &'static Source {
    source("sort/distinct.cuh", &[("T", Value::Type(dtype))])
}

/// `unique`, of elements or of slices along a dim.
pub fn unique(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, consecutive) = (&call.inputs[0], flag(call, 1));
    if !matches!(call.attrs.first(), None | Some(Attr::None)) && !x.shape.is_empty() {
        return slices::unique(call, gpu);
    }
    let wanted = |k: usize| if call.outputs[k].numel() > 0 { call.outputs[k].ptr } else { std::ptr::null_mut() };
    let [values, inverse, counts, number] = [0, 1, 2, 3].map(wanted);
    let n = x.numel();
    if n == 0 {
        return fill(Scalar::Int(0), &call.outputs[3], gpu);
    }
    if n >= u32::MAX as usize {
        return Err(GpuError::Unsupported("so many elements"));
    }
    let dense = input(x, x.dtype, gpu)?;
    let (mut elements, mut positions) = (dense.ptr, std::ptr::null_mut());
    if !consecutive {
        let sorted = scratch(x.dtype, &[n], gpu)?;
        elements = sorted.ptr;
        if !inverse.is_null() {
            positions = gpu.scratch(n * 4)?;
        }
        let to = Targets { values: elements, indices: std::ptr::null_mut(), positions };
        Table::whole(&dense).sorted(to, gpu)?;
    }
    let tiles = n.div_ceil(TILE);
    let (states, ticket) = tile_states(tiles, gpu)?;
    let starts = if counts.is_null() { counts } else { gpu.scratch(n * 4)? };
    let args = DistinctArgs { x: elements, positions, values, inverse, counts, number, starts, states, ticket, n };
    launch(text(x.dtype), "ts_number_distinct", (tiles, 1), 256, args.words(), gpu)?;
    if counts.is_null() {
        return Ok(());
    }
    let blocks = n.div_ceil(256).min(gpu.multiprocessors() as usize * 8);
    launch(text(x.dtype), "ts_count_distinct", (blocks, 1), 256, args.words(), gpu)
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
