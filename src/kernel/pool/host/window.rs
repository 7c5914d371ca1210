//! The window of each output of a pooling, one dim at a time.

use crate::kernel::abi::Call;
use crate::kernel::guard;
use crate::kernel::host::attributes;

/// The window of one output along one dim: positions `start, start + step, ..` below `end`, all inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub start: usize,
    pub end: usize,
    pub step: usize,
    /// Number of positions including padding, clipped as in PyTorch (`count_include_pad`).
    counted: usize,
}

impl Window {
    /// From the first position to the end.
    #[inline]
    pub fn span(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    #[inline]
    pub fn positions(&self) -> std::iter::StepBy<std::ops::Range<usize>> {
        (self.start..self.end).step_by(self.step)
    }
}

/// The divisor of a mean.
#[derive(Clone, Copy, Debug)]
enum Divisor {
    /// Number of elements of the window inside the input.
    Inside,
    /// The same including padding.
    Counted,
    Given(f64),
}

/// The windows of every output of a plane.
pub struct Windows {
    dims: [Vec<Window>; 3],
    divisor: Divisor,
}

impl Windows {
    /// The windows along each dim.
    pub fn dims(&self) -> &[Vec<Window>; 3] {
        &self.dims
    }

    /// Calls `each` for every output of a plane in row-major order.
    #[inline]
    pub fn each<'a>(&'a self, mut each: impl FnMut([&'a Window; 3])) {
        for d in &self.dims[0] {
            for h in &self.dims[1] {
                guard::check();
                for w in &self.dims[2] {
                    each([d, h, w]);
                }
            }
        }
    }

    #[inline]
    pub fn divisor(&self, window: [&Window; 3]) -> f64 {
        match self.divisor {
            Divisor::Given(x) => x,
            Divisor::Inside => window.iter().map(|w| w.end - w.start).product::<usize>() as f64,
            Divisor::Counted => window.iter().map(|w| w.counted).product::<usize>() as f64,
        }
    }
}

/// Attribute `i` for dim `dim` of three; `missing` for leading dims that the call does not have.
fn of(call: &Call<'_>, i: usize, dim: usize, missing: i64) -> i64 {
    let given = attributes::ints(call, i);
    dim.checked_sub(3 - given.len().min(3)).and_then(|at| given.get(at)).copied().unwrap_or(missing)
}

fn build(to: [usize; 3], one: impl Fn(usize, usize) -> Window) -> [Vec<Window>; 3] {
    std::array::from_fn(|dim| {
        let mut windows = guard::with_capacity(to[dim]);
        windows.extend((0..to[dim]).map(|out| one(dim, out)));
        windows
    })
}

/// Windows of `max_pool`; attributes: kernel, stride, padding, dilation.
pub fn dilated(call: &Call<'_>, from: [usize; 3], to: [usize; 3]) -> Windows {
    let dims = build(to, |dim, out| {
        let (kernel, stride) = (of(call, 0, dim, 1), of(call, 1, dim, 1));
        let (padding, step) = (of(call, 2, dim, 0), of(call, 3, dim, 1).max(1));
        let first = out as i64 * stride - padding;
        let end = (first + (kernel - 1) * step + 1).clamp(0, from[dim] as i64);
        let skipped = if first < 0 { (-first + step - 1) / step } else { 0 };
        // Clipped, so that even a window that lies completely in the padding has a valid position.
        let start = (first + skipped * step).min(from[dim] as i64 - 1).max(0);
        Window { start: start as usize, end: end as usize, step: step as usize, counted: 0 }
    });
    Windows { dims, divisor: Divisor::Inside }
}

/// Windows of `avg_pool`; attributes: kernel, stride, padding, count_include_pad, divisor_override.
pub fn average(call: &Call<'_>, from: [usize; 3], to: [usize; 3]) -> Windows {
    let dims = build(to, |dim, out| {
        let (kernel, stride, padding) = (of(call, 0, dim, 1), of(call, 1, dim, 1), of(call, 2, dim, 0));
        let size = from[dim] as i64;
        let first = out as i64 * stride - padding;
        let end = (first + kernel).min(size + padding);
        let (start, inside) = (first.clamp(0, size), end.clamp(0, size));
        Window {
            start: start as usize,
            end: inside.max(start) as usize,
            step: 1,
            counted: (end - first).max(0) as usize,
        }
    });
    let divisor = match attributes::float_or_none(call, 4) {
        Some(x) => Divisor::Given(x),
        None if attributes::flag(call, 3) => Divisor::Counted,
        None => Divisor::Inside,
    };
    Windows { dims, divisor }
}

/// Adaptive windows: from floor(o * in / out) to ceil((o + 1) * in / out).
pub fn adaptive(from: [usize; 3], to: [usize; 3]) -> Windows {
    let dims = build(to, |dim, out| Window {
        start: out * from[dim] / to[dim],
        end: ((out + 1) * from[dim]).div_ceil(to[dim]),
        step: 1,
        counted: 0,
    });
    Windows { dims, divisor: Divisor::Inside }
}
