//! Files as URIs.

use std::path::{Path, PathBuf};

/// The path of a `file:` URI.
pub fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        match (byte, escaped(rest.clone())) {
            (b'%', Some(value)) => {
                bytes.push(value);
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // `/c:/x` of Windows.
    let drive = cfg!(windows) && text.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if drive { &text[1..] } else { &text }))
}

/// The byte that two hexadecimal digits mean.
fn escaped(mut ahead: std::str::Bytes) -> Option<u8> {
    let mut digit = || (ahead.next()? as char).to_digit(16);
    Some((digit()? * 16 + digit()?) as u8)
}

/// The URI of a file.
pub fn of(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => uri.push(byte as char),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back() {
        for text in ["/a/b.rhai", "/with space/é%.rhai"] {
            assert_eq!(path(&of(Path::new(text))), Some(PathBuf::from(text)));
        }
        assert_eq!(path("file://host/a%20b"), Some(PathBuf::from("/a b")));
        assert_eq!(path("file:///a%zz"), Some(PathBuf::from("/a%zz")));
        assert_eq!(path("untitled:x"), None);
    }
}
