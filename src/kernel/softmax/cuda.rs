//! CUDA launches of the kernels in `kernel/softmax/host`.

use crate::base::dtype::DType;
use crate::kernel::abi::Call;
use crate::kernel::cuda::dense::{Output, around, input};
use crate::kernel::cuda::rows::{Names, PLAIN, Rows, address, each, launch, sample_shapes};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "softmax/args.cuh";
    struct Args {
        /// Forward: the input. Backward: the gradient of the result, and the result.
        input: const T,
        result: const T,
        y: mut T,
        rows: usize,
        n: usize,
        inner: usize,
    }
}

pub fn softmax(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 0, ["ts_softmax", "ts_softmax_columns"], gpu)
}

pub fn log_softmax(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 1, ["ts_softmax", "ts_softmax_columns"], gpu)
}

pub fn softmax_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 0, ["ts_softmax_grad", "ts_softmax_columns_grad"], gpu)
}

pub fn log_softmax_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 1, ["ts_softmax_grad", "ts_softmax_columns_grad"], gpu)
}

fn text(dtype: DType, log: u32, shape: Names) -> &'static Source {
    source(
        "softmax/softmax.cuh",
        &[("T", Value::Type(dtype)), ("LOG", Value::Number(log)), shape[0], shape[1], shape[2]],
    )
}

fn run(call: &Call<'_>, log: u32, entries: [&str; 2], gpu: &mut dyn Gpu) -> Done {
    let y = &call.outputs[0];
    let (outer, n, inner) = around(&y.shape, attributes::size(call, 0));
    if outer * n * inner == 0 {
        return Ok(());
    }
    let a = input(&call.inputs[0], y.dtype, gpu)?;
    let b = call.inputs.get(1).map(|b| input(b, y.dtype, gpu)).transpose()?;
    let out = Output::new(y, y.dtype, gpu)?;
    let mut operands = vec![&a, &out.dense];
    operands.extend(&b);
    let rows = Rows::of(outer, n, operands.len() - 1, &operands);
    let args = Args { input: a.ptr, result: address(b.as_ref()), y: out.dense.ptr, rows: outer, n, inner };
    if inner == 1 {
        launch(text(y.dtype, log, rows.names()), entries[0], (rows.blocks, 1), rows.threads, args.words(), gpu)?;
    } else {
        each(text(y.dtype, log, PLAIN), entries[1], outer * inner, args.words(), gpu)?;
    }
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    dtypes.flat_map(|dtype| sample_shapes().map(|shape| text(dtype, (dtype == DType::F32) as u32, shape))).collect()
}
