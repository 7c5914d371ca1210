//! What holds a step of an optimizer, or an update of running statistics: a fault before it that nobody was told, or
//! a poisoned operand. Decided where and when the step runs, from what is ordered before it by the script alone, so
//! that it does not depend on which device was faster. The step over several devices is held or done as one.

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

/// By stream: all of its work up to a place in the order of queueing.
#[derive(Clone, Default, Debug)]
pub struct Past(Points);

impl Past {
    pub fn raise(&mut self, stream: u32, number: u64) {
        raise(&mut self.0, Point { stream, sequence: number });
    }

    pub fn join(&mut self, other: &Past) {
        merge(&mut self.0, &other.0);
    }

    /// Up to which place the work of a stream belongs to it; 0 for none of it.
    pub fn of(&self, stream: u32) -> u64 {
        let found = self.0.binary_search_by_key(&stream, |point| point.stream);
        found.map_or(0, |at| self.0[at].sequence)
    }
}

/// Bound: waits of a stream that are remembered for a wait of the host for work before them, and their points: a
/// thousand streams may wait for a thousand. Beyond it such a wait is taken to be one for somewhat later work.
const REMEMBERED_WAITS: usize = 64;
const REMEMBERED_POINTS: usize = 1 << 10;

/// What all future work of a stream comes after, and what it came after at earlier places.
#[derive(Default)]
pub struct Before {
    now: Past,
    earlier: VecDeque<(u64, Past)>,
}

impl Before {
    pub fn now(&self) -> &Past {
        &self.now
    }

    /// Work from this place on comes after these too.
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

    /// What the work at a place came after.
    pub fn at(&self, number: u64) -> &Past {
        self.earlier.iter().find(|(until, _)| number < *until).map_or(&self.now, |(_, past)| past)
    }
}

/// Which work wrote a buffer last.
pub fn note_writer(buffer: &Buffer, slot: u32, number: u64) {
    buffer.wrote.store((slot as u64) << NUMBER_BITS | number & NUMBER, Ordering::Relaxed);
}

const NUMBER_BITS: u32 = 44;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

pub fn writer(buffer: &Buffer) -> (u32, u64) {
    let packed = buffer.wrote.load(Ordering::Relaxed);
    ((packed >> NUMBER_BITS) as u32, packed & NUMBER)
}

/// A fault, known to whoever ran into it before the script's thread looks.
struct Noted {
    slot: u32,
    device: DeviceId,
    number: u64,
    /// The last place in the order of queueing when it was told.
    told_at: u64,
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
            noted.push(Noted { slot, device, number, told_at: u64::MAX });
            self.any.store(true, Ordering::Release);
        }
    }

    /// A fault was told, after what was queued up to this place.
    pub fn tell(&self, number: u64, now: u64) {
        let mut noted = self.noted.lock();
        noted
            .iter_mut()
            .filter(|known| known.number == number)
            .for_each(|known| known.told_at = known.told_at.min(now));
    }

    /// Nothing is under way: what was told holds nothing any more.
    pub fn forget_told(&self) {
        let mut noted = self.noted.lock();
        noted.retain(|known| known.told_at == u64::MAX);
        self.any.store(!noted.is_empty(), Ordering::Release);
    }

    /// The earliest untold fault of a stream.
    pub fn first_untold(&self, slot: u32) -> Option<u64> {
        let noted = self.noted.lock();
        noted.iter().filter(|known| known.slot == slot && known.told_at == u64::MAX).map(|known| known.number).min()
    }

    fn holds(&self, gate: &Gate) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let before = |fault: &Noted| fault.number < gate.number && fault.number <= gate.past.of(fault.slot);
        let untold = |fault: &Noted| gate.number <= fault.told_at;
        let noted = self.noted.lock();
        noted.iter().any(|fault| gate.devices.contains(&fault.device) && before(fault) && untold(fault))
    }
}

/// What decides over one step.
pub struct Gate {
    /// Its place in the order of queueing.
    number: u64,
    /// Those that hold what it writes.
    devices: SmallVec<[DeviceId; 2]>,
    past: Past,
    /// Faults that would reach its operands.
    causes: Vec<Arc<Cause>>,
    log: Arc<FaultLog>,
    decided: OnceLock<bool>,
    /// A part of it was handed to a device that decides by itself.
    launched: AtomicBool,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gate {}", self.number)
    }
}

impl Gate {
    /// Of a step at a place in the order of queueing, which changes what lies on these devices.
    pub fn new(number: u64, devices: &[DeviceId], past: Past, causes: Vec<Arc<Cause>>, log: Arc<FaultLog>) -> Gate {
        let (decided, launched) = (OnceLock::new(), AtomicBool::new(false));
        Gate { number, devices: devices.into(), past, causes, log, decided, launched }
    }

    /// Whether the step changes nothing. To be asked where everything before it has run.
    pub fn is_held(&self) -> bool {
        *self.decided.get_or_init(|| self.is_known_held())
    }

    /// Nobody wants the step any more; says whether it is left out. Not once a part of it is under way: the model would
    /// be half new.
    pub fn leave_out(&self) -> bool {
        !self.launched.load(Ordering::Relaxed) && *self.decided.get_or_init(|| true)
    }

    /// A device that decides by itself has it.
    pub fn launch(&self) {
        self.launched.store(true, Ordering::Relaxed);
    }

    /// Whether that is known already.
    pub fn is_known_held(&self) -> bool {
        self.decided.get() == Some(&true) || self.log.holds(self) || self.causes.iter().any(|cause| cause.is_bad())
    }

    /// Streams whose faults hold it, up to which place: for a device that decides by itself.
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
