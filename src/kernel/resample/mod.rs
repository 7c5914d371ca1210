//! Interpolation and padding by copied elements.

pub mod antialias;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
pub mod pad;

use super::family::family;

family! {
    "resample";
    kernels {
        "pad_constant" PAD_CONSTANT: pad::pad_constant, cuda::pad_constant;
        "pad" PAD: pad::pad, cuda::pad;
        "pad_grad" PAD_GRAD: pad::pad_grad, cuda::pad_grad;
        "interpolate" INTERPOLATE: host::interpolate, cuda::interpolate;
        "interpolate_grad" INTERPOLATE_GRAD: host::interpolate_grad, cuda::interpolate_grad;
    }
    headers { "resample/resample.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
