//! Launches beside `kernel/linalg/host/householder` and its `spectral::qr`: QR decomposition.

use super::panels::{Batch, NONE, NOWHERE, Operands, PANEL, columns, copied_columns, rows, sizes};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, scratch};
use crate::kernel::cuda::{Gpu, GpuError, Matrix};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/householder.cuh";

/// Matrices as reflections and what they leave.
struct Reflections {
    batch: Batch,
    /// LAPACK's form: the upper triangle, and the vectors below it.
    both: RawView,
    /// The vectors with their ones and zeros, `[m, k]`.
    vectors: Matrix,
    /// One factor for each vector, a column.
    factors: Matrix,
    /// Products of the vectors of each panel among themselves, one below the other.
    among: Matrix,
    /// Room for the products of a panel's vectors with other columns.
    along: Matrix,
    sizes: [usize; 2],
}

impl Reflections {
    /// `wide`: how many columns the reflections are put to at once, besides the matrix's own.
    fn of(a: &RawView, batch: Batch, wide: usize, gpu: &mut dyn Gpu) -> Result<Reflections, GpuError> {
        let ([m, n], dtype) = (sizes(a), batch.dtype);
        let (k, wide) = (m.min(n), n.max(wide));
        let mut room = |m: usize, n: usize| scratch(dtype, &[batch.count, m, n], gpu);
        let (vectors, factors) = (columns(&room(k, m)?), room(k, 1)?);
        let vectors = Matrix { column: m as i64, ..vectors };
        let (among, along) = (rows(&room(k.next_multiple_of(PANEL), PANEL)?), rows(&room(PANEL, wide)?));
        let both = copied_columns(a, dtype, gpu)?;
        let all = Reflections { batch, both, vectors, factors: rows(&factors), among, along, sizes: [m, n] };
        let work = columns(&all.both);
        for first in (0..k).step_by(PANEL) {
            let width = PANEL.min(k - first);
            let operands = Operands { a: work, b: vectors, c: all.factors, m, n: width, first, ..NONE };
            let threads = ((m - first) * width).div_ceil(512).next_power_of_two().clamp(1, 32) * 32;
            batch.launch("ts_geqr2", [1, 1], threads, &operands, gpu)?;
            all.multiply_among(first, gpu)?;
            let next = first + width;
            all.put(first, batch.place(work, first, next), n - next, false, gpu)?;
        }
        Ok(all)
    }

    fn width(&self, first: usize) -> usize {
        PANEL.min(self.sizes[0].min(self.sizes[1]) - first)
    }

    /// `c = a' b`, both of `rows` rows.
    fn inner(&self, [a, b, c]: [Matrix; 3], [rows, m, n]: [usize; 3], gpu: &mut dyn Gpu) -> Done {
        let operands = Operands { a, b, c, m, n, k: rows, ..NONE };
        self.batch.launch("ts_gemm_tn", [n.div_ceil(32), 1], 128, &operands, gpu)
    }

    fn multiply_among(&self, first: usize, gpu: &mut dyn Gpu) -> Done {
        let (v, width) = (self.batch.place(self.vectors, first, first), self.width(first));
        let to = self.batch.place(self.among, first, 0);
        self.inner([v, v, to], [self.sizes[0] - first, width, width], gpu)
    }

    /// Puts the panel's reflections to `n` columns, which begin in its first row: the first of them first, or with `transposed`
    /// the last.
    fn put(&self, first: usize, columns: Matrix, n: usize, transposed: bool, gpu: &mut dyn Gpu) -> Done {
        if n == 0 {
            return Ok(());
        }
        let (width, height) = (self.width(first), self.sizes[0] - first);
        let v = self.batch.place(self.vectors, first, first);
        self.inner([v, columns, self.along], [height, width, n], gpu)?;
        let (a, c) = (self.batch.place(self.among, first, 0), self.batch.place(self.factors, first, 0));
        let mut operands = Operands { a, b: self.along, c, n: width, k: n, ..NONE };
        if transposed {
            let end = width - 1;
            let back = |x: Matrix, column: usize| Matrix { row: -x.row, ..self.batch.place(x, end, column) };
            let a = back(a, end);
            operands =
                Operands { a: Matrix { column: -a.column, ..a }, b: back(self.along, 0), c: back(c, 0), ..operands };
        }
        self.batch.columns("ts_apply_block_factor", n, &operands, gpu)?;
        self.batch.update([v, self.along, columns], [height, n, width], false, gpu)
    }
}

pub fn geqrf(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)?.filter(|_| a.numel() > 0) else { return Ok(()) };
    let all = Reflections::of(a, batch, 0, gpu)?;
    copy_view(&all.both, &call.outputs[0], gpu)?;
    let tau = &call.outputs[1];
    copy_view(&RawView::contiguous(all.factors.ptr, batch.dtype, &tau.shape), tau, gpu)
}

pub fn qr(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)? else { return Ok(()) };
    let [m, n] = sizes(a);
    let k = if attributes::flag(call, 0) { m } else { m.min(n) };
    let all = Reflections::of(a, batch, k, gpu)?;
    if call.outputs[1].numel() > 0 {
        let r = Output::new(&call.outputs[1], batch.dtype, gpu)?;
        let c = Matrix { ptr: r.dense.ptr, ..NOWHERE };
        let operands = Operands { a: columns(&all.both), c, m, n, k, flag: true, ..NONE };
        batch.each("ts_extract_triangle", k * n, &operands, gpu)?;
        r.finish(gpu)?;
    }
    if call.outputs[0].numel() > 0 {
        let q = Output::new(&call.outputs[0], batch.dtype, gpu)?;
        let to = rows(&q.dense);
        batch.each("ts_eye", m * k, &Operands { c: to, m, k, ..NONE }, gpu)?;
        // The columns before a panel are those of the identity, which have nothing in its rows.
        for first in (0..m.min(n)).step_by(PANEL).rev() {
            all.put(first, batch.place(to, first, first), k - first, true, gpu)?;
        }
        q.finish(gpu)?;
    }
    Ok(())
}
