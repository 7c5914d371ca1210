//! Floor 3: windows of nodes, plans, fusion, streams, faults, and the runtime that carries them out.

pub mod device_set;
pub mod execute;
pub mod facts;
pub mod fault;
pub mod fuse;
pub mod gpu_lane;
pub mod host_access;
pub mod key;
pub mod ledger;
pub mod memory;
pub mod node;
pub mod options;
pub mod placement;
pub mod plan;
pub mod poison;
pub mod race;
pub mod runtime;
pub mod stream;
pub mod submit;
pub mod submit_cuda;
pub mod task;
pub mod touch;
pub mod trace;
pub mod transfer;
pub mod watch;
