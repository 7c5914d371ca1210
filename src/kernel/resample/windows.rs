//! Weighted sums of windows along a dim: what resampling with antialiasing is, one side after the other.

use crate::kernel::abi::Call;
use crate::kernel::host::attributes;
use crate::kernel::host::real::{real, widths};
use crate::kernel::host::staging::{Shared, Sink, around, read, read_as};
use std::ops::Range;

/// Reads of a thread.
const GRAIN: usize = 16 * 1024;

/// The shapes: `[outer, size, inner]` to `[outer, out, inner]`.
#[derive(Clone, Copy)]
struct Sizes {
    size: usize,
    out: usize,
    inner: usize,
    taps: usize,
}

widths! {
    without_highest:
    fn rows<T>(s: &Sizes, x: &[T], weights: &[T], first: &[i64], to: Shared<T>, range: Range<usize>) {
        for row in range {
            let (outer, o) = (row / s.out, row % s.out);
            let x = &x[outer * s.size * s.inner..(outer + 1) * s.size * s.inner];
            // SAFETY: a part of the output that no other row has.
            let y = unsafe { to.range(row * s.inner..(row + 1) * s.inner) };
            y.fill(T::ZERO);
            // Behind the last input weights are 0.
            let count = s.taps.min(s.size - first[o] as usize);
            for k in 0..count {
                let (weight, at) = (weights[k * s.out + o], (first[o] as usize + k) * s.inner);
                for (y, &x) in y.iter_mut().zip(&x[at..at + s.inner]) {
                    *y += weight * x;
                }
            }
        }
    }
}

/// `y[.., o, ..] = sum of weights[k, o] * x[.., first[o] + k, ..]`. Inputs: `x`, float; `first` `[out]`, i64, below the size of the
/// dim; `weights` `[taps, out]` of the dtype of `x`, 0 for what lies behind the last input. Output: as `x`, with `out` along the
/// dim. Attribute: the dim (Int).
///
/// # Safety
/// As `HostFn`.
pub unsafe fn window_sums(call: &Call<'_>) {
    let dim = attributes::size(call, 0);
    let (outer, size, inner) = around(&call.inputs[0].shape, dim);
    let (out, taps) = (call.outputs[0].shape[dim], call.inputs[2].shape[0]);
    let s = Sizes { size, out, inner, taps };
    if outer * out * inner == 0 {
        return;
    }
    real!(call.inputs[0].dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let x = read::<T>(&call.inputs[0], call.threads);
            let first = read_as::<i64>(&call.inputs[1]);
            let weights = read::<T>(&call.inputs[2], call.threads);
            let mut y = Sink::<T>::new(&call.outputs[0]);
            let to = Shared::new(y.slice());
            call.threads.split(outer * out, (GRAIN / (inner * taps.max(1))).max(1), |range| {
                rows(&s, &x, &weights, &first, to, range);
            });
            y.finish(call.threads);
        }
    });
}
