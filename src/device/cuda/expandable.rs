//! Expandable segments: a reserved range of addresses as large as the device, into which memory is mapped piece by piece
//! (CUDA's virtual memory management). An alternative to [`super::memory::DeviceMemory`].

use super::context::Context;
use super::driver::open;
use super::error::{DriverError, driver};
use crate::device::cache::{ROUND_SEGMENT, RawMemory};
use cudarc::driver::sys;
use std::collections::HashMap;

/// Memory of one device.
pub struct ExpandableMemory {
    context: &'static Context,
    granularity: usize,
    /// The devices that may access the memory: this one, and its peers.
    access: Vec<sys::CUmemAccessDesc>,
    ranges: HashMap<u64, Range>,
    failure: Option<DriverError>,
}

/// A segment: a range of addresses, the first of which are backed by memory.
struct Range {
    /// Bytes of the address range.
    address_bytes: usize,
    /// Handles of the physical memory in order of address, with their sizes.
    pieces: Vec<(sys::CUmemGenericAllocationHandle, usize)>,
}

impl Range {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.1).sum()
    }
}

impl ExpandableMemory {
    pub fn new(context: &'static Context) -> Result<ExpandableMemory, DriverError> {
        context.make_current()?;
        let index = context.facts().index;
        let mut granularity = 0;
        let option = sys::CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        let properties = properties(index);
        // SAFETY: the call reads the properties and writes one number.
        context.note(unsafe { driver!(cuMemGetAllocationGranularity(&mut granularity, &properties, option)) })?;
        if granularity == 0 || !ROUND_SEGMENT.is_multiple_of(granularity) {
            return Err(DriverError::refused("cuMemGetAllocationGranularity", "pieces are larger than segments"));
        }
        let reach = |own: &super::driver::Device| {
            let others = open().map(|driver| driver.devices()).unwrap_or_default().iter();
            let able = others.filter(|other| other.facts().index == index || other.can_access(own).unwrap_or(false));
            able.map(|other| access(other.facts().index)).collect()
        };
        let own = open().ok().and_then(|driver| driver.device(index as usize));
        let access = own.map_or_else(|| vec![access(index)], reach);
        Ok(ExpandableMemory { context, granularity: granularity.max(1), access, ranges: HashMap::new(), failure: None })
    }

    /// Why the last request failed, if the reason was not that memory ran out.
    pub fn take_failure(&mut self) -> Option<DriverError> {
        self.failure.take()
    }

    fn keep(&mut self, result: Result<(), DriverError>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) => {
                self.failure = (!error.is_out_of_memory()).then_some(error);
                false
            }
        }
    }

    /// Allocates physical memory and maps it at `at`.
    fn map(&self, at: u64, bytes: usize) -> Result<sys::CUmemGenericAllocationHandle, DriverError> {
        self.context.make_current()?;
        let properties = properties(self.context.facts().index);
        let mut piece = 0;
        // SAFETY: the call reads the properties and writes one handle.
        self.context.note(unsafe { driver!(cuMemCreate(&mut piece, bytes, &properties, 0)) })?;
        // SAFETY: the piece is ours and whole; the addresses are of a range of ours, and nothing is behind them.
        if let Err(error) = self.context.note(unsafe { driver!(cuMemMap(at, bytes, 0, piece, 0)) }) {
            // SAFETY: the piece was made above, and mapping it failed, so nothing refers to it.
            let _ = unsafe { driver!(cuMemRelease(piece)) };
            return Err(error);
        }
        let (list, count) = (self.access.as_ptr(), self.access.len());
        // SAFETY: the addresses are those just mapped; the list has `count` entries.
        if let Err(error) = self.context.note(unsafe { driver!(cuMemSetAccess(at, bytes, list, count)) }) {
            self.unmap(at, piece, bytes);
            return Err(error);
        }
        Ok(piece)
    }

    /// Unmaps and frees physical memory that no work uses any more.
    fn unmap(&self, at: u64, piece: sys::CUmemGenericAllocationHandle, bytes: usize) {
        // SAFETY: the piece is behind exactly these addresses, and nobody uses them. An error could only be that of
        // earlier work, which the next call reports too, or that the process is ending.
        unsafe {
            let _ = driver!(cuMemUnmap(at, bytes));
            let _ = driver!(cuMemRelease(piece));
        }
    }
}

impl RawMemory for ExpandableMemory {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        // More addresses than the device has memory, so that memory runs out first.
        let address_bytes = (self.total() + self.total() / 8).max(bytes).checked_next_multiple_of(self.granularity)?;
        let mut address = 0;
        let reserved = self.context.make_current().and_then(|()| {
            // SAFETY: the call writes one address; 0 leaves alignment and place to the driver.
            self.context.note(unsafe { driver!(cuMemAddressReserve(&mut address, address_bytes, 0, 0, 0)) })
        });
        if !self.keep(reserved) {
            return None;
        }
        self.ranges.insert(address, Range { address_bytes, pieces: Vec::new() });
        if !self.grow(address, 0, bytes) {
            self.release(address, 0);
            return None;
        }
        Some(address)
    }

    fn release(&mut self, address: u64, _bytes: usize) {
        let Some(range) = self.ranges.remove(&address) else { return };
        // Unlike freeing, unmapping does not wait for work that is under way.
        if self.context.wait_idle().is_err() {
            return;
        }
        let mut at = address;
        for (piece, bytes) in range.pieces {
            self.unmap(at, piece, bytes);
            at += bytes as u64;
        }
        // SAFETY: the range is one of `reserve`, and nothing is behind it any more.
        let _ = unsafe { driver!(cuMemAddressFree(address, range.address_bytes)) };
    }

    fn total(&self) -> usize {
        self.context.facts().memory_bytes
    }

    fn grows(&self) -> bool {
        true
    }

    /// Precondition: a multiple of the granularity (2 MiB), as the allocator's segments are.
    fn grow(&mut self, address: u64, _bytes: usize, more: usize) -> bool {
        let Some(range) = self.ranges.get(&address) else { return false };
        let (bytes, address_bytes) = (range.bytes(), range.address_bytes);
        if !more.is_multiple_of(self.granularity) || bytes.saturating_add(more) > address_bytes {
            return false;
        }
        let mapped = self.map(address + bytes as u64, more);
        match (mapped, self.ranges.get_mut(&address)) {
            (Ok(piece), Some(range)) => {
                range.pieces.push((piece, more));
                true
            }
            (mapped, _) => self.keep(mapped.map(|_| ())),
        }
    }

    /// Only whole handles can be unmapped.
    fn shrink(&mut self, address: u64, _bytes: usize, max_bytes: usize) -> usize {
        let Some(range) = self.ranges.get_mut(&address) else { return 0 };
        let (mut released, mut unmapped) = (0, Vec::new());
        while let Some(piece) = range.pieces.pop_if(|piece| released + piece.1 <= max_bytes) {
            released += piece.1;
            unmapped.push((piece, range.bytes()));
        }
        if unmapped.is_empty() || self.context.wait_idle().is_err() {
            return released;
        }
        for ((piece, bytes), before) in unmapped {
            self.unmap(address + before as u64, piece, bytes);
        }
        released
    }
}

impl Drop for ExpandableMemory {
    fn drop(&mut self) {
        let left: Vec<u64> = self.ranges.keys().copied().collect();
        left.into_iter().for_each(|address| self.release(address, 0));
    }
}

fn place(index: u32) -> sys::CUmemLocation {
    let type_ = sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE;
    sys::CUmemLocation { type_, id: index as i32 }
}

fn access(index: u32) -> sys::CUmemAccessDesc {
    let flags = sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    sys::CUmemAccessDesc { location: place(index), flags }
}

fn properties(index: u32) -> sys::CUmemAllocationProp {
    // SAFETY: all zeros is a value of this plain struct: no handle is exported, no flag set.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = place(index);
    properties
}
