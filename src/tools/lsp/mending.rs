//! Code actions that put something in: an import, a `;`, the `wait_stream` of a race that a run has written down.

use super::view::View;
use crate::base::code;
use crate::base::diag::Diag;
use crate::script::check::syntax::Stmt;
use crate::script::check::visit::Visit;
use crate::script::source::lex::script_start;
use crate::tools::races::{self, Race};
use crate::tools::render::Place;
use std::ops::Range;

/// A text to be put in at a byte.
pub struct Put {
    pub title: String,
    pub at: usize,
    pub text: String,
}

/// What a diagnostic with its places says is missing.
pub fn missing(view: &View, diag: &Diag, places: &[Place]) -> Option<Put> {
    match diag.code {
        code::MODULE_NOT_FOUND => import(view, diag.help.as_deref()?),
        code::SYNTAX => semicolon(view, diag, places),
        _ => None,
    }
}

/// "write `import "nn" as nn;` before it"
fn import(view: &View, help: &str) -> Option<Put> {
    let rest = help.strip_prefix("write `import ")?;
    let (line, after) = rest.split_once(";`")?;
    if !after.starts_with(" before it") {
        return None;
    }
    let line = format!("import {line};");
    Some(Put { title: format!("Write `{line}`"), at: place_of_imports(view), text: format!("{line}\n") })
}

/// The line behind the imports at the top of a text; without any, the first one behind what is said of the whole file.
fn place_of_imports(view: &View) -> usize {
    let text = view.text();
    let line_after = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let top =
        view.names.imports.iter().map(|import| view.bytes(import.path_token as usize, import.path_token as usize));
    let start_of = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let not_indented = |bytes: &Range<usize>| text[start_of(bytes.start)..].starts_with("import");
    if let Some(last) = top.filter(not_indented).last() {
        return line_after(last.end);
    }
    let mut at = script_start(text);
    if at > 0 {
        at = line_after(at);
    }
    while text[at..].starts_with("//!") {
        at = line_after(at);
    }
    at
}

/// "a `;` is missing after this", and a `;` that is missing before what is found.
fn semicolon(view: &View, diag: &Diag, places: &[Place]) -> Option<Put> {
    if !diag.message.trim_start_matches("a ").starts_with("`;` is missing") {
        return None;
    }
    let (_, range, text) = places.first()?;
    let at = match text.ends_with("is missing after this") {
        true => range.end,
        false => {
            let tokens = &view.reading.tokens;
            let written = |token: &&crate::script::source::lex::Token| !token.range().is_empty();
            tokens.iter().filter(written).take_while(|token| token.end as usize <= range.start).last()?.end as usize
        }
    };
    Some(Put { title: "Write the missing `;`".into(), at, text: ";".into() })
}

/// The calls that order what the last run saw racing, each with the line of the access.
pub fn waits(view: &View) -> Vec<(Range<usize>, Put)> {
    // What is computed on other streams says so.
    if !view.text().contains("stream") {
        return Vec::new();
    }
    races::of_file(&view.path).iter().filter_map(|race| wait(view, race)).collect()
}

fn wait(view: &View, race: &Race) -> Option<(Range<usize>, Put)> {
    let line = line_of(view.text(), race)?;
    let stmt = statement(view, (line.start + race.column).min(line.end))?;
    let at = view.bytes(stmt.0, stmt.0).start;
    let text = view.text();
    // `current_stream()` is the one of the access only inside of its block.
    let is_outside = text[at..line.start + race.column.min(line.len())].contains("with_stream");
    let is_there = text[..at].trim_end().ends_with(&race.call);
    // What the call names must be there: the text may have changed, or the run may not know.
    let is_own = |word: &str| !matches!(word, "current_stream" | "default_stream" | "wait_stream");
    let words = race.call.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut variables = words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_') && is_own(word));
    let is_seen = |word: &str| view.names.visible(stmt.0 as u32).any(|symbol| symbol.name == word);
    if !variables.all(is_seen) {
        return None;
    }
    if is_there || (is_outside && race.call.starts_with("current_stream()")) {
        return None;
    }
    let begins = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[begins..at];
    let own_line = indent.trim().is_empty();
    let put = if own_line { format!("{}\n{indent}", race.call) } else { format!("{} ", race.call) };
    let title = format!("Insert `{}`, for the race that the last run found", race.call.trim_end_matches(';'));
    Some((line, Put { title, at, text: put }))
}

/// The line that the run saw, wherever it is by now: the nearest one with the same text.
fn line_of(text: &str, race: &Race) -> Option<Range<usize>> {
    let mut at = 0;
    let mut found: Option<(usize, Range<usize>)> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let bytes = at..at + line.trim_end_matches(['\n', '\r']).len();
        at += line.len();
        let distance = (number + 1).abs_diff(race.line);
        if text[bytes.clone()] == race.text && found.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
            found = Some((distance, bytes));
        }
    }
    found.map(|(_, bytes)| bytes)
}

/// The innermost statement of a block around a byte: its first and last token.
fn statement(view: &View, offset: usize) -> Option<(usize, usize)> {
    let mut found = None;
    let mut stmt = |stmt: &Stmt| {
        let (first, last) = (stmt.first as usize, stmt.last as usize);
        let bytes = view.bytes(first, last);
        let in_block = matches!(view.before(first), "" | "{" | ";" | "}");
        if in_block && bytes.start <= offset && offset <= bytes.end {
            found = Some((first, last));
        }
    };
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.stmts(&view.reading.body);
    found
}
