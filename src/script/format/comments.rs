//! The comments of a text, with how they stand among the tokens.

use crate::script::source::lex::Token;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    pub start: u32,
    pub end: u32,
    /// `// ...`
    pub is_line: bool,
    /// It stands behind something on the same line.
    pub trails: bool,
    /// Its line ends behind it.
    pub ends_line: bool,
}

impl Comment {
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The comments of a text that begins at `from`, in order.
pub fn comments(src: &str, tokens: &[Token], from: usize) -> Vec<Comment> {
    let mut found = Vec::new();
    let mut at = from;
    for token in tokens {
        let gap = at..token.start as usize;
        if gap.len() > 1 {
            between(src, gap, from, &mut found);
        }
        at = token.end as usize;
    }
    between(src, at..src.len(), from, &mut found);
    found
}

fn between(src: &str, gap: Range<usize>, from: usize, found: &mut Vec<Comment>) {
    let bytes = src.as_bytes();
    let mut at = gap.start;
    // A line that begins with the text, or with the gap's first line feed.
    let mut is_first = gap.start == from;
    while at < gap.end {
        match bytes[at] {
            b'\n' => is_first = true,
            b'/' => {
                let is_line = bytes.get(at + 1) == Some(&b'/');
                let end = if is_line { line_end(bytes, at) } else { block_end(bytes, at) }.min(gap.end);
                let rest = src[end..].trim_start_matches([' ', '\t', '\r', '\u{c}']);
                let ends_line = is_line || rest.is_empty() || rest.starts_with('\n');
                let comment = Comment { start: at as u32, end: end as u32, is_line, trails: !is_first, ends_line };
                found.push(comment);
                is_first = false;
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Without the blanks at the end of the line.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length);
    let written = bytes[at..end].iter().rposition(|byte| !byte.is_ascii_whitespace());
    written.map_or(end, |last| at + last + 1)
}

/// Comments nest.
fn block_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut level) = (start, 0usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (level, at) = (level + 1, at + 2),
            Some(b"*/") => (level, at) = (level - 1, at + 2),
            _ => at += 1,
        }
        if level == 0 {
            break;
        }
    }
    at
}
