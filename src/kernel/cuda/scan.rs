//! Launches beside `kernel/cpu/scan`.

use super::dense::{Output, around, input};
use super::family::{Value, source};
use super::rows::{Names, PLAIN, Rows, launch, sample_shapes, word};
use super::{Gpu, GpuError, Source};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cpu::walk::{dim, flag};

type Done = Result<(), GpuError>;

/// Elements of a part of a row that is too long for one block.
const CHUNK: usize = 8192;
/// Bytes of a state at most.
const STATE: usize = 16;

fn text(dtype: DType, op: u32, shape: Names) -> &'static Source {
    source("scan.cuh", &[("T", Value::Type(dtype)), ("OP", Value::Number(op)), shape[0], shape[1], shape[2]])
}

fn run(call: &Call<'_>, op: u32, reverse: bool, gpu: &mut dyn Gpu) -> Done {
    let to = &call.outputs[0];
    let dtype = to.dtype;
    let (outer, n, inner) = around(&to.shape, dim(call, 0));
    if to.numel() == 0 {
        return Ok(());
    }
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(to, dtype, gpu)?;
    let at = call.outputs.get(1).map(|at| Output::new(at, DType::I64, gpu)).transpose()?;
    // Rows that are few are cut into parts, so that every multiprocessor has some.
    let cut = inner == 1 && outer < 2 * gpu.multiprocessors() as usize && n > 2 * CHUNK;
    let chunk = if cut { CHUNK.max(n.div_ceil(65_535).next_multiple_of(1024)) } else { n };
    let chunks = n.div_ceil(chunk);
    let totals = if chunks > 1 { gpu.scratch(outer * chunks * STATE)? as u64 } else { 0 };
    let place = word(at.as_ref().map(|at: &Output| &at.dense as &RawView));
    let counts = [outer, n, inner, chunk, chunks, reverse as usize].map(|n| n as u64);
    let mut words = [x.ptr as u64, y.dense.ptr as u64, place, totals, 0, 0, 0, 0, 0, 0, 0];
    words[4..10].copy_from_slice(&counts);
    let mut operands = vec![&x, &y.dense];
    operands.extend(at.as_ref().map(|at| &at.dense));
    // A state with a position is three registers.
    let rows = Rows::of(outer, n, if at.is_some() { 3 } else { 1 }, &operands);
    let source = text(dtype, op, PLAIN);
    if inner > 1 {
        launch(source, "ts_scan_columns", ((outer * inner).div_ceil(64), 1), 64, &words, gpu)?;
    } else if chunks == 1 && rows.kept > 0 {
        words[10] = rows.lanes as u64;
        launch(text(dtype, op, rows.names()), "ts_scan_rows", (rows.blocks, 1), rows.threads, &words, gpu)?;
    } else {
        if chunks > 1 {
            launch(source, "ts_scan_totals", (outer, chunks), 256, &words, gpu)?;
            launch(source, "ts_scan_chunks", (outer, 1), 256, &words, gpu)?;
        }
        launch(source, "ts_scan", (outer, chunks), 256, &words, gpu)?;
    }
    y.finish(gpu)?;
    at.map_or(Ok(()), |at| at.finish(gpu))
}

pub fn cumsum(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 0, flag(call, 1), gpu)
}

pub fn cumprod(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 1, flag(call, 1), gpu)
}

pub fn logcumsumexp(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 2, flag(call, 1), gpu)
}

pub fn cummax(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 3, false, gpu)
}

pub fn cummin(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 4, false, gpu)
}

/// Texts for the compile test.
pub fn sources() -> Vec<&'static Source> {
    let all = DType::ALL.into_iter().map(|dtype| text(dtype, if dtype.is_signed() { 3 } else { 0 }, PLAIN));
    let rows = [0, 1, 2, 4].into_iter().flat_map(|op| sample_shapes().map(|shape| text(DType::F32, op, shape)));
    all.chain(rows).collect()
}
