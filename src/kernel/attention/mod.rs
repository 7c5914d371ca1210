//! Attention: scaled dot products, on the host and on GPUs.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_mma;
#[cfg(feature = "cuda")]
pub mod cuda_scores;
pub mod host;

use super::family::family;

family! {
    "attention";
    kernels {
        "attention" ATTENTION: host::attention, cuda::attention;
        "attention_grad" ATTENTION_GRAD: host::attention_grad, cuda::attention_grad;
    }
    headers { "attention/attention.cuh" "attention/scores.cuh" "attention/tile.cuh" "attention/mma.cuh" "attention/mma_grad.cuh" "attention/wgmma_tile.cuh" "attention/wgmma.cuh" "attention/wgmma_grad.cuh" }
    structs { cuda::ARGS cuda_mma::TILE_ARGS }
    texts cuda::texts
}
