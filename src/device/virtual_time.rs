//! Virtual time of simulated devices: which of the queued works ends next, drawn from a seed.
//!
//! Streams are queues; works of one stream run in order, works of several overlap except for the points of other
//! streams that they wait for. The duration of a work is its nominal time times a factor drawn from the seed, so that a
//! seed gives one order of completion, and many seeds give the orders that are possible on a machine. A pure state
//! machine: it runs nothing and reads no clock. The caller runs a work when it ends here.

use super::queues::Point;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// A work that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    pub stream: u32,
    pub sequence: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

struct Work {
    after: SmallVec<[Point; 2]>,
    takes_ns: u64,
    /// When the host queued it, or when the last point that it waits for was passed, whichever is later.
    ready_ns: u64,
}

struct Queue {
    device: u16,
    works: VecDeque<Work>,
    ended: u64,
    /// When the last work ended.
    free_ns: u64,
}

/// Nominal time of a copy in ns: 2 µs plus 25 bytes a ns, about the rate of a PCIe link.
pub fn copy_ns(bytes: usize) -> u64 {
    2000 + bytes as u64 / 25
}

/// Bound: eighths of the nominal duration that a work may take: at least 8, so that `sleep` lasts as long as it says,
/// and up to 64, so that a work may overtake several others.
const DURATION_EIGHTHS: std::ops::RangeInclusive<u64> = 8..=64;

/// Virtual time that passes with each poll of the host.
const POLL_NS: u64 = 100_000;

/// The queues of all simulated devices of a session.
pub struct VirtualTime {
    seed: u64,
    draws: u64,
    queues: BTreeMap<u32, Queue>,
    now_ns: u64,
    /// Virtual time of the host's last poll.
    polled_ns: u64,
}

impl VirtualTime {
    pub fn new(seed: u64) -> VirtualTime {
        VirtualTime { seed, draws: 0, queues: BTreeMap::new(), now_ns: 0, polled_ns: 0 }
    }

    /// SplitMix64 (G. Steele, D. Lea, C. Flood 2014), of a counter.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        let mut x = self.seed.wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn stream(&mut self, stream: u32, device: u16) {
        self.queues.insert(stream, Queue { device, works: VecDeque::new(), ended: 0, free_ns: self.now_ns });
    }

    /// Queues a work of about `nominal_ns`, to start after these points.
    pub fn queue(&mut self, stream: u32, nominal_ns: u64, after: &[Point]) {
        let factor = DURATION_EIGHTHS.start() + self.draw() % (DURATION_EIGHTHS.end() - DURATION_EIGHTHS.start() + 1);
        let takes_ns = (nominal_ns.saturating_mul(factor) / 8).max(1);
        let work = Work { after: SmallVec::from_slice(after), takes_ns, ready_ns: self.now_ns };
        if let Some(queue) = self.queues.get_mut(&stream) {
            queue.works.push_back(work);
        }
    }

    fn is_passed(&self, point: &Point) -> bool {
        self.queues.get(&point.stream).is_none_or(|queue| queue.ended >= point.sequence)
    }

    /// The host polls: `POLL_NS` of its time have passed.
    pub fn poll(&mut self) {
        self.polled_ns = self.polled_ns.max(self.now_ns) + POLL_NS;
    }

    /// Whether the work that ends next ends before the host's last poll.
    pub fn is_due(&self) -> bool {
        self.next().is_some_and(|ended| ended.end_ns <= self.polled_ns)
    }

    fn next(&self) -> Option<Ended> {
        let heads = self.queues.iter().filter_map(|(&stream, queue)| {
            let head = queue.works.front().filter(|head| head.after.iter().all(|point| self.is_passed(point)))?;
            let start_ns = queue.free_ns.max(head.ready_ns);
            let end_ns = start_ns.saturating_add(head.takes_ns);
            Some(Ended { stream, sequence: queue.ended + 1, start_ns, end_ns })
        });
        heads.min_by_key(|ended| (ended.end_ns, ended.stream))
    }

    /// Ends the work that ends next and advances the time to its end; `None` when nothing can end.
    pub fn end_next(&mut self) -> Option<Ended> {
        let ended = self.next()?;
        let queue = self.queues.get_mut(&ended.stream)?;
        queue.works.pop_front();
        queue.ended += 1;
        queue.free_ns = ended.end_ns;
        self.now_ns = self.now_ns.max(ended.end_ns);
        self.note_passed(Point { stream: ended.stream, sequence: ended.sequence });
        Some(ended)
    }

    /// Works that wait for this point can start now at the earliest.
    fn note_passed(&mut self, point: Point) {
        for work in self.queues.values_mut().flat_map(|queue| &mut queue.works) {
            let before = work.after.len();
            work.after.retain(|other| other.stream != point.stream || other.sequence > point.sequence);
            if work.after.len() < before {
                work.ready_ns = self.now_ns;
            }
        }
    }

    /// The device is lost: its works are dropped and count as ended, so that others that wait for them continue.
    pub fn lose(&mut self, device: u16) {
        let mut passed = Vec::new();
        for (&stream, queue) in self.queues.iter_mut().filter(|(_, queue)| queue.device == device) {
            queue.ended += queue.works.len() as u64;
            queue.works.clear();
            passed.push(Point { stream, sequence: queue.ended });
        }
        passed.into_iter().for_each(|point| self.note_passed(point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn drain(time: &mut VirtualTime) -> Vec<u32> {
        std::iter::from_fn(|| time.end_next()).map(|ended| ended.stream).collect()
    }

    #[test]
    fn a_seed_is_an_order_and_seeds_show_them_all() {
        let order = |seed| {
            let mut time = VirtualTime::new(seed);
            for stream in 0..3 {
                time.stream(stream, 0);
                time.queue(stream, 1000, &[]);
            }
            drain(&mut time)
        };
        let orders: BTreeSet<Vec<u32>> = (0..200).map(order).collect();
        assert_eq!(orders.len(), 6);
        assert_eq!(order(7), order(7));
    }

    #[test]
    fn random_programs_end_in_an_order_that_their_points_allow() {
        for seed in 0..500 {
            let mut time = VirtualTime::new(seed);
            (0..4).for_each(|stream| time.stream(stream, stream as u16));
            let mut queued = [0u64; 4];
            let mut needs: Vec<Vec<Vec<Point>>> = vec![Vec::new(); 4];
            let (mut ended, mut last_ns) = ([0u64; 4], 0);
            let mut check = |time: &mut VirtualTime, needs: &[Vec<Vec<Point>>]| {
                let Some(one) = time.end_next() else { return false };
                let stream = one.stream as usize;
                let passed = |point: &Point| ended[point.stream as usize] >= point.sequence;
                assert!(needs[stream][ended[stream] as usize].iter().all(passed), "seed {seed}");
                ended[stream] += 1;
                assert_eq!(one.sequence, ended[stream]);
                assert!(one.end_ns >= last_ns && one.start_ns < one.end_ns, "time runs forward");
                last_ns = one.end_ns;
                true
            };
            for _ in 0..80 {
                let choice = time.draw() as usize;
                let (stream, other) = (choice / 8 % 4, choice / 32 % 4);
                if choice % 8 < 5 {
                    let point = Point { stream: other as u32, sequence: queued[other] };
                    let after = if choice % 8 < 2 && other != stream { vec![point] } else { Vec::new() };
                    time.queue(stream as u32, 100, &after);
                    needs[stream].push(after);
                    queued[stream] += 1;
                } else {
                    check(&mut time, &needs);
                }
            }
            while check(&mut time, &needs) {}
            assert_eq!(ended, queued);
        }
    }

    #[test]
    fn a_work_that_waits_starts_when_the_other_ended() {
        let mut time = VirtualTime::new(3);
        time.stream(0, 0);
        time.stream(1, 0);
        time.queue(0, copy_ns(1 << 20), &[]);
        time.queue(1, 10, &[Point { stream: 0, sequence: 1 }]);
        let first = time.end_next().expect("queued");
        let second = time.end_next().expect("queued");
        assert_eq!((first.stream, second.stream, second.start_ns), (0, 1, first.end_ns));
    }

    #[test]
    fn polling_lets_time_pass() {
        let mut time = VirtualTime::new(1);
        time.stream(0, 0);
        time.queue(0, 8 * 50 * POLL_NS, &[]);
        let polls = (1..)
            .take_while(|_| {
                time.poll();
                !time.is_due()
            })
            .count();
        assert!((49..64 * 50).contains(&polls), "{polls}");
        assert!(time.end_next().is_some() && !time.is_due());
    }

    #[test]
    fn a_lost_device_holds_up_nobody() {
        let mut time = VirtualTime::new(1);
        time.stream(0, 0);
        time.stream(1, 1);
        time.queue(0, 10, &[]);
        time.queue(0, 10, &[]);
        time.queue(1, 10, &[Point { stream: 0, sequence: 2 }]);
        time.lose(0);
        assert_eq!(drain(&mut time), [1]);
    }
}
