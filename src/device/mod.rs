//! Floor 1: where kernels run and memory comes from. Knows no operations, and of layouts only which bytes they cover
//! (`race`).

pub mod alarm;
pub mod cache;
pub mod clock;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod dlpack;
pub mod heap;
pub mod host_memory;
pub mod keyed;
pub mod lent;
pub mod metered;
pub mod planned_fault;
pub mod queues;
pub mod race;
pub mod signals;
pub mod simulated;
pub mod stop;
pub mod system_memory;
pub mod virtual_time;
