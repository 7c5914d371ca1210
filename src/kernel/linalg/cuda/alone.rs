//! Large matrices one by one, by the vendor's library: what `factor.rs` and `householder.rs` compute by panels, a launch for each
//! panel of all matrices.

use super::panels::{Batch, NO_MATRIX, NONE, Operands, columns, sizes};
use super::solver::Batch as Matrices;
use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::dense::{copy_view, scratch};
use crate::kernel::cuda::{DecomposeCall, Decomposition, Gpu, GpuError, Matrix};

type Done = Result<(), GpuError>;

/// Rows and columns from which one matrix is faster in the library; several matrices are there one after another.
const ALONE: usize = 256;

/// Matrices of `m` rows and `n` columns as the library takes them, if it is to.
pub fn matrices(
    batch: &Batch,
    [m, n]: [usize; 2],
    task: Decomposition,
    gpu: &mut dyn Gpu,
) -> Result<Option<Matrices>, GpuError> {
    let all = Matrices { dtype: batch.dtype, complex: false, count: batch.count, m, n };
    if m.min(n) < ALONE * batch.count || !gpu.decomposes(&all.call(task))? {
        return Ok(None);
    }
    Ok(Some(all))
}

/// The lower factors in `work`, dense columns; `info`: the first leading minor without one.
pub fn cholesky(all: &Matrices, batch: &Batch, work: &RawView, operands: &Operands, gpu: &mut dyn Gpu) -> Done {
    let info = operands.int_arrays.info;
    gpu.decompose(&DecomposeCall { a: work.ptr, info, ..all.call(Decomposition::Cholesky) })?;
    batch.launch("ts_check_pivots", [1, 1], 256, operands, gpu)
}

/// Both triangles in `work`, dense columns, and the arrays of `operands`. Gives the library's pivots.
pub fn lu(
    all: &Matrices,
    batch: &Batch,
    work: &RawView,
    operands: &Operands,
    gpu: &mut dyn Gpu,
) -> Result<*mut u8, GpuError> {
    let k = all.m.min(all.n);
    let pivots = scratch(DType::I64, &[batch.count, k], gpu)?.ptr;
    let info = operands.int_arrays.info;
    gpu.decompose(&DecomposeCall { a: work.ptr, values: pivots, info, ..all.call(Decomposition::Lu) })?;
    let operands = Operands { b: Matrix { ptr: pivots, ..NO_MATRIX }, ..*operands };
    batch.launch("ts_take_pivots", [1, 1], 256, &operands, gpu)?;
    Ok(pivots)
}

/// Solves systems with those triangles and pivots into row-major `x`: for `b`, or for the identity.
pub fn lu_solve(
    all: &Matrices,
    batch: &Batch,
    [a, pivots]: [*mut u8; 2],
    b: Option<&RawView>,
    x: &RawView,
    gpu: &mut dyn Gpu,
) -> Done {
    let [n, k] = sizes(x);
    let sides = all.columns(n, k, gpu)?;
    match b {
        Some(b) => copy_view(&RawView::contiguous(b.ptr, b.dtype, &[batch.count, n, k]), &sides, gpu)?,
        None => batch.each("ts_identity", n * n, &Operands { c: columns(&sides), n, ..NONE }, gpu)?,
    }
    let task = Decomposition::LuSolve { sides: k };
    all.factorize(
        DecomposeCall { values: pivots, left: sides.ptr, ..all.call(task) },
        &RawView { ptr: a, ..sides.clone() },
        gpu,
    )?;
    copy_view(&sides, &RawView::contiguous(x.ptr, x.dtype, &[batch.count, n, k]), gpu)
}

/// Reflectors in `packed`, dense columns, and their factors in `tau`.
pub fn reflectors(all: &Matrices, packed: &RawView, tau: *mut u8, gpu: &mut dyn Gpu) -> Done {
    all.factorize(DecomposeCall { values: tau, ..all.call(Decomposition::Reflectors) }, packed, gpu)
}

/// The first `columns` of Q of `k` reflectors into row-major `q`.
pub fn orthonormal(all: &Matrices, packed: &RawView, tau: *mut u8, q: &RawView, gpu: &mut dyn Gpu) -> Done {
    let [m, wide] = sizes(q);
    let (k, made) = (all.m.min(all.n), Matrices { n: wide, ..*all });
    let to = made.columns(m, wide, gpu)?;
    let first = |ptr: *mut u8, columns: usize| RawView {
        ptr,
        dtype: all.dtype,
        shape: [all.count, m, k].as_slice().into(),
        strides: [(m * columns) as isize, 1, m as isize].into_iter().collect(),
    };
    copy_view(&first(packed.ptr, all.n), &first(to.ptr, wide), gpu)?;
    made.factorize(DecomposeCall { values: tau, ..made.call(Decomposition::Orthonormal { k }) }, &to, gpu)?;
    copy_view(&to, &RawView::contiguous(q.ptr, q.dtype, &[all.count, m, wide]), gpu)
}
