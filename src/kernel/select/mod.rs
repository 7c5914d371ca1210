//! Selection by masks, positions of elements that are not zero.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "select";
    kernels {
        "count" COUNT: host::count, cuda::count;
        "nonzero" NONZERO: host::nonzero, cuda::nonzero;
        "masked_select" MASKED_SELECT: host::masked_select, cuda::masked_select;
        "masked_scatter" MASKED_SCATTER: host::masked_scatter, cuda::masked_scatter;
        "repeats_count" REPEATS_COUNT: host::repeats_count, super::search::cuda::repeats_count;
        "repeats_fill" REPEATS_FILL: host::repeats_fill, super::search::cuda::repeats_fill;
    }
    headers { "select/select.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
