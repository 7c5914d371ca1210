//! Segments that grow and shrink at their end, for memory that can (`expandable_segments` of PyTorch).
//!
//! A stream then has one segment of each pool, and a large request takes what is free at its end and some more,
//! where it would otherwise need a new segment beside free ones that are all too small.

use super::blocks::{Blocks, Meta, NONE, State};
use super::{Cache, Pool, ROUND_SEGMENT, RawMemory, segment_bytes};

/// The end of a segment.
struct Tail {
    id: u32,
    /// Of the segment.
    address: u64,
    bytes: usize,
}

impl<M: RawMemory> Cache<M> {
    /// Makes room for a rounded request at the end of a segment: a block that is in no free list.
    /// Cost: a walk over all blocks, where a new segment would cost the driver's 200 µs.
    pub(super) fn grow(&mut self, rounded: usize, stream: u32, pool: Pool) -> Option<u32> {
        if !self.raw.grows() {
            return None;
        }
        for tail in tails(&self.blocks, |meta| meta.stream == stream && meta.pool == pool) {
            let last = &self.blocks[tail.id];
            let free = if last.state == State::Free { last.size } else { 0 };
            // A tail that were large enough would have been taken.
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

    /// The free block at the end of a segment that has `more` bytes more.
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
            // It was its whole segment; arenas count as free parts of one.
            self.stats.inactive_split(pool, 1, size as isize);
        }
        id
    }

    /// Gives back what is free at the ends of segments that are in use.
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

/// The ends of segments, where the last block is as wanted.
fn tails(blocks: &Blocks, wanted: impl Fn(&Meta) -> bool) -> Vec<Tail> {
    let last = blocks.iter().filter(|(_, meta)| meta.next == NONE && wanted(meta));
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
