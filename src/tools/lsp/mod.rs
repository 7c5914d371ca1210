//! `tscript lsp`: the language server, over the standard input and output, after version 3.17 of the Language Server
//! Protocol.
//!
//! `protocol` has its messages and positions, `server` the loop and the table of methods, `documents` the open texts,
//! `view` what is known of one. The other files answer one kind of question each, as functions of views and bytes. Runs
//! no script code: `execute` starts the program itself for that.

mod actions;
mod checks;
mod completion;
mod definition;
mod documents;
mod execute;
mod folding;
mod formatting;
mod hierarchy;
mod hover;
mod inlay;
mod lenses;
mod library;
mod links;
mod meaning;
mod mending;
mod protocol;
mod rename;
mod semantic;
mod server;
mod setup;
mod signature;
mod symbols;
mod view;
mod workspace;

pub use library::all_versions as library_folder;
pub use server::serve;
