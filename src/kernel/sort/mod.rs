pub mod cuda;
pub mod cuda_unique;
pub mod host;
