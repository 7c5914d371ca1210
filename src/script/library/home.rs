//! The folder at which the names of a file's imports begin. In a run that is the folder of the script, for its modules
//! too: of a file that a script in a folder above imports, it is that folder, unless a script beside it does.

use super::texts;
use crate::script::source::lex::{Token, lex_partial};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// Bound: folders above a file in which scripts are looked for; a repository ends the search.
const FOLDERS: usize = 6;
/// Bound: entries of such a folder.
const ENTRIES: usize = 2000;
/// Bound: files that are read in such a folder and below.
const FILES: usize = 300;
/// Bound: bytes of such a file.
const BYTES: u64 = 1 << 20;

/// Texts that go before files.
pub type Open<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The folder of a file's imports. Reads the scripts of folders above only if the text imports files.
pub fn home(path: &Path, text: &str, open: Open) -> PathBuf {
    let own = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(file) = std::path::absolute(path).ok().filter(|_| imports_files(text)).map(|file| plain(&file)) else {
        return own.to_path_buf();
    };
    for folder in file.ancestors().skip(1).take(FOLDERS) {
        let seen = HashSet::from([file.clone()]);
        if (Search { folder, open, seen }).finds(&file) {
            return folder.to_path_buf();
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    own.to_path_buf()
}

/// Whether a text may import what is no module of the library. Cost: it is asked at each keystroke, and cuts no tokens.
fn imports_files(text: &str) -> bool {
    text.match_indices("import").any(|(at, word)| {
        let name = text[at + word.len()..].trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
        name.is_some_and(|(name, _)| texts::library(name).is_none())
    })
}

/// What the scripts of a folder import.
struct Search<'a> {
    folder: &'a Path,
    open: Open<'a>,
    seen: HashSet<PathBuf>,
}

impl Search<'_> {
    fn finds(&mut self, file: &Path) -> bool {
        let entries = std::fs::read_dir(self.folder).into_iter().flatten().flatten().take(ENTRIES);
        let mut left: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_script(path)).collect();
        left.sort_unstable();
        left.reverse();
        while let Some(script) = left.pop() {
            if self.seen.len() >= FILES || !self.seen.insert(script.clone()) {
                continue;
            }
            let Some(text) = self.text(&script).filter(|text| text.contains("import")) else { continue };
            for name in imports(&text).filter(|name| texts::library(name).is_none()) {
                let module = self.module(&name);
                if module == file {
                    return true;
                }
                left.push(module);
            }
        }
        false
    }

    fn module(&self, name: &str) -> PathBuf {
        let ending = if name.ends_with(".rhai") { "" } else { ".rhai" };
        plain(&self.folder.join(format!("{name}{ending}")))
    }

    fn text(&self, script: &Path) -> Option<String> {
        if let Some(text) = (self.open)(script) {
            return Some(text);
        }
        let about = script.metadata().ok()?;
        let reads = about.is_file() && about.len() <= BYTES;
        if reads { std::fs::read_to_string(script).ok() } else { None }
    }
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rhai")
}

/// The names of modules that a text imports at its top level.
pub fn imports(text: &str) -> impl Iterator<Item = String> {
    let (tokens, _) = lex_partial(text);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &text[token.range()]);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if word(at) == "import"
            && let Some(name) = word(at + 1).strip_prefix('"').and_then(|name| name.strip_suffix('"'))
        {
            found.push(name.to_string());
        }
        at = (tokens[at].partner as usize).max(at) + 1;
    }
    found.into_iter()
}

/// A path without `.` and `..`, as far as its text tells.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_the_home_of_the_script_that_imports_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().canonicalize().expect("it is there").join(name);
        std::fs::create_dir_all(at("b/c")).expect("folders");
        for (name, text) in [
            ("main.rhai", "import \"b/two\" as t;"),
            ("b/two.rhai", "import \"b/c/three\" as three;"),
            ("b/c/three.rhai", "import \"one\" as o;"),
            ("b/alone.rhai", "import \"one\" as o;"),
        ] {
            std::fs::write(at(name), text).expect("a file");
        }
        let of = |name: &str, text: &str| home(&at(name), text, &|_| None);
        assert_eq!(of("b/two.rhai", "import \"x\" as x;"), at(""));
        assert_eq!(of("b/c/three.rhai", "import \"x\" as x;"), at(""));
        assert_eq!(of("b/alone.rhai", "import \"x\" as x;"), at("b"));
        assert_eq!(of("b/two.rhai", "import \"nn\" as nn;"), at("b"), "nothing to look for");
        let open = |path: &Path| path.ends_with("main.rhai").then(|| "import \"b/alone\" as a;".to_string());
        assert_eq!(home(&at("b/alone.rhai"), "import \"x\" as x;", &open), at(""));
    }
}
