//! `textDocument/inlayHint`: shapes of tensors where they are declared, names of parameters before literal arguments.

use super::meaning::{Meaning, meaning, signature};
use super::setup::Settings;
use super::view::View;
use crate::base::order;
use crate::script::check::syntax::{Expr, Kind};
use crate::script::check::visit::Visit;
use crate::script::edit::names::SymbolKind;
use crate::script::edit::values::shape;
use serde_json::{Value, json};

pub fn hints(view: &View, settings: &Settings, params: &Value) -> Value {
    let within = view.lines.bytes(view.text(), &params["range"]);
    let mut found: Vec<(usize, Value)> = Vec::new();
    if settings.shapes {
        found.extend(shapes(view));
    }
    if settings.parameter_names {
        found.extend(parameters(view));
    }
    found.retain(|(at, _)| within.start <= *at && *at <= within.end);
    order::by_key(&mut found, |(at, _)| *at);
    Value::Array(found.into_iter().map(|(_, hint)| hint).collect())
}

/// `let y: f32 [2, 3] = x @ w;`
fn shapes(view: &View) -> Vec<(usize, Value)> {
    let declared = view.names.symbols.iter().filter(|symbol| {
        matches!(symbol.kind, SymbolKind::Variable | SymbolKind::Constant)
            && view.word(symbol.token as usize + 1) == "="
    });
    let hint = |token: u32| {
        let known = shape(view.reading.seen.value(token))?;
        let end = view.bytes(token as usize, token as usize).end;
        let device = view.device(token as usize).map(|device| format!(" {device}")).unwrap_or_default();
        let label = format!(": {known}{device}");
        Some((end, json!({"position": view.lines.position(view.text(), end), "label": label, "kind": 1})))
    };
    declared.filter_map(|symbol| hint(symbol.token)).collect()
}

/// `linear(in_features: 2, out_features: 3)`
fn parameters(view: &View) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    let mut expr = |expr: &Expr| {
        let (Kind::Call { args, .. } | Kind::Method { args, .. }) = &expr.kind else { return };
        // One argument needs no name, and what is a name already tells enough.
        if args.len() < 2 || !args.iter().any(is_literal) {
            return;
        }
        let names = names(view, expr.focus as usize, args.len());
        for (arg, name) in args.iter().zip(names).filter(|(arg, _)| is_literal(arg)) {
            let at = view.bytes(arg.first as usize, arg.first as usize).start;
            let hint = json!({
                "position": view.lines.position(view.text(), at),
                "label": format!("{name}:"),
                "kind": 2,
                "paddingRight": true,
            });
            found.push((at, hint));
        }
    };
    Visit { stmt: &mut |_| {}, expr: &mut expr }.stmts(&view.reading.body);
    found
}

fn is_literal(arg: &Expr) -> bool {
    matches!(arg.kind, Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) | Kind::Str(_) | Kind::Unit | Kind::Char)
}

/// The names of a call's parameters.
fn names(view: &View, name: usize, count: usize) -> Vec<String> {
    if let Some(Meaning::Symbol(symbol)) = meaning(view, name) {
        let symbol = &view.names.symbols[symbol];
        let forms = view.names.functions().map(|(_, form)| form).filter(|form| form.name == symbol.name);
        let mut fitting = forms.filter(|form| form.params.len() == count);
        return fitting.next().map(|form| form.params.clone()).unwrap_or_default();
    }
    match signature(view, name) {
        Some(signature) if !signature.takes_all() => signature.names().map(str::to_string).collect(),
        _ => Vec::new(),
    }
}
