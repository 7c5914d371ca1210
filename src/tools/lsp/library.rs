//! Modules as files: those of the user beside the text that imports them, those of the library written below the
//! user's cache, where an editor can show them.

use super::view::View;
use crate::script::library::home::plain;
use crate::script::library::texts::{self, Library};
use crate::tools::cache;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The file of a user's module, where a run finds it.
pub fn file_of(view: &View, module: &str) -> Option<PathBuf> {
    if module.is_empty() || texts::library(module).is_some() {
        return None;
    }
    let ending = if module.ends_with(".rhai") { "" } else { ".rhai" };
    // As clients name files.
    let file = plain(&view.home().join(format!("{module}{ending}")));
    (view.open.contains_key(&file) || file.is_file()).then_some(file)
}

/// The text of a user's module.
pub fn of_user(view: &View, module: &str) -> Option<View> {
    view.other(&file_of(view, module)?)
}

/// The file of a library module that defines a function; the first one of the module without a name.
pub fn of_library(view: &View, module: &str, name: Option<&str>) -> Option<View> {
    let library = texts::library(module)?;
    let defines = |text: &str, name: &str| {
        let is = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
        text.lines().filter_map(|line| line.strip_prefix("fn ")).any(is)
    };
    let (path, _) = library.files().iter().find(|(_, text)| name.is_none_or(|name| defines(text, name)))?;
    view.other(&written(library, path)?)
}

/// Writes a library module's files, unless they are there; the path of one of them.
fn written(library: &Library, path: &str) -> Option<PathBuf> {
    let folder = folder(&library.text())?;
    for (name, text) in library.files() {
        let file = folder.join(name);
        if std::fs::read_to_string(&file).is_ok_and(|there| there == *text) {
            continue;
        }
        std::fs::create_dir_all(file.parent()?).ok()?;
        std::fs::write(&file, text).ok()?;
    }
    Some(folder.join(path))
}

/// `$XDG_CACHE_HOME/tscript/std/0.1.0-1234abcd`: other versions of the program have other texts.
fn folder(text: &str) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let version = format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
    Some(all_versions()?.join(version))
}

/// `$XDG_CACHE_HOME/tscript/std`, of all versions.
pub fn all_versions() -> Option<PathBuf> {
    Some(cache::folder()?.join("std"))
}

/// Whether a path is one of the library's files.
pub fn is_library_file(path: &Path) -> bool {
    path.to_string_lossy().replace('\\', "/").contains("/tscript/std/")
}
