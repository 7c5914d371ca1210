//! Memory of a device, as the runtime asks for it: the one place where it is asked for (I8).

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::Diag;
use crate::device::cache::{AllocError, Block, Cache, OutOfMemory};
use crate::device::host_memory::{HostMemory, physical_bytes};

/// The caching allocator of the host, with the blocks that buffers hold.
pub struct Memory {
    cache: Cache<HostMemory>,
    /// By the number that a buffer keeps.
    blocks: Vec<Option<Block>>,
    vacant: Vec<u32>,
}

/// An address and the number under which it is given back.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub address: usize,
    pub number: u64,
}

impl Memory {
    /// `limit`: bytes that tensors may take; never more than the machine has.
    pub fn new(limit: usize) -> Memory {
        let total = limit.min(physical_bytes());
        Memory { cache: Cache::new(HostMemory::new(total)), blocks: Vec::new(), vacant: Vec::new() }
    }

    /// Bytes that can still be asked for without running out, as far as is known.
    pub fn free_bytes(&self) -> usize {
        let total = crate::device::cache::RawMemory::total(self.cache.raw());
        total.saturating_sub(self.allocated())
    }

    pub fn take(&mut self, bytes: usize, owner: u64) -> Result<Taken, Box<OutOfMemory>> {
        // One stream, whose work is over when a block comes back: nothing ever waits.
        let block = match self.cache.alloc(bytes, 0, owner) {
            Ok(block) => block,
            Err(AllocError::OutOfMemory(report)) => return Err(report),
            Err(AllocError::Wait(points)) => {
                points.iter().for_each(|point| self.cache.release_ready(point.stream, point.sequence));
                match self.cache.alloc(bytes, 0, owner) {
                    Ok(block) => block,
                    Err(AllocError::OutOfMemory(report)) => return Err(report),
                    Err(AllocError::Wait(_)) => return Err(Box::new(self.cache.out_of_memory(bytes))),
                }
            }
        };
        let address = block.address() as usize;
        let number = match self.vacant.pop() {
            Some(number) => {
                self.blocks[number as usize] = Some(block);
                number
            }
            None => {
                self.blocks.push(Some(block));
                self.blocks.len() as u32 - 1
            }
        };
        Ok(Taken { address, number: number as u64 })
    }

    pub fn give_back(&mut self, number: u64) {
        if let Some(block) = self.blocks[number as usize].take() {
            self.cache.free(block);
            self.vacant.push(number as u32);
        }
    }

    pub fn allocated(&self) -> usize {
        self.cache.statistics().allocated_bytes[0].current as usize
    }

    pub fn peak(&self) -> usize {
        self.cache.statistics().allocated_bytes[0].peak as usize
    }

    pub fn cache(&mut self) -> &mut Cache<HostMemory> {
        &mut self.cache
    }
}

/// The report of a request that found no memory.
#[cold]
pub fn diagnose(report: &OutOfMemory, device: DeviceId) -> Box<Diag> {
    Diag::error(code::OUT_OF_MEMORY, format!("out of memory on {device}: {} asked for", bytes_text(report.requested)))
        .note(format!(
            "{} in all, {} reserved, {} allocated, the largest free block has {}",
            bytes_text(report.total),
            bytes_text(report.reserved as usize),
            bytes_text(report.allocated as usize),
            bytes_text(report.largest_free)
        ))
}

/// `1.50 GiB`, `12 B`.
pub fn bytes_text(bytes: usize) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", UNITS[unit]) }
}
