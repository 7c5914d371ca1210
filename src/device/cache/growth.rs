//! Segments that grow and shrink at their end, for memory that can (`expandable_segments` of PyTorch).
//!
//! A stream then has one segment of each pool. A large request takes the free block at its end and extends it, where it
//! would otherwise need a new segment although free ones exist that are each too small.

use super::blocks::{Blocks, Meta, NONE, State};
use super::{Cache, Pool, ROUND_SEGMENT, RawMemory, segment_bytes};

/// The end of a segment.
struct Tail {
    id: u32,
    /// Address of the segment.
    address: u64,
    bytes: usize,
}

impl<M: RawMemory> Cache<M> {
    /// Extends a segment for a rounded request and returns a block at its end that is in no free list. Cost: a pass
    /// over all blocks; a new segment would cost 200 µs in the driver.
    pub(super) fn grow(&mut self, rounded: usize, stream: u32, pool: Pool) -> Option<u32> {
        if !self.raw.grows() {
            return None;
        }
        for tail in tails(&self.blocks, |meta| meta.stream == stream && meta.pool == pool) {
            let last = &self.blocks[tail.id];
            let free = if last.state == State::Free { last.size } else { 0 };
            // The free tail is too small, else `alloc` had taken it.
            let more = (segment_bytes(rounded).saturating_sub(free)).next_multiple_of(ROUND_SEGMENT);
            let reserved = self.stats.reserved_bytes[0].current as usize;
            if self.limit.is_some_and(|limit| reserved.saturating_add(more) > limit) {
                return None;
            }
            if self.raw.grow(tail.address, tail.bytes, more) {
                self.stats.change_reserved(pool, more as isize);
                return Some(self.append(&tail, more));
            }
        }
        None
    }

    /// Adds `more` bytes to the end of a segment; returns the free block there.
    fn append(&mut self, tail: &Tail, more: usize) -> u32 {
        let Meta { pool, stream, size, state, address, .. } = self.blocks[tail.id];
        let was_split = self.blocks[tail.id].is_split();
        if state == State::Free {
            self.free[stream as usize][pool as usize].remove((size, address, tail.id));
            self.blocks[tail.id].size += more;
            if was_split {
                self.stats.inactive_split(pool, 0, more as isize);
            }
            return tail.id;
        }
        let end = tail.address + tail.bytes as u64;
        let id = self.blocks.insert(Meta { prev: tail.id, ..Meta::free(end, more, stream, pool) });
        self.blocks[tail.id].next = id;
        self.stats.inactive_split(pool, 1, more as isize);
        if state == State::Arena && !was_split {
            // The block was its whole segment and is a part of it now; arenas count as free parts.
            self.stats.inactive_split(pool, 1, size as isize);
        }
        id
    }

    /// Releases the free ends of segments that are in use.
    pub(super) fn shrink(&mut self) {
        if !self.raw.grows() {
            return;
        }
        for tail in tails(&self.blocks, |meta| meta.state == State::Free && meta.prev != NONE) {
            let Meta { pool, stream, size, address, prev, .. } = self.blocks[tail.id];
            let less = self.raw.shrink(tail.address, tail.bytes, size);
            if less == 0 {
                continue;
            }
            self.stats.change_reserved(pool, -(less as isize));
            let free = &mut self.free[stream as usize][pool as usize];
            free.remove((size, address, tail.id));
            if less < size {
                self.blocks[tail.id].size -= less;
                free.insert((size - less, address, tail.id));
                self.stats.inactive_split(pool, 0, -(less as isize));
                continue;
            }
            self.stats.inactive_split(pool, -1, -(size as isize));
            self.blocks.remove(tail.id);
            let last = &mut self.blocks[prev];
            last.next = NONE;
            if last.state == State::Arena && !last.is_split() {
                self.stats.inactive_split(pool, -1, -(last.size as isize));
            }
        }
    }
}

/// The ends of the segments whose last block `pick` accepts.
fn tails(blocks: &Blocks, pick: impl Fn(&Meta) -> bool) -> Vec<Tail> {
    let last = blocks.iter().filter(|(_, meta)| meta.next == NONE && pick(meta));
    let tail = |(id, meta): (u32, &Meta)| {
        let mut head = id;
        while blocks[head].prev != NONE {
            head = blocks[head].prev;
        }
        let address = blocks[head].address;
        Tail { id, address, bytes: (meta.address - address) as usize + meta.size }
    };
    last.map(tail).collect()
}
