//! The name lists of the editors are those of the op table and of the native functions.
//!
//! `TSCRIPT_BLESS=1` rewrites them.

use super::scripts::{compare, none, root};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tscript::internals::op::row::CallForm;
use tscript::internals::op::table;
use tscript::internals::script::manual::{Form, natives};

fn path(name: &str) -> PathBuf {
    root().join("editor").join(name)
}

/// What is called: operations, their other names and in-place forms, native functions and methods.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for op in table::all().filter(|op| op.call != CallForm::Internal) {
        for name in std::iter::once(&op.name).chain(op.aliases).filter(|name| !name.starts_with('.')) {
            if op.call != CallForm::InPlace {
                // `fft::rfft` is colored as `rfft`.
                names.insert(name.rsplit("::").next().unwrap_or(name).to_string());
            }
            if op.inplace {
                names.insert(format!("{name}_"));
            }
        }
    }
    let called = natives().filter(|native| !matches!(native.form, Form::Property | Form::PropertyOf(_)));
    let called = called.filter(|native| !["import", "with_device", "with_stream"].contains(&native.name));
    names.extend(called.filter_map(|native| native.name.rsplit("::").next()).map(str::to_string));
    names
}

fn properties() -> BTreeSet<String> {
    let computed = table::all().flat_map(|op| op.aliases).filter_map(|alias| alias.strip_prefix('.'));
    let own = natives().filter(|native| matches!(native.form, Form::Property | Form::PropertyOf(_)));
    computed.chain(own.map(|native| native.name)).map(str::to_string).collect()
}

fn joined(names: &BTreeSet<String>, separator: &str) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(separator)
}

/// The text with the value of the `match` under a comment replaced.
fn with_match(text: &str, comment: &str, pattern: &str) -> String {
    let start = text.find(&format!("\"comment\": \"generated: {comment}\"")).expect("the comment is there");
    let key = start + text[start..].find("\"match\": \"").expect("a pattern follows") + "\"match\": \"".len();
    let end = key + text[key..].find("\"\n").expect("it ends");
    format!("{}{pattern}{}", &text[..key], &text[end..])
}

/// The text with what stands between two comment lines replaced; a comment begins with `mark`.
fn with_lines(text: &str, mark: &str, comment: &str, lines: &str) -> String {
    let head = format!("{mark} generated: {comment}\n");
    let start = text.find(&head).expect("the comment is there") + head.len();
    let end = start + text[start..].find(&format!("{mark} end\n")).expect("it ends");
    format!("{}{lines}{}", &text[..start], &text[end..])
}

/// A pattern of tree-sitter for nodes with one of the names.
fn query(node: &str, capture: &str, names: &BTreeSet<String>) -> String {
    let mut text = format!("({node}\n  (#any-of? {capture}");
    let mut width = usize::MAX;
    for name in names {
        if width.saturating_add(name.len()) > 110 {
            text.push_str("\n   ");
            width = 3;
        }
        text.push_str(&format!(" \"{name}\""));
        width += name.len() + 3;
    }
    format!("{text}))\n")
}

#[test]
fn editor_lists_are_those_of_the_table() {
    let (functions, properties) = (functions(), properties());
    let grammar = path("vscode/syntaxes/tscript.tmLanguage.json");
    let text = std::fs::read_to_string(&grammar).expect("the grammar");
    let called = format!(r"\\b(?:{})(?=\\s*\\()", joined(&functions, "|"));
    let text = with_match(&text, "operations and native functions", &called);
    let text = with_match(&text, "properties", &format!(r"(?<=\\.)(?:{})\\b(?!\\s*\\()", joined(&properties, "|")));
    serde_json::from_str::<serde_json::Value>(&text).expect("the grammar is JSON");
    let mut problems: Vec<String> = compare(&grammar, &text).into_iter().collect();

    let syntax = path("vim/syntax/tscript.vim");
    let text = std::fs::read_to_string(&syntax).expect("the syntax");
    // Not: keywords. They would win over a variable of the same name; what is called is followed by its bracket.
    let called = format!("syntax match   tscriptOperation   \"\\<\\%({})\\>\\ze\\s*(\"\n", joined(&functions, "\\|"));
    let called = called.replace(")\\>\\ze", "\\)\\>\\ze");
    let text = with_lines(&text, "\"", "operations and native functions", &called);
    let read = format!("syntax match   tscriptProperty    \"\\.\\@<=\\%({}\\)\\>\"\n", joined(&properties, "\\|"));
    let text = with_lines(&text, "\"", "properties", &read);
    problems.extend(compare(&syntax, &text));

    let queries = path("tree-sitter-tscript/queries/tscript/highlights.scm");
    let text = std::fs::read_to_string(&queries).expect("the queries");
    let read = query("(member name: (identifier) @variable.member.builtin)", "@variable.member.builtin", &properties);
    let text = with_lines(&text, ";", "properties", &read);
    let function = "@function.builtin";
    let called = "[
  (call function: (identifier) @function.builtin)
  (call function: (scoped_identifier name: (identifier) @function.builtin))
  (method_call name: (identifier) @function.builtin)]";
    let text = with_lines(&text, ";", "operations and native functions", &query(called, function, &functions));
    problems.extend(compare(&queries, &text));
    none(problems.into_iter().map(|problem| problem.chars().take(200).collect()).collect());
}
