//! CUDA launches of decompositions of complex matrices, `kernel/linalg/host/complex`, by the vendor's library. Matrices come
//! and go as rows of pairs: `[.., m, 2 n]` holds m rows of n complex numbers.

use super::eigh::eigenvalues;
use super::solver::{Batch, thin};
use super::svd::{batch as real_batch, flat, put};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{copy_view, scratch};
use crate::kernel::cuda::{DecomposeCall, Decomposition, Gpu, GpuError};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

/// The input as `[count, m, n, 2]`, and its batch; none if there are no elements.
fn input(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<Option<(Batch, RawView)>, GpuError> {
    let a = &call.inputs[0];
    let real = real_batch(a);
    if a.numel() == 0 {
        // Whatever the results are, the host makes them of nothing.
        return if call.outputs.iter().all(|view| view.numel() == 0) {
            Ok(None)
        } else {
            Err(GpuError::Unsupported("matrices without elements"))
        };
    }
    let batch = Batch { complex: true, n: real.n / 2, ..real };
    Ok(Some((batch, pairs(&flat(a, &real, gpu)?))))
}

/// The last dim, which holds pairs, as two.
fn pairs(view: &RawView) -> RawView {
    let mut view = view.clone();
    let last = view.shape.len() - 1;
    let step = view.strides[last];
    view.shape[last] /= 2;
    view.strides[last] *= 2;
    view.shape.push(2);
    view.strides.push(step);
    view
}

/// Writes complex `[count, r, c, 2]` or `[count, c, 2]` to an output of rows of pairs.
fn put_pairs(from: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Done {
    put(from, &pairs(to), gpu)
}

pub fn lu(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    batch.can(Decomposition::Lu, gpu)?;
    let Batch { m, n, count, .. } = batch;
    let k = m.min(n);
    let packed = batch.copied(&a, gpu)?;
    let pivots = gpu.scratch(count * k * 8)?;
    batch.factorize(DecomposeCall { values: pivots, ..batch.call(Decomposition::Lu) }, &packed, gpu)?;
    let [p, l, u] = [batch.scratch(m, m, gpu)?, batch.scratch(m, k, gpu)?, batch.scratch(k, n, gpu)?];
    batch.permutations(pivots, &p, gpu)?;
    batch.triangle(&packed, false, &l, gpu)?;
    batch.triangle(&packed, true, &u, gpu)?;
    [p, l, u].iter().zip(call.outputs).try_for_each(|(from, to)| put_pairs(from, to, gpu))
}

/// Reflectors in a column-major copy of `a`, and their factors.
fn reflectors(batch: &Batch, a: &RawView, gpu: &mut dyn Gpu) -> Result<[RawView; 2], GpuError> {
    let k = batch.m.min(batch.n);
    let packed = batch.copied(a, gpu)?;
    let tau = scratch(batch.dtype, &[batch.count, k, 2], gpu)?;
    batch.factorize(DecomposeCall { values: tau.ptr, ..batch.call(Decomposition::Reflectors) }, &packed, gpu)?;
    Ok([packed, tau])
}

pub fn geqrf(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    batch.can(Decomposition::Reflectors, gpu)?;
    let [packed, tau] = reflectors(&batch, &a, gpu)?;
    put_pairs(&packed, &call.outputs[0], gpu)?;
    put_pairs(&tau, &call.outputs[1], gpu)
}

pub fn qr(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    let k = if attributes::flag(call, 0) { batch.m } else { batch.m.min(batch.n) };
    let q = Batch { n: k, ..batch };
    batch.can(Decomposition::Reflectors, gpu)?;
    q.can(Decomposition::Orthonormal { k: batch.m.min(batch.n) }, gpu)?;
    let [packed, tau] = reflectors(&batch, &a, gpu)?;
    let r = batch.scratch(k, batch.n, gpu)?;
    batch.triangle(&packed, true, &r, gpu)?;
    put_pairs(&r, &call.outputs[1], gpu)?;
    put_pairs(&orthonormal(&q, &packed, &tau, gpu)?, &call.outputs[0], gpu)
}

/// The first columns of Q, those of `batch`.
fn orthonormal(batch: &Batch, packed: &RawView, tau: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let q = batch.columns(batch.m, batch.n, gpu)?;
    let k = tau.shape[1];
    let first = |view: &RawView| {
        let mut view = view.clone();
        view.shape[2] = k;
        view
    };
    copy_view(&first(packed), &first(&q), gpu)?;
    let task = Decomposition::Orthonormal { k };
    batch.factorize(DecomposeCall { values: tau.ptr, ..batch.call(task) }, &q, gpu)?;
    Ok(q)
}

pub fn eigh(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    let task = Decomposition::Eigh { vectors: true, upper: attributes::flag(call, 0) };
    batch.can(task, gpu)?;
    let vectors = batch.copied(&a, gpu)?;
    let values = eigenvalues(&batch, &vectors, task, gpu)?;
    put(&values, &call.outputs[0], gpu)?;
    put_pairs(&vectors, &call.outputs[1], gpu)
}

pub fn svd(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    let full = attributes::flag(call, 0);
    let Batch { m, n, .. } = batch;
    let tall = Batch { m: m.max(n), n: m.min(n), ..batch };
    tall.can(Decomposition::Svd { vectors: true }, gpu)?;
    if full && m != n {
        tall.can(Decomposition::Reflectors, gpu)?;
        Batch { n: tall.m, ..tall }.can(Decomposition::Orthonormal { k: tall.n }, gpu)?;
    }
    let found = thin(&batch, &a, gpu)?;
    put(&found.s, &call.outputs[1], gpu)?;
    let u = if full && m > n { completed(&tall, &found.u, gpu)? } else { found.u };
    put_pairs(&u, &call.outputs[0], gpu)?;
    // Rows of Vᴴ are orthonormal as the columns of its transpose are.
    let vh = if full && n > m { tall.turned(&completed(&tall, &tall.turned(&found.vh), gpu)?) } else { found.vh };
    put_pairs(&vh, &call.outputs[2], gpu)
}

/// Orthonormal columns with more after them, to a square matrix.
fn completed(batch: &Batch, columns: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let [packed, tau] = reflectors(batch, columns, gpu)?;
    let square = orthonormal(&Batch { n: batch.m, ..*batch }, &packed, &tau, gpu)?;
    let mut first = square.clone();
    first.shape[2] = batch.n;
    copy_view(columns, &first, gpu)?;
    Ok(square)
}

pub fn eig(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let Some((batch, a)) = input(call, gpu)? else { return Ok(()) };
    batch.can(Decomposition::Eig, gpu)?;
    let n = batch.n;
    let a = batch.copied(&a, gpu)?;
    let values = scratch(batch.dtype, &[batch.count, n, 2], gpu)?;
    let vectors = batch.columns(n, n, gpu)?;
    let places = DecomposeCall { values: values.ptr, right: vectors.ptr, ..batch.call(Decomposition::Eig) };
    batch.decompose(places, &a, [2 * n, 0, 2 * n * n], gpu)?;
    put_pairs(&values, &call.outputs[0], gpu)?;
    put_pairs(&vectors, &call.outputs[1], gpu)
}
