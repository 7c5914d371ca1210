pub mod cuda;
pub mod cuda_mma;
pub mod host;
