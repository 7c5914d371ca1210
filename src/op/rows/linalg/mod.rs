//! Products of matrices, decompositions, systems, norms.

pub mod eig;
pub mod einsum;
pub mod linalg_ex;
pub mod low_rank;
pub mod lstsq_pinv;
pub mod lu;
pub mod matmul;
pub mod matrix_exp;
pub mod norms;
pub mod products;
pub mod qr;
pub mod solve;
pub mod svd;
pub mod tensorsolve;
