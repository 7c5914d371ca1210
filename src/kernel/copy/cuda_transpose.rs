//! Transposes batches of matrices (`kernels/copy/transpose.cuh`) at the speed of a memory copy.

use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::rows::{launch, word};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};

/// `outer` matrices `[rows, cols]`, row-major, one after the other.
pub struct Matrices {
    pub outer: usize,
    pub rows: usize,
    pub cols: usize,
}

fn text(dtype: DType) -> &'static Source {
    source("copy/transpose.cuh", &[("T", Value::Type(dtype))])
}

/// Elements that are moved together; 0 where there is no kernel for the dtype.
fn together(dtype: DType) -> usize {
    match dtype {
        DType::F32 => 1,
        DType::F16 | DType::BF16 => 2,
        _ => 0,
    }
}

/// Writes each matrix of `x` turned round to `y`, and adds `bias` `[cols]`, dense, to its columns on the way. The views are
/// of one dtype and without holes; only their addresses count. False, with nothing launched, where it cannot.
pub fn transpose(
    x: &RawView,
    bias: Option<&RawView>,
    y: &RawView,
    Matrices { outer, rows, cols }: Matrices,
    gpu: &mut dyn Gpu,
) -> Result<bool, GpuError> {
    let v = together(x.dtype);
    let aligned = [x, y].iter().all(|view| (view.ptr as usize).is_multiple_of(4));
    if v == 0 || !aligned || !rows.is_multiple_of(v) || !cols.is_multiple_of(v) {
        return Ok(false);
    }
    let (down, across) = (rows.div_ceil(64), cols.div_ceil(32 * v));
    let blocks = outer * down * across;
    if blocks >= 1 << 31 {
        return Ok(false);
    }
    let [rows, cols, down, across] = [rows, cols, down, across].map(|n| n as u64);
    let words = [x.ptr as u64, word(bias), y.ptr as u64, rows, cols, down, across];
    launch(text(x.dtype), "ts_transpose", (blocks, 1), 256, &words, gpu)?;
    Ok(true)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::ALL.into_iter().filter(|&dtype| together(dtype) > 0).map(text).collect()
}
