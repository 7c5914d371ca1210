//! Selections from rows without sorting them: `kernels/sort/select.cuh` and `select_rows.cuh`.

use super::{Done, Table, radix};
use crate::base::dtype::DType;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

structs! {
    // Elements that topk gives; bytes of `ts_selection`.
    pub static ARGS = "sort/select_args.cuh", MAX_WINNERS = 1024, SELECTION_BYTES = 8256;
    struct SelectArgs {
        x: const T,
        values: mut T,
        indices: mut i64,
        /// What is known of each row, `SELECTION_BYTES` for each.
        selections: mut void,
        /// Keys and positions of topk's winners.
        winners: mut void,
        n: usize,
        k: usize,
        mode: usize,
        descending: u64,
        /// Blocks of a row, and elements of each.
        chunks: usize,
        chunk: usize,
        /// The digit of this launch: whether it is the first, whether it is one of the key or of the position, where it
        /// starts, its bits.
        first: u64,
        of_key: u64,
        shift: usize,
        bits: usize,
    }
}

/// The longest row that a block selects from.
const LONGEST: usize = 8192;
const THREADS: usize = 256;
/// Bits of a digit where all multiprocessors select from a row.
const DIGIT_BITS: usize = 11;
/// Bound: blocks of a launch.
const MAX_BLOCKS: usize = i32::MAX as usize;

/// Which element of a row is selected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Rank {
    Kth(usize),
    Median,
    NanMedian,
}

fn text(dtype: DType) -> &'static Source {
    source("sort/select.cuh", &[("T", Value::Type(dtype))])
}

fn rows_text(dtype: DType, threads: usize, items: usize) -> &'static Source {
    let number = |n: usize| Value::Number(n as u32);
    let names = [("T", Value::Type(dtype)), ("THREADS", number(threads)), ("ITEMS", number(items))];
    source("sort/select_rows.cuh", &names)
}

/// The first k elements of each row in order, at most `MAX_WINNERS`. Rows are at least that long.
pub(super) fn topk(
    table: &Table,
    k: usize,
    descending: bool,
    [values, indices]: [*mut u8; 2],
    gpu: &mut dyn Gpu,
) -> Done {
    run(table, SelectArgs { values, indices, k, mode: 3, descending: descending as u64, ..SelectArgs::NONE }, gpu)
}

/// One element of each row; rows are not empty.
pub(super) fn element(table: &Table, rank: Rank, [values, indices]: [*mut u8; 2], gpu: &mut dyn Gpu) -> Done {
    let (mode, k) = match rank {
        Rank::Kth(k) => (0, k),
        Rank::Median => (1, 0),
        Rank::NanMedian => (2, 0),
    };
    run(table, SelectArgs { values, indices, k, mode, ..SelectArgs::NONE }, gpu)
}

fn run(table: &Table, args: SelectArgs, gpu: &mut dyn Gpu) -> Done {
    let args = SelectArgs { x: table.x.ptr, n: table.n, ..args };
    if table.n <= LONGEST {
        let threads = if table.n <= LONGEST / 2 { THREADS } else { 2 * THREADS };
        let items = table.n.div_ceil(threads).next_power_of_two();
        let source = rows_text(table.x.dtype, threads, items);
        return launch(source, "ts_select_rows", (table.rows, 1), threads, args.words(), gpu);
    }
    long_rows(table, args, gpu)
}

/// The digits from the highest: whether it is one of the key, where it starts, its bits.
fn digits(key_bits: usize, position_bits: usize) -> impl Iterator<Item = (bool, usize, usize)> {
    let parts = |of_key: bool, bits: usize| {
        let count = bits.div_ceil(DIGIT_BITS);
        (0..count).map(move |part| {
            let end = bits - part * DIGIT_BITS;
            let start = end.saturating_sub(DIGIT_BITS);
            (of_key, start, end - start)
        })
    };
    parts(true, key_bits).chain(parts(false, position_bits))
}

fn long_rows(table: &Table, args: SelectArgs, gpu: &mut dyn Gpu) -> Done {
    let (rows, dtype, is_topk) = (table.rows, table.x.dtype, args.mode == 3);
    let (chunks, chunk) = radix::chunks(rows, table.n, gpu);
    let blocks = rows.saturating_mul(chunks);
    if blocks > MAX_BLOCKS {
        return Err(GpuError::Unsupported("so many blocks"));
    }
    let selections = gpu.scratch(rows * SELECTION_BYTES)?;
    let entry = if dtype.size_bytes() == 8 { 16 } else { 8 };
    let winners = if is_topk { gpu.scratch(rows * args.k * entry)? } else { std::ptr::null_mut() };
    gpu.fill_zero(selections, rows * SELECTION_BYTES)?;
    let mut args = SelectArgs { selections, winners, chunks, chunk, ..args };
    let source = text(dtype);
    let position_bits = (usize::BITS - (table.n - 1).leading_zeros()) as usize;
    for (number, (of_key, shift, bits)) in digits(dtype.size_bytes() * 8, position_bits).enumerate() {
        (args.first, args.of_key, args.shift, args.bits) = ((number == 0) as u64, of_key as u64, shift, bits);
        launch(source, "ts_select_digit", (blocks, 1), THREADS, args.words(), gpu)?;
    }
    launch(source, "ts_collect_winners", (blocks, 1), THREADS, args.words(), gpu)?;
    if is_topk { launch(source, "ts_sort_winners", (rows, 1), THREADS, args.words(), gpu) } else { Ok(()) }
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    let all = DType::REAL.into_iter().flat_map(|dtype| [text(dtype), rows_text(dtype, THREADS, 16)]);
    all.chain([rows_text(DType::F32, THREADS, 4), rows_text(DType::F64, 2 * THREADS, 16)]).collect()
}
