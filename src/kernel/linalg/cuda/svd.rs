//! CUDA launches of singular values with their vectors, and of what follows from them: `svd`, `svdvals`, `pinv` and `lstsq`
//! of `kernel/linalg/host/spectral`. Small matrices by Jacobi's method in one block, others by the vendor's library. Signs
//! of pairs of vectors are not those of the host.

use super::householder;
use super::jacobi;
use super::panels::{self, rows, sizes, transposed};
use super::solver::{Batch, Thin, thin};
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{copy_view, fill, scratch};
use crate::kernel::cuda::{DecomposeCall, Decomposition, Gpu, GpuError, MatmulCall};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

/// A batch as `[count, m, n]`, in the dtype that it is computed in.
pub(super) fn batch(view: &RawView) -> Batch {
    let [m, n] = sizes(view);
    let lead = view.shape.len() - 2;
    Batch { dtype: view.dtype.compute(), complex: false, count: view.shape[..lead].iter().product(), m, n }
}

/// The same batch with one leading dim; a copy where its strides do not allow that.
pub(super) fn flat(view: &RawView, batch: &Batch, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let matrices = panels::matrices(view, batch.dtype, gpu)?;
    let mut flat = RawView::contiguous(matrices.ptr, batch.dtype, &[batch.count, batch.m, batch.n]);
    flat.strides = [matrices.batch, matrices.row, matrices.column].into_iter().map(|stride| stride as isize).collect();
    Ok(flat)
}

/// Whether one block computes a matrix, and else whether the library can.
fn check(batch: &Batch, gpu: &mut dyn Gpu) -> Done {
    if batch.count > i32::MAX as usize {
        return Err(GpuError::Unsupported("batches this large"));
    }
    if jacobi::takes(batch.m, batch.n) {
        return Ok(());
    }
    let tall = Batch { m: batch.m.max(batch.n), n: batch.m.min(batch.n), ..*batch };
    tall.can(Decomposition::Svd { vectors: true }, gpu)
}

fn decompose(batch: &Batch, a: &RawView, gpu: &mut dyn Gpu) -> Result<Thin, GpuError> {
    if jacobi::takes(batch.m, batch.n) { jacobi::thin(batch, a, gpu) } else { thin(batch, a, gpu) }
}

/// Writes `[count, r, c]` to an output of any leading dims.
pub(super) fn put(from: &RawView, to: &RawView, gpu: &mut dyn Gpu) -> Done {
    let lead = to.shape.len() + 1 - from.shape.len();
    let mut from = from.clone();
    let (shape, mut strides) = (to.shape.clone(), from.strides.clone());
    // The batch is contiguous in its one stride.
    let mut step = strides.remove(0);
    for d in (0..lead).rev() {
        strides.insert(0, step);
        step *= to.shape[d] as isize;
    }
    (from.shape, from.strides) = (shape, strides);
    copy_view(&from, to, gpu)
}

pub fn svd(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, full) = (&call.inputs[0], attributes::flag(call, 0));
    let batch = batch(a);
    let Batch { m, n, count, .. } = batch;
    let [u, s, vh] = [&call.outputs[0], &call.outputs[1], &call.outputs[2]];
    if count == 0 {
        return Ok(());
    }
    if m.min(n) == 0 {
        return full_of_nothing([u, vh], gpu);
    }
    check(&batch, gpu)?;
    let a = flat(a, &batch, gpu)?;
    let found = decompose(&batch, &a, gpu)?;
    put(&found.s, s, gpu)?;
    if full && m > n {
        put(&completed(&batch, &found.u, gpu)?, u, gpu)?;
        return put(&found.vh, vh, gpu);
    }
    put(&found.u, u, gpu)?;
    if full && n > m {
        let v = completed(&batch, &transposed(&found.vh), gpu)?;
        return put(&transposed(&v), vh, gpu);
    }
    put(&found.vh, vh, gpu)
}

/// Vectors of matrices without elements: the identity, where there are any.
fn full_of_nothing(outputs: [&RawView; 2], gpu: &mut dyn Gpu) -> Done {
    for to in outputs {
        fill(Scalar::Int(0), to, gpu)?;
        let (last, mut diagonal) = (to.shape.len() - 1, to.clone());
        diagonal.shape.pop();
        let step = diagonal.strides.pop().unwrap_or(0);
        diagonal.strides[last - 1] += step;
        diagonal.shape[last - 1] = to.shape[last - 1].min(to.shape[last]);
        fill(Scalar::Int(1), &diagonal, gpu)?;
    }
    Ok(())
}

/// Orthonormal columns `[count, m, k]` with more after them, to a square matrix.
fn completed(batch: &Batch, columns: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let square = householder::orthonormal_basis(columns, batch.dtype, gpu)?;
    let mut first = square.clone();
    first.shape[2] = columns.shape[2];
    copy_view(columns, &first, gpu)?;
    Ok(square)
}

pub fn svdvals(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let batch = batch(a);
    if y.numel() == 0 {
        return Ok(());
    }
    if jacobi::takes(batch.m, batch.n) {
        return jacobi::svdvals(call, gpu);
    }
    let turned = batch.m < batch.n;
    let tall = Batch { m: batch.m.max(batch.n), n: batch.m.min(batch.n), ..batch };
    let task = Decomposition::Svd { vectors: false };
    tall.can(task, gpu)?;
    let a = flat(a, &batch, gpu)?;
    let a = tall.copied(&if turned { transposed(&a) } else { a }, gpu)?;
    let values = scratch(tall.dtype, &[tall.count, tall.n], gpu)?;
    // The library writes to places of vectors even where none are asked for.
    let [left, right] = [tall.columns(tall.m, tall.n, gpu)?, tall.scratch(tall.n, tall.n, gpu)?];
    let places = DecomposeCall { values: values.ptr, left: left.ptr, right: right.ptr, ..tall.call(task) };
    tall.decompose(places, &a, [tall.n, 0, 0], gpu)?;
    put(&values, y, gpu)
}

/// The relative size up to which singular values count as zero.
fn tolerance(call: &Call<'_>, batch: &Batch) -> f64 {
    let epsilon = if batch.dtype == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
    attributes::float_or_none(call, 0).unwrap_or(epsilon * batch.m.max(batch.n) as f64)
}

pub fn pinv(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let batch = batch(a);
    if y.numel() == 0 {
        return Ok(());
    }
    check(&batch, gpu)?;
    let a = flat(a, &batch, gpu)?;
    let Thin { u, s, vh } = decompose(&batch, &a, gpu)?;
    // V / S · Uᵀ, with the division on rows of Uᵀ.
    let scaled = row_major(&transposed(&u), gpu)?;
    batch.divide_by_values(&scaled, &s, tolerance(call, &batch), gpu)?;
    put(&product(&transposed(&vh), &scaled, gpu)?, y, gpu)
}

pub fn lstsq(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let [a, b] = [&call.inputs[0], &call.inputs[1]];
    let y = &call.outputs[0];
    let batch = batch(a);
    if y.numel() == 0 {
        return Ok(());
    }
    if batch.m == 0 {
        return fill(Scalar::Int(0), y, gpu);
    }
    check(&batch, gpu)?;
    let a = flat(a, &batch, gpu)?;
    let sides = Batch { n: sizes(b)[1], ..batch };
    let b = flat(b, &sides, gpu)?;
    let Thin { u, s, vh } = decompose(&batch, &a, gpu)?;
    let inner = product(&transposed(&u), &b, gpu)?;
    batch.divide_by_values(&inner, &s, tolerance(call, &batch), gpu)?;
    put(&product(&transposed(&vh), &inner, gpu)?, y, gpu)
}

fn row_major(view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let copy = scratch(view.dtype, &view.shape, gpu)?;
    copy_view(view, &copy, gpu)?;
    Ok(copy)
}

/// `[count, m, k]` times `[count, k, n]`, row-major.
fn product(a: &RawView, b: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let (count, [m, k], n) = (a.shape[0], sizes(a), b.shape[2]);
    let c = scratch(a.dtype, &[count, m, n], gpu)?;
    let [left, right, to] = [a, b, &c].map(panels::strided);
    let call = MatmulCall {
        m,
        n,
        k,
        batch: count,
        a: left,
        b: right,
        c: to,
        dtype: a.dtype,
        result: a.dtype,
        beta: 0.0,
        bias: std::ptr::null(),
    };
    if !gpu.matmul(&call)? {
        householder::multiply([left, right, rows(&c)], [m, n, k], count, a.dtype, gpu)?;
    }
    Ok(c)
}
