//! Gates hold a step of an optimizer, or an update of running statistics: if a fault before it was not reported, or
//! an operand is poisoned. Decided where and when the step runs, only from what the script orders before it, so that
//! it does not depend on which device was faster. A step over several devices is held or done as a whole.

use super::cause::Cause;
use super::points::{Points, merge, raise};
use crate::base::device_id::DeviceId;
use crate::device::queues::Point;
use crate::op::tensor::Buffer;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// By stream: all of its work up to a queue number.
#[derive(Clone, Default, Debug)]
pub struct Past(Points);

impl Past {
    pub fn raise(&mut self, stream: u32, number: u64) {
        raise(&mut self.0, Point { stream, sequence: number });
    }

    pub fn join(&mut self, other: &Past) {
        merge(&mut self.0, &other.0);
    }

    /// The queue number up to which the work of a stream belongs to it; 0 for none.
    pub fn of(&self, stream: u32) -> u64 {
        let found = self.0.binary_search_by_key(&stream, |point| point.stream);
        found.map_or(0, |at| self.0[at].sequence)
    }
}

/// Bound: waits of a stream that are remembered for a later wait of the host, and their points: a thousand streams
/// may wait for a thousand. Beyond it, a wait counts as one for somewhat later work.
const REMEMBERED_WAITS: usize = 64;
const REMEMBERED_POINTS: usize = 1 << 10;

/// What the future work of a stream comes after, and what it came after at earlier queue numbers.
#[derive(Default)]
pub struct PastLog {
    now: Past,
    earlier: VecDeque<(u64, Past)>,
}

impl PastLog {
    pub fn now(&self) -> &Past {
        &self.now
    }

    /// Work from this queue number on comes after these as well.
    pub fn join(&mut self, number: u64, other: &Past) {
        if other.0.iter().all(|point| self.now.of(point.stream) >= point.sequence) {
            return;
        }
        let most = (REMEMBERED_POINTS / (self.now.0.len() + 1)).clamp(2, REMEMBERED_WAITS);
        while self.earlier.len() >= most {
            self.earlier.pop_front();
        }
        self.earlier.push_back((number, self.now.clone()));
        self.now.join(other);
    }

    /// What the work with a queue number came after.
    pub fn at(&self, number: u64) -> &Past {
        self.earlier.iter().find(|(until, _)| number < *until).map_or(&self.now, |(_, past)| past)
    }
}

/// Records which work wrote a buffer last.
pub fn note_writer(buffer: &Buffer, slot: u32, number: u64) {
    buffer.wrote.store((slot as u64) << NUMBER_BITS | number & NUMBER, Ordering::Relaxed);
}

const NUMBER_BITS: u32 = 44;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

pub fn writer(buffer: &Buffer) -> (u32, u64) {
    let packed = buffer.wrote.load(Ordering::Relaxed);
    ((packed >> NUMBER_BITS) as u32, packed & NUMBER)
}

/// A fault, known to the thread that found it before the script's thread reads it.
struct Noted {
    slot: u32,
    device: DeviceId,
    number: u64,
    /// The last queue number when it was reported.
    reported_at: u64,
}

/// All faults that may hold something.
#[derive(Default)]
pub struct FaultLog {
    any: AtomicBool,
    noted: Mutex<Vec<Noted>>,
}

impl FaultLog {
    pub fn note(&self, slot: u32, device: DeviceId, number: u64) {
        let mut noted = self.noted.lock();
        if noted.iter().all(|known| known.number != number) {
            noted.push(Noted { slot, device, number, reported_at: u64::MAX });
            self.any.store(true, Ordering::Release);
        }
    }

    /// A fault was reported, after the work up to this queue number was queued.
    pub fn mark_reported(&self, number: u64, now: u64) {
        let mut noted = self.noted.lock();
        noted
            .iter_mut()
            .filter(|known| known.number == number)
            .for_each(|known| known.reported_at = known.reported_at.min(now));
    }

    /// Nothing with a lower queue number is under way: faults that were reported before hold nothing any more.
    pub fn forget_reported(&self, before: u64) {
        let mut noted = self.noted.lock();
        noted.retain(|known| known.reported_at >= before);
        self.any.store(!noted.is_empty(), Ordering::Release);
    }

    /// The earliest unreported fault of a stream.
    pub fn first_unreported(&self, slot: u32) -> Option<u64> {
        let noted = self.noted.lock();
        noted.iter().filter(|known| known.slot == slot && known.reported_at == u64::MAX).map(|known| known.number).min()
    }

    fn holds(&self, gate: &Gate) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let before = |fault: &Noted| fault.number < gate.number && fault.number <= gate.past.of(fault.slot);
        let unreported = |fault: &Noted| gate.number <= fault.reported_at;
        let noted = self.noted.lock();
        noted.iter().any(|fault| gate.devices.contains(&fault.device) && before(fault) && unreported(fault))
    }
}

/// Decides whether one step is held.
pub struct Gate {
    /// Its queue number.
    number: u64,
    /// The devices of what it writes.
    devices: SmallVec<[DeviceId; 2]>,
    past: Past,
    /// Faults that would reach its operands.
    causes: Vec<Arc<Cause>>,
    log: Arc<FaultLog>,
    decided: OnceLock<bool>,
    /// A part of it was submitted to a device that decides itself.
    launched: AtomicBool,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gate {}", self.number)
    }
}

impl Gate {
    /// For the step with a queue number that changes tensors on these devices.
    pub fn new(number: u64, devices: &[DeviceId], past: Past, causes: Vec<Arc<Cause>>, log: Arc<FaultLog>) -> Gate {
        let (decided, launched) = (OnceLock::new(), AtomicBool::new(false));
        Gate { number, devices: devices.into(), past, causes, log, decided, launched }
    }

    /// Whether the step is held. To be called where everything before it has run.
    pub fn is_held(&self) -> bool {
        *self.decided.get_or_init(|| self.is_known_held())
    }

    /// The step is not wanted any more; returns whether it is skipped. Not once a part of it has started: the model
    /// would be half updated.
    pub fn skip(&self) -> bool {
        !self.launched.load(Ordering::Relaxed) && *self.decided.get_or_init(|| true)
    }

    /// A device that decides itself has it.
    pub fn launch(&self) {
        self.launched.store(true, Ordering::Relaxed);
    }

    /// Whether it is already known to be held.
    pub fn is_known_held(&self) -> bool {
        self.decided.get() == Some(&true) || self.log.holds(self) || self.causes.iter().any(|cause| cause.is_bad())
    }

    /// Streams whose faults hold it, up to which queue number: for a device that decides itself.
    pub fn streams(&self) -> impl Iterator<Item = (u32, u64)> {
        let last = self.number - 1;
        self.past.0.iter().map(move |point| (point.stream, point.sequence.min(last)))
    }

    pub fn devices(&self) -> &[DeviceId] {
        &self.devices
    }

    pub fn causes(&self) -> &[Arc<Cause>] {
        &self.causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_faults_are_forgotten_once_no_earlier_step_is_under_way() {
        let log = Arc::new(FaultLog::default());
        [3, 5, 9].iter().for_each(|&number| log.note(1, DeviceId::Cuda(0), number));
        log.mark_reported(3, 6);
        log.mark_reported(5, 8);
        let mut past = Past::default();
        past.raise(1, 6);
        let is_held = || Gate::new(7, &[DeviceId::Cuda(0)], past.clone(), Vec::new(), log.clone()).is_held();
        let known = || log.noted.lock().iter().map(|noted| noted.number).collect::<Vec<_>>();
        log.forget_reported(7);
        assert_eq!((is_held(), known()), (true, vec![5, 9]));
        log.forget_reported(u64::MAX);
        assert_eq!((is_held(), known()), (false, vec![9]));
    }
}
