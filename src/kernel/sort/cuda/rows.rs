//! Sorts of rows that fit into the registers of some lanes or of a block: `kernels/sort/short_rows.cuh`, `block_rows.cuh`.

use super::{Done, Table, Targets};
use crate::base::dtype::DType;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, Source};
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "sort/row_args.cuh";
    struct RowArgs {
        x: const T,
        values: mut T,
        indices: mut i64,
        positions: mut u32,
        rows: usize,
        n: usize,
        kept: usize,
        descending: u64,
    }
}

/// The longest row that a block sorts.
pub(super) const LONGEST: usize = 4096;
const THREADS: usize = 256;

/// Whether a warp sorts a row: its entries must fit into registers.
pub(super) fn is_short(table: &Table) -> bool {
    table.n <= if table.x.dtype.size_bytes() == 8 { 256 } else { 512 }
}

/// Entries that each lane has of a row in a room of `width`.
fn entries_of_lane(width: usize) -> usize {
    (width / 32).clamp(width.min(8), 16)
}

/// `width`: a power of two, the room of a row.
fn short_text(dtype: DType, width: usize) -> &'static Source {
    let each = entries_of_lane(width);
    let number = |n: usize| Value::Number(n as u32);
    source("sort/short_rows.cuh", &[("T", Value::Type(dtype)), ("LANES", number(width / each)), ("E", number(each))])
}

fn block_text(dtype: DType, items: usize) -> &'static Source {
    source("sort/block_rows.cuh", &[("T", Value::Type(dtype)), ("ITEMS", Value::Number(items as u32))])
}

/// The first `kept` elements of every sorted row; rows are not empty and at most `LONGEST` long.
pub(super) fn sort(table: &Table, kept: usize, descending: bool, to: Targets, gpu: &mut dyn Gpu) -> Done {
    let Table { x, rows, n } = table;
    let args = RowArgs {
        x: x.ptr,
        values: to.values,
        indices: to.indices,
        positions: to.positions,
        rows: *rows,
        n: *n,
        kept,
        descending: descending as u64,
    };
    if is_short(table) {
        let width = n.next_power_of_two();
        let blocks = rows.div_ceil(THREADS / (width / entries_of_lane(width)));
        return launch(short_text(x.dtype, width), "ts_sort_short_rows", (blocks, 1), THREADS, args.words(), gpu);
    }
    let items = n.div_ceil(THREADS).next_power_of_two().max(2);
    launch(block_text(x.dtype, items), "ts_sort_block_row", (*rows, 1), THREADS, args.words(), gpu)
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    let mut all: Vec<_> = DType::REAL.into_iter().map(|dtype| short_text(dtype, 64)).collect();
    all.extend([1, 2, 32, 512].map(|width| short_text(DType::F32, width)));
    all.extend(DType::REAL.map(|dtype| block_text(dtype, 16)));
    all.extend([short_text(DType::F64, 256), block_text(DType::F32, 4)]);
    all
}
