//! The CUDA launch of each host kernel.

use super::abi::HostFn;
use super::cuda::{self, CudaFn, Source};
use super::{
    attention, conv, copy, ctc, index, linalg, loss, matmul, norm, pool, random, resample, scan, search, select,
    softmax, sort,
};

/// The CUDA launch of each host kernel. Kernels that are not here run on the host, on copies.
pub static ENTRIES: &[(HostFn, CudaFn)] = &[
    (copy::host::copy, copy::cuda::copy),
    (copy::host::fill, copy::cuda::fill),
    (copy::host::arrange::cat, copy::cuda::cat),
    (copy::host::arrange::repeat, copy::cuda::repeat),
    (copy::host::arrange::repeat_interleave, copy::cuda::repeat_interleave),
    (copy::host::arrange::flip, copy::cuda::flip),
    (copy::host::arrange::roll, copy::cuda::roll),
    (copy::host::arrange::diag_embed, copy::cuda::diag_embed),
    (copy::host::arrange::tril, copy::cuda::tril),
    (copy::host::arrange::triu, copy::cuda::triu),
    (resample::pad::pad_constant, copy::cuda::pad_constant),
    (copy::host::strided_add::strided_add, copy::cuda::strided_add),
    (matmul::host::matmul, matmul::cuda::matmul),
    (matmul::host::linear, matmul::cuda::linear),
    (softmax::host::softmax, softmax::cuda::softmax),
    (softmax::host::log_softmax, softmax::cuda::log_softmax),
    (softmax::host::softmax_grad, softmax::cuda::softmax_grad),
    (softmax::host::log_softmax_grad, softmax::cuda::log_softmax_grad),
    (norm::host::layer::layer_norm, norm::cuda::layer_norm),
    (norm::host::layer::group_norm, norm::cuda::group_norm),
    (norm::host::layer::rms_norm, norm::cuda::rms_norm),
    (norm::host::layer::layer_norm_grad, norm::cuda::layer_norm_grad),
    (norm::host::layer::group_norm_grad, norm::cuda::group_norm_grad),
    (norm::host::layer::rms_norm_grad, norm::cuda::rms_norm_grad),
    (norm::host::batch::batch_norm_train, norm::cuda::batch_norm_train),
    (norm::host::batch::batch_norm_eval, norm::cuda::batch_norm_eval),
    (norm::host::batch::batch_norm_grad, norm::cuda::batch_norm_grad),
    (loss::host::cross_entropy, loss::cuda::cross_entropy),
    (loss::host::cross_entropy_grad, loss::cuda::cross_entropy_grad),
    (loss::host::nll, loss::cuda::nll),
    (loss::host::nll_grad, loss::cuda::nll_grad),
    (index::host::index_get, index::cuda::index_get),
    (index::host::index_put, index::cuda::index_put),
    (index::host::take, index::cuda::take),
    (index::host::put, index::cuda::put),
    (index::host::rows::index_select, index::cuda::index_select),
    (index::host::rows::index_add, index::cuda::index_add),
    (index::host::rows::index_copy, index::cuda::index_copy),
    (index::host::rows::index_fill, index::cuda::index_fill),
    (index::host::rows::embedding, index::cuda::embedding),
    (index::host::rows::embedding_grad, index::cuda::embedding_grad),
    (index::host::rows::one_hot, index::cuda::one_hot),
    (index::host::gather::gather, index::cuda::gather),
    (index::host::gather::scatter, index::cuda::scatter),
    (index::host::gather::scatter_add, index::cuda::scatter_add),
    (conv::host::conv_forward, conv::cuda::conv_forward),
    (conv::host::conv_grad_input, conv::cuda::conv_grad_input),
    (conv::host::conv_grad_weight, conv::cuda::conv_grad_weight),
    (pool::host::max_pool, pool::cuda::max_pool),
    (pool::host::adaptive_max_pool, pool::cuda::adaptive_max_pool),
    (pool::host::max_pool_grad, pool::cuda::max_pool_grad),
    (pool::host::avg_pool, pool::cuda::avg_pool),
    (pool::host::adaptive_avg_pool, pool::cuda::adaptive_avg_pool),
    (pool::host::avg_pool_grad, pool::cuda::avg_pool_grad),
    (pool::host::adaptive_avg_pool_grad, pool::cuda::adaptive_avg_pool_grad),
    (attention::host::attention, attention::cuda::attention),
    (attention::host::attention_grad, attention::cuda::attention_grad),
    (scan::host::cumsum, scan::cuda::cumsum),
    (scan::host::cumprod, scan::cuda::cumprod),
    (scan::host::logcumsumexp, scan::cuda::logcumsumexp),
    (scan::host::cummax, scan::cuda::cummax),
    (scan::host::cummin, scan::cuda::cummin),
    (sort::host::sort, sort::cuda::sort),
    (sort::host::argsort, sort::cuda::argsort),
    (sort::host::sort_values, sort::cuda::sort_values),
    (sort::host::select::topk, sort::cuda::topk),
    (select::host::count, select::cuda::count),
    (select::host::nonzero, select::cuda::nonzero),
    (select::host::masked_select, select::cuda::masked_select),
    (select::host::masked_scatter, select::cuda::masked_scatter),
    (select::host::repeats_count, search::cuda::repeats_count),
    (select::host::repeats_fill, search::cuda::repeats_fill),
    (sort::host::select::kthvalue, sort::cuda::kthvalue),
    (sort::host::select::median, sort::cuda::median),
    (sort::host::select::nanmedian, sort::cuda::nanmedian),
    (sort::host::select::mode, sort::cuda::mode),
    (sort::host::unique::unique, sort::cuda::unique),
    (index::host::gather::scatter_reduce, index::cuda::scatter_reduce),
    (search::host::searchsorted, search::cuda::searchsorted),
    (search::host::bincount_size, search::cuda::bincount_size),
    (search::host::bincount, search::cuda::bincount),
    (search::host::histc, search::cuda::histc),
    (resample::pad::pad, resample::cuda::pad),
    (resample::pad::pad_grad, resample::cuda::pad_grad),
    (resample::host::interpolate, resample::cuda::interpolate),
    (resample::host::interpolate_grad, resample::cuda::interpolate_grad),
    (random::multinomial::multinomial, random::cuda::multinomial),
    (ctc::host::ctc_loss, ctc::cuda::ctc_loss),
    (ctc::host::ctc_loss_grad, ctc::cuda::ctc_loss_grad),
    (linalg::host::factor::cholesky, linalg::cuda::factor::cholesky),
    (linalg::host::factor::triangular_solve, linalg::cuda::factor::triangular_solve),
    (linalg::host::factor::solve, linalg::cuda::factor::solve),
    (linalg::host::factor::inv, linalg::cuda::factor::inv),
    (linalg::host::factor::det, linalg::cuda::factor::det),
    (linalg::host::factor::slogdet, linalg::cuda::factor::slogdet),
    (linalg::host::factor::lu, linalg::cuda::factor::lu),
    (linalg::host::householder::geqrf, linalg::cuda::householder::geqrf),
    (linalg::host::spectral::qr, linalg::cuda::householder::qr),
    (linalg::host::spectral::svdvals, linalg::cuda::jacobi::svdvals),
    (linalg::host::spectral::eigvalsh, linalg::cuda::jacobi::eigvalsh),
    (linalg::host::spectral::matrix_exp, linalg::cuda::matrix_exp::matrix_exp),
];

/// Every hand-written text, with every combination of types and numbers that launches use: for the compile test.
pub fn sources() -> Vec<&'static Source> {
    let mut all: Vec<&'static Source> = matmul::cuda::sources().collect();
    all.extend(copy::cuda::sources());
    all.extend(softmax::cuda::sources());
    all.extend(norm::cuda::sources());
    all.extend(loss::cuda::sources());
    all.extend(index::cuda::sources());
    all.extend(conv::cuda::sources());
    all.extend(copy::cuda_transpose::sources());
    all.extend(pool::cuda::sources());
    all.extend(attention::cuda::sources());
    all.extend(scan::cuda::sources());
    all.extend(sort::cuda::sources());
    all.extend(select::cuda::sources());
    all.extend(sort::cuda_unique::sources());
    all.extend(search::cuda::sources());
    all.extend(resample::cuda::sources());
    all.extend(random::cuda::sources());
    all.extend(ctc::cuda::sources());
    all.extend(linalg::cuda::factor::sources());
    all.extend(linalg::cuda::householder::sources());
    all.extend(linalg::cuda::matrix_exp::sources());
    all.extend(linalg::cuda::jacobi::sources());
    all.extend(cuda::gate::sources());
    all
}

/// The launch of a host kernel. Cost: a linear search; keep the answer with the plan.
pub fn entry(host: HostFn) -> Option<CudaFn> {
    ENTRIES.iter().find(|(other, _)| std::ptr::fn_addr_eq(*other, host)).map(|(_, cuda)| *cuda)
}
