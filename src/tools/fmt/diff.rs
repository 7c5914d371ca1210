//! The difference between a script and its formatted form, in the unified format of `diff -u`. It follows from the
//! changes, so that it takes time in proportion to the text.

use crate::script::format::edits::edits;
use crate::tools::render::Coloring;
use std::ops::Range;

/// Lines without a change around each change.
const AROUND: usize = 3;

/// Lines of the old text, and those that take their place.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The lines of a text, each with where it begins.
struct Lines<'a> {
    all: Vec<&'a str>,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Lines<'a> {
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let starts = all.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
        Lines { all, starts }
    }

    /// The lines that bytes touch.
    fn around(&self, bytes: Range<usize>) -> Range<usize> {
        let line = |at: usize| self.starts.partition_point(|&start| start <= at);
        line(bytes.start).saturating_sub(1)..line(bytes.end)
    }
}

pub fn unified(name: &str, old: &str, new: &str) -> String {
    let (old_lines, new_lines) = (Lines::of(old), Lines::of(new));
    let mut changes = changes(old, new, &old_lines, &new_lines);
    changes.iter_mut().for_each(|change| trim(change, &old_lines, &new_lines));
    let color = Coloring::of_stdout();
    let mut out = format!("--- {name}\n+++ {name} (formatted)\n");
    let mut first = 0;
    while first < changes.len() {
        let near = |at: usize| changes[at].old.start - changes[at - 1].old.end <= 2 * AROUND;
        let end = (first + 1..changes.len()).find(|&at| !near(at)).unwrap_or(changes.len());
        hunk(&changes[first..end], &old_lines, &new_lines, color, &mut out);
        first = end;
    }
    out
}

fn changes(old: &str, new: &str, old_lines: &Lines, new_lines: &Lines) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let (mut copied, mut to) = (0, 0);
    for edit in edits(old, new) {
        to += edit.range.start - copied;
        let change =
            Change { old: old_lines.around(edit.range.clone()), new: new_lines.around(to..to + edit.text.len()) };
        (copied, to) = (edit.range.end, to + edit.text.len());
        match changes.last_mut().filter(|last| change.old.start <= last.old.end || change.new.start <= last.new.end) {
            Some(last) => (last.old.end, last.new.end) = (change.old.end, change.new.end),
            None => changes.push(change),
        }
    }
    changes
}

/// Leaves out equal lines at the beginning and at the end.
fn trim(change: &mut Change, old: &Lines, new: &Lines) {
    let Change { old: a, new: b } = change;
    while a.start < a.end && b.start < b.end && old.all[a.start] == new.all[b.start] {
        (a.start, b.start) = (a.start + 1, b.start + 1);
    }
    while a.start < a.end && b.start < b.end && old.all[a.end - 1] == new.all[b.end - 1] {
        (a.end, b.end) = (a.end - 1, b.end - 1);
    }
}

fn hunk(changes: &[Change], old: &Lines, new: &Lines, color: Coloring, out: &mut String) {
    let [first, .., last] = [&changes[0], &changes[changes.len() - 1]];
    let before = first.old.start.min(AROUND);
    let after = (old.all.len() - last.old.end).min(AROUND);
    let olds = first.old.start - before..last.old.end + after;
    let news = first.new.start - before..last.new.end + after;
    let place = |range: &Range<usize>| format!("{},{}", range.start + !range.is_empty() as usize, range.len());
    *out += &color.wrap("36", &format!("@@ -{} +{} @@", place(&olds), place(&news)));
    out.push('\n');
    let mut at = olds.start;
    for change in changes {
        lines(" ", &old.all[at..change.old.start], None, color, out);
        lines("-", &old.all[change.old.clone()], Some("31"), color, out);
        lines("+", &new.all[change.new.clone()], Some("32"), color, out);
        at = change.old.end;
    }
    lines(" ", &old.all[at..olds.end], None, color, out);
}

fn lines(sign: &str, lines: &[&str], style: Option<&str>, color: Coloring, out: &mut String) {
    for line in lines {
        let text = format!("{sign}{}", line.trim_end_matches('\n'));
        *out += &style.map_or(text.clone(), |style| color.wrap(style, &text));
        *out += if line.ends_with('\n') { "\n" } else { "\n\\ No newline at end of file\n" };
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn lines_that_change_are_shown_with_those_around() {
        let old = "a;\nb;\nc;\nd ;\ne;\nf;\ng;\nh;\n";
        let expected = "--- x\n+++ x (formatted)\n@@ -1,7 +1,7 @@\n a;\n b;\n c;\n-d ;\n+d;\n e;\n f;\n g;\n";
        assert_eq!(unified("x", old, &old.replace("d ;", "d;")), expected);
        let expected = "--- x\n+++ x (formatted)\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(unified("x", "a", "a\n"), expected);
        let expected = "--- x\n+++ x (formatted)\n@@ -1,4 +1,3 @@\n a;\n \n-\n b;\n";
        assert_eq!(unified("x", "a;\n\n\nb;\n", "a;\n\nb;\n"), expected);
    }
}
