//! `tscript test`: every function `test_*` of the `*_test.rhai` files, each in a session of its own.

use super::command::Settings;
use super::run::{Failure, builder, guarded, text};
use super::{FAILED, complain, say};
use crate::base::order;
use crate::files::input::os_reason;
use crate::script::session::handle::Session;
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
    if files.is_empty() {
        say(&format!("no file named *_test.rhai in {}", folder.display()));
    }
    say(&format!("\n{passed} passed, {failed} failed"));
    if failed > 0 { FAILED } else { 0 }
}

/// Bound: nesting of folders; links may be circular.
const MAX_FOLDERS: usize = 32;

/// The files below a folder whose names have this ending; a file stands for itself.
pub fn scripts_in(path: &Path, ending: &str, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    collect(path, ending, 0, files)
}

fn collect(path: &Path, ending: &str, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.metadata()?.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let hidden = name.starts_with('.') || name == "target";
        if path.is_dir() && !hidden && depth < MAX_FOLDERS {
            collect(&path, ending, depth + 1, files)?;
        } else if name.ends_with(ending) {
            files.push(path);
        }
    }
    Ok(())
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
