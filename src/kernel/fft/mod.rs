//! Fourier transforms along dims.

pub mod host;

use super::family::family;

family! {
    "fft";
    kernels {
        "fft_whole" WHOLE: host::whole;
        "fft_to_half" TO_HALF: host::to_half;
        "fft_from_half" FROM_HALF: host::from_half;
    }
    headers {}
    structs {}
    texts no_texts
}

/// CUDA texts: the kernels run on the host.
#[cfg(feature = "cuda")]
fn no_texts() -> Vec<&'static super::cuda::Source> {
    Vec::new()
}
