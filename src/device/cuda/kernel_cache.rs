//! A disk cache of compiled kernels, shared by all processes of a user, so that a program's second start compiles nothing.
//!
//! Errors are not reported: a file that cannot be read or is damaged is compiled again; one that cannot be written is
//! not cached. A file appears under its name only when it is complete, so two processes may write the same one. Does
//! not know what the bytes mean.

use super::hash;
use super::nvrtc::Text;
use crate::base::order;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// First bytes of a file; the number changes with the layout.
const MAGIC: &[u8; 16] = b"tscript cubin 1\n";
/// Magic and checksum.
const HEADER_BYTES: usize = 32;
/// Prefix of the names of files that are being written, and the age at which one counts as abandoned.
const NEW: &str = ".new";
const ABANDONED: std::time::Duration = std::time::Duration::from_secs(600);

/// Bound: about ten thousand kernels of 10 to 30 KB, far more than a user's programs use.
const FOLDER_BYTES_MAX: u64 = 256 << 20;

/// The user's folder: `$XDG_CACHE_HOME/tscript/kernels`, or `~/.cache/tscript/kernels`; none if neither variable is set.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("tscript").join("kernels"))
}

/// A folder of compiled kernels.
pub struct Cubins {
    folder: Option<PathBuf>,
    pruned: AtomicBool,
}

impl Cubins {
    /// In the user's folder, if there is one.
    pub fn of_user() -> Cubins {
        Cubins { folder: folder(), pruned: AtomicBool::new(false) }
    }

    pub fn at(folder: impl Into<PathBuf>) -> Cubins {
        Cubins { folder: Some(folder.into()), pruned: AtomicBool::new(false) }
    }

    /// A cache that stores nothing.
    pub fn none() -> Cubins {
        Cubins { folder: None, pruned: AtomicBool::new(true) }
    }

    /// The file of a text for devices of this capability. The name has everything that the result depends on except
    /// NVRTC's version: querying that would load NVRTC (15 ms), and the code of an older version is as correct.
    pub fn path(&self, text: &Text<'_>, capability: (u32, u32)) -> Option<PathBuf> {
        let headers = text.headers.iter().flat_map(|(name, text)| [*name, *text]);
        let options = text.options.iter().copied();
        let parts = [env!("CARGO_PKG_VERSION"), text.name, text.text].into_iter().chain(headers).chain(["options"]);
        let key = hash::hash_all(parts.chain(options));
        let (major, minor) = capability;
        self.folder.as_ref().map(|folder| folder.join(format!("{key:032x}-sm_{major}{minor}.cubin")))
    }

    /// The stored bytes, if the checksum matches.
    pub fn load(&self, path: &Path) -> Option<Vec<u8>> {
        let mut file = std::fs::read(path).ok()?;
        let (magic, rest) = file.split_first_chunk::<16>()?;
        let (checksum, content) = rest.split_first_chunk::<16>()?;
        if magic != MAGIC || u128::from_le_bytes(*checksum) != hash::hash(content) {
            return None;
        }
        Some(file.split_off(HEADER_BYTES))
    }

    /// Stores `content`; the result is for tests only.
    pub fn store(&self, path: &Path, content: &[u8]) -> bool {
        let stored = self.write(path, content).is_ok();
        if stored && !self.pruned.swap(true, Ordering::Relaxed) {
            self.prune(FOLDER_BYTES_MAX);
        }
        stored
    }

    fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        use std::io::Write;
        let folder = self.folder.as_deref().ok_or(std::io::ErrorKind::NotFound)?;
        create(folder)?;
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&hash::hash(content).to_le_bytes())?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    }

    /// Removes the oldest files down to half of `bytes_max` when there are more bytes than that.
    fn prune(&self, bytes_max: u64) {
        let Some(folder) = &self.folder else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let data = entry.metadata().ok().filter(|data| data.is_file())?;
                let age = data.modified().ok()?.elapsed().unwrap_or_default();
                // A killed process left it half written.
                if entry.file_name().as_encoded_bytes().starts_with(NEW.as_bytes()) && age > ABANDONED {
                    let _ = std::fs::remove_file(entry.path());
                    return None;
                }
                Some((data.modified().ok()?, data.len(), entry.path()))
            })
            .collect();
        let mut total: u64 = files.iter().map(|file| file.1).sum();
        if total <= bytes_max {
            return;
        }
        order::by(&mut files, Ord::cmp);
        for (_, bytes, path) in files {
            if total <= bytes_max / 2 {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// Creates the folder with access for its owner only, since its contents are executed.
fn create(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Text<'static> {
        Text { name: "some.cu", text, headers: &[("a.cuh", "int a;")], options: &["-DX"], key: 0 }
    }

    #[test]
    fn what_is_stored_comes_back_unless_it_is_damaged() {
        let folder = tempfile::tempdir().expect("a folder");
        let cubins = Cubins::at(folder.path().join("deep/down"));
        let path = cubins.path(&text("x"), (9, 0)).expect("a place");
        assert_eq!(cubins.load(&path), None);
        assert!(cubins.store(&path, b"machine code"));
        assert_eq!(cubins.load(&path).as_deref(), Some(&b"machine code"[..]));
        let whole = std::fs::read(&path).expect("the file");
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("a shorter file");
            assert_eq!(cubins.load(&path), None, "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).expect("a damaged file");
            assert_eq!(cubins.load(&path), None, "damaged at {at}");
        }
        assert!(cubins.store(&path, b""));
        assert_eq!(cubins.load(&path).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn everything_that_matters_is_in_the_name() {
        let cubins = Cubins::at("/nowhere");
        let path = |text: Text<'_>, capability| cubins.path(&text, capability).expect("a place");
        let base = path(text("x"), (9, 0));
        assert_eq!(base, path(text("x"), (9, 0)));
        assert_ne!(base, path(text("y"), (9, 0)));
        assert_ne!(base, path(text("x"), (8, 0)));
        assert_ne!(base, path(Text { headers: &[("a.cuh", "int b;")], ..text("x") }, (9, 0)));
        assert_ne!(base, path(Text { headers: &[("b.cuh", "int a;")], ..text("x") }, (9, 0)));
        assert_ne!(base, path(Text { options: &["-DY"], ..text("x") }, (9, 0)));
        assert_eq!(base, path(Text { key: 7, ..text("x") }, (9, 0)), "the key is of this process only");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let cubins = Cubins::at(file.path().join("below a file"));
        let path = cubins.path(&text("x"), (9, 0)).expect("a place");
        assert!(!cubins.store(&path, b"code"));
        assert_eq!(cubins.load(&path), None);
        assert_eq!(Cubins::none().path(&text("x"), (9, 0)), None);
    }

    #[test]
    fn two_writers_leave_one_whole_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let cubins = Cubins::at(folder.path());
        let path = cubins.path(&text("x"), (9, 0)).expect("a place");
        let contents = [vec![1u8; 100_000], vec![2u8; 50_000]];
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| (0..50).for_each(|_| assert!(cubins.store(&path, content))));
            }
            for _ in 0..200 {
                let found = cubins.load(&path);
                assert!(found.is_none_or(|found| contents.contains(&found)));
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1, "no temporary file stays");
    }

    #[test]
    fn the_oldest_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        for (at, name) in ["c", "a", "b", "d"].into_iter().enumerate() {
            let file = std::fs::File::create(folder.path().join(name)).expect("a file");
            file.set_len(100).expect("a length");
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at as u64)).expect("a time");
        }
        let cubins = Cubins::at(folder.path());
        cubins.prune(400);
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 4);
        cubins.prune(399);
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).expect("the folder").map(|e| e.expect("an entry").file_name()).collect();
        left.sort();
        assert_eq!(left, ["d"]);
    }
}
