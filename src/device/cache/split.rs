//! Splitting: a block that is larger than a request gives the request its front, and the rest becomes a free block.
//! Neighbors are merged again in `blocks.rs`.

use super::blocks::{Meta, NONE};
use super::{Cache, Pool, ROUND, RawMemory, SMALL_REQUEST};

/// Whether a remainder of this size becomes a block: always in the small pool, above 1 MiB in the large one.
fn splits(pool: Pool, rest: usize) -> bool {
    match pool {
        Pool::Small => rest >= ROUND,
        Pool::Large => rest > SMALL_REQUEST,
    }
}

impl<M: RawMemory> Cache<M> {
    /// Splits a block that has just left its free list: the front serves the request, the rest becomes free.
    pub(super) fn split(&mut self, id: u32, rounded: usize) {
        let meta = &mut self.blocks[id];
        let (pool, stream, size, was_split) = (meta.pool, meta.stream, meta.size, meta.is_split());
        let rest = size - rounded;
        if splits(pool, rest) {
            let next = meta.next;
            meta.size = rounded;
            let address = meta.address + rounded as u64;
            let rest_id = self.blocks.insert(Meta { prev: id, next, ..Meta::free(address, rest, stream, pool) });
            self.blocks[id].next = rest_id;
            if next != NONE {
                self.blocks[next].prev = rest_id;
            }
            self.free[stream as usize][pool as usize].insert((rest, address, rest_id));
            if was_split {
                self.stats.inactive_split(pool, 0, -(rounded as isize));
            } else {
                self.stats.inactive_split(pool, 1, rest as isize);
            }
        } else if was_split {
            self.stats.inactive_split(pool, -1, -(size as isize));
        }
    }
}
