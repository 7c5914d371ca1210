//! Random numbers, and sampling from given probabilities.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod cuda_permutation;
pub mod host;
pub mod multinomial;

use super::family::family;

family! {
    "random";
    kernels {
        "multinomial" MULTINOMIAL: multinomial::multinomial, cuda::multinomial;
        "randperm" RANDPERM: host::randperm, cuda_permutation::randperm;
    }
    headers { "random/philox.cuh" "random/multinomial.cuh" "random/permutation.cuh" }
    structs { cuda::ARGS cuda_permutation::ARGS }
    texts cuda::texts
}
