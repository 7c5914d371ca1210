//! The CUDA launch of `kernel/resample/windows`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::attributes;
use crate::kernel::host::staging::around;
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "resample/windows_args.cuh";
    struct Args {
        x: const T,
        first: const i64,
        weights: const T,
        y: mut T,
        /// Elements of the output, one for a thread.
        n: u64,
        size: usize,
        out: usize,
        inner: usize,
        taps: usize,
        divide_out: u64,
        divide_inner: u64,
    }
}

fn text(dtype: DType, is_wide: bool) -> &'static Source {
    source("resample/windows.cuh", &[("T", Value::Type(dtype)), ("WIDE", Value::Number(is_wide as u32))])
}

pub fn window_sums(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let dim = attributes::size(call, 0);
    let (_, size, inner) = around(&x.shape, dim);
    let is_wide = x.numel().max(y.numel()) > i32::MAX as usize - 256;
    let dtype = x.dtype;
    let x = input(x, dtype, gpu)?;
    let first = input(&call.inputs[1], DType::I64, gpu)?;
    let weights = input(&call.inputs[2], dtype, gpu)?;
    let to = Output::new(y, dtype, gpu)?;
    let args = Args {
        x: x.ptr,
        first: first.ptr,
        weights: weights.ptr,
        y: to.dense.ptr,
        n: y.numel() as u64,
        size,
        out: y.shape[dim],
        inner,
        taps: weights.shape[0],
        divide_out: division(y.shape[dim] as u64),
        divide_inner: division(inner as u64),
    };
    each(text(dtype, is_wide), "ts_window_sums", y.numel(), args.words(), gpu)?;
    to.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let wide = [false, true].into_iter().cycle();
    [DType::F32, DType::F64, DType::F16, DType::BF16]
        .into_iter()
        .zip(wide)
        .map(|(dtype, wide)| text(dtype, wide))
        .collect()
}
