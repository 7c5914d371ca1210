//! An allocator that counts the bytes of each thread, so that a session can limit the memory of a script's own values:
//! strings, arrays, maps. A library cannot choose the allocator of a program, so the program installs it.
//!
//! Knows no session: it only counts; sessions compare with their limits.

#![warn(missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a count of the bytes that each thread holds.
///
/// ```
/// #[global_allocator]
/// static MEMORY: tscript::Metered = tscript::Metered;
///
/// let session = tscript::Session::builder().heap_limit(64 << 20).build()?;
/// # Ok::<(), tscript::Error>(())
/// ```
///
/// A program that installs it can build sessions with [`heap_limit`](crate::Builder::heap_limit). It costs about a
/// nanosecond for each allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metered;

thread_local! {
    // A constant initializer and no destructor: usable from the first allocation of a thread to its last.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread allocated, less those that it freed. Negative if it freed much that others allocated.
pub fn held_bytes() -> isize {
    HELD.with(Cell::get)
}

/// Whether the program installed [`Metered`].
pub fn is_installed() -> bool {
    let before = held_bytes();
    let probe = std::hint::black_box(Box::new([0u8; 64]));
    let counted = held_bytes() != before;
    drop(probe);
    counted
}

#[inline]
fn count(bytes: isize) {
    // Not: `with`, which panics while a thread ends on platforms where even this cell is gone by then.
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(bytes)));
}

// SAFETY: every request goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Metered {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: arguments go to `System` unchanged, whose contract is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: arguments go to `System` unchanged, whose contract is the one that `GlobalAlloc` puts on our caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: arguments go to `System`, which made the block; its contract is the one that `GlobalAlloc` puts on
        // our caller.
        unsafe { System.dealloc(at, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as isize - layout.size() as isize);
        // SAFETY: arguments go to `System`, which made the block; its contract is the one that `GlobalAlloc` puts on
        // our caller.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
