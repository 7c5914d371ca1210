//! Folding ranges and selection ranges: brackets, comments, imports, statements.

use super::view::View;
use crate::base::order;
use crate::script::check::syntax::{Expr, Kind, Stmt};
use crate::script::check::visit::Visit;
use crate::script::edit::around::token_at;
use crate::script::edit::comments::comments;
use serde_json::{Value, json};
use std::ops::Range;

/// `textDocument/foldingRange`
pub fn folds(view: &View) -> Value {
    let mut found = Vec::new();
    for (at, token) in view.reading.tokens.iter().enumerate() {
        let close = token.partner as usize;
        if close > at {
            let (first, last) = (line(view, token.start as usize), line(view, view.bytes(close, close).start));
            // The line of the closing bracket stays.
            add(&mut found, first, last.saturating_sub(1), None);
        }
    }
    for run in runs(view, comments(&view.reading)) {
        add(&mut found, run.start, run.end, Some("comment"));
    }
    let imports = view.names.imports.iter().map(|import| {
        let first = import.first as usize;
        view.bytes(first, first + 1)
    });
    for run in runs(view, imports.collect()) {
        add(&mut found, run.start, run.end, Some("imports"));
    }
    found.dedup();
    Value::Array(found)
}

fn line(view: &View, offset: usize) -> usize {
    view.lines.line_of(offset)
}

fn add(found: &mut Vec<Value>, first: usize, last: usize, kind: Option<&str>) {
    if last > first {
        let mut fold = json!({"startLine": first, "endLine": last});
        if let Some(kind) = kind {
            fold["kind"] = json!(kind);
        }
        found.push(fold);
    }
}

/// Lines that follow each other, from the first to the last of each run.
fn runs(view: &View, places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for place in places {
        let (first, last) = (line(view, place.start), line(view, place.end));
        match found.last_mut() {
            Some(run) if first <= run.end + 1 => run.end = last,
            _ => found.push(first..last),
        }
    }
    found
}

/// Whether a byte is inside a comment.
pub fn comment_at(view: &View, offset: usize) -> bool {
    let text = view.text();
    comments(&view.reading).iter().any(|range| {
        let is_line = text[range.clone()].starts_with("//");
        range.start < offset && (offset < range.end || (is_line && offset == range.end))
    })
}

/// `textDocument/selectionRange`: a word, what is in the brackets around, with them, the statement, and so on.
pub fn selections(view: &View, params: &Value) -> Value {
    let positions = params["positions"].as_array().into_iter().flatten();
    Value::Array(positions.map(|position| selection(view, view.lines.offset(view.text(), position))).collect())
}

fn selection(view: &View, offset: usize) -> Value {
    let mut ranges: Vec<Range<usize>> = Vec::from_iter([view.range_of_all()]);
    ranges.extend(token_at(&view.reading, offset).map(|token| view.bytes(token, token)));
    for (at, token) in view.reading.tokens.iter().enumerate() {
        let close = token.partner as usize;
        if close > at {
            ranges.push(view.bytes(at, close));
            ranges.push(token.end as usize..view.bytes(close, close).start.max(token.end as usize));
        }
    }
    ranges.extend(parts(view));
    ranges.retain(|range| range.start <= offset && offset <= range.end);
    // Outer ones first; those that only overlap are left out.
    order::by_key(&mut ranges, |range| (range.start, std::cmp::Reverse(range.end)));
    order::by_key(&mut ranges, |range| std::cmp::Reverse(range.len()));
    ranges.dedup();
    let (mut outer, mut found) = (view.range_of_all(), Value::Null);
    for range in ranges {
        if range.start >= outer.start && range.end <= outer.end {
            let mut inner = json!({"range": view.range(range.clone())});
            if !found.is_null() {
                inner["parent"] = found;
            }
            (outer, found) = (range, inner);
        }
    }
    found
}

/// The bytes of statements, and of calls and chains, which begin with their first token and end behind their name and
/// its brackets.
fn parts(view: &View) -> Vec<Range<usize>> {
    let mut statements = Vec::new();
    let mut expressions = Vec::new();
    let mut stmt = |stmt: &Stmt| statements.push(view.bytes(stmt.first as usize, stmt.last as usize));
    let mut expr = |expr: &Expr| {
        let focus = expr.focus as usize;
        let last = match expr.kind {
            Kind::Call { .. } | Kind::Method { .. } if view.word(focus + 1) == "(" => focus + 1,
            Kind::Property { .. } | Kind::Index { .. } | Kind::Apply { .. } => focus,
            _ => return,
        };
        let last = view.reading.tokens.get(last).map_or(last, |token| (token.partner as usize).max(last));
        expressions.push(view.bytes(expr.first as usize, last));
    };
    Visit { stmt: &mut stmt, expr: &mut expr }.stmts(&view.reading.body);
    statements.append(&mut expressions);
    statements
}
