//! A text that a native function builds piece by piece: limited by the session's maximum length of strings, by memory
//! and by time. The text of a few values can be larger than all of them by any factor, since strings in arrays are
//! shared.

use crate::base::diag::Result;
use crate::script::host::Host;

/// Bound: bytes between two checks of limits, memory and time; writing them takes less than a millisecond.
const CHECK_BYTES: usize = 64 << 10;

pub struct Growing<'a> {
    host: &'a Host,
    text: String,
    /// Length up to which no check is needed.
    unchecked: usize,
}

impl Growing<'_> {
    pub fn new(host: &Host) -> Growing<'_> {
        Growing { host, text: String::new(), unchecked: CHECK_BYTES }
    }

    pub fn push(&mut self, more: &str) -> Result<()> {
        self.reserve(self.text.len().saturating_add(more.len()))?;
        self.text.push_str(more);
        Ok(())
    }

    /// Adds a character so many times.
    pub fn fill(&mut self, character: char, count: usize) -> Result<()> {
        self.reserve(self.text.len().saturating_add(count.saturating_mul(character.len_utf8())))?;
        self.text.extend(std::iter::repeat_n(character, count));
        Ok(())
    }

    /// Adds a text as a literal of the language.
    pub fn push_quoted(&mut self, more: &str) -> Result<()> {
        // Escaping makes a text up to ten times longer.
        self.push("\"")?;
        for part in parts(more, CHECK_BYTES / 16) {
            self.push(&escaped(part))?;
        }
        self.push("\"")
    }

    /// Checks that the text may have so many bytes.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.unchecked { self.check(bytes) } else { Ok(()) }
    }

    #[cold]
    fn check(&mut self, bytes: usize) -> Result<()> {
        let watch = &self.host.watch;
        watch.text_fits(bytes)?;
        // Twice, since the text is copied when it grows.
        watch.room(bytes.saturating_mul(2).saturating_sub(self.text.capacity()))?;
        self.host.rt.heed()?;
        self.unchecked = bytes.saturating_add(CHECK_BYTES);
        Ok(())
    }

    pub fn finish(self) -> Result<String> {
        self.host.watch.text_fits(self.text.len())?;
        Ok(self.text)
    }
}

/// A text as a literal of the language.
pub fn literal(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A character as a literal of the language.
pub fn character(c: char) -> String {
    match c {
        '"' => "'\"'".into(),
        '\'' => "'\\''".into(),
        c => format!("'{}'", escaped(c.encode_utf8(&mut [0; 4]))),
    }
}

/// A text as it stands between quotes in a script. What cannot be printed is escaped, as in Python's `repr`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printed(c) => out.push(c),
            c => out.push_str(&match c as u32 {
                code @ ..0x100 => format!("\\x{code:02x}"),
                code @ ..0x10000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out
}

fn is_printed(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Not: `char::escape_debug`, which also escapes marks that stand above another character.
    let mut above = [b'a'; 5];
    let end = 1 + c.encode_utf8(&mut above[1..]).len();
    str::from_utf8(&above[..end]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

/// Splits a text into parts of about so many bytes.
fn parts(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, more) = rest.split_at(rest.ceil_char_boundary(bytes));
        rest = more;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_a_literal() {
        let text = "a\"\\\n\t\r\0\u{7f}é\u{85}e\u{301}\u{301}\u{2028}\u{e0001}😀'";
        assert_eq!(literal(text), "\"a\\\"\\\\\\n\\t\\r\\x00\\x7fé\\x85e\u{301}\u{301}\\u2028\\U000e0001😀'\"");
    }

    #[test]
    fn characters_are_literals() {
        assert_eq!(['a', '"', '\'', '\n', '\0'].map(character).join(" "), r#"'a' '"' '\'' '\n' '\x00'"#);
    }

    #[test]
    fn parts_join_to_the_text() {
        let text = "aé😀".repeat(7);
        for bytes in 1..9 {
            assert_eq!(parts(&text, bytes).collect::<String>(), text);
        }
        assert_eq!(parts("", 4).count(), 0);
    }
}
