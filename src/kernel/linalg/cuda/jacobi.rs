//! Launches beside `svdvals` and `eigvalsh` of `kernel/linalg/host/spectral`, for matrices of which a block is enough.
//! Vectors are for the host: their signs are its library's.

use super::panels::{copied_columns, matrices, sizes, text, transposed};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::Output;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::{Gpu, GpuError};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/jacobi.cuh";

/// Bound: columns, `WIDEST` in the text.
const MAX_COLUMNS: usize = 64;
/// Bound: rows that the one block may have to go over.
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
    let fault = gpu.fault_slot(0)? as u64;
    let words = [work.ptr as u64, out.dense.ptr as u64, fault, m as u64, n as u64, 1, m as u64, (m * n) as u64];
    // A warp for each pair, and a thread for each value.
    let threads = n.div_ceil(2).max(2) * 32;
    launch(text(TEXT, dtype), "ts_singular_values", (a.numel() / (m * n), 1), threads, &words, gpu)?;
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
    let fault = gpu.fault_slot(0)? as u64;
    let strides = [x.row, x.column, x.batch].map(|stride| stride as u64);
    let words = [x.ptr as u64, out.dense.ptr as u64, fault, n as u64, n as u64, strides[0], strides[1], strides[2]];
    launch(text(TEXT, dtype), "ts_eigenvalues", (y.numel() / n, 1), 256, &words, gpu)?;
    out.finish(gpu)
}
