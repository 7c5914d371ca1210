//! CUDA kernels seen from the host: text, launches as data, and which of them stands beside which host kernel.
//!
//! Knows neither a driver nor streams: a family of kernels asks a `Gpu` for launches, scratch memory and
//! matrix products. Whoever implements it compiles, orders and runs them.

mod arrange;
mod attention;
mod attention_mma;
mod conv;
mod ctc;
mod dense;
mod exponential;
mod factor;
mod family;
mod fault;
mod find;
pub mod fused;
pub mod gate;
mod index;
mod jacobi;
mod launch;
mod loss;
pub mod matmul;
mod norm;
mod panels;
mod pool;
mod reflect;
mod resample;
mod rows;
mod sample;
mod scan;
mod select;
mod slices;
mod softmax;
mod sort;
mod text;
mod turn;

pub use fault::FaultSlot;
pub use launch::{
    Activation, ConvCall, ConvOrder, ConvPart, Epilogue, Gpu, GpuError, Launch, MatmulCall, Matrix, Param, Source,
};
pub use text::{HEADERS, OPTIONS};

use super::abi::{Call, HostFn};
use super::cpu;

/// A kernel on a GPU: views of the call hold device addresses, `threads` and `faults` are not used.
///
/// `Err(GpuError::Unsupported)` comes before anything was launched: the host kernel may stand in.
pub type CudaFn = fn(&Call<'_>, &mut dyn Gpu) -> Result<(), GpuError>;

/// Which launch stands beside which host kernel. What is missing runs through host memory.
pub static ENTRIES: &[(HostFn, CudaFn)] = &[
    (cpu::copy::copy, arrange::copy),
    (cpu::copy::fill, arrange::fill),
    (cpu::copy::arrange::cat, arrange::cat),
    (cpu::copy::arrange::repeat, arrange::repeat),
    (cpu::copy::arrange::repeat_interleave, arrange::repeat_interleave),
    (cpu::copy::arrange::flip, arrange::flip),
    (cpu::copy::arrange::roll, arrange::roll),
    (cpu::copy::arrange::diag_embed, arrange::diag_embed),
    (cpu::copy::arrange::tril, arrange::tril),
    (cpu::copy::arrange::triu, arrange::triu),
    (cpu::copy::pad::pad_constant, arrange::pad_constant),
    (cpu::copy::strided_add::strided_add, arrange::strided_add),
    (cpu::matmul::matmul, matmul::matmul),
    (cpu::matmul::linear, matmul::linear),
    (cpu::norm::softmax::softmax, softmax::softmax),
    (cpu::norm::softmax::log_softmax, softmax::log_softmax),
    (cpu::norm::softmax::softmax_grad, softmax::softmax_grad),
    (cpu::norm::softmax::log_softmax_grad, softmax::log_softmax_grad),
    (cpu::norm::layer::layer_norm, norm::layer_norm),
    (cpu::norm::layer::group_norm, norm::group_norm),
    (cpu::norm::layer::rms_norm, norm::rms_norm),
    (cpu::norm::layer::layer_norm_grad, norm::layer_norm_grad),
    (cpu::norm::layer::group_norm_grad, norm::group_norm_grad),
    (cpu::norm::layer::rms_norm_grad, norm::rms_norm_grad),
    (cpu::norm::batch::batch_norm_train, norm::batch_norm_train),
    (cpu::norm::batch::batch_norm_eval, norm::batch_norm_eval),
    (cpu::norm::batch::batch_norm_grad, norm::batch_norm_grad),
    (cpu::loss::cross_entropy, loss::cross_entropy),
    (cpu::loss::cross_entropy_grad, loss::cross_entropy_grad),
    (cpu::loss::nll, loss::nll),
    (cpu::loss::nll_grad, loss::nll_grad),
    (cpu::index::index_get, index::index_get),
    (cpu::index::index_put, index::index_put),
    (cpu::index::take, index::take),
    (cpu::index::put, index::put),
    (cpu::index::rows::index_select, index::index_select),
    (cpu::index::rows::index_add, index::index_add),
    (cpu::index::rows::index_copy, index::index_copy),
    (cpu::index::rows::index_fill, index::index_fill),
    (cpu::index::rows::embedding, index::embedding),
    (cpu::index::rows::embedding_grad, index::embedding_grad),
    (cpu::index::rows::one_hot, index::one_hot),
    (cpu::index::gather::gather, index::gather),
    (cpu::index::gather::scatter, index::scatter),
    (cpu::index::gather::scatter_add, index::scatter_add),
    (cpu::conv::conv_forward, conv::conv_forward),
    (cpu::conv::conv_grad_input, conv::conv_grad_input),
    (cpu::conv::conv_grad_weight, conv::conv_grad_weight),
    (cpu::pool::max_pool, pool::max_pool),
    (cpu::pool::adaptive_max_pool, pool::adaptive_max_pool),
    (cpu::pool::max_pool_grad, pool::max_pool_grad),
    (cpu::pool::avg_pool, pool::avg_pool),
    (cpu::pool::adaptive_avg_pool, pool::adaptive_avg_pool),
    (cpu::pool::avg_pool_grad, pool::avg_pool_grad),
    (cpu::pool::adaptive_avg_pool_grad, pool::adaptive_avg_pool_grad),
    (cpu::attention::attention, attention::attention),
    (cpu::attention::attention_grad, attention::attention_grad),
    (cpu::scan::cumsum, scan::cumsum),
    (cpu::scan::cumprod, scan::cumprod),
    (cpu::scan::logcumsumexp, scan::logcumsumexp),
    (cpu::scan::cummax, scan::cummax),
    (cpu::scan::cummin, scan::cummin),
    (cpu::sort::sort, sort::sort),
    (cpu::sort::argsort, sort::argsort),
    (cpu::sort::sort_values, sort::sort_values),
    (cpu::sort::pick::topk, sort::topk),
    (cpu::select::count, select::count),
    (cpu::select::nonzero, select::nonzero),
    (cpu::select::masked_select, select::masked_select),
    (cpu::select::masked_scatter, select::masked_scatter),
    (cpu::select::repeats_count, find::repeats_count),
    (cpu::select::repeats_fill, find::repeats_fill),
    (cpu::sort::pick::kthvalue, sort::kthvalue),
    (cpu::sort::pick::median, sort::median),
    (cpu::sort::pick::nanmedian, sort::nanmedian),
    (cpu::sort::pick::mode, sort::mode),
    (cpu::sort::unique::unique, sort::unique),
    (cpu::index::gather::scatter_reduce, index::scatter_reduce),
    (cpu::index::count::searchsorted, find::searchsorted),
    (cpu::index::count::bincount_size, find::bincount_size),
    (cpu::index::count::bincount, find::bincount),
    (cpu::index::count::histc, find::histc),
    (cpu::copy::pad::pad, resample::pad),
    (cpu::copy::pad::pad_grad, resample::pad_grad),
    (cpu::pool::resample::interpolate, resample::interpolate),
    (cpu::pool::resample::interpolate_grad, resample::interpolate_grad),
    (cpu::sampling::multinomial, sample::multinomial),
    (cpu::ctc::ctc_loss, ctc::ctc_loss),
    (cpu::ctc::ctc_loss_grad, ctc::ctc_loss_grad),
    (cpu::decompose::factor::cholesky, factor::cholesky),
    (cpu::decompose::factor::triangular_solve, factor::triangular_solve),
    (cpu::decompose::factor::solve, factor::solve),
    (cpu::decompose::factor::inv, factor::inv),
    (cpu::decompose::factor::det, factor::det),
    (cpu::decompose::factor::slogdet, factor::slogdet),
    (cpu::decompose::factor::lu, factor::lu),
    (cpu::decompose::householder::geqrf, reflect::geqrf),
    (cpu::decompose::spectral::qr, reflect::qr),
    (cpu::decompose::spectral::svdvals, jacobi::svdvals),
    (cpu::decompose::spectral::eigvalsh, jacobi::eigvalsh),
    (cpu::decompose::spectral::matrix_exp, exponential::matrix_exp),
];

/// Every hand-written text, specialised in each way that launches ask for: what a compile test goes over.
pub fn sources() -> Vec<&'static Source> {
    let mut all: Vec<&'static Source> = matmul::sources().collect();
    all.extend(arrange::sources());
    all.extend(softmax::sources());
    all.extend(norm::sources());
    all.extend(loss::sources());
    all.extend(index::sources());
    all.extend(conv::sources());
    all.extend(turn::sources());
    all.extend(pool::sources());
    all.extend(attention::sources());
    all.extend(scan::sources());
    all.extend(sort::sources());
    all.extend(select::sources());
    all.extend(slices::sources());
    all.extend(find::sources());
    all.extend(resample::sources());
    all.extend(sample::sources());
    all.extend(ctc::sources());
    all.extend(factor::sources());
    all.extend(reflect::sources());
    all.extend(exponential::sources());
    all.extend(jacobi::sources());
    all.extend(gate::sources());
    all
}

/// The launch beside a host kernel. Cost: a walk through the list; keep the answer with the plan.
pub fn entry(host: HostFn) -> Option<CudaFn> {
    ENTRIES.iter().find(|(other, _)| std::ptr::fn_addr_eq(*other, host)).map(|(_, cuda)| *cuda)
}
