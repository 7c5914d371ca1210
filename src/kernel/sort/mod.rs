//! Sorting, topk, median, mode, unique.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "sort";
    kernels {
        "sort" SORT: host::sort, cuda::sort;
        "argsort" ARGSORT: host::argsort, cuda::argsort;
        "topk" TOPK: host::select::topk, cuda::topk;
        "kthvalue" KTHVALUE: host::select::kthvalue, cuda::picked::kthvalue;
        "median" MEDIAN: host::select::median, cuda::picked::median;
        "nanmedian" NANMEDIAN: host::select::nanmedian, cuda::picked::nanmedian;
        "mode" MODE: host::select::mode, cuda::picked::mode;
        "unique" UNIQUE: host::unique::unique, cuda::unique::unique;
    }
    headers {
        "sort/keys.cuh" "sort/rank.cuh" "sort/radix.cuh" "sort/block_rows.cuh" "sort/short_rows.cuh" "sort/winners.cuh"
        "sort/select.cuh" "sort/select_rows.cuh" "sort/picked.cuh" "sort/distinct.cuh" "sort/unique.cuh"
    }
    structs {
        cuda::radix::ARGS cuda::rows::ARGS cuda::select::ARGS cuda::picked::ARGS cuda::unique::ARGS
        cuda::slices::UNIQUE_ARGS
    }
    texts cuda::texts
}
