//! The devices of the machine, for programs that list them. Starts nothing by itself.

#[cfg(feature = "cuda")]
pub use crate::device::cuda::driver::{Facts, Missing};
#[cfg(feature = "cuda")]
pub use crate::device::cuda::inventory::{Driver, Found, Inventory, inventory};
pub use crate::sched::options::SIMULATED_BYTES;
