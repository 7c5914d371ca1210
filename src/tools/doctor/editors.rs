//! Editors on the path, and whether their settings name tscript.

use super::{Finding, State};
use std::path::{Path, PathBuf};

/// An editor that the guide tells how to set up.
struct Editor {
    name: &'static str,
    programs: &'static [&'static str],
    /// Files that name tscript once it is set up, and folders whose names do; `~config` and `~data` are the user's folders.
    places: &'static [&'static str],
}

const EDITORS: &[Editor] = &[
    Editor {
        name: "Neovim",
        programs: &["nvim"],
        places: &[
            "~config/nvim/init.lua",
            "~config/nvim/init.vim",
            "~config/nvim/lsp",
            "~config/nvim/lua",
            "~data/nvim/site/pack",
        ],
    },
    Editor { name: "Vim", programs: &["vim"], places: &["~/.vim/pack", "~/.vim/syntax", "~/.vimrc"] },
    Editor { name: "Helix", programs: &["hx", "helix"], places: &["~config/helix/languages.toml"] },
    Editor {
        name: "VS Code",
        programs: &["code", "codium"],
        places: &[
            "~/.vscode/extensions",
            "~/.vscode-oss/extensions",
            "~config/Code/User/settings.json",
            "~config/VSCodium/User/settings.json",
        ],
    },
    Editor {
        name: "Zed",
        programs: &["zed", "zeditor"],
        places: &["~config/zed/settings.json", "~data/zed/extensions/installed"],
    },
    Editor {
        name: "Emacs",
        programs: &["emacs"],
        places: &["~/.emacs", "~/.emacs.d/init.el", "~config/emacs/init.el"],
    },
];

pub fn findings() -> Vec<Finding> {
    let search = std::env::var_os("PATH").map(|list| std::env::split_paths(&list).collect::<Vec<_>>());
    let mut all: Vec<Finding> = EDITORS
        .iter()
        .filter_map(|editor| finding(editor, search.as_deref()?, |name| std::env::var(name).ok()))
        .collect();
    if all.is_empty() {
        let none = Finding::new("editors", State::Missing, "none of those that the guide knows is on the path");
        all.push(none.costs("nothing; any editor does, and `tscript lsp` is a language server for all"));
    }
    all
}

fn finding(editor: &Editor, search: &[PathBuf], read: impl Fn(&str) -> Option<String>) -> Option<Finding> {
    let program =
        editor.programs.iter().find_map(|name| search.iter().map(|dir| dir.join(name)).find(|path| path.is_file()))?;
    if editor.places.iter().filter_map(|place| resolved(place, &read)).any(|place| names_tscript(&place, 0)) {
        return Some(Finding::good(editor.name, "with settings for tscript").at(Some(program)));
    }
    let bare = Finding::new(editor.name, State::Missing, "without settings for tscript").at(Some(program));
    Some(
        bare.costs("no colors and no diagnostics there").advice(
            "the guide's page on editors has the lines; for Neovim, Helix and VS Code `tscript new` writes them",
        ),
    )
}

fn resolved(place: &str, read: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let (base, rest) = place.split_once('/')?;
    let home = || read("HOME").map(PathBuf::from);
    let base = match base {
        "~config" => read("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".config")))?,
        "~data" => read("XDG_DATA_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".local/share")))?,
        _ => home()?,
    };
    Some(base.join(rest))
}

/// Whether a file, or something in a folder, names tscript.
fn names_tscript(path: &Path, depth: usize) -> bool {
    /// Bound: bytes of a file of settings.
    const MOST: u64 = 1 << 20;
    /// Bound: nesting of folders.
    const MAX_FOLDERS: usize = 3;
    let Ok(facts) = path.metadata() else { return false };
    if facts.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return depth < MAX_FOLDERS
            && entries.map(|entry| entry.path()).any(|inside| {
                inside.file_name().is_some_and(|name| name.to_string_lossy().contains("tscript"))
                    || names_tscript(&inside, depth + 1)
            });
    }
    let settings = ["lua", "vim", "toml", "json", "el", "vimrc", "emacs"];
    let is_settings = settings.iter().any(|ending| path.to_string_lossy().ends_with(ending));
    is_settings && facts.len() <= MOST && std::fs::read_to_string(path).is_ok_and(|text| text.contains("tscript"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_is_found_with_its_settings() {
        let root = tempfile::tempdir().expect("a folder");
        let home = root.path().to_string_lossy().into_owned();
        let helix = EDITORS.iter().find(|editor| editor.name == "Helix").expect("an editor");
        let look = || finding(helix, &[root.path().to_path_buf()], |name| (name == "HOME").then(|| home.clone()));
        assert!(look().is_none());
        std::fs::write(root.path().join("hx"), "").expect("a file");
        assert_eq!(look().expect("helix").state, State::Missing);
        let folder = root.path().join(".config/helix");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("languages.toml"), "command = \"tscript\"").expect("a file");
        assert_eq!(look().expect("helix").state, State::Good);
    }
}
