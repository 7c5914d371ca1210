//! The user's folder for what can be made again: texts of the library, races of runs.

use std::path::PathBuf;

/// `$XDG_CACHE_HOME/tscript`, or `~/.cache/tscript`. Not: a folder for everybody's temporary files, where another user
/// could write what an editor shows.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("tscript"))
}
