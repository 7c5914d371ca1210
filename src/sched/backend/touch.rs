//! The file in which this floor accesses memory of tensors: kernels are called and bytes are copied here, and in the
//! file of this name of each kind of devices.
//!
//! Invariant (of the callers): every view and span lies in memory that is kept until the call has ended; nothing else
//! writes what is read or accesses what is written, since the planner, the queues and the waits of the host order
//! conflicting work. Where a script leaves two streams unordered, the contents are unspecified, which the race
//! detector reports; the memory stays valid.

use crate::device::lent::Lent;
use crate::kernel::abi::{Call, Faults, HostFn, RawView};
use crate::kernel::detached;
use crate::kernel::fused::host as fused;
use crate::kernel::guard::{self, End};
use crate::kernel::program::Program;
use crate::op::tensor::View;
use crate::sched::memory::kernel_context::KernelContext;
use crate::sched::runtime::threads;
use std::any::Any;

/// Bytes at an address.
pub struct Span(pub(super) *mut u8, pub(super) usize);

// SAFETY: an address and a length; see the invariant of this file.
unsafe impl Send for Span {}

impl Span {
    pub fn new(address: *mut u8, bytes: usize) -> Span {
        Span(address, bytes)
    }

    /// The bytes as they are now.
    pub fn read(&self) -> Vec<u8> {
        // SAFETY: the host keeps the memory of a span until its work is done (the invariant of this file).
        if self.1 == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(self.0, self.1) }.to_vec() }
    }

    /// Writes as many bytes as the span has.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(self.1, bytes.len(), "as many bytes as the span has");
        // SAFETY: the invariant of this file, and the lengths agree.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, self.1) };
    }

    /// Copies rows of so many bytes, by index, one after another to a span in other memory.
    pub fn gather_rows(&self, row_bytes: usize, rows: &[usize], to: &Span) {
        assert_eq!(rows.len() * row_bytes, to.1, "as many rows as there is room for");
        if row_bytes == 0 {
            return;
        }
        for (n, &row) in rows.iter().enumerate() {
            assert!(row < self.1 / row_bytes, "a row that is there");
            // SAFETY: the invariant of this file; both ranges were checked.
            unsafe {
                let from = self.0.add(row * row_bytes);
                std::ptr::copy_nonoverlapping(from, to.0.add(n * row_bytes), row_bytes);
            }
        }
    }

    /// Copies all bytes to another span of the same length in other memory.
    pub fn copy_to(&self, to: &Span) {
        assert_eq!(self.1, to.1, "spans of one length");
        // SAFETY: the invariant of this file; the two are memory of two buffers.
        unsafe { std::ptr::copy_nonoverlapping(self.0, to.0, self.1) };
    }
}

/// Memory of a settled tensor on the host, for another library; `keeper` holds the tensor.
pub fn lend_out(view: &View, keeper: impl Any + Send + Sync) -> Lent {
    let bytes = view.buffer.size_bytes - view.layout.offset * view.dtype.size_bytes();
    // SAFETY: the keeper's handle keeps the memory. A script may write the contents later, which the documentation of
    // `to_dlpack` says.
    unsafe { Lent::new(view.ptr(), bytes, Box::new(keeper)) }
}

/// Runs a fused step on the host's cores; the error says why it did not finish.
pub fn run_fused(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    table: &[u64],
    faults: &[Faults],
    kernel_context: &KernelContext<'_>,
) -> Result<(), End> {
    // SAFETY: the invariant of this file; the planner made the program for these views.
    guard::under(kernel_context, || unsafe { fused::run(program, shape, views, table, threads(), faults) })
}

/// Runs a kernel on the host's cores; the error says why it did not finish.
pub fn run_kernel(host: HostFn, call: &Call<'_>, kernel_context: &KernelContext<'_>) -> Result<(), End> {
    // SAFETY: the invariant of this file; the row that named the kernel gave it the views that it takes.
    let done = guard::under(kernel_context, || unsafe { host(call) });
    if done != Err(End::Detach) {
        return done;
    }
    let bytes = detached::bytes(call);
    let lease = kernel_context.lease(bytes).ok_or(End::NoMemory(bytes))?;
    // SAFETY: the row named the kernel for the views of `call`, which nobody else uses (the invariant of this file);
    // nothing was written yet.
    unsafe { detached::run(host, call, kernel_context, Box::new(lease)) }
}

/// The same memory at a non-host address.
impl Span {
    pub fn address(&self) -> u64 {
        self.0 as u64
    }

    pub fn len(&self) -> usize {
        self.1
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.1 == 0
    }
}
