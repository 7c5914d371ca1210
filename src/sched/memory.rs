//! Memory of a device, as the runtime asks for it: the one place where it is asked for (I8).

use crate::base::layout::Shape;

/// Alignment of every block.
pub const ALIGNMENT: usize = 64;

/// A block of memory.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub address: usize,
    pub id: u64,
}

/// Host memory straight from the system allocator.
#[derive(Default)]
pub struct Memory {
    pub allocated: usize,
    pub peak: usize,
    pub limit: usize,
}

impl Memory {
    /// `None` when the device has no such block left.
    pub fn take(&mut self, bytes: usize) -> Option<Block> {
        if self.allocated.checked_add(bytes)? > self.limit {
            return None;
        }
        let layout = std::alloc::Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).ok()?;
        // SAFETY: the layout's size is not zero.
        let address = unsafe { std::alloc::alloc(layout) } as usize;
        if address == 0 {
            return None;
        }
        self.allocated += bytes;
        self.peak = self.peak.max(self.allocated);
        Some(Block { address, id: 0 })
    }

    pub fn give_back(&mut self, address: usize, bytes: usize, _id: u64) {
        let layout = std::alloc::Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).expect("it was made so");
        // SAFETY: `take` made this block with the same layout.
        unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        self.allocated -= bytes;
    }
}

/// For messages: `[2, 3]`.
pub fn shape_text(shape: &Shape) -> String {
    format!("{:?}", shape.as_slice())
}
