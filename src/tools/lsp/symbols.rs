//! Outlines: the functions, constants, variables and modules of a text, and of all files.

use super::view::View;
use super::workspace::Workspace;
use crate::base::order;
use crate::script::edit::names::{Symbol, SymbolKind};
use serde_json::{Value, json};

/// Bound: symbols of an answer for all files.
const SYMBOLS: usize = 500;

/// The protocol's number of a kind.
fn number(kind: SymbolKind) -> u64 {
    match kind {
        SymbolKind::Import => 2,
        SymbolKind::Function => 12,
        SymbolKind::Constant => 14,
        SymbolKind::Variable | SymbolKind::Parameter => 13,
    }
}

/// `textDocument/documentSymbol`
pub fn of_document(view: &View) -> Value {
    let inside = |function: usize| {
        let own = view.names.symbols.iter().filter(move |symbol| {
            symbol.owner == Some(function) && matches!(symbol.kind, SymbolKind::Variable | SymbolKind::Constant)
        });
        own.map(|symbol| one(view, symbol, Vec::new())).collect::<Vec<Value>>()
    };
    let all = view.names.symbols.iter().enumerate().filter(|(_, symbol)| symbol.is_top);
    let mut found: Vec<(u32, Value)> = all
        .map(|(at, symbol)| {
            let children = if symbol.kind == SymbolKind::Function { inside(at) } else { Vec::new() };
            (symbol.token, one(view, symbol, children))
        })
        .collect();
    order::by_key(&mut found, |(token, _)| *token);
    Value::Array(found.into_iter().map(|(_, symbol)| symbol).collect())
}

fn one(view: &View, symbol: &Symbol, children: Vec<Value>) -> Value {
    let detail = match symbol.kind {
        SymbolKind::Function => format!("({})", symbol.params.join(", ")),
        _ => super::hover::value(view, symbol.token as usize).unwrap_or_default(),
    };
    json!({
        "name": symbol.name,
        "detail": detail,
        "kind": number(symbol.kind),
        "range": view.range(view.bytes(symbol.whole.0 as usize, symbol.whole.1 as usize)),
        "selectionRange": view.name_range(symbol.token as usize),
        "children": children,
    })
}

/// `workspace/symbol`: names that have the letters of the query, in their order.
pub fn of_workspace(workspace: &Workspace, like: &View, query: &str, goes_on: &dyn Fn() -> bool) -> Value {
    let mut found = Vec::new();
    for file in workspace.files() {
        if !goes_on() || found.len() >= SYMBOLS {
            break;
        }
        let Some(view) = workspace.view(&file, like) else { continue };
        let wanted =
            view.names.symbols.iter().filter(|symbol| {
                symbol.is_top && symbol.kind != SymbolKind::Import && has_letters(&symbol.name, query)
            });
        found.extend(wanted.map(|symbol| {
            json!({
                "name": symbol.name,
                "kind": number(symbol.kind),
                "location": view.location(view.name_bytes(symbol.token as usize)),
                "containerName": view.path.file_name().map(|name| name.to_string_lossy()),
            })
        }));
    }
    found.truncate(SYMBOLS);
    Value::Array(found)
}

fn has_letters(name: &str, query: &str) -> bool {
    let mut rest = name.chars().map(|c| c.to_ascii_lowercase());
    query.chars().map(|c| c.to_ascii_lowercase()).all(|wanted| rest.any(|c| c == wanted))
}

#[cfg(test)]
mod tests {
    use super::has_letters;

    #[test]
    fn letters_stand_in_their_order() {
        assert!(has_letters("train_step", "tst") && has_letters("x", "") && has_letters("Abc", "ab"));
        assert!(!has_letters("train", "ta2") && !has_letters("ab", "ba"));
    }
}
