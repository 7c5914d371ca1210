//! `tscript jupyter install` and `uninstall`: the folder by which Jupyter finds the kernel, whole or not at all.

use super::places::Place;
use super::spec;
use crate::base::code;
use crate::base::diag::{Diag, Result as Checked};
use crate::files::input::os_reason;
use crate::tools::render::{Coloring, render};
use crate::tools::{FAILED, complain, say};
use std::path::{Path, PathBuf};

/// What is installed, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub place: Place,
    /// The folder's name, by which other programs call the kernel.
    pub name: String,
    /// The name that people see.
    pub display_name: Option<String>,
    /// Flags with which the kernel is started.
    pub flags: Vec<String>,
}

pub fn install(options: &Options) -> u8 {
    told(folder(options).and_then(|folder| {
        let program = std::env::current_exe().map_err(|error| failed("cannot tell where this program is", &error))?;
        let Some(program) = program.to_str() else {
            return Err(Diag::error(code::FILE, format!("{} is no Unicode, and JSON is", program.display())));
        };
        let display_name = options.display_name.as_deref().unwrap_or(&options.name);
        write(&folder, &spec::text(program, display_name, &options.flags))?;
        Ok(format!(
            "the kernel `{}` is in {}\nit starts {program}\n`jupyter lab` offers it; `tscript jupyter uninstall` removes it",
            options.name,
            folder.display()
        ))
    }))
}

pub fn uninstall(options: &Options) -> u8 {
    told(folder(options).and_then(|folder| {
        remove(&folder)?;
        Ok(format!("removed {}", folder.display()))
    }))
}

fn told(done: Checked<String>) -> u8 {
    match done {
        Ok(text) => {
            say(&text);
            0
        }
        Err(diag) => {
            complain(&render(&diag, &Default::default(), Coloring::of_stderr()));
            FAILED
        }
    }
}

fn folder(options: &Options) -> Checked<PathBuf> {
    let kernels = options.place.folder().map_err(|why| Diag::error(code::FILE, why))?;
    Ok(kernels.join(&options.name))
}

fn failed(what: &str, error: &std::io::Error) -> Box<Diag> {
    Diag::error(code::FILE, format!("{what}: {}", os_reason(error)))
}

/// Writes the files into a folder beside the right one, and puts that in its place.
fn write(folder: &Path, text: &str) -> Checked<()> {
    refuse_others(folder)?;
    let cannot = |error: std::io::Error| failed(&format!("cannot write {}", folder.display()), &error);
    let parent = folder.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(cannot)?;
    let made = temporary().tempdir_in(parent).map_err(cannot)?;
    let logos = spec::logos()?;
    let files =
        logos.iter().map(|(name, png)| (name.as_str(), png.as_slice())).chain([("kernel.json", text.as_bytes())]);
    for (name, bytes) in files {
        std::fs::write(made.path().join(name), bytes).map_err(cannot)?;
    }
    if !folder.exists() {
        return std::fs::rename(made.path(), folder).map_err(cannot);
    }
    let aside = temporary().tempdir_in(parent).map_err(cannot)?;
    let old = aside.path().join("old");
    std::fs::rename(folder, &old).map_err(cannot)?;
    std::fs::rename(made.path(), folder).map_err(|error| {
        // As it was.
        let _ = std::fs::rename(&old, folder);
        cannot(error)
    })
}

/// A folder that goes unless it is kept, readable for all.
fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tscript-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755));
    builder
}

/// A kernel of another program stays.
fn refuse_others(folder: &Path) -> Checked<()> {
    if folder.symlink_metadata().is_err() || spec::program(folder).is_some() {
        return Ok(());
    }
    let message = format!("{} is there and is no kernel of tscript", folder.display());
    Err(Diag::error(code::FILE, message).help("`--name` gives another name"))
}

fn remove(folder: &Path) -> Checked<()> {
    if folder.symlink_metadata().is_err() {
        let message = format!("there is no {}", folder.display());
        return Err(Diag::error(code::FILE, message).help(
            "`tscript doctor` lists the kernels that are installed; `--name`, `--prefix` and `--sys-prefix` tell which",
        ));
    }
    refuse_others(folder)?;
    std::fs::remove_dir_all(folder).map_err(|error| failed(&format!("cannot remove {}", folder.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_kernel_comes_and_goes_whole() {
        let root = tempfile::tempdir().expect("a folder");
        let kernels = root.path().join("share").join("kernels");
        let folder = kernels.join("tscript");
        for version in ["1", "2"] {
            write(&folder, &spec::text("/bin/tscript", version, &[])).expect("installed");
            assert_eq!(names(&folder), ["kernel.json", "logo-32x32.png", "logo-64x64.png"]);
            assert_eq!(names(&kernels), ["tscript"]);
            let text = std::fs::read_to_string(folder.join("kernel.json")).expect("a file");
            assert!(text.contains(&format!("\"display_name\": \"{version}\"")));
        }
        remove(&folder).expect("removed");
        assert_eq!(names(&kernels), Vec::<String>::new());
        assert_eq!(remove(&folder).expect_err("gone").code, code::FILE);
    }

    #[test]
    fn kernels_of_others_stay() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("python3");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("kernel.json"), "{\"argv\": [\"python\"]}").expect("a file");
        for refused in [write(&folder, "{}"), remove(&folder)] {
            assert!(refused.expect_err("refused").message.contains("no kernel of tscript"));
        }
        assert_eq!(names(&folder), ["kernel.json"]);
        // A file is in the way.
        let inside = folder.join("kernel.json").join("tscript");
        assert_eq!(write(&inside, "{}").expect_err("refused").code, code::FILE);
    }
}
