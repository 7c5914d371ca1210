//! The caching allocator: one design for every device, the host included.
//!
//! It keeps PyTorch's rules (`c10/cuda/CUDACachingAllocator.cpp`, described in its "CUDA semantics" notes):
//! sizes are rounded up to 512 bytes; requests of at most 1 MiB come from 2 MiB segments (the small pool),
//! requests under 10 MiB from 20 MiB segments, larger ones from segments rounded up to 2 MiB. The smallest
//! free block that fits is taken, of equal ones the lowest in address; what is left over is split off;
//! free neighbors are merged. Every stream has free lists of its own, and a block that other streams used
//! becomes free only when their work has passed.
//!
//! Pure bookkeeping: it asks a [`RawMemory`] for segments and never accesses their contents. It knows no tensor, no
//! event and no clock: the caller reports that a stream has passed a point ([`Cache::release_ready`]), and names the
//! owner of a block by an opaque number.

mod blocks;
mod growth;
mod report;
mod snapshot;
mod split;
mod stats;
#[cfg(test)]
mod tests;

use blocks::{Blocks, FreeList, Meta, NONE, State, Uses};
pub use report::OutOfMemory;
#[cfg(test)]
use snapshot::BlockState;
pub use snapshot::{BlockInfo, SegmentInfo};
pub use stats::{Pool, Statistics};

/// Every size is a multiple of this, in bytes.
pub const ROUND: usize = 512;
/// Requests up to this many bytes come from the small pool.
pub const SMALL_REQUEST: usize = 1 << 20;
/// Bytes of a segment of the small pool.
pub const SMALL_SEGMENT: usize = 2 << 20;
/// Requests of the large pool below this many bytes share segments of [`LARGE_SEGMENT`].
pub const LARGE_REQUEST: usize = 10 << 20;
/// Bytes of a shared segment of the large pool.
pub const LARGE_SEGMENT: usize = 20 << 20;
/// Larger segments are a multiple of this many bytes.
pub const ROUND_SEGMENT: usize = 2 << 20;

/// Address of a block of no bytes: not null and well aligned, so that an empty slice may be made of it.
const NO_BYTES: u64 = ROUND as u64;

/// Where segments come from: a driver, the host's `mmap`, a simulated device, a test.
pub trait RawMemory {
    /// Reserves `bytes` and returns their address, aligned to at least 512 bytes; `None` if there is not enough memory.
    fn reserve(&mut self, bytes: usize) -> Option<u64>;
    /// Releases a whole segment that `reserve` returned.
    fn release(&mut self, address: u64, bytes: usize);
    /// Bytes of the device.
    fn total(&self) -> usize;
    /// Bytes that can still be reserved, beside what other programs use, as far as is known.
    fn available(&self) -> usize {
        usize::MAX
    }
    /// Whether segments can grow and shrink in place.
    fn grows(&self) -> bool {
        false
    }
    /// Extends a segment of `bytes` by `more` bytes; false if there is not enough memory or address space.
    fn grow(&mut self, _address: u64, _bytes: usize, _more: usize) -> bool {
        false
    }
    /// Releases up to `max_bytes` bytes at the end of a segment of `bytes`, and returns how many.
    fn shrink(&mut self, _address: u64, _bytes: usize, _max_bytes: usize) -> usize {
        0
    }
}

impl<M: RawMemory + ?Sized> RawMemory for Box<M> {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        (**self).reserve(bytes)
    }
    fn release(&mut self, address: u64, bytes: usize) {
        (**self).release(address, bytes);
    }
    fn total(&self) -> usize {
        (**self).total()
    }
    fn available(&self) -> usize {
        (**self).available()
    }
    fn grows(&self) -> bool {
        (**self).grows()
    }
    fn grow(&mut self, address: u64, bytes: usize, more: usize) -> bool {
        (**self).grow(address, bytes, more)
    }
    fn shrink(&mut self, address: u64, bytes: usize, max_bytes: usize) -> usize {
        (**self).shrink(address, bytes, max_bytes)
    }
}

/// An allocated block. It cannot be copied, so it cannot be freed twice; without [`Cache::free`] its memory stays
/// allocated until the cache is dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    id: u32,
    address: u64,
    size: usize,
}

impl Block {
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes that may be used: the request rounded up, 0 for a request of 0.
    pub fn size_bytes(&self) -> usize {
        self.size
    }
}

/// A point of a stream: all its work up to and including this sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamPoint {
    pub stream: u32,
    pub sequence: u64,
}

/// Why there is no memory.
#[derive(Debug)]
pub enum AllocError {
    /// Freed blocks still wait for other streams: wait for these points, call [`Cache::release_ready`] for each, and
    /// try again.
    Wait(Vec<StreamPoint>),
    OutOfMemory(Box<OutOfMemory>),
}

/// How a block is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Allocated and active.
    Tensor,
    /// Reserved only, as if it were free: the scratch memory of plans.
    Arena,
}

/// The allocator of one device.
///
/// Streams are small dense numbers (each has two free lists for as long as the cache lives), and a stream's sequence
/// numbers only grow.
pub struct Cache<M: RawMemory> {
    raw: M,
    blocks: Blocks,
    /// By stream, then by pool.
    free: Vec<[FreeList; 2]>,
    /// By stream: freed blocks that wait for it.
    uses: Vec<Uses>,
    /// Freed blocks that wait for a stream.
    waiting: usize,
    limit: Option<usize>,
    /// The fraction that `limit` was computed from.
    fraction: f64,
    stats: Statistics,
}

/// The request rounded up; `None` on overflow.
fn round_request(bytes: usize) -> Option<usize> {
    let rounded = bytes.checked_next_multiple_of(ROUND)?.max(ROUND);
    (rounded <= isize::MAX as usize - ROUND_SEGMENT).then_some(rounded)
}

/// Bytes of the segment that is reserved for a rounded request.
fn segment_bytes(rounded: usize) -> usize {
    if rounded <= SMALL_REQUEST {
        SMALL_SEGMENT
    } else if rounded < LARGE_REQUEST {
        LARGE_SEGMENT
    } else {
        rounded.next_multiple_of(ROUND_SEGMENT)
    }
}

/// An upper bound of the bytes of segments that a request adds when it is one of many; all of them together need
/// [`SHARED_SEGMENTS_BYTES`] more. A small request shares a segment of which at least half is used, so it counts twice.
pub fn reserved_bytes_bound(bytes: usize) -> usize {
    match round_request(bytes) {
        Some(rounded) if rounded < LARGE_REQUEST => 2 * rounded,
        Some(rounded) => rounded.next_multiple_of(ROUND_SEGMENT),
        None => usize::MAX / 2,
    }
}

/// The two shared segments, one of each pool, that are not yet half used.
pub const SHARED_SEGMENTS_BYTES: usize = SMALL_SEGMENT + LARGE_SEGMENT;

impl<M: RawMemory> Cache<M> {
    pub fn new(raw: M) -> Cache<M> {
        Cache {
            raw,
            blocks: Blocks::default(),
            free: Vec::new(),
            uses: Vec::new(),
            waiting: 0,
            limit: None,
            fraction: 1.0,
            stats: Statistics::default(),
        }
    }

    pub fn raw(&self) -> &M {
        &self.raw
    }

    pub fn raw_mut(&mut self) -> &mut M {
        &mut self.raw
    }

    /// Memory for work of `stream`; `owner` comes back in snapshots and in the report of out of memory.
    ///
    /// A request of 0 bytes needs no memory, cannot fail and is not counted.
    /// Cost: 46 ns with its `free` when a block is cached and split off, 30 ns when it fits as it is, 130 to 160 ns
    /// between thousands of free blocks (EPYC Zen 5, other work beside it).
    pub fn alloc(&mut self, bytes: usize, stream: u32, owner: u64) -> Result<Block, AllocError> {
        self.take(bytes, stream, owner, Hold::Tensor)
    }

    /// As `alloc`, from blocks that are cached and free for this stream; `None` where a segment would have to be
    /// reserved.
    pub fn alloc_cached(&mut self, bytes: usize, stream: u32, owner: u64) -> Option<Block> {
        let rounded = round_request(bytes)?;
        let pool = if rounded <= SMALL_REQUEST { Pool::Small } else { Pool::Large };
        let fits = bytes == 0 || self.free.get(stream as usize)?[pool as usize].has(rounded);
        if fits { self.alloc(bytes, stream, owner).ok() } else { None }
    }

    /// Bytes of segments that can still be reserved, as far as is known.
    pub fn room(&self) -> usize {
        let total = self.limit.map_or(self.raw.total(), |limit| limit.min(self.raw.total()));
        total.saturating_sub(self.stats.reserved_bytes[0].current as usize).min(self.raw.available())
    }

    /// As `alloc`, but counted as reserved memory only: neither allocated nor active nor requested.
    pub fn alloc_arena(&mut self, bytes: usize, stream: u32, owner: u64) -> Result<Block, AllocError> {
        self.take(bytes, stream, owner, Hold::Arena)
    }

    fn take(&mut self, bytes: usize, stream: u32, owner: u64, hold: Hold) -> Result<Block, AllocError> {
        if bytes == 0 {
            return Ok(Block { id: NONE, address: NO_BYTES, size: 0 });
        }
        let Some(rounded) = round_request(bytes) else {
            return Err(AllocError::OutOfMemory(Box::new(self.out_of_memory(bytes))));
        };
        let pool = if rounded <= SMALL_REQUEST { Pool::Small } else { Pool::Large };
        if stream as usize >= self.free.len() {
            self.free.resize_with(stream as usize + 1, Default::default);
        }
        let id = match self.free[stream as usize][pool as usize].take_best_fit(rounded) {
            Some(id) => id,
            None => self.take_segment(bytes, rounded, stream, pool)?,
        };
        self.split(id, rounded);
        let meta = &mut self.blocks[id];
        (meta.requested, meta.owner) = (bytes, owner);
        let block = Block { id, address: meta.address, size: meta.size };
        match hold {
            Hold::Tensor => {
                meta.state = State::Held;
                self.stats.hold(pool, block.size, bytes);
            }
            Hold::Arena => {
                meta.state = State::Arena;
                if meta.is_split() {
                    self.stats.inactive_split(pool, 1, block.size as isize);
                }
            }
        }
        Ok(block)
    }

    /// A block of [`Cache::alloc_arena`] counts as allocated from now on.
    pub fn count(&mut self, block: &Block) {
        if block.id == NONE || self.blocks[block.id].state != State::Arena {
            return;
        }
        let meta = &mut self.blocks[block.id];
        meta.state = State::Held;
        let (pool, size, requested, split) = (meta.pool, meta.size, meta.requested, meta.is_split());
        if split {
            self.stats.inactive_split(pool, -1, -(size as isize));
        }
        self.stats.hold(pool, size, requested);
    }

    /// Reserves a new segment, if necessary after all unused segments were released.
    #[cold]
    fn take_segment(&mut self, bytes: usize, rounded: usize, stream: u32, pool: Pool) -> Result<u32, AllocError> {
        let size = segment_bytes(rounded);
        if let Some(id) = self.grow(rounded, stream, pool).or_else(|| self.reserve(size, stream, pool)) {
            return Ok(id);
        }
        let points = self.awaited();
        if !points.is_empty() {
            return Err(AllocError::Wait(points));
        }
        self.empty_cache();
        self.stats.num_alloc_retries += 1;
        let found = self.grow(rounded, stream, pool).or_else(|| self.reserve(size, stream, pool));
        found.ok_or_else(|| AllocError::OutOfMemory(Box::new(self.out_of_memory(bytes))))
    }

    fn reserve(&mut self, size: usize, stream: u32, pool: Pool) -> Option<u32> {
        let reserved = self.stats.reserved_bytes[0].current as usize;
        if self.limit.is_some_and(|limit| reserved.saturating_add(size) > limit) {
            return None;
        }
        let address = self.raw.reserve(size)?;
        self.stats.reserve(pool, size);
        Some(self.blocks.insert(Meta::free(address, size, stream, pool)))
    }

    /// Frees a block. If other streams used it, it becomes available when they have passed these uses.
    pub fn free(&mut self, block: Block) {
        if block.id == NONE {
            return;
        }
        let meta = &mut self.blocks[block.id];
        let (pool, size) = (meta.pool, meta.size);
        if meta.state == State::Arena {
            if meta.is_split() {
                self.stats.inactive_split(pool, -1, -(size as isize));
            }
        } else {
            self.stats.unhold(pool, size);
        }
        if self.blocks[block.id].uses.is_empty() || !self.defer(block.id) {
            self.settle(block.id);
        }
    }

    /// Queues a freed block behind the uses that have not passed; false when all have.
    fn defer(&mut self, id: u32) -> bool {
        let points = std::mem::take(&mut self.blocks[id].uses);
        let mut pending = 0;
        for point in points {
            let uses = &mut self.uses[point.stream as usize];
            if uses.wait(point.sequence, id) {
                pending += 1;
            }
        }
        let meta = &mut self.blocks[id];
        if pending == 0 {
            return false;
        }
        if meta.state == State::Arena {
            // While it waits it counts as active.
            self.stats.activate(meta.pool, meta.size, meta.requested);
        }
        meta.state = State::Awaiting;
        meta.pending = pending;
        self.waiting += 1;
        true
    }

    /// Makes a block free and merges it with its free neighbors.
    fn settle(&mut self, id: u32) {
        let Meta { pool, stream, size, requested, state, .. } = self.blocks[id];
        let (mut count, mut bytes) = (0isize, 0isize);
        let free = &mut self.free[stream as usize][pool as usize];
        let mut id = id;
        for neighbor in [self.blocks[id].prev, self.blocks[id].next] {
            if neighbor != NONE && self.blocks[neighbor].state == State::Free {
                let other = &self.blocks[neighbor];
                free.remove((other.size, other.address, neighbor));
                count -= 1;
                bytes -= other.size as isize;
                id = self.blocks.merge(id, neighbor);
            }
        }
        let meta = &mut self.blocks[id];
        let was_arena = state == State::Arena;
        (meta.state, meta.requested, meta.owner) = (State::Free, 0, 0);
        free.insert((meta.size, meta.address, id));
        if meta.is_split() {
            count += 1;
            bytes += meta.size as isize;
        }
        if !was_arena {
            self.stats.deactivate(pool, size, requested);
        }
        self.stats.inactive_split(pool, count, bytes);
    }

    /// Records that `stream` uses the block up to this sequence number of its own; uses on the block's own stream are
    /// in order anyway. PyTorch's `record_stream` is this with the current end of the stream.
    pub fn record_use(&mut self, block: &Block, stream: u32, sequence: u64) {
        if block.id == NONE || self.blocks[block.id].stream == stream {
            return;
        }
        if stream as usize >= self.uses.len() {
            self.uses.resize_with(stream as usize + 1, Uses::default);
        }
        let uses = &mut self.blocks[block.id].uses;
        match uses.iter_mut().find(|point| point.stream == stream) {
            Some(point) => point.sequence = point.sequence.max(sequence),
            None => uses.push(StreamPoint { stream, sequence }),
        }
    }

    /// All work of `stream` up to `sequence` is done: blocks that waited only for that become free.
    pub fn release_ready(&mut self, stream: u32, sequence: u64) {
        if stream as usize >= self.uses.len() {
            self.uses.resize_with(stream as usize + 1, Uses::default);
        }
        while let Some(id) = self.uses[stream as usize].pass(sequence) {
            let meta = &mut self.blocks[id];
            meta.pending -= 1;
            if meta.pending == 0 {
                self.waiting -= 1;
                self.settle(id);
            }
        }
    }

    /// The points that freed blocks wait for, the latest of each stream.
    pub fn awaited(&self) -> Vec<StreamPoint> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let last = |(stream, uses): (usize, &Uses)| {
            uses.last().map(|sequence| StreamPoint { stream: stream as u32, sequence })
        };
        self.uses.iter().enumerate().filter_map(last).collect()
    }

    /// Releases every segment that has no block in use. To include blocks that wait for streams, wait for
    /// [`Cache::awaited`] first.
    pub fn empty_cache(&mut self) {
        self.stats.num_sync_all_streams += 1;
        for lists in &mut self.free {
            for (list, pool) in lists.iter_mut().zip([Pool::Small, Pool::Large]) {
                for key in list.take_where(|&(_, _, id)| !self.blocks[id].is_split()) {
                    let (size, address, id) = key;
                    self.blocks.remove(id);
                    self.raw.release(address, size);
                    self.stats.release(pool, size);
                }
            }
        }
        self.shrink();
    }

    /// At most this fraction of the device's memory may be reserved; `None` for no limit. Precondition: 0 to 1; the
    /// caller checks it.
    pub fn set_memory_fraction(&mut self, fraction: Option<f64>) {
        self.fraction = fraction.unwrap_or(1.0);
        self.limit = fraction.map(|fraction| (fraction * self.raw.total() as f64) as usize);
    }

    /// The fraction of the device's memory that may be reserved; 1 unless it was set.
    pub fn memory_fraction(&self) -> f64 {
        self.fraction
    }

    /// Changes the owner of the block.
    pub fn set_owner(&mut self, block: &Block, owner: u64) {
        if block.id != NONE {
            self.blocks[block.id].owner = owner;
        }
    }

    pub fn statistics(&self) -> &Statistics {
        &self.stats
    }

    /// Peaks restart from the current values.
    pub fn reset_peaks(&mut self) {
        self.stats.reset_peaks();
    }

    /// The sums of allocated and freed bytes, and the counts of retries and failures, restart from 0.
    pub fn reset_accumulated(&mut self) {
        self.stats.reset_accumulated();
    }
}

impl<M: RawMemory> Drop for Cache<M> {
    /// Not: leaking segments whose blocks are still allocated; no block may be used after its device's cache is
    /// dropped.
    fn drop(&mut self) {
        for segment in self.snapshot() {
            self.raw.release(segment.address, segment.total_size);
        }
    }
}
