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
    }
    headers { "matmul/matmul.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
