//! Launches kernels, without allocations, locks or queries. Does not know what they compute.

use super::error::{DriverError, driver};
use super::module::Function;
use super::stream::Stream;
use std::ffi::c_void;

/// The launch configuration: grid, block, shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks; none of them 0.
    pub grid: [u32; 3],
    /// Threads of a block; none of them 0.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in addition to what the kernel declares.
    pub shared_bytes: u32,
}

impl Shape {
    pub fn line(blocks: u32, threads: u32) -> Shape {
        Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }
}

impl Stream {
    /// Queues a kernel with a pointer to each of its parameters. They are read before this returns.
    /// Cost: 2.8 µs of the host's time.
    ///
    /// # Safety
    /// Each pointer is aligned for its parameter and has the bytes of [`Function::parameters`] behind it. Addresses
    /// among them must be valid for the accesses of the kernel until the stream has passed it.
    pub unsafe fn launch(
        &self,
        function: &Function,
        shape: &Shape,
        parameters: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        if parameters.len() != function.parameters().len() {
            return Err(DriverError::refused("cuLaunchKernel", "the kernel has another number of parameters"));
        }
        // SAFETY: the number is right, and the caller vouches for what the pointers point to.
        unsafe { self.start(function, shape, parameters.as_mut_ptr(), std::ptr::null_mut()) }
    }

    /// Queues a kernel with its parameters in one buffer, each at its offset of [`Function::parameters`]. They are read
    /// before this returns. The caller is responsible for device addresses among them.
    pub fn launch_packed(&self, function: &Function, shape: &Shape, parameters: &[u8]) -> Result<(), DriverError> {
        const BUFFER: *mut c_void = std::ptr::without_provenance_mut(1);
        const BUFFER_BYTES: *mut c_void = std::ptr::without_provenance_mut(2);
        const END: *mut c_void = std::ptr::null_mut();
        if parameters.len() != function.parameter_bytes() {
            return Err(DriverError::refused("cuLaunchKernel", "the kernel's parameters have another size"));
        }
        let mut bytes = parameters.len();
        let mut extra = [BUFFER, parameters.as_ptr() as *mut c_void, BUFFER_BYTES, (&raw mut bytes).cast(), END];
        // SAFETY: the list is as the driver defines it, and the buffer has the size that the kernel reads.
        unsafe { self.start(function, shape, std::ptr::null_mut(), extra.as_mut_ptr()) }
    }

    /// # Safety
    /// One of `parameters` and `extra` is as `cuLaunchKernel` requires it, the other null.
    unsafe fn start(
        &self,
        function: &Function,
        shape: &Shape,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<(), DriverError> {
        self.context().make_current()?;
        function.allow_shared(shape.shared_bytes)?;
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (handle, shared) = (function.handle(), shape.shared_bytes);
        // SAFETY: the handles are alive, and the caller vouches for the parameters.
        self.context().note(unsafe {
            driver!(cuLaunchKernel(handle, gx, gy, gz, bx, by, bz, shared, self.handle(), parameters, extra))
        })
    }
}
