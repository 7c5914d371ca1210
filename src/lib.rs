//! tscript: Rhai with tensors. A script reads like PyTorch without Python; a Rust program holds a [`Session`].
//!
//! ```
//! use tscript::{Session, Tensor};
//!
//! let mut session = Session::builder().seed(1).build()?;
//! session.set("x", Tensor::from_slice(&[1.0f32, 2.0], &[2])?)?;
//! session.run_str("model", "fn predict(x) { (x * 2).sum() } let y = x + 1;")?;
//!
//! let y: Tensor = session.get("y")?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
//!
//! let sum: Tensor = session.call("predict", (y,))?;
//! assert_eq!(sum.to_vec::<f32>()?, [10.0]);
//!
//! let failure = session.run_str("wrong", "x + tensor([1.0, 2.0, 3.0])").unwrap_err();
//! assert_eq!(failure.code(), "E0201");
//! # Ok::<(), tscript::Error>(())
//! ```
//!
//! # In a program of your own
//!
//! - [`Session`] runs texts and calls their functions; [`Builder`] says what scripts see and how far they may go.
//! - [`Tensor`] goes in and out, without a copy where it can: vectors, DLPack, and `ndarray` with the feature of that name.
//! - Rust functions and types become the script's by [`Builder::function`] and [`Builder::object`].
//! - [`Error`] has a stable code, a place in the script, and implements `miette::Diagnostic`.
//! - Cargo builds dependencies without optimization in debug builds, where kernels are some fifty times slower:
//!   `[profile.dev.package."*"]` with `opt-level = 3` in the program's `Cargo.toml` builds them well.
//! - The features `cli` (the program `tscript`, with its REPL) and `cuda` are on by default; `default-features = false`
//!   builds neither. Simulated GPUs need no feature.
//! - Scripts touch no file, and have no limits, unless the program says so; [`Builder::untrusted`] is for scripts of
//!   people whom nobody knows.

#![warn(missing_docs)]
// What only the program or only GPUs use is no mistake in a library that is built without them.
#![cfg_attr(not(all(feature = "cli", feature = "cuda")), allow(dead_code, unused_imports))]

// `DType`, `Dlpack` and `Metered` want their documentation where they stand.
#[allow(missing_docs)]
mod base;
#[allow(missing_docs)]
mod device;
#[allow(missing_docs)]
mod files;
#[allow(missing_docs)]
mod kernel;
#[allow(missing_docs)]
mod op;
mod sched;
mod script;
mod tensor;
#[cfg(feature = "cli")]
#[allow(missing_docs)]
mod tools;

#[doc(hidden)]
#[allow(missing_docs)]
pub mod internals;

/// What `main.rs` is made of.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod program {
    pub use crate::device::heap::{Heap, one_arena};
    pub use crate::device::signals::file_size_is_an_error;
    pub use crate::tools::main;
}

/// Programs in the README and on the pages of the guide.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/guide/embedding.md")]
#[doc = include_str!("../docs/guide/sandboxing.md")]
#[doc = include_str!("../docs/guide/recipes.md")]
mod guide {}

pub use base::dtype::DType;
pub use device::dlpack::Dlpack;
pub use device::metered::Metered;
#[doc(hidden)]
pub use script::Dynamic;
pub use script::embed::exchange::{Element, Tensor};
pub use script::embed::passing::{Arguments, FromScript, IntoScript, Opaque, Value};
pub use script::embed::register::{Function, Method, Object, Outcome, Type};
pub use script::error::Error;
pub use script::session::builder::Builder;
pub use script::session::handle::{InterruptHandle, Races, Session};
pub use script::source::Location;
