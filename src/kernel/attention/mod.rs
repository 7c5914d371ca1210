//! Attention: scaled dot products, on the host and on GPUs.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_mma;
#[cfg(feature = "cuda")]
pub mod cuda_scores;
#[cfg(feature = "cuda")]
pub mod cuda_tf32;
pub mod host;

use super::family::family;

family! {
    "attention";
    kernels {
        "attention" ATTENTION: host::attention, cuda::attention;
        "attention_grad" ATTENTION_GRAD: host::attention_grad, cuda::attention_grad;
    }
    headers { "attention/attention.cuh" "attention/scores.cuh" "attention/head.cuh" "attention/online_softmax.cuh" "attention/tile.cuh" "attention/mma.cuh" "attention/mma_grad.cuh" "attention/wgmma_tile.cuh" "attention/wgmma.cuh" "attention/wgmma_grad.cuh" "attention/tf32_tile.cuh" "attention/tf32.cuh" "attention/tf32_grad.cuh" }
    structs { cuda::ARGS cuda_mma::TILE_ARGS }
    texts cuda::texts
}
