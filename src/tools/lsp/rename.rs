//! `textDocument/rename`: everywhere in the user's files. What the user did not declare keeps its name.

use super::definition::{Target, places, target};
use super::library::is_library_file;
use super::meaning::{Meaning, meaning};
use super::protocol::transport::{Failure, INVALID_PARAMS};
use super::view::View;
use super::workspace::Workspace;
use crate::script::edit::names::{Symbol, SymbolKind};
use crate::script::source::tree::is_keyword;
use serde_json::{Value, json};
use std::rc::Rc;

/// `textDocument/prepareRename`
pub fn prepare(workspace: &Workspace, view: &Rc<View>, params: &Value) -> Result<Value, Failure> {
    let (target, token) = renamed(workspace, view, params)?;
    let name = &target.view.names.symbols[target.symbol].name;
    Ok(json!({"range": view.name_range(token), "placeholder": name}))
}

fn renamed(workspace: &Workspace, view: &Rc<View>, params: &Value) -> Result<(Target, usize), Failure> {
    let token = view.token(params).ok_or_else(|| Failure::refused("there is no name here"))?;
    let word = view.word(token);
    let Some(target) = target(workspace, view, token) else {
        let what = match meaning(view, token) {
            Some(Meaning::Member(_)) => format!("`{word}` is a member of a value, which no declaration names"),
            Some(Meaning::Native(_) | Meaning::InModule(..) | Meaning::Module(_) | Meaning::Keyword(..)) => {
                format!("`{word}` is not a name of this script")
            }
            _ => "there is no name here".to_string(),
        };
        return Err(Failure::refused(what));
    };
    if is_library_file(&target.view.path) {
        return Err(Failure::refused(format!("`{word}` is a name of the standard library")));
    }
    Ok((target, token))
}

pub fn rename(
    workspace: &Workspace,
    view: &Rc<View>,
    params: &Value,
    goes_on: &dyn Fn() -> bool,
) -> Result<Value, Failure> {
    let (target, _) = renamed(workspace, view, params)?;
    let name = params["newName"].as_str().unwrap_or("").trim();
    check(&target, name)?;
    let old = &target.view.names.symbols[target.symbol].name;
    let mut changes = serde_json::Map::new();
    for (view, tokens) in places(workspace, &target, goes_on) {
        let edit = |token: &u32| {
            let token = *token as usize;
            // `let #{x} = m` goes on to read the entry `x`.
            let entry = view.names.symbols.iter().any(|symbol| symbol.token as usize == token && symbol.is_entry);
            let text = if entry { format!("{old}: {name}") } else { name.to_string() };
            json!({"range": view.name_range(token), "newText": text})
        };
        changes.insert(view.uri.clone(), Value::Array(tokens.iter().map(edit).collect()));
    }
    Ok(json!({"changes": changes}))
}

/// Whether a name can be given: a word that means nothing else where the old name is used.
fn check(target: &Target, name: &str) -> Result<(), Failure> {
    let refused = |text: String| Err(Failure::new(INVALID_PARAMS, text));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_word) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return refused(format!("`{name}` is no name: names have letters, digits and `_`"));
    }
    if is_keyword(name) || matches!(name, "this" | "_") {
        return refused(format!("`{name}` is a word of the language"));
    }
    let names = &target.view.names;
    let symbol = &names.symbols[target.symbol];
    let visible = |token: u32| names.visible(token).any(|other| other.name == name && other.token != symbol.token);
    if name != symbol.name && names.all(target.symbol).into_iter().any(visible) {
        return refused(format!("`{name}` is declared already where `{}` is used", symbol.name));
    }
    if is_called_there(&target.view, symbol, name) {
        return refused(format!("`{name}` is used where `{}` is visible, and would mean this", symbol.name));
    }
    Ok(())
}

/// Whether a text names a function of the language, or calls a method, that a symbol of this name would be taken for.
fn is_called_there(view: &View, symbol: &Symbol, name: &str) -> bool {
    let named = |at: &usize| symbol.visible.contains(&(*at as u32)) && view.word(*at).trim_matches('"') == name;
    let calls = |at: usize| view.word(at + 1) == "(";
    (0..view.reading.tokens.len()).filter(named).any(|at| match meaning(view, at) {
        Some(Meaning::Native(_)) => true,
        Some(Meaning::Member(_)) => symbol.kind == SymbolKind::Function && calls(at),
        // `Fn("sum")`
        _ => at >= 2 && view.word(at).starts_with('"') && calls(at - 2) && view.word(at - 2) == "Fn",
    })
}
