//! The one place of this floor that touches memory of tensors: kernels are called and bytes are copied here.
//!
//! Invariant (whoever calls): every view and span lies in memory that is kept until the call has ended; nobody
//! else writes what is read or touches what is written, since the planner, the queues and the waits of the
//! host order conflicting work. Where a script leaves two streams unordered the contents are the script's risk,
//! which the race detector tells; the memory stays valid.

use crate::device::cuda::staging::Staging;
use crate::device::cuda::{DriverError, Function, Shape, Stream};
use crate::device::lent::Lent;
use crate::kernel::abi::{Call, Faults, HostFn, RawView};
use crate::kernel::apart;
use crate::kernel::fused::host as fused;
use crate::kernel::guard::{self, End};
use crate::kernel::program::Program;
use crate::op::tensor::View;
use crate::sched::fault::ward::Ward;
use crate::sched::runtime::threads;
use std::any::Any;

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

    /// Copies rows of so many bytes, by number, one after the other to another span in other memory.
    pub fn gather_rows(&self, row_bytes: usize, rows: &[usize], to: &Span) {
        assert_eq!(rows.len() * row_bytes, to.1, "as many rows as there is room for");
        if row_bytes == 0 {
            return;
        }
        for (n, &row) in rows.iter().enumerate() {
            assert!(row < self.1 / row_bytes, "a row that is there");
            // SAFETY: the invariant of this file; both places were checked.
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
    // SAFETY: the keeper's handle keeps the memory where it is. The contents belong to the script, which may write them
    // later: whoever takes the tensor was told.
    unsafe { Lent::new(view.ptr(), bytes, Box::new(keeper)) }
}

/// Runs a fused step on the host's cores; the error says why it did not come to its end.
pub fn run_fused(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    table: &[u64],
    faults: &[Faults],
    ward: &Ward<'_>,
) -> Result<(), End> {
    // SAFETY: the invariant of this file; the planner made the program for these views.
    guard::under(ward, || unsafe { fused::run(program, shape, views, table, threads(), faults) })
}

/// Runs a kernel on the host's cores; the error says why it did not come to its end.
pub fn run_kernel(host: HostFn, call: &Call<'_>, ward: &Ward<'_>) -> Result<(), End> {
    // SAFETY: the invariant of this file; the row that named the kernel gave it the views that it takes.
    let done = guard::under(ward, || unsafe { host(call) });
    if done != Err(End::Apart) {
        return done;
    }
    let bytes = apart::bytes(call);
    let lease = ward.lease(bytes).ok_or(End::NoMemory(bytes))?;
    // SAFETY: as above; nothing was written yet.
    unsafe { apart::run(host, call, ward, Box::new(lease)) }
}

/// The same memory when it is a GPU's.
impl Span {
    pub fn address(&self) -> u64 {
        self.0 as u64
    }

    pub fn len(&self) -> usize {
        self.1
    }

    pub fn is_empty(&self) -> bool {
        self.1 == 0
    }

    /// Queues a copy of memory of the host, which is read before this returns.
    pub fn stage_from_host(&self, stream: &Stream, from: &Span, staging: &mut Staging) -> Result<(), DriverError> {
        if self.1 == 0 {
            return Ok(());
        }
        // SAFETY: the invariant of this file.
        let bytes = unsafe { std::slice::from_raw_parts(from.0, from.1) };
        staging.upload(stream, self.address(), bytes)
    }

    /// The bytes of device memory, once the stream has passed what it has so far.
    pub fn fetch(&self, stream: &Stream, staging: &mut Staging) -> Result<Vec<u8>, DriverError> {
        let mut out = vec![0u8; self.1];
        staging.download(stream, &mut out, self.address())?;
        Ok(out)
    }

    /// Queues a copy of bytes of the host, which are read before this returns: they are not pinned.
    pub fn write_on_device(&self, stream: &Stream, bytes: &[u8]) -> Result<(), DriverError> {
        assert_eq!(self.1, bytes.len(), "as many bytes as the span has");
        // SAFETY: the driver stages memory that is not pinned before the call returns.
        unsafe { stream.copy_from_host(self.address(), bytes.as_ptr(), bytes.len()) }
    }

    /// Queues a copy from pinned host memory.
    pub fn fill_from_host(&self, stream: &Stream, from: &Span) -> Result<(), DriverError> {
        // SAFETY: the invariant of this file: the host's memory is kept, and waited for before it is written.
        unsafe { stream.copy_from_host(self.address(), from.0, self.1) }
    }

    /// Queues a copy to host memory.
    pub fn copy_to_host(&self, stream: &Stream, to: &Span) -> Result<(), DriverError> {
        // SAFETY: the invariant of this file: the host's memory is kept, and waited for before it is read.
        unsafe { stream.copy_to_host(to.0, self.address(), self.1) }
    }

    /// The bytes of device memory, once the stream has passed what it has so far.
    pub fn read_from_device(&self, stream: &Stream) -> Result<Vec<u8>, DriverError> {
        let mut out = vec![0u8; self.1];
        // SAFETY: the vector lives until the stream was waited for.
        unsafe { stream.copy_to_host(out.as_mut_ptr(), self.address(), self.1) }?;
        stream.wait()?;
        Ok(out)
    }
}

/// Queues a kernel with a pointer to each parameter.
pub fn launch(
    stream: &Stream,
    function: &Function,
    shape: &Shape,
    parameters: &mut [*mut std::ffi::c_void],
) -> Result<(), DriverError> {
    // SAFETY: whoever made the launch gave the parameters that its text declares; addresses among them are views
    // of the invariant of this file.
    unsafe { stream.launch(function, shape, parameters) }
}
