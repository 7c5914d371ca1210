//! Transposes batches of matrices (`kernels/copy/transpose.cuh`) at the speed of a memory copy.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::rows::{address, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

structs! {
    pub static TRANSPOSE_ARGS = "copy/transpose_args.cuh";
    struct Args {
        x: const T,
        bias: const T,
        y: mut T,
        rows: usize,
        cols: usize,
        row_tiles: usize,
        column_tiles: usize,
    }
}

/// `outer` matrices `[rows, cols]`, row-major, one after the other.
pub struct Matrices {
    pub outer: usize,
    pub rows: usize,
    pub cols: usize,
}

fn text(dtype: DType) -> &'static Source {
    source("copy/transpose.cuh", &[("T", Value::Type(dtype))])
}

/// Elements that are loaded as one vector; 0 if there is no kernel for the dtype.
fn vector_width(dtype: DType) -> usize {
    match dtype {
        DType::F32 => 1,
        DType::F16 | DType::BF16 => 2,
        _ => 0,
    }
}

/// Writes the transpose of each matrix of `x` to `y`, after adding the contiguous `bias` `[cols]` to its columns. The
/// views have one dtype and are contiguous; only their addresses are read. Returns false and launches nothing if there
/// is no kernel for them.
pub fn transpose(
    x: &RawView,
    bias: Option<&RawView>,
    y: &RawView,
    Matrices { outer, rows, cols }: Matrices,
    gpu: &mut dyn Gpu,
) -> Result<bool, GpuError> {
    let v = vector_width(x.dtype);
    let aligned = [x, y].iter().all(|view| (view.ptr as usize).is_multiple_of(4));
    if v == 0 || !aligned || !rows.is_multiple_of(v) || !cols.is_multiple_of(v) {
        return Ok(false);
    }
    let (row_tiles, column_tiles) = (rows.div_ceil(64), cols.div_ceil(32 * v));
    let blocks = outer * row_tiles * column_tiles;
    if blocks >= 1 << 31 {
        return Ok(false);
    }
    let args = Args { x: x.ptr, bias: address(bias), y: y.ptr, rows, cols, row_tiles, column_tiles };
    launch(text(x.dtype), "ts_transpose", (blocks, 1), 256, args.words(), gpu)?;
    Ok(true)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().filter(|&dtype| vector_width(dtype) > 0).map(text).collect()
}
