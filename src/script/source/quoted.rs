//! Strings that a script writes as literals, and where each of their bytes stands: for faults inside of a text in another
//! language (`base/quoted.rs`).

use super::map::{Source, SourceMap};
use crate::base::diag::Focus;
use crate::base::quoted::{Places, Quoted};
use crate::base::span::{Origin, Site};
use std::ops::Range;
use std::sync::Arc;

impl SourceMap {
    /// The value of an argument of the call at a site, with the places of its literal if it is written as one.
    pub fn quoted(&self, value: &str, site: Site, focus: Focus, keyword: Option<&str>) -> Quoted {
        Quoted::new(value.to_string(), self.places(value, site, focus, keyword))
    }

    fn places(&self, value: &str, site: Site, focus: Focus, keyword: Option<&str>) -> Option<Places> {
        let (source, range) = self.span(site, focus, keyword)?;
        let written = source.text.get(range.clone())?;
        let skipped = match keyword {
            // The name stands before the value.
            Some(_) => written.find(':').map(|at| at + 1)?,
            None => 0,
        };
        let literal = written[skipped..].trim_start();
        let start = range.start + written.len() - literal.len();
        let literal = literal.trim_end();
        let starts = decode(literal).filter(|(text, _)| text == value)?.1;
        let source = source.clone();
        Some(Box::new(move |bytes| place(&source, start, &starts, bytes)))
    }
}

/// The place of some bytes of a literal at `start`, whose bytes begin at `starts`.
fn place(source: &Arc<Source>, start: usize, starts: &[u32], bytes: Range<usize>) -> Option<(Origin, u16)> {
    let at = |byte: usize| start + starts[byte.min(starts.len() - 1)] as usize;
    let (first, end) = (at(bytes.start), at(bytes.end));
    let site = source.site(first);
    let count = source.text.get(first..end).map_or(1, |text| text.chars().count());
    (!site.is_none()).then(|| (Origin::at(site), count.clamp(1, u16::MAX as usize) as u16))
}

/// The text of a literal, and for each of its bytes and its end the byte of the literal.
pub(super) fn decode(literal: &str) -> Option<(String, Vec<u32>)> {
    let first = literal.chars().next()?;
    match first {
        '"' => escaped(literal),
        '`' => backticks(literal),
        '#' => raw(literal),
        _ => None,
    }
}

struct Decoded {
    text: String,
    starts: Vec<u32>,
}

impl Decoded {
    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.starts.resize(self.text.len(), at as u32);
    }

    fn finish(mut self, end: usize) -> Option<(String, Vec<u32>)> {
        self.starts.push(end as u32);
        Some((self.text, self.starts))
    }
}

fn escaped(literal: &str) -> Option<(String, Vec<u32>)> {
    let mut decoded = Decoded { text: String::new(), starts: Vec::new() };
    let mut rest = literal.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '"' if rest.peek().is_some_and(|(_, next)| *next == '"') => {
                rest.next();
                decoded.push('"', at);
            }
            // A further token means that the argument is no plain literal.
            '"' => return if rest.peek().is_none() { decoded.finish(at) } else { None },
            '\\' => {
                let (_, kind) = rest.next()?;
                let digits = match kind {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                match kind {
                    't' => decoded.push('\t', at),
                    'n' => decoded.push('\n', at),
                    'r' => decoded.push('\r', at),
                    '\\' | '"' | '\'' => decoded.push(kind, at),
                    '\r' | '\n' => {
                        // Where the line goes on below, the blanks at its beginning are left out.
                        while rest.next_if(|(_, c)| c.is_whitespace() && *c != '\n').is_some() {}
                    }
                    _ if digits > 0 => {
                        let mut code = 0;
                        for _ in 0..digits {
                            code = code * 16 + rest.next()?.1.to_digit(16)?;
                        }
                        decoded.push(char::from_u32(code)?, at);
                    }
                    _ => return None,
                }
            }
            c => decoded.push(c, at),
        }
    }
    None
}

fn backticks(literal: &str) -> Option<(String, Vec<u32>)> {
    let mut decoded = Decoded { text: String::new(), starts: Vec::new() };
    let mut rest = literal.char_indices().skip(1).peekable();
    // A line end right after the backtick does not count.
    rest.next_if(|(_, c)| *c == '\r');
    rest.next_if(|(_, c)| *c == '\n');
    while let Some((at, c)) = rest.next() {
        match c {
            '`' if rest.peek().is_some_and(|(_, next)| *next == '`') => {
                rest.next();
                decoded.push('`', at);
            }
            '`' => return if rest.peek().is_none() { decoded.finish(at) } else { None },
            '$' if rest.peek().is_some_and(|(_, next)| *next == '{') => return None,
            c => decoded.push(c, at),
        }
    }
    None
}

fn raw(literal: &str) -> Option<(String, Vec<u32>)> {
    let hashes = literal.bytes().take_while(|byte| *byte == b'#').count();
    let closing = format!("\"{}", "#".repeat(hashes));
    let inside = literal.get(hashes..)?.strip_prefix('"')?.strip_suffix(&closing)?;
    let mut decoded = Decoded { text: String::new(), starts: Vec::new() };
    inside.char_indices().for_each(|(at, c)| decoded.push(c, hashes + 1 + at));
    (!inside.contains(&closing)).then(|| decoded.finish(hashes + 1 + inside.len()))?
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn bytes_of_literals_have_their_places() {
        for (literal, text, starts) in [
            (r#""a\tb""#, "a\tb", vec![1, 2, 4, 5]),
            (r#""é\u00e9""#, "éé", vec![1, 1, 3, 3, 9]),
            (r#""a""b""#, "a\"b", vec![1, 2, 4, 5]),
            ("\"a \\\n   b\"", "a b", vec![1, 2, 8, 9]),
            ("`\na\nb`", "a\nb", vec![2, 3, 4, 5]),
            ("`a``b`", "a`b", vec![1, 2, 4, 5]),
            ("#\"a\\n\"#", "a\\n", vec![2, 3, 4, 5]),
        ] {
            assert_eq!(decode(literal), Some((text.to_string(), starts)), "{literal}");
        }
        for literal in ["\"a\" + \"b\"", "text", "`a${b}`", "\"open", "\"\\q\"", ""] {
            assert_eq!(decode(literal), None, "{literal}");
        }
    }
}
