//! CUDA launches of the kernels in `kernel/search/host`, and of `repeat_interleave`'s counts (`kernel/select/host`).

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{flag, int, scalar, shifted};
use crate::kernel::index::cuda as index;
use crate::kernel::scan::cuda as scan;

type Done = Result<(), GpuError>;

/// Bound: blocks of a pass that looks at everything once; each leaves one result.
const BLOCKS: usize = 256;

fn text(dtype: DType) -> &'static Source {
    source("search/search.cuh", &[("T", Value::Type(dtype))])
}

/// The argument words of `search/search.cuh`.
#[derive(Default)]
struct Words {
    a: u64,
    b: u64,
    order: u64,
    y: u64,
    limits: u64,
    fault: u64,
    n: usize,
    per: usize,
    count: usize,
    flag: bool,
    range: [f64; 2],
}

impl Words {
    fn list(&self) -> [u64; 12] {
        let [low, high] = self.range.map(f64::to_bits);
        let counts = [self.n as u64, self.per as u64, self.count as u64, self.flag as u64];
        let [n, per, count, flag] = counts;
        [self.a, self.b, self.order, self.y, self.limits, self.fault, n, per, count, flag, low, high]
    }
}

pub fn searchsorted(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (sorted, values, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if y.numel() == 0 {
        return Ok(());
    }
    let dtype = sorted.dtype;
    let (a, b) = (input(sorted, dtype, gpu)?, input(values, dtype, gpu)?);
    let order = call.inputs.get(2).map(|sorter| input(sorter, DType::I64, gpu)).transpose()?;
    let out = Output::new(y, DType::I64, gpu)?;
    let count = values.numel();
    let per = if sorted.shape.len() > 1 { values.shape.last().copied().unwrap_or(1) } else { count };
    let words = Words {
        a: a.ptr as u64,
        b: b.ptr as u64,
        order: order.map_or(0, |order| order.ptr as u64),
        y: out.dense.ptr as u64,
        n: sorted.shape.last().copied().unwrap_or(1),
        per,
        count,
        flag: flag(call, 0),
        ..Words::default()
    };
    each(text(dtype), "ts_searchsorted", count, &words.list(), gpu)?;
    out.finish(gpu)
}

pub fn bincount_size(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(int(call, 0)), y, gpu)?;
    let x = input(x, x.dtype, gpu)?;
    let count = x.numel();
    if count == 0 {
        return Ok(());
    }
    let words = Words { a: x.ptr as u64, y: y.ptr as u64, count, ..Words::default() };
    launch(text(x.dtype), "ts_bincount_size", (count.div_ceil(256).min(BLOCKS), 1), 256, &words.list(), gpu)
}

pub fn bincount(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(0), y, gpu)?;
    if x.numel() == 0 {
        return Ok(());
    }
    match call.inputs.get(1) {
        Some(weights) => index::add_along(y, weights, x, 0, gpu),
        None => {
            let one = scratch(y.dtype, &[], gpu)?;
            fill(Scalar::Int(1), &one, gpu)?;
            let strides = x.shape.iter().map(|_| 0).collect();
            index::add_along(y, &RawView { shape: x.shape.clone(), strides, ..one }, x, 0, gpu)
        }
    }
}

pub fn histc(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let x = input(x, x.dtype, gpu)?;
    let (count, source) = (x.numel(), text(x.dtype));
    let counts = scratch(DType::I64, &y.shape, gpu)?;
    gpu.fill_zero(counts.ptr, y.numel() * 8)?;
    let range = [1, 2].map(|at| scalar(call, at).map_or(0.0, |limit| limit.to_f64()));
    let mut words = Words { a: x.ptr as u64, y: counts.ptr as u64, n: y.numel(), count, range, ..Words::default() };
    if count > 0 && y.numel() > 0 {
        if range[0] == range[1] {
            let blocks = count.div_ceil(256).min(BLOCKS);
            words.limits = gpu.scratch((2 + 2 * blocks) * 8)? as u64;
            launch(source, "ts_histc_minmax", (blocks, 1), 256, &words.list(), gpu)?;
            words.per = blocks;
            launch(source, "ts_histc_range", (1, 1), 256, &words.list(), gpu)?;
        }
        each(source, "ts_histc", count, &words.list(), gpu)?;
    }
    copy_view(&counts, y, gpu)
}

/// The running sums of counts, none of which is below 0; `fault` is told of one that is.
fn running(call: &Call<'_>, fault: u64, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let repeats = input(&call.inputs[0], call.inputs[0].dtype, gpu)?;
    let n = repeats.numel();
    let counts = scratch(DType::I64, &[n], gpu)?;
    let words = Words { a: repeats.ptr as u64, y: counts.ptr as u64, fault, count: n, ..Words::default() };
    each(text(repeats.dtype), "ts_repeat_counts", n, &words.list(), gpu)?;
    let sums = scratch(DType::I64, &[n], gpu)?;
    let (inputs, outputs) = ([counts], [sums]);
    let attrs = [Attr::Int(0), Attr::Bool(false)];
    scan::cumsum(&Call { inputs: &inputs, outputs: &outputs, attrs: &attrs, ..*call }, gpu)?;
    let [sums] = outputs;
    Ok(sums)
}

pub fn repeats_count(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let y = &call.outputs[0];
    let n = call.inputs[0].numel();
    if n == 0 {
        return fill(Scalar::Int(0), y, gpu);
    }
    let fault = gpu.fault_slot(0)? as u64;
    let sums = running(call, fault, gpu)?;
    copy_view(&shifted(&sums, n as isize - 1, y.shape.clone(), y.strides.clone()), y, gpu)
}

pub fn repeats_fill(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let y = &call.outputs[0];
    let (n, count) = (call.inputs[0].numel(), y.numel());
    if n == 0 || count == 0 {
        return Ok(());
    }
    let sums = running(call, 0, gpu)?;
    let out = Output::new(y, DType::I64, gpu)?;
    let words = Words { order: sums.ptr as u64, y: out.dense.ptr as u64, n, count, ..Words::default() };
    each(text(DType::I64), "ts_repeat_interleave", count, &words.list(), gpu)?;
    out.finish(gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::ALL.into_iter().map(text).collect()
}
