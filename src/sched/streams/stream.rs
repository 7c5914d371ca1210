//! Streams and events of a session, and the order between them.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::device::queues::Point;
use crate::device::race::{EventClock, Lane, StreamName};
use crate::sched::backend::task::{Enqueued, Stamp, Task};
use crate::sched::fault::ledger::Entry;
use crate::sched::order::gate::{Past, PastLog};
use crate::sched::order::points::HOST;
use crate::sched::profile::timeline::Part;
use crate::sched::runtime::{Runtime, State};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The state of a stream. Its slot is its index, and its number in the device's queues.
pub struct Stream {
    pub name: StreamName,
    pub priority: i32,
    /// Work that has ended, by sequence number.
    pub completed: Arc<AtomicU64>,
    pub submitted: u64,
    /// The last work that was queued: its queue number, and its submission.
    pub last_work: (u64, u64),
    /// The queue number of the last work that accessed memory.
    pub last_access: u64,
    /// Work of other streams that its future work comes after, by queue numbers; also at earlier times.
    pub past_log: PastLog,
    pub lane: Lane,
    /// Points that its next submission must wait for.
    pub waits: SmallVec<[Point; 2]>,
    /// A handle exists, or it is a default stream.
    pub in_use: bool,
    /// Work up to this submission belongs to runs that had to end: nothing waits for it.
    pub left_at: u64,
}

impl Stream {
    /// A stream without work of its own. `queue`: how much work of the device's queue has ended, and how much was
    /// submitted.
    pub fn new(name: StreamName, priority: i32, queue: (Arc<AtomicU64>, u64), lane: Lane) -> Stream {
        let (completed, submitted) = queue;
        Stream {
            name,
            priority,
            completed,
            submitted,
            last_work: (0, 0),
            last_access: 0,
            past_log: PastLog::default(),
            lane,
            waits: SmallVec::new(),
            in_use: true,
            left_at: 0,
        }
    }

    pub fn is_done(&self, sequence: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= sequence
    }
}

/// A stream handle. Equal handles stand for the same stream.
pub struct StreamHandle {
    pub slot: u32,
    pub name: StreamName,
    pub priority: i32,
    /// Where it was created; none for a default stream.
    pub made: Origin,
    runtime: Weak<Runtime>,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        if self.name.number != 0
            && let Some(runtime) = self.runtime.upgrade()
        {
            runtime.retire_stream(self.slot);
        }
    }
}

/// A recorded moment of a stream.
#[derive(Clone)]
pub struct Moment {
    pub point: Point,
    pub name: StreamName,
    /// What work after it comes after, including the moment's own stream.
    past: Past,
    clock: EventClock,
    stamp: Option<Stamp>,
}

/// An event; recording it again replaces the moment.
pub struct Event {
    pub timing: bool,
    pub made: Origin,
    moment: Mutex<Option<Arc<Moment>>>,
}

impl Event {
    pub fn new(timing: bool, made: Origin) -> Event {
        Event { timing, made, moment: Mutex::new(None) }
    }

    pub fn moment(&self) -> Option<Arc<Moment>> {
        self.moment.lock().clone()
    }
}

impl Runtime {
    /// The number by which scripts know the stream of a queue; -1 for one of which they know nothing.
    pub fn stream_number(&self, slot: u32) -> i64 {
        let state = self.state.lock();
        let number = state.streams.get(slot as usize).map(|stream| stream.name.number);
        number.filter(|number| *number != StreamName::COPIES).map_or(-1, i64::from)
    }

    /// The stream that work on a device is queued on now.
    pub fn current_stream(&self, device: DeviceId) -> Result<Arc<StreamHandle>> {
        let at = self.gpu_index(device)?;
        Ok(self.placement.lock().current[at].clone())
    }

    /// The stream with number 0 of a device.
    pub fn default_stream(&self, device: DeviceId) -> Result<Arc<StreamHandle>> {
        let at = self.gpu_index(device)?;
        Ok(self.placement.lock().defaults[at].clone())
    }

    /// Makes a stream current on its device; returns the previous one.
    pub fn set_current_stream(&self, stream: &Arc<StreamHandle>) -> Result<Arc<StreamHandle>> {
        self.check_own(stream)?;
        let at = self.gpu_index(stream.name.device)?;
        Ok(std::mem::replace(&mut self.placement.lock().current[at], stream.clone()))
    }

    pub(in crate::sched) fn check_own(&self, stream: &StreamHandle) -> Result<()> {
        if std::ptr::eq(stream.runtime.as_ptr(), self) {
            return Ok(());
        }
        Err(Diag::error(code::STREAM, "this stream belongs to another session"))
    }

    /// A new stream.
    pub fn new_stream(&self, device: DeviceId, priority: i32, made: Origin) -> Result<Arc<StreamHandle>> {
        self.gpu_index(device)?;
        self.open_device(device);
        let mut state = self.state.lock();
        let name = StreamName { device, number: state.next_stream(device) };
        self.made.lock().insert(name, made);
        self.add_stream(&mut state, name, priority, made)
    }

    pub(in crate::sched) fn add_stream(
        &self,
        state: &mut State,
        name: StreamName,
        priority: i32,
        made: Origin,
    ) -> Result<Arc<StreamHandle>> {
        // Only for the same device and priority, so that the queue continues and old points keep their meaning.
        let is_reusable = |stream: &Stream| {
            !stream.in_use
                && stream.name.device == name.device
                && stream.priority == priority
                && stream.is_done(stream.submitted)
        };
        // A fault of the slot's previous stream must not be ordered before work of the new one.
        self.harvest(state);
        let with_faults: SmallVec<[u32; 4]> = state.ledger.unreported.iter().map(|fault| fault.slot).collect();
        let found = state
            .streams
            .iter()
            .enumerate()
            .find(|(at, stream)| is_reusable(stream) && !with_faults.contains(&(*at as u32)));
        let slot = found.map_or(state.streams.len(), |(at, _)| at) as u32;
        let DeviceId::Cuda(index) = name.device else { unreachable!("streams are of GPUs") };
        let gpus = self.gpus().expect("a device was named");
        let (completed, submitted) = match state.streams.get(slot as usize) {
            Some(old) => (old.completed.clone(), old.submitted),
            None => {
                let made = gpus.queues.stream(slot, index, priority);
                let made =
                    made.map_err(|text| Diag::error(code::STREAM, format!("no stream on {}: {text}", name.device)))?;
                (made, 0)
            }
        };
        let lane = state.clocks.stream(name);
        let stream = Stream::new(name, priority, (completed, submitted), lane);
        let handle = Arc::new(StreamHandle { slot, name, priority, made, runtime: Arc::downgrade(&self.shared()) });
        state.handles.resize(state.streams.len().max(slot as usize + 1), Weak::new());
        state.handles[slot as usize] = Arc::downgrade(&handle);
        if slot as usize == state.streams.len() {
            state.streams.push(stream);
            state.windows.push(Default::default());
        } else {
            state.streams[slot as usize] = stream;
        }
        Ok(handle)
    }

    fn retire_stream(&self, slot: u32) {
        let mut state = self.state.lock();
        self.run_window(&mut state, slot);
        let lane = state.streams[slot as usize].lane;
        state.clocks.retire(lane);
        let name = state.streams[slot as usize].name;
        self.made.lock().remove(&name);
        state.streams[slot as usize].in_use = false;
    }

    /// Where work of a device is queued now, as diagnostics name it.
    pub fn place_of(&self, device: DeviceId) -> String {
        match self.current_stream(device) {
            Ok(stream) => stream.name.to_string(),
            Err(_) => device.to_string(),
        }
    }

    /// What is queued on the stream now, as a moment.
    pub(in crate::sched) fn moment(&self, state: &mut State, slot: u32, timing: bool) -> Moment {
        let stamp = self.flush_stream(state, slot, timing);
        let lane = state.streams[slot as usize].lane;
        let clock = state.clocks.record(lane);
        let stream = &state.streams[slot as usize];
        let point = Point { stream: slot, sequence: stream.submitted };
        let mut past = stream.past_log.now().clone();
        past.raise(slot, self.current_queue_number() - 1);
        Moment { point, name: stream.name, past, clock, stamp }
    }

    /// Queues the recorded work of the stream, and a task for waits without work, so that the stream's last
    /// submission comes after all that the stream waits for.
    fn flush_stream(&self, state: &mut State, slot: u32, timing: bool) -> Option<Stamp> {
        self.run_window(state, slot);
        if !timing && state.streams[slot as usize].waits.is_empty() {
            return None;
        }
        self.enqueue_timed(state, slot, Task::Nothing, timing)
    }

    /// Makes future work of a stream come after a moment.
    pub(in crate::sched) fn wait_moment(&self, state: &mut State, slot: u32, moment: &Moment) {
        self.run_window(state, slot);
        let lane = state.streams[slot as usize].lane;
        state.clocks.wait(lane, &moment.clock);
        let done = moment.point.stream == slot
            || moment.point.sequence == 0
            || state.streams[moment.point.stream as usize].is_done(moment.point.sequence);
        let stream = &mut state.streams[slot as usize];
        if !done {
            match stream.waits.iter_mut().find(|point| point.stream == moment.point.stream) {
                Some(point) => point.sequence = point.sequence.max(moment.point.sequence),
                None => stream.waits.push(moment.point),
            }
        }
        stream.past_log.join(self.current_queue_number(), &moment.past);
    }

    /// `waiter.wait_stream(waited)`.
    pub fn wait_stream(&self, waiter: &StreamHandle, waited: &StreamHandle) -> Result<()> {
        self.check_own(waiter)?;
        self.check_own(waited)?;
        self.order_slots(&mut self.state.lock(), waiter.slot, waited.slot);
        Ok(())
    }

    /// Future work of one slot comes after what is queued on the other.
    pub(in crate::sched) fn order_slots(&self, state: &mut State, waiter: u32, waited: u32) {
        if waiter != waited {
            let moment = self.moment(state, waited, false);
            self.wait_moment(state, waiter, &moment);
        }
    }

    /// Makes the slot's stream current on its device; returns the stream to restore. Does nothing for a stream
    /// without handles.
    pub fn enter_slot(&self, slot: u32) -> Option<Arc<StreamHandle>> {
        let handle = self.state.lock().handles.get(slot as usize)?.upgrade()?;
        let previous = self.set_current_stream(&handle).ok()?;
        Some(previous)
    }

    /// Future work of one slot comes after what is queued on another, of any device.
    pub fn order_after(&self, waiter: u32, waited: u32) {
        if waiter != waited && waiter != HOST && waited != HOST {
            self.order_slots(&mut self.state.lock(), waiter, waited);
        }
    }

    /// The event stands for what is queued on the stream now.
    pub fn record_event(&self, event: &Event, stream: &StreamHandle) -> Result<()> {
        self.check_own(stream)?;
        let mut state = self.state.lock();
        let moment = self.moment(&mut state, stream.slot, event.timing);
        if self.options.blocking {
            self.wait_point(&mut state, moment.point)?;
        }
        drop(state);
        *event.moment.lock() = Some(Arc::new(moment));
        Ok(())
    }

    /// Future work of the stream comes after the event; an event that was not recorded is ignored.
    pub fn wait_event(&self, stream: &StreamHandle, event: &Event) -> Result<()> {
        self.check_own(stream)?;
        if let Some(moment) = event.moment() {
            self.wait_moment(&mut self.state.lock(), stream.slot, &moment);
        }
        Ok(())
    }

    /// Whether all queued work of the stream has ended. Never raises a fault.
    pub fn query_stream(&self, stream: &StreamHandle) -> Result<bool> {
        self.check_own(stream)?;
        let mut state = self.state.lock();
        self.flush_stream(&mut state, stream.slot, false);
        let known = &state.streams[stream.slot as usize];
        let (point, lane) = (Point { stream: stream.slot, sequence: known.submitted }, known.lane);
        if !self.poll(&state, point) {
            return Ok(false);
        }
        state.clocks.host_sync(lane);
        Ok(true)
    }

    /// Whether the event's moment has passed; true before it is recorded, as in PyTorch.
    pub fn query_event(&self, event: &Event) -> Result<bool> {
        let Some(moment) = event.moment() else { return Ok(true) };
        let mut state = self.state.lock();
        if !self.poll(&state, moment.point) {
            return Ok(false);
        }
        state.clocks.host_sync_event(&moment.clock);
        Ok(true)
    }

    pub(super) fn poll(&self, state: &State, point: Point) -> bool {
        let stream = &state.streams[point.stream as usize];
        if !stream.is_done(point.sequence)
            && let Some(gpus) = self.gpus()
        {
            gpus.queues.poll(point.stream);
        }
        stream.is_done(point.sequence)
    }

    /// Waits for the stream; raises the earliest unreported fault that is ordered before.
    pub fn synchronize_stream(&self, stream: &StreamHandle) -> Result<()> {
        self.check_own(stream)?;
        let mut state = self.state.lock();
        let moment = self.moment(&mut state, stream.slot, false);
        self.synchronize_moment(&mut state, &moment)
    }

    /// Waits for the event; raises the earliest unreported fault that is ordered before.
    pub fn synchronize_event(&self, event: &Event) -> Result<()> {
        let Some(moment) = event.moment() else { return Ok(()) };
        let mut state = self.state.lock();
        self.synchronize_moment(&mut state, &moment)
    }

    fn synchronize_moment(&self, state: &mut State, moment: &Moment) -> Result<()> {
        let _waiting = self.waiting("synchronize");
        self.wait_point(state, moment.point)?;
        state.clocks.host_sync_event(&moment.clock);
        state.host_past.join(&moment.past);
        self.raise_first(state, |fault| fault.is_within(&moment.past))
    }

    /// Waits for everything on one device; raises the earliest unreported fault there, or of work that it came after.
    pub fn synchronize_device(&self, device: DeviceId) -> Result<()> {
        if device == DeviceId::Cpu {
            let mut state = self.state.lock();
            self.run_window(&mut state, HOST);
            let past = state.streams[HOST as usize].past_log.now().clone();
            return self.raise_first(&mut state, |fault| fault.slot == HOST || fault.is_within(&past));
        }
        self.gpu_index(device)?;
        let past = self.drain_device(device)?;
        self.raise_first(&mut self.state.lock(), |fault| fault.device == device || fault.is_within(&past))
    }

    /// Waits for everything on one device, and returns what that came after. Faults stay unreported.
    pub(in crate::sched) fn drain_device(&self, device: DeviceId) -> Result<Past> {
        let _waiting = self.waiting("synchronize");
        let mut state = self.state.lock();
        let mut past = Past::default();
        for slot in 1..state.streams.len() as u32 {
            if state.streams[slot as usize].name.device == device {
                let moment = self.moment(&mut state, slot, false);
                self.wait_point(&mut state, moment.point)?;
                state.clocks.host_sync_event(&moment.clock);
                past.join(&moment.past);
            }
        }
        state.host_past.join(&past);
        Ok(past)
    }

    /// Every stream comes after what is queued on every other now.
    pub fn stream_barrier(&self, streams: &[Arc<StreamHandle>]) -> Result<()> {
        streams.iter().try_for_each(|stream| self.check_own(stream))?;
        let mut state = self.state.lock();
        let moments: Vec<Moment> = streams.iter().map(|stream| self.moment(&mut state, stream.slot, false)).collect();
        for stream in streams {
            for moment in moments.iter().filter(|moment| moment.point.stream != stream.slot) {
                self.wait_moment(&mut state, stream.slot, moment);
            }
        }
        Ok(())
    }

    /// Milliseconds between two events. Both must have been created with timing, recorded and finished.
    pub fn elapsed_ms(&self, start: &Event, stop: &Event) -> Result<f64> {
        if !start.timing || !stop.timing {
            let which = if start.timing { "the second event was" } else { "the first event was" };
            return Err(Diag::error(code::EVENT, format!("{which} made without `timing`"))
                .help("make both with `event(#{timing: true})`"));
        }
        let (Some(a), Some(b)) = (start.moment(), stop.moment()) else {
            let which = if start.moment().is_none() { "first" } else { "second" };
            return Err(Diag::error(code::EVENT, format!("the {which} event was not recorded"))
                .help("record both events before asking for the time between them"));
        };
        if a.name.device != b.name.device {
            let text = format!("the events were recorded on {} and {}", a.name.device, b.name.device);
            return Err(
                Diag::error(code::EVENT, text).help("only the time between two events of one device can be measured")
            );
        }
        let mut state = self.state.lock();
        for (moment, which) in [(&a, "first"), (&b, "second")] {
            if !self.poll(&state, moment.point) {
                return Err(Diag::error(code::EVENT, format!("the {which} event has not been reached yet"))
                    .help("call `synchronize()` on it first"));
            }
            state.clocks.host_sync_event(&moment.clock);
        }
        match (&a.stamp, &b.stamp, self.gpus()) {
            (Some(a), Some(b), Some(gpus)) => {
                gpus.backend.elapsed_ms(a, b).map_err(|text| Diag::error(code::EVENT, text))
            }
            _ => Err(Diag::error(code::EVENT, "an event was recorded on a device that does not respond any more")),
        }
    }

    /// Keeps the stream busy for a time.
    pub fn sleep(&self, stream: &StreamHandle, ms: f64) -> Result<()> {
        self.check_own(stream)?;
        let begun = self.time_now();
        let mut state = self.state.lock();
        let state = &mut *state;
        self.run_window(state, stream.slot);
        let origin = self.timeline.as_ref().map_or(Origin::NONE, |trace| trace.here());
        let part = Part { name: "sleep", origin, number: self.next_number() };
        let task = Task::Sleep { ns: (ms.max(0.0) * 1e6) as u64 };
        let Enqueued { sequence, timing, ran, .. } = self.enqueue_watched(state, stream.slot, task, part);
        self.note_launch(begun, part);
        let point = Point { stream: stream.slot, sequence };
        if timing.is_some() {
            state.ledger.push(Entry { timing, ran, ..Entry::new(point, Vec::new()) }, stream.name.device);
        }
        if self.options.blocking {
            let _waiting = self.waiting("running to the end");
            self.wait_point(state, point)?;
        }
        Ok(())
    }
}

impl State {
    /// The next number of a stream of a device; numbers are not reused.
    fn next_stream(&mut self, device: DeviceId) -> u32 {
        let DeviceId::Cuda(index) = device else { unreachable!("streams are of GPUs") };
        let next = &mut self.stream_numbers[index as usize];
        *next += 1;
        *next
    }
}
