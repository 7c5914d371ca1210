//! Fourier transforms along dims.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "fft";
    kernels {
        "fft_whole" WHOLE: host::whole, cuda::whole;
        "fft_to_half" TO_HALF: host::to_half, cuda::to_half;
        "fft_from_half" FROM_HALF: host::from_half, cuda::from_half;
    }
    headers { "fft/lines.cuh" "fft/fft.cuh" "fft/power_of_two.cuh" "fft/moves.cuh" }
    structs { cuda::ARGS cuda::moves::MOVE_ARGS }
    texts cuda::texts
}
