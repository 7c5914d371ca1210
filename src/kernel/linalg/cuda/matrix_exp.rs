//! The launch beside `kernel/linalg/host/spectral::matrix_exp`.

use super::panels::{sizes, text};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::{Gpu, GpuError};

pub const TEXT: &str = "linalg/matrix_exp.cuh";

/// Bound: rows of a matrix that one block is enough for. How often a matrix is squared is known on the device alone, so
/// that products of several blocks could not be queued.
const MAX_SIZE: usize = 128;

pub fn matrix_exp(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let [n, _] = sizes(x);
    if n > MAX_SIZE {
        return Err(GpuError::Unsupported("exponentials of matrices this large"));
    }
    if x.numel() == 0 {
        return Ok(());
    }
    let dtype = x.dtype.compute();
    let (x, out) = (input(x, dtype, gpu)?, Output::new(y, dtype, gpu)?);
    let [scaled, next] = [scratch(dtype, &x.shape, gpu)?, scratch(dtype, &x.shape, gpu)?];
    let words = [x.ptr as u64, out.dense.ptr as u64, scaled.ptr as u64, next.ptr as u64, n as u64];
    launch(text(TEXT, dtype), "ts_matrix_exp", (x.numel() / (n * n), 1), 512, &words, gpu)?;
    out.finish(gpu)
}
