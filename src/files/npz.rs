//! NumPy's archive of arrays: a zip file of `.npy` files, stored or deflated.

use super::array::Named;
use super::input::{DEFLATE_RATIO, Input, Source, unreadable};
use super::write::{Sink, unwritable};
use super::{npy, within};
use crate::base::code::{FILE, FILE_FORMAT};
use crate::base::diag::{Diag, Result};
use crate::fail;
use std::collections::HashSet;
use std::io::{self, Seek, SeekFrom, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Reads every array of an archive of `len` bytes.
pub fn read(source: &mut dyn Source, len: u64) -> Result<Named> {
    let mut archive = ZipArchive::new(source).map_err(damaged)?;
    if archive.has_duplicate_names() {
        fail!(FILE_FORMAT, "two arrays of the archive have the same name");
    }
    let mut named = Named::default();
    let mut names = HashSet::new();
    // Bound: overlapping entries, which let a small file expand without limit, claim more bytes than there are.
    let mut budget = len;
    for i in 0..archive.len() {
        let mut file = archive.by_index(i).map_err(damaged)?;
        let path = file.name().map_err(damaged)?.into_owned();
        let (packed, size) = (file.compressed_size(), file.size());
        let Some(left) = budget.checked_sub(packed) else {
            fail!(FILE_FORMAT, "the arrays up to `{path}` claim more bytes than the file has");
        };
        budget = left;
        let possible = match file.compression() {
            CompressionMethod::Stored => packed == size,
            CompressionMethod::Deflated => size <= packed.saturating_mul(DEFLATE_RATIO),
            other => fail!(FILE_FORMAT, "`{path}` is compressed by {other:?}; only deflate is supported"),
        };
        if !possible {
            fail!(FILE_FORMAT, "`{path}` claims {size} bytes, which its {packed} cannot hold");
        }
        let Some(name) = path.strip_suffix(".npy") else {
            fail!(FILE_FORMAT, "`{path}` in the archive is not an array");
        };
        if !names.insert(name.to_string()) {
            fail!(FILE_FORMAT, "two arrays of the archive have the name `{name}`");
        }
        let mut input = Input::claimed(&mut file, size);
        let array = npy::read(&mut input).and_then(|array| input.end("the array").map(|()| array));
        named.arrays.push((name.to_string(), array.map_err(|diag| within(&format!("array `{name}`"), diag))?));
    }
    Ok(named)
}

fn damaged(error: ZipError) -> Box<Diag> {
    match error {
        ZipError::Io(error) => unreadable(&error),
        ZipError::UnsupportedArchive(why) => Diag::error(FILE_FORMAT, format!("unsupported archive: {why}")),
        ZipError::InvalidArchive(why) => Diag::error(FILE_FORMAT, format!("the archive is damaged: {why}")),
        other => Diag::error(FILE_FORMAT, format!("the archive is damaged: {other}")),
    }
}

/// Stored, as by `numpy.savez`: weights hardly compress, and a stored file is read at the disk's speed.
/// Whether the names and dtypes are such as a file can have.
pub fn check(named: &Named) -> Result<()> {
    let mut names = HashSet::new();
    for (name, array) in &named.arrays {
        if !names.insert(name) {
            fail!(FILE_KIND, "two tensors have the name `{name}`");
        }
        npy::header(array).map_err(|diag| within(&format!("tensor `{name}`"), diag))?;
    }
    Ok(())
}

/// Precondition: `check` found nothing.
pub fn write(named: &Named, sink: &mut dyn Sink) -> Result<()> {
    let mut once = Once { sink, at: 0, has_failed: false };
    let mut archive = ZipWriter::new(&mut once as &mut dyn Sink);
    for (name, array) in &named.arrays {
        let header = npy::header(array)?;
        let large = header.len() + array.bytes().len() >= u32::MAX as usize;
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        archive
            .write_all(&header)
            .and_then(|()| archive.write_all(array.bytes()))
            .map_err(|error| unwritable(&error))?;
    }
    archive.finish().map_err(failed)?;
    Ok(())
}

/// A sink that fails once, and takes what comes then without writing it: an archive that is given up is finished as it is
/// dropped, and tells the standard error of another failure.
struct Once<'a> {
    sink: &'a mut dyn Sink,
    at: u64,
    has_failed: bool,
}

impl Once<'_> {
    fn tell<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.has_failed |= done.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        done
    }
}

impl Write for Once<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = if self.has_failed { Ok(bytes.len()) } else { self.sink.write(bytes) };
        self.at += *done.as_ref().unwrap_or(&0) as u64;
        self.tell(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = if self.has_failed { Ok(()) } else { self.sink.flush() };
        self.tell(done)
    }
}

impl Seek for Once<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let done = match (self.has_failed, to) {
            (false, to) => self.sink.seek(to),
            (true, SeekFrom::Start(at)) => Ok(at),
            (true, SeekFrom::Current(by)) => Ok(self.at.saturating_add_signed(by)),
            (true, SeekFrom::End(_)) => Ok(self.at),
        };
        self.at = *done.as_ref().unwrap_or(&self.at);
        self.tell(done)
    }
}

fn failed(error: ZipError) -> Box<Diag> {
    match error {
        ZipError::Io(error) => unwritable(&error),
        other => Diag::error(FILE, format!("cannot be written: {other}")),
    }
}
