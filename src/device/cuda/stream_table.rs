//! The streams of a session on all its GPUs, by the numbers that the session assigned: their order, and the progress of
//! each. Does not know what is queued.

use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use super::timeline::{Timeline, Waited};
use crate::device::queues::{Point, Queues};
use crate::device::stop::Stop;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Entry {
    /// None until something is queued, so that a device that nobody uses is not initialized.
    stream: Option<Arc<Stream>>,
    context: &'static Context,
    priority: i32,
    timeline: Timeline,
    device: u16,
    submitted: u64,
    completed: Arc<AtomicU64>,
}

impl Entry {
    /// The device does not respond any more: everything counts as completed, so that nobody waits for it.
    fn give_up(&self) {
        self.completed.store(u64::MAX, Ordering::Release);
    }

    /// The stream, created on first use; an entry whose stream cannot be created is given up.
    fn stream(&mut self) -> Result<Arc<Stream>, DriverError> {
        if let Some(stream) = &self.stream {
            return Ok(stream.clone());
        }
        match Stream::new(self.context, self.priority) {
            Ok(stream) => Ok(self.stream.insert(Arc::new(stream)).clone()),
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.completed.load(Ordering::Acquire) == u64::MAX
    }

    fn refresh(&mut self) {
        if self.is_dead() {
            return;
        }
        match self.timeline.finished() {
            Ok(finished) => self.completed.store(finished, Ordering::Release),
            Err(_) => self.give_up(),
        }
    }
}

/// All streams of a session.
pub struct StreamTable {
    contexts: Vec<&'static Context>,
    entries: Mutex<Vec<Option<Entry>>>,
}

impl StreamTable {
    pub fn new(contexts: Vec<&'static Context>) -> StreamTable {
        StreamTable { contexts, entries: Mutex::default() }
    }

    /// A stream to queue on, after these points. [`StreamTable::end`] closes the submission; one thread at a time.
    /// None: there is no such stream, or it cannot be created.
    pub fn begin(&self, number: u32, after: &[Point]) -> Option<Arc<Stream>> {
        let mut entries = self.entries.lock();
        for point in after {
            self.order(&mut entries, number, point);
        }
        entries.get_mut(number as usize)?.as_mut()?.stream().ok()
    }

    /// The sequence number of what was queued since `begin`. It advances also if nothing could be queued.
    pub fn end(&self, number: u32) -> u64 {
        let mut entries = self.entries.lock();
        let Some(Some(entry)) = entries.get_mut(number as usize) else { return 0 };
        entry.submitted += 1;
        let marked = |entry: &mut Entry| entry.stream().and_then(|stream| entry.timeline.mark(&stream));
        if entry.is_dead() || marked(entry).is_err() {
            entry.give_up();
        }
        entry.submitted
    }

    /// Makes future work of stream `number` wait for a point of another.
    fn order(&self, entries: &mut [Option<Entry>], number: u32, point: &Point) {
        let Some([waiter, waited]) = two(entries, number as usize, point.stream as usize) else { return };
        if waited.is_dead() || waiter.is_dead() {
            return;
        }
        if waiter.stream().and_then(|stream| waited.timeline.order(point.sequence, &stream)).is_err() {
            waiter.refresh();
            waited.refresh();
        }
    }

    /// Whether the work up to this point was seen to complete, also on a device that was lost since.
    pub fn has_run(&self, point: Point) -> bool {
        let entries = self.entries.lock();
        let entry = entries.get(point.stream as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.timeline.seen_finished() >= point.sequence)
    }

    pub fn context(&self, device: u16) -> &'static Context {
        self.contexts[device as usize]
    }
}

fn two(entries: &mut [Option<Entry>], a: usize, b: usize) -> Option<[&mut Entry; 2]> {
    let [a, b] = entries.get_disjoint_mut([a, b]).ok()?;
    Some([a.as_mut()?, b.as_mut()?])
}

impl Queues for StreamTable {
    fn stream(&self, number: u32, device: u16, priority: i32) -> Result<Arc<AtomicU64>, String> {
        let context = self.contexts[device as usize];
        let completed = Arc::new(AtomicU64::new(0));
        let mut entries = self.entries.lock();
        if entries.len() <= number as usize {
            entries.resize_with(number as usize + 1, || None);
        }
        let timeline = Timeline::new();
        let entry =
            Entry { stream: None, context, priority, timeline, device, submitted: 0, completed: completed.clone() };
        let entry = entries[number as usize].insert(entry);
        if context.is_open() {
            entry.stream().map_err(|error| error.to_string())?;
        }
        Ok(completed)
    }

    fn wait(&self, number: u32, sequence: u64, stop: &Stop) -> bool {
        let mut entries = self.entries.lock();
        let Some(Some(entry)) = entries.get_mut(number as usize) else { return true };
        if entry.completed.load(Ordering::Acquire) >= sequence {
            return true;
        }
        match entry.timeline.wait(sequence, &mut || stop.is_due()) {
            Ok(Waited::Done) => {
                entry.completed.store(entry.timeline.seen_finished(), Ordering::Release);
                true
            }
            Ok(Waited::Interrupted) => false,
            Err(_) => {
                entry.give_up();
                true
            }
        }
    }

    fn wait_idle(&self, device: u16, stop: &Stop) -> bool {
        let of_device = |entry: &Entry| entry.device == device;
        let points: Vec<(u32, u64)> = {
            let entries = self.entries.lock();
            let entries = entries.iter().enumerate().filter_map(|(number, entry)| Some((number, entry.as_ref()?)));
            entries.filter(|(_, entry)| of_device(entry)).map(|(n, entry)| (n as u32, entry.submitted)).collect()
        };
        points.into_iter().all(|(number, sequence)| self.wait(number, sequence, stop))
    }

    fn refresh(&self, number: u32) {
        if let Some(Some(entry)) = self.entries.lock().get_mut(number as usize) {
            entry.refresh();
        }
    }

    fn poll(&self, number: u32) {
        self.refresh(number);
    }

    fn lose(&self, device: u16) {
        for entry in self.entries.lock().iter().flatten().filter(|entry| entry.device == device) {
            entry.give_up();
        }
    }

    /// Waits for what is queued: its memory is freed next.
    fn stop(&self, waiting: &Stop) -> bool {
        (0..self.contexts.len() as u16).all(|device| self.wait_idle(device, waiting))
    }
}
