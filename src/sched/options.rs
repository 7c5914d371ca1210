//! Options of a session, from its host program or command line.

use crate::base::device_id::DeviceId;
use crate::base::limits::WINDOW_NODES;
use crate::device::planned_fault::PlannedFault;
use crate::device::stop::Stop;
use std::sync::Arc;

/// What happens at an access that is not ordered after a conflicting one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Races {
    /// The operation is refused.
    Error,
    /// Reported once for each pair of lines; the script goes on.
    #[default]
    Warn,
    /// Not checked.
    Off,
}

/// Precision of products of f32 matrices on GPUs: PyTorch's three names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MatmulPrecision {
    /// In f32 throughout.
    #[default]
    Highest,
    /// Factors may be rounded to TF32 (10 bits of fraction); sums are in f32.
    High,
    /// The same as `High`: no shorter type is used.
    Medium,
}

impl MatmulPrecision {
    pub const ALL: [MatmulPrecision; 3] = [MatmulPrecision::Highest, MatmulPrecision::High, MatmulPrecision::Medium];

    pub const fn name(self) -> &'static str {
        match self {
            MatmulPrecision::Highest => "highest",
            MatmulPrecision::High => "high",
            MatmulPrecision::Medium => "medium",
        }
    }
}

/// GPUs that the machine does not have.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// How many there are, after `CUDA_VISIBLE_DEVICES`.
    pub gpus: usize,
    pub memory_bytes: usize,
    /// Virtual time with an order of completion drawn from this seed.
    pub seed: Option<u64>,
    pub faults: Vec<PlannedFault>,
}

/// Memory of a simulated device by default; pages cost nothing until they are written.
pub const SIMULATED_BYTES: usize = 16 << 30;

/// How a session runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Each operation runs to its end before the next.
    pub blocking: bool,
    /// Report the first operation that creates NaN or infinity; each is checked before the next one runs.
    pub check: bool,
    /// Record when operations run.
    pub profile: bool,
    pub seed: u64,
    /// Bytes of tensors that the host may hold, pinned ones included.
    pub host_limit: usize,
    /// Bytes of tensors that each GPU may hold for this session.
    pub device_limit: usize,
    /// Nodes of a window (tests set 1).
    pub window_nodes: usize,
    /// Repeated windows of NVIDIA GPUs may become graphs.
    pub graphs: bool,
    pub races: Races,
    pub simulate: Option<Simulation>,
    /// Set by whoever wants the script to end; waits check it.
    pub stop: Arc<Stop>,
}

impl Options {
    /// Bytes of tensors that the session may hold on a device.
    pub fn limit_of(&self, device: DeviceId) -> usize {
        if device.is_cuda() { self.device_limit } else { self.host_limit }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            blocking: false,
            check: false,
            profile: false,
            seed: 0,
            host_limit: usize::MAX,
            device_limit: usize::MAX,
            window_nodes: WINDOW_NODES,
            graphs: true,
            races: Races::default(),
            simulate: None,
            stop: Arc::default(),
        }
    }
}
