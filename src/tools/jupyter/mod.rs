//! `tscript jupyter`: a kernel for notebooks, after version 5.4 of Jupyter's messaging protocol.
//!
//! `connection` reads the file with which Jupyter starts a kernel, `sockets` speaks ZeroMQ's transport, `wire` has the
//! signed messages, `outlet` sends them. `kernel` is the loop: it gives each request to one of the files below it.
//! `notebook` is the face of the REPL's conversation that cells are entries of; `display` knows values as HTML. `install`
//! writes the files by which Jupyter finds the kernel, in the folders of `places`.

mod connection;
mod control;
mod display;
mod execute;
mod history;
mod install;
mod kernel;
mod notebook;
mod outlet;
mod places;
mod questions;
mod sockets;
mod spec;
mod wire;

pub use install::{Options, install, uninstall};
pub use kernel::run;
pub use places::{Place, installed};
