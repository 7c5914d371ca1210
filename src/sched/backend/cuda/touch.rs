//! Copies between the host and an NVIDIA GPU, and launches: under the invariant of `backend/touch.rs`.

use crate::device::cuda::staging::Staging;
use crate::device::cuda::{DriverError, Function, Shape, Stream};
use crate::sched::backend::through_host::Remote;
use crate::sched::backend::touch::Span;

impl Span {
    /// Queues a copy of host memory, which is read before this returns.
    pub fn stage_from_host(&self, stream: &Stream, from: &Span, staging: &mut Staging) -> Result<(), DriverError> {
        if self.1 == 0 {
            return Ok(());
        }
        // SAFETY: the invariant of `backend/touch.rs`.
        let bytes = unsafe { std::slice::from_raw_parts(from.0, from.1) };
        staging.upload(stream, self.address(), bytes)
    }

    /// The bytes of device memory, after all work that the stream has so far.
    pub fn fetch(&self, stream: &Stream, staging: &mut Staging) -> Result<Vec<u8>, DriverError> {
        let mut out = vec![0u8; self.1];
        staging.download(stream, &mut out, self.address())?;
        Ok(out)
    }

    /// Queues a copy of host bytes, which are read before this returns: they are not pinned.
    pub fn write_on_device(&self, stream: &Stream, bytes: &[u8]) -> Result<(), DriverError> {
        assert_eq!(self.1, bytes.len(), "as many bytes as the span has");
        // SAFETY: the driver stages memory that is not pinned before the call returns.
        unsafe { stream.copy_from_host(self.address(), bytes.as_ptr(), bytes.len()) }
    }

    /// Queues a copy from pinned host memory.
    pub fn fill_from_host(&self, stream: &Stream, from: &Span) -> Result<(), DriverError> {
        // SAFETY: the invariant of `backend/touch.rs`: the host's memory is kept, and waited for before it is written.
        unsafe { stream.copy_from_host(self.address(), from.0, self.1) }
    }

    /// Queues a copy to host memory.
    pub fn copy_to_host(&self, stream: &Stream, to: &Span) -> Result<(), DriverError> {
        // SAFETY: the invariant of `backend/touch.rs`: the host's memory is kept, and waited for before it is read.
        unsafe { stream.copy_to_host(to.0, self.address(), self.1) }
    }

    /// The bytes of device memory, after all work that the stream has so far.
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
    // SAFETY: the caller passes the parameters that the kernel declares; addresses among them are views under the
    // invariant of `backend/touch.rs`.
    unsafe { stream.launch(function, shape, parameters) }
}

/// Memory of a GPU, copied on a stream. `fetch` waits.
pub(super) struct OnStream<'a>(pub &'a Stream);

impl Remote for OnStream<'_> {
    type Error = DriverError;

    fn fetch(&self, span: &Span) -> Result<Vec<u8>, DriverError> {
        span.read_from_device(self.0)
    }

    fn store(&self, span: &Span, bytes: &[u8]) -> Result<(), DriverError> {
        span.write_on_device(self.0, bytes)
    }

    fn wait(&self) -> Result<(), DriverError> {
        self.0.wait()
    }
}
