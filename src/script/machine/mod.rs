//! Scripts run compiled: Rhai's tree becomes one whose variables are slots and whose calls are bound. Rhai's evaluator is
//! asked for single calls, of functions that no place remembers yet, and for what values of a host program's types do.
//!
//! `unit` finds and holds functions and lets Rhai call them; `compile` makes `tree`s; `run`, `control`, `calls` and `chain`
//! run them where they have no instructions: `bytecode` makes and follows those. `numbers` computes,  `native` calls Rust, `callback` runs the closures that natives call. `rest`,
//! `input_code` and `module_text` have code that is made or entered at run time; `environment` knows what a text sees, and
//! `fragment` asks Rhai. Knows of the session only `Hooks`.
//! Decision 0101 says why.

mod bytecode;
pub mod callback;
mod calls;
mod chain;
mod compile;
mod control;
mod environment;
mod fields;
mod fragment;
mod input_code;
mod intrinsics;
pub mod module_text;
mod native;
mod numbers;
mod numeric;
mod places;
pub use places::slices;
mod qualified;
mod quick;
mod quick_store;
mod rest;
mod run;
mod shared;
mod top_level;
mod tree;
mod unit;
mod unpack;
mod value;

pub use compile::entries::ENTRIES;
pub use compile::names::{Called, Foreign, UnknownVariable, foreign_names};
pub use rest::EVAL;
pub use top_level::evaluate;
#[cfg(test)]
pub use top_level::run_text;
pub use unit::{Function, Unit, adopt, captured, install};
