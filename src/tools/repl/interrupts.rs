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
    pub fn install(handle: InterruptHandle) -> Arc<Interrupts> {
        let interrupts = Arc::new(Interrupts { handle: Mutex::new(handle), asked: AtomicU32::new(0) });
        let shared = interrupts.clone();
        // An error means that signals are not available; the system's own Ctrl-C works then.
        let _ = ctrlc::set_handler(move || shared.ask());
        interrupts
    }

    fn ask(&self) {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => {
                if let Ok(handle) = self.handle.lock() {
                    handle.interrupt();
                }
            }
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
