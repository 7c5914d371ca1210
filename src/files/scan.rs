//! The few tokens that text headers are made of: punctuation, whole numbers, quoted strings.

use crate::base::code::FILE_FORMAT;
use crate::base::diag::{Diag, Result};

/// A cursor over a header's text that knows where in the file it stands.
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The file's byte at which the text starts.
    base: u64,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8], base: u64) -> Scanner<'a> {
        Scanner { text, at: 0, base }
    }

    /// An error at the next byte.
    pub fn wrong(&self, message: &str) -> Box<Diag> {
        Diag::error(FILE_FORMAT, format!("the header is damaged at byte {}: {message}", self.base + self.at as u64))
    }

    /// The next byte that is no white space.
    pub fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Skips `byte` if it is next.
    pub fn eat(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.at += next as usize;
        next
    }

    pub fn expect(&mut self, byte: u8) -> Result<()> {
        if self.eat(byte) {
            return Ok(());
        }
        Err(self.wrong(&format!("`{}` is missing", byte as char)))
    }

    /// Skips `word` if it is next.
    pub fn word(&mut self, word: &str) -> bool {
        self.peek();
        let next = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if next { word.len() } else { 0 };
        next
    }

    /// A whole number without a sign.
    pub fn number(&mut self) -> Result<u64> {
        self.peek();
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
        let Some(number) = number else { return Err(self.wrong("a whole number belongs here")) };
        self.at += digits;
        Ok(number)
    }

    /// `open a, b, .. close`, each item read by `item`.
    pub fn list<T>(&mut self, open: u8, close: u8, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                self.expect(b',')?;
                // Python writes `(3,)`.
                if close == b')' && self.eat(close) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A string in `quote`s, with JSON's escapes (Python's headers have none).
    pub fn string(&mut self, quote: u8) -> Result<String> {
        self.expect(quote)?;
        let mut out = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return Err(self.wrong("a string does not end")),
                Some(&byte) if byte == quote => break,
                Some(b'\\') => {
                    let letter = self.escape()?;
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(byte) if *byte < 0x20 => return Err(self.wrong("a control character in a string")),
                Some(byte) => {
                    out.push(*byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        String::from_utf8(out).map_err(|_| self.wrong("the string before it is not UTF-8"))
    }

    fn escape(&mut self) -> Result<char> {
        let letter = match self.text.get(self.at + 1) {
            Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => *byte as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.wrong("an unknown escape")),
        };
        self.at += 2;
        Ok(letter)
    }

    /// `\u00e9`, or two of them for a character beyond the basic plane.
    fn unicode(&mut self) -> Result<char> {
        let high = self.unit()?;
        let paired = (0xD800..0xDC00).contains(&high) && self.text[self.at..].starts_with(b"\\u");
        let code = match paired {
            true => {
                let low = self.unit()?;
                0x10000 + ((high - 0xD800) << 10) + (low.wrapping_sub(0xDC00) & 0x3FF)
            }
            false => high,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at + 2..self.at + 6).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let Some(unit) = unit else { return Err(self.wrong("four hexadecimal digits belong here")) };
        self.at += 6;
        Ok(unit)
    }

    /// Only white space may be left.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("something follows the header")),
        }
    }
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter if (letter as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive() {
        for text in ["", "layer.0.weight", "\"\\\n\u{1}é🦀"] {
            assert_eq!(Scanner::new(quoted(text).as_bytes(), 0).string(b'"').unwrap(), text);
        }
        assert_eq!(Scanner::new(br#""\u00e9\ud83e\udd80""#, 0).string(b'"').unwrap(), "é🦀");
    }

    #[test]
    fn broken_strings_say_where() {
        for (text, byte) in [(&br#""ab"#[..], 13), (br#""\q""#, 11), (br#""\ud800""#, 17), (br#""\u00"#, 11)] {
            let error = Scanner::new(text, 10).string(b'"').unwrap_err();
            assert!(error.message.contains(&format!("byte {byte}:")), "{}", error.message);
        }
    }
}
