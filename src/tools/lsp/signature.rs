//! `textDocument/signatureHelp`: the parameters of the call around the cursor, and which of them is written.

use super::meaning::{Meaning, meaning, signature};
use super::view::View;
use crate::base::signature::Signature;
use crate::script::edit::around::{Around, around};
use crate::script::edit::comments::above;
use crate::script::edit::names::Symbol;
use crate::script::manual;
use serde_json::{Value, json};

pub fn help(view: &View, params: &Value) -> Value {
    let offset = view.offset(params);
    let Some(around) = around(&view.reading, offset) else { return Value::Null };
    let found = match meaning(view, around.name) {
        Some(Meaning::Symbol(symbol)) => own(view, symbol, &around),
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

/// A function of the text, or a closure in a variable.
fn own(view: &View, symbol: usize, around: &Around) -> Option<Found> {
    let symbol = &view.names.symbols[symbol];
    of_functions(view, &symbol.name, around)
}

fn of_functions(view: &View, name: &str, around: &Around) -> Option<Found> {
    let forms: Vec<&Symbol> =
        view.names.functions().map(|(_, symbol)| symbol).filter(|symbol| symbol.name == name).collect();
    // The first form that takes so many.
    let active = forms.iter().position(|form| form.params.len() > around.position).unwrap_or(0);
    let help = |form: &&Symbol| {
        let parameters: Vec<Value> = form.params.iter().map(|param| json!({"label": param})).collect();
        let doc = above(view.text(), view.bytes(form.whole.0 as usize, form.whole.0 as usize).start);
        json!({
            "label": format!("{}({})", form.name, form.params.join(", ")),
            "documentation": {"kind": "markdown", "value": doc},
            "parameters": parameters,
        })
    };
    let signatures: Vec<Value> = forms.iter().map(help).collect();
    (!signatures.is_empty()).then(|| (signatures, active, json!(around.position)))
}

/// A native function, an operation, or a function of the library.
fn natives(view: &View, around: &Around) -> Option<Found> {
    let signature = signature(view, around.name)?;
    let page = match meaning(view, around.name)? {
        Meaning::InModule(module, name) => manual::page(&format!("{module}::{name}")),
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

/// The parameter that is written; `None` between keywords, and behind the last parameter.
fn active(signature: &Signature, around: &Around) -> Option<usize> {
    match (&around.keyword, &around.given) {
        (Some(keyword), _) => signature.place(keyword),
        (None, Some(_)) if signature.takes_keywords() => None,
        _ if signature.takes_all() => Some(0),
        _ => Some(around.position).filter(|at| *at < signature.params.len()),
    }
}
