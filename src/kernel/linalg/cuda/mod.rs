//! CUDA launches of factorizations, spectra and matrix functions.

mod alone;
pub mod complex;
pub mod cross;
pub mod eigh;
pub mod factor;
pub mod householder;
pub mod jacobi;
pub mod matrix_exp;
pub mod panels;
pub mod solver;
pub mod svd;

use crate::base::dtype::DType;
use crate::kernel::cuda::Source;

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let headers = [factor::TEXT, householder::TEXT, matrix_exp::TEXT, jacobi::TEXT, solver::TEXT];
    let dense =
        headers.into_iter().flat_map(|header| [DType::F32, DType::F64].map(|dtype| panels::text(header, dtype)));
    dense.chain(cross::texts()).collect()
}
