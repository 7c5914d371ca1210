//! How a session runs: what its host program or command line chose.

use crate::base::limits::WINDOW_NODES;
use crate::device::planned_fault::PlannedFault;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What becomes of an access that nothing orders after a conflicting one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Races {
    /// The operation is refused.
    Error,
    /// It is told once for each pair of lines, and the script goes on.
    #[default]
    Warn,
    Off,
}

/// How exact products of f32 matrices are on GPUs: PyTorch's three words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MatmulPrecision {
    /// In f32 throughout.
    #[default]
    Highest,
    /// Factors may be rounded to TF32 (10 bits of fraction); sums are in f32.
    High,
    /// The same here: no shorter type is taken.
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

/// Memory of a simulated device unless it is stated; pages cost nothing until they are written.
pub const SIMULATED_BYTES: usize = 16 << 30;

/// How a session runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Each operation runs to its end before the next.
    pub blocking: bool,
    /// Report the first operation that makes NaN or infinity; each is looked at before the next.
    pub check: bool,
    /// Record what ran when.
    pub profile: bool,
    pub seed: u64,
    /// Bytes of tensors that the host may hold.
    pub host_limit: usize,
    /// Nodes of a window (tests set 1).
    pub window_nodes: usize,
    pub races: Races,
    pub simulate: Option<Simulation>,
    /// Set by whoever wants the script to stop; waits look at it.
    pub interrupt: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            blocking: false,
            check: false,
            profile: false,
            seed: 0,
            host_limit: usize::MAX,
            window_nodes: WINDOW_NODES,
            races: Races::default(),
            simulate: None,
            interrupt: Arc::default(),
        }
    }
}
