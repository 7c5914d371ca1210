//! Floor 1: arithmetic on raw memory. Knows neither operations nor devices: every kernel is testable with
//! a few slices.

pub mod abi;
pub mod apart;
pub mod cpu;
pub mod cuda;
pub mod guard;
pub mod program;
mod shared_work;
