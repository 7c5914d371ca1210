//! Files that a thread writes while the script goes on. What a script saves is copied out of the devices at its call; only
//! the writing is left behind, one file at a time, so that at most one copy waits in memory.
//!
//! Invariant: whoever could see whether a file was written asks `finish` first: the next `save`, `load`, `synchronize()`,
//! and the end of a text, an entry or a call.

use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::files::Prepared;
use crate::script::values::panics;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;

#[derive(Default)]
pub struct Writer(Mutex<Option<UnderWay>>);

struct UnderWay {
    thread: JoinHandle<Result<()>>,
    /// The call that an error belongs to.
    origin: Origin,
    told: Box<dyn Fn(Box<Diag>) -> Box<Diag> + Send>,
}

impl Writer {
    /// Writes what is left; `told` adds what the call knows to an error. Precondition: nothing is under way.
    pub fn begin(
        &self,
        prepared: Prepared,
        origin: Origin,
        told: impl Fn(Box<Diag>) -> Box<Diag> + Send + 'static,
    ) -> Result<()> {
        // Held here, too: a thread that cannot be started drops what it was given.
        let shared = Arc::new(Mutex::new(Some(prepared)));
        let inside = shared.clone();
        let write = move |shared: &Mutex<Option<Prepared>>| shared.lock().take().map_or(Ok(()), Prepared::write);
        let thread = std::thread::Builder::new().name("tscript-save".into());
        match thread.spawn(move || write(&inside)) {
            Ok(thread) => *self.0.lock() = Some(UnderWay { thread, origin, told: Box::new(told) }),
            Err(_) => write(&shared).map_err(told)?,
        }
        Ok(())
    }

    /// Waits for the file that is under way; its error, at the call that saved it, is told once.
    pub fn finish(&self) -> Result<()> {
        let Some(UnderWay { thread, origin, told }) = self.0.lock().take() else { return Ok(()) };
        let written = thread.join().unwrap_or_else(|payload| Err(panics::internal(&*payload)));
        written.map_err(|diag| {
            let mut diag = told(diag).or_at(origin, "saved here");
            diag.labels.iter_mut().filter(|label| label.origin == Origin::NONE).for_each(|label| label.origin = origin);
            diag.is_late = true;
            diag
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = self.finish();
    }
}
