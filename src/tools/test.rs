//! `tscript test`: every function `test_*` of the `*_test.rhai` files, each in a session of its own.

use super::command::Settings;
use super::run::{Failure, builder, guarded, text};
use super::{FAILED, complain, say};
use crate::base::order;
use crate::files::input::os_reason;
use crate::script::session::handle::Session;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub fn test(folder: &Path, settings: &Settings) -> u8 {
    let mut files = Vec::new();
    if let Err(error) = scripts_in(folder, "_test.rhai", &mut files) {
        complain(&format!("error: cannot read {}: {}\n", folder.display(), os_reason(&error)));
        return FAILED;
    }
    order::by(&mut files, Ord::cmp);
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        let names = match functions(file) {
            Ok(names) => names,
            Err(failure) => {
                failed += 1;
                say(&format!("test {} ... FAILED", file.display()));
                complain(&text(&failure));
                continue;
            }
        };
        for name in names {
            let printed = Arc::new(Mutex::new(String::new()));
            match one(file, &name, settings, &printed) {
                Ok(()) => {
                    passed += 1;
                    say(&format!("test {}::{name} ... ok", file.display()));
                }
                Err(failure) => {
                    failed += 1;
                    say(&format!("test {}::{name} ... FAILED", file.display()));
                    let printed = printed.lock().map(|text| text.clone()).unwrap_or_default();
                    complain(&format!("{printed}{}", text(&failure)));
                }
            }
        }
    }
    if passed + failed == 0 {
        let what = if files.is_empty() { "file named *_test.rhai" } else { "function named test_*" };
        complain(&format!("error: there is no {what} in {}\n", folder.display()));
        return FAILED;
    }
    say(&format!("\n{passed} passed, {failed} failed"));
    if failed > 0 { FAILED } else { 0 }
}

/// Bound: nesting of folders.
const MAX_FOLDERS: usize = 32;

/// The files below a folder whose names have this ending; a file stands for itself.
pub fn scripts_in(path: &Path, ending: &str, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut search = Search { root: path.canonicalize().unwrap_or_default(), ending, linked: HashSet::new() };
    search.collect(path, 0, files)
}

/// A search below a folder. Links to folders are followed, but for those that lead to what is searched anyway.
struct Search<'a> {
    root: PathBuf,
    ending: &'a str,
    /// Folders that links have led to.
    linked: HashSet<PathBuf>,
}

impl Search<'_> {
    /// Whether a folder is searched under this path.
    fn enters(&mut self, path: &Path) -> bool {
        if !path.is_symlink() {
            return true;
        }
        let Ok(real) = path.canonicalize() else { return false };
        let is_around = |folder: &PathBuf| real.starts_with(folder) || folder.starts_with(&real);
        !is_around(&self.root) && !self.linked.iter().any(is_around) && self.linked.insert(real)
    }

    fn collect(&mut self, path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
        if !path.metadata()?.is_dir() {
            files.push(path.to_path_buf());
            return Ok(());
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let hidden = name.starts_with('.') || name == "target";
            if path.is_dir() && !hidden && depth < MAX_FOLDERS {
                if self.enters(&path) {
                    self.collect(&path, depth + 1, files)?;
                }
            } else if name.ends_with(self.ending) && may_be_read(&path) {
                files.push(path);
            }
        }
        Ok(())
    }
}

/// Not: a pipe or a device, which would be waited for. A link to nothing is a file that cannot be read.
fn may_be_read(path: &Path) -> bool {
    path.metadata().map_or(true, |about| about.is_file())
}

fn functions(file: &Path) -> Result<Vec<String>, Failure> {
    let all = guarded(|| Session::builder().stack_bytes(super::STACK_BYTES).build()?.functions_of(file))?;
    Ok(all
        .into_iter()
        .filter(|(name, params)| name.starts_with("test_") && *params == 0)
        .map(|(name, _)| name)
        .collect())
}

/// The file's text followed by a call of the function, which sees the file's imports.
fn one(file: &Path, name: &str, settings: &Settings, printed: &Arc<Mutex<String>>) -> Result<(), Failure> {
    let sink = printed.clone();
    guarded(|| {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let session = builder(settings).module_root(folder).output(move |line| {
            if let Ok(mut text) = sink.lock() {
                text.push_str(line);
                text.push('\n');
            }
        });
        let mut session = session.build()?;
        let text = session.read_source(file)?;
        let (source, lines) = (file.display().to_string(), text.lines().count());
        let done = session.run_str(&source, &format!("{text}\n;{name}();\n"));
        done.map_err(|error| error.without_calls_behind(&source, lines))?;
        Ok(session.exit_status())
    })?
    .map_or(Ok(()), |status| Err(Failure::Panic(format!("error: `exit({status})` ended it before its end\n"))))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Links that lead back are not followed, others are.
    #[test]
    fn each_file_is_found_once() {
        let folder = std::env::temp_dir().join(format!("tscript-links-{}", std::process::id()));
        let (tests, other) = (folder.join("tests"), folder.join("other"));
        std::fs::create_dir_all(tests.join("sub")).expect("folders");
        std::fs::create_dir_all(&other).expect("a folder");
        for file in [tests.join("a_test.rhai"), other.join("b_test.rhai")] {
            std::fs::write(file, "").expect("a file");
        }
        for (to, link) in [("..", "loop"), ("../..", "above"), ("../../other", "once"), ("../../other", "twice")] {
            symlink(to, tests.join("sub").join(link)).expect("a link");
        }
        let mut files = Vec::new();
        scripts_in(&tests, "_test.rhai", &mut files).expect("readable");
        let mut names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
        order::by(&mut names, Ord::cmp);
        assert_eq!(names, ["a_test.rhai", "b_test.rhai"], "{files:?}");
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
