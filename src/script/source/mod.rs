//! Sources of a session and the pass over them: text to tokens (`read`, `lex`; of a text that is being typed: `recover`), their structure (`tree`), the text that Rhai
//! sees (`pass` with `edit`, `scope`, `patterns`, `parts`, `closures`), global lines (`map`), spans for diagnostics (`span`), and what
//! an engine needs to run rewritten text (`hooks`).

pub mod classes;
mod closures;
mod comments;
pub mod counters;
mod edit;
pub mod hooks;
pub mod lex;
#[allow(missing_docs)]
pub mod map;
mod parts;
pub mod pass;
mod patterns;
mod quoted;
pub mod read;
pub mod recover;
pub mod scope;
pub mod span;
pub mod tree;

pub use hooks::{Hooks, Marked, install, is_missing};
pub use map::{Location, Source, SourceKind, SourceMap};
pub use pass::{Assignment, INDEX_MARK, LAST};

#[cfg(test)]
mod tests;
