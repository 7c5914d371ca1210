//! Files written whole or not at all: a temporary file beside the target, flushed to the disk, renamed over it.

use crate::base::code::FILE;
use crate::base::diag::{Diag, Result};
use crate::fail;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// What a format is written to.
pub trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// Writes `path` by `fill`. If anything fails, the previous content stays.
pub fn atomic(path: &Path, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
    Replacement::of(path)?.write(fill)
}

/// A file that is about to be replaced: whatever shows before the first byte that it cannot be is known.
pub struct Replacement {
    target: PathBuf,
    folder: PathBuf,
    old: Option<fs::Metadata>,
    temporary: Temporary,
}

impl Replacement {
    /// A link is followed, and the permissions of an existing file are kept.
    pub fn of(path: &Path) -> Result<Replacement> {
        super::input::check_path(path)?;
        let target = target(path)?;
        let old = fs::metadata(&target).ok();
        if let Some(old) = &old {
            if !old.is_file() {
                fail!(FILE, "{}", if old.is_dir() { "this is a folder" } else { "this is not a regular file" });
            }
            // Renaming would circumvent the protection.
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
        let temporary = Temporary::beside(&folder, &target).map_err(|error| unwritable(&error))?;
        clear(&folder, &temporary.path);
        Ok(Replacement { target, folder, old, temporary })
    }

    pub fn write(mut self, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
        let mut buffered = BufWriter::with_capacity(1 << 20, &mut self.temporary.file);
        fill(&mut buffered)?;
        let flushed = buffered.flush();
        drop(buffered);
        let settled = flushed.and_then(|()| self.temporary.settle(self.old.as_ref(), &self.target));
        settled.map_err(|error| unwritable(&error))?;
        // A file system that cannot flush a folder has still renamed the file.
        let _ = File::open(&self.folder).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Bound: links from one to the next.
const MAX_LINKS: usize = 40;

/// The file that is written under a path: what its links lead to.
pub fn target(path: &Path) -> Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(_) => pointed_at(path),
    }
}

/// What a path stands for whose links lead to a file that is not there yet.
fn pointed_at(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = target.parent().map_or(next.clone(), |folder| folder.join(&next));
    }
    fail!(FILE, "cannot be written: the link leads to itself")
}

/// How the names of temporary files begin and end.
const BEGIN: &str = ".tscript-";
const END: &str = ".tmp";

/// Removes temporary files that killed programs have left for other targets, once in a folder for each program. Such
/// a file is not locked; a program that opens one at this moment sees, when it has the lock, that the file is gone,
/// and creates another.
fn clear(folder: &Path, own: &Path) {
    static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    {
        let mut cleared = CLEARED.lock();
        // Bound: folders that are remembered.
        if cleared.len() >= 1000 || !cleared.insert(folder.to_path_buf()) {
            return;
        }
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(middle) = name.to_str().and_then(|name| name.strip_prefix(BEGIN)?.strip_suffix(END)) else { continue };
        let is_ours = middle.len() == 16 && middle.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = entry.path();
        if !is_ours || path == own || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = existing(&path) else { continue };
        // A file system without locks cannot show whether the file is in use.
        if file.try_lock().is_ok() && is_at(&file, &path) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// What becomes the target. Its name follows from the target's, and whoever writes it holds a lock, which goes with the
/// process: what a killed program left there is taken over by the next one that writes the same target.
struct Temporary {
    file: File,
    path: PathBuf,
    is_settled: bool,
}

impl Temporary {
    fn beside(folder: &Path, target: &Path) -> io::Result<Temporary> {
        let name = target.file_name().unwrap_or_default().as_encoded_bytes();
        // FNV-1a: the same in every build, and short whatever the name.
        let hash = name
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3));
        let path = folder.join(format!("{BEGIN}{hash:016x}{END}"));
        loop {
            let file = open(&path)?;
            // Another writer of the same target is first. On a file system without locks this check is skipped.
            let _ = file.lock();
            // The previous holder of the lock may have renamed the file: it is the target then.
            if is_at(&file, &path) {
                let temporary = Temporary { file, path, is_settled: false };
                temporary.file.set_len(0)?;
                return Ok(temporary);
            }
        }
    }

    fn settle(mut self, old: Option<&fs::Metadata>, target: &Path) -> io::Result<()> {
        if let Some(old) = old {
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        self.is_settled = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_settled {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Only the reason: the temporary file's name does not help the user.
    options().create(true).open(path).map_err(|error| io::Error::from(error.kind()))
}

fn existing(path: &Path) -> io::Result<File> {
    options().open(path)
}

fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // As any new file: the process's umask applies. A link at this path is refused, and opening a pipe does not
        // block.
        options.mode(0o666).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    options
}

/// Whether a file is the one at a path, under no other name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// The system's reason.
pub fn unwritable(error: &io::Error) -> Box<Diag> {
    Diag::error(FILE, format!("cannot be written: {}", super::input::os_reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> Result<()> {
        atomic(path, &mut |sink| sink.write_all(text.as_bytes()).map_err(|error| unwritable(&error)))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A file that a killed program has left is taken over, whatever its length.
    #[test]
    fn a_half_written_file_is_taken_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.txt");
        let left = Temporary::beside(folder.path(), &path).expect("a file").path.clone();
        fs::write(&left, "much more than comes now").expect("written");
        assert_eq!(names(folder.path()).len(), 1);
        write(&path, "short").expect("written");
        assert_eq!(names(folder.path()), ["x.txt"]);
        assert_eq!(fs::read_to_string(&path).expect("text"), "short");
        assert!(atomic(&path, &mut |_| fail!(FILE, "no")).is_err());
        assert_eq!((names(folder.path()).len(), fs::read_to_string(&path).expect("text").as_str()), (1, "short"));
    }

    /// A link to what is not there yet stays, and what it names is written.
    #[cfg(unix)]
    #[test]
    fn links_lead_to_new_files() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        symlink("second", at("first")).expect("a link");
        symlink("run7.txt", at("second")).expect("a link");
        symlink("itself", at("itself")).expect("a link");
        write(&at("first"), "x").expect("written");
        assert!(at("first").is_symlink() && at("second").is_symlink());
        assert_eq!(fs::read_to_string(at("run7.txt")).expect("text"), "x");
        let error = write(&at("itself"), "x").expect_err("no file");
        assert_eq!(error.message, "cannot be written: the link leads to itself");
        assert!(at("itself").is_symlink());
    }

    /// Leftovers of other targets are removed; files in use and other files are kept.
    #[test]
    fn leftovers_of_other_targets_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let kept = [".tscript-00000000000000zz.tmp", ".tscript-1.tmp", "x.tmp", ".tscript-0123456789abcdef.npy"];
        for name in kept.iter().chain(&[".tscript-0123456789abcdef.tmp"]) {
            fs::write(at(name), "left").expect("written");
        }
        fs::create_dir(at(".tscript-aaaaaaaaaaaaaaaa.tmp")).expect("a folder");
        let live = Temporary::beside(folder.path(), &at("other.npy")).expect("a file");
        write(&at("x.txt"), "text").expect("written");
        let live_name = live.path.file_name().expect("a name").to_string_lossy().into_owned();
        let mut expected = kept.map(str::to_string).to_vec();
        expected.extend([live_name, ".tscript-aaaaaaaaaaaaaaaa.tmp".to_string(), "x.txt".to_string()]);
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        drop(live);
    }

    #[test]
    fn writers_of_one_target_come_one_after_the_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.txt");
        std::thread::scope(|scope| {
            for n in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    (0..20).for_each(|_| write(path, &n.to_string().repeat(10_000 + n)).expect("written"))
                });
            }
        });
        let text = fs::read_to_string(&path).expect("text");
        let n: usize = text[..1].parse().expect("a digit");
        assert_eq!(text, n.to_string().repeat(10_000 + n));
        assert_eq!(names(folder.path()), ["x.txt"]);
    }
}
