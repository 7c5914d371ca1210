//! Tokens of the texts of element-wise functions: C's, with places.

use super::{Fault, fault};
use crate::base::dtype::Scalar;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind<'a> {
    Name(&'a str),
    Number(Scalar),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub struct Token<'a> {
    pub kind: Kind<'a>,
    pub range: Range<usize>,
}

/// The longest first.
const SYMBOLS: &[&str] = &[
    "<<=", ">>=", "**=", "->", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "**", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "++", "--", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", "?", ":", "(", ")",
    ",", ";", "[", "]", "{", "}", ".",
];

/// All tokens, the last one `End`.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        at = skip_blanks(text, at)?;
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            found.push(Token { kind: Kind::End, range: at..at });
            return Ok(found);
        };
        let (kind, end) = if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Kind::Name(&rest[..length]), at + length)
        } else if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            number(text, at)?
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Kind::Symbol(symbol), at + symbol.len())
        } else {
            let end = at + first.len_utf8();
            return Err(fault(at..end, format!("`{first}` has no meaning here"), "this character"));
        };
        found.push(Token { kind, range: at..end });
        at = end;
    }
}

/// Past white space and comments.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Fault> {
    loop {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let Some(length) = rest.find("*/") else {
                return Err(fault(at..at + 2, "a comment is never closed".into(), "opened here"));
            };
            at += length + 2;
        } else {
            match rest.chars().next() {
                Some(c) if c.is_whitespace() => at += c.len_utf8(),
                _ => return Ok(at),
            }
        }
    }
}

fn number(text: &str, start: usize) -> Result<(Kind<'_>, usize), Fault> {
    let rest = &text[start..];
    let bytes = rest.as_bytes();
    let radix = match bytes.get(1) {
        Some(b'x' | b'X') if bytes[0] == b'0' => 16,
        Some(b'b' | b'B') if bytes[0] == b'0' => 2,
        _ => 10,
    };
    let mut length = if radix == 10 { 0 } else { 2 };
    let mut is_float = false;
    while let Some(&byte) = bytes.get(length) {
        let sign = radix == 10 && matches!(byte, b'+' | b'-') && matches!(bytes[length - 1], b'e' | b'E');
        if radix == 10 && matches!(byte, b'.' | b'e' | b'E') || sign {
            is_float = true;
        } else if !(byte as char).is_digit(radix) {
            break;
        }
        length += 1;
    }
    let digits = &rest[..length];
    // C's suffixes say a type, which numbers do not have here.
    let suffix = rest[length..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len() - length);
    let (suffix, end) = (&rest[length..length + suffix], start + length + suffix);
    let bad = || fault(start..end, format!("`{}` is no number", &text[start..end]), "this number");
    let known = matches!(suffix, "" | "f" | "F" | "l" | "L" | "u" | "U" | "ul" | "UL" | "ll" | "LL" | "ull" | "ULL");
    if !known {
        return Err(bad());
    }
    let scalar = if is_float || matches!(suffix, "f" | "F") {
        digits.parse().map(Scalar::Float).map_err(|_| bad())?
    } else if radix == 10 {
        digits.parse().map(Scalar::Int).map_err(|_| bad())?
    } else {
        i64::from_str_radix(&digits[2..], radix).map(Scalar::Int).map_err(|_| bad())?
    };
    Ok((Kind::Number(scalar), end))
}
