//! Floor 1: arithmetic on raw memory. Knows neither operations nor devices: every kernel is testable with
//! a few slices.

pub mod abi;
pub mod apart;
pub mod attention;
pub mod conv;
pub mod copy;
pub mod ctc;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod elementwise;
pub mod fused;
pub mod guard;
pub mod host;
pub mod index;
#[cfg(feature = "cuda")]
pub mod launches;
pub mod linalg;
pub mod loss;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod pool;
pub mod program;
pub mod random;
pub mod reduce;
pub mod resample;
pub mod scan;
pub mod search;
pub mod select;
mod shared_work;
pub mod softmax;
pub mod sort;
