//! `textDocument/signatureHelp`: the parameters of the call around the cursor, and which of them is written.

use super::meaning::{Meaning, meaning, signature};
use super::view::View;
use crate::base::signature::Signature;
use crate::script::check::layers::Layer;
use crate::script::check::syntax::{Expr, Kind, Stmt, StmtKind};
use crate::script::check::value::Value as Known;
use crate::script::check::visit::Visit;
use crate::script::edit::around::{Around, around};
use crate::script::edit::comments::above;
use crate::script::edit::guess::Guess;
use crate::script::edit::names::{Symbol, SymbolKind};
use crate::script::manual;
use serde_json::{Value, json};

pub fn help(view: &View, params: &Value) -> Value {
    let offset = view.offset(params);
    let Some(around) = around(&view.reading, offset) else { return Value::Null };
    let found = match meaning(view, around.name) {
        Some(Meaning::Symbol(symbol)) => own(view, symbol, &around),
        // `f.call(x)`
        Some(Meaning::Member(name)) if name == "call" => {
            let holder = around.name.checked_sub(2).and_then(|at| view.names.at(at as u32));
            holder.and_then(|symbol| closure(view, symbol, &around)).or_else(|| natives(view, &around))
        }
        // `m.forward(x)` of a closure in a map or module of the text.
        Some(Meaning::Member(name)) if view.receiver(around.name).is_some_and(|of| of.entry(&name).is_some()) => {
            entry(view, &name, &around)
        }
        Some(Meaning::InModule(module, name)) if !super::meaning::is_library(&module) => {
            match super::library::of_user(view, &module) {
                Some(other) => of_functions(&other, &name, &around),
                None => natives(view, &around),
            }
        }
        _ => natives(view, &around),
    };
    let Some((signatures, active, parameter)) = found else { return Value::Null };
    json!({"signatures": signatures, "activeSignature": active, "activeParameter": parameter})
}

type Found = (Vec<Value>, usize, Value);

/// A function of the text, or what a variable holds.
fn own(view: &View, symbol: usize, around: &Around) -> Option<Found> {
    let name = &view.names.symbols[symbol].name;
    match view.names.symbols[symbol].kind {
        SymbolKind::Function => of_functions(view, name, around),
        _ => closure(view, symbol, around).or_else(|| module(view, symbol, around)),
    }
}

/// A closure in a variable.
fn closure(view: &View, symbol: usize, around: &Around) -> Option<Found> {
    let symbol = &view.names.symbols[symbol];
    let mut params = None;
    let mut stmt = |stmt: &Stmt| {
        if let StmtKind::Let { name, value: Some(Expr { kind: Kind::Closure { params: own, .. }, .. }), .. } =
            &stmt.kind
            && name.token == symbol.token
        {
            params = Some(own.iter().map(|param| param.name.clone()).collect::<Vec<String>>());
        }
    };
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.stmts(&view.reading.body);
    let doc = above(view.text(), view.bytes(symbol.whole.0 as usize, symbol.whole.0 as usize).start);
    Some((vec![described(&symbol.name, &params?, &doc)], 0, json!(around.position)))
}

/// A closure that is an entry of what stands before the dot.
fn entry(view: &View, name: &str, around: &Around) -> Option<Found> {
    match view.receiver(around.name)?.entry(name)? {
        Guess::Calls(_, params) => Some((vec![described(name, &params, "")], 0, json!(around.position))),
        _ => None,
    }
}

/// A layer of the library in a variable, whose `forward` runs.
fn module(view: &View, symbol: usize, around: &Around) -> Option<Found> {
    let symbol = &view.names.symbols[symbol];
    match view.reading.seen.value(symbol.token) {
        Known::Layer(layer) if !matches!(**layer, Layer::Stepped(_) | Layer::Loader) => {
            let doc = "Calls the `forward` of this module.";
            Some((vec![described(&symbol.name, &["x".to_string()], doc)], 0, json!(around.position)))
        }
        _ => None,
    }
}

fn described(name: &str, params: &[String], doc: &str) -> Value {
    let parameters: Vec<Value> = params.iter().map(|param| json!({"label": param})).collect();
    json!({
        "label": format!("{name}({})", params.join(", ")),
        "documentation": {"kind": "markdown", "value": doc},
        "parameters": parameters,
    })
}

fn of_functions(view: &View, name: &str, around: &Around) -> Option<Found> {
    let forms: Vec<&Symbol> =
        view.names.functions().map(|(_, symbol)| symbol).filter(|symbol| symbol.name == name).collect();
    // The first form that takes so many.
    let active = forms.iter().position(|form| form.params.len() > around.position).unwrap_or(0);
    let help = |form: &&Symbol| {
        let doc = above(view.text(), view.bytes(form.whole.0 as usize, form.whole.0 as usize).start);
        described(&form.name, &form.params, &doc)
    };
    let signatures: Vec<Value> = forms.iter().map(help).collect();
    (!signatures.is_empty()).then(|| (signatures, active, json!(around.position)))
}

/// A native function, an operation, or a function of the library.
fn natives(view: &View, around: &Around) -> Option<Found> {
    let signature = signature(view, around.name)?;
    let page = match meaning(view, around.name)? {
        Meaning::InModule(module, name) => manual::page(&format!("{module}::{name}")),
        Meaning::Member(name) => super::hover::member_page(view, around.name, &name),
        _ => manual::page(view.word(around.name)),
    };
    let parameters: Vec<Value> = signature.params.iter().map(|param| json!({"label": param.to_string()})).collect();
    let help = json!({
        "label": signature.text,
        "documentation": {"kind": "markdown", "value": page.map(|page| page.summary).unwrap_or_default()},
        "parameters": parameters,
    });
    let parameter = active(&signature, around);
    Some((vec![help], 0, parameter.map_or(Value::Null, |at| json!(at))))
}

/// The parameter that is written, or whose keyword may come next; `None` behind the last one.
fn active(signature: &Signature, around: &Around) -> Option<usize> {
    match (&around.keyword, &around.given) {
        (Some(keyword), _) => signature.place(keyword),
        // Without a number, clients show the first parameter as the active one.
        (None, Some(given)) if signature.takes_keywords() => {
            let mut keywords = signature.keywords().filter(|&at| at >= around.position);
            keywords.find(|&at| !given.contains(&signature.params[at].name))
        }
        _ if signature.takes_all() => Some(0),
        _ => Some(around.position).filter(|at| *at < signature.params.len()),
    }
}
