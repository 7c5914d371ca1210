//! The CTC loss.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "ctc";
    kernels {
        "ctc_loss" CTC_LOSS: host::ctc_loss, cuda::ctc_loss;
        "ctc_loss_grad" CTC_LOSS_GRAD: host::ctc_loss_grad, cuda::ctc_loss_grad;
    }
    headers { "ctc/ctc.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
