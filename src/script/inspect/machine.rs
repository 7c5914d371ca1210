//! The devices of the machine and the folders of what is compiled for them, for programs that list them. Starts nothing by itself.

#[cfg(feature = "cuda")]
pub use crate::device::cuda::driver::{Facts, Missing};
#[cfg(feature = "cuda")]
pub use crate::device::cuda::inventory::{Driver, Found, Inventory, inventory};
pub use crate::kernel::host::simd::{choice as vector_choice, name as vector_level, names_here as vector_levels};
pub use crate::sched::options::SIMULATED_BYTES;

/// The folder of compiled kernels, which need not exist; none if no variable of the environment says where it is.
#[cfg(feature = "cuda")]
pub fn kernel_cache() -> Option<std::path::PathBuf> {
    crate::device::cuda::kernel_cache::folder()
}
