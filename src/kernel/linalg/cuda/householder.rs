//! CUDA launches of QR decompositions: `kernel/linalg/host/householder` and `spectral::qr`.

use super::alone;
use super::panels::{self, Batch, NO_MATRIX, NONE, Operands, PANEL, columns, copied_columns, rows, sizes};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, scratch};
use crate::kernel::cuda::{Decomposition, Gpu, GpuError, Matrix};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/householder.cuh";

/// Matrices decomposed into Householder reflectors and R.
struct Reflectors {
    batch: Batch,
    /// LAPACK's form: R in the upper triangle, the reflectors below it.
    packed: RawView,
    /// The reflectors with their ones and zeros, `[m, k]`.
    v: Matrix,
    /// tau of each reflector, a column.
    tau: Matrix,
    /// V' V of the reflectors V of each panel, one below the other.
    vtv: Matrix,
    /// Scratch memory for products V' C of a panel's reflectors with other columns.
    vtc: Matrix,
    sizes: [usize; 2],
    /// The matrices as the library takes them, if it has made the reflectors.
    library: Option<super::solver::Batch>,
}

impl Reflectors {
    /// `wide`: number of columns to which the reflectors are applied at once, beside those of the matrix.
    fn of(a: &RawView, batch: Batch, columns_max: usize, gpu: &mut dyn Gpu) -> Result<Reflectors, GpuError> {
        let ([m, n], dtype) = (sizes(a), batch.dtype);
        let (k, columns_max) = (m.min(n), n.max(columns_max));
        let mut matrix_scratch = |m: usize, n: usize| scratch(dtype, &[batch.count, m, n], gpu);
        let (v, tau) = (columns(&matrix_scratch(k, m)?), matrix_scratch(k, 1)?);
        let v = Matrix { column: m as i64, ..v };
        let (vtv, vtc) =
            (rows(&matrix_scratch(k.next_multiple_of(PANEL), PANEL)?), rows(&matrix_scratch(PANEL, columns_max)?));
        let packed = copied_columns(a, dtype, gpu)?;
        let mut all = Reflectors { batch, packed, v, tau: rows(&tau), vtv, vtc, sizes: [m, n], library: None };
        let q = super::solver::Batch { dtype, complex: false, count: batch.count, m, n: k };
        if let Some(matrices) = alone::matrices(&batch, [m, n], Decomposition::Reflectors, gpu)?
            && gpu.decomposes(&q.call(Decomposition::Orthonormal { k }))?
        {
            alone::reflectors(&matrices, &all.packed, all.tau.ptr, gpu)?;
            all.library = Some(matrices);
            return Ok(all);
        }
        let work = columns(&all.packed);
        for first in (0..k).step_by(PANEL) {
            let width = PANEL.min(k - first);
            let operands = Operands { a: work, b: v, c: all.tau, m, n: width, first, ..NONE };
            let threads = ((m - first) * width).div_ceil(512).next_power_of_two().clamp(1, 32) * 32;
            batch.launch("ts_geqr2", [1, 1], threads, &operands, gpu)?;
            all.multiply_vtv(first, gpu)?;
            let next = first + width;
            all.apply_block_reflector(first, batch.place(work, first, next), n - next, false, gpu)?;
        }
        Ok(all)
    }

    /// The first columns of Q, as many as row-major `q` has.
    fn orthonormal(&self, q: &RawView, gpu: &mut dyn Gpu) -> Done {
        if let Some(matrices) = &self.library {
            return alone::orthonormal(matrices, &self.packed, self.tau.ptr, q, gpu);
        }
        let ([m, n], [_, k], to) = (self.sizes, sizes(q), rows(q));
        self.batch.each("ts_eye", m * k, &Operands { c: to, m, k, ..NONE }, gpu)?;
        // The columns before a panel are those of the identity, which are zero in its rows.
        for first in (0..m.min(n)).step_by(PANEL).rev() {
            self.apply_block_reflector(first, self.batch.place(to, first, first), k - first, true, gpu)?;
        }
        Ok(())
    }

    fn width(&self, first: usize) -> usize {
        PANEL.min(self.sizes[0].min(self.sizes[1]) - first)
    }

    /// `c = a' b`, packed of `rows` rows.
    fn inner(&self, [a, b, c]: [Matrix; 3], [rows, m, n]: [usize; 3], gpu: &mut dyn Gpu) -> Done {
        let operands = Operands { a, b, c, m, n, k: rows, ..NONE };
        self.batch.launch("ts_gemm_tn", [n.div_ceil(32), 1], 128, &operands, gpu)
    }

    fn multiply_vtv(&self, first: usize, gpu: &mut dyn Gpu) -> Done {
        let (v, width) = (self.batch.place(self.v, first, first), self.width(first));
        let to = self.batch.place(self.vtv, first, 0);
        self.inner([v, v, to], [self.sizes[0] - first, width, width], gpu)
    }

    /// Applies the block reflector of a panel, or with `transposed` its transpose, to `n` columns, from the panel's
    /// first row on.
    fn apply_block_reflector(
        &self,
        first: usize,
        columns: Matrix,
        n: usize,
        transposed: bool,
        gpu: &mut dyn Gpu,
    ) -> Done {
        if n == 0 {
            return Ok(());
        }
        let (width, height) = (self.width(first), self.sizes[0] - first);
        let v = self.batch.place(self.v, first, first);
        self.inner([v, columns, self.vtc], [height, width, n], gpu)?;
        let (a, c) = (self.batch.place(self.vtv, first, 0), self.batch.place(self.tau, first, 0));
        let mut operands = Operands { a, b: self.vtc, c, n: width, k: n, ..NONE };
        if transposed {
            let end = width - 1;
            let back = |x: Matrix, column: usize| Matrix { row: -x.row, ..self.batch.place(x, end, column) };
            let a = back(a, end);
            operands =
                Operands { a: Matrix { column: -a.column, ..a }, b: back(self.vtc, 0), c: back(c, 0), ..operands };
        }
        self.batch.columns("ts_apply_block_factor", n, &operands, gpu)?;
        self.batch.update([v, self.vtc, columns], [height, n, width], false, gpu)
    }
}

pub fn geqrf(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)?.filter(|_| a.numel() > 0) else { return Ok(()) };
    let all = Reflectors::of(a, batch, 0, gpu)?;
    copy_view(&all.packed, &call.outputs[0], gpu)?;
    let tau = &call.outputs[1];
    copy_view(&RawView::contiguous(all.tau.ptr, batch.dtype, &tau.shape), tau, gpu)
}

pub fn qr(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)? else { return Ok(()) };
    let [m, n] = sizes(a);
    let k = if attributes::flag(call, 0) { m } else { m.min(n) };
    let all = Reflectors::of(a, batch, k, gpu)?;
    if call.outputs[1].numel() > 0 {
        let r = Output::new(&call.outputs[1], batch.dtype, gpu)?;
        let c = Matrix { ptr: r.dense.ptr, ..NO_MATRIX };
        let operands = Operands { a: columns(&all.packed), c, m, n, k, flag: true, ..NONE };
        batch.each("ts_extract_triangle", k * n, &operands, gpu)?;
        r.finish(gpu)?;
    }
    if call.outputs[0].numel() > 0 {
        let q = Output::new(&call.outputs[0], batch.dtype, gpu)?;
        all.orthonormal(&q.dense, gpu)?;
        q.finish(gpu)?;
    }
    Ok(())
}

/// Q, square and row-major, of the QR decomposition of matrices `[count, m, n]` that have elements and no more columns than
/// rows: where those are orthonormal, the columns after them make a basis.
pub fn orthonormal_basis(a: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let [m, _] = sizes(a);
    let Some(batch) = Batch::of(TEXT, a)? else { return scratch(dtype, &[0, m, m], gpu) };
    let q = scratch(dtype, &[batch.count, m, m], gpu)?;
    Reflectors::of(a, batch, m, gpu)?.orthonormal(&q, gpu)?;
    Ok(q)
}

/// `c = a b` of matrices `[m, k]` and `[k, n]`, for devices without a library of products.
pub fn multiply([a, b, c]: [Matrix; 3], [m, n, k]: [usize; 3], count: usize, dtype: DType, gpu: &mut dyn Gpu) -> Done {
    let batch = Batch { source: panels::text(TEXT, dtype), dtype, count };
    let turned = Matrix { row: a.column, column: a.row, ..a };
    for first in (0..m).step_by(PANEL) {
        let (a, c) = (batch.place(turned, 0, first), batch.place(c, first, 0));
        let operands = Operands { a, b, c, m: PANEL.min(m - first), n, k, ..NONE };
        batch.launch("ts_gemm_tn", [n.div_ceil(32), 1], 128, &operands, gpu)?;
    }
    Ok(())
}
