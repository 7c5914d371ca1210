//! CUDA kernels seen from the host: text, launches as data, and which of them stands beside which host kernel.
//!
//! Knows neither a driver nor streams: a family of kernels asks a `Gpu` for launches, scratch memory and
//! matrix products. Whoever implements it compiles, orders and runs them.

mod fault;
pub mod fused;
mod launch;
mod text;

pub use fault::FaultSlot;
pub use launch::{Activation, Epilogue, Gpu, GpuError, Launch, MatmulCall, Matrix, Param, Source};
pub use text::{HEADERS, OPTIONS};

use super::abi::{Call, HostFn};

/// A kernel on a GPU: views of the call hold device addresses, `threads` and `faults` are not used.
///
/// `Err(GpuError::Unsupported)` comes before anything was launched: the host kernel may stand in.
pub type CudaFn = fn(&Call<'_>, &mut dyn Gpu) -> Result<(), GpuError>;

/// Which launch stands beside which host kernel. What is missing runs through host memory.
pub static ENTRIES: &[(HostFn, CudaFn)] = &[];

/// The launch beside a host kernel. Cost: a walk through the list; keep the answer with the plan.
pub fn entry(host: HostFn) -> Option<CudaFn> {
    ENTRIES.iter().find(|(other, _)| std::ptr::fn_addr_eq(*other, host)).map(|(_, cuda)| *cuda)
}
