//! The handle of a host program, and its parts: the interpreter, its limits, modules, entries.

pub mod builder;
pub mod calls;
pub mod compiled;
pub mod counted;
pub mod end;
pub mod entry;
pub mod eval;
pub mod handle;
pub mod hooks;
pub mod interpreter;
pub mod leave;
pub mod modules;
pub mod persistent;
