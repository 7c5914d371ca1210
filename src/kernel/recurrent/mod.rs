//! One direction of one recurrent layer over all steps of time, and its gradient from what the forward pass kept.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
mod cuda_library;
pub mod host;
pub mod layer;

use super::family::family;

family! {
    "recurrent";
    kernels {
        "recurrent" RECURRENT: host::recurrent, cuda::recurrent;
        "recurrent_grad" RECURRENT_GRAD: host::recurrent_grad, cuda::recurrent_grad;
    }
    headers { "recurrent/recurrent.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
