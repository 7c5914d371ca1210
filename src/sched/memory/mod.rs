//! Memory of a device as the runtime uses it: all requests are made here.

mod admission;
pub mod kernel_context;

pub use admission::PendingDemand;

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus};
use crate::base::span::{Origin, Site};
use crate::device::cache::{AllocError, Block, Cache, OutOfMemory, RawMemory, StreamPoint};
use crate::device::system_memory;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Segments of any device.
pub type Raw = Box<dyn RawMemory + Send>;

/// The caching allocator of one device, with the blocks of buffers.
pub struct Memory {
    cache: Cache<Raw>,
    /// By the number that a buffer keeps.
    blocks: Vec<Option<Block>>,
    vacant: Vec<u32>,
    room: Arc<Room>,
}

/// How much memory there is besides tensors, for code that must not wait for the allocator: kernels and their scratch
/// memory.
#[derive(Debug)]
pub struct Room {
    total: usize,
    tensors: AtomicUsize,
    scratch: AtomicUsize,
}

impl Room {
    /// Whether so many bytes may be used as scratch memory; they are counted until they are given back.
    pub fn admit(&self, bytes: usize) -> bool {
        let tensors = self.tensors.load(Ordering::Relaxed);
        let fits = |scratch: usize| {
            let after = scratch.checked_add(bytes)?;
            (after.saturating_add(tensors) <= self.total).then_some(after)
        };
        system_memory::admit(bytes) && self.scratch.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    pub fn give_back(&self, bytes: usize) {
        self.scratch.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether the session's limit, not the machine, determines the amount.
    pub fn is_limited_to(&self, limit: usize) -> bool {
        self.total >= limit
    }
}

/// An address and the number under which it is freed.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub address: usize,
    pub number: u64,
}

impl Memory {
    pub fn new(raw: Raw) -> Memory {
        let room = Room { total: raw.total(), tensors: AtomicUsize::new(0), scratch: AtomicUsize::new(0) };
        Memory { cache: Cache::new(raw), blocks: Vec::new(), vacant: Vec::new(), room: Arc::new(room) }
    }

    pub fn room(&self) -> Arc<Room> {
        self.room.clone()
    }

    /// Memory for work of a stream, without a new segment; none if there is none.
    pub fn take_cached(&mut self, bytes: usize, stream: u32, owner: u64) -> Option<Taken> {
        self.cache.alloc_cached(bytes, stream, owner).map(|block| self.keep(block))
    }

    /// Bytes that can still be requested, as far as is known.
    pub fn free_bytes(&self) -> usize {
        self.cache.raw().total().saturating_sub(self.allocated())
    }

    /// Memory for work of a stream. `wait` is called with points that must be passed first; false gives up.
    pub fn take(
        &mut self,
        bytes: usize,
        stream: u32,
        owner: u64,
        mut wait: impl FnMut(&[StreamPoint]) -> bool,
    ) -> Result<Taken, Box<OutOfMemory>> {
        loop {
            match self.cache.alloc(bytes, stream, owner) {
                Ok(block) => return Ok(self.keep(block)),
                Err(AllocError::OutOfMemory(report)) => return Err(report),
                Err(AllocError::Wait(points)) => {
                    if !wait(&points) {
                        return Err(Box::new(self.cache.out_of_memory(bytes)));
                    }
                    points.iter().for_each(|point| self.cache.release_ready(point.stream, point.sequence));
                }
            }
        }
    }

    /// Memory that is reserved and not counted as allocated; none if that needs a wait.
    pub fn take_reserved(&mut self, bytes: usize, stream: u32, owner: u64) -> Option<Taken> {
        self.cache.alloc_arena(bytes, stream, owner).ok().map(|block| self.keep(block))
    }

    /// Memory that was only reserved belongs to a tensor from now on, and is counted.
    pub fn count(&mut self, number: u64, owner: u64) {
        if let Some(Some(block)) = self.blocks.get(number as usize) {
            self.cache.count(block);
            self.cache.set_owner(block, owner);
        }
    }

    fn keep(&mut self, block: Block) -> Taken {
        let address = block.address() as usize;
        self.room.tensors.store(self.allocated(), Ordering::Relaxed);
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
        Taken { address, number: number as u64 }
    }

    pub fn give_back(&mut self, number: u64) {
        if let Some(block) = self.blocks[number as usize].take() {
            self.cache.free(block);
            self.room.tensors.store(self.allocated(), Ordering::Relaxed);
            self.vacant.push(number as u32);
        }
    }

    /// A stream other than the block's own uses it up to this point.
    pub fn record_use(&mut self, number: u64, stream: u32, sequence: u64) {
        if let Some(Some(block)) = self.blocks.get(number as usize) {
            self.cache.record_use(block, stream, sequence);
        }
    }

    pub fn allocated(&self) -> usize {
        self.cache.statistics().allocated_bytes[0].current as usize
    }

    pub fn cache(&mut self) -> &mut Cache<Raw> {
        &mut self.cache
    }
}

/// Bound: positions in the script that the report of out of memory names.
const HOLDERS: usize = 3;

/// The report of a request that found no memory. The position of the first label is filled in by the caller.
#[cold]
pub fn diagnose(report: &OutOfMemory, device: DeviceId, session_limit: usize) -> Box<Diag> {
    let asked = bytes_text(report.requested);
    let mut diag = if report.total < session_limit {
        Diag::error(code::OUT_OF_MEMORY, format!("out of memory on {device}: {asked} asked for"))
    } else {
        let text = format!("the session's limit of memory on {device} is reached: {asked} asked for");
        Diag::error(code::LIMIT_MEMORY, text)
    };
    let held: Vec<_> = report.held.iter().filter(|held| held.owner != 0).take(HOLDERS).collect();
    if !held.is_empty() {
        diag = diag.label(Origin::NONE, Focus::Expression, "this result does not fit");
    }
    for held in held {
        let tensors = if held.blocks == 1 { "a tensor".to_string() } else { format!("{} tensors", held.blocks) };
        let holds = if held.blocks == 1 { "holds" } else { "hold" };
        let text = format!("{tensors} made here {holds} {}", bytes_text(held.bytes));
        diag = diag.label(unpack(held.owner), Focus::Expression, text);
    }
    let limit = report.limit.map_or(String::new(), |limit| format!(", {} allowed", bytes_text(limit)));
    diag.note(format!(
        "{} in all{limit}, {} reserved, {} allocated, the largest free block has {}",
        bytes_text(report.total),
        bytes_text(report.reserved as usize),
        bytes_text(report.allocated as usize),
        bytes_text(report.largest_free)
    ))
}

/// There is no scratch memory for an operation.
#[cold]
pub fn no_scratch(name: &str, bytes: usize, is_limited: bool) -> Box<Diag> {
    let asked = bytes_text(bytes);
    match is_limited {
        true => {
            let text =
                format!("the session's limit of memory on cpu is reached: `{name}` needs {asked} beside its tensors");
            Diag::error(code::LIMIT_MEMORY, text)
        }
        false => {
            Diag::error(code::OUT_OF_MEMORY, format!("out of memory on cpu: `{name}` needs {asked} beside its tensors"))
        }
    }
}

/// The position that created a block's content.
pub fn unpack(owner: u64) -> Origin {
    Origin { user: Site((owner >> 32) as u32), inner: Site(owner as u32) }
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
