//! The devices of a session: opened when a script first asks, with their memory.

use super::memory::{self, Memory};
use super::options::{Options, Simulation};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::device::cache::RawMemory;
use crate::device::host_memory::{HostMemory, physical_bytes};
use crate::device::planned_fault::FaultPlan;
use crate::device::sim::Simulator;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One GPU.
pub struct Gpu {
    pub memory: Mutex<Memory>,
    /// Faults there that nobody was told yet: optimizer steps change nothing while there are any.
    pub hold: Arc<AtomicU32>,
    pub lost: AtomicBool,
}

/// All GPUs of a session.
pub struct Gpus {
    pub simulator: Arc<Simulator>,
    pub list: Vec<Gpu>,
    /// Host memory from which devices copy while the host goes on.
    pub pinned: Mutex<Memory>,
    pub faults: Mutex<FaultPlan>,
    /// Whether a request for memory is planned to fail: then each is made at its call.
    pub counts_requests: bool,
}

/// Host memory that stands for a simulated device's. A segment only goes back when the device is idle, as with
/// `cudaFree`.
struct SimulatedMemory {
    host: HostMemory,
    device: u16,
    simulator: Arc<Simulator>,
}

impl RawMemory for SimulatedMemory {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        self.host.reserve(bytes)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        // Not to be interrupted: work in flight still writes there.
        self.simulator.wait_idle(self.device, &AtomicBool::new(false));
        self.host.release(address, bytes);
    }

    fn total(&self) -> usize {
        self.host.total()
    }
}

impl Gpus {
    pub fn simulated(options: &Simulation) -> Gpus {
        let simulator = Arc::new(Simulator::new(options.gpus, options.seed));
        let gpu = |device| {
            let (host, simulator) = (HostMemory::new(options.memory_bytes), simulator.clone());
            Gpu {
                memory: Mutex::new(Memory::new(Box::new(SimulatedMemory { host, device, simulator }))),
                hold: Arc::default(),
                lost: AtomicBool::new(false),
            }
        };
        Gpus {
            list: (0..options.gpus as u16).map(gpu).collect(),
            pinned: Mutex::new(Memory::new(Box::new(HostMemory::new(physical_bytes())))),
            faults: Mutex::new(FaultPlan::new(options.faults.clone())),
            counts_requests: options.faults.iter().any(|fault| fault.kind == AllocFault),
            simulator,
        }
    }

    /// The GPUs that the options give; none when there are none.
    pub fn open(options: &Options) -> Option<Gpus> {
        let simulated = options.simulate.as_ref()?;
        (simulated.gpus > 0).then(|| Gpus::simulated(simulated))
    }

    pub fn gpu(&self, device: DeviceId) -> &Gpu {
        match device {
            DeviceId::Cuda(index) => &self.list[index as usize],
            DeviceId::Cpu => unreachable!("the host is no GPU"),
        }
    }

    /// An error where the device was lost.
    pub fn check_alive(&self, device: DeviceId) -> Result<()> {
        if self.gpu(device).lost.load(Ordering::Acquire) {
            return Err(Diag::error(code::DEVICE_LOST, format!("{device} was lost"))
                .note("its memory is gone; other devices and the session go on"));
        }
        Ok(())
    }
}

use crate::device::planned_fault::FaultKind::Alloc as AllocFault;

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
    .help("`tscript devices` says what was found and what is missing")
}
