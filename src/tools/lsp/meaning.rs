//! What the token at a place stands for.

use super::view::View;
use crate::base::signature::Signature;
use crate::script::edit::around::{around, path_before};
use crate::script::edit::values::{is_tensor, members};
use crate::script::library::texts;
use crate::script::manual;
use crate::script::source::lex::Kind;
use crate::script::source::tree::is_keyword;

#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A name that the text declares: an index of its symbols.
    Symbol(usize),
    /// A method or property of what stands before the dot.
    Member(String),
    /// A function of a module, with the module's path: `("nn", "linear")`.
    InModule(String, String),
    /// A module, by its path.
    Module(String),
    /// A function, a constant or a dtype of the language.
    Native(String),
    /// `dim` of `x.sum(#{dim: 1})`, with the token of the call's name.
    Keyword(String, usize),
    /// The string of an import.
    ImportPath(String),
    Operator,
}

/// What a token stands for; `None` if nothing is known of it.
pub fn meaning(view: &View, token: usize) -> Option<Meaning> {
    let word = view.word(token);
    match view.kind(token)? {
        Kind::Str => {
            if let Some(import) = view.names.imports.iter().find(|import| import.path_token as usize == token) {
                return Some(Meaning::ImportPath(import.path.clone()));
            }
            view.names.at(token as u32).map(Meaning::Symbol)
        }
        Kind::Symbol => Some(Meaning::Operator),
        Kind::Word => of_word(view, token, word),
        _ => None,
    }
}

fn of_word(view: &View, token: usize, word: &str) -> Option<Meaning> {
    let before = view.before(token);
    let symbol = view.names.at(token as u32);
    if matches!(before, "." | "?.") {
        let receiver = view.reading.seen.receiver(token as u32);
        // Cost: the list is long.
        let of_tensor =
            || is_tensor(receiver) && members(receiver).iter().any(|name| name.trim_end_matches('(') == word);
        return match symbol {
            Some(symbol) if !of_tensor() => Some(Meaning::Symbol(symbol)),
            _ => Some(Meaning::Member(word.to_string())),
        };
    }
    if let Some(symbol) = symbol {
        return Some(Meaning::Symbol(symbol));
    }
    if before == "::" {
        return Some(Meaning::InModule(module_path(view, &path_before(&view.reading, token)?), word.to_string()));
    }
    if view.word(token + 1) == "::" {
        return Some(Meaning::Module(module_path(view, word)));
    }
    if view.word(token + 1) == ":" {
        let around = around(&view.reading, view.bytes(token + 1, token + 1).end)?;
        return (around.keyword.as_deref() == Some(word)).then(|| Meaning::Keyword(word.to_string(), around.name));
    }
    (!is_keyword(word) || manual::has_page(word)).then(|| Meaning::Native(word.to_string()))
}

/// The path of the module that a name stands for: its import's, or the name itself for a module that needs none.
pub fn module_path(view: &View, space: &str) -> String {
    view.names.module(space).unwrap_or(space).to_string()
}

/// Whether a path is that of a library module.
pub fn is_library(path: &str) -> bool {
    texts::library(path).is_some()
}

/// The signature of what a call's name stands for, functions of the text aside; of a method without what stands before
/// the dot.
pub fn signature(view: &View, name: usize) -> Option<Signature> {
    match meaning(view, name)? {
        Meaning::Member(word) => match view.owner(name) {
            Some(owner) => manual::member_signature(owner, &word),
            None => manual::signature(&word, true),
        }
        .map(|signature| signature.into_owned()),
        Meaning::InModule(module, word) => {
            manual::signature(&format!("{module}::{word}"), false).map(|signature| signature.into_owned())
        }
        Meaning::Native(word) => manual::signature(&word, false).map(|signature| signature.into_owned()),
        _ => None,
    }
}
