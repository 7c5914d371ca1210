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
        /// Of each row the first zero, where positions are not sorted.
        zeros: mut u64,
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

fn text(dtype: DType, large: bool, alone: bool) -> &'static Source {
    let number = |is: bool| Value::Number(is as u32);
    source("sort/radix.cuh", &[("T", Value::Type(dtype)), ("LARGE", number(large)), ("ALONE", number(alone))])
}

/// Blocks for each of `rows` rows of n elements, and the elements of each: enough for all multiprocessors, and at least
/// some thousand elements.
pub(super) fn chunks(rows: usize, n: usize, gpu: &dyn Gpu) -> (usize, usize) {
    let wanted = (gpu.multiprocessors() as usize * 8).div_ceil(rows);
    let chunk = n.div_ceil(wanted.min(n.div_ceil(4096)).max(1)).next_multiple_of(1024);
    (n.div_ceil(chunk), chunk)
}

/// Sorts every row, which is not empty; where no place is asked for, in ascending order, by values alone.
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
    let alone = to.indices.is_null() && to.positions.is_null() && !descending;
    let mut buffer = |bytes: usize, needed: bool| if needed { gpu.scratch(bytes) } else { Ok(std::ptr::null_mut()) };
    let numel = rows * n;
    let (keys_a, positions_a) = (buffer(numel * bytes, bytes > 1)?, buffer(numel * 4, bytes > 1 && !alone)?);
    let (keys_b, positions_b) = (buffer(numel * bytes, bytes > 2)?, buffer(numel * 4, bytes > 2 && !alone)?);
    // What is 0 at first is in one piece of memory; the number of passes is that of a key's bytes.
    let states = bytes * rows * tiles * DIGITS * if large { 8 } else { 4 };
    let histograms = rows * bytes * DIGITS * 4;
    let (tickets, first_zeros) = ((bytes * 4).next_multiple_of(8), if alone { rows * 8 } else { 0 });
    let cleared = states + histograms + tickets + first_zeros;
    let zeros = buffer(cleared, true)?;
    let plans = buffer(rows * bytes * 4, true)?;
    gpu.fill_zero(zeros, cleared)?;
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
        zeros: zeros.wrapping_add(states + histograms + tickets),
        states: zeros,
        rows,
        n,
        tiles,
        chunks,
        chunk,
        pass: 0,
        descending: descending as u64,
    };
    let source = text(x.dtype, large, alone);
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
    let all = DType::REAL.into_iter().flat_map(|dtype| [false, true].map(|alone| text(dtype, false, alone)));
    all.chain([text(DType::F32, true, false)]).collect()
}
