//! Pooling and its gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "pool";
    kernels {
        "max_pool" MAX_POOL: host::max_pool, cuda::max_pool;
        "adaptive_max_pool" ADAPTIVE_MAX_POOL: host::adaptive_max_pool, cuda::adaptive_max_pool;
        "max_pool_grad" MAX_POOL_GRAD: host::max_pool_grad, cuda::max_pool_grad;
        "avg_pool" AVG_POOL: host::avg_pool, cuda::avg_pool;
        "adaptive_avg_pool" ADAPTIVE_AVG_POOL: host::adaptive_avg_pool, cuda::adaptive_avg_pool;
        "avg_pool_grad" AVG_POOL_GRAD: host::avg_pool_grad, cuda::avg_pool_grad;
        "adaptive_avg_pool_grad" ADAPTIVE_AVG_POOL_GRAD: host::adaptive_avg_pool_grad, cuda::adaptive_avg_pool_grad;
    }
    headers { "pool/pool.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
