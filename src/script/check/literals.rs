//! The values of literals: numbers and strings.

use super::syntax::Kind;

pub fn number(text: &str) -> Kind {
    let plain = text.replace('_', "");
    let radix = match plain.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    if radix != 10 {
        return Kind::Int(i64::from_str_radix(&plain[2..], radix).ok());
    }
    match plain.parse() {
        Ok(value) => Kind::Int(Some(value)),
        Err(_) => Kind::Float(plain.parse().ok()),
    }
}

/// The value of a string; none if it has escapes.
pub fn string(text: &str) -> Option<String> {
    let inside = match text.as_bytes().first()? {
        b'"' => text.strip_prefix('"')?.strip_suffix('"')?,
        b'`' => text.strip_prefix('`')?.strip_suffix('`')?.trim_start_matches('\n'),
        _ => return None,
    };
    (!inside.contains(['\\', '"', '`', '\r'])).then(|| inside.to_string())
}
