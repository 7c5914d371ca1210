//! Lines and columns of the protocol: from 0, columns in the units that client and server agreed on.

use serde_json::{Value, json};
use std::ops::Range;

/// The units of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    Utf8,
    /// What every client knows.
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// The one that is taken of those that a client offers: bytes need no counting.
    pub fn chosen(offered: &Value) -> Encoding {
        let has = |name: &str| offered.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        match () {
            () if has("utf-8") => Encoding::Utf8,
            () if has("utf-16") => Encoding::Utf16,
            () if has("utf-32") => Encoding::Utf32,
            () => Encoding::Utf16,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Utf32 => "utf-32",
        }
    }

    fn units(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }

    /// The length of a text in these units.
    pub fn length(self, text: &str) -> usize {
        text.chars().map(|c| self.units(c)).sum()
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<usize>,
    pub encoding: Encoding,
}

impl Lines {
    /// A line ends with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str, encoding: Encoding) -> Lines {
        let bytes = text.as_bytes();
        let ends = |at: &usize| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(ends).map(|at| at + 1)).collect();
        Lines { starts, encoding }
    }

    /// The bytes of a line, without its end.
    fn line(&self, text: &str, line: usize) -> Range<usize> {
        let start = self.starts[line];
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        start..start + text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// The byte of a position; what lies beyond a line is its end, beyond the text the end of that.
    pub fn offset(&self, text: &str, position: &Value) -> usize {
        let number = |name: &str| position[name].as_u64().unwrap_or(0) as usize;
        let line = number("line");
        if line >= self.starts.len() {
            return text.len();
        }
        let (range, mut left) = (self.line(text, line), number("character"));
        let mut at = range.start;
        for c in text[range].chars() {
            if left < self.encoding.units(c) {
                break;
            }
            left -= self.encoding.units(c);
            at += c.len_utf8();
        }
        at
    }

    /// Line and column of a byte.
    pub fn place(&self, text: &str, offset: usize) -> (usize, usize) {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let line = self.starts.partition_point(|&start| start <= offset).max(1) - 1;
        (line, self.encoding.length(&text[self.starts[line]..offset]))
    }

    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).max(1) - 1
    }

    pub fn position(&self, text: &str, offset: usize) -> Value {
        let (line, character) = self.place(text, offset);
        json!({"line": line, "character": character})
    }

    pub fn range(&self, text: &str, range: Range<usize>) -> Value {
        json!({"start": self.position(text, range.start), "end": self.position(text, range.end)})
    }

    /// The bytes of a range of the protocol.
    pub fn bytes(&self, text: &str, range: &Value) -> Range<usize> {
        let start = self.offset(text, &range["start"]);
        start..self.offset(text, &range["end"]).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_in_the_units_agreed_on() {
        let text = "a\u{1f600}é=\r\nx\ry\n";
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let lines = Lines::new(text, encoding);
            assert_eq!(lines.starts.len(), 4);
            let offset = text.find('=').expect("there");
            assert_eq!(lines.place(text, offset), (0, column), "{encoding:?}");
            assert_eq!(lines.offset(text, &json!({"line": 0, "character": column})), offset);
        }
        let lines = Lines::new(text, Encoding::Utf16);
        // Inside a pair of surrogates; beyond the line, whose end is no part of it; beyond the text.
        assert_eq!(lines.offset(text, &json!({"line": 0, "character": 2})), 1);
        assert_eq!(lines.offset(text, &json!({"line": 0, "character": 99})), text.find('\r').expect("there"));
        assert_eq!(lines.offset(text, &json!({"line": 9, "character": 0})), text.len());
        assert_eq!(lines.place(text, text.find('y').expect("there")), (2, 0));
    }
}
