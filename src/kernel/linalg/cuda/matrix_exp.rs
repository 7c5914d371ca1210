//! CUDA launch of `kernel/linalg/host/spectral::matrix_exp`.

use super::panels::{sizes, text};
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::{Gpu, GpuError};
use crate::kernel::structs::structs;

pub const TEXT: &str = "linalg/matrix_exp.cuh";

structs! {
    pub static MATRIX_EXP_ARGS = "linalg/matrix_exp_args.cuh";
    struct Args {
        x: const T,
        /// The result, and scratch memory for two more matrices each.
        y: mut T,
        scaled: mut T,
        next: mut T,
        n: usize,
    }
}

/// Bound: rows of a matrix, since one block computes it. The number of squarings is known only on the device, so that
/// products of several blocks could not be queued.
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
    let args = Args { x: x.ptr, y: out.dense.ptr, scaled: scaled.ptr, next: next.ptr, n };
    launch(text(TEXT, dtype), "ts_matrix_exp", (x.numel() / (n * n), 1), 512, args.words(), gpu)?;
    out.finish(gpu)
}
