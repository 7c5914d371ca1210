//! The history of entries: a file in the user's data folder. Errors of it do not stop the REPL.

use std::path::PathBuf;

/// Bound: entries kept.
pub const ENTRIES: usize = 10_000;

/// The file, with its folder, which is created if needed.
pub fn path() -> Option<PathBuf> {
    let file = file()?;
    std::fs::create_dir_all(file.parent()?).ok()?;
    Some(file)
}

/// Where the file is: `TSCRIPT_HISTORY` if it is set (empty for none), else `tscript/history` in the user's data folder.
pub fn file() -> Option<PathBuf> {
    match std::env::var_os("TSCRIPT_HISTORY") {
        Some(given) if given.is_empty() => None,
        Some(given) => Some(PathBuf::from(given)),
        None => Some(data_folder()?.join("tscript").join("history")),
    }
}

fn data_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return folder("APPDATA");
    }
    folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local").join("share")))
}
