//! `textDocument/codeAction`: what a message advises, carried out.

use super::checks;
use super::mending::{self, Put};
use super::view::View;
use crate::base::code;
use crate::base::diag::Diag;
use crate::op::table;
use crate::script::check::syntax::{Expr, Kind};
use crate::script::check::visit::Visit;
use crate::script::edit::names::SymbolKind;
use crate::script::source::lex;
use crate::tools::render::labeled;
use serde_json::{Value, json};
use std::ops::Range;

const FIX: &str = "quickfix";
const REWRITE: &str = "refactor.rewrite";

/// A change of one place.
struct Edit {
    bytes: Range<usize>,
    text: String,
}

impl Edit {
    fn of(put: Put) -> Edit {
        Edit { bytes: put.at..put.at, text: put.text }
    }
}

pub fn actions(view: &View, params: &Value) -> Value {
    let within = view.lines.bytes(view.text(), &params["range"]);
    let touches = |bytes: &Range<usize>| bytes.start <= within.end && within.start <= bytes.end;
    let mut found = Vec::new();
    let diagnostics = checks::diagnostics(view);
    let all = view.reading.problems.iter();
    let diags =
        all.flat_map(|problem| std::iter::once(problem.diag()).chain(problem.extra()).map(move |d| (problem, d)));
    for ((problem, diag), diagnostic) in diags.zip(&diagnostics) {
        let places = labeled(diag, problem.sources());
        let Some((_, bytes, _)) = places.first() else { continue };
        if touches(bytes) {
            let put = mending::missing(view, diag, &places).map(|put| (put.title.clone(), Edit::of(put)));
            let fixes = advised(view, diag, bytes).into_iter().chain(put).chain(unused(view, diag, bytes));
            found.extend(fixes.map(|(title, edit)| action(view, &title, FIX, &[edit], Some(diagnostic))));
        }
    }
    for (_, put) in mending::waits(view).into_iter().filter(|(line, _)| touches(line)) {
        let title = put.title.clone();
        found.push(action(view, &title, FIX, &[Edit::of(put)], None));
    }
    for (title, kind, bytes, edits) in imports(view).into_iter().chain(calls(view)).chain(devices(view)) {
        if touches(&bytes) {
            found.push(action(view, &title, kind, &edits, None));
        }
    }
    let only: Vec<&str> =
        params["context"]["only"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_wanted = |action: &Value| {
        let kind = action["kind"].as_str().unwrap_or("");
        only.is_empty() || only.iter().any(|only| kind == *only || kind.starts_with(&format!("{only}.")))
    };
    found.retain(is_wanted);
    Value::Array(found)
}

fn action(view: &View, title: &str, kind: &str, edits: &[Edit], diagnostic: Option<&Value>) -> Value {
    let edits: Vec<Value> =
        edits.iter().map(|edit| json!({"range": view.range(edit.bytes.clone()), "newText": edit.text})).collect();
    let mut action = json!({"title": title, "kind": kind, "edit": {"changes": {&view.uri: edits}}});
    if let Some(diagnostic) = diagnostic {
        action["diagnostics"] = json!([diagnostic]);
        action["isPreferred"] = json!(true);
    }
    action
}

/// "did you mean `softmax`?"
fn advised(view: &View, diag: &Diag, bytes: &Range<usize>) -> Option<(String, Edit)> {
    let help = diag.help.as_deref()?;
    let rest = help.strip_prefix("did you mean ")?;
    let quoted = rest.find(['`', '"'])?;
    let mark = rest[quoted..].chars().next()?;
    let inside = &rest[quoted + 1..];
    let meant = inside[..inside.find(mark)?].trim_start_matches('.').trim_end_matches("()");
    let is_name = meant.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'));
    if meant.is_empty() || !is_name {
        return None;
    }
    let bytes = mistaken(view, diag, bytes, meant)?;
    Some((format!("Replace by `{meant}`"), Edit { bytes, text: meant.to_string() }))
}

/// The bytes of the word that a message is about: one that it quotes, a string if it quotes strings.
fn mistaken(view: &View, diag: &Diag, bytes: &Range<usize>, meant: &str) -> Option<Range<usize>> {
    let between = |mark: char| diag.message.split(mark).skip(1).step_by(2).collect::<Vec<&str>>();
    let (strings, names) = (between('"'), between('`'));
    let quoted = if strings.is_empty() { names } else { strings.into_iter().take(1).collect() };
    let is_named = |word: &str| {
        quoted
            .iter()
            .any(|name| *name == word || name.rsplit("::").next() == Some(word) || name.trim_start_matches('.') == word)
    };
    let tokens = &view.reading.tokens;
    let inside = (0..tokens.len()).filter(|&at| {
        let range = tokens[at].range();
        range.start >= bytes.start && range.start < bytes.end.max(bytes.start + 1)
    });
    let mut words = inside.filter(|&at| match tokens[at].kind {
        lex::Kind::Word => is_named(view.word(at)),
        lex::Kind::Str => is_named(view.word(at).trim_matches('"')),
        _ => false,
    });
    let at = words.next()?;
    // `nn::rleu` → `nn::relu`
    let head = if meant.contains("::") && view.before(at) == "::" && at >= 2 { at - 2 } else { at };
    let tail = view.name_bytes(at);
    Some(view.name_bytes(head).start..tail.end)
}

/// A variable that nobody reads keeps its value under a name that says so.
fn unused(view: &View, diag: &Diag, bytes: &Range<usize>) -> Option<(String, Edit)> {
    if diag.code != code::UNUSED {
        return None;
    }
    let token = view.names.symbols.iter().find(|symbol| view.name_bytes(symbol.token as usize).start == bytes.start)?;
    let (name, bytes) = (format!("_{}", token.name), view.name_bytes(token.token as usize));
    let text = if token.is_entry { format!("{}: {name}", token.name) } else { name.clone() };
    Some((format!("Call it `{name}`"), Edit { bytes, text }))
}

type Offer = (String, &'static str, Range<usize>, Vec<Edit>);

/// Imports that nothing uses.
fn imports(view: &View) -> Vec<Offer> {
    let unused =
        view.names.symbols.iter().enumerate().filter(|(at, symbol)| {
            symbol.kind == SymbolKind::Import && !view.names.uses.values().any(|used| used == at)
        });
    let offer = |symbol: &crate::script::edit::names::Symbol| {
        let bytes = view.bytes(symbol.whole.0 as usize, symbol.whole.1 as usize);
        let semicolon = symbol.whole.1 as usize + 1;
        let end = if view.word(semicolon) == ";" { view.bytes(semicolon, semicolon).end } else { bytes.end };
        // With its line, if nothing else stands there.
        let text = view.text();
        let line = text[..bytes.start].rfind('\n').map_or(0, |at| at + 1);
        let rest = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
        let (before, after) = (&text[line..bytes.start], &text[end..rest]);
        let cut = match (before.trim().is_empty(), after.trim().is_empty()) {
            (true, true) => line..rest,
            // With the blanks that part it from the rest.
            (false, true) => line + before.trim_end().len()..end,
            _ => bytes.start..rest - after.trim_start_matches([' ', '\t']).len(),
        };
        let title = format!("Remove the unused import `{}`", symbol.name);
        (title, FIX, bytes, vec![Edit { bytes: cut, text: String::new() }])
    };
    unused.map(|(_, symbol)| offer(symbol)).collect()
}

/// `f.call(x)` where `f(x)` means the same.
fn calls(view: &View) -> Vec<Offer> {
    let mut found = Vec::new();
    let mut expr = |expr: &Expr| {
        let Kind::Method { of, name, may_be_unit: false, .. } = &expr.kind else { return };
        let (Kind::Name(holder), "call") = (&of.kind, &name[..]) else { return };
        let focus = expr.focus as usize;
        // The dot and the word.
        let cut = view.bytes(of.focus as usize, of.focus as usize).end..view.bytes(focus, focus).end;
        let bytes = view.bytes(expr.first as usize, focus);
        let edit = Edit { bytes: cut, text: String::new() };
        found.push((format!("Write `{holder}(..)`"), REWRITE, bytes, vec![edit]));
    };
    Visit { stmt: &mut |_| {}, expr: &mut expr }.stmts(&view.reading.body);
    found
}

/// An operator between values on two devices that the text names.
fn devices(view: &View) -> Vec<Offer> {
    let mut found = Vec::new();
    let mut expr = |expr: &Expr| {
        let (left, right, changes) = match &expr.kind {
            Kind::Binary { left, right, .. } => (&**left, &**right, false),
            Kind::Method { of, name, args, .. } if args.len() == 1 && is_of_one_device(name) => {
                (&**of, &args[0], name.ends_with('_'))
            }
            _ => return,
        };
        let on = |side: &Expr| view.device(side.focus as usize);
        let (Some(a), Some(b)) = (on(left), on(right)) else { return };
        if a == b {
            return;
        }
        let (first, last) = (view.bytes(left.first as usize, left.first as usize).start, end(view, right));
        // A copy of what is changed in place would be changed for nobody.
        for (side, device) in [(right, a), (left, b)].into_iter().take(if changes { 1 } else { 2 }) {
            let Some(end) = end(view, side) else { continue };
            let start = view.bytes(side.first as usize, side.first as usize).start;
            let text = format!(".to(\"{device}\")");
            let title = format!("Move `{}` by `{text}`", &view.text()[start..end]);
            let edit = Edit { bytes: end..end, text };
            found.push((title, FIX, first..last.unwrap_or(end), vec![edit]));
        }
    };
    Visit { stmt: &mut |_| {}, expr: &mut expr }.stmts(&view.reading.body);
    found
}

/// Whether a method needs its operands on one device: `copy_` and what is no operation, as `to`, may cross.
fn is_of_one_device(method: &str) -> bool {
    method != "copy_" && table::called(method).is_some()
}

/// The end of an operand to which a method can be appended.
fn end(view: &View, side: &Expr) -> Option<usize> {
    let focus = side.focus as usize;
    let last = match side.kind {
        Kind::Name(_) | Kind::Property { .. } => focus,
        Kind::Call { .. } | Kind::Method { .. } => view.reading.tokens.get(focus + 1)?.partner as usize,
        Kind::Index { .. } => view.reading.tokens[focus].partner as usize,
        _ => return None,
    };
    Some(view.bytes(last, last).end)
}
