//! Sorted search, counts of values, histograms.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "search";
    kernels {
        "searchsorted" SEARCHSORTED: host::searchsorted, cuda::searchsorted;
        "bincount_size" BINCOUNT_SIZE: host::bincount_size, cuda::counts::bincount_size;
        "bincount" BINCOUNT: host::bincount, cuda::counts::bincount;
        "histc" HISTC: host::histc, cuda::counts::histc;
    }
    headers { "search/search.cuh" "search/counts.cuh" }
    structs { cuda::ARGS cuda::counts::ARGS }
    texts cuda::texts
}
