//! The one place of this floor that touches memory of tensors: kernels are called and bytes are copied here.
//!
//! Invariant (whoever calls): every view and span lies in memory that is kept until the call has ended; nobody
//! else writes what is read or touches what is written, since the planner, the queues and the waits of the
//! host order conflicting work. Where a script leaves two streams unordered the contents are the script's risk,
//! which the race detector tells; the memory stays valid.

use super::runtime::threads;
use crate::kernel::abi::{Call, Faults, HostFn, RawView};
use crate::kernel::cpu::fused;
use crate::kernel::program::Program;

/// Bytes at an address.
pub struct Span(*mut u8, usize);

// SAFETY: an address and a length; see the invariant of this file.
unsafe impl Send for Span {}

impl Span {
    pub fn new(address: *mut u8, bytes: usize) -> Span {
        Span(address, bytes)
    }

    /// The bytes as they are now.
    pub fn read(&self) -> Vec<u8> {
        // SAFETY: the invariant of this file.
        if self.1 == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(self.0, self.1) }.to_vec() }
    }

    /// Writes as many bytes as the span has.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(self.1, bytes.len(), "as many bytes as the span has");
        // SAFETY: the invariant of this file, and the lengths agree.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, self.1) };
    }

    /// Copies all bytes to another span of the same length in other memory.
    pub fn copy_to(&self, to: &Span) {
        assert_eq!(self.1, to.1, "spans of one length");
        // SAFETY: the invariant of this file; the two are memory of two buffers.
        unsafe { std::ptr::copy_nonoverlapping(self.0, to.0, self.1) };
    }
}

/// Runs a fused step on the host's cores.
pub fn run_fused(program: &Program, shape: &[usize], views: &[RawView], table: &[u64], faults: &[Faults]) {
    // SAFETY: the invariant of this file; the planner made the program for these views.
    unsafe { fused::run(program, shape, views, table, threads(), faults) };
}

/// Runs a kernel on the host's cores.
pub fn run_kernel(host: HostFn, call: &Call<'_>) {
    // SAFETY: the invariant of this file; the row that named the kernel gave it the views that it takes.
    unsafe { host(call) };
}
