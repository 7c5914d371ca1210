//! NVIDIA GPUs: the only place of the project that calls CUDA.
//!
//! Nothing here runs before [`open`], and a machine without a driver gets a [`Missing`] that says what to install.
//! These are building blocks: typed errors, pooled events, kernels compiled once for all processes. Device addresses
//! are plain numbers: the caller is responsible for their contents and lifetime, and for the order between streams.
//! Knows no kernels, shapes, operations or tensors.
//!
//! Not: cudarc's safe layer. It stores errors of destructors for the next unrelated call, tracks events for each
//! slice and allocates for each launch. Only its raw functions are used.

pub mod blas;
pub mod context;
pub mod copy;
pub mod dnn;
pub mod driver;
pub mod error;
pub mod event;
pub mod expandable;
pub mod fft;
pub mod graph;
pub mod hash;
pub mod inventory;
pub mod kernel_cache;
pub mod launch;
pub mod library;
pub mod memory;
pub mod module;
pub mod nvrtc;
pub mod replay;
pub mod solver;
pub mod staging;
pub mod stopwatch;
pub mod stream;
pub mod stream_table;
pub mod timeline;

pub use context::Context;
pub use driver::open;
pub use error::DriverError;
pub use event::{Event, Timing};
pub use launch::Shape;
pub use module::{Function, Kernels};
pub use nvrtc::{KernelError, Text};
pub use stopwatch::Stopwatch;
pub use stream::Stream;
pub use stream_table::StreamTable;
pub use timeline::{Timeline, Waited};
