//! Values of the language that Rhai does not have, what scripts call their types, and errors as values.

pub mod forms;
pub mod panics;
pub mod raise;
pub mod type_names;
pub mod types;
