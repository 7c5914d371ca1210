//! Batches of matrices that are worked on in panels of 32 columns (`kernels/linalg/panel.cuh`): arguments, launches, layouts.
//!
//! A panel is decomposed, what stands beside it is worked out, and the rest is brought up to date by a product. Nothing is
//! waited for.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::dense::{copy_view, input, scratch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Matrix, Param, Source};

type Done = Result<(), GpuError>;

/// A text for matrices of `f32` or `f64`.
pub fn text(header: &'static str, dtype: DType) -> &'static Source {
    source(header, &[("T", Value::Type(dtype))])
}

/// Columns of a panel, `TS_PANEL` in the text.
pub const PANEL: usize = 32;
/// Bound: rows and columns, by the tiles of at least 32 along a dim of the grid.
const MAX_SIZE: usize = 65_535 * 32;

pub const NOWHERE: Matrix = Matrix { ptr: std::ptr::null_mut(), row: 0, column: 0, batch: 0 };

/// The argument words of `linalg/panel.cuh`.
#[derive(Clone, Copy)]
pub struct Words {
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub notes: Notes,
    pub fault: u64,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub first: usize,
    pub flag: bool,
}

pub const NONE: Words = Words {
    a: NOWHERE,
    b: NOWHERE,
    c: NOWHERE,
    notes: Notes { rows: 0, pivots: 0, info: 0, swaps: 0 },
    fault: 0,
    m: 0,
    n: 0,
    k: 0,
    first: 0,
    flag: false,
};

impl Words {
    fn list(&self) -> [u64; 22] {
        let mut words = [0; 22];
        for (i, matrix) in [&self.a, &self.b, &self.c].into_iter().enumerate() {
            words[i] = matrix.ptr as u64;
            let strides = [matrix.row, matrix.column, matrix.batch];
            words[3 + 3 * i..6 + 3 * i].copy_from_slice(&strides.map(|stride| stride as u64));
        }
        let Notes { rows, pivots, info, swaps } = self.notes;
        words[12..17].copy_from_slice(&[rows, pivots, info, swaps, self.fault]);
        let sizes = [self.m, self.n, self.k, self.first, self.flag as usize];
        words[17..].copy_from_slice(&sizes.map(|n| n as u64));
        words
    }
}

/// What is noted of each matrix, in i32: `ts_panel`.
#[derive(Clone, Copy)]
pub struct Notes {
    pub rows: u64,
    pub pivots: u64,
    pub info: u64,
    pub swaps: u64,
}

/// A batch of matrices of one dtype, `f32` or `f64`.
#[derive(Clone, Copy)]
pub struct Batch {
    pub source: &'static Source,
    pub dtype: DType,
    pub count: usize,
}

impl Batch {
    /// Of the matrices of a view; `None` where there is nothing to do.
    pub fn of(header: &'static str, view: &RawView) -> Result<Option<Batch>, GpuError> {
        let lead = view.shape.len() - 2;
        let count: usize = view.shape[..lead].iter().product();
        if count > i32::MAX as usize || view.shape[lead..].iter().any(|&n| n > MAX_SIZE) {
            return Err(GpuError::Unsupported("matrices this large"));
        }
        let dtype = view.dtype.compute();
        Ok((count > 0).then_some(Batch { source: text(header, dtype), dtype, count }))
    }

    pub fn launch(&self, entry: &str, parts: [usize; 2], threads: usize, words: &Words, gpu: &mut dyn Gpu) -> Done {
        gpu.launch(&Launch {
            source: self.source,
            entry,
            grid: [self.count as u32, parts[0] as u32, parts[1] as u32],
            block: [threads as u32, 1, 1],
            shared_bytes: 0,
            args: &[Param::Words(&words.list())],
        })
    }

    /// A kernel over `n` elements of each matrix, which walks on where the grid is smaller.
    pub fn each(&self, entry: &str, n: usize, words: &Words, gpu: &mut dyn Gpu) -> Done {
        self.launch(entry, [n.div_ceil(256).clamp(1, 1024), 1], 256, words, gpu)
    }

    pub fn place(&self, matrix: Matrix, row: usize, column: usize) -> Matrix {
        let elements = row as i64 * matrix.row + column as i64 * matrix.column;
        Matrix { ptr: matrix.ptr.wrapping_offset(elements as isize * self.dtype.size_bytes() as isize), ..matrix }
    }

    /// Memory for `each` numbers of every matrix.
    pub fn notes(&self, each: usize, gpu: &mut dyn Gpu) -> Result<u64, GpuError> {
        Ok(scratch(DType::I32, &[self.count, each], gpu)?.ptr as u64)
    }

    /// `c -= a b`: m by n, over `k`, at most `PANEL`. With `below`, only what is on and below the diagonal of c.
    pub fn update(&self, [a, b, c]: [Matrix; 3], [m, n, k]: [usize; 3], below: bool, gpu: &mut dyn Gpu) -> Done {
        if m == 0 || n == 0 {
            return Ok(());
        }
        // Neighboring threads write along c's rows; what lies column after column is the transposed product.
        let transposed = below || c.row.abs() == 1 && c.column.abs() != 1;
        let flip = |x: Matrix| Matrix { row: x.column, column: x.row, ..x };
        let ([a, b, c], [m, n]) = if transposed { ([flip(b), flip(a), flip(c)], [n, m]) } else { ([a, b, c], [m, n]) };
        let words = Words { a, b, c, m, n, k, flag: below, ..NONE };
        self.launch("ts_trailing_update", [m.div_ceil(64), n.div_ceil(64)], 256, &words, gpu)
    }

    /// A kernel with a thread for each of `k` columns.
    pub fn columns(&self, entry: &str, k: usize, words: &Words, gpu: &mut dyn Gpu) -> Done {
        if k == 0 {
            return Ok(());
        }
        let threads = k.next_multiple_of(32).min(128);
        self.launch(entry, [k.div_ceil(threads), 1], threads, words, gpu)
    }
}

/// The matrices of a view in `dtype`: as they lie, or copied where a batch has no one stride.
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

/// Row-major matrices without holes.
pub fn rows(view: &RawView) -> Matrix {
    let [m, n] = sizes(view);
    Matrix { ptr: view.ptr, row: n as i64, column: 1, batch: (m * n) as i64 }
}

/// Column-major matrices without holes.
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

/// A copy of the matrices of a view, column after column, as a view of its shape.
pub fn copied_columns(view: &RawView, dtype: DType, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let copy = transposed(&scratch(dtype, &transposed(view).shape, gpu)?);
    copy_view(view, &copy, gpu)?;
    Ok(copy)
}
