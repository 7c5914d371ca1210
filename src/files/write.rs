//! Files written whole or not at all: a temporary file beside the target, flushed to the disk, renamed over it.

use crate::base::code::FILE;
use crate::base::diag::{Diag, Result};
use crate::fail;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What a format is written to.
pub trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// Writes `path` by `fill`. When anything fails, what was there before stays as it was. A link is followed,
/// and the permissions of an existing file are kept.
pub fn atomic(path: &Path, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let old = fs::metadata(&target).ok();
    if let Some(old) = &old {
        if !old.is_file() {
            fail!(FILE, "{}", if old.is_dir() { "this is a folder" } else { "this is not a regular file" });
        }
        // Renaming would get around the protection.
        if old.permissions().readonly() {
            fail!(FILE, "cannot be written: the file is read-only");
        }
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    if !folder.is_dir() {
        fail!(FILE, "cannot be written: there is no folder `{}`", folder.display());
    }
    let mut temporary = beside(&folder).map_err(|error| unwritable(&error))?;
    let mut buffered = BufWriter::with_capacity(1 << 20, temporary.as_file_mut());
    fill(&mut buffered)?;
    let flushed = buffered.flush();
    drop(buffered);
    flushed.and_then(|()| settle(temporary, old.as_ref(), &target)).map_err(|error| unwritable(&error))?;
    // A file system that cannot flush a folder has renamed all the same.
    let _ = File::open(&folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn beside(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tscript-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file: the process's mask takes away what it takes away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The reason alone: the temporary file's name tells the user nothing.
    builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))
}

fn settle(temporary: NamedTempFile, old: Option<&fs::Metadata>, target: &Path) -> io::Result<()> {
    if let Some(old) = old {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// The system's reason.
pub fn unwritable(error: &io::Error) -> Box<Diag> {
    Diag::error(FILE, format!("cannot be written: {}", super::input::plain(error)))
}
