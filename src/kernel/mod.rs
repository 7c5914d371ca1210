//! Floor 1: arithmetic on raw memory. Knows neither operations nor devices: every kernel is testable with
//! a few slices.

pub mod abi;
pub mod attention;
pub mod conv;
pub mod copy;
pub mod ctc;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod custom;
pub mod detached;
pub mod elementwise;
pub mod family;
pub mod fft;
pub mod fused;
pub mod guard;
pub mod host;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod pool;
pub mod program;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod scan;
pub mod search;
pub mod select;
mod shared_work;
pub mod softmax;
pub mod sort;
pub mod structs;

use family::Family;

/// Every family of kernels that run as steps of their own.
pub static FAMILIES: &[&Family] = &[
    #[cfg(feature = "cuda")]
    &cuda::COMMON,
    #[cfg(feature = "cuda")]
    &cuda::gate::FAMILY,
    &attention::FAMILY,
    &conv::FAMILY,
    &copy::FAMILY,
    &ctc::FAMILY,
    &fft::FAMILY,
    &index::FAMILY,
    &linalg::FAMILY,
    &loss::FAMILY,
    &matmul::FAMILY,
    &norm::FAMILY,
    &pool::FAMILY,
    &random::FAMILY,
    &recurrent::FAMILY,
    &resample::FAMILY,
    &scan::FAMILY,
    &search::FAMILY,
    &select::FAMILY,
    &softmax::FAMILY,
    &sort::FAMILY,
];
