//! Where a name is declared, and where it is used: definition, references, highlights.

use super::library;
use super::meaning::{Meaning, meaning};
use super::view::View;
use super::workspace::Workspace;
use crate::script::edit::names::SymbolKind;
use crate::script::manual;
use serde_json::{Value, json};
use std::path::Path;
use std::rc::Rc;

/// `textDocument/definition`
pub fn definition(view: &View, params: &Value) -> Value {
    let Some(token) = view.token(params) else { return Value::Null };
    let declared = |other: &View, name: &str| {
        let symbol = other.names.symbols.iter().find(|symbol| symbol.is_top && symbol.name == name)?;
        Some(other.location(other.name_bytes(symbol.token as usize)))
    };
    let found = match meaning(view, token) {
        Some(Meaning::Symbol(symbol)) => {
            let symbol = &view.names.symbols[symbol];
            // The name of a module leads to its text from where it is used.
            let module = (symbol.kind == SymbolKind::Import).then(|| view.names.module(&symbol.name)).flatten();
            match module {
                Some(path) => start_of(view, path),
                None => Some(view.location(view.name_bytes(symbol.token as usize))),
            }
        }
        Some(Meaning::InModule(module, name)) => library::of_library(view, &module, Some(&name))
            .or_else(|| library::of_user(view, &module))
            .and_then(|other| declared(&other, &name)),
        Some(Meaning::ImportPath(path) | Meaning::Module(path)) => start_of(view, &path),
        _ => None,
    };
    found.unwrap_or(Value::Null)
}

/// The beginning of a module.
fn start_of(view: &View, module: &str) -> Option<Value> {
    let other = library::of_library(view, module, None).or_else(|| library::of_user(view, module))?;
    Some(other.location(0..0))
}

/// A name of one of the user's files.
pub struct Target {
    /// The text that declares it.
    pub view: Rc<View>,
    pub symbol: usize,
}

/// What the token at a position names, if the user declared it.
pub fn target(workspace: &Workspace, view: &Rc<View>, token: usize) -> Option<Target> {
    match meaning(view, token)? {
        Meaning::Symbol(symbol) => Some(Target { view: view.clone(), symbol }),
        Meaning::InModule(module, name) => {
            let file = library::file_of(view, &module)?;
            let other = workspace.view(&file, view)?;
            let symbol = other.names.symbols.iter().position(|symbol| symbol.is_top && symbol.name == name)?;
            Some(Target { view: other, symbol })
        }
        _ => None,
    }
}

/// All places that name a target, by text; the declaring text comes first.
pub fn places(workspace: &Workspace, target: &Target, goes_on: &dyn Fn() -> bool) -> Vec<(Rc<View>, Vec<u32>)> {
    let symbol = &target.view.names.symbols[target.symbol];
    let mut found = vec![(target.view.clone(), all_forms(&target.view, target.symbol))];
    if !symbol.is_top || matches!(symbol.kind, SymbolKind::Import | SymbolKind::Parameter) {
        return found;
    }
    for other in workspace.views(&target.view) {
        if !goes_on() {
            break;
        }
        let used: Vec<u32> = uses_in(&other, &target.view.path, &symbol.name);
        if !used.is_empty() {
            found.push((other, used));
        }
    }
    found
}

/// The tokens of a symbol; functions of one name are told apart by nobody who renames them.
fn all_forms(view: &View, symbol: usize) -> Vec<u32> {
    let known = &view.names.symbols[symbol];
    if known.kind != SymbolKind::Function {
        return view.names.all(symbol);
    }
    let forms = view.names.functions().filter(|(_, other)| other.name == known.name);
    let mut all: Vec<u32> = forms.flat_map(|(form, _)| view.names.all(form)).collect();
    crate::base::order::by(&mut all, Ord::cmp);
    all.dedup();
    all
}

/// Where a text names `name` of the module in a file.
fn uses_in(view: &View, file: &Path, name: &str) -> Vec<u32> {
    let same = |path: &str| library::file_of(view, path).is_some_and(|found| is_same(&found, file));
    let aliases: Vec<&str> =
        view.names.imports.iter().filter(|import| same(&import.path)).map(|import| import.alias.as_str()).collect();
    if aliases.is_empty() {
        return Vec::new();
    }
    let used = view
        .names
        .qualified
        .iter()
        .filter(|used| aliases.contains(&used.space.as_str()) && view.word(used.token as usize) == name);
    used.map(|used| used.token).collect()
}

pub fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// `textDocument/references`
pub fn references(workspace: &Workspace, view: &Rc<View>, params: &Value, goes_on: &dyn Fn() -> bool) -> Value {
    let Some(token) = view.token(params) else { return Value::Null };
    let Some(target) = target(workspace, view, token) else {
        return of_the_language(workspace, view, token, goes_on).unwrap_or_default();
    };
    let declared = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
    let token = target.view.names.symbols[target.symbol].token;
    let mut all = Vec::new();
    for (at, (view, tokens)) in places(workspace, &target, goes_on).iter().enumerate() {
        let wanted = tokens.iter().filter(|used| declared || at > 0 || **used != token);
        all.extend(wanted.map(|used| view.location(view.name_bytes(*used as usize))));
    }
    Value::Array(all)
}

/// Where the user's files use an operation, or a function of the library.
fn of_the_language(workspace: &Workspace, view: &Rc<View>, token: usize, goes_on: &dyn Fn() -> bool) -> Option<Value> {
    let wanted = meaning(view, token)?;
    let name = match &wanted {
        Meaning::Native(name) | Meaning::Member(name) => manual::page(name).map(|_| name)?,
        Meaning::InModule(module, name) => manual::page(&format!("{module}::{name}")).map(|_| name)?,
        _ => return None,
    };
    // `relu(x)` is `x.relu()`.
    let is_one = |found: Meaning| match (&wanted, &found) {
        (Meaning::Native(_) | Meaning::Member(_), Meaning::Native(other) | Meaning::Member(other)) => other == name,
        _ => found == wanted,
    };
    let mut all = Vec::new();
    for view in std::iter::once(view.clone()).chain(workspace.views(view)).filter(|view| view.text().contains(name)) {
        if !goes_on() {
            break;
        }
        let named = (0..view.reading.tokens.len()).filter(|&at| view.word(at) == name);
        let used = named.filter(|&at| meaning(&view, at).is_some_and(is_one));
        all.extend(used.map(|at| view.location(view.name_bytes(at))));
    }
    Some(Value::Array(all))
}

/// `textDocument/documentHighlight`
pub fn highlights(view: &View, params: &Value) -> Value {
    let Some(Meaning::Symbol(symbol)) = view.token(params).and_then(|token| meaning(view, token)) else {
        return Value::Null;
    };
    let one = |token: &u32| {
        let token = *token as usize;
        let next = view.word(token + 1);
        let declares = view.names.symbols.iter().any(|symbol| symbol.token as usize == token);
        let writes = declares || (crate::script::source::tree::is_assignment(next) && view.before(token) != ".");
        json!({"range": view.name_range(token), "kind": if writes { 3 } else { 2 }})
    };
    Value::Array(all_forms(view, symbol).iter().map(one).collect())
}
