//! Shared code of host kernels: vector levels, iteration over elements, staging, attributes.

pub mod attributes;
pub mod element;
mod halves;
pub mod real;
pub mod rows;
pub mod simd;
pub mod staging;
pub mod vector;
pub mod walk;
