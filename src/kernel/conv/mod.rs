//! Convolutions and their gradients.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod geometry;
pub mod host;

use super::family::family;

family! {
    "conv";
    kernels {
        "conv_forward" CONV_FORWARD: host::conv_forward, cuda::conv_forward;
        "conv_grad_input" CONV_GRAD_INPUT: host::conv_grad_input, cuda::conv_grad_input;
        "conv_grad_weight" CONV_GRAD_WEIGHT: host::conv_grad_weight, cuda::conv_grad_weight;
    }
    headers { "conv/conv.cuh" }
    structs { geometry::GEOMETRY cuda::ARGS }
    texts cuda::texts
}
