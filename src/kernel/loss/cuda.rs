//! CUDA launches of the kernels in `kernel/loss/host`.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, fill, input, scratch, sum_first};
use crate::kernel::cuda::rows::{Names, PLAIN, Rows, address, each, launch, sample_shapes};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

/// `[N, C, d..]` as outer, classes, inner.
fn classes(shape: &[usize]) -> [usize; 3] {
    match shape {
        [] => [1, 1, 1],
        [classes] => [1, *classes, 1],
        [outer, classes, rest @ ..] => [*outer, *classes, rest.iter().product()],
    }
}

fn text(dtype: DType, shape: Names) -> &'static Source {
    source("loss/loss.cuh", &[("T", Value::Type(dtype)), shape[0], shape[1], shape[2]])
}

structs! {
    pub static ARGS = "loss/args.cuh";
    struct Args {
        dy: const T,
        x: const T,
        target: const i64,
        weight: const C,
        lse_in: const C,
        y: mut T,
        loss: mut C,
        lse: mut C,
        weights: mut C,
        fault: mut void,
        outer: usize,
        classes: usize,
        inner: usize,
        ignored: i64,
        smoothing: f64,
    }
}

fn sized([outer, classes, inner]: [usize; 3]) -> Args {
    Args { outer, classes, inner, ..Args::NONE }
}

fn weight(
    call: &Call<'_>,
    at: usize,
    has: usize,
    dtype: DType,
    gpu: &mut dyn Gpu,
) -> Result<Option<RawView>, GpuError> {
    attributes::flag(call, has).then(|| input(&call.inputs[at], dtype.compute(), gpu)).transpose()
}

pub fn cross_entropy(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let shape = classes(&call.inputs[0].shape);
    let [outer, n, inner] = shape;
    let x = input(&call.inputs[0], dtype, gpu)?;
    let target = input(&call.inputs[1], DType::I64, gpu)?;
    let weight = weight(call, 2, 2, dtype, gpu)?;
    let loss = Output::new(&call.outputs[0], dtype.compute(), gpu)?;
    let lse = Output::new(&call.outputs[2], dtype.compute(), gpu)?;
    let weights = scratch(dtype.compute(), &[outer * inner], gpu)?;
    let rows = Rows::of(outer, n, 1, &[&x]);
    let args = Args {
        x: x.ptr,
        target: target.ptr,
        weight: address(weight.as_ref()),
        loss: loss.dense.ptr,
        lse: lse.dense.ptr,
        weights: weights.ptr,
        fault: gpu.fault_slot(0)?,
        ignored: attributes::int(call, 0),
        smoothing: attributes::float(call, 1),
        ..sized(shape)
    };
    if inner == 1 && outer > 0 {
        launch(text(dtype, rows.names()), "ts_cross_entropy", (rows.blocks, 1), rows.threads, args.words(), gpu)?;
    } else {
        each(text(dtype, PLAIN), "ts_cross_entropy_columns", outer * inner, args.words(), gpu)?;
    }
    // The divisor of the mean.
    sum_first(&weights, &call.outputs[1], gpu)?;
    loss.finish(gpu)?;
    lse.finish(gpu)
}

pub fn cross_entropy_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[1].dtype;
    let shape = classes(&call.inputs[1].shape);
    let [outer, n, inner] = shape;
    if outer * n * inner == 0 {
        return Ok(());
    }
    let (g, x) = (input(&call.inputs[0], dtype, gpu)?, input(&call.inputs[1], dtype, gpu)?);
    let target = input(&call.inputs[2], DType::I64, gpu)?;
    let lse = input(&call.inputs[3], dtype.compute(), gpu)?;
    let weight = weight(call, 4, 2, dtype, gpu)?;
    let dx = Output::new(&call.outputs[0], dtype, gpu)?;
    let rows = Rows::of(outer, n, 1, &[&x, &dx.dense]);
    let args = Args {
        dy: g.ptr,
        x: x.ptr,
        target: target.ptr,
        weight: address(weight.as_ref()),
        lse_in: lse.ptr,
        y: dx.dense.ptr,
        ignored: attributes::int(call, 0),
        smoothing: attributes::float(call, 1),
        ..sized(shape)
    };
    if inner == 1 {
        launch(text(dtype, rows.names()), "ts_cross_entropy_grad", (rows.blocks, 1), rows.threads, args.words(), gpu)?;
    } else {
        each(text(dtype, PLAIN), "ts_cross_entropy_columns_grad", outer * inner, args.words(), gpu)?;
    }
    dx.finish(gpu)
}

pub fn nll(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let shape = classes(&call.inputs[0].shape);
    let count = shape[0] * shape[2];
    let x = input(&call.inputs[0], dtype, gpu)?;
    let target = input(&call.inputs[1], DType::I64, gpu)?;
    let weight = weight(call, 2, 1, dtype, gpu)?;
    let loss = Output::new(&call.outputs[0], dtype.compute(), gpu)?;
    let weights = scratch(dtype.compute(), &[count], gpu)?;
    let args = Args {
        x: x.ptr,
        target: target.ptr,
        weight: address(weight.as_ref()),
        loss: loss.dense.ptr,
        weights: weights.ptr,
        fault: gpu.fault_slot(0)?,
        ignored: attributes::int(call, 0),
        ..sized(shape)
    };
    each(text(dtype, PLAIN), "ts_nll", count, args.words(), gpu)?;
    sum_first(&weights, &call.outputs[1], gpu)?;
    loss.finish(gpu)
}

pub fn nll_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.outputs[0].dtype;
    let shape = classes(&call.outputs[0].shape);
    let g = input(&call.inputs[0], dtype, gpu)?;
    let target = input(&call.inputs[1], DType::I64, gpu)?;
    let weight = weight(call, 2, 1, dtype, gpu)?;
    let dx = Output::new(&call.outputs[0], dtype, gpu)?;
    fill(Scalar::Int(0), &dx.dense, gpu)?;
    let args = Args {
        dy: g.ptr,
        target: target.ptr,
        weight: address(weight.as_ref()),
        y: dx.dense.ptr,
        fault: gpu.fault_slot(0)?,
        ignored: attributes::int(call, 0),
        ..sized(shape)
    };
    each(text(dtype, PLAIN), "ts_nll_grad", shape[0] * shape[2], args.words(), gpu)?;
    dx.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    dtypes.flat_map(|dtype| sample_shapes().map(|shape| text(dtype, shape))).collect()
}
