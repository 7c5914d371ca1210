//! Reductions.

use super::fused::{Code, Given, Space};
use crate::kernel::abi::Threads;

/// # Safety
/// As `fused::run`.
pub(super) unsafe fn run(_code: &Code, _space: Space, _given: Given<'_>, _threads: &Threads) {}
