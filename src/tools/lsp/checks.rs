//! Findings of `tscript check` as the protocol's diagnostics.

use super::protocol::position::Lines;
use super::protocol::uri;
use super::view::View;
use crate::base::code;
use crate::base::diag::{Diag, Severity};
use crate::script::error::Error;
use crate::tools::render::{Place, labeled};
use serde_json::{Value, json};
use std::path::Path;

/// All findings of a text; the library's files are not the user's to mend.
pub fn diagnostics(view: &View) -> Vec<Value> {
    if super::library::is_library_file(&view.path) {
        return Vec::new();
    }
    let all = view.reading.problems.iter();
    all.flat_map(|problem| std::iter::once(problem.diag()).chain(problem.extra()).map(move |diag| (problem, diag)))
        .map(|(problem, diag)| one(view, problem, diag))
        .collect()
}

/// Why a file cannot be read.
pub fn unreadable(diag: &Diag) -> Value {
    let start = json!({"line": 0, "character": 0});
    json!({
        "range": {"start": start, "end": start},
        "severity": 1,
        "code": diag.code.to_string(),
        "source": "tscript",
        "message": diag.message,
    })
}

fn one(view: &View, problem: &Error, diag: &Diag) -> Value {
    let places = labeled(diag, problem.sources());
    let first = places.first().map_or_else(|| view.range(0..0), |place| range(view, place));
    let mut message = diag.message.clone();
    // The words beside the place, unless they only say where it is.
    for note in &diag.notes {
        message += &format!("\nnote: {note}");
    }
    if let Some(help) = &diag.help {
        message += &format!("\nhelp: {help}");
    }
    let related: Vec<Value> = places.iter().skip(1).map(|place| related(view, place)).collect();
    let mut found = json!({
        "range": first,
        "severity": if diag.severity == Severity::Error { 1 } else { 2 },
        "code": diag.code.to_string(),
        "source": "tscript",
        "message": message,
    });
    if !related.is_empty() {
        found["relatedInformation"] = Value::Array(related);
    }
    if diag.code == code::UNUSED || diag.code == code::UNREACHABLE {
        found["tags"] = json!([1]);
    }
    if let Some(help) = &diag.help {
        found["data"] = json!({"help": help});
    }
    found
}

fn range(view: &View, (source, range, _): &Place) -> Value {
    Lines::new(&source.text, view.lines.encoding).range(&source.text, range.clone())
}

fn related(view: &View, place: &Place) -> Value {
    let (source, _, text) = place;
    let own = *source.text == *view.text();
    let uri = if own { view.uri.clone() } else { uri::of(Path::new(&*source.name)) };
    let text = if text.is_empty() { "here" } else { text.as_str() };
    json!({"location": {"uri": uri, "range": range(view, place)}, "message": text})
}
