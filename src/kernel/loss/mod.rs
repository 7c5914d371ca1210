//! Cross entropy and negative log likelihood.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "loss";
    kernels {
        "cross_entropy" CROSS_ENTROPY: host::cross_entropy, cuda::cross_entropy;
        "cross_entropy_grad" CROSS_ENTROPY_GRAD: host::cross_entropy_grad, cuda::cross_entropy_grad;
        "nll" NLL: host::nll, cuda::nll;
        "nll_grad" NLL_GRAD: host::nll_grad, cuda::nll_grad;
    }
    headers { "loss/loss.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
