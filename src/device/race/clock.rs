//! Vector clocks of streams, events and the host.
//!
//! A component is a number of accesses: a clock that holds k for a stream comes after the first k accesses
//! of that stream. Knows no buffers.

use crate::base::device_id::DeviceId;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;

/// A stream as scripts number it: `number` 0 is its device's default stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamName {
    pub device: DeviceId,
    pub number: u32,
}

impl StreamName {
    /// The number of the stream of a device's prefetch copies; scripts do not see it.
    pub const COPIES: u32 = u32::MAX;
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            StreamName::COPIES => write!(f, "{} stream of copies", self.device),
            number => write!(f, "{} stream {number}", self.device),
        }
    }
}

/// The index of a stream's component in every clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lane(pub(super) u32);

/// Missing components are 0.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct Clock(SmallVec<[u64; 8]>);

impl Clone for Clock {
    /// Not: derived. The `clone` of `SmallVec` copies element by element.
    fn clone(&self) -> Clock {
        Clock(SmallVec::from_slice(&self.0))
    }
}

impl Clock {
    pub fn get(&self, lane: u32) -> u64 {
        self.0.get(lane as usize).copied().unwrap_or(0)
    }

    fn raise(&mut self, lane: u32, to: u64) {
        if self.0.len() <= lane as usize {
            self.0.resize(lane as usize + 1, 0);
        }
        let component = &mut self.0[lane as usize];
        *component = (*component).max(to);
    }

    /// Takes the elementwise maximum; says whether anything changed.
    fn join(&mut self, other: &Clock) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut rose = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            rose |= *mine < *theirs;
            *mine = (*mine).max(*theirs);
        }
        rose
    }
}

/// The clock of an event: what precedes the work after it, i.e. the work queued before it was recorded.
#[derive(Clone, Debug)]
pub struct EventClock(Clock);

/// Bound: past waits that a stream remembers for [`Clocks::host_wait`] on work that the host has not waited for yet; a
/// host wait for older work is taken to order less than it does.
const REMEMBERED_WAITS: usize = 64;
/// Bound: components of all clocks that a stream remembers, 32 KiB, but always at least a few waits: with a thousand
/// streams a clock has a thousand components.
const REMEMBERED_COMPONENTS: usize = 1 << 12;
const LEAST_WAITS: usize = 8;

struct Stream {
    name: StreamName,
    /// Its accesses so far; its component of `clock` is updated to it only when others read the clock.
    own: u64,
    clock: Clock,
    /// After how many accesses the clock changed, and the clock then. Ascending.
    waits: VecDeque<(u64, Clock)>,
    /// The last access that another stream or the host may be ordered after.
    released: u64,
    retired: bool,
}

/// The clocks of all streams of a session, and of its host thread.
///
/// What the host has waited for precedes everything that is queued later, on any stream; so it is not copied into the
/// streams' clocks, and every comparison reads the host's clock too.
#[derive(Default)]
pub struct Clocks {
    streams: Vec<Stream>,
    host: Clock,
}

impl Clocks {
    pub fn new() -> Clocks {
        Clocks::default()
    }

    /// A new stream. It takes over the lane of a retired one whose work the host has waited for.
    pub fn stream(&mut self, name: StreamName) -> Lane {
        let fresh =
            Stream { name, own: 0, clock: Clock::default(), waits: VecDeque::new(), released: 0, retired: false };
        let done = |(lane, stream): &(usize, &Stream)| stream.retired && self.host.get(*lane as u32) >= stream.own;
        if let Some((lane, Stream { own, .. })) = self.streams.iter().enumerate().find(done) {
            let own = *own;
            self.streams[lane] = Stream { own, released: own, ..fresh };
            return Lane(lane as u32);
        }
        self.streams.push(fresh);
        Lane(self.streams.len() as u32 - 1)
    }

    /// Nothing will be queued on this stream any more.
    pub fn retire(&mut self, lane: Lane) {
        self.streams[lane.0 as usize].retired = true;
    }

    pub fn name(&self, lane: Lane) -> StreamName {
        self.streams[lane.0 as usize].name
    }

    /// Accesses of the stream so far: the position that [`Clocks::host_wait`] takes.
    pub fn position(&self, lane: Lane) -> u64 {
        self.streams[lane.0 as usize].own
    }

    /// Counts one access and returns its number.
    #[inline]
    pub(super) fn tick(&mut self, lane: Lane) -> u64 {
        let stream = &mut self.streams[lane.0 as usize];
        stream.own += 1;
        stream.own
    }

    /// Records an event: the clock of all work that is queued on the stream now.
    pub fn record(&mut self, lane: Lane) -> EventClock {
        let stream = &mut self.streams[lane.0 as usize];
        stream.released = stream.own;
        stream.clock.raise(lane.0, stream.own);
        EventClock(stream.clock.clone())
    }

    /// Work queued on the stream from now on comes after the event. An event that was never recorded has no clock, and
    /// waiting for it orders nothing.
    pub fn wait(&mut self, lane: Lane, event: &EventClock) {
        join_logged(&mut self.streams[lane.0 as usize], lane, &event.0, &self.host);
    }

    /// `waiter.wait_stream(waited)`.
    #[cfg(test)]
    pub fn wait_stream(&mut self, waiter: Lane, waited: Lane) {
        let event = self.record(waited);
        self.wait(waiter, &event);
    }

    /// The host waited for all work of the stream, or a `query` of it returned true.
    pub fn host_sync(&mut self, lane: Lane) {
        let EventClock(clock) = self.record(lane);
        self.host.join(&clock);
    }

    /// The host waited for the event, or a `query` of it returned true.
    pub fn host_sync_event(&mut self, event: &EventClock) {
        self.host.join(&event.0);
    }

    /// The host waited for the first `position` accesses of the stream, as a host read does.
    pub fn host_wait(&mut self, lane: Lane, position: u64) {
        if self.host.get(lane.0) < position {
            let clock = self.clock_at(lane, position);
            self.host.join(&clock);
        }
    }

    /// The stream's clock as it was at its access number `position`.
    fn clock_at(&self, lane: Lane, position: u64) -> Clock {
        let waits = &self.streams[lane.0 as usize].waits;
        let before = waits.iter().rev().find(|(at, _)| *at < position);
        let mut clock = before.map(|(_, clock)| clock.clone()).unwrap_or_default();
        clock.raise(lane.0, position);
        clock
    }

    /// Whether the access is ordered before what is queued next on `lane`.
    pub(super) fn is_before(&self, access: (u32, u64), lane: Lane) -> bool {
        let (other, epoch) = access;
        other == lane.0 || self.streams[lane.0 as usize].clock.get(other) >= epoch || self.is_done(access)
    }

    /// Whether the access is ordered before everything that will ever be queued.
    pub(super) fn is_done(&self, (lane, epoch): (u32, u64)) -> bool {
        self.host.get(lane) >= epoch
    }

    /// Whether no stream can be ordered after the first access without being ordered after later ones of the same
    /// stream.
    pub(super) fn are_inseparable(&self, lane: u32, first: u64) -> bool {
        first > self.streams[lane as usize].released
    }
}

fn join_logged(stream: &mut Stream, lane: Lane, clock: &Clock, host: &Clock) {
    if !stream.clock.join(clock) {
        return;
    }
    // Accesses that the host has waited for are never looked up; one entry before them must stay.
    let known = host.get(lane.0);
    let max_waits = (REMEMBERED_COMPONENTS / stream.clock.0.len().max(1)).clamp(LEAST_WAITS, REMEMBERED_WAITS);
    while stream.waits.get(1).is_some_and(|(at, _)| *at <= known) || stream.waits.len() >= max_waits {
        stream.waits.pop_front();
    }
    stream.waits.push_back((stream.own, stream.clock.clone()));
}
