//! What people read about a name: how it is called, what it does, examples. From the op table, from the doc comments
//! of the standard library, and from a table of the native functions that are no operations.
//!
//! Knows nothing of a running session; functions of the user are the session's to tell.

mod devices;
pub mod members;
mod natives;
mod plain;
mod std;

pub use natives::{CHAPTERS, Form, Native, members_of, native, natives};
pub use std::{Function, functions};

use crate::op::params;
use crate::op::row::{CallForm, Kind, Op};
use crate::op::table;

/// What is told about one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub name: String,
    /// How it is called, one line for each way: `sum(x, dim: (), keepdim: false)`.
    pub calls: Vec<String>,
    pub summary: String,
    pub details: String,
    pub examples: Vec<Sample>,
}

/// An example: a text to run, and what it prints or the code of the error that it ends with, when that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    pub code: String,
    pub result: String,
}

/// The page of an operation, a native function, a property, or `module::function`.
pub fn page(name: &str) -> Option<Page> {
    let name = name.trim_start_matches('.');
    if let Some(found) = native(name) {
        let mut page = found.page();
        // Other types may have a method of that name.
        page.calls.extend(natives().filter(|other| other.name == name).skip(1).flat_map(|other| other.page().calls));
        return Some(page);
    }
    if let Some((module, function)) = name.split_once("::") {
        return std::functions(module).iter().find(|known| known.name == function).map(Function::page);
    }
    let plain = name.strip_suffix('_').filter(|plain| find(plain).is_some_and(|op| op.inplace));
    let op = find(name).or_else(|| find(plain?)).or_else(|| property_row(name))?;
    Some(of_row(op))
}

/// The row that a script can call by a name.
fn find(name: &str) -> Option<&'static Op> {
    table::find(name).filter(|op| op.call != CallForm::Internal)
}

/// The row behind a property such as `x.T`.
pub fn property_row(name: &str) -> Option<&'static Op> {
    table::all().find(|op| op.aliases.iter().any(|alias| alias.strip_prefix('.') == Some(name)))
}

fn of_row(op: &'static Op) -> Page {
    let mut calls = Vec::new();
    let signature = params::signature(op);
    match op.call {
        CallForm::Internal => {}
        CallForm::Method | CallForm::InPlace => calls.push(as_method(&signature)),
        _ => calls.push(signature.clone()),
    }
    if op.call == CallForm::Both && op.params.first().is_some_and(|param| param.kind.takes_tensor()) {
        calls.push(as_method(&signature));
    }
    if op.inplace && matches!(op.call, CallForm::Both | CallForm::Method | CallForm::Function) {
        calls.push(as_method(&signature).replacen(op.name, &format!("{}_", op.name), 1));
    }
    match (op.operator, op.params.len()) {
        ("", _) => {}
        (symbol, 1) => calls.push(format!("{symbol}x")),
        (symbol, _) => calls.push(format!("x {symbol} y")),
    }
    for alias in op.aliases {
        calls.push(match alias.strip_prefix('.') {
            Some(property) => format!("x.{property}"),
            None => alias.to_string(),
        });
    }
    let examples = op.examples.iter();
    Page {
        name: op.name.to_string(),
        calls,
        summary: op.summary.to_string(),
        details: op.details.to_string(),
        examples: examples.map(|ex| Sample { code: ex.code.to_string(), result: ex.result.to_string() }).collect(),
    }
}

/// `sum(input, dim)` → `x.sum(dim)`.
fn as_method(signature: &str) -> String {
    let Some((name, rest)) = signature.split_once('(') else { return signature.to_string() };
    let rest = rest.split_once(", ").map_or(")", |(_, rest)| rest);
    format!("x.{name}({rest}")
}

/// What stands at the cursor inside a call, in one line; a method's without the receiver.
pub fn signature(name: &str, method: bool) -> Option<String> {
    if let Some(native) = native(name) {
        return Some(native.call.to_string());
    }
    if let Some((module, function)) = name.split_once("::") {
        return std::functions(module).iter().find(|known| known.name == function).map(Function::call);
    }
    let op = find(name).or_else(|| find(name.strip_suffix('_')?))?;
    let signature = params::signature(op).replacen(op.name, name, 1);
    Some(if method { as_method(&signature).trim_start_matches("x.").to_string() } else { signature })
}

/// The keywords that a call takes.
pub fn keywords(name: &str) -> Vec<String> {
    if let Some(native) = native(name) {
        // In `load(path, device: (), columns: false)` the keywords are those with a default.
        let inside = native.call.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
        let pairs = inside.split(", ").filter_map(|part| part.split_once(": "));
        return pairs.map(|(keyword, _)| keyword.to_string()).collect();
    }
    if let Some((module, function)) = name.split_once("::") {
        let found = std::functions(module).iter().find(|known| known.name == function);
        return found.map(|known| known.keywords.clone()).unwrap_or_default();
    }
    let Some(op) = find(name).or_else(|| find(name.strip_suffix('_')?)) else { return Vec::new() };
    let first = op.params.first().is_some_and(|param| param.kind.takes_tensor()) as usize;
    op.params[first..].iter().map(|param| param.name.to_string()).collect()
}

/// The parameters of a native function, as its line names them.
pub fn native_params(name: &str) -> Vec<&'static str> {
    let Some(native) = native(name) else { return Vec::new() };
    // `with_device(device) { ... }` has more after its parenthesis; a default may be `()`.
    let rest = native.call.split_once('(').map_or("", |(_, rest)| rest);
    let mut depth = 1usize;
    let end = rest.find(|c| {
        depth = depth + (c == '(') as usize - (c == ')') as usize;
        depth == 0
    });
    let inside = &rest[..end.unwrap_or(rest.len())];
    let parts = inside.split(", ").filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(": ").map_or(part, |(name, _)| name).trim_start_matches('*')).collect()
}

/// The keywords of a native function: all its parameters, where any of them has a default; else it takes none.
pub fn native_keywords(name: &str) -> Vec<&'static str> {
    match native(name) {
        // `print` prints maps.
        Some(native) if native.call.contains(": ") && native.form != Form::Syntax => native_params(name),
        _ => Vec::new(),
    }
}

/// What kind of value a keyword of an operation takes.
pub fn keyword_kind(name: &str, keyword: &str) -> Option<Kind> {
    let op = find(name).or_else(|| find(name.strip_suffix('_')?))?;
    params::place(op, keyword).map(|at| op.params[at].kind)
}

/// Every name that has a page, modules aside.
pub fn names() -> impl Iterator<Item = &'static str> {
    let rows = table::all().filter(|op| op.call != CallForm::Internal);
    let rows =
        rows.flat_map(|op| ::std::iter::once(&op.name).chain(op.aliases)).map(|name| name.trim_start_matches('.'));
    rows.chain(natives().map(|native| native.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    #[test]
    fn pages_come_from_the_table_the_natives_and_the_library() {
        let sum = page("sum").expect("an operation");
        assert!(sum.calls[0].starts_with("sum(") && sum.calls[1].starts_with("x.sum("), "{:?}", sum.calls);
        assert!(!sum.examples.is_empty() && !sum.summary.is_empty());
        assert!(page("add_").expect("a form").calls.iter().any(|call| call.starts_with("x.add_(")));
        assert!(page("T").is_some() && page("x.nope").is_none());
        assert_eq!(page("load").expect("a native").calls, ["load(path, device: (), dtype: (), columns: false)"]);
        let linear = page("nn::linear").expect("of the library");
        assert!(linear.examples[0].code.contains("nn::linear(3, 5)"), "{linear:?}");
        assert_eq!(keywords("load"), ["device", "dtype", "columns"]);
        assert_eq!(keywords("nn::linear"), ["bias", "device", "dtype"]);
        assert!(keywords("nn::batch_norm2d").contains(&"momentum".to_string()));
        assert!(keywords("optim::adamw").contains(&"lr".to_string()), "{:?}", keywords("optim::adamw"));
        assert!(keywords("sum").contains(&"keepdim".to_string()));
    }

    /// Whoever adds a native function writes a line about it.
    #[test]
    fn every_native_function_has_a_page() {
        let session = Session::builder().build().expect("a session");
        let inner = ["debug", "to_string", "to_debug", "print"];
        let natives = session.host.natives.read();
        let named = natives.iter().filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        let missing: Vec<&String> =
            named.filter(|name| page(name).is_none() && !inner.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "no page in script/manual/natives.rs for {missing:?}");
        for native in self::natives() {
            let known = natives.contains(native.name)
                || crate::script::manual::members::is_member(native.name)
                || crate::script::bind::properties::NAMES.contains(&native.name)
                || crate::script::tensor_api::questions::NAMES.contains(&native.name);
            assert!(known || native.form == Form::Syntax, "`{}` has a page and is not there", native.name);
        }
    }

    #[test]
    fn examples_of_natives_hold() {
        for native in natives().filter(|native| !native.example.is_empty()) {
            let mut session = Session::builder().build().expect("a session");
            let value = session.enter(1, native.example).unwrap_or_else(|e| panic!("{}: {e}", native.name));
            assert_eq!(session.show(&value).expect("shown"), native.result, "{}", native.name);
        }
    }
}
