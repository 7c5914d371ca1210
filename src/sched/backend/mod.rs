//! The interface to kinds of devices: what the scheduler asks of them, independent of any kind. A kind is a folder
//! here and a line of `KINDS`; `docs/decisions/0102-a-seam-for-devices.md` says what a further one takes.
//!
//! Above the interface are windows, plans, guards, poison, faults, memory blocks and the order of streams; below it
//! are how bytes are reserved, how a step is carried out, and how its end is noticed.

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

use crate::base::dtype::DType;
use crate::device::clock::Clock;
use crate::device::planned_fault::FaultPlan;
use crate::device::queues::Point;
use crate::device::race::StreamName;
use crate::device::stop::Stop;
use crate::kernel::abi::Fault;
use crate::kernel::custom::Custom;
use crate::kernel::recurrent::layer::Layer;
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

/// The kinds of devices besides the host, in the order in which they are asked for devices.
pub(in crate::sched) const KINDS: &[fn(&Options) -> Option<Gpus>] = &[
    #[cfg(test)]
    record::open,
    simulated::open,
    #[cfg(feature = "cuda")]
    cuda::open,
];

/// Points of other streams that work waits for.
pub type After = SmallVec<[Point; 2]>;

/// All devices of one kind in a session. Called by the script's thread, one call at a time.
///
/// Memory is requested from [`RawMemory`](crate::device::cache::RawMemory), streams and waits from
/// [`Queues`](crate::device::queues::Queues); [`Gpus`] holds both.
pub trait Backend: Send + Sync {
    /// The properties of a device.
    fn facts(&self, device: u16) -> Facts;

    /// Prepares a device before its first use.
    fn open(&self, _device: u16) {}

    /// Compiles a kernel whose text the script gave, if this kind runs such kernels.
    fn compile(&self, _device: u16, _custom: &'static Custom) -> Compiled {
        Compiled::Never
    }

    /// Bytes that a library of the device keeps of a recurrent layer for its gradient; 0 if our own kernels compute it.
    fn recurrent_reserve(&self, _device: u16, _layer: &Layer, _dtype: DType, _biased: bool) -> usize {
        0
    }

    /// Begins a window on a stream.
    fn begin<'a>(&'a self, window: Window<'a>) -> Box<dyn Submission + 'a>;

    /// Queues a single task on a stream: a copy, a sleep, a time stamp.
    fn enqueue(&self, stream: u32, after: After, task: Task, wish: Wish) -> Enqueued;

    /// Milliseconds between two stamps of this kind that were both passed. The error is a sentence for the user.
    fn elapsed_ms(&self, from: &Stamp, to: &Stamp) -> Result<f64, String>;

    /// Whether the host can access a device's memory by its address.
    fn shares_memory(&self) -> bool {
        true
    }

    /// Bytes of a device that no work writes any more. The error says why the device does not respond.
    fn read(&self, _device: u16, from: &Span) -> Result<Vec<u8>, String> {
        Ok(from.read())
    }

    /// Whether querying a device's progress costs about as much as a small window: then it is queried rarely.
    fn is_query_slow(&self) -> bool {
        false
    }

    /// Sets the precision of products that are queued from now on.
    fn set_matmul_precision(&self, _precision: MatmulPrecision) {}

    /// Whether sums of floats that are queued from now on must be the same in each run.
    fn set_deterministic(&self, _only: bool) {}

    /// Queues collected commands now: the caller waits for them.
    fn let_go(&self) {}

    /// Frees device memory of what was prepared for a plan, as far as possible.
    fn forget(&self, _prepared: &mut Prepared) {}

    /// Why a device is lost, if its work caused it.
    fn death(&self, _device: u16) -> Option<String> {
        None
    }

    /// Whether the work up to this point is known to have ended, also on a device that was lost later.
    fn has_run(&self, _point: Point) -> bool {
        true
    }

    /// Whether devices decide themselves if a step is held, by the numbers of unreported faults that they have. These
    /// must then not change while such steps are in flight.
    fn decides_gates(&self) -> bool {
        false
    }

    /// The content of an error slot that a device keeps, after its work has ended.
    fn read_slot(&self, _device: u16, _slot: u32) -> Option<Fault> {
        None
    }

    /// An error slot is not read any more.
    fn free_slot(&self, _device: u16, _slot: u32) {}

    /// Sets the first unreported fault of a stream: all work there that could fail has ended.
    fn set_first_fault(&self, _device: u16, _stream: u32, _number: Option<u64>) {}
}

/// What became of a kernel whose text the script gave.
pub enum Compiled {
    /// Its launches run on the device.
    Runs,
    /// Devices of this kind run no such kernels.
    Never,
    /// The compiler's messages.
    Faulty(String),
    /// There is no working compiler, or the driver refuses the code.
    Failed(String),
}

/// The properties of one device.
pub struct Facts {
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    pub multiprocessors: u32,
    pub uuid: [u8; 16],
    pub is_simulated: bool,
}

/// A window that is being submitted to a stream, and what it may use of the session.
pub struct Window<'a> {
    pub stream: u32,
    pub name: StreamName,
    /// Index of the device.
    pub device: u16,
    pub after: After,
    /// What was prepared for the plan in earlier runs.
    pub prepared: &'a mut Prepared,
    /// A hash of what the operands of kernels look like, which may differ from run to run.
    pub layouts: u64,
    /// The allocator of the device.
    pub memory: &'a Mutex<Memory>,
    pub planned: &'a Mutex<FaultPlan>,
    pub stop: &'a Arc<Stop>,
    /// The host's memory, for what runs there.
    pub room: &'a Arc<Room>,
    pub log: &'a Arc<FaultLog>,
    /// The clock of a trace, if one is recorded.
    pub clock: Option<Clock>,
    /// Repeated windows may become graphs.
    pub graphs: bool,
    /// How many steps will be passed.
    pub steps: usize,
}
