//! Comments: they are no tokens, and stand between them.

use crate::script::check::reading::Reading;
use crate::script::source::lex::script_start;
use std::ops::Range;

/// The comments of a text, in order. One of several lines is one.
pub fn comments(reading: &Reading) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = script_start(&reading.text);
    let end = reading.text.len();
    let ends = reading.tokens.iter().map(|token| token.range()).chain(std::iter::once(end..end));
    for token in ends {
        if let Some(gap) = reading.text.get(from..token.start) {
            between(gap, from, &mut found);
        }
        from = token.end.max(from);
    }
    found
}

/// The comments of a text without tokens.
fn between(gap: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = gap[at..].find('/').map(|found| at + found) {
        let rest = &gap[begin..];
        let length = match rest.as_bytes().get(1) {
            Some(b'/') => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            Some(b'*') => block(rest),
            _ => 1,
        };
        if length > 1 {
            found.push(start + begin..start + begin + length);
        }
        at = begin + length;
    }
}

/// The length of a block comment; they nest.
fn block(text: &str) -> usize {
    let (bytes, mut at, mut level) = (text.as_bytes(), 0, 0usize);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (level, at) = (level + 1, at + 2),
            (b'*', Some(b'/')) => (level, at) = (level - 1, at + 2),
            _ => at += 1,
        }
        if level == 0 {
            return at;
        }
    }
    text.len()
}

/// The comment lines directly above a byte, without their slashes.
pub fn above(text: &str, offset: usize) -> String {
    let line = text[..offset.min(text.len())].rfind('\n').map_or(0, |end| end + 1);
    let mut lines: Vec<&str> = Vec::new();
    for before in text[..line].lines().rev() {
        match before.trim_start().strip_prefix("//") {
            // What is said of the whole file.
            Some(words) if words.starts_with('!') => break,
            // The signature of a library function.
            Some(words) if words.starts_with(':') => {}
            Some(words) => lines.push(words.trim_start_matches('/').trim_end()),
            None => break,
        }
    }
    let lines = lines.iter().rev().map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_what_stands_between_tokens() {
        let text = "// a\nx / y /* b /* c */ */ + \"// no\" // d";
        let reading = Reading::of_text(text);
        let found: Vec<&str> = comments(&reading).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["// a", "/* b /* c */ */", "// d"]);
    }

    #[test]
    fn documentation_stands_above() {
        let text = "let a = 1;\n/// Adds.\n///\n/// Twice.\nfn f() {}";
        assert_eq!(above(text, text.find("fn").expect("there")), "Adds.\n\nTwice.");
        assert_eq!(above(text, 0), "");
    }
}
