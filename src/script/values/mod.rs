//! Values of the language that Rhai does not have, the scripts' names of types, and errors as values.

pub mod ascii;
pub mod bytes;
pub mod calling;
pub mod generator;
pub mod module;
pub mod native_forms;
pub mod panics;
pub mod part;
pub mod raise;
pub mod set;
pub mod sparse;
pub mod steps;
pub mod type_names;
pub mod types;
