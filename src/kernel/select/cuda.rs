//! CUDA launches of the kernels in `kernel/select/host`.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// Elements of a tile: `TS_FLAG_TILE` (`kernels/common/flags.cuh`).
pub const TILE: usize = 4096;

structs! {
    // `base::limits::MAX_DIMS`.
    pub static ARGS = "select/args.cuh", MAX_DIMS = 16;
    struct Args {
        flags: const T,
        x: const Cell,
        y: mut Cell,
        indices: mut i64,
        total: mut i64,
        states: mut u64,
        ticket: mut u32,
        n: usize,
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

/// What `kernels/common/look_back.cuh` needs for a number of tiles: their states and the ticket.
pub fn tile_states(tiles: usize, gpu: &mut dyn Gpu) -> Result<(*mut u8, *mut u8), GpuError> {
    let bytes = (tiles + 1) * 8;
    let states = gpu.scratch(bytes)?;
    gpu.fill_zero(states, bytes)?;
    Ok((states, states.wrapping_add(tiles * 8)))
}

/// Launches a kernel with a block for each tile of the flags, of which there are some; elements have so many bytes.
fn tiles(entry: &str, flags: &RawView, bytes: usize, args: Args, gpu: &mut dyn Gpu) -> Done {
    let n = flags.numel();
    let tiles = n.div_ceil(TILE);
    let (states, ticket) = tile_states(tiles, gpu)?;
    let args = Args { flags: flags.ptr, n, states, ticket, ..args };
    launch(text(flags.dtype, bytes), entry, (tiles, 1), 256, args.words(), gpu)
}

/// Stores the number of flags, of which there are some.
fn count_to(total: *mut u8, flags: &RawView, gpu: &mut dyn Gpu) -> Done {
    gpu.fill_zero(total, 8)?;
    let n = flags.numel();
    let args = Args { flags: flags.ptr, n, total, ..Args::NONE };
    let blocks = n.div_ceil(2048).min(gpu.multiprocessors() as usize * 8);
    launch(text(flags.dtype, 8), "ts_count_flags", (blocks, 1), 256, args.words(), gpu)
}

pub fn count(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some(last) = call.inputs.last() else { return Ok(()) };
    if last.numel() == 0 {
        return fill(Scalar::Int(0), &call.outputs[0], gpu);
    }
    let flags = input(last, last.dtype, gpu)?;
    let total = Output::new(&call.outputs[0], DType::I64, gpu)?;
    count_to(total.dense.ptr, &flags, gpu)?;
    total.finish(gpu)
}

pub fn nonzero(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let flags = input(x, x.dtype, gpu)?;
    let at = Output::new(y, DType::I64, gpu)?;
    let mut args = Args { indices: at.dense.ptr, limit: y.shape[0], ndim: x.shape.len(), ..Args::NONE };
    args.size[..x.shape.len()].copy_from_slice(&x.shape);
    tiles("ts_flagged_indices", &flags, 8, args, gpu)?;
    at.finish(gpu)
}

pub fn masked_select(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, mask, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let (x, flags) = (input(x, x.dtype, gpu)?, input(mask, mask.dtype, gpu)?);
    let out = Output::new(y, y.dtype, gpu)?;
    let args = Args { x: x.ptr, y: out.dense.ptr, limit: y.numel(), ..Args::NONE };
    tiles("ts_select_flagged", &flags, x.dtype.size_bytes(), args, gpu)?;
    out.finish(gpu)
}

/// For each element the number of flags up to it, minus one; and the total. Operands are contiguous and not empty.
pub fn ranks(flags: &RawView, ranks: &RawView, total: &RawView, gpu: &mut dyn Gpu) -> Done {
    tiles("ts_flag_ranks", flags, 8, Args { indices: ranks.ptr, total: total.ptr, ..Args::NONE }, gpu)
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
    // A fault tells the number of all flags.
    let total = gpu.scratch(8)?;
    count_to(total, &flags, gpu)?;
    let fault = gpu.fault_slot(0)?;
    let args = Args { x: src.ptr, y: out.dense.ptr, limit: src.numel(), total, fault, ..Args::NONE };
    tiles("ts_masked_scatter", &flags, y.dtype.size_bytes(), args, gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let counts = DType::REAL.into_iter().map(|dtype| text(dtype, 8));
    counts.chain([1, 2, 4].map(|bytes| text(DType::Bool, bytes))).collect()
}
