//! Random numbers, and sampling from given probabilities.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
pub mod multinomial;

use super::family::family;

family! {
    "random";
    kernels {
        "multinomial" MULTINOMIAL: multinomial::multinomial, cuda::multinomial;
        "randperm" RANDPERM: host::randperm;
    }
    headers { "random/philox.cuh" "random/multinomial.cuh" }
    structs { cuda::ARGS }
    texts cuda::texts
}
