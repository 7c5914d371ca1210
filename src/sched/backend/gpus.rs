//! The devices of a session, with their memory; opened when a script first uses one.

use super::{Backend, KINDS};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::Diag;
use crate::device::cache::RawMemory;
use crate::device::host_memory::{HostMemory, physical_bytes};
use crate::device::planned_fault::FaultPlan;
use crate::device::queues::Queues;
use crate::device::stop::Stop;
use crate::sched::memory::{self, Memory};
use crate::sched::options::Options;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One GPU.
pub struct Gpu {
    pub memory: Mutex<Memory>,
    pub lost: AtomicBool,
    /// The report of its loss, created once.
    pub loss_report: Mutex<Option<Arc<Diag>>>,
}

/// All devices of a session besides the host.
pub struct Gpus {
    pub backend: Box<dyn Backend>,
    pub queues: Arc<dyn Queues>,
    pub list: Vec<Gpu>,
    /// Pinned host memory.
    pub pinned: Mutex<Memory>,
    pub faults: Mutex<FaultPlan>,
    /// Whether a request for memory is planned to fail: then each request is made at its call.
    pub counts_requests: bool,
}

/// Memory of devices whose segments are freed only while the device is idle, as with `cudaFree`; limited to the
/// session's share.
struct Settled<M: RawMemory> {
    raw: M,
    limit: usize,
    reserved: usize,
    /// Segments to free when the device is idle: the script did not wait until then.
    going: Vec<(u64, usize)>,
    stop: Arc<Stop>,
    device: u16,
    queues: Arc<dyn Queues>,
    /// Queues the collected launches.
    let_go: Option<LetGo>,
}

impl<M: RawMemory> RawMemory for Settled<M> {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        let after = self.reserved.checked_add(bytes).filter(|&after| after <= self.limit)?;
        let address = self.raw.reserve(bytes)?;
        self.reserved = after;
        Some(address)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        if let Some(let_go) = &self.let_go {
            let_go();
        }
        self.going.push((address, bytes));
        // Work in flight still writes there.
        if self.queues.wait_idle(self.device, &self.stop) {
            for (address, bytes) in self.going.drain(..) {
                self.raw.release(address, bytes);
                self.reserved -= bytes;
            }
        }
    }

    fn total(&self) -> usize {
        self.raw.total().min(self.limit)
    }

    fn available(&self) -> usize {
        self.raw.available()
    }
}

impl<M: RawMemory> Drop for Settled<M> {
    fn drop(&mut self) {
        // The queues were stopped before this.
        self.going.drain(..).for_each(|(address, bytes)| self.raw.release(address, bytes));
    }
}

/// Queues the collected launches before memory that they use is freed.
pub type LetGo = Box<dyn Fn() + Send>;

/// A device of some kind, with its memory.
pub(super) fn gpu<M: RawMemory + Send + 'static>(
    raw: M,
    device: u16,
    limits: &Options,
    queues: &Arc<dyn Queues>,
    let_go: Option<LetGo>,
) -> Gpu {
    let (limit, stop) = (limits.device_limit, limits.stop.clone());
    let raw = Settled { raw, limit, reserved: 0, going: Vec::new(), stop, device, queues: queues.clone(), let_go };
    Gpu { memory: Mutex::new(Memory::new(Box::new(raw))), lost: AtomicBool::new(false), loss_report: Mutex::default() }
}

impl Gpus {
    /// The GPUs that the options describe, or that the machine has.
    pub fn open(options: &Options) -> Option<Gpus> {
        KINDS.iter().find_map(|open| open(options))
    }

    pub fn gpu(&self, device: DeviceId) -> &Gpu {
        match device {
            DeviceId::Cuda(index) => &self.list[index as usize],
            DeviceId::Cpu => unreachable!("the host is no GPU"),
        }
    }

    pub fn is_lost(&self, device: DeviceId) -> bool {
        self.gpu(device).lost.load(Ordering::Acquire)
    }
}

/// The host's memory.
pub fn host_memory(limit: usize) -> Memory {
    memory::Memory::new(Box::new(HostMemory::new(limit.min(physical_bytes()))))
}

#[cold]
pub fn no_cuda(index: Option<i64>, count: usize) -> Box<Diag> {
    match (index, count) {
        (Some(index), 0) => {
            Diag::error(code::NO_CUDA, format!("there is no device cuda:{index}: no CUDA device is available"))
        }
        (Some(index), count) => {
            let last = count - 1;
            Diag::error(code::UNKNOWN_DEVICE, format!("there is no device cuda:{index}"))
                .note(format!("devices go from cuda:0 to cuda:{last}"))
        }
        (None, _) => Diag::error(code::NO_CUDA, "no CUDA device is available"),
    }
    .help(match count > 0 || cfg!(feature = "cuda") {
        true => "`tscript devices` says what was found and what is missing",
        false => "this build has no CUDA, as it was made without the feature `cuda`; GPUs can be simulated",
    })
}
