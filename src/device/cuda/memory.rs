//! Segments for the caching allocator: device memory (`cudaMalloc`), and pinned host memory (`cudaHostAlloc`).
//!
//! Slow: the driver's own calls cost up to 200 µs, so an allocator caches what it gets here.

use super::context::Context;
use super::error::{DriverError, driver};
use crate::device::cache::RawMemory;
use crate::device::{host_memory, system_memory};
use std::ptr::NonNull;

/// Pinned for every context, and mapped into the devices' addresses.
///
/// Not: write-combined (4). The host would read it at about 100 MB/s.
const PORTABLE_MAPPED: u32 = 1 | 2;

/// Memory of one device.
pub struct DeviceMemory {
    context: &'static Context,
    total: usize,
    failure: Option<DriverError>,
}

impl DeviceMemory {
    pub fn new(context: &'static Context) -> DeviceMemory {
        DeviceMemory { context, total: context.facts().memory_bytes, failure: None }
    }

    /// Why the last `reserve` failed, if the reason was not that memory ran out.
    pub fn take_failure(&mut self) -> Option<DriverError> {
        self.failure.take()
    }
}

impl RawMemory for DeviceMemory {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        let allocate = || {
            self.context.make_current()?;
            let mut address = 0;
            // SAFETY: the context is current; the call writes one address.
            self.context.note(unsafe { driver!(cuMemAlloc_v2(&mut address, bytes)) })?;
            Ok(address)
        };
        address_or_failure(allocate(), &mut self.failure)
    }

    fn release(&mut self, address: u64, _bytes: usize) {
        if self.context.make_current().is_err() {
            return;
        }
        // SAFETY: the address is one of `reserve`. An error could only be that of earlier work, which the next call
        // reports too, or that the process is ending.
        let _ = unsafe { driver!(cuMemFree_v2(address)) };
    }

    fn total(&self) -> usize {
        self.total
    }
}

/// Pinned host memory: copies to and from devices run at full speed and overlap with other work.
pub struct PinnedMemory {
    context: &'static Context,
    total: usize,
    failure: Option<DriverError>,
}

impl PinnedMemory {
    /// `context`: any; the memory serves all devices.
    pub fn new(context: &'static Context) -> PinnedMemory {
        PinnedMemory { context, total: host_memory::physical_bytes(), failure: None }
    }

    /// Why the last `reserve` failed, if the reason was not that memory ran out.
    pub fn take_failure(&mut self) -> Option<DriverError> {
        self.failure.take()
    }
}

impl RawMemory for PinnedMemory {
    /// The address is the host's.
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        if !system_memory::admit(bytes) {
            return None;
        }
        address_or_failure(pin(self.context, bytes).map(|address| address.as_ptr() as u64), &mut self.failure)
    }

    fn release(&mut self, address: u64, _bytes: usize) {
        unpin(self.context, address as *mut u8);
    }

    fn total(&self) -> usize {
        self.total
    }
}

/// The address; stores the error in `failure`, unless it is that memory ran out.
fn address_or_failure(result: Result<u64, DriverError>, failure: &mut Option<DriverError>) -> Option<u64> {
    match result {
        Ok(address) => Some(address),
        Err(error) => {
            *failure = (!error.is_out_of_memory()).then_some(error);
            None
        }
    }
}

fn pin(context: &Context, bytes: usize) -> Result<NonNull<u8>, DriverError> {
    context.make_current()?;
    let mut host = std::ptr::null_mut();
    // SAFETY: the context is current; the call writes one pointer.
    context.note(unsafe { driver!(cuMemHostAlloc(&mut host, bytes, PORTABLE_MAPPED)) })?;
    NonNull::new(host.cast()).ok_or(DriverError::refused("cuMemHostAlloc", "it returned no memory"))
}

fn unpin(context: &Context, host: *mut u8) {
    if context.make_current().is_err() {
        return;
    }
    // SAFETY: the pointer is one of `pin`, and nobody uses the memory any more. An error could only be that of
    // earlier work, which the next call reports too, or that the process is ending.
    let _ = unsafe { driver!(cuMemFreeHost(host.cast())) };
}

/// Mapped host memory in 8-byte words, which kernels write and the host polls: slots for errors. Cost: a poll is a
/// load, 0.3 ns while nothing changes.
pub struct Mapped {
    context: &'static Context,
    host: NonNull<u8>,
    device: u64,
    words: usize,
}

// SAFETY: the memory is only touched through volatile accesses, which may come from any thread.
unsafe impl Send for Mapped {}
// SAFETY: for `Sync` as for `Send`: the memory is only touched through volatile accesses, which may come from any
// thread.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// `words` words of 8 bytes, all 0.
    pub fn new(context: &'static Context, words: usize) -> Result<Mapped, DriverError> {
        let bytes = words.max(1).checked_mul(8).ok_or(DriverError::refused("cuMemHostAlloc", "too many bytes"))?;
        let host = pin(context, bytes)?;
        let mut mapped = Mapped { context, host, device: 0, words };
        // SAFETY: the memory has `bytes` bytes and is nobody else's; the second call writes one address.
        unsafe {
            host.as_ptr().write_bytes(0, bytes);
            context.note(driver!(cuMemHostGetDevicePointer_v2(&mut mapped.device, host.as_ptr().cast(), 0)))?;
        }
        Ok(mapped)
    }

    pub fn words(&self) -> usize {
        self.words
    }

    /// Device address of the first word.
    pub fn device_address(&self) -> u64 {
        self.device
    }

    /// Host address of the first word: for reading several words as one struct.
    pub fn host_address(&self) -> *mut u8 {
        self.host.as_ptr()
    }

    /// The current value of word `index`; a kernel's write is guaranteed to be visible once its stream has passed the
    /// kernel. Panics when there is no such word.
    pub fn read(&self, index: usize) -> u64 {
        assert!(index < self.words, "word {index} of {}", self.words);
        // SAFETY: the word exists and is aligned; volatile, because a device may write it.
        unsafe { self.host.as_ptr().cast::<u64>().add(index).read_volatile() }
    }

    /// Sets the word `index`; kernels that are launched later see it. Panics when there is no such word.
    pub fn write(&self, index: usize, value: u64) {
        assert!(index < self.words, "word {index} of {}", self.words);
        // SAFETY: the word exists and is aligned; volatile, because a device may read it.
        unsafe { self.host.as_ptr().cast::<u64>().add(index).write_volatile(value) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        unpin(self.context, self.host.as_ptr());
    }
}
