//! Sorts of long rows: `kernels/sort/radix.cuh`.

use super::{Done, Table, Targets};
use crate::base::dtype::DType;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "sort/radix_args.cuh";
    struct RadixArgs {
        x: const T,
        values: mut T,
        indices: mut i64,
        positions: mut u32,
        /// Keys and positions between passes.
        keys_a: mut Key,
        keys_b: mut Key,
        positions_a: mut u32,
        positions_b: mut u32,
        /// Counts of digits: for each row and pass 256.
        histograms: mut u32,
        /// What each pass does, for each row.
        plans: mut u32,
        /// Of each pass.
        tickets: mut u32,
        /// What tiles tell: for each pass, row and tile 256.
        states: mut void,
        rows: usize,
        n: usize,
        /// Tiles of a row.
        tiles: usize,
        /// Blocks that count a row, and elements of each.
        chunks: usize,
        chunk: usize,
        pass: usize,
        descending: u64,
    }
}

const DIGITS: usize = 256;
/// Threads of a block that sorts a tile.
const THREADS: usize = 384;
/// Bound: tiles of a launch.
const MAX_TILES: usize = i32::MAX as usize;

fn text(dtype: DType, large: bool) -> &'static Source {
    source("sort/radix.cuh", &[("T", Value::Type(dtype)), ("LARGE", Value::Number(large as u32))])
}

/// Blocks for each of `rows` rows of n elements, and the elements of each: enough for all multiprocessors, and at least
/// some thousand elements.
pub(super) fn chunks(rows: usize, n: usize, gpu: &dyn Gpu) -> (usize, usize) {
    let wanted = (gpu.multiprocessors() as usize * 8).div_ceil(rows);
    let chunk = n.div_ceil(wanted.min(n.div_ceil(4096)).max(1)).next_multiple_of(1024);
    (n.div_ceil(chunk), chunk)
}

/// Sorts every row, which is not empty.
pub(super) fn sort(table: &Table, descending: bool, to: Targets, gpu: &mut dyn Gpu) -> Done {
    let Table { x, rows, n } = table;
    let (rows, n, bytes) = (*rows, *n, x.dtype.size_bytes());
    let tile = THREADS * if bytes == 8 { 10 } else { 20 };
    let tiles = n.div_ceil(tile);
    let (chunks, chunk) = chunks(rows, n, gpu);
    if rows.saturating_mul(tiles.max(chunks)) > MAX_TILES {
        return Err(GpuError::Unsupported("so many tiles"));
    }
    // A count needs all but two bits of a state.
    let large = n >= 1 << 30;
    let mut buffer = |bytes: usize, needed: bool| if needed { gpu.scratch(bytes) } else { Ok(std::ptr::null_mut()) };
    let numel = rows * n;
    let (keys_a, positions_a) = (buffer(numel * bytes, bytes > 1)?, buffer(numel * 4, bytes > 1)?);
    let (keys_b, positions_b) = (buffer(numel * bytes, bytes > 2)?, buffer(numel * 4, bytes > 2)?);
    // What is 0 at first is in one piece of memory; the number of passes is that of a key's bytes.
    let states = bytes * rows * tiles * DIGITS * if large { 8 } else { 4 };
    let histograms = rows * bytes * DIGITS * 4;
    let zeros = buffer(states + histograms + bytes * 4, true)?;
    let plans = buffer(rows * bytes * 4, true)?;
    gpu.fill_zero(zeros, states + histograms + bytes * 4)?;
    let mut args = RadixArgs {
        x: x.ptr,
        values: to.values,
        indices: to.indices,
        positions: to.positions,
        keys_a,
        keys_b,
        positions_a,
        positions_b,
        histograms: zeros.wrapping_add(states),
        plans,
        tickets: zeros.wrapping_add(states + histograms),
        states: zeros,
        rows,
        n,
        tiles,
        chunks,
        chunk,
        pass: 0,
        descending: descending as u64,
    };
    let source = text(x.dtype, large);
    launch(source, "ts_radix_histograms", (rows * chunks, 1), 256, args.words(), gpu)?;
    launch(source, "ts_radix_plan", (rows, 1), 256, args.words(), gpu)?;
    for pass in 0..bytes {
        args.pass = pass;
        launch(source, "ts_radix_pass", (rows * tiles, 1), THREADS, args.words(), gpu)?;
    }
    Ok(())
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(|dtype| text(dtype, false)).chain([text(DType::F32, true)]).collect()
}
