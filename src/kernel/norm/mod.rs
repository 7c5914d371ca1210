//! Layer, group, RMS and batch normalization.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "norm";
    kernels {
        "layer_norm" LAYER_NORM: host::layer::layer_norm, cuda::layer_norm;
        "group_norm" GROUP_NORM: host::layer::group_norm, cuda::group_norm;
        "rms_norm" RMS_NORM: host::layer::rms_norm, cuda::rms_norm;
        "layer_norm_grad" LAYER_NORM_GRAD: host::layer::layer_norm_grad, cuda::layer_norm_grad;
        "group_norm_grad" GROUP_NORM_GRAD: host::layer::group_norm_grad, cuda::group_norm_grad;
        "rms_norm_grad" RMS_NORM_GRAD: host::layer::rms_norm_grad, cuda::rms_norm_grad;
        "batch_norm_train" BATCH_NORM_TRAIN: host::batch::batch_norm_train, cuda::batch_norm_train;
        "batch_norm_grad" BATCH_NORM_GRAD: host::batch::batch_norm_grad, cuda::batch_norm_grad;
    }
    headers { "norm/layer_norm.cuh" "norm/batch_norm.cuh" }
    structs { cuda::LAYER_NORM_ARGS cuda::BATCH_NORM_ARGS }
    texts cuda::texts
}
