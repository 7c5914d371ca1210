//! Time on simulated devices: which of the queued works ends next, drawn from a seed.
//!
//! Streams are queues; works of one stream follow each other, works of several overlap freely but for the
//! events between them. How long a work takes is its nominal time and a factor drawn from the seed, so that a
//! seed stands for one order of completion, and many seeds for the orders that a machine might show.
//! A pure state machine: it runs nothing and reads no clock. Whoever drives it runs a work when it ends here.

use crate::base::device_id::DeviceId;
use std::collections::{BTreeMap, VecDeque};

/// A stream's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamQueue(usize);

/// A recorded event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventTime(u64);

/// A queued work; tickets ascend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(pub u64);

/// A work that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    pub ticket: Ticket,
    pub stream: StreamQueue,
    pub start_ns: u64,
    pub end_ns: u64,
}

enum Item {
    /// Not before `queued_ns`, when the host queued it.
    Work {
        ticket: Ticket,
        queued_ns: u64,
        takes_ns: u64,
    },
    Record {
        event: u64,
        queued_ns: u64,
    },
    Wait(u64),
}

struct Queue {
    device: DeviceId,
    items: VecDeque<Item>,
    /// When the last work ended.
    free_ns: u64,
}

#[derive(Default)]
struct Event {
    reached_ns: Option<u64>,
    waiters: u32,
    forgotten: bool,
}

/// Nominal time of a copy in ns: 2 µs and 25 bytes a ns, about what a PCIe link does.
pub fn copy_ns(bytes: usize) -> u64 {
    2000 + bytes as u64 / 25
}

/// Bound: a drawn time is 1 to 64 eighths of the nominal one; wide enough for any work to overtake several.
const EIGHTHS: u64 = 64;

/// The queues of all simulated devices of a session.
pub struct VirtualTime {
    seed: u64,
    draws: u64,
    queues: Vec<Queue>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    next_ticket: u64,
    now_ns: u64,
}

impl VirtualTime {
    pub fn new(seed: u64) -> VirtualTime {
        let (queues, events) = (Vec::new(), BTreeMap::new());
        VirtualTime { seed, draws: 0, queues, events, next_event: 0, next_ticket: 0, now_ns: 0 }
    }

    /// SplitMix64 (G. Steele, D. Lea, C. Flood 2014), by counter.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        let mut x = self.seed.wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn stream(&mut self, device: DeviceId) -> StreamQueue {
        self.queues.push(Queue { device, items: VecDeque::new(), free_ns: self.now_ns });
        StreamQueue(self.queues.len() - 1)
    }

    /// Virtual time: the end of the latest work that has ended.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Queues a work of about `nominal_ns`.
    pub fn queue(&mut self, stream: StreamQueue, nominal_ns: u64) -> Ticket {
        let factor = 1 + self.draw() % EIGHTHS;
        let takes_ns = (nominal_ns.saturating_mul(factor) / 8).max(1);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let queued_ns = self.now_ns;
        self.queues[stream.0].items.push_back(Item::Work { ticket, queued_ns, takes_ns });
        ticket
    }

    /// The event is reached when all that is queued on the stream now has ended.
    pub fn record(&mut self, stream: StreamQueue) -> EventTime {
        let event = self.next_event;
        self.next_event += 1;
        self.events.insert(event, Event::default());
        self.queues[stream.0].items.push_back(Item::Record { event, queued_ns: self.now_ns });
        self.settle();
        EventTime(event)
    }

    /// What is queued on the stream from now on starts after the event is reached.
    pub fn wait(&mut self, stream: StreamQueue, event: EventTime) {
        if let Some(known) = self.events.get_mut(&event.0) {
            known.waiters += 1;
            self.queues[stream.0].items.push_back(Item::Wait(event.0));
            self.settle();
        }
    }

    /// When the event was reached; `None` before that.
    pub fn reached_ns(&self, event: EventTime) -> Option<u64> {
        self.events.get(&event.0)?.reached_ns
    }

    /// Nobody will ask for the event any more; waits that are queued still hold.
    pub fn forget(&mut self, event: EventTime) {
        if let Some(known) = self.events.get_mut(&event.0) {
            known.forgotten = true;
        }
        self.drop_if_unused(event.0);
    }

    fn drop_if_unused(&mut self, event: u64) {
        let unused = |event: &Event| event.forgotten && event.waiters == 0 && event.reached_ns.is_some();
        if self.events.get(&event).is_some_and(unused) {
            self.events.remove(&event);
        }
    }

    /// Whether all that was queued on the stream has ended.
    pub fn is_idle(&self, stream: StreamQueue) -> bool {
        self.queues[stream.0].items.is_empty()
    }

    /// Passes events at the heads of queues until only works and unreached waits stand there.
    fn settle(&mut self) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for queue in 0..self.queues.len() {
                while self.pass_event(queue) {
                    moved = true;
                }
            }
        }
    }

    fn pass_event(&mut self, index: usize) -> bool {
        let queue = &mut self.queues[index];
        let event = match queue.items.front() {
            Some(&Item::Record { event, queued_ns }) => {
                if let Some(known) = self.events.get_mut(&event) {
                    known.reached_ns = Some(queue.free_ns.max(queued_ns));
                }
                event
            }
            Some(&Item::Wait(event)) => {
                let Some(known) = self.events.get_mut(&event) else { return false };
                let Some(reached) = known.reached_ns else { return false };
                known.waiters -= 1;
                queue.free_ns = queue.free_ns.max(reached);
                event
            }
            _ => return false,
        };
        queue.items.pop_front();
        self.drop_if_unused(event);
        true
    }

    /// The work that ends next, and time moves there; `None` when nothing is queued.
    pub fn end_next(&mut self) -> Option<Ended> {
        let heads = self.queues.iter().enumerate().filter_map(|(index, queue)| match queue.items.front() {
            Some(&Item::Work { ticket, queued_ns, takes_ns }) => {
                let start_ns = queue.free_ns.max(queued_ns);
                Some(Ended { ticket, stream: StreamQueue(index), start_ns, end_ns: start_ns.saturating_add(takes_ns) })
            }
            _ => None,
        });
        let ended = heads.min_by_key(|ended| (ended.end_ns, ended.ticket))?;
        let queue = &mut self.queues[ended.stream.0];
        queue.items.pop_front();
        queue.free_ns = ended.end_ns;
        self.now_ns = self.now_ns.max(ended.end_ns);
        self.settle();
        Some(ended)
    }

    /// The device is gone: its works are dropped and returned, and its events count as reached, so that other
    /// devices that wait for them go on.
    pub fn lose(&mut self, device: DeviceId) -> Vec<Ticket> {
        let mut dropped = Vec::new();
        for queue in self.queues.iter_mut().filter(|queue| queue.device == device) {
            for item in &queue.items {
                if let Item::Work { ticket, .. } = item {
                    dropped.push(*ticket);
                }
            }
            queue.free_ns = queue.free_ns.max(self.now_ns);
            queue.items.retain(|item| !matches!(item, Item::Work { .. }));
        }
        self.settle();
        dropped.sort();
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DEVICE: DeviceId = DeviceId::Cuda(0);

    fn drain(time: &mut VirtualTime) -> Vec<u64> {
        std::iter::from_fn(|| time.end_next()).map(|ended| ended.ticket.0).collect()
    }

    #[test]
    fn a_seed_is_an_order_and_seeds_show_them_all() {
        let order = |seed| {
            let mut time = VirtualTime::new(seed);
            for _ in 0..3 {
                let stream = time.stream(DEVICE);
                time.queue(stream, 1000);
            }
            drain(&mut time)
        };
        let orders: BTreeSet<Vec<u64>> = (0..200).map(order).collect();
        assert_eq!(orders.len(), 6);
        assert_eq!(order(7), order(7));
    }

    #[test]
    fn random_programs_end_in_an_order_that_their_events_allow() {
        for seed in 0..500 {
            let mut time = VirtualTime::new(seed);
            let streams: Vec<StreamQueue> = (0..4).map(|n| time.stream(DeviceId::Cuda(n))).collect();
            // What must have ended before: by stream and by event.
            let mut before: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 4];
            let mut events: Vec<(EventTime, BTreeSet<u64>)> = Vec::new();
            let mut needs: Vec<BTreeSet<u64>> = Vec::new();
            let (mut ended, mut last_ns) = (BTreeSet::new(), 0);
            for step in 0..80 {
                let choice = time.draw() as usize;
                let stream = choice / 8 % 4;
                match choice % 8 {
                    0..3 => {
                        let ticket = time.queue(streams[stream], 100);
                        needs.push(before[stream].clone());
                        before[stream].insert(ticket.0);
                    }
                    3 | 4 => events.push((time.record(streams[stream]), before[stream].clone())),
                    5 | 6 if !events.is_empty() => {
                        let (event, after) = &events[choice / 32 % events.len()];
                        time.wait(streams[stream], *event);
                        before[stream].extend(after);
                    }
                    _ => ended.extend(time.end_next().map(|one| one.ticket.0)),
                }
                for (event, after) in &events {
                    assert_eq!(time.reached_ns(*event).is_some(), after.is_subset(&ended), "seed {seed}, step {step}");
                }
            }
            while let Some(one) = time.end_next() {
                assert!(needs[one.ticket.0 as usize].is_subset(&ended), "seed {seed}");
                assert!(one.end_ns >= last_ns && one.start_ns < one.end_ns, "time runs forward");
                last_ns = one.end_ns;
                assert!(ended.insert(one.ticket.0));
            }
            assert_eq!(ended.len(), needs.len());
            assert!(streams.iter().all(|&stream| time.is_idle(stream)));
        }
    }

    #[test]
    fn time_between_events_is_the_work_between_them() {
        let mut time = VirtualTime::new(3);
        let (a, b) = (time.stream(DEVICE), time.stream(DEVICE));
        let start = time.record(a);
        time.queue(a, copy_ns(1 << 20));
        let stop = time.record(a);
        time.wait(b, stop);
        let after = time.queue(b, 10);
        assert_eq!(time.reached_ns(stop), None);
        let first = time.end_next().expect("queued");
        assert_eq!(time.reached_ns(stop).zip(time.reached_ns(start)), Some((first.end_ns, first.start_ns)));
        let second = time.end_next().expect("queued");
        assert_eq!((second.ticket, second.start_ns), (after, first.end_ns));
        assert_eq!(time.now_ns(), second.end_ns);
    }

    #[test]
    fn a_lost_device_holds_up_nobody() {
        let mut time = VirtualTime::new(1);
        let (a, b) = (time.stream(DeviceId::Cuda(0)), time.stream(DeviceId::Cuda(1)));
        let lost = [time.queue(a, 10), time.queue(a, 10)];
        let event = time.record(a);
        time.wait(b, event);
        let kept = time.queue(b, 10);
        assert_eq!(time.lose(DeviceId::Cuda(0)), lost);
        assert!(time.reached_ns(event).is_some());
        assert_eq!(drain(&mut time), [kept.0]);
    }

    #[test]
    fn events_that_are_forgotten_leave_nothing() {
        let mut time = VirtualTime::new(1);
        let (a, b) = (time.stream(DEVICE), time.stream(DEVICE));
        for _ in 0..10_000 {
            time.queue(a, 10);
            let event = time.record(a);
            time.wait(b, event);
            time.forget(event);
            time.queue(b, 10);
            time.end_next();
            time.end_next();
            assert!(time.events.len() <= 1);
        }
        drain(&mut time);
        assert!(time.events.is_empty());
    }
}
