//! Plain values: numbers, texts, arrays, maps, and how values are printed.

pub mod arguments;
pub mod arrays;
pub mod format;
pub mod growing;
pub mod growth;
pub mod json;
mod order;
pub mod printing;
pub mod ranged;
pub mod ranges;
pub mod scalars;
pub mod sequences;
pub mod sets;
pub mod show;
mod show_sparse;
pub mod text;
pub mod unpack;
pub mod walk;
