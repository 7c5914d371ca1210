//! Blocked algorithms on batches of matrices, by panels of 32 columns (`kernels/linalg/panel.cuh`): arguments,
//! launches, layouts.
//!
//! A panel is factorized, the block beside it is solved, and the trailing matrix is updated by a product. The host does
//! not wait.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::dense::{copy_view, input, scratch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Matrix, Param, Source};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// A text for matrices of `f32` or `f64`.
pub fn text(header: &'static str, dtype: DType) -> &'static Source {
    source(header, &[("T", Value::Type(dtype))])
}

/// Columns of a panel, `TS_PANEL` in the text.
pub const PANEL: usize = 32;
/// Bound: rows and columns, by the tiles of at least 32 along a dim of the grid.
const MAX_SIZE: usize = 65_535 * 32;

pub const NO_MATRIX: Matrix = Matrix { ptr: std::ptr::null_mut(), row: 0, column: 0, batch: 0 };

structs! {
    pub static PANEL_ARGS = "linalg/panel_args.cuh";
    struct Args {
        /// Three matrices and their strides.
        a: mut T,
        b: mut T,
        c: mut T,
        a_row: i64,
        a_column: i64,
        a_batch: i64,
        b_row: i64,
        b_column: i64,
        b_batch: i64,
        c_row: i64,
        c_column: i64,
        c_batch: i64,
        /// Arrays with entries for each matrix: the permutation (row i is row rows[i] of the input), LAPACK's ipiv and
        /// info, the number of row exchanges.
        rows: mut i32,
        pivots: mut i32,
        info: mut i32,
        swaps: mut i32,
        fault: mut void,
        m: usize,
        n: usize,
        k: usize,
        panel_start: usize,
        flag: u64,
    }
}

/// The operands of a kernel of `linalg/panel.cuh`.
#[derive(Clone, Copy)]
pub struct Operands {
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub int_arrays: IntArrays,
    pub fault: *mut u8,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub first: usize,
    pub flag: bool,
}

pub const NONE: Operands = Operands {
    a: NO_MATRIX,
    b: NO_MATRIX,
    c: NO_MATRIX,
    int_arrays: IntArrays { rows: NO_MATRIX.ptr, pivots: NO_MATRIX.ptr, info: NO_MATRIX.ptr, swaps: NO_MATRIX.ptr },
    fault: NO_MATRIX.ptr,
    m: 0,
    n: 0,
    k: 0,
    first: 0,
    flag: false,
};

impl Operands {
    fn args(&self) -> Args {
        let (Operands { a, b, c, .. }, IntArrays { rows, pivots, info, swaps }) = (self, self.int_arrays);
        Args {
            a: a.ptr,
            b: b.ptr,
            c: c.ptr,
            a_row: a.row,
            a_column: a.column,
            a_batch: a.batch,
            b_row: b.row,
            b_column: b.column,
            b_batch: b.batch,
            c_row: c.row,
            c_column: c.column,
            c_batch: c.batch,
            rows,
            pivots,
            info,
            swaps,
            fault: self.fault,
            m: self.m,
            n: self.n,
            k: self.k,
            panel_start: self.first,
            flag: self.flag as u64,
        }
    }
}

/// Integer results for each matrix, in i32.
#[derive(Clone, Copy)]
pub struct IntArrays {
    pub rows: *mut u8,
    pub pivots: *mut u8,
    pub info: *mut u8,
    pub swaps: *mut u8,
}

/// A batch of matrices of one dtype, `f32` or `f64`.
#[derive(Clone, Copy)]
pub struct Batch {
    pub source: &'static Source,
    pub dtype: DType,
    pub count: usize,
}

impl Batch {
    /// The matrices of a view; `None` if there are no elements.
    pub fn of(header: &'static str, view: &RawView) -> Result<Option<Batch>, GpuError> {
        let lead = view.shape.len() - 2;
        let count: usize = view.shape[..lead].iter().product();
        if count > i32::MAX as usize || view.shape[lead..].iter().any(|&n| n > MAX_SIZE) {
            return Err(GpuError::Unsupported("matrices this large"));
        }
        let dtype = view.dtype.compute();
        Ok((count > 0).then_some(Batch { source: text(header, dtype), dtype, count }))
    }

    pub fn launch(
        &self,
        entry: &str,
        parts: [usize; 2],
        threads: usize,
        operands: &Operands,
        gpu: &mut dyn Gpu,
    ) -> Done {
        gpu.launch(&Launch {
            source: self.source,
            entry,
            grid: [self.count as u32, parts[0] as u32, parts[1] as u32],
            block: [threads as u32, 1, 1],
            shared_bytes: 0,
            args: &[Param::Words(operands.args().words())],
        })
    }

    /// A kernel over `n` elements of each matrix, with a grid-stride loop.
    pub fn each(&self, entry: &str, n: usize, operands: &Operands, gpu: &mut dyn Gpu) -> Done {
        self.launch(entry, [n.div_ceil(256).clamp(1, 1024), 1], 256, operands, gpu)
    }

    pub fn place(&self, matrix: Matrix, row: usize, column: usize) -> Matrix {
        let elements = row as i64 * matrix.row + column as i64 * matrix.column;
        Matrix { ptr: matrix.ptr.wrapping_offset(elements as isize * self.dtype.size_bytes() as isize), ..matrix }
    }

    /// Scratch memory for `each` integers of every matrix.
    pub fn int_scratch(&self, each: usize, gpu: &mut dyn Gpu) -> Result<*mut u8, GpuError> {
        Ok(scratch(DType::I32, &[self.count, each], gpu)?.ptr)
    }

    /// `c -= a b`: m by n, over `k`, at most `PANEL`. With `below`, only on and below the diagonal of c.
    pub fn update(&self, [a, b, c]: [Matrix; 3], [m, n, k]: [usize; 3], below: bool, gpu: &mut dyn Gpu) -> Done {
        if m == 0 || n == 0 {
            return Ok(());
        }
        // Adjacent threads write along rows of c; a column-major c is computed as the transposed product.
        let transposed = below || c.row.abs() == 1 && c.column.abs() != 1;
        let flip = |x: Matrix| Matrix { row: x.column, column: x.row, ..x };
        let ([a, b, c], [m, n]) = if transposed { ([flip(b), flip(a), flip(c)], [n, m]) } else { ([a, b, c], [m, n]) };
        let operands = Operands { a, b, c, m, n, k, flag: below, ..NONE };
        self.launch("ts_trailing_update", [m.div_ceil(64), n.div_ceil(64)], 256, &operands, gpu)
    }

    /// A kernel with a thread for each of `k` columns.
    pub fn columns(&self, entry: &str, k: usize, operands: &Operands, gpu: &mut dyn Gpu) -> Done {
        if k == 0 {
            return Ok(());
        }
        let threads = k.next_multiple_of(32).min(128);
        self.launch(entry, [k.div_ceil(threads), 1], threads, operands, gpu)
    }
}

/// The matrices of a view in `dtype`: without a copy if the batch has a single stride.
pub fn matrices(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<Matrix, GpuError> {
    let lead = view.shape.len() - 2;
    let mut outer = (0..lead).filter(|&d| view.shape[d] != 1).rev();
    let (mut stride, mut even) = (0, view.dtype == dtype);
    if let Some(d) = outer.next() {
        stride = view.strides[d] as i64;
        let mut expected = stride * view.shape[d] as i64;
        for d in outer {
            even &= view.strides[d] as i64 == expected;
            expected *= view.shape[d] as i64;
        }
    }
    if even {
        let [row, column] = [0, 1].map(|d| view.strides[lead + d] as i64);
        return Ok(Matrix { ptr: view.ptr, row, column, batch: stride });
    }
    Ok(rows(&input(view, dtype, gpu)?))
}

/// Matrices `[count, m, n]`.
pub fn strided(view: &RawView) -> Matrix {
    let [batch, row, column] = [0, 1, 2].map(|d| view.strides[d] as i64);
    Matrix { ptr: view.ptr, row, column, batch }
}

/// Contiguous row-major matrices.
pub fn rows(view: &RawView) -> Matrix {
    let [m, n] = sizes(view);
    Matrix { ptr: view.ptr, row: n as i64, column: 1, batch: (m * n) as i64 }
}

/// Contiguous column-major matrices.
pub fn columns(view: &RawView) -> Matrix {
    let [m, n] = sizes(view);
    Matrix { ptr: view.ptr, row: 1, column: m as i64, batch: (m * n) as i64 }
}

pub fn sizes(view: &RawView) -> [usize; 2] {
    let lead = view.shape.len() - 2;
    [view.shape[lead], view.shape[lead + 1]]
}

/// The view with its last two dims exchanged.
pub fn transposed(view: &RawView) -> RawView {
    let (mut view, last) = (view.clone(), view.shape.len() - 1);
    view.shape.swap(last - 1, last);
    view.strides.swap(last - 1, last);
    view
}

/// A column-major copy of the matrices of a view, as a view of its shape.
pub fn copied_columns(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let copy = transposed(&scratch(dtype, &transposed(view).shape, gpu)?);
    copy_view(view, &copy, gpu)?;
    Ok(copy)
}
