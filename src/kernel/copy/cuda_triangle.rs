//! The CUDA launch of `kernel/copy/host/triangle`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::copy::host::triangle::Triangle;
use crate::kernel::cuda::dense::Output;
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::structs::structs;

structs! {
    pub static TRIANGLE_ARGS = "copy/triangle_args.cuh";
    struct Args {
        y: mut ts_i64,
        n: i64,
        /// The row that is counted from, its elements, and those of the longest.
        start: i64,
        first: i64,
        columns: i64,
        divide_columns: u64,
        /// Elements of rows before the first that is as long as the longest.
        slope: i64,
    }
}

fn text(is_reversed: bool) -> &'static Source {
    source("copy/triangle.cuh", &[("REVERSED", Value::Number(is_reversed as u32))])
}

pub fn triangle_indices(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let t = Triangle::of(call);
    let y = Output::new(&call.outputs[0], DType::I64, gpu)?;
    let args = Args {
        y: y.dense.ptr,
        n: t.n,
        start: t.start,
        first: t.first,
        columns: t.columns,
        divide_columns: division(t.columns as u64),
        slope: t.slope(),
    };
    each(text(t.is_reversed), "ts_triangle_indices", t.n as usize, args.words(), gpu)?;
    y.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    vec![text(false), text(true)]
}
