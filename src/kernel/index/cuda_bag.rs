//! CUDA launch of `embedding_bag`: `kernels/index/bag.cuh`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::int;
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "index/bag_args.cuh";
    struct BagArgs {
        table: const T,
        numbers: const i64,
        y: mut T,
        fault: mut void,
        bags: usize,
        /// Numbers of a bag.
        n: usize,
        /// Vectors of a row.
        width: usize,
        rows: usize,
        divisor: f64,
    }
}

fn text(dtype: DType, vector: usize) -> &'static Source {
    source("index/bag.cuh", &[("T", Value::Type(dtype)), ("V", Value::Number(vector as u32))])
}

pub fn embedding_bag(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (table, numbers, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let dtype = table.dtype;
    let (table, numbers) = (input(table, dtype, gpu)?, input(numbers, DType::I64, gpu)?);
    let out = Output::new(y, dtype, gpu)?;
    let (bags, columns, bytes) = (y.shape[0], y.shape[1], dtype.size_bytes());
    let aligned =
        |vector: usize| [table.ptr, out.dense.ptr].iter().all(|&at| (at as usize).is_multiple_of(vector * bytes));
    let vector = [16 / bytes, 8 / bytes].into_iter().find(|&v| columns.is_multiple_of(v) && aligned(v)).unwrap_or(1);
    let args = BagArgs {
        table: table.ptr,
        numbers: numbers.ptr,
        y: out.dense.ptr,
        fault: gpu.fault_slot(0)?,
        bags,
        n: numbers.shape[1],
        width: columns / vector,
        rows: table.shape[0],
        divisor: int(call, 0) as f64,
    };
    each(text(dtype, vector), "ts_embedding_bag", bags * args.width, args.words(), gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let floats = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    floats.flat_map(|dtype| [1, 8 / dtype.size_bytes()].map(|vector| text(dtype, vector))).collect()
}
