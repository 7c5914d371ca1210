//! CUDA launches of the kernels in `kernel/linalg/host/factor`: Cholesky, LU, triangular systems.

use super::alone;
use super::panels::{
    Batch, IntArrays, NO_MATRIX, NONE, Operands, PANEL, columns, copied_columns, matrices, rows, sizes, transposed,
};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, input};
use crate::kernel::cuda::{Decomposition, Gpu, GpuError, Matrix};
use crate::kernel::host::attributes;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/factor.cuh";

/// Right-hand sides of a block, `SIDES` in the text.
const SIDES: usize = 4;
/// Bound: rows of a triangle that a block reads alone; the time grows with their square.
const MAX_WHOLE: usize = 2048;

impl Batch {
    /// Solves `a x = b` in place for a lower triangle `a` of `n` rows and `k` right-hand sides.
    fn forward(&self, a: Matrix, b: Matrix, [n, k]: [usize; 2], unit: bool, gpu: &mut dyn Gpu) -> Done {
        let groups = k.div_ceil(SIDES);
        if (PANEL + 1..=MAX_WHOLE).contains(&n) && self.count * groups <= gpu.multiprocessors() as usize * 2 {
            // Few sides: a launch for each panel would cost more than what it computes.
            return self.launch("ts_trsm_whole", [groups, 1], 256, &Operands { a, b, n, k, flag: unit, ..NONE }, gpu);
        }
        for first in (0..n).step_by(PANEL) {
            let width = PANEL.min(n - first);
            let operands = Operands { a: self.place(a, first, first), b: self.place(b, first, 0), n: width, k, ..NONE };
            self.columns("ts_trsm", k, &Operands { flag: unit, ..operands }, gpu)?;
            let next = first + width;
            let parts = [self.place(a, next, first), operands.b, self.place(b, next, 0)];
            self.update(parts, [n - next, k, width], false, gpu)?;
        }
        Ok(())
    }

    /// The same for an upper triangle: a lower one, counted from its end.
    fn backward(&self, a: Matrix, b: Matrix, [n, k]: [usize; 2], unit: bool, gpu: &mut dyn Gpu) -> Done {
        let end = n.saturating_sub(1);
        let (a, b) = (self.place(a, end, end), self.place(b, end, 0));
        let a = Matrix { row: -a.row, column: -a.column, ..a };
        self.forward(a, Matrix { row: -b.row, ..b }, [n, k], unit, gpu)
    }
}

/// Where failures are reported: in a second output, or in the fault slot.
struct Outcome {
    info: Option<Output>,
    fault: *mut u8,
}

impl Outcome {
    fn of(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<Outcome, GpuError> {
        let info = call.outputs.get(1).map(|view| Output::new(view, DType::I32, gpu)).transpose()?;
        let fault = if info.is_none() { gpu.fault_slot(0)? } else { std::ptr::null_mut() };
        Ok(Outcome { info, fault })
    }

    fn info(&self, batch: &Batch, gpu: &mut dyn Gpu) -> Result<*mut u8, GpuError> {
        self.info.as_ref().map_or_else(|| batch.int_scratch(1, gpu), |info| Ok(info.dense.ptr))
    }

    fn finish(self, gpu: &mut dyn Gpu) -> Done {
        self.info.map_or(Ok(()), |info| info.finish(gpu))
    }
}

pub fn cholesky(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (a, out) = (&call.inputs[0], &call.outputs[0]);
    let [n, _] = sizes(a);
    let Some(batch) = Batch::of(TEXT, a)? else { return Ok(()) };
    let outcome = Outcome::of(call, gpu)?;
    let int_arrays = IntArrays { info: outcome.info(&batch, gpu)?, ..NONE.int_arrays };
    // The upper factor is the transposed lower one of the transposed matrix.
    let (a, out) = if attributes::flag(call, 0) { (transposed(a), transposed(out)) } else { (a.clone(), out.clone()) };
    let work = copied_columns(&a, batch.dtype, gpu)?;
    let w = columns(&work);
    let operands = Operands { a: w, n, int_arrays, fault: outcome.fault, ..NONE };
    if let Some(all) = alone::matrices(&batch, [n, n], Decomposition::Cholesky, gpu)? {
        alone::cholesky(&all, &batch, &work, &operands, gpu)?;
    } else {
        cholesky_by_panels(&batch, w, n, int_arrays, gpu)?;
    }
    batch.each("ts_cholesky_finish", n * n, &operands, gpu)?;
    copy_view(&work, &out, gpu)?;
    outcome.finish(gpu)
}

fn cholesky_by_panels(batch: &Batch, w: Matrix, n: usize, int_arrays: IntArrays, gpu: &mut dyn Gpu) -> Done {
    for first in (0..n.max(1)).step_by(PANEL) {
        let width = PANEL.min(n - first);
        let (head, next) = (batch.place(w, first, first), first + width);
        batch.launch("ts_potf2", [1, 1], 32, &Operands { a: head, n: width, first, int_arrays, ..NONE }, gpu)?;
        // The rows below: x head' = rows, which are the right-hand sides.
        let below = batch.place(w, next, first);
        let sides = Matrix { row: below.column, column: below.row, ..below };
        batch.columns("ts_trsm", n - next, &Operands { a: head, b: sides, n: width, k: n - next, ..NONE }, gpu)?;
        batch.update([below, sides, batch.place(w, next, next)], [n - next, n - next, width], true, gpu)?;
    }
    Ok(())
}

pub fn triangular_solve(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let [upper, left, unit] = [0, 1, 2].map(|i| attributes::flag(call, i));
    let (a, b, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let (Some(batch), Some(_)) = (Batch::of(TEXT, a)?, Batch::of(TEXT, b)?) else { return Ok(()) };
    let x = Output::new(y, batch.dtype, gpu)?;
    copy_view(b, &x.dense, gpu)?;
    // x a = b is the transposed system, which reads the other triangle.
    let (a, b) = if left { (a.clone(), x.dense.clone()) } else { (transposed(a), transposed(&x.dense)) };
    let a = matrices(&a, batch.dtype, gpu)?;
    let sides = if left { rows(&b) } else { columns(&b) };
    if upper == left {
        batch.backward(a, sides, sizes(&b), unit, gpu)?;
    } else {
        batch.forward(a, sides, sizes(&b), unit, gpu)?;
    }
    x.finish(gpu)
}

/// Matrices as P' L U: both triangles in one column-major matrix, with pivots and info.
struct Lu {
    batch: Batch,
    both: Matrix,
    sizes: [usize; 2],
    int_arrays: IntArrays,
    /// The matrices as the library takes them, and its pivots, if it has factorized them.
    library: Option<(super::solver::Batch, *mut u8)>,
}

impl Lu {
    /// `info`: address for the index of the first zero pivot.
    fn of(a: &RawView, batch: Batch, info: *mut u8, gpu: &mut dyn Gpu) -> Result<Lu, GpuError> {
        let [m, n] = sizes(a);
        let k = m.min(n);
        let (rows, pivots) = (batch.int_scratch(m, gpu)?, batch.int_scratch(k, gpu)?);
        let int_arrays = IntArrays { rows, pivots, info, swaps: batch.int_scratch(1, gpu)? };
        let work = copied_columns(a, batch.dtype, gpu)?;
        let w = columns(&work);
        let mut lu = Lu { batch, both: w, sizes: [m, n], int_arrays, library: None };
        if let Some(all) = alone::matrices(&batch, [m, n], Decomposition::Lu, gpu)? {
            let operands = Operands { a: w, m, n, k, int_arrays, ..NONE };
            lu.library = Some((all, alone::lu(&all, &batch, &work, &operands, gpu)?));
            return Ok(lu);
        }
        for first in (0..k.max(1)).step_by(PANEL) {
            let (width, next) = (PANEL.min(k - first), PANEL.min(k - first) + first);
            let operands = Operands { a: w, m, n: width, k, first, int_arrays, ..NONE };
            let threads = (m - first).next_power_of_two().clamp(32, 1024);
            batch.launch("ts_getf2", [1, 1], threads, &operands, gpu)?;
            let rest = Matrix { row: width as i64, ..NO_MATRIX };
            batch.columns("ts_laswp_trsm", n - width, &Operands { n, b: rest, ..operands }, gpu)?;
            let parts = [batch.place(w, next, first), batch.place(w, first, next), batch.place(w, next, next)];
            batch.update(parts, [m - next, n - next, width], false, gpu)?;
        }
        Ok(lu)
    }

    /// Solves for contiguous row-major right-hand sides (the identity if there are none) into `x`.
    fn solve(&self, b: Option<&RawView>, x: &RawView, gpu: &mut dyn Gpu) -> Done {
        if let Some((all, pivots)) = &self.library {
            return alone::lu_solve(all, &self.batch, [self.both.ptr, *pivots], b, x, gpu);
        }
        let [n, k] = sizes(x);
        let to = rows(x);
        let operands = Operands { b: b.map_or(NO_MATRIX, rows), c: to, n, k, int_arrays: self.int_arrays, ..NONE };
        self.batch.each("ts_permute_rows", n * k, &operands, gpu)?;
        self.batch.forward(self.both, to, [n, k], true, gpu)?;
        self.batch.backward(self.both, to, [n, k], false, gpu)
    }
}

pub fn solve(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    solved(call, call.inputs.get(1), gpu)
}

pub fn inv(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    solved(call, None, gpu)
}

fn solved(call: &Call<'_>, b: Option<&RawView>, gpu: &mut dyn Gpu) -> Done {
    let (a, y) = (&call.inputs[0], &call.outputs[0]);
    let (Some(batch), Some(_)) = (Batch::of(TEXT, a)?, Batch::of(TEXT, y)?) else { return Ok(()) };
    let outcome = Outcome::of(call, gpu)?;
    let info = outcome.info(&batch, gpu)?;
    let lu = Lu::of(a, batch, info, gpu)?;
    let x = Output::new(y, lu.batch.dtype, gpu)?;
    let b = b.map(|b| input(b, lu.batch.dtype, gpu)).transpose()?;
    lu.solve(b.as_ref(), &x.dense, gpu)?;
    let [n, k] = sizes(&x.dense);
    let operands = Operands { c: rows(&x.dense), n, k: n * k, int_arrays: lu.int_arrays, fault: outcome.fault, ..NONE };
    lu.batch.each("ts_solve_finish", n * k, &operands, gpu)?;
    x.finish(gpu)?;
    outcome.finish(gpu)
}

pub fn det(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    determinant(call, gpu)
}

pub fn slogdet(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    determinant(call, gpu)
}

/// Determinants, or with two outputs their signs and the logarithms of their absolute values.
fn determinant(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)? else { return Ok(()) };
    let (info, dtype) = (batch.int_scratch(1, gpu)?, batch.dtype);
    let lu = Lu::of(a, batch, info, gpu)?;
    let first = Output::new(&call.outputs[0], dtype, gpu)?;
    let second = call.outputs.get(1).map(|view| Output::new(view, dtype, gpu)).transpose()?;
    let at = |out: &Output| Matrix { ptr: out.dense.ptr, ..NO_MATRIX };
    let (b, c) = (at(&first), second.as_ref().map_or(NO_MATRIX, at));
    let operands = Operands { a: lu.both, b, c, m: lu.batch.count, n: lu.sizes[0], int_arrays: lu.int_arrays, ..NONE };
    let threads = Batch { count: lu.batch.count.div_ceil(64), ..lu.batch };
    threads.launch("ts_determinant", [1, 1], 64, &operands, gpu)?;
    first.finish(gpu)?;
    second.map_or(Ok(()), |second| second.finish(gpu))
}

pub fn lu(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let a = &call.inputs[0];
    let Some(batch) = Batch::of(TEXT, a)? else { return Ok(()) };
    let (info, dtype) = (batch.int_scratch(1, gpu)?, batch.dtype);
    let lu = Lu::of(a, batch, info, gpu)?;
    let [m, n] = lu.sizes;
    let k = m.min(n);
    let operands = Operands { a: lu.both, m, n, k, int_arrays: lu.int_arrays, ..NONE };
    for (i, view) in call.outputs.iter().enumerate().filter(|(_, view)| view.numel() > 0) {
        let out = Output::new(view, dtype, gpu)?;
        let to = Matrix { ptr: out.dense.ptr, ..NO_MATRIX };
        let operands = Operands { b: to, c: to, flag: i == 2, ..operands };
        let entry = if i == 0 { "ts_permutation_matrix" } else { "ts_extract_triangle" };
        let each = view.numel() / lu.batch.count;
        lu.batch.each(entry, each, &operands, gpu)?;
        out.finish(gpu)?;
    }
    Ok(())
}
