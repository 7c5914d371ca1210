//! The host side of CUDA kernels: text, launches as data, and what families of kernels share.
//!
//! Knows neither a driver nor streams: a family of kernels calls a `Gpu` for launches, scratch memory and matrix
//! products; its implementation compiles, orders and runs them.

pub(crate) mod dense;
mod fault;
pub mod gate;
mod launch;
pub(crate) mod rows;
pub(crate) mod specialize;
mod text;

pub use fault::FaultSlot;
pub use launch::{
    ConvCall, ConvOrder, ConvPart, DecomposeCall, Decomposition, Gpu, GpuError, Hold, Launch, MatmulCall, Matrix,
    Param, RecurrentCall, RecurrentRoom, RecurrentTask, RightVectors, Source, Transform, TransformCall, TransformSide,
};
pub use text::{COMMON, OPTIONS, headers};

use super::abi::Call;

/// A kernel on a GPU: views of the call hold device addresses, `threads` and `faults` are not used.
///
/// `Err(GpuError::Unsupported)` is returned before anything was launched, so that the host kernel can run instead.
pub type CudaFn = fn(&Call<'_>, &mut dyn Gpu) -> Result<(), GpuError>;
