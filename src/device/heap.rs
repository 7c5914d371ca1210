//! A heap for small blocks on top of the system's: free lists by size, for the threads that run scripts.
//!
//! A window that ends frees some hundred blocks of each of a few sizes at once and the next one allocates as many, far
//! more than the C library's per-thread cache holds. Only threads that opted in cache blocks (`cache_on_this_thread`),
//! so that short-lived threads leave no cached blocks behind; any thread may free what another allocated. Knows nothing
//! of tensors: it serves the interpreter's values as well. A program selects it with `#[global_allocator]`.
//!
//! Cost: about 12 instructions to allocate or free a block; 60 to 130 with the C library's where windows are made.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Sizes are rounded up to this many bytes, which is also how blocks are aligned.
const STEP: usize = 16;
/// Bound: bytes of the largest small block; the gradient record of an operation is about as large.
const LARGEST: usize = 1024;
const CLASSES: usize = LARGEST / STEP;
/// Bound: bytes of free blocks that a list holds: what a full window frees of one size.
const CACHED_BYTES_MAX: usize = 512 << 10;

/// The heap.
pub struct Heap;

/// Bytes that the program has from the system through this heap, including free blocks in lists.
static TAKEN: AtomicIsize = AtomicIsize::new(0);

/// Bytes that the program has from the system through this heap; 0 or little where another allocator is installed.
#[inline]
pub fn taken_bytes() -> usize {
    TAKEN.load(Ordering::Relaxed).max(0) as usize
}

#[inline]
fn count(bytes: isize) {
    TAKEN.fetch_add(bytes, Ordering::Relaxed);
}

/// A free block: its first bytes are the pointer to the next one.
struct Free {
    next: *mut Free,
}

struct List {
    first: Cell<*mut Free>,
    /// How many more blocks it may hold.
    capacity: Cell<u32>,
}

thread_local! {
    // Not: anything with a destructor, which would run before the last block of its thread is freed.
    static LISTS: [List; CLASSES] = const { [const { List { first: Cell::new(ptr::null_mut()), capacity: Cell::new(0) } }; CLASSES] };
    static CACHES: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread caches the small blocks that it frees.
pub fn cache_on_this_thread() {
    if CACHES.replace(true) {
        return;
    }
    LISTS.with(|lists| {
        for (class, list) in lists.iter().enumerate() {
            list.capacity.set((CACHED_BYTES_MAX / ((class + 1) * STEP)) as u32);
        }
    });
}

/// One arena of the C library for all threads of a program that works on one thread; to be called before there are
/// others. Cost: glibc gives a second thread an arena of its own, which grows by a page and a system call at a time:
/// 600 calls before a script begins.
pub fn one_arena() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // Not: `M_TOP_PAD`, which would also switch off the C library's dynamic mmap threshold. SAFETY: a number that the C
    // library checks.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The size class of a small block.
#[inline(always)]
fn class(layout: Layout) -> Option<usize> {
    let small = layout.size().wrapping_sub(1) < LARGEST && layout.align() <= STEP;
    small.then(|| (layout.size() - 1) / STEP)
}

/// The layout that a small block of a class is allocated with.
fn class_layout(class: usize) -> Layout {
    // SAFETY: the size is not 0 and far from the largest, the alignment a power of two.
    unsafe { Layout::from_size_align_unchecked((class + 1) * STEP, STEP) }
}

// SAFETY: a small block is always one of the system's with its class's layout, whichever thread takes or frees it; all
// others are the system's as they are. A block is in at most one list, which only its own thread sees, and then nobody
// holds it. Nothing here panics or allocates.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else {
            count(layout.size() as isize);
            // SAFETY: `layout` has a size that is not 0, which `GlobalAlloc::alloc` asks of its caller and the system's
            // of us.
            return unsafe { System.alloc(layout) };
        };
        LISTS.with(|lists| {
            let list = &lists[class];
            let first = list.first.get();
            if first.is_null() {
                count(class_layout(class).size() as isize);
                // SAFETY: the layout of a class has a size that is not 0.
                return unsafe { System.alloc(class_layout(class)) };
            }
            // SAFETY: what is in a list is a free block whose beginning was written when it came in.
            list.first.set(unsafe { (*first).next });
            list.capacity.set(list.capacity.get() + 1);
            first.cast()
        })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = class(layout) else {
            count(-(layout.size() as isize));
            // SAFETY: blocks of no class are the system's with this layout (`alloc`), and the caller gives this one up.
            return unsafe { System.dealloc(block, layout) };
        };
        LISTS.with(|lists| {
            let list = &lists[class];
            let capacity = list.capacity.get();
            if capacity == 0 {
                count(-(class_layout(class).size() as isize));
                // SAFETY: small blocks are the system's with this layout.
                return unsafe { System.dealloc(block, class_layout(class)) };
            }
            let free: *mut Free = block.cast();
            // SAFETY: nobody holds the block any more; it has room for a pointer and is aligned for one.
            unsafe { free.write(Free { next: list.first.get() }) };
            list.first.set(free);
            list.capacity.set(capacity - 1);
        });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class(layout).is_none() {
            count(layout.size() as isize);
            // SAFETY: `layout` has a size that is not 0, which `GlobalAlloc::alloc_zeroed` asks of its caller and the
            // system's of us.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: `layout` has a size that is not 0 (`GlobalAlloc::alloc_zeroed`); the block, if there is one, has that
        // many bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `GlobalAlloc::realloc` asks for a size that does not overflow when rounded up to the alignment, which
        // is valid.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class(layout), class(new_layout)) {
            (None, None) => {
                count(size as isize - layout.size() as isize);
                // SAFETY: blocks of no class are the system's with this layout, and the new size is valid
                // (`GlobalAlloc::realloc`).
                unsafe { System.realloc(block, layout, size) }
            }
            (Some(old), Some(new)) if old == new => block,
            _ => {
                // SAFETY: the caller owns `block` and gives it up (`GlobalAlloc::realloc`); both blocks have as many
                // bytes as are copied.
                unsafe {
                    let moved = self.alloc(new_layout);
                    if !moved.is_null() {
                        ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_of_one_class_are_used_again() {
        std::thread::spawn(|| {
            cache_on_this_thread();
            // SAFETY: each block is freed with the layout that it was taken with, and used in between only.
            unsafe {
                let a = Heap.alloc(layout(40, 8));
                Heap.dealloc(a, layout(40, 8));
                let b = Heap.alloc(layout(33, 1));
                assert_eq!(a, b);
                let c = Heap.alloc(layout(48, 16));
                assert_ne!(b, c);
                Heap.dealloc(b, layout(33, 1));
                Heap.dealloc(c, layout(48, 16));
                assert_eq!(Heap.alloc(layout(48, 16)), c);
            }
        })
        .join()
        .unwrap();
    }

    /// Every way between small and large, on threads that cache blocks and on one that does not, freed on another.
    #[test]
    fn contents_survive_and_threads_mix() {
        let taken: Vec<(usize, usize)> = std::thread::spawn(|| {
            cache_on_this_thread();
            let mut taken = Vec::new();
            for round in 0..2000usize {
                let (size, larger, align) = (1 + round * 7 % 1500, 1 + round * 13 % 3000, 1 << (round % 6));
                // SAFETY: blocks are used within their sizes and freed once, with their layouts.
                unsafe {
                    let zero = Heap.alloc_zeroed(layout(size, align));
                    assert!((0..size).all(|i| *zero.add(i) == 0) && zero.addr().is_multiple_of(align));
                    zero.write_bytes(round as u8, size);
                    let moved = Heap.realloc(zero, layout(size, align), larger);
                    assert!((0..size.min(larger)).all(|i| *moved.add(i) == round as u8) && moved.addr() % align == 0);
                    moved.write_bytes(0xAA, larger);
                    match round % 3 {
                        0 => Heap.dealloc(moved, layout(larger, align)),
                        _ => taken.push((moved.expose_provenance(), larger << 8 | align)),
                    }
                }
            }
            taken
        })
        .join()
        .unwrap();
        for (at, packed) in taken {
            // SAFETY: taken above with this layout and not freed there.
            unsafe { Heap.dealloc(ptr::with_exposed_provenance_mut(at), layout(packed >> 8, packed & 0xFF)) };
        }
    }
}
