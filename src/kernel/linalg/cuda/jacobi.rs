//! CUDA launches of Jacobi's methods, for matrices that one block can compute: singular values and vectors, and eigenvalues of
//! symmetric matrices.

use super::panels::{copied_columns, matrices, sizes, text, transposed};
use super::solver::{Batch, Thin};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, scratch};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::{Gpu, GpuError, Matrix};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;
use std::ptr::null_mut;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/jacobi.cuh";

structs! {
    pub static JACOBI_ARGS = "linalg/jacobi_args.cuh";
    struct Args {
        x: mut T,
        y: mut T,
        /// Vectors, or null: scratch memory, and where they go.
        v: mut T,
        left: mut T,
        right: mut T,
        fault: mut void,
        m: usize,
        n: usize,
        row: i64,
        column: i64,
        batch: i64,
    }
}

const NONE: Args = Args {
    x: null_mut(),
    y: null_mut(),
    v: null_mut(),
    left: null_mut(),
    right: null_mut(),
    fault: null_mut(),
    m: 0,
    n: 0,
    row: 0,
    column: 0,
    batch: 0,
};

/// Bound: columns, `MAX_COLUMNS` in the text.
const MAX_COLUMNS: usize = 64;
/// Bound: rows that one block iterates over.
const MAX_ROWS: usize = 1 << 16;

/// Whether one block can compute the singular values of a matrix.
pub fn takes(m: usize, n: usize) -> bool {
    m.min(n) <= MAX_COLUMNS && m.max(n) <= MAX_ROWS
}

/// Whether one block can compute the eigenvalues of a symmetric matrix.
pub fn takes_symmetric(n: usize) -> bool {
    n <= MAX_COLUMNS
}

/// Of matrices that this `takes`, with elements.
pub fn svdvals(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let [m, n] = sizes(a);
    let dtype = a.dtype.compute();
    let work = copied_columns(&if m < n { transposed(a) } else { a.clone() }, dtype, gpu)?;
    let out = Output::new(y, dtype, gpu)?;
    values(&work, Args { y: out.dense.ptr, ..NONE }, gpu)?;
    out.finish(gpu)
}

/// Singular values of column-major `work`, which is overwritten.
fn values(work: &RawView, args: Args, gpu: &mut dyn Gpu) -> Done {
    let [m, n] = sizes(work);
    let fault = gpu.fault_slot(0)?;
    let (column, batch) = (m as i64, (m * n) as i64);
    let args = Args { x: work.ptr, fault, m, n, row: 1, column, batch, ..args };
    // A warp for each pair, and a thread for each value.
    let threads = n.div_ceil(2).max(2) * 32;
    let count = work.numel() / (m * n);
    launch(text(TEXT, work.dtype), "ts_singular_values", (count, 1), threads, args.words(), gpu)
}

/// The thin singular value decomposition of `a`, `[count, m, n]`.
pub fn thin(batch: &Batch, a: &RawView, gpu: &mut dyn Gpu) -> Result<Thin, GpuError> {
    if batch.m < batch.n {
        let turned = Batch { m: batch.n, n: batch.m, ..*batch };
        let Thin { u, s, vh } = thin(&turned, &transposed(a), gpu)?;
        return Ok(Thin { u: transposed(&vh), s, vh: transposed(&u) });
    }
    let Batch { m, n, count, dtype, .. } = *batch;
    let work = copied_columns(a, dtype, gpu)?;
    let s = scratch(dtype, &[count, n], gpu)?;
    let (v, right, u) = (batch.scratch(n, n, gpu)?, batch.scratch(n, n, gpu)?, batch.columns(m, n, gpu)?);
    values(&work, Args { y: s.ptr, v: v.ptr, left: u.ptr, right: right.ptr, ..NONE }, gpu)?;
    Ok(Thin { u, s, vh: right })
}

/// Of matrices that this takes (`takes_symmetric`), with elements.
pub fn eigvalsh(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let [n, _] = sizes(a);
    let dtype = a.dtype.compute();
    let a = if attributes::flag(call, 0) { transposed(a) } else { a.clone() };
    let x = matrices(&a, dtype, gpu)?;
    let out = Output::new(y, dtype, gpu)?;
    let fault = gpu.fault_slot(0)?;
    let Matrix { ptr, row, column, batch } = x;
    let args = Args { x: ptr, y: out.dense.ptr, fault, m: n, n, row, column, batch, ..NONE };
    launch(text(TEXT, dtype), "ts_eigenvalues", (y.numel() / n, 1), 256, args.words(), gpu)?;
    out.finish(gpu)
}
