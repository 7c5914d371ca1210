//! Floor 3: windows of nodes, plans, fusion, faults, and the runtime that carries them out.

pub mod fault;
pub mod fuse;
pub mod key;
pub mod memory;
pub mod node;
pub mod plan;
pub mod race;
pub mod runtime;
