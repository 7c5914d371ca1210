//! CUDA launches of eigenvalues and eigenvectors of symmetric matrices: `eigh` and `eigvalsh` of
//! `kernel/linalg/host/spectral`, by the vendor's library, and eigenvalues of small matrices by Jacobi's method. Signs of
//! vectors are not those of the host.

use super::jacobi;
use super::panels::sizes;
use super::solver::Batch;
use super::svd::{batch, flat, put};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::scratch;
use crate::kernel::cuda::{DecomposeCall, Decomposition, Gpu, GpuError};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

pub fn eigvalsh(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    if jacobi::takes_symmetric(sizes(a)[0]) {
        return jacobi::eigvalsh(call, gpu);
    }
    let (values, _) = decompose(a, attributes::flag(call, 0), false, gpu)?;
    put(&values, y, gpu)
}

pub fn eigh(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let [w, v] = [&call.outputs[0], &call.outputs[1]];
    if v.numel() == 0 {
        return Ok(());
    }
    let (values, vectors) = decompose(&call.inputs[0], attributes::flag(call, 0), true, gpu)?;
    put(&values, w, gpu)?;
    put(&vectors, v, gpu)
}

/// Eigenvalues `[count, n]`, and eigenvectors where asked for.
fn decompose(a: &RawView, upper: bool, vectors: bool, gpu: &mut dyn Gpu) -> Result<(RawView, RawView), GpuError> {
    let batch = batch(a);
    let task = Decomposition::Eigh { vectors, upper };
    batch.can(task, gpu)?;
    let a = batch.copied(&flat(a, &batch, gpu)?, gpu)?;
    let values = eigenvalues(&batch, &a, task, gpu)?;
    Ok((values, a))
}

/// Eigenvalues `[count, n]` of Hermitian matrices, which eigenvectors replace where asked for.
pub fn eigenvalues(batch: &Batch, a: &RawView, task: Decomposition, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let values = scratch(batch.dtype, &[batch.count, batch.n], gpu)?;
    batch.decompose(DecomposeCall { values: values.ptr, ..batch.call(task) }, a, [batch.n, 0, 0], gpu)?;
    Ok(values)
}
