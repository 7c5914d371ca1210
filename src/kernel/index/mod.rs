//! Reading and writing by index tensors: `x[rows]`, gather, scatter, embeddings.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;
