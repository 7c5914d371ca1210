//! Rearrangements that are copies between windows: the launches beside `kernel/cpu/copy`.

use super::dense::{copy_view, fill as fill_view};
use super::{Gpu, GpuError};
use crate::base::dtype::Scalar;
use crate::base::layout::Strides;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cpu::walk::{dim, int, ints, narrow, reversed, scalar, shifted};

type Done = Result<(), GpuError>;

pub fn copy(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    copy_view(&call.inputs[0], &call.outputs[0], gpu)
}

pub fn fill(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    fill_view(scalar(call, 0).unwrap_or(Scalar::Int(0)), &call.outputs[0], gpu)
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
            let kept = size - shift;
            let halves = |(x, y): (RawView, RawView)| {
                [
                    (narrow(&x, d, 0, kept), narrow(&y, d, shift, kept)),
                    (narrow(&x, d, kept, shift), narrow(&y, d, 0, shift)),
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
