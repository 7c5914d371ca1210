//! `textDocument/documentLink`: imported modules and files that a string names.

use super::library;
use super::protocol::uri;
use super::view::View;
use crate::script::source::lex::Kind;
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn links(view: &View) -> Value {
    let mut found = Vec::new();
    for at in 0..view.reading.tokens.len() {
        if view.kind(at) != Some(Kind::Str) || !view.word(at).starts_with('"') {
            continue;
        }
        if let Some((target, about)) = target(view, at) {
            found.push(json!({"range": view.name_range(at), "target": target, "tooltip": about}));
        }
    }
    Value::Array(found)
}

fn target(view: &View, at: usize) -> Option<(String, String)> {
    let text = view.word(at).trim_matches('"');
    if let Some(import) = view.names.imports.iter().find(|import| import.path_token as usize == at) {
        let module = library::of_library(view, &import.path, None).map(|other| other.uri);
        let target = module.or_else(|| library::file_of(view, &import.path).map(|file| uri::of(&file)))?;
        return Some((target, format!("the module {}", import.path)));
    }
    let file = file(view, text)?;
    Some((uri::of(&file), file.display().to_string()))
}

/// A file that is there: beside the script, or in the folder that the client works in.
fn file(view: &View, text: &str) -> Option<PathBuf> {
    let looks_so = text.contains(['.', '/']) && !text.contains(['\\', '\n', '*']) && text.len() < 1000;
    if !looks_so {
        return None;
    }
    let beside = view.path.parent()?.join(text);
    [beside, PathBuf::from(text)].into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}
