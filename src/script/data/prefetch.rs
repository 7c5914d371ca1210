//! Reading ahead: a thread reads the pictures of the next batches, or puts their rows into pinned memory, while the
//! script works on this one. It is told which ones and draws no random numbers, so a seed decides everything.

use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::span::Origin;
use crate::op::tensor::View;
use crate::sched::execute::ahead::{Reader, RowCopy};
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

/// Batches of whole tensors, cut out and put into pinned memory by a thread.
pub struct Rows {
    rt: Arc<Runtime>,
    reader: Arc<Reader>,
    fields: Vec<(Identifier, Arc<View>)>,
    /// Row numbers of the batches that the thread was not told of yet.
    batches: std::vec::IntoIter<Vec<usize>>,
    origin: Origin,
    /// By field: the version that the thread reads.
    versions: Vec<u32>,
    /// None once everything is told.
    tell: Option<SyncSender<Job>>,
    done: Receiver<bool>,
    told: VecDeque<Map>,
    /// Batches at the front of `told` that are known to be ready.
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
    /// Starts the thread; it holds `ready` batches at most. None where it could not read: tensors that are not on the
    /// host, are no dense rows, or whose values failed; then everything happens on the script's thread.
    pub fn start(
        rt: &Arc<Runtime>,
        fields: &[(Identifier, Tensor)],
        batches: Vec<Vec<usize>>,
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
            told: VecDeque::new(),
            ready: 0,
            first: 0,
            thread: Some(thread),
        };
        (0..=ready).for_each(|_| rows.tell_next());
        Some(rows)
    }

    /// Gives the thread one batch more.
    fn tell_next(&mut self) {
        let (Some(tell), Some(rows)) = (&self.tell, self.batches.next()) else { return };
        let mut batch = Map::new();
        let mut copies = Vec::new();
        for (name, view) in &self.fields {
            // Without pinned memory for it the script's thread goes on alone, and says so.
            let Ok((pinned, copy)) = self.rt.rows_to_pinned(view, rows.len(), self.origin) else {
                self.tell = None;
                return;
            };
            batch.insert(name.clone(), Dynamic::from(Tensor::new(pinned, self.origin)));
            copies.push(copy);
        }
        if tell.send(Job { rows, copies }).is_ok() {
            self.told.push_back(batch);
        }
    }

    /// Batch `number`, the next one. None when the thread has stopped, because the data were written meanwhile.
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
        let batch = self.told.pop_front();
        self.tell_next();
        batch
    }

    /// Batch `number` when it is ready and the next one.
    pub fn peek(&mut self, number: usize) -> Option<Map> {
        if number != self.first || self.told.is_empty() {
            return None;
        }
        if self.ready == 0 && self.done.try_recv() == Ok(true) {
            self.ready = 1;
        }
        (self.ready > 0).then(|| self.told.front().cloned()).flatten()
    }

    fn stop(&mut self) {
        self.first = usize::MAX;
        self.tell = None;
        self.rt.end_reading(&self.reader);
        // Answers that nobody waits for are thrown away, so that the thread can end.
        while self.done.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // It runs no code that panics; what it should have done is done on the script's thread.
            let _ = thread.join();
        }
        self.told.clear();
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.stop();
    }
}
