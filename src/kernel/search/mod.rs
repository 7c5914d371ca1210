//! Sorted search, counts of values, histograms.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "search";
    kernels {
        "searchsorted" SEARCHSORTED: host::searchsorted, cuda::searchsorted;
        "bincount_size" BINCOUNT_SIZE: host::bincount_size, cuda::bincount_size;
        "bincount" BINCOUNT: host::bincount, cuda::bincount;
        "histc" HISTC: host::histc, cuda::histc;
    }
    headers { "search/search.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
