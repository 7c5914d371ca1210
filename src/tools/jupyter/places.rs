//! Folders in which Jupyter looks for kernels, by the variables of the environment that it reads.

use super::spec;
use std::path::PathBuf;

/// Where a kernel is installed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Place {
    /// The user's folder.
    #[default]
    User,
    /// The Python environment that is active.
    Environment,
    /// A prefix such as `/usr/local`.
    Prefix(PathBuf),
}

/// A variable of the environment.
type Read<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// The variables of this process, but for empty ones.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Place {
    /// The folder of kernels, or why there is none.
    pub fn folder(&self) -> Result<PathBuf, String> {
        self.folder_of(&variable)
    }

    fn folder_of(&self, read: Read) -> Result<PathBuf, String> {
        let data = match self {
            Place::User => user(read).ok_or("no folder of the user is known: HOME and JUPYTER_DATA_DIR are not set")?,
            Place::Environment => shared(environment(read).ok_or(
                "no Python environment is active: VIRTUAL_ENV and CONDA_PREFIX are not set; `--prefix DIR` names one",
            )?),
            Place::Prefix(prefix) => shared(prefix.clone()),
        };
        Ok(data.join("kernels"))
    }
}

fn shared(prefix: PathBuf) -> PathBuf {
    prefix.join("share").join("jupyter")
}

fn environment(read: Read) -> Option<PathBuf> {
    read("VIRTUAL_ENV").or_else(|| read("CONDA_PREFIX"))
}

/// The user's folder of Jupyter.
fn user(read: Read) -> Option<PathBuf> {
    if let Some(folder) = read("JUPYTER_DATA_DIR") {
        return Some(folder);
    }
    if cfg!(windows) {
        return Some(read("APPDATA")?.join("jupyter"));
    }
    if cfg!(target_os = "macos") {
        return Some(read("HOME")?.join("Library").join("Jupyter"));
    }
    let data = read("XDG_DATA_HOME").or_else(|| Some(read("HOME")?.join(".local").join("share")));
    Some(data?.join("jupyter"))
}

/// Kernels that start tscript, of all folders: the folder of each, and the program that it starts.
pub fn installed() -> Vec<(PathBuf, PathBuf)> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for folder in searched(&variable) {
        let entries = std::fs::read_dir(folder.join("kernels")).into_iter().flatten().flatten();
        let kernels = entries.filter_map(|entry| Some((entry.path(), spec::program(&entry.path())?)));
        for (path, program) in kernels {
            if !found.iter().any(|(known, _)| *known == path) {
                found.push((path, program));
            }
        }
    }
    found
}

/// As Jupyter does, but for the folders of its own Python.
fn searched(read: Read) -> Vec<PathBuf> {
    let listed = read("JUPYTER_PATH").map(|list| std::env::split_paths(&list).collect::<Vec<_>>()).unwrap_or_default();
    let system = ["/usr/local", "/usr"].map(|prefix| shared(prefix.into()));
    listed.into_iter().chain(user(read)).chain(environment(read).map(shared)).chain(system).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: Place, variables: &[(&str, &str)]) -> Result<PathBuf, String> {
        place.folder_of(&|name| variables.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn folders_are_those_of_jupyter() {
        let home = ("HOME", "/home/me");
        for (variables, expected) in [
            (&[home][..], "/home/me/.local/share/jupyter/kernels"),
            (&[home, ("XDG_DATA_HOME", "/data")], "/data/jupyter/kernels"),
            (&[home, ("XDG_DATA_HOME", "/data"), ("JUPYTER_DATA_DIR", "/j")], "/j/kernels"),
        ] {
            assert_eq!(place(Place::User, variables), Ok(expected.into()));
        }
        let active = [("CONDA_PREFIX", "/conda"), ("VIRTUAL_ENV", "/venv")];
        assert_eq!(place(Place::Environment, &active), Ok("/venv/share/jupyter/kernels".into()));
        assert_eq!(place(Place::Environment, &active[..1]), Ok("/conda/share/jupyter/kernels".into()));
        assert_eq!(place(Place::Prefix("/opt".into()), &[]), Ok("/opt/share/jupyter/kernels".into()));
        assert!(place(Place::User, &[]).is_err() && place(Place::Environment, &[home]).is_err());
    }
}
