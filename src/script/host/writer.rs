//! Files that a thread writes while the script goes on. What a script saves is copied out of the devices at its call; only
//! the writing is left behind, one file at a time, so that at most one copy waits in memory.
//!
//! Whoever could see whether a file was written waits for it: the next `save` and `load`, where a `try` is left,
//! `synchronize()`, and the end of a text, an entry or a call. An error is told where the `try` around its save is left;
//! of a save outside of any, at the next `synchronize()` or the end. It never keeps another file from being written.

use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::files::{Prepared, write};
use crate::sched::fault::outside::Queued;
use crate::sched::runtime::Runtime;
use crate::script::values::panics;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

#[derive(Default)]
pub struct Writer(Mutex<State>);

#[derive(Default)]
struct State {
    under_way: Option<UnderWay>,
    /// Errors that are not told yet, in the order of their saves.
    failed: Vec<Failed>,
}

struct UnderWay {
    thread: JoinHandle<Result<()>>,
    save: Save,
}

struct Failed {
    path: PathBuf,
    diag: Box<Diag>,
}

/// The call that an error belongs to.
pub struct Save {
    pub path: PathBuf,
    pub origin: Origin,
    pub queued: Queued,
    /// Adds what the call knows to an error.
    pub about: fn(Box<Diag>, &Path) -> Box<Diag>,
}

impl Writer {
    /// Writes what is left. Precondition: nothing is under way.
    pub fn begin(&self, prepared: Prepared, save: Save) -> Result<()> {
        // Held here, too: a thread that cannot be started drops what it was given.
        let shared = Arc::new(Mutex::new(Some(prepared)));
        let inside = shared.clone();
        let write = move |shared: &Mutex<Option<Prepared>>| shared.lock().take().map_or(Ok(()), Prepared::write);
        let thread = std::thread::Builder::new().name("tscript-save".into());
        match thread.spawn(move || write(&inside)) {
            Ok(thread) => self.0.lock().under_way = Some(UnderWay { thread, save }),
            Err(_) => write(&shared).map_err(|diag| (save.about)(diag, &save.path))?,
        }
        Ok(())
    }

    /// Waits for the file that is under way. Its error is kept until somebody takes it.
    pub fn wait(&self, rt: &Runtime) {
        let Some(UnderWay { thread, save }) = self.0.lock().under_way.take() else { return };
        let written = thread.join().unwrap_or_else(|payload| Err(panics::internal(&*payload)));
        if let Err(diag) = written {
            let diag = rt.late_outside(save.placed(diag), save.queued);
            self.0.lock().failed.push(Failed { path: save.path, diag });
        }
    }

    /// Waits for all queued work and for what is being saved; raises the earliest error that is not told yet.
    pub fn synchronize(&self, rt: &Runtime) -> Result<()> {
        self.wait(rt);
        let first = self.0.lock().failed.first().map_or(u64::MAX, |failed| failed.diag.queued);
        rt.synchronize_before(first)?;
        let failed = &mut self.0.lock().failed;
        if failed.is_empty() { Ok(()) } else { Err(failed.remove(0).diag) }
    }

    /// All errors that are not told yet. Waits.
    // Diagnostics are boxed, since results contain them.
    #[allow(clippy::vec_box)]
    pub fn take_all(&self, rt: &Runtime) -> Vec<Box<Diag>> {
        self.wait(rt);
        std::mem::take(&mut self.0.lock().failed).into_iter().map(|failed| failed.diag).collect()
    }

    /// Waits for files that were saved from a queue number on; their first error. The others are spent.
    pub fn leave_block(&self, rt: &Runtime, began: u64) -> Option<Box<Diag>> {
        let is_inside = |under_way: &UnderWay| under_way.save.queued.number >= began;
        let waits = self.0.lock().under_way.as_ref().is_some_and(is_inside);
        if waits {
            self.wait(rt);
        }
        let failed = &mut self.0.lock().failed;
        let from = failed.iter().position(|failed| failed.diag.queued >= began)?;
        failed.drain(from..).next().map(|failed| failed.diag)
    }

    /// The error of the last save of a file, which is about to be read. Waits.
    pub fn take_of(&self, rt: &Runtime, path: &Path) -> Option<Box<Diag>> {
        self.wait(rt);
        let failed = &mut self.0.lock().failed;
        let file = |path: &Path| write::target(path).unwrap_or_else(|_| path.to_path_buf());
        let read = if failed.is_empty() { return None } else { file(path) };
        let at = failed.iter().rposition(|failed| file(&failed.path) == read)?;
        Some(failed.remove(at).diag)
    }
}

impl Save {
    fn placed(&self, diag: Box<Diag>) -> Box<Diag> {
        let mut diag = (self.about)(diag, &self.path).or_at(self.origin, "saved here");
        let open = diag.labels.iter_mut().filter(|label| label.origin == Origin::NONE);
        open.for_each(|label| label.origin = self.origin);
        diag
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        if let Some(UnderWay { thread, .. }) = self.0.lock().under_way.take() {
            let _ = thread.join();
        }
    }
}
