//! The CUDA launch of cross products.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::staging::around;
use crate::kernel::host::walk::dim;
use crate::kernel::structs::structs;

structs! {
    pub static CROSS_ARGS = "linalg/cross_args.cuh";
    struct Args {
        x: const T,
        y: const T,
        out: mut T,
        /// Vectors, one for a thread; elements of a vector lie `step` apart.
        n: u64,
        step: usize,
        divide_step: u64,
    }
}

fn text(dtype: DType, is_wide: bool) -> &'static Source {
    source("linalg/cross.cuh", &[("T", Value::Type(dtype)), ("WIDE", Value::Number(is_wide as u32))])
}

pub fn cross(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let out = &call.outputs[0];
    let (outer, _, step) = around(&out.shape, dim(call, 0));
    if outer * step == 0 {
        return Ok(());
    }
    let x = input(&call.inputs[0], out.dtype, gpu)?;
    let y = input(&call.inputs[1], out.dtype, gpu)?;
    let result = Output::new(out, out.dtype, gpu)?;
    let n = outer * step;
    let args =
        Args { x: x.ptr, y: y.ptr, out: result.dense.ptr, n: n as u64, step, divide_step: division(step as u64) };
    each(text(out.dtype, 3 * n > i32::MAX as usize - 256), "ts_cross", n, args.words(), gpu)?;
    result.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let wide = [false, true].into_iter().cycle();
    DType::REAL
        .into_iter()
        .filter(|&dtype| dtype != DType::Bool)
        .zip(wide)
        .map(|(dtype, wide)| text(dtype, wide))
        .collect()
}
