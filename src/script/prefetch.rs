//! Reading ahead: a thread reads the pictures of the next batches while the script works on this one. It is told which
//! ones before it starts and draws no random numbers, so a seed decides everything.

use super::images::{Folder, Picture};
use crate::base::diag::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Pictures of batches, in order.
pub struct Ahead {
    /// The end of the channel is the end of the thread: it finishes with the batch at hand.
    batches: Receiver<Result<Vec<Picture>>>,
}

impl Ahead {
    /// Starts the thread; at most `ready` batches wait. None when the system has no thread to give.
    pub fn start(plan: Vec<Vec<(Arc<Folder>, usize)>>, ready: usize) -> Option<Ahead> {
        let (send, batches) = sync_channel(ready.max(1));
        let work = move || {
            for batch in plan {
                let read: Result<Vec<Picture>> = batch.iter().map(|(folder, at)| folder.read(*at)).collect();
                let failed = read.is_err();
                if send.send(read).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("tscript loader".into()).spawn(work).ok()?;
        Some(Ahead { batches })
    }

    /// The next batch; none when the thread has gone.
    pub fn take(&mut self) -> Option<Result<Vec<Picture>>> {
        self.batches.recv().ok()
    }
}
