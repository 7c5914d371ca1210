//! Cumulative sums, products, extremes.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "scan";
    kernels {
        "cumsum" CUMSUM: host::cumsum, cuda::cumsum;
        "cumprod" CUMPROD: host::cumprod, cuda::cumprod;
        "logcumsumexp" LOGCUMSUMEXP: host::logcumsumexp, cuda::logcumsumexp;
        "cummax" CUMMAX: host::cummax, cuda::cummax;
        "cummin" CUMMIN: host::cummin, cuda::cummin;
    }
    headers { "scan/tile.cuh" "scan/rows.cuh" "scan/columns.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
