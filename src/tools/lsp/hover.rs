//! `textDocument/hover`: signature, documentation and an example of what stands there; type, shape, dtype and device
//! of values, where they follow from the text.

use super::meaning::{Meaning, meaning};
use super::view::View;
use crate::base::signature::{Param, Rule};
use crate::script::edit::comments::above;
use crate::script::edit::names::{Symbol, SymbolKind};
use crate::script::edit::values::describe;
use crate::script::manual::{self, Page};
use serde_json::{Value, json};

pub fn hover(view: &View, params: &Value) -> Value {
    let Some(token) = view.token(params) else { return Value::Null };
    match text(view, token) {
        Some(text) => json!({
            "contents": {"kind": "markdown", "value": text},
            "range": view.name_range(token),
        }),
        None => Value::Null,
    }
}

fn text(view: &View, token: usize) -> Option<String> {
    match meaning(view, token)? {
        Meaning::Symbol(symbol) => Some(of_symbol(view, symbol, token)),
        Meaning::Member(name) => {
            let value =
                value(view, token).map(|value| format!("```tscript\n{name}: {value}\n```\n")).unwrap_or_default();
            let page = member_page(view, token, &name).map(|page| markdown(&page)).unwrap_or_default();
            let text = [value, page].concat();
            (!text.is_empty()).then_some(text)
        }
        Meaning::InModule(module, name) => {
            let page = manual::page(&format!("{module}::{name}")).map(|page| markdown(&page));
            page.or_else(|| super::library::of_user(view, &module).and_then(|other| of_other(&other, &name)))
        }
        Meaning::Module(module) | Meaning::ImportPath(module) => of_module(&module),
        Meaning::Native(name) => {
            let value = value(view, token).filter(|_| view.word(token + 1) == "(");
            let value = value.map(|value| format!("```tscript\n-> {value}\n```\n")).unwrap_or_default();
            manual::page(&name).map(|page| format!("{value}{}", markdown(&page)))
        }
        Meaning::Keyword(keyword, call) => of_keyword(view, &keyword, call),
        Meaning::Operator => {
            let value = value(view, token)?;
            let word = view.word(token);
            // Brackets and the like are no operators.
            let is_operator = !matches!(word, "(" | ")" | "{" | "}" | "#{" | "," | ";" | "=" | "|" | "||");
            is_operator.then(|| format!("```tscript\n{word} -> {value}\n```\n"))
        }
    }
}

/// The page of a member: that of the type before the dot, where there is a guess at it.
pub fn member_page(view: &View, token: usize, name: &str) -> Option<Page> {
    match view.receiver(token) {
        // Not: a method that has the name of an entry.
        Some(receiver) if receiver.entry(name).is_some() => None,
        Some(receiver) => receiver.owner().and_then(|owner| manual::member_page(owner, name)),
        None => manual::page(name),
    }
}

/// Type and device of the value whose focus is a token.
pub fn value(view: &View, token: usize) -> Option<String> {
    let described = describe(view.reading.seen.value(token as u32))?;
    let device = view.device(token).filter(|_| described.starts_with("tensor"));
    Some(match device {
        Some(device) => format!("{described} on {device}"),
        None => described,
    })
}

fn of_symbol(view: &View, symbol: usize, token: usize) -> String {
    let symbol = &view.names.symbols[symbol];
    let at = |token: usize| value(view, token);
    // Here, or where it is declared.
    let known = at(token).or_else(|| at(symbol.token as usize)).map(|known| format!(": {known}")).unwrap_or_default();
    let code = match symbol.kind {
        SymbolKind::Variable => format!("let {}{known}", symbol.name),
        SymbolKind::Constant => format!("const {}{known}", symbol.name),
        SymbolKind::Parameter => format!("{}{known}", symbol.name),
        SymbolKind::Function => declaration(symbol),
        SymbolKind::Import => {
            let path = view.names.module(&symbol.name).unwrap_or("");
            let module = of_module(path).unwrap_or_default();
            return format!("```tscript\nimport \"{path}\" as {};\n```\n{module}", symbol.name);
        }
    };
    let first = view.bytes(symbol.whole.0 as usize, symbol.whole.0 as usize).start;
    let doc = match symbol.kind {
        SymbolKind::Parameter => String::new(),
        _ => above(view.text(), first),
    };
    format!("```tscript\n{code}\n```\n{doc}")
}

/// `fn name(a, b)`
pub fn declaration(symbol: &Symbol) -> String {
    format!("fn {}({})", symbol.name, symbol.params.join(", "))
}

/// A function, a constant or a variable that another file defines.
fn of_other(view: &View, name: &str) -> Option<String> {
    let is_offered = |symbol: &Symbol| {
        symbol.is_top && symbol.name == name && !matches!(symbol.kind, SymbolKind::Parameter | SymbolKind::Import)
    };
    let symbol = view.names.symbols.iter().position(is_offered)?;
    Some(of_symbol(view, symbol, view.names.symbols[symbol].token as usize))
}

fn of_module(path: &str) -> Option<String> {
    let functions = manual::functions(path);
    if functions.is_empty() {
        return None;
    }
    let names: Vec<String> = functions.iter().take(12).map(|function| format!("`{}`", function.name)).collect();
    let more = functions.len().saturating_sub(names.len());
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("The module `{path}` of the standard library: {}{rest}.", names.join(", ")))
}

fn of_keyword(view: &View, keyword: &str, call: usize) -> Option<String> {
    let signature = super::meaning::signature(view, call)?;
    let param = &signature.params[signature.place(keyword)?];
    Some(format!("```tscript\n{}({param})\n```\n{}", signature.name, rule(param)))
}

/// What a parameter takes, in words.
fn rule(param: &Param) -> String {
    let words: Vec<String> = param.words.iter().map(|word| format!("`\"{word}\"`")).collect();
    let words = if words.is_empty() { String::new() } else { format!(" One of {}.", words.join(", ")) };
    let rule = match &param.rule {
        Rule::Required => "Must be given.".to_string(),
        Rule::Optional => "May be left out.".to_string(),
        Rule::Default(value) => format!("`{value}` unless given."),
        Rule::Only(value) => format!("Can only be `{value}`."),
        Rule::Several => "Takes all values of the call.".to_string(),
    };
    format!("{rule}{words}")
}

/// A page of the manual.
pub fn markdown(page: &Page) -> String {
    let mut text = format!("```tscript\n{}\n```\n", page.calls.join("\n"));
    for part in [&page.summary, &page.details] {
        if !part.is_empty() {
            text += &format!("{part}\n\n");
        }
    }
    if let Some(sample) = page.examples.first() {
        let result = sample.result.lines().map(|line| format!("\n// {line}")).collect::<String>();
        text += &format!("Example:\n```tscript\n{}{result}\n```\n", sample.code);
    }
    text
}
