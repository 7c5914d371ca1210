//! Memory that a host program lends to a session instead of copying it: its address, its size, and its owner.
//!
//! Not counted by any allocator of ours; released by dropping the owner's value.

use std::any::Any;
use std::mem::size_of_val;
use std::sync::Arc;

/// Host memory and the value that keeps it alive (`keeper`); may be written as long as this lives.
pub struct Lent {
    address: usize,
    bytes: usize,
    /// Dropping it ends the loan.
    _keeper: Box<dyn Any + Send + Sync>,
}

impl Lent {
    /// The elements of a vector, without a copy.
    pub fn vec<T: Copy + Send + Sync + 'static>(mut elements: Vec<T>) -> Lent {
        let (address, bytes) = (elements.as_mut_ptr() as usize, size_of_val(&*elements));
        Lent { address, bytes, _keeper: Box::new(elements) }
    }

    /// Memory of another library.
    ///
    /// # Safety
    /// Until the keeper is dropped the bytes are valid to read and write, and nobody else writes them while they are
    /// used here.
    pub unsafe fn new(address: *mut u8, bytes: usize, keeper: Box<dyn Any + Send + Sync>) -> Lent {
        Lent { address: address as usize, bytes, _keeper: keeper }
    }

    /// A second handle of the same memory. It is shared then, so that no session writes it.
    pub fn shared(lent: &Arc<Lent>) -> Lent {
        Lent { address: lent.address, bytes: lent.bytes, _keeper: Box::new(lent.clone()) }
    }

    /// Never 0.
    pub fn address(&self) -> usize {
        self.address
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: the memory is valid while the keeper lives (`new`, or the vector's own), and whoever writes it through
        // a session owns the `Lent`, which this borrows.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.address)
    }
}
