//! Reading and writing by index tensors: `x[rows]`, gather, scatter, embeddings.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_bag;
pub mod host;

use super::family::family;

family! {
    "index";
    kernels {
        "index_get" INDEX_GET: host::index_get, cuda::index_get;
        "index_put" INDEX_PUT: host::index_put, cuda::index_put;
        "take" TAKE: host::take, cuda::take;
        "put" PUT: host::put, cuda::put;
        "index_select" INDEX_SELECT: host::rows::index_select, cuda::index_select;
        "index_add" INDEX_ADD: host::rows::index_add, cuda::index_add;
        "index_copy" INDEX_COPY: host::rows::index_copy, cuda::index_copy;
        "index_fill" INDEX_FILL: host::rows::index_fill, cuda::index_fill;
        "embedding" EMBEDDING: host::rows::embedding, cuda::embedding;
        "embedding_grad" EMBEDDING_GRAD: host::rows::embedding_grad, cuda::embedding_grad;
        "embedding_bag" EMBEDDING_BAG: host::bag::embedding_bag, cuda_bag::embedding_bag;
        "one_hot" ONE_HOT: host::rows::one_hot, cuda::one_hot;
        "gather" GATHER: host::gather::gather, cuda::gather;
        "scatter" SCATTER: host::gather::scatter, cuda::scatter;
        "scatter_add" SCATTER_ADD: host::gather::scatter_add, cuda::scatter_add;
        "scatter_reduce" SCATTER_REDUCE: host::gather::scatter_reduce, cuda::scatter_reduce;
    }
    headers { "index/index.cuh" "index/bag.cuh" }
    structs { cuda::ARGS cuda_bag::ARGS }
    texts cuda::texts
}
