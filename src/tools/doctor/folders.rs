//! Folders that the program writes to: compiled kernels, texts of the library, the REPL's history.

use super::{Finding, State};
use crate::tools::lsp::library_folder;
use crate::tools::repl::history_file;
use std::path::{Path, PathBuf};

pub fn findings() -> Vec<Finding> {
    vec![
        #[cfg(feature = "cuda")]
        folder(
            "kernels",
            crate::script::inspect::machine::kernel_cache(),
            "kernels for GPUs are compiled at each start",
        ),
        folder("library", library_folder(), "editors cannot show the library's texts"),
        history(),
    ]
}

fn folder(name: &str, path: Option<PathBuf>, cost: &str) -> Finding {
    let Some(path) = path else {
        return Finding::new(name, State::Missing, "no folder").costs(cost).advice("set HOME or XDG_CACHE_HOME");
    };
    if !writable(&path) {
        let advice = "give the folder to yourself, or set XDG_CACHE_HOME to one that you may write";
        return Finding::new(name, State::Broken, "cannot be written").at(Some(path)).costs(cost).advice(advice);
    }
    let (files, bytes) = size(&path, 0);
    let value = match files {
        0 => "empty".to_string(),
        1 => format!("1 file, {} KiB", bytes.div_ceil(1024)),
        _ => format!("{files} files, {:.1} MiB", bytes as f64 / (1 << 20) as f64),
    };
    Finding::good(name, value).at(Some(path))
}

fn history() -> Finding {
    let cost = "the REPL forgets what was typed";
    let Some(path) = history_file() else {
        let none = Finding::new("history", State::Missing, "none").costs(cost);
        return none.advice("unset TSCRIPT_HISTORY; set HOME or XDG_DATA_HOME");
    };
    let usable = match path.exists() {
        true => std::fs::OpenOptions::new().append(true).open(&path).is_ok(),
        false => path.parent().is_some_and(writable),
    };
    if !usable {
        let advice = "give the file to yourself, or set TSCRIPT_HISTORY to another";
        return Finding::new("history", State::Broken, "cannot be written").at(Some(path)).costs(cost).advice(advice);
    }
    let lines = std::fs::read(&path).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count());
    Finding::good("history", format!("{lines} lines")).at(Some(path))
}

/// Whether the folder, or the nearest one above it that exists, takes a file; the file has no name.
fn writable(folder: &Path) -> bool {
    let there = folder.ancestors().find(|path| path.symlink_metadata().is_ok());
    there.is_some_and(|path| path.is_dir() && tempfile::tempfile_in(path).is_ok())
}

/// Files and their bytes.
fn size(folder: &Path, depth: usize) -> (usize, u64) {
    /// Bound: nesting of folders; ours have two.
    const MAX_FOLDERS: usize = 4;
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        let (files, bytes) = match facts.is_dir() {
            true if depth < MAX_FOLDERS => size(&entry.path(), depth + 1),
            true => (0, 0),
            false => (1, facts.len()),
        };
        sum = (sum.0 + files, sum.1 + bytes);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_measured_and_what_is_in_the_way_is_broken() {
        let root = tempfile::tempdir().expect("a folder");
        let inside = root.path().join("a").join("b");
        assert_eq!(folder("x", Some(inside.clone()), "slow").state, State::Good);
        assert!(!inside.exists());
        std::fs::create_dir_all(&inside).expect("a folder");
        std::fs::write(inside.join("one"), [0; 1500]).expect("a file");
        assert_eq!(folder("x", Some(root.path().to_path_buf()), "slow").value, "1 file, 2 KiB");
        let blocked = folder("x", Some(inside.join("one").join("kernels")), "slow");
        assert_eq!((blocked.state, blocked.cost.as_deref()), (State::Broken, Some("slow")));
        assert_eq!(folder("x", None, "slow").state, State::Missing);
    }
}
