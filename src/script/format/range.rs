//! The changes of a part of a text: those of the smallest run of whole statements that has it.

use super::edits::{Edit, edits};
use super::reader::{Place, Reader};
use super::same::Cut;
use std::ops::Range;

/// The changes from a text to its formatted form that concern some of its bytes.
pub fn edits_within(text: &str, formatted: &str, bytes: Range<usize>) -> Vec<Edit> {
    let Some(run) = run(text, bytes) else { return Vec::new() };
    let inside = |edit: Edit| {
        let is_inside = edit.range.start >= run.start && edit.range.end <= run.end;
        if is_inside && edit.range.end != run.start { Some(edit) } else { before(text, edit, run.start) }
    };
    edits(text, formatted).into_iter().filter_map(inside).collect()
}

/// What changes before the first statement: the blanks at the beginning of its line, or the end of the line before it.
fn before(text: &str, edit: Edit, start: usize) -> Option<Edit> {
    if edit.range.end != start {
        return None;
    }
    let old = &text[edit.range.clone()];
    match (old.rfind('\n'), edit.text.rfind('\n')) {
        (Some(at), Some(to)) if old[at..] == edit.text[to..] => None,
        (Some(at), Some(to)) => {
            Some(Edit { range: edit.range.start + at + 1..start, text: edit.text[to + 1..].to_string() })
        }
        _ => Some(edit),
    }
}

/// The bytes of the statements of the innermost block that has all of the bytes.
fn run(text: &str, bytes: Range<usize>) -> Option<Range<usize>> {
    let cut = Cut::of(text)?;
    let mut reader = Reader::new(text, &cut.tokens, &cut.comments);
    reader.text();
    let selected = &text[bytes.clone()];
    let start = bytes.start + (selected.len() - selected.trim_start().len());
    let end = (bytes.start + selected.trim_end().len()).max(start);
    let touches = |place: &&Place| place.bytes.start <= end && start <= place.bytes.end;
    // Each block with its statements that touch the bytes; the innermost one whose statements have all of them.
    let mut runs: Vec<Place> = Vec::new();
    for place in reader.places.iter().filter(touches) {
        match runs.iter_mut().find(|run| run.block == place.block) {
            Some(run) => run.bytes = run.bytes.start.min(place.bytes.start)..run.bytes.end.max(place.bytes.end),
            None => runs.push(place.clone()),
        }
    }
    let has_all = |run: &&Place| run.bytes.start <= start && end <= run.bytes.end;
    let whole = || runs.iter().max_by_key(|run| run.bytes.len());
    let found = runs.iter().filter(has_all).min_by_key(|run| run.bytes.len()).or_else(whole);
    found.map(|run| run.bytes.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::format::{WIDTH, format};

    #[test]
    fn whole_statements_are_formatted() {
        let text = "let a=1;\nfn f( ) {\n  let b=2;\n  let c=3;\n}\nlet d=4;\n";
        let formatted = format(text, WIDTH).expect("formatted");
        for (part, expected) in [
            ("let a=1;", text.replace("a=1", "a = 1")),
            ("b=", text.replace("  let b=2", "    let b = 2")),
            (
                "  let b=2;\n  let c=3;\n",
                text.replace("  let b=2", "    let b = 2").replace("  let c=3", "    let c = 3"),
            ),
            ("3;\n}\nlet", formatted.replace("a = 1", "a=1")),
            ("f( ", formatted.replace("a = 1", "a=1").replace("d = 4", "d=4")),
        ] {
            let at = text.find(part).expect(part);
            let mut changed = text.to_string();
            for edit in edits_within(text, &formatted, at..at + part.len()).iter().rev() {
                changed.replace_range(edit.range.clone(), &edit.text);
            }
            assert_eq!(changed, expected, "{part}");
        }
        assert_eq!(edits_within("", "", 0..0), Vec::new());
    }
}
