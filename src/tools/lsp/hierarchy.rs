//! Call hierarchy: who calls a function of the user, and whom it calls.

use super::definition::{Target, is_same, places, target};
use super::library;
use super::view::View;
use super::workspace::Workspace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::script::edit::names::SymbolKind;

/// `textDocument/prepareCallHierarchy`
pub fn prepare(workspace: &Workspace, view: &Rc<View>, params: &Value) -> Value {
    let found = view.token(params).and_then(|token| target(workspace, view, token));
    match found {
        Some(Target { view, symbol }) if view.names.symbols[symbol].kind == SymbolKind::Function => {
            json!([item(&view, Some(symbol))])
        }
        _ => Value::Null,
    }
}

/// A function, or what a file does outside of functions.
fn item(view: &View, function: Option<usize>) -> Value {
    let file = view.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match function.and_then(|function| view.names.symbols.get(function)) {
        Some(symbol) => json!({
            "name": symbol.name,
            "kind": 12,
            "detail": file,
            "uri": view.uri,
            "range": view.range(view.bytes(symbol.whole.0 as usize, symbol.whole.1 as usize)),
            "selectionRange": view.name_range(symbol.token as usize),
        }),
        None => json!({
            "name": file,
            "kind": 1,
            "uri": view.uri,
            "range": view.range(0..view.text().len()),
            "selectionRange": view.range(0..0),
        }),
    }
}

/// The function that an item of the client's is.
fn function(view: &View, item: &Value) -> Option<usize> {
    let bytes = view.lines.bytes(view.text(), &item["selectionRange"]);
    let is = |symbol: &crate::script::edit::names::Symbol| view.name_bytes(symbol.token as usize).start == bytes.start;
    let mut all = view.names.functions();
    all.find(|(_, symbol)| is(symbol) && item["name"] == symbol.name.as_str()).map(|(at, _)| at)
}

/// `callHierarchy/incomingCalls`
pub fn incoming(workspace: &Workspace, view: &Rc<View>, item: &Value, goes_on: &dyn Fn() -> bool) -> Value {
    let Some(symbol) = function(view, item) else { return Value::Null };
    let target = Target { view: view.clone(), symbol };
    let mut found = Vec::new();
    for (other, tokens) in places(workspace, &target, goes_on) {
        let mut by_caller: BTreeMap<Option<usize>, Vec<Value>> = BTreeMap::new();
        for token in tokens.into_iter().filter(|&token| is_call(&other, token)) {
            let range = other.name_range(token as usize);
            by_caller.entry(other.names.function_around(token)).or_default().push(range);
        }
        found.extend(
            by_caller
                .into_iter()
                .map(|(caller, ranges)| json!({"from": self::item(&other, caller), "fromRanges": ranges})),
        );
    }
    Value::Array(found)
}

fn is_call(view: &View, token: u32) -> bool {
    let declares = view.names.symbols.iter().any(|symbol| symbol.token == token);
    !declares && view.word(token as usize + 1) == "("
}

/// `callHierarchy/outgoingCalls`
pub fn outgoing(workspace: &Workspace, view: &Rc<View>, item: &Value) -> Value {
    let caller = function(view, item);
    let mut found: Vec<(Value, Vec<Value>)> = Vec::new();
    let mut add = |to: Value, from: Value| match found.iter_mut().find(|(known, _)| *known == to) {
        Some((_, ranges)) => ranges.push(from),
        None => found.push((to, vec![from])),
    };
    for call in view.names.calls.iter().filter(|call| call.owner == caller) {
        add(self::item(view, Some(call.function)), view.name_range(call.token as usize));
    }
    for used in view.names.qualified.iter().filter(|used| used.is_call && used.owner == caller) {
        let token = used.token as usize;
        let module = super::meaning::module_path(view, &used.space);
        let other = match library::file_of(view, &module) {
            Some(file) if is_same(&file, &view.path) => Some(view.clone()),
            Some(file) => workspace.view(&file, view),
            None => library::of_library(view, &module, Some(view.word(token))).map(Rc::new),
        };
        let Some(other) = other else { continue };
        let called = other.names.functions().find(|(_, symbol)| symbol.name == view.word(token)).map(|(at, _)| at);
        if called.is_some() {
            add(self::item(&other, called), view.name_range(token));
        }
    }
    Value::Array(found.into_iter().map(|(to, ranges)| json!({"to": to, "fromRanges": ranges})).collect())
}
