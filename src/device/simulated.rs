//! Simulated GPUs: asynchronous queues over host memory.
//!
//! Streams are queues; works of one stream run in order, works of several overlap except for the points that they wait for.
//! Without a seed each device has a thread of its own and works take real time; with a seed nothing runs until the host
//! waits, time is virtual, and which work ends next is drawn from the seed (`virtual_time`). Knows no operation and no
//! tensor: a work is a closure over addresses.

use super::clock::Clock;
use super::queues::{Point, Queues};
use super::stop::Stop;
use super::virtual_time::VirtualTime;
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a work does when its turn comes.
pub type Job = Box<dyn FnOnce() + Send>;

/// One work of a stream.
#[derive(Default)]
pub struct Work {
    /// Points of other streams that it waits for.
    pub after: SmallVec<[Point; 2]>,
    pub job: Option<Job>,
    /// How long it occupies its stream at least; virtual time multiplies it with a random factor.
    pub takes_ns: u64,
    /// Receives the time at which it started, in ns since the simulator was made.
    pub began: Option<Arc<AtomicU64>>,
    /// Receives the time at which it ended, in ns since the simulator was made.
    pub stamp: Option<Arc<AtomicU64>>,
}

struct Item {
    sequence: u64,
    work: Work,
}

struct Queue {
    device: u16,
    /// Lower is served first.
    priority: i32,
    items: VecDeque<Item>,
    submitted: u64,
    completed: Arc<AtomicU64>,
    /// The current work: it has run, or runs, and ends at this time.
    running: bool,
    ends_at: Option<(Instant, u64, Option<Arc<AtomicU64>>)>,
}

struct State {
    queues: HashMap<u32, Queue>,
    /// Ascending, so that choices do not depend on the map's order.
    order: Vec<u32>,
    drawn: Option<VirtualTime>,
    started: Vec<bool>,
    stop: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    clock: Clock,
}

/// The simulated devices of one session.
pub struct Simulator {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    is_drawn: bool,
}

impl Simulator {
    /// `seed`: virtual time with an order of completion drawn from it.
    pub fn new(devices: usize, seed: Option<u64>) -> Simulator {
        let state = State {
            queues: HashMap::new(),
            order: Vec::new(),
            drawn: seed.map(VirtualTime::new),
            started: vec![false; devices],
            stop: false,
        };
        let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), clock: Clock::start() };
        Simulator { shared: Arc::new(shared), threads: Mutex::default(), is_drawn: seed.is_some() }
    }

    /// Counts from the simulator's creation. Not used with a seed, whose time is virtual.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Queues a work and returns its sequence number.
    pub fn submit(&self, stream: u32, work: Work) -> u64 {
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        let Some(queue) = state.queues.get_mut(&stream) else { return 0 };
        queue.submitted += 1;
        let sequence = queue.submitted;
        let device = queue.device as usize;
        if let Some(drawn) = &mut state.drawn {
            drawn.queue(stream, work.takes_ns.max(1000), &work.after);
        } else if !std::mem::replace(&mut state.started[device], true) {
            self.start(device as u16);
        }
        queue.items.push_back(Item { sequence, work });
        self.shared.changed.notify_all();
        sequence
    }

    fn start(&self, device: u16) {
        let shared = self.shared.clone();
        let run = move || shared.serve(device);
        if let Ok(thread) = std::thread::Builder::new().name(format!("tscript-sim-{device}")).spawn(run) {
            self.threads.lock().push(thread);
        }
    }

    /// Virtual time: runs the work that ends next.
    fn end_one(&self) {
        let mut state = self.shared.state.lock();
        let Some(ended) = state.drawn.as_mut().and_then(VirtualTime::end_next) else { return };
        let Some(item) = state.queues.get_mut(&ended.stream).and_then(|queue| queue.items.pop_front()) else { return };
        drop(state);
        if let Some(began) = item.work.began {
            began.store(ended.start_ns.max(1), Ordering::Release);
        }
        if let Some(job) = item.work.job {
            run(job);
        }
        if let Some(stamp) = item.work.stamp {
            stamp.store(ended.end_ns.max(1), Ordering::Release);
        }
        let state = self.shared.state.lock();
        if let Some(queue) = state.queues.get(&ended.stream) {
            queue.completed.store(item.sequence, Ordering::Release);
        }
    }
}

impl Queues for Simulator {
    fn stream(&self, number: u32, device: u16, priority: i32) -> Result<Arc<AtomicU64>, String> {
        let completed = Arc::new(AtomicU64::new(0));
        let mut state = self.shared.state.lock();
        let queue = Queue {
            device,
            priority,
            items: VecDeque::new(),
            submitted: 0,
            completed: completed.clone(),
            running: false,
            ends_at: None,
        };
        state.queues.insert(number, queue);
        state.order.push(number);
        if let Some(drawn) = &mut state.drawn {
            drawn.stream(number, device);
        }
        Ok(completed)
    }

    fn wait(&self, stream: u32, sequence: u64, stop: &Stop) -> bool {
        let mut state = self.shared.state.lock();
        loop {
            let passed = |queue: &Queue| queue.completed.load(Ordering::Acquire) >= sequence;
            if state.queues.get(&stream).is_none_or(passed) {
                return true;
            }
            if stop.is_due() {
                return false;
            }
            if state.drawn.is_some() {
                drop(state);
                self.end_one();
                state = self.shared.state.lock();
            } else {
                self.shared.changed.wait_for(&mut state, Duration::from_millis(20));
            }
        }
    }

    fn wait_idle(&self, device: u16, stop: &Stop) -> bool {
        let points: Vec<(u32, u64)> = {
            let state = self.shared.state.lock();
            let mine = state.queues.iter().filter(|(_, queue)| queue.device == device);
            mine.map(|(&stream, queue)| (stream, queue.submitted)).collect()
        };
        points.into_iter().all(|(stream, sequence)| self.wait(stream, sequence, stop))
    }

    fn refresh(&self, _stream: u32) {}

    /// A host that polls in a loop lets virtual time pass, a little with each call.
    fn poll(&self, _stream: u32) {
        if !self.is_drawn {
            return;
        }
        let ends = |drawn: &mut VirtualTime| drawn.is_due();
        if let Some(drawn) = &mut self.shared.state.lock().drawn {
            drawn.poll();
        }
        while self.shared.state.lock().drawn.as_mut().is_some_and(ends) {
            self.end_one();
        }
    }

    fn lose(&self, device: u16) {
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        if let Some(drawn) = &mut state.drawn {
            drawn.lose(device);
        }
        for queue in state.queues.values_mut().filter(|queue| queue.device == device) {
            queue.items.clear();
            queue.ends_at = None;
            if !queue.running {
                queue.completed.store(queue.submitted, Ordering::Release);
            }
        }
        self.shared.changed.notify_all();
    }

    fn hurry(&self) {
        let mut state = self.shared.state.lock();
        let now = Instant::now();
        for queue in state.queues.values_mut() {
            queue.items.iter_mut().for_each(|item| item.work.takes_ns = 0);
            if let Some((end, ..)) = &mut queue.ends_at {
                *end = now;
            }
        }
        self.shared.changed.notify_all();
    }

    /// Ends the threads; work that has not started is dropped. A kernel under way is stopped by its guard.
    fn stop(&self, _waiting: &Stop) -> bool {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        for thread in self.threads.lock().drain(..) {
            // Panics of jobs were caught, so the thread's result carries nothing.
            let _ = thread.join();
        }
        for queue in self.shared.state.lock().queues.values() {
            queue.completed.store(queue.submitted, Ordering::Release);
        }
        true
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.stop(&Stop::default());
    }
}

/// A panic inside a job must not end the queue's thread; the job's report is missing then, and its outputs are
/// undefined.
fn run(job: Job) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
}

impl Shared {
    /// The thread of one device.
    fn serve(&self, device: u16) {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return;
            }
            let now = Instant::now();
            let next_end = self.end_due(&mut state, device, now);
            if let Some((stream, item)) = take_ready(&mut state, device) {
                let Item { sequence, work } = item;
                drop(state);
                if let Some(began) = work.began {
                    began.store(self.clock.now_ns().max(1), Ordering::Release);
                }
                if let Some(job) = work.job {
                    run(job);
                }
                state = self.state.lock();
                let end = now + Duration::from_nanos(work.takes_ns);
                if let Some(queue) = state.queues.get_mut(&stream) {
                    // After `lose` nobody waits for the device any more.
                    let lost = sequence <= queue.completed.load(Ordering::Acquire);
                    if !lost && end > Instant::now() {
                        queue.ends_at = Some((end, sequence, work.stamp));
                    } else {
                        self.finish(queue, sequence, work.stamp);
                    }
                }
                continue;
            }
            match next_end {
                Some(end) => {
                    self.changed.wait_until(&mut state, end);
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn finish(&self, queue: &mut Queue, sequence: u64, stamp: Option<Arc<AtomicU64>>) {
        queue.running = false;
        if let Some(stamp) = stamp {
            stamp.store(self.clock.now_ns().max(1), Ordering::Release);
        }
        // The stream of a lost device has no items left: all of it counts as completed.
        let reached = if queue.items.is_empty() { queue.submitted } else { sequence };
        queue.completed.store(reached.max(sequence), Ordering::Release);
        self.changed.notify_all();
    }

    /// Finishes the works whose time is over; the earliest end of the others.
    fn end_due(&self, state: &mut State, device: u16, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for queue in state.queues.values_mut().filter(|queue| queue.device == device) {
            match queue.ends_at.take() {
                Some((end, sequence, stamp)) if end <= now => self.finish(queue, sequence, stamp),
                Some(later) => {
                    next = Some(next.map_or(later.0, |next| next.min(later.0)));
                    queue.ends_at = Some(later);
                }
                None => {}
            }
        }
        next
    }
}

/// The first work of a stream that may run now: of the highest priority, and among those of the oldest stream.
fn take_ready(state: &mut State, device: u16) -> Option<(u32, Item)> {
    let passed = |point: &Point| {
        let queue = state.queues.get(&point.stream);
        queue.is_none_or(|queue| queue.completed.load(Ordering::Acquire) >= point.sequence)
    };
    let ready = |stream: &&u32| {
        let queue = &state.queues[*stream];
        let head = queue.items.front();
        queue.device == device && !queue.running && head.is_some_and(|item| item.work.after.iter().all(passed))
    };
    let stream = *state.order.iter().filter(ready).min_by_key(|stream| state.queues[stream].priority)?;
    let queue = state.queues.get_mut(&stream)?;
    queue.running = true;
    let item = queue.items.pop_front()?;
    Some((stream, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(log: &Arc<Mutex<Vec<u32>>>, value: u32) -> Option<Job> {
        let log = log.clone();
        Some(Box::new(move || log.lock().push(value)))
    }

    fn after(stream: u32, sequence: u64) -> SmallVec<[Point; 2]> {
        smallvec::smallvec![Point { stream, sequence }]
    }

    #[test]
    fn works_keep_the_order_of_their_stream_and_of_their_points() {
        for seed in [None, Some(1), Some(2), Some(3)] {
            let sim = Simulator::new(2, seed);
            let done = sim.stream(1, 0, 0).expect("a stream");
            let _ = sim.stream(2, 1, 0);
            let log = Arc::new(Mutex::new(Vec::new()));
            for n in 0..50 {
                let first = sim.submit(1, Work { job: note(&log, 2 * n), ..Work::default() });
                let second = Work { job: note(&log, 2 * n + 1), after: after(1, first), ..Work::default() };
                let second = sim.submit(2, second);
                sim.submit(1, Work { after: after(2, second), ..Work::default() });
            }
            assert!(sim.wait(1, 100, &Stop::default()));
            assert_eq!(done.load(Ordering::Acquire), 100);
            assert_eq!(*log.lock(), (0..100).collect::<Vec<u32>>(), "{seed:?}");
        }
    }

    #[test]
    fn sleeping_streams_overlap_and_stamps_tell_their_time() {
        let sim = Simulator::new(1, None);
        let stamps: Vec<Arc<AtomicU64>> = (0..3).map(|_| Arc::default()).collect();
        let begun = Instant::now();
        for (n, stamp) in stamps.iter().enumerate() {
            let _ = sim.stream(n as u32, 0, 0);
            sim.submit(n as u32, Work { takes_ns: 60_000_000, stamp: Some(stamp.clone()), ..Work::default() });
        }
        assert!(sim.wait_idle(0, &Stop::default()));
        assert!(begun.elapsed() < Duration::from_millis(170), "one after the other would take 180 ms");
        assert!(stamps.iter().all(|stamp| stamp.load(Ordering::Acquire) >= 60_000_000));
    }

    #[test]
    fn a_lost_device_holds_up_nobody_and_waits_can_be_interrupted() {
        for seed in [None, Some(5)] {
            let sim = Simulator::new(2, seed);
            let _ = sim.stream(1, 0, 0);
            let _ = sim.stream(2, 1, 0);
            let sleep = sim.submit(1, Work { takes_ns: 3_600_000_000_000, ..Work::default() });
            let never = sim.submit(1, Work { job: Some(Box::new(|| panic!("never runs"))), ..Work::default() });
            if seed.is_none() {
                assert!(!sim.wait(1, sleep, &Stop::now()));
            }
            let other = sim.submit(2, Work { after: after(1, never), ..Work::default() });
            sim.lose(0);
            assert!(sim.wait(2, other, &Stop::default()), "{seed:?}");
        }
    }
}
