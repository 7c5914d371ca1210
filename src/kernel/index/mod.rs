//! Reading and writing by index tensors: `x[rows]`, gather, scatter, embeddings.

pub mod cuda;
pub mod host;
