//! Floor 3: windows of nodes, plans, fusion, streams, faults, and the runtime that carries them out.

pub mod autocast;
pub mod backend;
pub mod execute;
pub mod fault;
pub mod memory;
pub mod options;
pub mod order;
pub mod profile;
mod rounds;
pub mod runtime;
pub mod samples;
pub mod streams;
pub mod window;
