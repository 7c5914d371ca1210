//! The streams of a session on all its GPUs, by the numbers that their owner assigned: their order, and the progress of each.
//! Does not know what is queued.

use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use super::timeline::{Timeline, Waited};
use crate::device::queues::{Point, Queues};
use crate::device::stop::Stop;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Lane {
    /// None until something is queued, so that a device that nobody uses is left alone.
    stream: Option<Arc<Stream>>,
    context: &'static Context,
    priority: i32,
    timeline: Timeline,
    device: u16,
    submitted: u64,
    completed: Arc<AtomicU64>,
}

impl Lane {
    /// The device answers no more: everything counts as passed, so that nobody waits for it.
    fn give_up(&self) {
        self.completed.store(u64::MAX, Ordering::Release);
    }

    /// The stream, made now where there is none; a lane whose stream cannot be made is given up.
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
pub struct Lanes {
    contexts: Vec<&'static Context>,
    lanes: Mutex<Vec<Option<Lane>>>,
}

impl Lanes {
    pub fn new(contexts: Vec<&'static Context>) -> Lanes {
        Lanes { contexts, lanes: Mutex::default() }
    }

    /// A stream to queue on, after these points. [`Lanes::end`] closes what was queued; one thread at a time.
    /// None: there is no such stream, or it cannot be made.
    pub fn begin(&self, number: u32, after: &[Point]) -> Option<Arc<Stream>> {
        let mut lanes = self.lanes.lock();
        for point in after {
            self.order(&mut lanes, number, point);
        }
        lanes.get_mut(number as usize)?.as_mut()?.stream().ok()
    }

    /// The sequence number of what was queued since `begin`. It is used up also where nothing could be queued.
    pub fn end(&self, number: u32) -> u64 {
        let mut lanes = self.lanes.lock();
        let Some(Some(lane)) = lanes.get_mut(number as usize) else { return 0 };
        lane.submitted += 1;
        let marked = |lane: &mut Lane| lane.stream().and_then(|stream| lane.timeline.mark(&stream));
        if lane.is_dead() || marked(lane).is_err() {
            lane.give_up();
        }
        lane.submitted
    }

    /// Future work of stream `number` comes after a point of another.
    fn order(&self, lanes: &mut [Option<Lane>], number: u32, point: &Point) {
        let Some([waiter, waited]) = two(lanes, number as usize, point.stream as usize) else { return };
        if waited.is_dead() || waiter.is_dead() {
            return;
        }
        if waiter.stream().and_then(|stream| waited.timeline.order(point.sequence, &stream)).is_err() {
            waiter.refresh();
            waited.refresh();
        }
    }

    /// Whether the work up to this point was seen to end, also on a device that died since.
    pub fn has_run(&self, point: Point) -> bool {
        let lanes = self.lanes.lock();
        let lane = lanes.get(point.stream as usize).and_then(Option::as_ref);
        lane.is_some_and(|lane| lane.timeline.seen_finished() >= point.sequence)
    }

    pub fn context(&self, device: u16) -> &'static Context {
        self.contexts[device as usize]
    }
}

fn two(lanes: &mut [Option<Lane>], a: usize, b: usize) -> Option<[&mut Lane; 2]> {
    let [a, b] = lanes.get_disjoint_mut([a, b]).ok()?;
    Some([a.as_mut()?, b.as_mut()?])
}

impl Queues for Lanes {
    fn stream(&self, number: u32, device: u16, priority: i32) -> Result<Arc<AtomicU64>, String> {
        let context = self.contexts[device as usize];
        let completed = Arc::new(AtomicU64::new(0));
        let mut lanes = self.lanes.lock();
        if lanes.len() <= number as usize {
            lanes.resize_with(number as usize + 1, || None);
        }
        let timeline = Timeline::new();
        let lane =
            Lane { stream: None, context, priority, timeline, device, submitted: 0, completed: completed.clone() };
        let lane = lanes[number as usize].insert(lane);
        if context.is_open() {
            lane.stream().map_err(|error| error.to_string())?;
        }
        Ok(completed)
    }

    fn wait(&self, number: u32, sequence: u64, stop: &Stop) -> bool {
        let mut lanes = self.lanes.lock();
        let Some(Some(lane)) = lanes.get_mut(number as usize) else { return true };
        if lane.completed.load(Ordering::Acquire) >= sequence {
            return true;
        }
        match lane.timeline.wait(sequence, &mut || stop.is_due()) {
            Ok(Waited::Done) => {
                lane.completed.store(lane.timeline.seen_finished(), Ordering::Release);
                true
            }
            Ok(Waited::Interrupted) => false,
            Err(_) => {
                lane.give_up();
                true
            }
        }
    }

    fn wait_idle(&self, device: u16, stop: &Stop) -> bool {
        let of_device = |lane: &Lane| lane.device == device;
        let points: Vec<(u32, u64)> = {
            let lanes = self.lanes.lock();
            let lanes = lanes.iter().enumerate().filter_map(|(number, lane)| Some((number, lane.as_ref()?)));
            lanes.filter(|(_, lane)| of_device(lane)).map(|(n, lane)| (n as u32, lane.submitted)).collect()
        };
        points.into_iter().all(|(number, sequence)| self.wait(number, sequence, stop))
    }

    fn refresh(&self, number: u32) {
        if let Some(Some(lane)) = self.lanes.lock().get_mut(number as usize) {
            lane.refresh();
        }
    }

    fn poll(&self, number: u32) {
        self.refresh(number);
    }

    fn lose(&self, device: u16) {
        for lane in self.lanes.lock().iter().flatten().filter(|lane| lane.device == device) {
            lane.give_up();
        }
    }

    /// Waits for what is queued: memory under it goes next.
    fn stop(&self, waiting: &Stop) -> bool {
        (0..self.contexts.len() as u16).all(|device| self.wait_idle(device, waiting))
    }
}
