//! Floor 1: where kernels run and memory comes from. Knows neither operations nor shapes.

pub mod cache;
pub mod host_memory;
