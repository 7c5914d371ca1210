//! Formatting, as `tscript fmt` does it: the changes alone, so that cursors and folds stay where they are.

use super::view::View;
use crate::script::format::edits::{Edit, edits};
use crate::script::format::range::edits_within;
use crate::script::session::handle::Session;
use serde_json::{Value, json};

/// `textDocument/formatting` and `textDocument/rangeFormatting`: of all statements, or of those that the range touches.
/// Nothing of a text that cannot be read, whose problems are told elsewhere.
pub fn formatting(view: &View, session: &mut Session, width: usize, params: &Value) -> Value {
    if super::library::is_library_file(&view.path) {
        return Value::Null;
    }
    let Ok(formatted) = session.format_source(&view.path, view.text(), width) else { return Value::Null };
    let found = match &params["range"] {
        Value::Null => edits(view.text(), &formatted),
        range => edits_within(view.text(), &formatted, view.lines.bytes(view.text(), range)),
    };
    let one = |edit: Edit| json!({"range": view.range(edit.range), "newText": edit.text});
    Value::Array(found.into_iter().map(one).collect())
}
