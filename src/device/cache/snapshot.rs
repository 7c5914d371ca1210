//! `memory_snapshot`: every segment with its blocks, in order of address.

use super::blocks::{NONE, State};
use super::{Cache, Pool, RawMemory};
use crate::base::order;

/// PyTorch's names are in [`BlockState::name`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockState {
    ActiveAllocated,
    ActiveAwaitingFree,
    Inactive,
}

impl BlockState {
    pub fn name(self) -> &'static str {
        match self {
            BlockState::ActiveAllocated => "active_allocated",
            BlockState::ActiveAwaitingFree => "active_awaiting_free",
            BlockState::Inactive => "inactive",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockInfo {
    pub address: u64,
    pub size: usize,
    /// As asked for, before rounding; 0 for an inactive block.
    pub requested_size: usize,
    pub state: BlockState,
    pub owner: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentInfo {
    pub address: u64,
    pub total_size: usize,
    pub allocated_size: usize,
    pub active_size: usize,
    pub requested_size: usize,
    pub stream: u32,
    pub pool: Pool,
    pub blocks: Vec<BlockInfo>,
}

impl SegmentInfo {
    /// `small` or `large`, as PyTorch's `segment_type`.
    pub fn type_name(&self) -> &'static str {
        match self.pool {
            Pool::Small => "small",
            Pool::Large => "large",
        }
    }
}

impl<M: RawMemory> Cache<M> {
    /// All segments, in order of address. Every `current` statistic is a sum over this.
    pub fn snapshot(&self) -> Vec<SegmentInfo> {
        let heads = self.blocks.iter().filter(|(_, meta)| meta.prev == NONE).map(|(id, _)| id);
        let mut segments: Vec<SegmentInfo> = heads.map(|id| self.segment(id)).collect();
        order::by_key(&mut segments, |segment| segment.address);
        segments
    }

    fn segment(&self, head: u32) -> SegmentInfo {
        let first = &self.blocks[head];
        let mut segment = SegmentInfo {
            address: first.address,
            total_size: 0,
            allocated_size: 0,
            active_size: 0,
            requested_size: 0,
            stream: first.stream,
            pool: first.pool,
            blocks: Vec::new(),
        };
        let mut id = head;
        while id != NONE {
            let meta = &self.blocks[id];
            let state = match meta.state {
                State::Held => BlockState::ActiveAllocated,
                State::Awaiting => BlockState::ActiveAwaitingFree,
                State::Free | State::Arena | State::Vacant => BlockState::Inactive,
            };
            let requested_size = if state == BlockState::Inactive { 0 } else { meta.requested };
            segment.total_size += meta.size;
            segment.requested_size += requested_size;
            segment.allocated_size += if state == BlockState::ActiveAllocated { meta.size } else { 0 };
            segment.active_size += if state == BlockState::Inactive { 0 } else { meta.size };
            let (address, size, owner) = (meta.address, meta.size, meta.owner);
            segment.blocks.push(BlockInfo { address, size, requested_size, state, owner });
            id = meta.next;
        }
        segment
    }
}
