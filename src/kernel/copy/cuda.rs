//! CUDA launches of the kernels in `kernel/copy/host`: rearrangements that are strided copies.

use crate::base::dtype::Scalar;
use crate::base::layout::Strides;
use crate::base::order;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::copy::host::arrange::diagonals;
use crate::kernel::cuda::dense::{Output, copy_view, fill as fill_view, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::walk::{dim, flag, int, ints, narrow, reversed, scalar, shifted};
use crate::kernel::index::cuda as index;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static TRIL_TRIU_ARGS = "copy/tril_triu_args.cuh";
    struct Args {
        x: const Cell,
        y: mut Cell,
        /// Vectors, of all matrices and of a row.
        n: usize,
        vectors: usize,
        rows: usize,
        diagonal: i64,
        /// What `ts_fast_div` divides with.
        divide_vectors: u64,
        divide_rows: u64,
    }
}

pub fn cat(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (y, d) = (&call.outputs[0], dim(call, 0));
    let mut start = 0;
    for x in call.inputs.iter().filter(|x| x.numel() > 0) {
        copy_view(x, &narrow(y, d, start, x.shape[d]), gpu)?;
        start += x.shape[d];
    }
    Ok(())
}

pub fn repeat(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y, repeats) = (&call.inputs[0], &call.outputs[0], ints(call, 0));
    if y.numel() == 0 {
        return Ok(());
    }
    let missing = y.shape.len() - x.shape.len();
    let blank = |view: &RawView| shifted(view, 0, Default::default(), Default::default());
    let (mut from, mut to) = (blank(x), blank(y));
    for (d, &times) in repeats.iter().enumerate() {
        let (size, stride) = if d < missing { (1, 0) } else { (x.shape[d - missing], x.strides[d - missing]) };
        from.shape.extend([times.max(0) as usize, size]);
        from.strides.extend([0, stride]);
        to.strides.extend([y.strides[d] * size as isize, y.strides[d]]);
    }
    to.shape = from.shape.clone();
    copy_view(&from, &to, gpu)
}

pub fn repeat_interleave(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y, d, count) = (&call.inputs[0], &call.outputs[0], dim(call, 0), dim(call, 1));
    let (mut from, mut to) = (x.clone(), y.clone());
    to.shape = x.shape.clone();
    to.strides[d] *= count as isize;
    for (view, stride) in [(&mut from, 0), (&mut to, y.strides[d])] {
        view.shape.insert(d + 1, count);
        view.strides.insert(d + 1, stride);
    }
    copy_view(&from, &to, gpu)
}

pub fn flip(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let from = ints(call, 0).iter().fold(call.inputs[0].clone(), |view, &d| reversed(&view, d as usize));
    copy_view(&from, &call.outputs[0], gpu)
}

pub fn roll(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y, shifts, dims) = (&call.inputs[0], &call.outputs[0], ints(call, 0), ints(call, 1));
    if y.numel() == 0 {
        return Ok(());
    }
    let mut pairs = vec![(x.clone(), y.clone())];
    for (&shift, &d) in shifts.iter().zip(dims) {
        let d = d as usize;
        let size = y.shape[d];
        let shift = shift.rem_euclid(size as i64) as usize;
        if shift > 0 {
            let head = size - shift;
            let halves = |(x, y): (RawView, RawView)| {
                [
                    (narrow(&x, d, 0, head), narrow(&y, d, shift, head)),
                    (narrow(&x, d, head, shift), narrow(&y, d, 0, shift)),
                ]
            };
            pairs = pairs.into_iter().flat_map(halves).collect();
        }
    }
    pairs.iter().try_for_each(|(from, to)| copy_view(from, to, gpu))
}

pub fn diag_embed(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let (offset, dim1, dim2) = (int(call, 0), dim(call, 1), dim(call, 2));
    fill_view(Scalar::Int(0), y, gpu)?;
    let start = if offset >= 0 { offset as isize * y.strides[dim2] } else { -offset as isize * y.strides[dim1] };
    let mut strides: Strides = (0..y.shape.len()).filter(|&d| d != dim1 && d != dim2).map(|d| y.strides[d]).collect();
    strides.push(y.strides[dim1] + y.strides[dim2]);
    copy_view(x, &shifted(y, start, x.shape.clone(), strides), gpu)
}

pub fn tril(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    triangle(call, 1, gpu)
}

pub fn triu(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    triangle(call, 0, gpu)
}

pub fn fill_diagonal(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if x.ptr != y.ptr {
        copy_view(x, y, gpu)?;
    }
    let value = scalar(call, 1).unwrap_or(Scalar::Int(0));
    diagonals(y, flag(call, 0)).iter().try_for_each(|diagonal| fill_view(value, diagonal, gpu))
}

fn triangle_text(bytes: usize, lower: u32, vector: usize) -> &'static Source {
    let [bytes, vector] = [bytes, vector].map(|n| Value::Number(n as u32));
    source("copy/tril_triu.cuh", &[("B", bytes), ("LOWER", Value::Number(lower)), ("V", vector)])
}

fn triangle(call: &Call<'_>, lower: u32, gpu: &mut dyn Gpu) -> Done {
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    let Some(&columns) = y.shape.last().filter(|_| y.numel() > 0) else { return Ok(()) };
    let rows = y.shape.len().checked_sub(2).map_or(1, |d| y.shape[d]);
    // A diagonal outside of the matrix gives the same as one at its edge.
    let diagonal = int(call, 0).clamp(i32::MIN as i64, i32::MAX as i64);
    let x = input(x, y.dtype, gpu)?;
    let out = Output::new(y, y.dtype, gpu)?;
    let bytes = y.dtype.size_bytes();
    let fits = |v: &usize| {
        columns.is_multiple_of(*v) && [x.ptr, out.dense.ptr].iter().all(|&p| (p as usize).is_multiple_of(v * bytes))
    };
    let vector = [16 / bytes.min(16), 1].into_iter().find(fits).unwrap_or(1);
    let (n, vectors) = (y.numel() / vector, columns / vector);
    let [divide_vectors, divide_rows] = [vectors, rows].map(|size| division(size as u64));
    let args = Args { x: x.ptr, y: out.dense.ptr, n, vectors, rows, diagonal, divide_vectors, divide_rows };
    each(triangle_text(bytes, lower, vector), "ts_tril_triu", n, args.words(), gpu)?;
    out.finish(gpu)
}

pub fn strided_add(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (g, y) = (&call.inputs[0], &call.outputs[0]);
    fill_view(Scalar::Int(0), y, gpu)?;
    let strides: Strides = ints(call, 0).iter().map(|&s| s as isize).collect();
    let start = int(call, 1) as isize;
    if g.numel() == 0 {
        return Ok(());
    }
    if non_overlapping(&g.shape, &strides) {
        return copy_view(g, &shifted(y, start, g.shape.clone(), strides), gpu);
    }
    index::add_strided(g, y, start, &strides, gpu)
}

/// Whether different indices address different elements: each stride exceeds the extent of all dims with smaller
/// strides.
fn non_overlapping(shape: &[usize], strides: &[isize]) -> bool {
    let mut order: Vec<usize> = (0..shape.len()).filter(|&d| shape[d] > 1).collect();
    order::by_key(&mut order, |&d| strides[d]);
    let mut extent = 0;
    order.into_iter().all(|d| {
        let passes = strides[d] > extent;
        extent += (shape[d] as isize - 1) * strides[d];
        passes
    })
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    [1, 2, 4, 8]
        .into_iter()
        .map(|bytes| triangle_text(bytes, (bytes > 2) as u32, if bytes == 4 { 1 } else { 16 / bytes }))
        .chain(super::cuda_transpose::texts())
        .chain(super::cuda_triangle::texts())
        .collect()
}
