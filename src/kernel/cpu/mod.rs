//! Kernels of the host, and of simulated GPUs.

pub mod attention;
pub mod attributes;
pub mod conv;
pub mod copy;
pub mod ctc;
pub mod decompose;
pub mod element;
pub mod elementwise;
pub mod fused;
pub mod index;
pub mod loss;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod pool;
pub mod random;
pub mod real;
pub mod reduce;
pub mod sampling;
pub mod scan;
pub mod select;
pub mod simd;
pub mod sort;
pub mod staging;
pub mod walk;
