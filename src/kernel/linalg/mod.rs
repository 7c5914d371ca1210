//! Cross products, factorizations, solutions of linear systems, spectra, matrix functions.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod host;

use super::family::family;

family! {
    "linalg";
    kernels {
        "cross" CROSS: host::cross::cross, cuda::cross::cross;
        "cholesky" CHOLESKY: host::factor::cholesky, cuda::factor::cholesky;
        "triangular_solve" TRIANGULAR_SOLVE: host::factor::triangular_solve, cuda::factor::triangular_solve;
        "solve" SOLVE: host::factor::solve, cuda::factor::solve;
        "inv" INV: host::factor::inv, cuda::factor::inv;
        "det" DET: host::factor::det, cuda::factor::det;
        "slogdet" SLOGDET: host::factor::slogdet, cuda::factor::slogdet;
        "lu" LU: host::factor::lu, cuda::factor::lu;
        "geqrf" GEQRF: host::householder::geqrf, cuda::householder::geqrf;
        "qr" QR: host::spectral::qr, cuda::householder::qr;
        "svdvals" SVDVALS: host::spectral::svdvals, cuda::svd::svdvals;
        "eigvalsh" EIGVALSH: host::spectral::eigvalsh, cuda::eigh::eigvalsh;
        "matrix_exp" MATRIX_EXP: host::spectral::matrix_exp, cuda::matrix_exp::matrix_exp;
        "svd" SVD: host::spectral::svd, cuda::svd::svd;
        "pinv" PINV: host::spectral::pinv, cuda::svd::pinv;
        "lstsq" LSTSQ: host::spectral::lstsq, cuda::svd::lstsq;
        "eigh" EIGH: host::spectral::eigh, cuda::eigh::eigh;
        "complex_lu" COMPLEX_LU: host::complex::lu, cuda::complex::lu;
        "complex_geqrf" COMPLEX_GEQRF: host::complex::geqrf, cuda::complex::geqrf;
        "complex_qr" COMPLEX_QR: host::complex::qr, cuda::complex::qr;
        "complex_eigh" COMPLEX_EIGH: host::complex::eigh, cuda::complex::eigh;
        "complex_svd" COMPLEX_SVD: host::complex::svd, cuda::complex::svd;
        "complex_eig" COMPLEX_EIG: host::complex::eig, cuda::complex::eig;
    }
    headers { "linalg/cross.cuh" "linalg/panel.cuh" "linalg/factor.cuh" "linalg/householder.cuh" "linalg/matrix_exp.cuh" "linalg/jacobi.cuh" "linalg/solver.cuh" }
    structs { cuda::cross::CROSS_ARGS cuda::panels::PANEL_ARGS cuda::jacobi::JACOBI_ARGS cuda::matrix_exp::MATRIX_EXP_ARGS cuda::solver::SOLVER_ARGS }
    texts cuda::texts
}
