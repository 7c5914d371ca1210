//! The library as host programs use it.

#[cfg(target_os = "linux")]
mod alone;
#[cfg(target_os = "linux")]
mod arguments;
mod cost;
mod diagnostics;
mod generator;
mod hostile;
mod library;
mod mutants;
mod promises;
#[path = "../it/random.rs"]
mod random;
mod server;
mod simulation;
mod surface;
#[cfg(target_os = "linux")]
mod sweep;
mod tensors;

/// Counts what scripts hold, so that `heap_limit` can be kept to.
#[global_allocator]
static MEMORY: tscript::Metered = tscript::Metered;
