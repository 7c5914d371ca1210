//! What editors ask of a text: which names it declares and where it uses them (`names`), which call is around a place
//! (`around`), what a value can do (`values`), what it probably is (`guess`), on which device it is (`devices`), what stands in comments (`comments`).
//! Positions are tokens and bytes; the protocol is in `tools/lsp`.

pub mod around;
pub mod comments;
pub mod devices;
pub mod guess;
pub mod names;
mod resolve;
pub mod values;
