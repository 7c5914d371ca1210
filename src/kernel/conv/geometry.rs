//! The sizes of a convolution, for the host, for CUDA kernels and for libraries.

use crate::kernel::abi::{Call, RawView};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

structs! {
    pub static GEOMETRY = "conv/geometry.cuh";
    /// One convolution: a cross-correlation of `x` `[batch, groups * channels, input..]` with `w` `[groups * filters, channels,
    /// kernel..]` to `y` `[batch, groups * filters, output..]`. Missing leading spatial dims have size 1.
    #[derive(PartialEq)]
    pub struct Geometry {
        batch: usize,
        groups: usize,
        /// Input channels of a group.
        channels: usize,
        /// Output channels of a group.
        filters: usize,
        input: [usize; 3],
        output: [usize; 3],
        kernel: [usize; 3],
        stride: [usize; 3],
        padding: [isize; 3],
        dilation: [usize; 3],
    }
}

/// Up to three numbers, padded in front with `missing`.
pub fn three<T: Copy>(given: &[T], missing: T) -> [T; 3] {
    let skip = 3usize.saturating_sub(given.len());
    std::array::from_fn(|i| if i < skip { missing } else { given[i - skip] })
}

impl Geometry {
    /// `x` `[N, C, d..]`, `weight` `[O, C / groups, k..]`, `y` `[N, O, o..]`. Attributes: stride, padding, dilation, groups.
    pub fn of(call: &Call<'_>, x: &RawView, weight: &RawView, y: &RawView) -> Geometry {
        let groups = attributes::size(call, 3).max(1);
        let sizes = |i: usize| three(attributes::ints(call, i), 1).map(|s| s.max(1) as usize);
        Geometry {
            batch: x.shape[0],
            groups,
            channels: weight.shape[1],
            filters: weight.shape[0] / groups,
            input: three(&x.shape[2..], 1),
            output: three(&y.shape[2..], 1),
            kernel: three(&weight.shape[2..], 1),
            stride: sizes(0),
            padding: three(attributes::ints(call, 1), 0).map(|p| p as isize),
            dilation: sizes(2),
        }
    }

    /// Elements of the kernel window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    pub fn input_plane(&self) -> usize {
        self.input.iter().product()
    }

    pub fn output_plane(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of one filter: rows of the im2col matrix.
    pub fn depth(&self) -> usize {
        self.channels * self.taps()
    }

    /// Whether the im2col matrix is the input itself.
    pub fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.padding == [0; 3]
    }
}

#[cfg(feature = "cuda")]
impl Geometry {
    /// Whether it is one matrix product for each image.
    pub fn is_product(&self) -> bool {
        self.groups == 1 && self.is_pointwise()
    }

    /// Distance between the first and the last tap of a dim.
    pub fn reach(&self, dim: usize) -> isize {
        (self.dilation[dim] * (self.kernel[dim] - 1)) as isize
    }

    /// Whether the gradient of the input is the convolution of the output's gradient with the rotated weights.
    pub fn has_forward_gradient(&self) -> bool {
        let fits = |d: usize| {
            let size = self.output[d] as isize + self.reach(d) - 2 * self.padding[d];
            self.padding[d] <= self.reach(d) && size == self.input[d] as isize
        };
        self.groups == 1 && self.stride == [1; 3] && !self.is_product() && (0..3).all(fits)
    }

    /// Whether the gradient of the input is made by phases.
    pub fn has_phases(&self) -> bool {
        let fits = |d: usize| {
            let padding = self.padding[d];
            self.kernel[d] >= self.stride[d] && (0..self.kernel[d] as isize).contains(&padding)
        };
        self.dilation == [1; 3] && self.stride != [1; 3] && (0..3).all(fits)
    }

    /// The gradient of the input by phases: element `i` of a dim, at `i + padding = q * stride + r`, is read by outputs `q - j`
    /// through taps `r + stride * j`. For each phase r that is a convolution of the output's gradient of stride 1, and all
    /// phases together are one with `stride` times as many filters. Gives that convolution, and for each dim what is added to
    /// `i` so that its quotient by the stride is the place in that convolution's output.
    pub fn phases(&self) -> (Geometry, [isize; 3]) {
        let taps = |d: usize| self.kernel[d].div_ceil(self.stride[d]);
        let quotient = |i: isize, d: usize| (i + self.padding[d]).div_euclid(self.stride[d] as isize);
        let low = |d: usize| taps(d) as isize - 1 - quotient(0, d);
        let high = |d: usize| quotient(self.input[d] as isize - 1, d) - (self.output[d] as isize - 1);
        let padding: [isize; 3] = std::array::from_fn(|d| low(d).max(high(d)).max(0));
        let forward = Geometry {
            channels: self.filters,
            filters: self.channels * self.stride.iter().product::<usize>(),
            input: self.output,
            output: std::array::from_fn(|d| self.output[d] + 2 * padding[d] as usize + 1 - taps(d)),
            kernel: std::array::from_fn(taps),
            stride: [1; 3],
            padding,
            ..*self
        };
        let stride = |d: usize| self.stride[d] as isize;
        (forward, std::array::from_fn(|d| self.padding[d] % stride(d) + (padding[d] - low(d)) * stride(d)))
    }
}
