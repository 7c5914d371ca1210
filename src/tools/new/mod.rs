//! `tscript new`: a folder with a script, a test and settings of editors. It is made under another name and then
//! renamed, so that it is there whole or not at all.

use super::{FAILED, complain, say};
use crate::files::input::os_reason;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// The files with their texts; `@NAME@` stands for the project's name.
const FILES: &[(&str, &str)] = &[
    ("main.rhai", include_str!("template/main.rhai")),
    ("model.rhai", include_str!("template/model.rhai")),
    ("model_test.rhai", include_str!("template/model_test.rhai")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
    (".vscode/settings.json", include_str!("template/vscode.json")),
    (".nvim.lua", include_str!("template/nvim.lua")),
    (".helix/languages.toml", include_str!("../../../editor/helix/languages.toml")),
];

/// Makes the project and tells what to do with it; the exit status.
pub fn new(folder: &Path) -> u8 {
    let shown = folder.display();
    match make(folder) {
        Ok(()) => {
            let quoted = shell_word(&shown.to_string());
            say(&format!("made {shown}; `cd {quoted}`, then `tscript run main.rhai` and `tscript test`"));
            0
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            complain(&format!("error: {shown} exists\n  help: choose another name; nothing was changed\n"));
            FAILED
        }
        Err(error) => {
            complain(&format!("error: {shown} cannot be made: {}\n", os_reason(&error)));
            FAILED
        }
    }
}

fn make(folder: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let name = folder.file_name().ok_or(ErrorKind::AlreadyExists)?.to_string_lossy();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tscript-new-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let unfinished = builder.tempdir_in(parent)?;
    for (file, text) in FILES {
        let path = unfinished.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap_or(parent))?;
        std::fs::write(path, text.replace("@NAME@", &name))?;
    }
    std::fs::rename(unfinished.path(), folder)
}

/// A path as shells take it for one word.
fn shell_word(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:@%+=".contains(c) || !c.is_ascii();
    match path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.to_string(),
        false if path.starts_with('-') => format!("'./{}'", path.replace('\'', "'\\''")),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_refused_and_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let names = || {
            let entries = std::fs::read_dir(parent.path()).expect("a folder");
            entries.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
        };
        let folder = parent.path().join("digits");
        std::fs::create_dir(&folder).expect("a folder");
        assert_eq!((new(&folder), new(&folder.join(".."))), (FAILED, FAILED));
        assert_eq!((new(Path::new("/")), new(Path::new("..")), new(Path::new(""))), (FAILED, FAILED, FAILED));
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
        assert_eq!(new(&parent.path().join("missing").join("digits")), FAILED);
        assert_eq!(names(), ["digits"]);
        assert_eq!(new(&parent.path().join("other")), 0);
        assert_eq!(names().len(), 2);
        for (file, _) in FILES {
            let text = std::fs::read_to_string(parent.path().join("other").join(file)).expect(file);
            assert!(!text.is_empty() && !text.contains('@') || file.ends_with(".rhai"), "{file}");
        }
    }
}
