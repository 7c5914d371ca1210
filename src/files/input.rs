//! Reads bytes in order; lengths that a file claims are not trusted.

use crate::base::code::{FILE, FILE_FORMAT};
use crate::base::diag::{Diag, Result};
use crate::fail;
use std::io::{BufRead, ErrorKind, Read, Seek};
use std::path::Path;

/// What a format is read from: an open file or bytes in memory.
pub trait Source: BufRead + Seek {}
impl<T: BufRead + Seek> Source for T {}

/// Bound: how far deflate can expand a byte (258 bytes for two bits), and so the cost of a false claim.
pub const DEFLATE_RATIO: u64 = 1032;

/// Bound: what is reserved at once for bytes that are yet to be inflated.
const INFLATE_STEP: usize = 1 << 16;

/// A reader with its place and its end.
pub struct Input<'a> {
    reader: &'a mut dyn Read,
    at: u64,
    len: u64,
    reserve: usize,
}

impl<'a> Input<'a> {
    /// `len` bytes that are known to exist.
    pub fn new(reader: &'a mut dyn Read, len: u64) -> Input<'a> {
        Input { reader, at: 0, len, reserve: usize::MAX }
    }

    /// `len` bytes that are only claimed: memory grows with the bytes that are really read.
    pub fn claimed(reader: &'a mut dyn Read, len: u64) -> Input<'a> {
        Input { reader, at: 0, len, reserve: INFLATE_STEP }
    }

    /// Bytes read so far: the place of the next one.
    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn left(&self) -> u64 {
        self.len - self.at
    }

    /// The next `n` bytes, which hold `what`.
    pub fn take(&mut self, n: u64, what: &str) -> Result<Vec<u8>> {
        if n > self.left() {
            let (at, left) = (self.at, self.left());
            fail!(FILE_FORMAT, "{what} needs {n} bytes from byte {at} on, and only {left} are left");
        }
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact((n as usize).min(self.reserve)).is_err() {
            fail!(FILE, "{what} needs {n} bytes of memory, which cannot be had");
        }
        let got = (&mut *self.reader).take(n).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        self.at += got as u64;
        if (got as u64) < n {
            fail!(FILE_FORMAT, "the data ends at byte {}, within {what}", self.at);
        }
        Ok(bytes)
    }

    /// The next bytes, as many as `N`.
    pub fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let bytes = self.take(N as u64, what)?;
        let mut out = [0; N];
        out.copy_from_slice(&bytes);
        Ok(out)
    }

    /// Nothing may follow `what`. Reads to the end, so that a checksum there is checked.
    pub fn end(&mut self, what: &str) -> Result<()> {
        let mut more = [0];
        let got = self.reader.read(&mut more).map_err(|error| unreadable(&error))?;
        if self.left() > 0 || got > 0 {
            let left = self.left().max(got as u64);
            fail!(FILE_FORMAT, "{left} bytes follow {what}, from byte {} on", self.at);
        }
        Ok(())
    }
}

/// No file has a name with a zero byte; asked for it, the system says less.
pub fn check_path(path: &Path) -> Result<()> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        fail!(FILE, "no file can have this name: it has a zero byte");
    }
    Ok(())
}

/// The system's reason, or what a decompressor found wrong.
pub fn unreadable(error: &std::io::Error) -> Box<Diag> {
    match error.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
            Diag::error(FILE_FORMAT, format!("the data is damaged: {error}"))
        }
        _ => Diag::error(FILE, format!("cannot be read: {}", os_reason(error))),
    }
}

/// The system's message, without the error number.
pub fn os_reason(error: &std::io::Error) -> String {
    if error.raw_os_error().is_none() && error.kind() == ErrorKind::NotFound {
        return "No such file or directory".into();
    }
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
