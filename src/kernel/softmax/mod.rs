//! Softmax and its logarithm, with gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "softmax";
    kernels {
        "softmax" SOFTMAX: host::softmax, cuda::softmax;
        "log_softmax" LOG_SOFTMAX: host::log_softmax, cuda::log_softmax;
        "softmax_grad" SOFTMAX_GRAD: host::softmax_grad, cuda::softmax_grad;
        "log_softmax_grad" LOG_SOFTMAX_GRAD: host::log_softmax_grad, cuda::log_softmax_grad;
    }
    headers { "softmax/softmax.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
