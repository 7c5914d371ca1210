//! Blocks of segments, free lists, and queues of blocks that wait for a stream.

use super::{Pool, StreamPoint};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::{Index, IndexMut};

/// No block.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Held,
    Arena,
    /// Freed by its owner; other streams may still use it.
    Awaiting,
    /// The entry is vacant.
    Vacant,
}

/// One block. Blocks of a segment are linked in order of address.
pub(super) struct Meta {
    pub address: u64,
    pub size: usize,
    pub requested: usize,
    pub owner: u64,
    pub prev: u32,
    pub next: u32,
    pub stream: u32,
    /// Streams that a block in state `Awaiting` still waits for.
    pub pending: u32,
    pub pool: Pool,
    pub state: State,
    pub uses: Vec<StreamPoint>,
}

impl Meta {
    pub fn free(address: u64, size: usize, stream: u32, pool: Pool) -> Meta {
        Meta {
            address,
            size,
            requested: 0,
            owner: 0,
            prev: NONE,
            next: NONE,
            stream,
            pending: 0,
            pool,
            state: State::Free,
            uses: Vec::new(),
        }
    }

    /// Whether it is only a part of its segment.
    pub fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// All blocks, by number; numbers of removed blocks are used again.
#[derive(Default)]
pub(super) struct Blocks {
    all: Vec<Meta>,
    vacant: Vec<u32>,
}

impl Index<u32> for Blocks {
    type Output = Meta;
    fn index(&self, id: u32) -> &Meta {
        &self.all[id as usize]
    }
}

impl IndexMut<u32> for Blocks {
    fn index_mut(&mut self, id: u32) -> &mut Meta {
        &mut self.all[id as usize]
    }
}

impl Blocks {
    pub fn insert(&mut self, meta: Meta) -> u32 {
        if let Some(id) = self.vacant.pop() {
            self.all[id as usize] = meta;
            return id;
        }
        self.all.push(meta);
        (self.all.len() - 1) as u32
    }

    pub fn remove(&mut self, id: u32) {
        self[id].state = State::Vacant;
        self.vacant.push(id);
    }

    /// Merges the block `removed` into its neighbor `into`, which takes the lower address; returns `into`.
    pub fn merge(&mut self, into: u32, removed: u32) -> u32 {
        let (address, size) = (self[removed].address, self[removed].size);
        let before = self[into].prev == removed;
        let outer = if before { self[removed].prev } else { self[removed].next };
        self[into].size += size;
        if before {
            self[into].address = address;
            self[into].prev = outer;
        } else {
            self[into].next = outer;
        }
        if outer != NONE {
            let link = &mut self[outer];
            if before {
                link.next = into;
            } else {
                link.prev = into;
            }
        }
        self.remove(removed);
        into
    }

    /// Blocks that exist, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Meta)> {
        self.all.iter().enumerate().filter(|(_, meta)| meta.state != State::Vacant).map(|(id, meta)| (id as u32, meta))
    }
}

/// Size, address, number: the order in which a block that is large enough is searched.
pub(super) type Key = (usize, u64, u32);

/// Free blocks of one stream and pool.
///
/// The block that was freed last stays outside the tree: a program that frees and allocates the same sizes, or splits
/// small blocks off one remainder, then never changes the tree.
#[derive(Default)]
pub(super) struct FreeList {
    latest: Option<Key>,
    rest: BTreeSet<Key>,
}

impl FreeList {
    pub fn insert(&mut self, key: Key) {
        if let Some(before) = self.latest.replace(key) {
            self.rest.insert(before);
        }
    }

    pub fn remove(&mut self, key: Key) {
        if self.latest == Some(key) {
            self.latest = None;
        } else {
            self.rest.remove(&key);
        }
    }

    /// Best fit: takes the smallest block of at least `size` bytes, of equal ones the lowest in address.
    pub fn take_best_fit(&mut self, size: usize) -> Option<u32> {
        let latest = self.latest.filter(|key| key.0 >= size);
        let rest = if self.rest.is_empty() { None } else { self.rest.range((size, 0, 0)..).next().copied() };
        match (latest, rest) {
            (Some(latest), rest) if rest.is_none_or(|rest| latest < rest) => {
                self.latest = None;
                Some(latest.2)
            }
            (_, Some(rest)) => {
                self.rest.remove(&rest);
                Some(rest.2)
            }
            _ => None,
        }
    }

    /// Whether there is a block of at least `size` bytes.
    pub fn has(&self, size: usize) -> bool {
        self.latest.is_some_and(|key| key.0 >= size) || self.rest.range((size, 0, 0)..).next().is_some()
    }

    /// Takes all blocks that `pick` accepts, in order.
    pub fn take_where(&mut self, pick: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.rest.extend(self.latest.take());
        let taken: Vec<Key> = self.rest.iter().filter(|key| pick(key)).copied().collect();
        for key in &taken {
            self.rest.remove(key);
        }
        taken
    }

    pub fn largest(&self) -> usize {
        let rest = self.rest.last().map_or(0, |key| key.0);
        self.latest.map_or(0, |key| key.0).max(rest)
    }
}

/// Freed blocks that wait for one stream, in the order in which it passes their uses.
#[derive(Default)]
pub(super) struct Uses {
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Work up to and including this sequence number is done.
    passed: Option<u64>,
}

impl Uses {
    /// Queues a block; false when the stream has passed this use.
    pub fn wait(&mut self, sequence: u64, id: u32) -> bool {
        let ahead = self.passed.is_none_or(|passed| passed < sequence);
        if ahead {
            self.queue.push(Reverse((sequence, id)));
        }
        ahead
    }

    /// The next block whose use is done, when the stream has passed `sequence`.
    pub fn pass(&mut self, sequence: u64) -> Option<u32> {
        self.passed = self.passed.max(Some(sequence));
        match self.queue.peek() {
            Some(&Reverse((at, id))) if Some(at) <= self.passed => {
                self.queue.pop();
                Some(id)
            }
            _ => None,
        }
    }

    pub fn last(&self) -> Option<u64> {
        self.queue.iter().map(|&Reverse((sequence, _))| sequence).max()
    }
}
