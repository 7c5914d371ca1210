pub mod cuda;
pub mod cuda_transpose;
pub mod host;
