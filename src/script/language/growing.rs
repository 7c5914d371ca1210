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
            let quoted = format!("{part:?}");
            self.push(&quoted[1..quoted.len() - 1])?;
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
    fn parts_join_to_the_text() {
        let text = "aé😀".repeat(7);
        for bytes in 1..9 {
            assert_eq!(parts(&text, bytes).collect::<String>(), text);
        }
        assert_eq!(parts("", 4).count(), 0);
    }
}
