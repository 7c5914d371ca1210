//! How much of the thread's native stack is left, so that deep recursion is an error and never a crash.
//!
//! The thread's stack is known by two numbers: the address where the session was entered, and the bytes that the host
//! program guarantees from there on. Counting calls is not enough: a debug build, a callback or a thread with a small
//! stack needs far more, or has far less, than a count assumes.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::values::raise::ErrorValue;
use rhai::Dynamic;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bound: the default stack size of Rust's threads.
pub const DEFAULT_BYTES: usize = 2 << 20;

/// The stack of the thread that runs a session.
pub struct Stack {
    entered: AtomicUsize,
    usable: usize,
}

impl Stack {
    /// A quarter, at most 4 MiB, is reserved for what a native function needs after the last check.
    pub fn new(bytes: usize) -> Stack {
        Stack { entered: AtomicUsize::new(0), usable: bytes - (bytes / 4).min(4 << 20) }
    }

    /// Bytes that scripts may use.
    pub fn usable(&self) -> usize {
        self.usable
    }

    /// The session is entered here.
    pub fn enter(&self) {
        self.entered.store(here(), Ordering::Relaxed);
        crate::device::heap::cache_on_this_thread();
    }

    /// Whether too little is left for another call.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        // Stacks grow downwards on every supported platform.
        self.entered.load(Ordering::Relaxed).saturating_sub(here()) > self.usable
    }
}

/// The error when the interpreter must stop because the stack is used up.
#[cold]
pub fn exhausted() -> Dynamic {
    let diag = Diag::error(code::LIMIT_DEPTH, "calls are nested too deeply for the stack of this thread")
        .help("a function that calls itself needs a case in which it does not; a loop has no such limit");
    Dynamic::from(ErrorValue(diag))
}

/// An address in the current frame.
#[inline(always)]
fn here() -> usize {
    let byte = std::hint::black_box(0u8);
    (&raw const byte).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descend(stack: &Stack, depth: usize) -> Option<usize> {
        let frame = std::hint::black_box([0u8; 1024]);
        let found = if stack.is_exhausted() {
            Some(depth)
        } else if depth > 1000 {
            None
        } else {
            descend(stack, depth + 1)
        };
        std::hint::black_box(frame);
        found
    }

    #[test]
    fn depth_is_bytes_not_calls() {
        let stack = Stack::new(256 << 10);
        stack.enter();
        assert!(!stack.is_exhausted());
        let small = descend(&stack, 0).expect("192 KiB are spent before a megabyte is");
        let stack = Stack::new(512 << 10);
        stack.enter();
        let large = descend(&stack, 0).expect("384 KiB too");
        assert!(small > 10 && large > small + small / 2, "{small} {large}");
    }
}
