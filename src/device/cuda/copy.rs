//! Bytes between host and device, within a device and between devices, in the order of a stream.
//!
//! All of these only queue. Host memory that is not pinned goes through a staging buffer of the driver, which makes
//! the calling thread wait. Does not know what the bytes mean.

use super::context::Context;
use super::error::{DriverError, driver};
use super::stream::Stream;

impl Stream {
    /// Copies host memory to the device.
    ///
    /// # Safety
    /// `from` has `bytes` behind it that stay and do not change until the stream has passed the copy.
    pub unsafe fn copy_from_host(&self, to: u64, from: *const u8, bytes: usize) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        self.context().make_current()?;
        // SAFETY: the caller vouches for the host's side; the driver checks the device's.
        self.context().note(unsafe { driver!(cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, self.handle())) })
    }

    /// Copies device memory to the host.
    ///
    /// # Safety
    /// `to` has `bytes` behind it that stay and that nobody else touches until the stream has passed the copy.
    pub unsafe fn copy_to_host(&self, to: *mut u8, from: u64, bytes: usize) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        self.context().make_current()?;
        // SAFETY: the caller vouches for the host's side; the driver checks the device's.
        self.context().note(unsafe { driver!(cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.handle())) })
    }

    /// Copies within the device; the ranges do not overlap.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        self.context().make_current()?;
        // SAFETY: addresses of the device, which the driver checks.
        self.context().note(unsafe { driver!(cuMemcpyDtoDAsync_v2(to, from, bytes, self.handle())) })
    }

    /// Copies from the device of `source` to the device of `target`, directly if they are peers, through host memory
    /// otherwise. The stream is of one of both.
    pub fn copy_between(
        &self,
        (target, to): (&Context, u64),
        (source, from): (&Context, u64),
        bytes: usize,
    ) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        target.reach(source);
        source.reach(target);
        self.context().make_current()?;
        let (target, source) = (target.handle()?, source.handle()?);
        // SAFETY: both contexts live as long as the process; the driver checks the addresses.
        self.context().note(unsafe { driver!(cuMemcpyPeerAsync(to, target, from, source, bytes, self.handle())) })
    }

    /// Sets every byte.
    pub fn fill(&self, at: u64, byte: u8, bytes: usize) -> Result<(), DriverError> {
        if bytes == 0 {
            return Ok(());
        }
        self.context().make_current()?;
        // SAFETY: an address of the device, which the driver checks.
        self.context().note(unsafe { driver!(cuMemsetD8Async(at, byte, bytes, self.handle())) })
    }
}
