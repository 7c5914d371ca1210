//! Interpolation, padding by copied elements, and sampling at given places.

pub mod antialias;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
mod cuda_grid;
#[cfg(feature = "cuda")]
mod cuda_windows;
pub mod grid;
pub mod host;
pub mod pad;
pub mod windows;

use super::family::family;

family! {
    "resample";
    kernels {
        "pad_constant" PAD_CONSTANT: pad::pad_constant, cuda::pad_constant;
        "pad" PAD: pad::pad, cuda::pad;
        "pad_grad" PAD_GRAD: pad::pad_grad, cuda::pad_grad;
        "interpolate" INTERPOLATE: host::interpolate, cuda::interpolate;
        "interpolate_grad" INTERPOLATE_GRAD: host::interpolate_grad, cuda::interpolate_grad;
        "window_sums" WINDOW_SUMS: windows::window_sums, cuda_windows::window_sums;
        "grid_sample" GRID_SAMPLE: grid::grid_sample, cuda_grid::grid_sample;
        "grid_sample_grad" GRID_SAMPLE_GRAD: grid::grid_sample_grad, cuda_grid::grid_sample_grad;
    }
    headers { "resample/resample.cuh" "resample/grid.cuh" "resample/windows.cuh" }
    structs { cuda::ARGS cuda_grid::ARGS cuda_windows::ARGS }
    texts texts
}

/// Texts for the compile test.
#[cfg(feature = "cuda")]
fn texts() -> Vec<&'static super::cuda::Source> {
    cuda::texts().into_iter().chain(cuda_grid::texts()).chain(cuda_windows::texts()).collect()
}
