//! Sorting, topk, median, mode, unique.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_unique;
pub mod host;

use super::family::family;

family! {
    "sort";
    kernels {
        "sort" SORT: host::sort, cuda::sort;
        "argsort" ARGSORT: host::argsort, cuda::argsort;
        "topk" TOPK: host::select::topk, cuda::topk;
        "kthvalue" KTHVALUE: host::select::kthvalue, cuda::kthvalue;
        "median" MEDIAN: host::select::median, cuda::median;
        "nanmedian" NANMEDIAN: host::select::nanmedian, cuda::nanmedian;
        "mode" MODE: host::select::mode, cuda::mode;
        "unique" UNIQUE: host::unique::unique, cuda::unique;
    }
    headers { "sort/sort.cuh" "sort/unique.cuh" }
    structs { cuda::ARGS cuda_unique::UNIQUE_ARGS }
    texts cuda::texts
}
