//! CUDA launches of `svdvals` and `eigvalsh` of `kernel/linalg/host/spectral`, for matrices that one block can compute.
//! Singular vectors and eigenvectors are computed on the host, so that their signs are the same.

use super::panels::{copied_columns, matrices, sizes, text, transposed};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::Output;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::{Gpu, GpuError, Matrix};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/jacobi.cuh";

structs! {
    pub static JACOBI_ARGS = "linalg/jacobi_args.cuh";
    struct Args {
        x: mut T,
        y: mut T,
        fault: mut void,
        m: usize,
        n: usize,
        row: i64,
        column: i64,
        batch: i64,
    }
}

/// Bound: columns, `WIDEST` in the text.
const MAX_COLUMNS: usize = 64;
/// Bound: rows that one block iterates over.
const MAX_ROWS: usize = 1 << 16;

pub fn svdvals(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let [m, n] = sizes(a);
    if m.min(n) > MAX_COLUMNS || m.max(n) > MAX_ROWS {
        return Err(GpuError::Unsupported("singular values of matrices this large"));
    }
    if y.numel() == 0 {
        return Ok(());
    }
    let dtype = a.dtype.compute();
    let work = copied_columns(&if m < n { transposed(a) } else { a.clone() }, dtype, gpu)?;
    let out = Output::new(y, dtype, gpu)?;
    let [m, n] = sizes(&work);
    let fault = gpu.fault_slot(0)?;
    let (column, batch) = (m as i64, (m * n) as i64);
    let args = Args { x: work.ptr, y: out.dense.ptr, fault, m, n, row: 1, column, batch };
    // A warp for each pair, and a thread for each value.
    let threads = n.div_ceil(2).max(2) * 32;
    launch(text(TEXT, dtype), "ts_singular_values", (a.numel() / (m * n), 1), threads, args.words(), gpu)?;
    out.finish(gpu)
}

pub fn eigvalsh(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let [n, _] = sizes(a);
    if n > MAX_COLUMNS {
        return Err(GpuError::Unsupported("eigenvalues of matrices this large"));
    }
    if y.numel() == 0 {
        return Ok(());
    }
    let dtype = a.dtype.compute();
    let a = if attributes::flag(call, 0) { transposed(a) } else { a.clone() };
    let x = matrices(&a, dtype, gpu)?;
    let out = Output::new(y, dtype, gpu)?;
    let fault = gpu.fault_slot(0)?;
    let Matrix { ptr, row, column, batch } = x;
    let args = Args { x: ptr, y: out.dense.ptr, fault, m: n, n, row, column, batch };
    launch(text(TEXT, dtype), "ts_eigenvalues", (y.numel() / n, 1), 256, args.words(), gpu)?;
    out.finish(gpu)
}
