//! Launches beside `kernel/cpu/sort`: stable sorts along a dim, and the best k by one. Of equal elements the earlier comes
//! first, also in `topk`, where PyTorch makes no promise.

use super::dense::{Output, input};
use super::family::{Value, source};
use super::rows::{each, launch, word};
use super::{Gpu, GpuError, Source};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cpu::walk::{dim, flag};

type Done = Result<(), GpuError>;

const TILE: usize = 1024;

fn text(dtype: DType) -> &'static Source {
    let wide = dtype.size_bytes() == 8;
    source("sort.cuh", &[("T", Value::Type(dtype)), ("WIDE", Value::Number(wide as u32))])
}

/// The view with one dim moved to the end; a 0-dimensional one as a row of one.
fn moved(view: &RawView, d: usize) -> RawView {
    let mut view = view.clone();
    if view.shape.is_empty() {
        view.shape.push(1);
        view.strides.push(1);
        return view;
    }
    let (size, stride) = (view.shape.remove(d), view.strides.remove(d));
    view.shape.push(size);
    view.strides.push(stride);
    view
}

/// Sorts along `d` and keeps the first of each row that the outputs have room for.
fn run(
    x: &RawView,
    values: Option<&RawView>,
    at: Option<&RawView>,
    d: usize,
    descending: bool,
    gpu: &mut dyn Gpu,
) -> Done {
    let dtype = x.dtype;
    let x = input(&moved(x, d), dtype, gpu)?;
    let Some((&n, lead)) = x.shape.split_last() else { return Ok(()) };
    let rows: usize = lead.iter().product();
    if n >= u32::MAX as usize {
        return Err(GpuError::Unsupported("a sort of rows this long"));
    }
    let mut output =
        |view: Option<&RawView>, dtype: DType| view.map(|view| Output::new(&moved(view, d), dtype, gpu)).transpose();
    let (values, at) = (output(values, dtype)?, output(at, DType::I64)?);
    let kept =
        [&values, &at].into_iter().flatten().next().map_or(0, |out| out.dense.shape.last().copied().unwrap_or(1));
    if rows * n == 0 || kept == 0 {
        return Ok(());
    }
    let entry = if dtype.size_bytes() == 8 { 16 } else { 8 };
    let mut from = gpu.scratch(rows * n * entry)? as u64;
    let mut to = if n > TILE { gpu.scratch(rows * n * entry)? as u64 } else { from };
    let tiles = n.div_ceil(TILE);
    let place = |out: &Option<Output>| word(out.as_ref().map(|out| &out.dense));
    let mut words = [x.ptr as u64, place(&values), place(&at), 0, from, 0, 0, 0, 0, 0, 0];
    let counts = [rows, n, TILE, kept, descending as usize, tiles].map(|n| n as u64);
    words[5..].copy_from_slice(&counts);
    let source = text(dtype);
    launch(source, "ts_sort_tiles", (rows * tiles, 1), 512, &words, gpu)?;
    let mut length = TILE;
    while length < n {
        (words[3], words[4], words[7]) = (from, to, length as u64);
        each(source, "ts_sort_merge", rows * n, &words, gpu)?;
        std::mem::swap(&mut from, &mut to);
        length *= 2;
    }
    words[3] = from;
    each(source, "ts_sort_results", rows * kept, &words, gpu)?;
    [values, at].into_iter().flatten().try_for_each(|out| out.finish(gpu))
}

pub fn sort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 0), flag(call, 1), gpu)
}

pub fn argsort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], None, call.outputs.first(), dim(call, 0), flag(call, 1), gpu)
}

pub fn sort_values(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], call.outputs.first(), None, dim(call, 0), flag(call, 1), gpu)
}

pub fn topk(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 1), flag(call, 2), gpu)
}

/// Texts for the compile test.
pub fn sources() -> impl Iterator<Item = &'static Source> {
    DType::ALL.into_iter().map(text)
}
