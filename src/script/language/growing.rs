//! A text that a native function builds piece by piece from values: no longer than the session lets texts be, nor than
//! there is memory, nor for longer than there is time. A text of a few values can be larger than all of them by any factor,
//! since strings in arrays are shared.

use crate::base::diag::Result;
use crate::script::host::Host;

/// Bound: bytes between two looks at limits, memory and time; writing them takes less than a millisecond.
const STRETCH: usize = 64 << 10;

pub struct Growing<'a> {
    host: &'a Host,
    text: String,
    /// Bytes up to which nobody needs to look.
    free: usize,
}

impl Growing<'_> {
    pub fn new(host: &Host) -> Growing<'_> {
        Growing { host, text: String::new(), free: STRETCH }
    }

    pub fn push(&mut self, more: &str) -> Result<()> {
        self.reach(self.text.len().saturating_add(more.len()))?;
        self.text.push_str(more);
        Ok(())
    }

    /// Adds the `Debug` form of a text.
    pub fn push_quoted(&mut self, more: &str) -> Result<()> {
        // What is escaped takes up to ten times the bytes.
        self.push("\"")?;
        for part in parts(more, STRETCH / 16) {
            let quoted = format!("{part:?}");
            self.push(&quoted[1..quoted.len() - 1])?;
        }
        self.push("\"")
    }

    /// The text will have so many bytes.
    #[inline]
    pub fn reach(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.free { self.look(bytes) } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self, bytes: usize) -> Result<()> {
        let watch = &self.host.watch;
        watch.text_fits(bytes)?;
        // Twice, since it is copied when it grows.
        watch.room(bytes.saturating_mul(2).saturating_sub(self.text.capacity()))?;
        self.host.rt.heed()?;
        self.free = bytes.saturating_add(STRETCH);
        Ok(())
    }

    pub fn finish(self) -> Result<String> {
        self.host.watch.text_fits(self.text.len())?;
        Ok(self.text)
    }
}

/// A text in parts of about so many bytes.
fn parts(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut at = bytes.min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (part, more) = rest.split_at(at);
        rest = more;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole() {
        let text = "aé😀".repeat(7);
        for bytes in 1..9 {
            assert_eq!(parts(&text, bytes).collect::<String>(), text);
        }
        assert_eq!(parts("", 4).count(), 0);
    }
}
