//! Ctrl-C while an entry runs. The first stops it at its next step; a long operation cannot be stopped midway, so the
//! second says so and the third ends the program.

use super::typeahead;
use crate::script::session::handle::InterruptHandle;
use crate::tools::{FAILED, complain};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub struct Interrupts {
    /// The `Stop` of the current session; `:reset` changes it.
    handle: Mutex<InterruptHandle>,
    /// Since the entry began.
    asked: AtomicU32,
}

impl Interrupts {
    pub fn new(handle: InterruptHandle) -> Arc<Interrupts> {
        Arc::new(Interrupts { handle: Mutex::new(handle), asked: AtomicU32::new(0) })
    }

    /// Each Ctrl-C insists more than the one before.
    pub fn count_signals(self: Arc<Self>) {
        // An error means that signals are not available; the system's own Ctrl-C works then.
        let _ = ctrlc::set_handler(move || self.ask());
    }

    /// A signal only stops the entry, however often it comes.
    pub fn follow_signals(self: Arc<Self>) {
        let _ = ctrlc::set_handler(move || self.stop());
    }

    /// Stops the entry that runs; nothing between two entries.
    pub fn stop(&self) {
        if let Ok(handle) = self.handle.lock() {
            handle.interrupt();
        }
    }

    fn ask(&self) {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => self.stop(),
            1 => complain("\nstops after the operation at work; Ctrl-C once more ends the program\n"),
            _ => {
                typeahead::restore();
                std::process::exit(FAILED.into())
            }
        }
    }

    /// An entry begins.
    pub fn begin(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }

    /// An entry has ended: whether it was interrupted.
    pub fn end(&self) -> bool {
        self.asked.swap(0, Ordering::Relaxed) > 0
    }

    pub fn follow(&self, handle: InterruptHandle) {
        if let Ok(mut current) = self.handle.lock() {
            *current = handle;
        }
    }
}
