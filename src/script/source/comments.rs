//! Comments that Rhai would refuse.

use super::edit::Edit;
use super::lex::Token;
use std::ops::Range;

/// To Rhai `///` and `/** */` are documentation, and an error anywhere but before a function: a blank makes them comments.
pub fn documentation(src: &str, tokens: &[Token], start: usize) -> Vec<Edit<'static>> {
    let mut edits = Vec::new();
    let mut from = start;
    for at in 0..=tokens.len() {
        let end = tokens.get(at).map_or(src.len(), |token| token.start as usize);
        // Most gaps are a blank.
        if src.as_bytes().get(from..end).is_some_and(|gap| gap.contains(&b'/')) {
            let is_before_function =
                tokens.get(at).is_some_and(|token| matches!(&src[token.range()], "fn" | "private"));
            let refused = |comment: &Range<usize>| match &src[comment.clone()] {
                "/**/" => true,
                text if text.starts_with("//!") => true,
                text => !is_before_function && (text.starts_with("///") || text.starts_with("/**")),
            };
            let refused = comments(src, from..end).into_iter().filter(refused);
            edits.extend(refused.map(|comment| Edit::behind(comment.start + 2, " ")));
        }
        from = tokens.get(at).map_or(end, |token| token.end as usize);
    }
    edits
}

/// The comments between two tokens.
fn comments(src: &str, gap: Range<usize>) -> Vec<Range<usize>> {
    let bytes = src.as_bytes();
    let (mut at, mut found) = (gap.start, Vec::new());
    while at < gap.end {
        let start = at;
        match bytes.get(at..at + 2) {
            Some(b"//") => at += src[at..].find('\n').unwrap_or(src.len() - at),
            Some(b"/*") => {
                let mut level = 0usize;
                while at < gap.end {
                    match bytes.get(at..at + 2) {
                        Some(b"/*") => (level, at) = (level + 1, at + 2),
                        Some(b"*/") => (level, at) = (level - 1, at + 2),
                        _ => at += 1,
                    }
                    if level == 0 {
                        break;
                    }
                }
            }
            _ => {
                at += 1;
                continue;
            }
        }
        found.push(start..at.min(gap.end));
    }
    found
}
