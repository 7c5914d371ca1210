//! Products of matrices.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "matmul";
    kernels {
        "matmul" MATMUL: host::matmul, cuda::matmul;
        "linear" LINEAR: host::linear, cuda::linear;
        "int_mm" INT_MM: host::bytes::int_mm, cuda::int_mm;
    }
    headers { "matmul/matmul.cuh" "matmul/int_mm.cuh" }
    structs { cuda::ARGS cuda::INT_ARGS }
    texts cuda::texts
}
