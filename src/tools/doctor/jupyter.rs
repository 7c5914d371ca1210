//! Kernels for Jupyter that start tscript.

use super::{Finding, State};
use crate::tools::jupyter::installed;
use std::path::{Path, PathBuf};

pub fn findings() -> Vec<Finding> {
    let own = std::env::current_exe().ok();
    let mut all: Vec<Finding> =
        installed().into_iter().map(|(folder, program)| finding(&folder, &program, own.as_deref())).collect();
    if all.is_empty() {
        let none = Finding::new("kernel", State::Missing, "none that starts tscript");
        all.push(none.costs("notebooks do not know tscript").advice("tscript jupyter install"));
    }
    all
}

fn finding(folder: &Path, program: &Path, own: Option<&Path>) -> Finding {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = Some(folder.to_path_buf());
    let advice = format!("tscript jupyter install --name {name}, where it is installed");
    if !found(program) {
        let gone = Finding::new(name, State::Broken, format!("starts {}, which is not there", program.display()));
        return gone.at(path).costs("Jupyter cannot start it").advice(advice);
    }
    let same = own.is_some_and(|own| own == program || program.canonicalize().is_ok_and(|program| program == own));
    let which = if same { "this program" } else { "another program" };
    Finding::good(name, format!("starts {}, {which}", program.display())).at(path)
}

/// Whether a program is there: at its path, or by its name on the search path.
fn found(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let folders = std::env::var_os("PATH").map(|list| std::env::split_paths(&list).collect::<Vec<PathBuf>>());
    folders.into_iter().flatten().any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_whose_program_is_gone_is_broken() {
        let root = tempfile::tempdir().expect("a folder");
        let program = root.path().join("tscript");
        let look = |own: Option<&Path>| finding(&root.path().join("tscript"), &program, own);
        assert_eq!(look(None).state, State::Broken);
        std::fs::write(&program, "").expect("a file");
        assert_eq!(look(None).state, State::Good);
        assert!(look(None).value.ends_with("another program"));
        assert!(look(Some(&program)).value.ends_with("this program"));
    }
}
