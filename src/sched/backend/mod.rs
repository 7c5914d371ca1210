//! The seam to kinds of devices: what the scheduler asks of them, in words that name none. A kind is a folder here and
//! a line of `KINDS`; `docs/decisions/0102-a-seam-for-devices.md` says what a further one takes.
//!
//! Above the seam stand windows, plans, guards, poison, faults, memory's blocks and the order of streams; below it
//! stands how bytes are reserved, how a step is carried out, and how one knows that it has ended.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod gpus;
pub mod host;
#[cfg(test)]
pub mod record;
pub mod simulated;
pub mod step;
pub mod task;
pub mod through_host;
pub mod touch;

use crate::device::clock::Clock;
use crate::device::planned_fault::FaultPlan;
use crate::device::queues::Point;
use crate::device::race::StreamName;
use crate::device::stop::Stop;
use crate::kernel::abi::Fault;
use crate::sched::memory::{Memory, Room};
use crate::sched::options::{MatmulPrecision, Options};
use crate::sched::order::gate::FaultLog;
use crate::sched::window::plan::Prepared;
use gpus::Gpus;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use step::Submission;
use task::{Enqueued, Stamp, Task, Wish};
use touch::Span;

/// The kinds of devices beside the host, in the order in which they are asked for devices.
pub(in crate::sched) const KINDS: &[fn(&Options) -> Option<Gpus>] = &[
    #[cfg(test)]
    record::open,
    simulated::open,
    #[cfg(feature = "cuda")]
    cuda::open,
];

/// Points of other streams that work comes after.
pub type After = SmallVec<[Point; 2]>;

/// All devices of one kind in a session. Called by the script's thread, one call at a time.
///
/// Memory is asked of [`RawMemory`](crate::device::cache::RawMemory), streams and waits of
/// [`Queues`](crate::device::queues::Queues), both of which [`Gpus`] holds beside this.
pub trait Backend: Send + Sync {
    /// What is known of a device.
    fn facts(&self, device: u16) -> Facts;

    /// Something is asked for on a device: it is made ready, where it is not.
    fn open(&self, _device: u16) {}

    /// A window comes, for a stream.
    fn begin<'a>(&'a self, window: Window<'a>) -> Box<dyn Submission + 'a>;

    /// Queues a single work on a stream: a copy, a wait of the clock, a mark of time.
    fn enqueue(&self, stream: u32, after: After, task: Task, wish: Wish) -> Enqueued;

    /// Milliseconds from one stamp of this kind to another; both have been passed. The error is a sentence for the user.
    fn elapsed_ms(&self, from: &Stamp, to: &Stamp) -> Result<f64, String>;

    /// Whether the host reaches a device's memory by its address.
    fn shares_memory(&self) -> bool {
        true
    }

    /// Bytes of a device that no work writes any more. The error says why the device answers no more.
    fn read(&self, _device: u16, from: &Span) -> Result<Vec<u8>, String> {
        Ok(from.read())
    }

    /// Whether asking how far a device has come costs about as much as a small window: then it is asked seldom.
    fn is_asked_seldom(&self) -> bool {
        false
    }

    /// Products that are queued from now on are as exact as this.
    fn set_matmul_precision(&self, _precision: MatmulPrecision) {}

    /// Commands that are held back are queued now: somebody waits.
    fn let_go(&self) {}

    /// What was prepared for a plan takes as little memory of devices as it can.
    fn forget(&self, _prepared: &mut Prepared) {}

    /// Why a device is dead, where it died under its work.
    fn death(&self, _device: u16) -> Option<String> {
        None
    }

    /// Whether the work up to this point was seen to end, also on a device that died since.
    fn has_run(&self, _point: Point) -> bool {
        true
    }

    /// Whether devices decide by themselves if a step is held, by what they were told of untold faults. Then these must
    /// not change while such steps are under way.
    fn decides_gates(&self) -> bool {
        false
    }

    /// What an error slot that a device keeps holds, after its work has ended.
    fn read_slot(&self, _device: u16, _slot: u32) -> Option<Fault> {
        None
    }

    /// Nobody looks at an error slot any more.
    fn free_slot(&self, _device: u16, _slot: u32) {}

    /// The first fault of a stream that is untold: all work there that could fail has ended.
    fn set_first_fault(&self, _device: u16, _stream: u32, _number: Option<u64>) {}
}

/// One device, as it tells of itself.
pub struct Facts {
    pub name: String,
    /// Major and minor number of what its processors can do.
    pub capability: (u32, u32),
    pub multiprocessors: u32,
    pub uuid: [u8; 16],
    pub is_simulated: bool,
}

/// A window on its way to a stream, and what may be asked of the session meanwhile.
pub struct Window<'a> {
    pub stream: u32,
    pub name: StreamName,
    /// Index of the device.
    pub device: u16,
    pub after: After,
    /// What the plan became here before.
    pub prepared: &'a mut Prepared,
    /// The allocator of the device.
    pub memory: &'a Mutex<Memory>,
    pub planned: &'a Mutex<FaultPlan>,
    pub stop: &'a Arc<Stop>,
    /// The host's memory, for what runs there.
    pub room: &'a Arc<Room>,
    pub log: &'a Arc<FaultLog>,
    /// The clock of a trace, where one is wanted.
    pub clock: Option<Clock>,
    /// Windows that repeat may become graphs.
    pub graphs: bool,
}
