pub mod factor;
pub mod householder;
pub mod jacobi;
pub mod matrix_exp;
pub mod panels;
