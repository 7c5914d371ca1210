//! Prefetching: a thread reads the pictures of the next batches, or copies their rows into pinned memory, while the
//! script works on this one. The script's thread sends the row indices and draws all random numbers, so that a seed
//! determines everything.

use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::span::Origin;
use crate::op::tensor::View;
use crate::sched::execute::device_prefetch::{Reader, RowCopy};
use crate::sched::runtime::Runtime;
use crate::script::data::images::{Folder, Picture};
use crate::script::values::types::Tensor;
use rhai::{Dynamic, Identifier, Map};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Pictures of batches, in order.
pub struct Prefetch {
    /// When the channel is closed the thread ends, after the current batch.
    batches: Receiver<Result<Vec<Picture>>>,
}

impl Prefetch {
    /// Starts the thread; at most `ready` batches wait. None if the system cannot start a thread.
    pub fn start(plan: Vec<Vec<(Arc<Folder>, usize)>>, ready: usize) -> Option<Prefetch> {
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
        Some(Prefetch { batches })
    }

    /// The next batch; none if the thread has ended.
    pub fn take(&mut self) -> Option<Result<Vec<Picture>>> {
        self.batches.recv().ok()
    }
}

/// Batches of whole tensors, sliced and copied into pinned memory by a thread.
pub struct Rows {
    rt: Arc<Runtime>,
    reader: Arc<Reader>,
    fields: Vec<(Identifier, Arc<View>)>,
    /// Row indices of the batches that were not sent to the thread yet.
    batches: std::vec::IntoIter<Vec<usize>>,
    origin: Origin,
    /// By field: the version that the thread reads.
    versions: Vec<u32>,
    /// None once everything was sent.
    tell: Option<SyncSender<Job>>,
    done: Receiver<bool>,
    sent: VecDeque<Map>,
    /// Batches at the front of `sent` that are known to be ready.
    ready: usize,
    /// The number of the batch at the front.
    first: usize,
    thread: Option<JoinHandle<()>>,
}

struct Job {
    rows: Vec<usize>,
    copies: Vec<RowCopy>,
}

impl Rows {
    /// Starts the thread with batch number `first`; it holds at most `ready` batches. None if it cannot read the tensors: they are not on the
    /// host, have no dense rows, or their values failed; then the script's thread does the work.
    pub fn start(
        rt: &Arc<Runtime>,
        fields: &[(Identifier, Tensor)],
        batches: Vec<Vec<usize>>,
        first: usize,
        ready: usize,
        origin: Origin,
    ) -> Option<Rows> {
        let fits =
            |view: &View| view.buffer.device == DeviceId::Cpu && view.layout.is_contiguous() && view.layout.ndim() > 0;
        if fields.iter().any(|(_, tensor)| tensor.requires_grad() || !fits(&tensor.view())) {
            return None;
        }
        let fields: Vec<(Identifier, Arc<View>)> =
            fields.iter().map(|(name, tensor)| (name.clone(), tensor.view())).collect();
        let views: Vec<Arc<View>> = fields.iter().map(|(_, view)| view.clone()).collect();
        let reader = rt.begin_reading(&views)?;
        let versions = views.iter().map(|view| view.buffer.version.load(Ordering::Acquire)).collect();
        let (tell, jobs) = sync_channel::<Job>(ready + 1);
        let (answer, done) = sync_channel(ready + 1);
        let shared = reader.clone();
        let work = move || {
            for Job { rows, copies } in jobs {
                let copied = shared.read(|| copies.iter().for_each(|copy| copy.run(&rows)));
                if answer.send(copied.is_some()).is_err() {
                    return;
                }
            }
        };
        let Ok(thread) = std::thread::Builder::new().name("tscript loader".into()).spawn(work) else {
            rt.end_reading(&reader);
            return None;
        };
        let mut rows = Rows {
            rt: rt.clone(),
            reader,
            fields,
            batches: batches.into_iter(),
            origin,
            versions,
            tell: Some(tell),
            done,
            sent: VecDeque::new(),
            ready: 0,
            first,
            thread: Some(thread),
        };
        (0..=ready).for_each(|_| rows.send_next());
        Some(rows)
    }

    /// Sends the thread one more batch.
    fn send_next(&mut self) {
        let (Some(tell), Some(rows)) = (&self.tell, self.batches.next()) else { return };
        let mut batch = Map::new();
        let mut copies = Vec::new();
        for (name, view) in &self.fields {
            // Without pinned memory for it the script's thread continues alone, with a warning.
            let Ok((pinned, copy)) = self.rt.rows_to_pinned(view, rows.len(), self.origin) else {
                self.tell = None;
                return;
            };
            batch.insert(name.clone(), Dynamic::from(Tensor::new(pinned, self.origin)));
            copies.push(copy);
        }
        if tell.send(Job { rows, copies }).is_ok() {
            self.sent.push_back(batch);
        }
    }

    /// Batch `number`, the next one. None if the thread has stopped because the data were written meanwhile.
    pub fn take(&mut self, number: usize) -> Option<Map> {
        let is_current = |(view, version): (&(Identifier, Arc<View>), &u32)| {
            view.1.buffer.version.load(Ordering::Acquire) == *version
        };
        let current = self.fields.iter().zip(&self.versions).all(is_current);
        if number != self.first || !current || (self.ready == 0 && !self.done.recv().unwrap_or(false)) {
            self.stop();
            return None;
        }
        self.ready = self.ready.saturating_sub(1);
        self.first += 1;
        let batch = self.sent.pop_front();
        self.send_next();
        batch
    }

    /// Batch `number` if it is ready and the next one.
    pub fn peek(&mut self, number: usize) -> Option<Map> {
        if number != self.first || self.sent.is_empty() {
            return None;
        }
        if self.ready == 0 && self.done.try_recv() == Ok(true) {
            self.ready = 1;
        }
        (self.ready > 0).then(|| self.sent.front().cloned()).flatten()
    }

    fn stop(&mut self) {
        self.first = usize::MAX;
        self.tell = None;
        self.rt.end_reading(&self.reader);
        // Answers that are not needed are dropped, so that the thread can end.
        while self.done.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // The thread runs no code that panics; the script's thread does its remaining work.
            let _ = thread.join();
        }
        self.sent.clear();
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.stop();
    }
}
