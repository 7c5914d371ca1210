//! Error slots of an NVIDIA GPU, in memory that host and device see, and the words by which the device evaluates
//! gates.

use crate::device::cache::RawMemory;
use crate::device::cuda::memory::{DeviceMemory, Mapped};
use crate::device::cuda::{Context, DriverError};
use crate::kernel::abi::Fault;
use crate::kernel::cuda::FaultSlot;
use std::collections::HashMap;

/// Error slots of one device in memory that host and device see.
pub struct SlotPool {
    context: &'static Context,
    blocks: Vec<Mapped>,
    free: Vec<u32>,
    /// By slot of the stream: which word of the blocks holds the number of its first unreported fault.
    first_faults: HashMap<u32, (usize, usize)>,
    /// Blocks of such words.
    words: Vec<Mapped>,
    /// By slot of the stream: a word of device memory that says whether a step is held.
    held: HashMap<u32, u64>,
}

/// Slots of one block.
const BLOCK_SLOTS: usize = 4096;
const SLOT_WORDS: usize = size_of::<FaultSlot>() / 8;
/// Where a slot stores the address of the word that it lowers, and its node's number.
const FIRST_WORD: usize = std::mem::offset_of!(FaultSlot, first) / 8;
const NUMBER_WORD: usize = std::mem::offset_of!(FaultSlot, number) / 8;
/// Words of one block, one for each stream.
const BLOCK_WORDS: usize = 512;

impl SlotPool {
    pub fn new(context: &'static Context) -> SlotPool {
        SlotPool {
            context,
            blocks: Vec::new(),
            free: Vec::new(),
            first_faults: HashMap::new(),
            words: Vec::new(),
            held: HashMap::new(),
        }
    }

    /// A slot for a node of a stream.
    pub fn take(&mut self, stream: u32, number: u64) -> Result<(u32, *mut u8), DriverError> {
        let first = self.first_fault_of(stream)?;
        if self.free.is_empty() {
            let block = Mapped::new(self.context, BLOCK_SLOTS * SLOT_WORDS)?;
            let first = (self.blocks.len() * BLOCK_SLOTS) as u32;
            self.blocks.push(block);
            self.free.extend((first..first + BLOCK_SLOTS as u32).rev());
            (first..first + BLOCK_SLOTS as u32).for_each(|slot| self.clear(slot));
        }
        let slot = self.free.pop().expect("a block was just added");
        let (block, at) = self.place(slot);
        block.write(at + FIRST_WORD, first);
        block.write(at + NUMBER_WORD, number);
        Ok((slot, (block.device_address() as usize + at * 8) as *mut u8))
    }

    fn place(&self, slot: u32) -> (&Mapped, usize) {
        (&self.blocks[slot as usize / BLOCK_SLOTS], slot as usize % BLOCK_SLOTS * SLOT_WORDS)
    }

    fn clear(&self, slot: u32) {
        let (block, at) = self.place(slot);
        block.write(at, u64::MAX);
        (1..SLOT_WORDS).for_each(|word| block.write(at + word, 0));
    }

    /// The address of the word with the number of a stream's first unreported fault; allocated if needed.
    fn first_fault_of(&mut self, stream: u32) -> Result<u64, DriverError> {
        if let Some(known) = self.first_fault_address(stream) {
            return Ok(known);
        }
        let at = self.first_faults.len();
        if at / BLOCK_WORDS == self.words.len() {
            let block = Mapped::new(self.context, BLOCK_WORDS)?;
            (0..BLOCK_WORDS).for_each(|word| block.write(word, u64::MAX));
            self.words.push(block);
        }
        self.first_faults.insert(stream, (at / BLOCK_WORDS, at % BLOCK_WORDS));
        Ok(self.first_fault_address(stream).expect("just made"))
    }

    /// The same; none if no work of the stream can fail.
    pub fn first_fault_address(&self, stream: u32) -> Option<u64> {
        let &(block, word) = self.first_faults.get(&stream)?;
        Some(self.words[block].device_address() + word as u64 * 8)
    }

    /// The first unreported fault of the stream is known: all work of the stream that could fail has ended.
    pub fn set_first_fault(&self, stream: u32, number: Option<u64>) {
        if let Some(&(block, word)) = self.first_faults.get(&stream) {
            self.words[block].write(word, number.unwrap_or(u64::MAX));
        }
    }

    /// A word of device memory that says whether a stream's next step is held; none if there is no memory.
    pub fn held_word(&mut self, stream: u32) -> Option<u64> {
        let take = || DeviceMemory::new(self.context).reserve(512).unwrap_or(0);
        Some(*self.held.entry(stream).or_insert_with(take)).filter(|&address| address != 0)
    }

    /// The content of a slot after its launches have ended.
    pub fn read(&self, slot: u32) -> Option<Fault> {
        let (block, at) = self.place(slot);
        let words: [u64; 4] = std::array::from_fn(|word| block.read(at + word));
        FaultSlot {
            position: words[0],
            value: words[1] as i64,
            bound: words[2] as i64,
            kind: words[3] as u32,
            dim: (words[3] >> 32) as u32,
            ..FaultSlot::EMPTY
        }
        .read()
    }

    /// The slot is not read any more.
    pub fn free(&mut self, slot: u32) {
        let (block, at) = self.place(slot);
        if block.read(at) != u64::MAX {
            self.clear(slot);
        }
        self.free.push(slot);
    }
}
