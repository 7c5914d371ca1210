//! Reads a source file, limited to the maximum size of a source for any kind of file.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::limits::SOURCE_BYTES;
use crate::fail;
use std::io::Read;
use std::path::Path;

/// The text of a file, which may be a pipe.
pub fn text(path: &Path) -> Result<String> {
    let name = path.display();
    let unreadable = |error: std::io::Error| {
        let reason = crate::files::input::os_reason(&error);
        Diag::error(code::FILE, format!("cannot read {name}: {reason}"))
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_file() && about.len() > SOURCE_BYTES as u64 {
        fail!(SOURCE_TOO_LARGE, "{name} has {} bytes; a source may have {SOURCE_BYTES}", about.len());
    }
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > SOURCE_BYTES {
        fail!(SOURCE_TOO_LARGE, "{name} has more than the {SOURCE_BYTES} bytes that a source may have");
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let text = format!("{name} is not UTF-8 text: bad byte at {at}, in line {line}");
        Diag::error(code::SYNTAX, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let error = text(Path::new("/dev/zero")).expect_err("refused");
        assert_eq!(error.code, code::SOURCE_TOO_LARGE);
    }

    #[test]
    fn a_bad_byte_has_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bad.rhai");
        std::fs::write(&path, b"let x = 1;\nlet y = \xff;").expect("written");
        assert!(text(&path).expect_err("refused").message.ends_with("bad byte at 19, in line 2"));
    }
}
