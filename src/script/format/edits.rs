//! The smallest changes from a text to its formatted form: blanks and commas, nothing else.

use std::ops::Range;

/// Bytes of the old text, and what takes their place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// The changes from one text to another, which has the same characters but for blanks and commas.
pub fn edits(old: &str, new: &str) -> Vec<Edit> {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let mut found: Vec<Edit> = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < a.len() || to < b.len() {
        let (blank_a, blank_b) = (blanks(a, at), blanks(b, to));
        if a[at..blank_a] != b[to..blank_b] {
            change(&mut found, at..blank_a, &new[to..blank_b]);
        }
        (at, to) = (blank_a, blank_b);
        match (a.get(at), b.get(to)) {
            (None, None) => break,
            (Some(x), Some(y)) if x == y => (at, to) = (at + 1, to + 1),
            (_, Some(b',')) => {
                change(&mut found, at..at, ",");
                to += 1;
            }
            (Some(b','), _) => {
                change(&mut found, at..at + 1, "");
                at += 1;
            }
            // Not a formatted form of the old text.
            _ => return vec![Edit { range: 0..a.len(), text: new.to_string() }],
        }
    }
    found
}

fn blanks(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| !byte.is_ascii_whitespace()).map_or(bytes.len(), |count| from + count)
}

/// Adds a change, to the one before it if they touch.
fn change(found: &mut Vec<Edit>, range: Range<usize>, text: &str) {
    match found.last_mut().filter(|last| last.range.end == range.start) {
        Some(last) => {
            last.range.end = range.end;
            last.text.push_str(text);
        }
        None => found.push(Edit { range, text: text.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_lead_from_one_text_to_the_other() {
        for (old, new, count) in [
            ("a  b", "a b", 1),
            ("f( a,b )", "f(a, b)", 3),
            ("[\n1,\n2\n]", "[\n    1,\n    2,\n]", 3),
            ("a // c \n, b", "a, // c\nb", 2),
            ("é\t;", "é;", 1),
            ("same", "same", 0),
            ("", "x", 1),
        ] {
            let edits = edits(old, new);
            assert_eq!(edits.len(), count, "{old}: {edits:?}");
            let mut text = old.to_string();
            for edit in edits.iter().rev() {
                text.replace_range(edit.range.clone(), &edit.text);
            }
            assert_eq!(text, new);
        }
    }
}
